"""The regressor of one stream: an average of candidates, weighted by their held-out risks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from budgetreg.algorithms.aemr.candidates import RIDGES, SPECTRA, Spectrum, Target, noise, regressors, spectra
from budgetreg.algorithms.aemr.evidence import Evidence, judge
from budgetreg.algorithms.aemr.pairs import FOLDS, LabelRegression, Pairs, StreamValues, shrunk_share
from budgetreg.revealed.collection import Block
from budgetreg.tasks import WithIntercept


@dataclass(frozen=True)
class Solution:
    """The regressor of one stream, and the estimates that it is made from.

    Attributes
    ----------
    w : ndarray of float, shape (d,)
    label : LabelRegression
    candidates : ndarray of float, shape (SPECTRA * len(RIDGES), d)
        Ridge regressors of all spectra and strengths, each at its best scale.
    """

    w: np.ndarray
    label: LabelRegression
    candidates: np.ndarray


def solve(
    blocks: Sequence[Block],
    f: int,
    phases: Sequence[int],
    d: int,
    *,
    centred: bool,
    intercept: bool,
    raw: bool = True,
    excess: float = 0.0,
    inflation: np.ndarray | float = 1.0,
) -> Solution:
    """Return the solution of one stream.

    Parameters
    ----------
    blocks : sequence of Block
        Everything revealed; the last value of each example is its target.
    f : int
        The stream.
    phases : sequence of int
        See `budgetreg.revealed.collection.Collected`.
    d : int
        Number of attributes.
    centred, intercept : bool
        Whether attributes are centred on their means, and whether the target is.
    raw : bool
        See `budgetreg.revealed.equal_values.equal_values`.
    excess : float
    inflation : ndarray of float, shape (d,), or float
        See `budgetreg.revealed.units.Rescaled`.
    """
    revealed = StreamValues(blocks, f, d, centred=centred, intercept=intercept, raw=raw)
    label = revealed.label(slice(None))
    predictive = label.inflated(inflation)
    count = SPECTRA * len(RIDGES)
    level = 0.0 if intercept else revealed.mean
    if not predictive.live.any() or revealed.variance == 0:
        w = label.constants.weights(level) if revealed.variance else np.zeros(d)
        return Solution(w, label, np.tile(w, (count, 1)))
    target = Target(label.constants.factor * level, revealed.variance)
    pairs = Pairs(blocks, f, phases, predictive, revealed.mean)

    def columns(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the live attributes' values at the mean target, and their slopes, in units of their scales."""
        means = np.zeros(len(pairs.live)) if centred else label.constants.factor * a[pairs.live]
        return np.stack([means, b[pairs.live]], axis=1) * pairs.scale[:, None]

    moments = _fold_moments(pairs)
    evidence = []
    for fold in range(FOLDS):  # candidates are made without the fold, and judged on it
        trained = revealed.label(revealed.fold != fold)
        W = regressors(moments.spectra_without(fold), columns(trained.a, trained.b), target)
        P = columns(*revealed.held_out(fold, trained))
        variance = ((W @ moments.held[fold]) * W).sum(axis=1) + np.square(W) @ (excess * pairs.diagonal)
        evidence.append(Evidence(W @ P[:, 0], W @ P[:, 1], variance))
    scores = judge(evidence, target)
    W = regressors(spectra(*moments.whole, moments.noises), columns(label.a, label.b), target)
    full = np.zeros((len(W), d))
    full[:, pairs.live] = W * (scores.scale[:, None] * pairs.scale)
    if label.constants.c.any():
        full += label.constants.weights(level - full @ label.a)
    return Solution(scores.weights() @ full, label, full)


class _FoldMoments(NamedTuple):
    """Estimated second moments of n live attributes given the target: shrunk ones, and ones without that bias."""

    whole: tuple[np.ndarray, np.ndarray]
    """From all folds, (n, n) each."""
    shrunk: np.ndarray
    """Without each fold, shape (FOLDS, n, n)."""
    debiased: np.ndarray
    """The same without bias."""
    held: np.ndarray
    """From each fold alone, without bias, shape (FOLDS, n, n)."""
    noises: tuple[float, float]
    """Variances of the noise in `whole`."""

    def spectra_without(self, fold: int) -> list[Spectrum]:
        """Return the cleaned spectra of the moments without a fold, whose noise is larger."""
        noises = [s2 * FOLDS / (FOLDS - 1) for s2 in self.noises]
        return spectra(self.shrunk[fold], self.debiased[fold], noises)


def _fold_moments(pairs: Pairs) -> _FoldMoments:
    everything = pairs.sums.sum(axis=0), pairs.counts.sum(axis=0)
    whole = pairs.shrunk(*everything), pairs.debiased(*everything)
    shrunk, debiased = (
        np.stack([mean(*pairs.without(fold)) for fold in range(FOLDS)]) for mean in (pairs.shrunk, pairs.debiased)
    )
    held = np.stack([pairs.debiased(pairs.sums[fold], pairs.counts[fold]) for fold in range(FOLDS)])
    noises = noise(whole[0], shrunk, held * shrunk_share(pairs.expected)), noise(whole[1], debiased, held)
    return _FoldMoments(whole, shrunk, debiased, held, noises)


def with_intercepts(
    W: np.ndarray, solutions: Sequence[Solution], blocks: Sequence[Block], *, centred: bool, intercept: bool
) -> WithIntercept:
    """Return regressors (F, d, G) and intercepts that predict the mean target at the means."""
    b = np.zeros((len(W), W.shape[2]))
    if intercept:
        known = np.concatenate([block.attributes[:, :, -1] == W.shape[1] for block in blocks], axis=1).sum(axis=1)
        y = np.concatenate([block.values[:, :, -1] for block in blocks], axis=1)  # 0 for unknown targets
        b += (y.sum(axis=1) / np.maximum(known, 1))[:, None]
    if centred:
        b -= np.stack([solution.label.a @ w for solution, w in zip(solutions, W, strict=True)])
    return WithIntercept(W, b)
