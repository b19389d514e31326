"""The losses of a model on held-out examples with holes, and a correction of its covariances.

A model of other examples has ``r = y - b - <w, m>`` for a held-out example, m being the expectation of x given the
values A that are present. Its loss with all attributes is ``(r - <w, x - m>)^2``, of which the second part is not seen.
Under the model, with ``V`` the covariance of x given A and ``beta`` the regressor that attributes and target imply,

    cov(<w, x>, y | A) = w'V beta,    var(y | A) = s^2 + beta'V beta.

The model's covariances are too large in the direction of w where it took chance for a common factor, because w was
learned from the same values. Held-out products of two values show by how much.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from budgetreg.study.joint import JointModel

_CHUNK = 2**23
"""Numbers in the covariances that are held at a time."""

_SPREADS = (0.25, 0.5)
"""Prior standard deviations of the slopes of held-out products on the model's, about 1."""

_LARGEST, _SMALLEST_EIGENVALUE = 1.3, 1e-3
"""Largest slope; and the smallest eigenvalue of a corrected correlation."""

_NONE, _ROUNDING, _LARGEST_RIDGE = 1e-9, 1e-6, 1e6
"""Eigenvalues of a correlation that count as none, what rounding may change, and a ridge that leaves nothing."""


class Part(NamedTuple):
    """A model, and examples that it has not seen.

    Attributes
    ----------
    model : JointModel
        It has `shared`.
    X : ndarray of float, shape (n, d)
        NaN for missing values.
    y : ndarray of float, shape (n,)
        Targets.
    """

    model: JointModel
    X: np.ndarray
    y: np.ndarray

    @property
    def deviations(self) -> np.ndarray:
        """The attributes less the model's means, 0 where missing, shape (n, d)."""
        return np.where(self.known, self.X - self.model.mean, 0.0)

    @property
    def known(self) -> np.ndarray:
        """The present values, bool of shape (n, d)."""
        return ~np.isnan(self.X)

    @property
    def residuals(self) -> np.ndarray:
        """The targets less what is predicted at the attributes' means, shape (n,)."""
        return self.y - self.model.b - self.model.w @ self.model.mean


@dataclass(frozen=True)
class Losses:
    """Squared errors of held-out examples, each of shape (n,).

    Attributes
    ----------
    bought : ndarray of float
        ``r^2``, of predictions from the values that are present.
    unseen : ndarray of float
        ``w'V w``, the variance that the missing values leave.
    given : ndarray of float
        Expected loss with all attributes, given the values that are present and the target.
    """

    bought: np.ndarray
    unseen: np.ndarray
    given: np.ndarray


def losses(part: Part) -> Losses:
    """Return the losses of held-out examples under the model."""
    model, w = part.model, part.model.w
    shared = shared_with_target(model)
    beta = _regressor(model.covariance, shared, target_variance(model))
    center = model.b + w @ model.mean
    rest = max(target_variance(model) - shared @ beta, 0.0)
    pieces = []
    for X, y in _chunks(part):
        known = model.conditional(X)
        shift = known.means - model.mean
        unseen, crossed, hidden = (
            np.einsum("i,pij,j->p", left, known.covariances, right, optimize=True)[known.pattern]
            for left, right in ((w, w), (w, beta), (beta, beta))
        )
        r = y - center - shift @ w
        variance = rest + hidden
        slope = crossed / np.where(variance > 0, variance, 1.0)
        given = np.square(r - slope * (y - center - shift @ beta)) + unseen - slope * crossed
        pieces.append((np.square(r), unseen, given))
    return Losses(*(np.concatenate(arrays) for arrays in zip(*pieces, strict=True)))


def corrected(parts: Sequence[Part]) -> list[Part]:
    """Return the parts with covariances corrected by the products of all held-out values.

    A correlation of two attributes is ``a1 c_i c_j + a2 (S_ij - c_i c_j)``, c being the correlations with the target.
    The slopes are those of the held-out products on both terms, shrunk towards 1 by how uncertain they are.
    """
    gram, products, scores = np.zeros((2, 2)), np.zeros(2), []
    for part in parts:
        units, _, terms = _terms(part.model)
        x, known = part.deviations / units, part.known.astype(float)
        shown = np.stack([((x @ term) * x).sum(axis=1) for term in terms], axis=1) / 2
        squares = [((known @ (terms[a] * terms[b])) * known).sum(axis=1) / 2 for a, b in ((0, 0), (0, 1), (1, 1))]
        gram += np.array([[squares[0].sum(), squares[1].sum()], [squares[1].sum(), squares[2].sum()]])
        products += shown.sum(axis=0)
        scores.append(shown - np.stack([squares[0] + squares[1], squares[1] + squares[2]], axis=1))
    slopes = _shrunk(gram, products, np.concatenate(scores))
    return [part._replace(model=_with_slopes(part.model, slopes)) for part in parts]


