"""What held-out examples, of which no more was revealed than of others, say of regressors: their risks, and shares.

Of the error of ``w`` the moments of one fold tell all there is: with ``x = a + b u + e``, ``E f = w'a``,
``E f u = w'b E u^2`` and ``Var f = (w'b)^2 E u^2 + w'R w``, each of which is linear or quadratic in what is unbiased.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from budgetreg.learners.moments.candidates import Target

_MOST_SCALE = 1.1
_CAUTION, _TEMPERATURE = 1.0, 1.0
"""By how many of its standard errors a risk counts as larger, and how many of the least one's blur the choice."""


@dataclass(frozen=True)
class Evidence:
    """What one fold, held out, says of regressors that were made without it, each a number per candidate.

    Attributes
    ----------
    alpha, gamma : ndarray of float, shape (candidates,)
        Regressors' products with a and b.
    q : ndarray of float, shape (candidates,)
        ``w'R w`` by the products of the fold.
    guard : ndarray of float, shape (candidates,)
        The same by the cleaned matrix that the other folds make, which never is below 0.
    """

    alpha: np.ndarray
    gamma: np.ndarray
    q: np.ndarray
    guard: np.ndarray


@dataclass(frozen=True)
class CandidateScores:
    """What folds say together of each candidate.

    The risk less that of predicting 0 is ``s^2 D - 2 s l`` at scale s, quadratic in means over folds.

    Attributes
    ----------
    risk : ndarray of float, shape (candidates,)
        At its best scale.
    without : ndarray of float, shape (folds, candidates)
        The same when a fold has no say.
    scale : ndarray of float, shape (candidates,)
        By what the candidate is best multiplied.
    """

    risk: np.ndarray
    without: np.ndarray
    scale: np.ndarray

    def shares(self) -> np.ndarray:
        """Return by how much each counts in the mean: the less its risk the more, alike as far as chance may part them.

        Returns
        -------
        ndarray of float, shape (candidates,)
            Of sum 1.
        """
        error = standard_error(self.without)
        score = self.risk + _CAUTION * error
        best = score.argmin()
        above = score - score[best]
        # Candidates between which not even chance could part share alike.
        with np.errstate(over="ignore"):  # infinitely far, all others have no share
            weights = np.exp(-above / max(_TEMPERATURE * error[best], np.finfo(float).tiny))
        return np.asarray(weights / weights.sum())

    def among(self, candidates: slice) -> "CandidateScores":
        """Return what is said of some of them."""
        return CandidateScores(self.risk[candidates], self.without[:, candidates], self.scale[candidates])

    def clearly_better(self, some: slice, others: slice) -> bool:
        """Return whether the best of some has a risk below that of the best of others by a standard error of both's."""
        a = some.start + int(self.risk[some].argmin())
        b = others.start + int(self.risk[others].argmin())
        error = standard_error(self.without[:, [b]] - self.without[:, [a]])[0]
        return bool(self.risk[b] - self.risk[a] > error)


def judge(evidence: Sequence[Evidence], target: Target) -> CandidateScores:
    """Judge all candidates by the folds' means; of all folds, and of all but each."""
    alpha, gamma, q, guard = (
        np.stack([getattr(own, name) for own in evidence]) for name in ("alpha", "gamma", "q", "guard")
    )
    folds = np.arange(len(evidence))

    def risk(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        level, slope, left = alpha[rows].mean(axis=0), gamma[rows].mean(axis=0), q[rows].mean(axis=0)
        # Where the folds' products are too few to speak, those of the others do, up to what the former leave open.
        open_to = left + 2 * q[rows].std(axis=0, ddof=1) / np.sqrt(len(rows))
        left = np.maximum(left, np.minimum(guard[rows].mean(axis=0), open_to))
        gain = target.level * level + target.variance * slope
        # No predictor's mean product with the target is above the product of their root mean squares.
        square = np.maximum(level**2 + target.variance * slope**2 + left, gain**2 / target.square)
        scale = np.clip(gain / np.where(square > 0, square, 1.0), 0.0, _MOST_SCALE)
        return scale**2 * square - 2 * scale * gain, scale

    value, scale = risk(folds)
    return CandidateScores(value, np.stack([risk(folds[folds != f])[0] for f in folds]), scale)


def standard_error(without: np.ndarray) -> np.ndarray:
    """Return the jackknife's standard error of what has these values without each fold, shape (folds, ...)."""
    F = len(without)
    return np.asarray(np.sqrt((F - 1) / F * np.square(without - without.mean(axis=0)).sum(axis=0)))
