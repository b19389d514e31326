"""AEFA: the likeliest factor model of what was revealed, mixed with the means of products where these say more.

How much either says is judged as the subspace will be: by how much of held-out examples it keeps. Errors of entries,
which a reconstruction of the second moment would be judged by, are those of all its eigenvectors and not of a few.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from budgetreg.learners.factors.draws import AttributeDraws
from budgetreg.learners.factors.entries import Entries
from budgetreg.learners.factors.likelihood import FactorModel, Penalty, RevealedEntries, ascend
from budgetreg.metering.accessor import Accessor
from budgetreg.sampling.draws import BLOCK
from budgetreg.sampling.inclusion_probabilities import working_probabilities
from budgetreg.solvers.eigenspaces import leading
from budgetreg.theory import first_phase

_LEAST_STEPS, _MOST_STEPS, _WORK = 10, 40, 40_000_000
"""Least and most steps up the likelihood, and how many values these may look at in all: the more was seen, the fewer
are needed. Each checkpoint begins anew: from what few examples made likely the way is longer than from mean products.
"""

_PARTS, _FOLDS, _FOLDED_WORK = 20, 5, 10_000_000
"""How far the model is to be trusted is told by parts of the examples, a twentieth each, that it was not fitted to: by
so many of them at most, by fewer where the steps for all would look at more values than that, but by one at least.
Fewer examples than parts tell nothing of it, and products alone count.
"""

_TRUSTS = (1.0, 10.0, 100.0, 1000.0, np.inf)
"""By how many pairs seen the model counts."""

_EQUAL = 1e-9
"""What is kept by two trusts is the same if it differs by no more than rounding does: the larger of them is taken."""

_RIDGE, _PSEUDO, _NOISE, _LEAST = 10.0, 5.0, 0.5, 0.01
"""See `budgetreg.learners.factors.likelihood.Penalty`; noise in units of the attributes' mean square. As long as fewer
values of an attribute were seen than are supposed, the model tells what is supposed, and products alone count.
"""


def fit(
    accessor: Accessor,
    settings: Mapping[str, np.ndarray],
    checkpoints: Sequence[int],
    rngs: Sequence[np.random.Generator],
    *,
    k: int,
    n_components: int,
    n_factors: int | None,
    design: str,
    phase_one: float,
    mix: float,
    noise: str,
    kappa: float | str,
) -> Iterator[tuple[int, np.ndarray]]:
    """Draw k attributes of each example, and put out the leading subspace of what the model and the products say.

    Parameters
    ----------
    accessor, settings, checkpoints, rngs
        As for `budgetreg.learners.declaration.Fit`: there is one setting, and nothing to tune.
    k : int
        Attributes of an example that are seen, the papers' r, at least 2.
    n_components : int
        Dimension of the subspace, below d.
    n_factors : int or None
        Factors of the model; None: twice as many as dimensions.
    design : {'importance', 'uniform'}
        After a first phase in proportion to the roots of the mean squares that it reveals; all subsets alike.
    phase_one : float
        The first phase's share of the examples up to the last checkpoint; of no fewer than ``10 d / k`` is it made.
    mix : float
        Share of equal probabilities in the draws.
    noise : {'each', 'shared'}
        Whether each attribute has a noise of its own.
    kappa : 'auto', 'model' or float
        By how many pairs seen the model counts in each entry of the second moment; 'auto': by as many as have the
        subspace keep most of examples held out, by none while too little was seen; 'model': it alone counts.

    Yields
    ------
    checkpoint : int
    V : ndarray of float64, shape (F, 1, d, n_components)
        Orthonormal columns.
    """
    del settings
    d, last = accessor.d, checkpoints[-1]
    m_1 = min(last, max(first_phase(phase_one, last), -(-10 * d // k)))
    entries, draws = Entries(d), [AttributeDraws(rng, d, k) for rng in rngs]
    moment = partial(
        _moment,
        d=d,
        n_components=n_components,
        n_factors=min(n_factors or 2 * n_components, d),
        shared=noise == "shared",
        kappa=kappa,
    )
    marks = sorted({*range(0, last, BLOCK), *checkpoints, *([m_1] if design == "importance" else [])})
    for start, stop in pairwise(marks):
        accessor.open(start, stop)
        attributes = np.stack([own.take(stop - start) for own in draws])
        there = None if accessor.complete else accessor.available(attributes)
        entries.add(attributes, accessor.reveal_block(attributes), there=there)
        if stop in checkpoints:
            (block,) = entries.blocks()
            moments = map(moment, block.attributes, block.values)
            yield stop, np.stack([leading(C, n_components) for C in moments])[:, None]
        if stop == m_1 and design == "importance":
            (block,) = entries.blocks()
            for own, i, x in zip(draws, block.attributes, block.values, strict=True):
                own.plan(working_probabilities(np.sqrt(_mean_squares(RevealedEntries(i, x, d))), k, mix))


def _mean_squares(seen: RevealedEntries) -> np.ndarray:
    return np.asarray(seen.squares / np.maximum(seen.counts, 1))


def _moment(
    attributes: np.ndarray,
    values: np.ndarray,
    d: int,
    *,
    n_components: int,
    n_factors: int,
    shared: bool,
    kappa: float | str,
) -> np.ndarray:
    """Return what is known of the second moment (d, d) from values (T, n) of these attributes."""
    seen = RevealedEntries(attributes, values, d)
    if not seen.squares.any():
        return np.zeros((d, d))
    square = float(_mean_squares(seen)[seen.counts > 0].mean())
    penalty = Penalty(_RIDGE, _PSEUDO, _NOISE * square, _LEAST * square, shared)
    steps = min(max(_LEAST_STEPS, _WORK // values.size), _MOST_STEPS)

    def likeliest(seen: RevealedEntries, C: np.ndarray, N: np.ndarray) -> np.ndarray:
        model = _start(C, N, n_factors, _LEAST * square)
        for _ in range(steps):
            model, _ = ascend(model, seen, penalty)
        return model.second_moment

    C, N = products(seen)
    if kappa == "auto" and (len(values) < _PARTS or seen.counts.mean() < _PSEUDO):
        return C / np.maximum(N, 1)
    if kappa != "auto":
        return mixed(likeliest(seen, C, N), C, N, np.inf if kappa == "model" else float(kappa))
    folds = min(max(1, _FOLDED_WORK // (steps * values.size)), _FOLDS)
    F, keeps = np.zeros((d, d)), np.zeros(len(_TRUSTS))
    for fold in range(folds):
        held = np.arange(len(values)) % _PARTS == _PARTS - 1 - fold
        C_held, N_held = products(RevealedEntries(attributes[held], values[held], d))
        C_rest, N_rest = C - C_held, N - N_held
        own = likeliest(RevealedEntries(attributes[~held], values[~held], d), C_rest, N_rest)
        moments = (mixed(own, C_rest, N_rest, trust) for trust in _TRUSTS)
        keeps += [kept(leading(M, n_components), own, C_held, N_held, N) for M in moments]
        F += own / folds
    as_good = keeps >= keeps.max() - _EQUAL * np.abs(keeps).max()
    return mixed(F, C, N, max(np.array(_TRUSTS)[as_good]))


def products(seen: RevealedEntries) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of products of values seen together, and their numbers, (d, d) both."""
    C, N = np.zeros((seen.d, seen.d)), np.zeros((seen.d, seen.d))
    for _, _, where, known in seen.parts():
        C += (known @ known.T).toarray()
        N += (where @ where.T).toarray()
    return C, N


