"""The steps of the papers' listings, and their inverses.

The inverse of a step returns the gradient between two iterates, where neither projection nor clipping acts. The inverse
of averaging returns the iterates.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from budgetreg.algorithms.cesa_bianchi_2010 import aer_update
from budgetreg.algorithms.hazan_koren_2012.gradients import aelr_regressor, aelr_update, aerr_update

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
    """Return the iterates whose averages are a learner's outputs, see `budgetreg.algorithms.vectors`.

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


def _eg_gradient(before: np.ndarray, after: np.ndarray, t: int, settings: Settings) -> np.ndarray:
    return (eg_exponents(before, settings) - eg_exponents(after, settings)) / settings["eta"]


def _pegasos_gradient(before: np.ndarray, after: np.ndarray, t: int, settings: Settings) -> np.ndarray:
    return settings["lambda"] / 2 * ((t - 1) * before - t * after)


def _pegasos_step(before: np.ndarray, gradient: np.ndarray, t: int, settings: Settings) -> np.ndarray:
    return aer_update(before, 1.0, gradient, t, settings["B"], settings["lambda"])


def _ogd_step(before: np.ndarray, gradient: np.ndarray, t: int, settings: Settings) -> np.ndarray:
    return aerr_update(before, 1.0, gradient, settings["B"], settings["eta"])


def _eg_step(before: np.ndarray, gradient: np.ndarray, t: int, settings: Settings) -> np.ndarray:
    theta = eg_exponents(before[None], settings)
    return aelr_regressor(aelr_update(theta, 1.0, gradient, settings["eta"]), settings["B"])


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
