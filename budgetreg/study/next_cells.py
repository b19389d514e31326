"""Choose the measurements of a new example that lower the variance of its prediction most per price.

Of an example the attributes A are known; V is the covariance of the others given them. Under the factor model the
variance of the prediction is ``w'V w + s2``, and a group G of attributes that is measured too lowers it by

    (V w)_G' V_GG^-1 (V w)_G,        for a single attribute j    (V w)_j^2 / V_jj,

whatever the values turn out to be. V is then replaced by the covariance given A and G. As nothing depends on values,
examples with the same holes get the same order.
"""

from dataclasses import dataclass

import numpy as np

from budgetreg.data.groups import Groups
from budgetreg.errors import DataError
from budgetreg.study.joint import JointModel

_NOTHING = 1e-9
"""Share of the variance of ``<w, x>`` up to which a reduction is rounding, and of an attribute's variance up to which
the known attributes determine it."""

_CHUNK = 2**22
"""Numbers in the covariances that are held at a time."""


@dataclass(frozen=True)
class Measurement:
    """A measurement, and what it brings.

    Attributes
    ----------
    attributes : tuple of int
        What is measured: one attribute, or those of a group that are missing.
    price : float
        What it costs; a group has one price.
    before, after : float
        Standard deviation of the prediction without it and with it.
    """

    attributes: tuple[int, ...]
    price: float
    before: float
    after: float


def next_cells(
    model: JointModel, X: np.ndarray, prices: np.ndarray, groups: Groups | None = None, spend: float = np.inf
) -> list[list[Measurement]]:
    """Return what to measure next of each example, in order.

    The order is greedy: next comes what lowers the variance most per price, of all that is still affordable. What costs
    nothing comes first. The list of an example ends when nothing affordable lowers the variance.

    Parameters
    ----------
    model : JointModel
    X : ndarray of float, shape (n, d)
        The examples; NaN for values that are missing.
    prices : ndarray of float, shape (d,)
        What attributes cost, at least 0. Of a group, the price of its first attribute counts, once.
    groups : Groups, optional
        Attributes that are measured together; by default each is alone.
    spend : float
        What may be spent on each example.

    Raises
    ------
    DataError
        If the examples do not have the model's number of attributes, or these do not have a price of at least 0 each.
    """
    d = len(model.w)
    if X.ndim != 2 or X.shape[1] != d:
        raise DataError(f"the examples must have the {d} attributes of the model, not shape {X.shape}")
    if prices.shape != (d,) or not (prices >= 0).all():
        raise DataError(f"give each of the {d} attributes a price of at least 0")
    patterns, pattern_of = np.unique(np.isnan(X), axis=0, return_inverse=True)
    step = max(1, _CHUNK // d**2)
    orders: list[list[Measurement]] = []
    for start in range(0, len(patterns), step):
        orders += _Order(model, patterns[start : start + step], groups).greedy(prices, spend)
    return [list(orders[pattern]) for pattern in pattern_of.reshape(-1)]


class _Order:
    """The covariances of P patterns of holes, which shrink while measurements are chosen.

    Attributes are in units of their standard deviations, so that thresholds do not depend on the user's units.
    """

    def __init__(self, model: JointModel, missing: np.ndarray, groups: Groups | None) -> None:
        d = len(model.w)
        heads = np.arange(d) if groups is None else groups.head_of
        self._units = np.unique(heads)
        self._unit_of = np.searchsorted(self._units, heads)
        self._several = [] if groups is None else groups.together()
        deviations = np.sqrt(np.diagonal(model.covariance))
        scale = np.where(deviations > 0, deviations, 1.0)
        self._w, self._noise = model.w * scale, model.noise
        self._missing = missing.copy()
        given = model.conditional(np.where(missing, np.nan, 0.0))
        self._V = given.covariances[given.pattern] / np.outer(scale, scale)
        self._nothing = _NOTHING * float(model.w @ model.covariance @ model.w)

    def greedy(self, prices: np.ndarray, spend: float) -> list[list[Measurement]]:
        """Choose measurements for all patterns side by side, one of each pattern in a round."""
        chosen: list[list[Measurement]] = [[] for _ in self._missing]
        price, left, row = prices[self._units], np.full(len(chosen), float(spend)), np.arange(len(chosen))
        rounding = 0.0 if np.isinf(spend) else _NOTHING * spend  # ten times 0.1 are affordable with 1
        deviation = self._deviations()
        while True:
            gain = self._reductions()
            useful = (gain > self._nothing) & (price <= left[:, None] + rounding)
            if (free := useful & (price == 0)).any():
                useful &= free | ~free.any(axis=1, keepdims=True)
            score = gain / np.where(price > 0, price, 1.0)  # what is free competes with nothing else
            best = np.where(useful, score, -1.0).argmax(axis=1)
            going = useful[row, best]
            if not going.any():
                return chosen
            bought = going[:, None] & (self._unit_of == best[:, None]) & self._missing
            for j in np.flatnonzero(bought.any(axis=0)):
                self._condition(int(j), bought[:, j])
            self._missing &= ~bought
            after = self._deviations()
            for p in np.flatnonzero(going):
                attributes = tuple(np.flatnonzero(bought[p]).tolist())
                cost = float(price[best[p]])
                chosen[p].append(Measurement(attributes, cost, float(deviation[p]), float(after[p])))
            left -= np.where(going, price[best], 0.0)
            deviation = after

    def _condition(self, j: int, given: np.ndarray) -> None:
        """Replace the covariances of some patterns by those given attribute j too."""
        column = self._V[given, :, j]
        variance = column[:, j]
        determined = variance <= _NOTHING
        root = np.where(determined, 0.0, 1 / np.sqrt(np.where(determined, 1.0, variance)))
        column *= root[:, None]
        self._V[given] -= column[:, :, None] * column[:, None, :]
        self._V[given, j] = self._V[given, :, j] = 0.0

    def _deviations(self) -> np.ndarray:
        """Return the standard deviations of the predictions, shape (P,)."""
        explained = np.einsum("pi,i->p", self._V @ self._w, self._w)
        return np.sqrt(np.maximum(explained, 0.0) + self._noise)

    def _reductions(self) -> np.ndarray:
        """Return by how much each measurement lowers the variance, shape (P, units); 0 for what is known."""
        shared = self._V @ self._w
        variance = np.einsum("pjj->pj", self._V)
        undetermined = variance > _NOTHING
        single = np.where(undetermined, np.square(shared) / np.where(undetermined, variance, 1.0), 0.0)
        gain = single[:, self._units]
        for members in self._several:
            among = np.linalg.pinv(self._V[:, members[:, None], members], rcond=_NOTHING, hermitian=True)
            part = shared[:, members]
            gain[:, self._unit_of[members[0]]] = np.einsum("pi,pij,pj->p", part, among, part)
        return np.asarray(gain)
