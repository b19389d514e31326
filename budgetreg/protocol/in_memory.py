"""Learning from arrays in memory: what `budgetreg fit` does with a table in a file, with the same numbers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from budgetreg.config.composition import composed
from budgetreg.data import Dataset
from budgetreg.data.attributes import unit
from budgetreg.metering.centring import JointMoments
from budgetreg.protocol.configuration import Config, restored, untested, validate
from budgetreg.protocol.passes import Progress
from budgetreg.protocol.plan import Plan, make_plan
from budgetreg.protocol.repetitions import outcomes, unpacked, widening

NAME = "table"
"""Name of the data, which is in the keys of random streams: a file ``table.csv`` has the same numbers."""


@dataclass(frozen=True)
class Learned:
    """What was learned from all rows.

    Attributes
    ----------
    model : mapping of str to ndarray
        ``w`` (d,), ``b`` () and ``c`` (d,) of ``b + <w, x - c>``; or ``V`` (d, n), ``c`` and ``scale`` (d,) of a
        subspace. In units of the table.
    moments : JointMoments or None
        Mean and covariance of attributes and target, in units of the table; None if the learner models none.
    run : mapping of str to Any
        The row of ``runs.csv``: the bill, and the parameters.
    """

    model: Mapping[str, np.ndarray]
    moments: JointMoments | None
    run: Mapping[str, Any]


def dataset(X: np.ndarray, y: np.ndarray | None, scale: str, names: Sequence[str] = (), target: str = "") -> Dataset:
    """Return arrays as the data that a file with the same values would be.

    Parameters
    ----------
    X : ndarray of float64, shape (n, d)
        NaN marks a cell without a value.
    y : ndarray of float64, shape (n,), optional
        Targets; NaN marks an unknown one.
    scale : str
        The key ``dataset.scale``.
    names : sequence of str, optional
        Names of the attributes.
    target : str, optional
        Name of the target.
    """
    missing = np.isnan(X)
    values = np.where(missing, 0.0, X)
    return Dataset(
        NAME,
        values,
        np.zeros(len(X)) if y is None else np.array(y, dtype=np.float64),
        unit(scale, np.abs(values).max(axis=0))[0],
        None,
        False,
        names=tuple(names),
        target=target,
        available=~missing if missing.any() else None,
    )


def learn_table(choices: Mapping[str, Any], data: Dataset) -> Learned:
    """Learn once from all rows, as ``budgetreg fit`` does with these choices.

    Parameters
    ----------
    choices : mapping of str to Any
        Groups and dotted keys, without those of the data set.
    data : Dataset
        See `dataset`.

    Raises
    ------
    ConfigError
        If a choice is impossible, or does not fit the data.
    DataError
        If nothing can be learned from the data.
    """
    config = configuration(choices)
    plan = make_plan(replace(config, dataset=replace(config.dataset, given=data)))
    moments: list[JointMoments | None] = []

    def run(plan: Plan, repetitions: Sequence[int], progress: Progress) -> list[dict[str, Any]]:
        (outcome,) = outcomes(plan, repetitions, progress)
        moments.append(outcome.final.kept[-1].moments())
        return [outcome.report()]

    (result,) = widening(run, plan, [0], lambda done: None, config.tuning.widen)
    return Learned(unpacked(result["model"]), moments[-1], result["run"])


def configuration(choices: Mapping[str, Any]) -> Config:
    """Return the configuration of ``budgetreg fit`` for data in memory; see `learn_table`."""
    seed = choices.get("seed", 0)
    others = {key: value for key, value in choices.items() if key != "seed"}
    return restored(_composed(json.dumps(others)).resolved, {"seed": seed})


@lru_cache(maxsize=64)
def _composed(choices: str) -> Config:
    """Compose, which is slow, only what differs in more than the seed."""
    given = {"dataset": "file", "dataset.path": f"{NAME}.csv", "out": "."} | json.loads(choices)
    return untested(validate(composed(given), given))
