"""Learning from a table with holes: all values that are known are used."""

from typing import Any

import numpy as np

from budgetreg.errors import ConfigError
from budgetreg.protocol.in_memory import all_present, learn_table
from budgetreg.study.joint import JointModel


def learn(values: np.ndarray, targets: np.ndarray, *, seed: int, algo: str = "aemr", **choices: Any) -> JointModel:
    """Return the joint model of attributes and target, learned from all values that are known.

    The numbers are those of ``budgetreg fit algo=ALGO k=d algo.draws=everything pilot=0 dataset.missing=unavailable
    seed=SEED`` on the same table in a file ``table.csv``. Examples without a target inform the moments of the
    attributes.

    Parameters
    ----------
    values : ndarray of float, shape (n, d)
        NaN for unknown values. At least one row and two attributes; all may be unknown.
    targets : ndarray of float, shape (n,)
        NaN for unknown targets; all may be unknown.
    seed : int
        At least 0.
    algo : str
        A learner that models attributes and target together: ``aemr`` or ``aeml``.
    **choices
        Further choices of ``budgetreg fit``, with ``__`` in place of dots: ``algo__n_factors=5``.

    Raises
    ------
    ConfigError
        If the learner has no such model, or a choice is impossible.
    DataError
        If the values cannot be computed with.
    """
    X, y = np.asarray(values, dtype=np.float64), np.asarray(targets, dtype=np.float64)
    asked = {"algo": algo, "seed": int(seed), "dataset.missing": "unavailable", **all_present(algo, X.shape[1])}
    asked |= {key.replace("__", "."): value for key, value in choices.items()}
    learned = learn_table(asked, X, y)
    if learned.moments is None:
        raise ConfigError(f"algo={algo}: does not model the attributes; use aemr or aeml")
    w, c = learned.model["w"], learned.model["c"]
    mean, covariance = learned.moments
    contrast = np.append(-w, 1.0)  # y - <w, x>
    noise = max(0.0, float(contrast @ covariance @ contrast))
    b = float(learned.model["b"] - w @ c)
    return JointModel(mean[:-1], covariance[:-1, :-1], w, b, noise, covariance[:-1, -1], learned.left_out)
