"""Checks of what learners of subspaces estimate, ``x x'``, over all that they may draw for an example."""

from collections.abc import Callable
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from budgetreg.checks.learner import Learner, close, expect
from budgetreg.checks.scripts import Scripted, in_turn, outcomes
from budgetreg.metering.accessor import Accessor, Table
from budgetreg.protocol.configuration import AlgoConfig
from budgetreg.sampling.designs import Draw, conditional_poisson
from budgetreg.streams import generator

_X = np.array([0.7, -1.1, 0.4, 0.2])
D = len(_X)
_P = np.array([0.9, 0.3, 0.6, 0.2])
"""With which probabilities attributes are drawn by a design that is guided."""

_ALPHA, _W = 0.3, np.array([0.4, 0.3, 0.2, 0.1])
"""Share of uniform pairs, and the other pairs' probabilities, where MBEG is at some weight matrix."""

_ERRORS = 5
"""Standard errors that a mean may be off.  Seeds are fixed: what passes once passes always."""


def unbiased(learner: Learner) -> None:
    """Compare the mean of the estimate with ``x x'``.

    Importance sampling is compared phase by phase, and its phases pooled by the mean over some streams.
    """
    algo = learner.config.algo
    for k in (2, D):
        C, probability = _estimates(algo, k)
        close("C", np.tensordot(probability, C, axes=1), np.outer(_X, _X))
    if algo.update == "importance":
        for r in (2, 3):
            _compare_guided(r)
        _compare_pooled(algo)


def second_moments(learner: Learner) -> None:
    """Compare ``E |C^|^2`` with its formula: ``sum_ij (x_i x_j)^2 / pi_ij``, pi_ii being pi_i; MBEG's see below."""
    algo = learner.config.algo
    for k in (2, D):
        C, probability = _estimates(algo, k)
        square = float(probability @ np.square(C).sum(axis=(1, 2)))
        expected = _square_of_pairs(algo, k) if algo.core == "mbeg" else _square(_inclusion(algo, k))
        close(f"C's square at k={k}", square, expected)
    if algo.update == "importance":
        law = _law(2)
        found = _means_over(law, conditional_poisson(_P, 2).probability, power=2)
        close("C's square", found.sum(), _square(np.sum([p * np.outer(seen, seen) for seen, p in law], axis=0)))


def full_information(learner: Learner) -> None:
    """Compare, at k = d, the estimate with the mean of ``x x'``; where draws repeat attributes, its mean."""
    algo = learner.config.algo
    if algo.core == "mbeg" or algo.replacement:
        C, probability = _estimates(algo, D)
        close("C", np.tensordot(probability, C, axes=1), np.outer(_X, _X))
    else:
        X = generator("check examples", D).standard_normal((12, D))
        C = _run(algo, Table(X, np.zeros(12)), [generator("check draws")], D)[0]
        close("C", C, X.T @ X / 12)


