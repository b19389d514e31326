"""From two iterates back to the gradient that led from the one to the other, where neither projection nor clip act."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

Settings = Mapping[str, float]


@dataclass(frozen=True)
class Retraced:
    """How an update moves, told backwards.

    Attributes
    ----------
    gradient : callable
        ``gradient(before, after, t, settings)``: from ``w_t`` and ``w_{t+1}``, both (N, d), the gradients, (N, d).
    position : callable
        ``position(w, settings)``: where it stands before its link function, in units of the step size's multiples:
        regressors (N, d) to positions (N, d).
    """

    gradient: Callable[[np.ndarray, np.ndarray, int, Settings], np.ndarray]
    position: Callable[[np.ndarray, Settings], np.ndarray]


def _ogd(before: np.ndarray, after: np.ndarray, t: int, settings: Settings) -> np.ndarray:
    return (before - after) / settings["eta"]


def _eg(before: np.ndarray, after: np.ndarray, t: int, settings: Settings) -> np.ndarray:
    return (eg_exponents(before, settings) - eg_exponents(after, settings)) / settings["eta"]


def _pegasos(before: np.ndarray, after: np.ndarray, t: int, settings: Settings) -> np.ndarray:
    return settings["lambda"] / 2 * ((t - 1) * before - t * after)


def eg_exponents(w: np.ndarray, settings: Settings) -> np.ndarray:
    """Return theta with ``w = B sinh(theta) / sum(cosh(theta))``, of regressors (N, d) inside the ball.

    ``theta = asinh(C w / B)``, C the fixed point of ``sum sqrt(1 + (C w / B)^2)``, which is a contraction.
    """
    share = w / settings["B"]
    C = np.full((len(w), 1), float(w.shape[1]))
    for _ in range(60):
        C = np.sqrt(1 + np.square(C * share)).sum(axis=1, keepdims=True)
    return np.arcsinh(C * share)


RETRACED: Mapping[str, Retraced] = {
    "ogd": Retraced(_ogd, lambda w, settings: w),
    "eg": Retraced(_eg, eg_exponents),
    "pegasos": Retraced(_pegasos, lambda w, settings: w),
}
"""By name of the update."""
