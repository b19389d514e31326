"""Updates as they are written down, one dense regressor at a time: forward along a gradient, and back to it.

Back means from two iterates to the gradient that led from the one to the other, where neither projection nor clip act;
and from averages of iterates to these.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

Settings = Mapping[str, float]


@dataclass(frozen=True)
class ReferenceUpdate:
    """How an update moves, forward and backwards.

    Attributes
    ----------
    follow : callable
        ``follow(before, gradient, t, settings)``: from ``w_t`` and gradients, (d,) and (N, d), to ``w_{t+1}``, (N, d);
        clipped and projected.
    gradient : callable
        ``gradient(before, after, t, settings)``: from ``w_t`` and ``w_{t+1}``, both (N, d), the gradients, (N, d).
    position : callable
        ``position(w, settings)``: where it stands before its link function, in units of the step size's multiples:
        regressors (N, d) to positions (N, d).
    """

    step: Callable[[np.ndarray, np.ndarray, int, Settings], np.ndarray]
    gradient: Callable[[np.ndarray, np.ndarray, int, Settings], np.ndarray]
    dual: Callable[[np.ndarray, Settings], np.ndarray]


def iterates(outputs: np.ndarray, average: str, first: int = 0) -> np.ndarray:
    """Return the iterates whose averages a learner has put out, see `budgetreg.updates.averaging`.

    Parameters
    ----------
    outputs : ndarray of float, shape (m, ...)
        After each of 1..m examples.
    average : {'all', 'suffix', 'last'}
        The averaging rule.
    first : int
        Examples before a phase, of which the iterates are averaged apart.

    Returns
    -------
    ndarray of float, shape (m, ...)
        ``w_1 .. w_m``.
    """
    w = np.array(outputs)
    for own in (w[:first], w[first:]):  # views: each iterate takes the place of its output
        for c in range(1, len(own) + 1):
            begin = {"all": 0, "suffix": c // 2, "last": c - 1}[average]
            own[c - 1] = (c - begin) * own[c - 1] - own[begin : c - 1].sum(axis=0)
    return w


def _ogd(before: np.ndarray, after: np.ndarray, t: int, settings: Settings) -> np.ndarray:
    return (before - after) / settings["eta"]


def _along_ogd(before: np.ndarray, gradient: np.ndarray, t: int, settings: Settings) -> np.ndarray:
    """Return the projection of ``w - eta g`` onto the 2-ball."""
    v, B = before - settings["eta"] * gradient, settings["B"]
    norm = np.linalg.norm(v, axis=1, keepdims=True)
    return np.where(norm > B, v * (B / norm), v)


def _eg(before: np.ndarray, after: np.ndarray, t: int, settings: Settings) -> np.ndarray:
    return (eg_exponents(before, settings) - eg_exponents(after, settings)) / settings["eta"]


def _along_eg(before: np.ndarray, gradient: np.ndarray, t: int, settings: Settings) -> np.ndarray:
    """Multiply 2d weights by ``exp(-+ eta clip(g, 1/eta))``, and scale their differences to a sum of weights B."""
    eta = settings["eta"]
    theta = eg_exponents(before[None], settings) - eta * np.clip(gradient, -1 / eta, 1 / eta)
    up, down = np.exp(theta), np.exp(-theta)
    return np.asarray(settings["B"] * (up - down) / (up + down).sum(axis=1, keepdims=True))


def _pegasos(before: np.ndarray, after: np.ndarray, t: int, settings: Settings) -> np.ndarray:
    return settings["lambda"] / 2 * ((t - 1) * before - t * after)


def _along_pegasos(before: np.ndarray, gradient: np.ndarray, t: int, settings: Settings) -> np.ndarray:
    """Return the projection of ``(1 - 1/t) w - 2 g / (lambda t)`` onto the 1-ball.

    By sorting: the largest of the thresholds that leave the j largest entries the 1-norm B (Duchi et al. 2008).
    """
    v, B = (1 - 1 / t) * before - 2 / (settings["lambda"] * t) * gradient, settings["B"]
    largest = np.sort(np.abs(v), axis=1)[:, ::-1]
    thresholds = (np.cumsum(largest, axis=1) - B) / np.arange(1, v.shape[1] + 1)
    T = np.maximum(thresholds.max(axis=1, keepdims=True), 0)
    return np.asarray(np.sign(v) * np.maximum(np.abs(v) - T, 0))


def eg_exponents(w: np.ndarray, settings: Settings) -> np.ndarray:
    """Return theta with ``w = B sinh(theta) / sum(cosh(theta))``, of regressors (N, d) inside the ball.

    ``theta = asinh(C w / B)``, C the fixed point of ``sum sqrt(1 + (C w / B)^2)``, which is a contraction.
    """
    share = w / settings["B"]
    C = np.full((len(w), 1), float(w.shape[1]))
    for _ in range(60):
        C = np.sqrt(1 + np.square(C * share)).sum(axis=1, keepdims=True)
    return np.arcsinh(C * share)


REFERENCE_UPDATES: Mapping[str, ReferenceUpdate] = {
    "ogd": ReferenceUpdate(_along_ogd, _ogd, lambda w, settings: w),
    "eg": ReferenceUpdate(_along_eg, _eg, eg_exponents),
    "pegasos": ReferenceUpdate(_along_pegasos, _pegasos, lambda w, settings: w),
}
"""By name of the update."""
