"""The regressor of one stream: an average of candidates, weighted by their held-out risks."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from budgetreg.learners.moments.candidates import RIDGES, SPECTRA, Target, noise, regressors, spectra
from budgetreg.learners.moments.evidence import Evidence, judge
from budgetreg.learners.moments.pairs import FOLDS, LabelRegression, Pairs, StreamValues, shrunk_share
from budgetreg.revealed.collection import Block
from budgetreg.tasks import Outputs, WithIntercept

_CONTRADICTION = 4
"""Standard errors, over the folds, by which pairs must deviate from a model to contradict it."""

_PRIOR_EXAMPLES = 200
"""Examples that the factor model's prior is worth: the moments have no prior, and count for more beyond them."""


@dataclass(frozen=True)
class Solution:
    """The regressor of one stream, and the estimates that it is made from.

    Attributes
    ----------
    w : ndarray of float, shape (d,)
    label : LabelRegression
    candidates : ndarray of float, shape (SPECTRA * len(RIDGES), d)
        Ridge regressors of all spectra and strengths, each at its best scale.
    sparse : bool
        Whether `w` averages the lasso's regressors, because held-out folds clearly favour them.
    pairs : Pairs or None
        None if there is nothing to solve for: no attribute varies, or the target does not.
    """

    w: np.ndarray
    label: LabelRegression
    candidates: np.ndarray
    sparse: bool
    pairs: Pairs | None

    def factor_share(self, examples: int, residual: np.ndarray, n_factors: int) -> float:
        """Return the factor-model estimate's share: from 1 to 1/2, or to 0 if sparse; 0 if contradicted."""
        moments = examples / (examples + _PRIOR_EXAMPLES)
        if self.contradicts(residual, n_factors):
            return 0.0
        return 1 - (moments if self.sparse else moments / 2)

    def contradicts(self, residual: np.ndarray, n_factors: int) -> bool:
        """Return whether the pairs contradict a factor model.

        The statistic is the mean over pairs of ``(product of a fold - model) (product of the others - model)``. Its
        expectation is 0 for the right model (below 0 if the model was fitted to the same products), else positive.

        Parameters
        ----------
        residual : ndarray of float, shape (d, d)
            The model's covariance of the attributes given the target.
        n_factors : int
            Factors of the model. With as many as attributes it fits every covariance, and is not tested.
        """
        pairs = self.pairs
        if pairs is None or len(pairs.live) <= n_factors:
            return False
        R = residual[np.ix_(pairs.live, pairs.live)] * np.outer(pairs.scale, pairs.scale)
        off_diagonal = ~np.eye(len(R), dtype=bool)
        statistic = np.empty(FOLDS)
        for f in range(FOLDS):
            fold, others = pairs.debiased(pairs.sums[f], pairs.counts[f]), pairs.debiased(*pairs.without(f))
            statistic[f] = ((fold - R) * (others - R))[off_diagonal].mean()
        return bool(statistic.mean() > _CONTRADICTION * statistic.std(ddof=1) / np.sqrt(FOLDS))


def solve(
    blocks: Sequence[Block],
    f: int,
    phases: Sequence[int],
    d: int,
    *,
    norm: str,
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
    norm : {'auto', 'l2', 'l1'}
        Candidates: ridge regressors ('l2'), lasso regressors ('l1'); 'auto' takes the lasso's if held-out folds clearly
        favour them.
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
        return Solution(w, label, np.tile(w, (count, 1)), False, None)
    target = Target(label.constants.factor * level, revealed.variance)
    pairs = Pairs(blocks, f, phases, predictive, revealed.mean)

    def scaled_columns(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        means = np.zeros(len(pairs.live)) if centred else label.constants.factor * a[pairs.live]
        return np.stack([means, b[pairs.live]], axis=1) * pairs.scale[:, None]

    everything = pairs.sums.sum(axis=0), pairs.counts.sum(axis=0)
    whole = pairs.shrunk(*everything), pairs.debiased(*everything)
    shrunk, debiased = (
        np.stack([mean(*pairs.without(fold)) for fold in range(FOLDS)]) for mean in (pairs.shrunk, pairs.debiased)
    )
    held = np.stack([pairs.debiased(pairs.sums[fold], pairs.counts[fold]) for fold in range(FOLDS)])
    noises = noise(whole[0], shrunk, held * shrunk_share(pairs.expected)), noise(whole[1], debiased, held)
    evidence, tails = [], excess * pairs.diagonal
    for fold in range(FOLDS):
        trained = revealed.label(revealed.fold != fold)
        cleaned = spectra(shrunk[fold], debiased[fold], [s2 * FOLDS / (FOLDS - 1) for s2 in noises])
        W = regressors(cleaned, scaled_columns(trained.a, trained.b), target, norm)
        P = scaled_columns(*revealed.held_out(fold, trained))
        guard = np.square(W @ cleaned[2].U) @ cleaned[2].values
        new = np.square(W) @ tails
        evidence.append(Evidence(W @ P[:, 0], W @ P[:, 1], ((W @ held[fold]) * W).sum(axis=1) + new, guard + new))
    scores = judge(evidence, target)
    W = regressors(spectra(*whole, noises), scaled_columns(label.a, label.b), target, norm)
    candidates = {"l2": slice(0, count), "l1": slice(count, len(W))}
    if norm == "auto":
        # By the cleaned moments of the other folds, as the products of one fold are too noisy for this comparison.
        smooth = judge([fold._replace(q=fold.guard) for fold in evidence], target)
        norm = "l1" if smooth.clearly_better(candidates["l1"], candidates["l2"]) else "l2"
    W = W * (scores.scale[:, None] * pairs.scale)
    full = np.zeros((len(W), d))
    full[:, pairs.live] = W
    if label.constants.c.any():
        full += label.constants.weights(level - full @ label.a)
    chosen = candidates[norm]
    return Solution(scores.among(chosen).weights() @ full[chosen], label, full[:count], norm == "l1", pairs)


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


def mixed(by_moments: WithIntercept, by_factors: Outputs, share: np.ndarray) -> WithIntercept:
    """Average two outputs, given the shares (F,) of the second."""
    zero = np.zeros(by_moments.intercept.shape)
    W, b, moments = by_factors if isinstance(by_factors, WithIntercept) else (by_factors, zero, None)
    by_stream = share[:, None, None]
    return WithIntercept(
        (1 - by_stream) * by_moments.regressors + by_stream * W,
        (1 - share[:, None]) * by_moments.intercept + share[:, None] * b,
        moments,
    )
