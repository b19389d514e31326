"""What the moments of one stream say: regressors of all candidates, judged by folds, and their mean."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from budgetreg.learners.factors.entries import Block
from budgetreg.learners.moments.candidates import RIDGES, Target, lasso_regressors, ridge_regressors
from budgetreg.learners.moments.evidence import Evidence, judge
from budgetreg.learners.moments.label import LabelRegression, label_regression
from budgetreg.learners.moments.pairs import FOLDS, Pairs, collected_pairs, debiased, shrunk, shrunk_share
from budgetreg.learners.moments.spectrum import Spectrum, clean, noise

SPECTRA = 4
"""None; halfway to that of the shrunk mean products; that; and that of the debiased ones."""

_Sums = tuple[np.ndarray, np.ndarray]
"""Sums of products, and how many there are, each of shape (p, p)."""

_CLEARLY = 4
"""Standard errors, of five folds, beyond which a model is contradicted."""


@dataclass(frozen=True)
class Revealed:
    """Values of one stream, one after the other, each with what is known of its example.

    Attributes
    ----------
    attributes : ndarray of int, shape (N,)
        d for a value that is missing.
    x, u : ndarray of float, shape (N,)
        Value; and target less its mean.
    fold : ndarray of int, shape (N,)
    mean, variance : float
        Of the target.
    """

    attributes: np.ndarray
    x: np.ndarray
    u: np.ndarray
    fold: np.ndarray
    mean: float
    variance: float

    @classmethod
    def of(cls, blocks: Sequence[Block], f: int, d: int) -> "Revealed":
        """Lay out what was revealed to stream f; the last value of each example is its target."""
        y = np.concatenate([block.values[f, :, -1] for block in blocks])
        often = np.concatenate([np.full(block.values.shape[1], block.values.shape[2] - 1) for block in blocks])
        attributes = np.concatenate([block.attributes[f, :, :-1].reshape(-1) for block in blocks])
        x = np.concatenate([block.values[f, :, :-1].reshape(-1) for block in blocks])
        mean = float(y.mean())
        u, fold = np.repeat(y - mean, often), np.repeat(np.arange(len(y)) % FOLDS, often)
        return cls(np.minimum(attributes, d), x, u, fold, mean, float(np.square(y - mean).mean()))

    def label(self, among: np.ndarray | slice, d: int) -> LabelRegression:
        """Regress attributes on the target, by some of the values."""
        return label_regression(self.attributes[among], self.x[among], self.u[among], d)

    def held_out(self, fold: int, label: LabelRegression) -> tuple[np.ndarray, np.ndarray]:
        """Return a and b (d,) as the values of a fold say; what is predicted without it is left out of the chance."""
        d, part = len(label.a), self.fold == fold
        i, u = self.attributes[part], self.u[part]
        left = self.x[part] - np.append(label.a, 0.0)[i] - np.append(label.b, 0.0)[i] * u
        n = np.maximum(np.bincount(i, minlength=d + 1)[:d], 1)
        level, slope = (np.bincount(i, own, d + 1)[:d] / n for own in (left, left * u))
        return label.a + level, label.b + slope / self.variance


@dataclass(frozen=True)
class Solution:
    """What comes of the moments.

    Attributes
    ----------
    w : ndarray of float, shape (d,)
    label : LabelRegression
    candidates : ndarray of float, shape (SPECTRA * len(RIDGES), d)
        Regressors of all spectra and ridges, each at its best scale.
    sparse : bool
        Whether held-out folds clearly favour regressors of small L1 norm, whose mean `w` then is.
    pairs : Pairs or None
        None if nothing tells of the target.
    """

    w: np.ndarray
    label: LabelRegression
    candidates: np.ndarray
    sparse: bool
    pairs: Pairs | None

    def contradict(self, residual: np.ndarray, n_factors: int) -> bool:
        """Return whether the pairs are clearly not those of a model.

        The mean over pairs of ``(mean product of some folds - model) (that of the others - model)`` is 0 for a model
        that is right, but for what it owes to the same products, which makes it less; and above for one that is not.

        Parameters
        ----------
        residual : ndarray of float, shape (d, d)
            Covariance of the attributes given the target, as the model says.
        n_factors : int
            Its factors. With as many as attributes it has any covariance, and only chance contradicts it.
        """
        if self.pairs is None or len(self.pairs.live) <= n_factors:
            return False
        own = self.pairs
        R = residual[np.ix_(own.live, own.live)] * np.outer(own.scale, own.scale)
        off = ~np.eye(len(R), dtype=bool)
        apart = np.empty(FOLDS)
        for f in range(FOLDS):
            some, others = debiased(own, own.sums[f], own.counts[f]), debiased(own, *own.without(f))
            apart[f] = ((some - R) * (others - R))[off].mean()
        return bool(apart.mean() > _CLEARLY * apart.std(ddof=1) / np.sqrt(FOLDS))


def solve(
    blocks: Sequence[Block],
    f: int,
    phases: Sequence[int],
    d: int,
    *,
    norm: str,
    centred: bool,
    intercept: bool,
) -> Solution:
    """Solve for a stream.

    Parameters
    ----------
    blocks : sequence of Block
        All that was revealed; the last value of each example is its target.
    f : int
        The stream.
    phases : sequence of int
        See `budgetreg.learners.factors.collection.Collected`.
    d : int
        Attributes.
    norm : {'auto', 'l2', 'l1'}
        Which regressors are candidates; 'auto': those of small L1 norm where held-out folds clearly favour them.
    centred, intercept : bool
        Whether attributes count from their means, and whether the target does.
    """
    revealed = Revealed.of(blocks, f, d)
    label = revealed.label(slice(None), d)
    count = SPECTRA * len(RIDGES)
    if not label.live.any() or revealed.variance == 0:
        return Solution(np.zeros(d), label, np.zeros((count, d)), False, None)
    target = Target(0.0 if intercept else revealed.mean, revealed.variance)
    own = collected_pairs(blocks, f, phases, label, revealed.mean)

    def of_label(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        level = np.zeros(len(own.live)) if centred else a[own.live]
        return np.stack([level, b[own.live]], axis=1) * own.scale[:, None]

    def regressors(spectra: Sequence[Spectrum], P: np.ndarray) -> np.ndarray:
        found = ridge_regressors(spectra, P, target)
        return found if norm == "l2" else np.append(found, lasso_regressors(spectra[2:], P, target), axis=0)

    everything = own.sums.sum(axis=0), own.counts.sum(axis=0)
    others = [own.without(fold) for fold in range(FOLDS)]
    held = np.stack([debiased(own, own.sums[fold], own.counts[fold]) for fold in range(FOLDS)])
    noises = _noises(own, everything, others, held)
    evidence = []
    for fold in range(FOLDS):
        without = revealed.label(revealed.fold != fold, d)
        fewer = tuple(s2 * FOLDS / (FOLDS - 1) for s2 in noises)
        spectra = _spectra(own, *others[fold], *fewer)
        W = regressors(spectra, of_label(without.a, without.b))
        P = of_label(*revealed.held_out(fold, without))
        guard = np.square(W @ spectra[2].U) @ spectra[2].values
        evidence.append(Evidence(W @ P[:, 0], W @ P[:, 1], ((W @ held[fold]) * W).sum(axis=1), guard))
    judgement = judge(evidence, target)
    W = regressors(_spectra(own, *everything, *noises), of_label(label.a, label.b))
    all_of = {"l2": slice(0, count), "l1": slice(count, len(W))}
    if norm == "auto":
        # By the cleaned moments of the other folds: the products of one are too few to part candidates.
        smooth = judge([replace(one, q=one.guard) for one in evidence], target)
        norm = "l1" if smooth.clearly_better(all_of["l1"], all_of["l2"]) else "l2"
    W = W * (judgement.scale[:, None] * own.scale)
    chosen = all_of[norm]
    full = np.zeros((len(W), d))
    full[:, own.live] = W
    return Solution(judgement.among(chosen).shares() @ full[chosen], label, full[:count], norm == "l1", own)


def _noises(own: Pairs, everything: _Sums, others: Sequence[_Sums], held: np.ndarray) -> tuple[float, float]:
    """Return the noise of shrunk and of debiased mean products, given their sums and the debiased ones of each fold."""
    found = []
    for mean, share in ((shrunk, shrunk_share(own.expected)), (debiased, np.ones(1))):
        without = np.stack([mean(own, *one) for one in others])
        found.append(noise(mean(own, *everything), without, held * share))
    return found[0], found[1]


def _spectra(
    own: Pairs, sums: np.ndarray, counts: np.ndarray, noise_shrunk: float, noise_debiased: float
) -> list[Spectrum]:
    small = clean(shrunk(own, sums, counts), noise_shrunk)
    return [
        Spectrum(small.U, np.ones(len(small.values))),
        Spectrum(small.U, (1 + small.values) / 2),
        small,
        clean(debiased(own, sums, counts), noise_debiased),
    ]