def unbiased(parts: Sequence[Part]) -> np.ndarray:
    """Return the moment estimate of the loss with all attributes, by example in the order of the parts, shape (n,).

    Each product counts by the inverse of the share of the examples that show it. Pairs that no example shows are those
    of the model.
    """
    known = np.concatenate([part.known for part in parts]).astype(float)
    single, pairs = known.mean(axis=0), known.T @ known / len(known)
    inverse, inverse_pairs = (np.where(share > 0, 1 / np.where(share > 0, share, 1), 0) for share in (single, pairs))
    pieces = []
    for part in parts:
        w, t = part.model.w, part.residuals
        x = part.deviations * w
        never = np.where(pairs > 0, 0.0, part.model.covariance)
        square = ((x @ inverse_pairs) * x).sum(axis=1) + w @ never @ w
        crossed = (x @ inverse) * t + w @ np.where(single > 0, 0.0, shared_with_target(part.model))
        pieces.append(np.square(t) - 2 * crossed + square)
    return np.concatenate(pieces)


def shared_with_target(model: JointModel) -> np.ndarray:
    """Return the covariance of the attributes with the target, shape (d,)."""
    return model.covariance @ model.w if model.shared is None else model.shared


def target_variance(model: JointModel) -> float:
    """Return the variance of the target under the model."""
    w = model.w
    return float(model.noise + 2 * w @ shared_with_target(model) - w @ model.covariance @ w)


def _chunks(part: Part) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    step = max(1, _CHUNK // part.model.d**2)
    for start in range(0, len(part.y), step):
        yield part.X[start : start + step], part.y[start : start + step]


def _units(covariance: np.ndarray) -> np.ndarray:
    deviations = np.sqrt(np.diagonal(covariance))
    return np.where(deviations > 0, deviations, 1.0)


def _regressor(covariance: np.ndarray, shared: np.ndarray, variance: float) -> np.ndarray:
    """Return ``covariance^-1 shared``, also of attributes that determine each other.

    It explains at most the target's variance: a ridge grows until it does. Corrected covariances are no longer those of
    one distribution, and may be almost singular where attributes and target are shared.
    """
    units = _units(covariance)
    values, U = np.linalg.eigh(covariance / np.outer(units, units))
    along = (shared / units) @ U
    along[values <= _NONE * values.max()] = 0.0
    ridge, values = 0.0, np.maximum(values, _NONE)
    while (np.square(along) / (values + ridge)).sum() > variance * (1 + _ROUNDING) and ridge < _LARGEST_RIDGE:
        ridge = max(2 * ridge, _SMALLEST_EIGENVALUE)
    return np.asarray(U @ (along / (values + ridge)) / units)


def _terms(model: JointModel) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the attributes' deviations, the model's correlations, and the off-diagonal terms (2, d, d) of these."""
    units = _units(model.covariance)
    correlations = model.covariance / np.outer(units, units)
    target = np.sqrt(max(target_variance(model), np.finfo(float).tiny))
    c = np.clip(shared_with_target(model) / units / target, -1.0, 1.0)
    terms = np.stack([np.outer(c, c), correlations - np.outer(c, c)])
    np.einsum("tii->ti", terms)[:] = 0.0
    return units, correlations, terms


def _shrunk(gram: np.ndarray, products: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the posterior mean of the slopes, given sums over examples whose scores vary as they are seen to."""
    weights = gram @ np.linalg.pinv(scores.T @ scores, hermitian=True)
    prior = np.diag(1 / np.square(_SPREADS))
    slopes = np.linalg.solve(weights @ gram + prior, weights @ products + prior @ np.ones(2))
    return np.clip(slopes, 0.0, _LARGEST)


def _with_slopes(model: JointModel, slopes: np.ndarray) -> JointModel:
    """Return the model with other correlations, which keep positive eigenvalues."""
    units, _, terms = _terms(model)
    values, U = np.linalg.eigh(slopes[0] * terms[0] + slopes[1] * terms[1] + np.eye(model.d))
    correlations = (U * np.maximum(values, _SMALLEST_EIGENVALUE)) @ U.T
    covariance = correlations * np.outer(units, units)
    w, shared = model.w, shared_with_target(model)
    noise = target_variance(model) - 2 * w @ shared + w @ covariance @ w
    return replace(model, covariance=covariance, noise=float(noise), shared=shared)
