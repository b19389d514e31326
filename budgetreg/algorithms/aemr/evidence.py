"""Held-out risks of candidate regressors, and the weights that average them.

The moments of one fold determine the risk of a predictor ``f = w'x``: with ``x = a + b u + e``, ``E f = w'a``,
``E f u = w'b E u^2`` and ``Var f = (w'b)^2 E u^2 + w'R w``. Each is linear or quadratic in unbiased estimates. So
candidates are judged for complete examples although held-out ones are incomplete.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from budgetreg.algorithms.aemr.candidates import Target

_MAX_SCALE = 1.1
"""Upper bound of the factor that a candidate is multiplied by."""

_CAUTION, _TEMPERATURE = 1.0, 1.0
"""Standard errors that are added to a risk; and the width of the weights, in standard errors of the least risk."""


class Evidence(NamedTuple):
    """Statistics of one held-out fold, for each candidate made without it.

    Attributes
    ----------
    alpha, gamma : ndarray of float, shape (candidates,)
        ``w'a`` and ``w'b``.
    q : ndarray of float, shape (candidates,)
        ``w'R w``, R from the products of the fold.
    """

    alpha: np.ndarray
    gamma: np.ndarray
    q: np.ndarray


@dataclass(frozen=True)
class CandidateScores:
    """Risks of the candidates, less the risk of predicting 0, by all folds together.

    A candidate multiplied by s has the risk ``s^2 D - 2 s l``, with D and l from means over folds.

    Attributes
    ----------
    risk : ndarray of float, shape (candidates,)
        Risk at the best scale.
    without : ndarray of float, shape (folds, candidates)
        The same without each fold.
    scale : ndarray of float, shape (candidates,)
        The best scale.
    """

    risk: np.ndarray
    without: np.ndarray
    scale: np.ndarray

    def weights(self) -> np.ndarray:
        """Return the candidates' weights in the average: larger for smaller risks, about equal within chance.

        Returns
        -------
        ndarray of float, shape (candidates,)
            Weights that sum to 1.
        """
        error = standard_error(self.without)
        score = self.risk + _CAUTION * error
        best = score.argmin()
        excess = score - score[best]
        with np.errstate(over="ignore"):  # an infinite excess gives the weight 0
            weights = np.exp(-excess / max(_TEMPERATURE * error[best], np.finfo(float).tiny))
        return np.asarray(weights / weights.sum())


def judge(evidence: Sequence[Evidence], target: Target) -> CandidateScores:
    """Return the scores of all candidates, from the evidence of each fold."""
    alpha, gamma, q = map(np.stack, zip(*evidence, strict=True))
    folds = np.arange(len(evidence))

    def risk(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        level, slope, residual = alpha[rows].mean(axis=0), gamma[rows].mean(axis=0), q[rows].mean(axis=0)
        gain = target.level * level + target.variance * slope
        # Cauchy and Schwarz: (E f y)^2 is at most E f^2 E y^2.
        square = np.maximum(level**2 + target.variance * slope**2 + residual, gain**2 / target.square)
        scale = np.clip(gain / np.where(square > 0, square, 1.0), 0.0, _MAX_SCALE)
        return scale**2 * square - 2 * scale * gain, scale

    value, scale = risk(folds)
    return CandidateScores(value, np.stack([risk(folds[folds != f])[0] for f in folds]), scale)


def standard_error(without: np.ndarray) -> np.ndarray:
    """Return the jackknife standard error of a statistic from its values without each fold."""
    F = len(without)
    return np.asarray(np.sqrt((F - 1) / F * np.square(without - without.mean(axis=0)).sum(axis=0)))
