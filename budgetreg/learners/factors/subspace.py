"""AEFA: the likeliest factor model of what was revealed, mixed with the means of products where these say more."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from budgetreg.learners.factors.draws import Draws
from budgetreg.learners.factors.entries import Entries
from budgetreg.learners.factors.likelihood import FactorModel, Penalty, Seen, ascend
from budgetreg.metering.accessor import Accessor
from budgetreg.sampling.draws import BLOCK
from budgetreg.sampling.shares import working_probabilities
from budgetreg.solvers.eigenspaces import leading
from budgetreg.theory import first_phase

_LEAST_STEPS, _MOST_STEPS, _WORK = 10, 40, 40_000_000
"""Least and most steps up the likelihood, and how many values these may look at in all: the more was seen, the fewer
are needed. Each checkpoint begins anew: from what few examples made likely the way is longer than from mean products.
"""

_HELD_OUT = 20
"""Every so manieth example tells only how far the model is to be trusted."""

_TRUSTS = (10.0, 100.0, 1000.0, np.inf)
"""By how many pairs seen the model counts."""

_RIDGE, _PSEUDO, _NOISE, _LEAST = 10.0, 5.0, 0.5, 0.01
"""See `budgetreg.learners.factors.likelihood.Penalty`; noise in units of the attributes' mean square."""


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
        By how many pairs seen the model counts in each entry of the second moment; 'auto': as products held out say;
        'model': it alone counts.

    Yields
    ------
    checkpoint : int
    V : ndarray of float64, shape (F, 1, d, n_components)
        Orthonormal columns.
    """
    del settings
    d, last = accessor.d, checkpoints[-1]
    m_1 = min(last, max(first_phase(phase_one, last), -(-10 * d // k)))
    entries, draws = Entries(d), [Draws(rng, d, k) for rng in rngs]
    moment = partial(
        _moment, d=d, n_factors=min(n_factors or 2 * n_components, d), shared=noise == "shared", kappa=kappa
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
                own.plan(working_probabilities(np.sqrt(_mean_squares(Seen(i, x, d))), k, mix))


def _mean_squares(seen: Seen) -> np.ndarray:
    return np.asarray(seen.squares / np.maximum(seen.counts, 1))


def _moment(
    attributes: np.ndarray, values: np.ndarray, d: int, *, n_factors: int, shared: bool, kappa: float | str
) -> np.ndarray:
    """Return what is known of the second moment (d, d) from values (T, n) of these attributes."""
    held = np.arange(len(values)) % _HELD_OUT == _HELD_OUT - 1
    seen, rest = (Seen(attributes[part], values[part], d) for part in (~held, held))
    square = float(_mean_squares(seen)[seen.counts > 0].mean())
    if square == 0:
        return np.zeros((d, d))
    C, N = products(seen)
    penalty = Penalty(_RIDGE, _PSEUDO, _NOISE * square, _LEAST * square, shared)
    model = _start(C, N, n_factors, _LEAST * square)
    for _ in range(min(max(_LEAST_STEPS, _WORK // values.size), _MOST_STEPS)):
        model, _ = ascend(model, seen, penalty)
    F = model.second_moment
    C_held, N_held = products(rest)
    if kappa == "auto":
        kappa = _trust(F, C, N, C_held, N_held)
    return mixed(F, C + C_held, N + N_held, np.inf if kappa == "model" else float(kappa))


def products(seen: Seen) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of products of values seen together, and their numbers, (d, d) both."""
    C, N = np.zeros((seen.d, seen.d)), np.zeros((seen.d, seen.d))
    for _, _, where, known in seen.parts():
        C += (known @ known.T).toarray()
        N += (where @ where.T).toarray()
    return C, N


def mixed(F: np.ndarray, C: np.ndarray, N: np.ndarray, kappa: float) -> np.ndarray:
    """Return ``(C + kappa F) / (N + kappa)`` entrywise: the model where a pair was hardly seen, else its mean."""
    return F if np.isinf(kappa) else (C + kappa * F) / (N + kappa)


def _trust(F: np.ndarray, C: np.ndarray, N: np.ndarray, C_held: np.ndarray, N_held: np.ndarray) -> float:
    """Return the kappa for which products held out have the least squared error; the larger of equal ones.

    Each pair counts alike, however often it is seen: a subspace depends on all of them.
    """
    weights = 1 / np.maximum(N + N_held, 1)

    def error(kappa: float) -> float:
        M = mixed(F, C, N, kappa)
        return float((weights * (N_held * M**2 - 2 * C_held * M)).sum())

    return min(reversed(_TRUSTS), key=error)


def _start(C: np.ndarray, N: np.ndarray, q: int, least: float) -> FactorModel:
    """Return what the leading eigenvectors of the mean products say, and as much noise as they leave."""
    means = C / np.maximum(N, 1)
    V = leading(means, q)
    values = np.maximum((V * (means @ V)).sum(axis=0), 0)
    W = V * np.sqrt(values)
    left = (np.trace(means) - np.square(W).sum()) / len(C)
    return FactorModel(W, np.full(len(C), max(left, least)))