def _estimates(algo: AlgoConfig, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the estimates of one example, shape (N, d, d), for all outcomes, and these outcomes' probabilities."""
    if algo.core == "mbeg":
        return _estimates_of_pairs(algo, k)
    one = Table(_X[None], np.zeros(1))
    probe = Scripted([0] * k)
    _run(algo, one, [probe], k)

    def act(scripts: np.ndarray) -> np.ndarray:
        return _run(algo, one, [Scripted([0] * k, own) for own in scripts], k)

    if not probe.values:  # all attributes are seen
        return _run(algo, one, [probe], k), np.ones(1)
    scripts, probability = outcomes(probe.values, act, {})
    return act(scripts), probability


def _run(algo: AlgoConfig, table: Table, rngs: list[Any], k: int) -> np.ndarray:
    """Return the estimate (F, d, d) of each stream from all examples of a table."""
    from budgetreg.learners import second_moment  # here, as it needs scipy, which is slow to load

    m = len(table.y)
    accessor = Accessor(table, np.tile(np.arange(m), (len(rngs), 1)), 1, None, [m])
    options: dict[str, Any] = {"replacement": bool(algo.replacement), "phase_one": algo.phase_one, "mix": algo.mix}
    ((_, C),) = second_moment.estimates(accessor, [m], rngs, k=k, update=algo.update, **options)
    return C


def _inclusion(algo: AlgoConfig, r: int) -> np.ndarray:
    """Return ``pi_ij``, and ``pi_i`` on the diagonal, by counting."""
    if algo.update == "passive":
        single, pair = r / D, (r / D) ** 2
    elif algo.replacement:
        single, pair = 1 - (1 - 1 / D) ** r, 1 - 2 * (1 - 1 / D) ** r + (1 - 2 / D) ** r
    else:
        single, pair = comb(D - 1, r - 1) / comb(D, r), comb(D - 2, r - 2) / comb(D, r)
    return np.where(np.eye(D, dtype=bool), single, pair)


def _square(inclusion: np.ndarray) -> float:
    return float((np.square(np.outer(_X, _X)) / inclusion).sum())


# Importance sampling


def _law(r: int) -> list[tuple[np.ndarray, float]]:
    """Return all subsets of r attributes, as 0 and 1, with their probabilities."""
    subsets = [np.isin(np.arange(D), own) for own in combinations(range(D), r)]
    weights = [float(np.where(seen, _P, 1 - _P).prod()) for seen in subsets]
    return [(seen.astype(float), weight / sum(weights)) for seen, weight in zip(subsets, weights, strict=True)]


def _means_over(law: list[tuple[np.ndarray, float]], inclusion: np.ndarray, power: int) -> np.ndarray:
    """Return the mean, over subsets, of the estimates' entries to some power."""
    C = [np.outer(seen, seen) * np.outer(_X, _X) / inclusion for seen, _ in law]
    return np.tensordot([p for _, p in law], np.power(C, power), axes=1)


def _compare_guided(r: int) -> None:
    """Compare the draws with the law of conditional Poisson sampling, then the mean of the estimate with ``x x'``."""
    design = conditional_poisson(_P, r)
    draw: Callable[[Any], Draw] = design.draw

    def act(scripts: np.ndarray) -> np.ndarray:
        return np.stack([draw(Scripted([0], own)).attributes[0] for own in scripts])

    scripts, probability = in_turn(r, act)
    drawn = np.array([np.isin(np.arange(D), own) for own in act(scripts)], dtype=float)
    law = _law(r)
    found = [probability[(drawn == seen).all(axis=1)].sum() for seen, _ in law]
    close("a subset", np.array(found), np.array([p for _, p in law]))
    close("C", _means_over(law, design.probability, power=1), np.outer(_X, _X))


def _compare_pooled(algo: AlgoConfig) -> None:
    F, m, k = 300, 8, 2
    C = _run(algo, Table(np.tile(_X, (m, 1)), np.zeros(m)), [generator("check", "pooled", f) for f in range(F)], k)
    off = np.abs(C.mean(axis=0) - np.outer(_X, _X))
    error = C.std(axis=0) / np.sqrt(F)
    expect((off <= _ERRORS * error).all(), f"the mean of C is off by {off.max():.2g}, more than its standard errors")


# MBEG


def _estimates_of_pairs(algo: AlgoConfig, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what the pairs of one example give for all outcomes, at a weight matrix with the diagonal ``n _W``."""
    from budgetreg.learners import mbeg  # here, as it needs scipy, which is slow to load

    state = mbeg.Weights(1, D, 1, np.array([_ALPHA]))
    state.move(np.array([0]), (np.diag(np.log(_W)) + np.log(D))[None] * np.eye(D), 1)
    pairs = k // 2

    def drawn(scripts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return state.draw(scripts[:, :pairs]), np.floor(D * scripts[:, pairs:]).astype(int)

    scripts, probability = outcomes([0] * pairs + [D] * pairs, lambda own: np.hstack(drawn(own)), {})
    s, q = drawn(scripts)
    N = len(scripts)
    w, alpha = np.tile(state.diagonal, (N, 1)), np.full(N, _ALPHA)
    return mbeg.ESTIMATES[algo.update](s, q, _X[s], _X[q], w, alpha), probability


def _square_of_pairs(algo: AlgoConfig, k: int) -> float:
    """Return ``E |C^|^2`` of the mean of ``k/2`` independent pairs' estimates.

    One pair's, with the probabilities p and their row sums a: ``sum_{s!=q} (x_s x_q)^2 / (2 p_sq)``, and on the
    diagonal ``sum_s x_s^4 / p_ss``; from single attributes, ``sum_s (a_s + p_ss) x_s^4 / (2 a_s^2)``.
    """
    p = (1 - _ALPHA) * (_W[:, None] + _W) / (2 * D) + _ALPHA / D**2
    own, a = np.diagonal(p), p.sum(axis=1)
    products = np.square(np.outer(_X, _X)) / (2 * p)
    diagonal = _X**4 / own if algo.update == "pairs" else (a + own) * _X**4 / (2 * a**2)
    single = products.sum() - np.trace(products) + diagonal.sum()
    pairs, mean = k // 2, float(_X @ _X) ** 2
    return float(single / pairs + (1 - 1 / pairs) * mean)
