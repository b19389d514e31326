"""The updates as the papers print them, for one dense regressor, and their inverses.

The inverse of a step returns the gradient between two iterates, where neither projection nor clipping acts. The inverse
of averaging returns the iterates.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

Settings = Mapping[str, float]


@dataclass(frozen=True)
class ReferenceUpdate:
    """An update and its inverse.

    Attributes
    ----------
    step : callable
        ``step(before, gradient, t, settings)``: ``w_{t+1}``, (N, d), from ``w_t`` and gradients, (d,) and (N, d), with
        clipping and projection.
    gradient : callable
        ``gradient(before, after, t, settings)``: the gradients, (N, d), from ``w_t`` and ``w_{t+1}``, both (N, d).
    dual : callable
        ``dual(w, settings)``: the points (N, d) in the dual space of mirror descent, before the link function, of
        regressors (N, d).
    """

    step: Callable[[np.ndarray, np.ndarray, int, Settings], np.ndarray]
    gradient: Callable[[np.ndarray, np.ndarray, int, Settings], np.ndarray]
    dual: Callable[[np.ndarray, Settings], np.ndarray]


def iterates(outputs: np.ndarray, average: str, first: int = 0) -> np.ndarray:
    """Return the iterates whose averages are a learner's outputs, see `budgetreg.algorithms.averages`.

    Parameters
    ----------
    outputs : ndarray of float, shape (m, ...)
        Outputs after each of 1..m examples.
    average : {'all', 'suffix', 'last'}
        The averaging rule.
    first : int
        Examples of a first phase, whose iterates are averaged separately.

    Returns
    -------
    ndarray of float, shape (m, ...)
        ``w_1 .. w_m``.
    """
    w = np.array(outputs)
    for phase in (w[:first], w[first:]):  # views: each iterate replaces its output
        for c in range(1, len(phase) + 1):
            begin = {"all": 0, "suffix": c // 2, "last": c - 1}[average]
            phase[c - 1] = (c - begin) * phase[c - 1] - phase[begin : c - 1].sum(axis=0)
    return w


def _ogd_gradient(before: np.ndarray, after: np.ndarray, t: int, settings: Settings) -> np.ndarray:
    return (before - after) / settings["eta"]


def _ogd_step(before: np.ndarray, gradient: np.ndarray, t: int, settings: Settings) -> np.ndarray:
    """Return the projection of ``w - eta g`` onto the 2-ball."""
    v, B = before - settings["eta"] * gradient, settings["B"]
    norm = np.linalg.norm(v, axis=1, keepdims=True)
    return np.where(norm > B, v * (B / norm), v)


def _eg_gradient(before: np.ndarray, after: np.ndarray, t: int, settings: Settings) -> np.ndarray:
    return (eg_exponents(before, settings) - eg_exponents(after, settings)) / settings["eta"]


def _eg_step(before: np.ndarray, gradient: np.ndarray, t: int, settings: Settings) -> np.ndarray:
    """Multiply 2d weights by ``exp(-+ eta clip(g, 1/eta))``, and scale their differences to a sum of weights B."""
    eta = settings["eta"]
    theta = eg_exponents(before[None], settings) - eta * np.clip(gradient, -1 / eta, 1 / eta)
    up, down = np.exp(theta), np.exp(-theta)
    return np.asarray(settings["B"] * (up - down) / (up + down).sum(axis=1, keepdims=True))


def _pegasos_gradient(before: np.ndarray, after: np.ndarray, t: int, settings: Settings) -> np.ndarray:
    return settings["lambda"] / 2 * ((t - 1) * before - t * after)


def _pegasos_step(before: np.ndarray, gradient: np.ndarray, t: int, settings: Settings) -> np.ndarray:
    """Return the projection of ``(1 - 1/t) w - 2 g / (lambda t)`` onto the 1-ball.

    The threshold is the largest of those that leave the j largest entries the 1-norm B (Duchi et al. 2008).
    """
    v, B = (1 - 1 / t) * before - 2 / (settings["lambda"] * t) * gradient, settings["B"]
    largest = np.sort(np.abs(v), axis=1)[:, ::-1]
    thresholds = (np.cumsum(largest, axis=1) - B) / np.arange(1, v.shape[1] + 1)
    T = np.maximum(thresholds.max(axis=1, keepdims=True), 0)
    return np.asarray(np.sign(v) * np.maximum(np.abs(v) - T, 0))


def eg_exponents(w: np.ndarray, settings: Settings) -> np.ndarray:
    """Return theta with ``w = B sinh(theta) / sum(cosh(theta))`` for regressors (N, d) inside the ball.

    ``theta = asinh(C w / B)``, C the fixed point of ``sum sqrt(1 + (C w / B)^2)``, which is a contraction.
    """
    share = w / settings["B"]
    C = np.full((len(w), 1), float(w.shape[1]))
    for _ in range(60):
        C = np.sqrt(1 + np.square(C * share)).sum(axis=1, keepdims=True)
    return np.arcsinh(C * share)


REFERENCE_UPDATES: Mapping[str, ReferenceUpdate] = {
    "ogd": ReferenceUpdate(_ogd_step, _ogd_gradient, lambda w, settings: w),
    "eg": ReferenceUpdate(_eg_step, _eg_gradient, eg_exponents),
    "pegasos": ReferenceUpdate(_pegasos_step, _pegasos_gradient, lambda w, settings: w),
}
"""By name of the update."""