def mixed(F: np.ndarray, C: np.ndarray, N: np.ndarray, kappa: float) -> np.ndarray:
    """Return ``(C + kappa F) / (N + kappa)`` entrywise: the model where a pair was hardly seen, else its mean."""
    return F if np.isinf(kappa) else (C + kappa * F) / (N + kappa)


def kept(V: np.ndarray, F: np.ndarray, C_held: np.ndarray, N_held: np.ndarray, N: np.ndarray) -> float:
    """Estimate how much of the second moment a subspace keeps, ``tr V' E[x x'] V``, from a part held out.

    What the model says that it keeps is put right by products of the part, each over how often its pair was to be
    expected there. This has no bias for pairs seen at all, whatever the model, and less variance than without it.

    Parameters
    ----------
    V : ndarray of float, shape (d, n)
        Orthonormal columns; neither they nor F may depend on the part.
    F : ndarray of float, shape (d, d)
        What the model says of the second moment.
    C_held, N_held : ndarray of float, shape (d, d)
        Sums of products in the part, and their numbers.
    N : ndarray of float, shape (d, d)
        Their numbers in all, of which the part is to be a twentieth.
    """
    surprise = _PARTS * (C_held - N_held * F) / np.maximum(N, 1)
    return float(np.vdot(V, (F + surprise) @ V))


def _start(C: np.ndarray, N: np.ndarray, q: int, least: float) -> FactorModel:
    """Return what the leading eigenvectors of the mean products say, and as much noise as they leave."""
    means = C / np.maximum(N, 1)
    V = leading(means, q)
    values = np.maximum((V * (means @ V)).sum(axis=0), 0)
    W = V * np.sqrt(values)
    left = (np.trace(means) - np.square(W).sum()) / len(C)
    return FactorModel(W, np.full(len(C), max(left, least)))
