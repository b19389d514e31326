"""The law of what pairs of attributes estimate of ``x x'``, drawn at some weight matrix."""

import numpy as np

from budgetreg.enumeration.expectations import Subject, close
from budgetreg.enumeration.scripts import outcomes
from budgetreg.learners.mbeg import Options, core

_X = np.array([0.7, -1.1, 0.4, 0.2])
D = len(_X)
_ALPHA, _W = 0.3, np.array([0.4, 0.3, 0.2, 0.1])
"""Share of uniform pairs, and the other pairs' probabilities, where MBEG is at some weight matrix."""


def unbiased(subject: Subject) -> None:
    """Compare the mean of the estimate with ``x x'``."""
    for k in (2, D):
        _compare_mean(subject.options, k)


def second_moments(subject: Subject) -> None:
    """Compare ``E |C^|^2`` with its formula."""
    for k in (2, D):
        C, probability = _estimates(subject.options, k)
        square = float(probability @ np.square(C).sum(axis=(1, 2)))
        close(f"C's square at k={k}", square, _square(subject.options, k))


def full_information(subject: Subject) -> None:
    """Compare the mean at k = d with ``x x'``, as draws repeat attributes."""
    _compare_mean(subject.options, D)


def _compare_mean(options: Options, k: int) -> None:
    C, probability = _estimates(options, k)
    close("C", np.tensordot(probability, C, axes=1), np.outer(_X, _X))


def _estimates(options: Options, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what the pairs of one example give for all outcomes, at a weight matrix with the diagonal ``n _W``."""
    state = core.Weights(1, D, 1, np.array([_ALPHA]))
    state.move(np.array([0]), (np.diag(np.log(_W)) + np.log(D))[None] * np.eye(D), 1)
    pairs = k // 2

    def drawn(scripts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return state.draw(scripts[:, :pairs]), np.floor(D * scripts[:, pairs:]).astype(int)

    scripts, probability = outcomes([0] * pairs + [D] * pairs, lambda own: np.hstack(drawn(own)), {})
    s, q = drawn(scripts)
    N = len(scripts)
    w, alpha = np.tile(state.diagonal, (N, 1)), np.full(N, _ALPHA)
    return core.ESTIMATES[options.update](s, q, _X[s], _X[q], w, alpha), probability


def _square(options: Options, k: int) -> float:
    """Return ``E |C^|^2`` of the mean of ``k/2`` independent pairs' estimates.

    One pair's, with the probabilities p and their row sums a: ``sum_{s!=q} (x_s x_q)^2 / (2 p_sq)``, and on the
    diagonal ``sum_s x_s^4 / p_ss``; from single attributes, ``sum_s (a_s + p_ss) x_s^4 / (2 a_s^2)``.
    """
    p = (1 - _ALPHA) * (_W[:, None] + _W) / (2 * D) + _ALPHA / D**2
    own, a = np.diagonal(p), p.sum(axis=1)
    products = np.square(np.outer(_X, _X)) / (2 * p)
    diagonal = _X**4 / own if options.update == "pairs" else (a + own) * _X**4 / (2 * a**2)
    single = products.sum() - np.trace(products) + diagonal.sum()
    pairs, mean = k // 2, float(_X @ _X) ** 2
    return float(single / pairs + (1 - 1 / pairs) * mean)
