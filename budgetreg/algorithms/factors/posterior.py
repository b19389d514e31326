"""The posterior of a factor model given what was revealed, by Gibbs sampling.

The columns of an example are ``x = mu + W z + e``, with q factors ``z ~ N(0, I)`` and noise ``e_i ~ N(0, psi_i)``, all
independent. Which columns are seen may depend on values seen before, but not on unseen ones. Then the likelihood of
the seen values contains all the information in the data (Rubin 1976), and the draw probabilities drop out.

The result is the posterior mean of the second moments. The risk of a regressor is linear in the second moments, so the
regressor that solves for their posterior mean has the least posterior risk. With few values the prior dominates, and
under the prior attributes carry no information about the target.

The prior is weak, for columns of variance about 1: ``psi_i ~ InvGamma(1, 0.3)``, ``mu_i ~ N(0, 10 psi_i)``, and
``W_ij ~ N(0, psi_i / alpha_j)``. Each factor has its ``alpha_j ~ Gamma(1, 1/q)``, so that factors without support fade.
The loadings of the target have ``N(0, 2/q)`` as one more factor of their density, because factors explain no more than
the target's variance, about 1; without it, few examples with many attributes would fit the target perfectly.

References
----------
D. B. Rubin. Inference and missing data. Biometrika 63, 1976.
D. J. C. MacKay, C. M. Bishop: automatic relevance determination. C. M. Bishop, Bayesian PCA, NIPS 1998.
J. S. Liu, Y. N. Wu. Parameter expansion for data augmentation. JASA 94, 1999: why the factors are whitened.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from budgetreg.algorithms.factors.arranged import (
    ArrangedValues,
    combined,
    inverse_of_lower,
    lower_triangle,
    packed,
    solve,
)
from budgetreg.revealed.collection import Block, Collected
from budgetreg.revealed.standardised import Moments, StandardisedEntries

_SHAPE_ALPHA, _SHAPE_PSI, _RATE_PSI, _PRECISION_MU = 1.0, 1.0, 0.3, 0.1
_MIN_ALPHA = 0.1
"""Lower bound of alpha. Only alpha bounds the loadings of rarely seen columns, and without a bound both would drift."""

_START = 0.1
"""Standard deviation of the initial loadings: small, random values that make the factors differ."""

_BURN_IN, _MIN_KEPT, MOST_KEPT, _WORK = 60, 20, 400, 4_500_000
"""Sweeps before those averaged when a chain starts; least and most sweeps averaged; and the work these may do in all.
More data leave a narrower posterior, which fewer sweeps average well enough."""

_DRAWS_WORK = _WORK // 3
"""The work if only draw probabilities are wanted: they need no accurate moments."""

_COLUMN_WORK = 20
"""Work of a sweep for each column, whose system it solves; for each value, which it reads, it is 1."""

_LARGEST = 1e6
"""Largest trace of a system that is solved in float32; its rounding is then far below 1, the least eigenvalue."""


class Posterior:
    """Gibbs chains of F streams, which continue as more is revealed.

    Parameters
    ----------
    columns : int
        Columns c, the last of which is the target.
    n_factors : int
        Factors q.
    rngs : sequence of numpy.random.Generator
        One per stream; a stream's results depend on no other stream.

    Attributes
    ----------
    columns : int
        Columns c.
    sweeps : int
        Sweeps done so far.
    """

    def __init__(self, columns: int, n_factors: int, rngs: Sequence[np.random.Generator]) -> None:
        F, c, q = len(rngs), columns, n_factors
        self.columns, self.sweeps = columns, 0
        self._rngs = rngs
        self._W = np.stack([rng.standard_normal((c, q)) for rng in rngs]) * _START
        self._mu, self._psi, self._alpha = np.zeros((F, c)), np.full((F, c), 0.5), np.full((F, q), float(q))

    def moments(self, blocks: Sequence[Block], live: np.ndarray, sweeps: int, kept: int) -> Moments:
        """Continue the chains, and return the mean of the moments over the last sweeps.

        Parameters
        ----------
        blocks : sequence of Block
            Everything revealed, in columns of variance about 1 that are centred on about their means.
        live : ndarray of bool, shape (F, c)
            Columns to model; the moments of all others are 0.
        sweeps, kept : int
            Number of sweeps, and how many of the last are averaged.
        """
        F, c, q = self._W.shape
        self.sweeps += sweeps
        data = ArrangedValues(blocks, live, q)
        first, second, columns = np.zeros((F, c)), np.zeros((F, c, c)), [np.flatnonzero(of) for of in live]
        products = [np.zeros((of.size, of.size)) for of in columns]
        for sweep in range(sweeps):
            z = whitened(draw_factors(data, self._W, self._mu, self._psi, self._normal))
            means, traces = self._draw_loadings(data, z, live)
            if sweep < sweeps - kept:
                continue
            # Given the factors, loadings of different columns are independent, so their products have known means.
            for f, i in enumerate(columns):
                loadings = means[f, i]
                products[f] += loadings @ loadings.T
                products[f][np.diag_indices(i.size)] += traces[f, i] + self._psi[f, i]
            first += means[:, :, -1]
        for f, i in enumerate(columns):
            second[f][np.ix_(i, i)] = products[f]
        return Moments(first / kept, second / kept)

    def _normal(self, T: int, n: int) -> np.ndarray:
        """Return standard normal numbers (F T, n), those of each stream from its generator."""
        return np.concatenate([rng.standard_normal((T, n), np.float32) for rng in self._rngs])

    def _draw_loadings(self, data: ArrangedValues, z: np.ndarray, live: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Draw loadings and means, then psi, then alpha, given the factors.

        Returns
        -------
        means : ndarray of float, shape (F, c, q + 1)
            Posterior means of the loadings and, last, of mu.
        traces : ndarray of float, shape (F, c)
            Traces of their covariances.
        """
        F, c, q = self._W.shape
        columns = np.flatnonzero(live)
        A, b = (of.reshape(F * c, -1)[columns] for of in data.sums(np.append(z, np.ones_like(z[:, :, :1]), axis=2)))
        prior = np.repeat(np.append(self._alpha, np.full((F, 1), _PRECISION_MU), axis=1)[:, None], c, axis=1)
        prior[:, -1, :q] += q / 2 * self._psi[:, -1:]
        row, column = lower_triangle(q + 1)
        precision = np.empty((columns.size, q + 1, q + 1))
        precision[:, row, column] = A
        np.einsum("njj->nj", precision)[:] += prior.reshape(F * c, -1)[columns]
        # LAPACK's Cholesky factors of small matrices are fast, and its inverses slow; it reads the lower triangles only
        L = np.linalg.cholesky(precision)
        inverse = inverse_of_lower(np.ascontiguousarray(L.transpose(1, 2, 0)))
        normal = np.concatenate([rng.standard_normal((c, q + 1)) for rng in self._rngs])[columns]
        psi = self._psi.reshape(-1)[columns]
        noise = normal.T * np.sqrt(psi)
        projected = np.einsum("ijn,nj->in", inverse, b)

        def of_all(x: np.ndarray) -> np.ndarray:
            """Return what columns have, given that of the live ones (..., n); the others have 0."""
            everything = np.zeros((F * c, *x.shape[:-1]))
            everything[columns] = x.T
            return everything.reshape(F, c, *x.shape[:-1])

        means, drawn = (of_all(np.einsum("ijn,in->jn", inverse, x)) for x in (projected, projected + noise))
        traces = of_all(psi * np.square(inverse).sum(axis=(0, 1)))
        self._W, self._mu = drawn[:, :, :q], drawn[:, :, q]
        # the squares of the residuals, and what the prior adds, by completing the square
        residual = data.squares + of_all((np.square(noise) - np.square(projected)).sum(axis=0))
        residual[:, -1] -= q / 2 * self._psi[:, -1] * np.square(self._W[:, -1]).sum(axis=1)
        residual = np.where(live, residual, 0.0)
        shapes = _SHAPE_PSI + (data.counts + q + 1) / 2
        gamma = [rng.standard_gamma(shape) for rng, shape in zip(self._rngs, shapes, strict=True)]
        self._psi = (_RATE_PSI + np.maximum(residual, 0) / 2) / np.stack(gamma)
        size = (np.square(self._W) / self._psi[:, :, None]).sum(axis=1)
        for f, rng in enumerate(self._rngs):
            gamma = rng.standard_gamma(_SHAPE_ALPHA + live[f].sum() / 2, size=q)
            self._alpha[f] = np.maximum(gamma / (_SHAPE_ALPHA / q + size[f] / 2), _MIN_ALPHA)
        return means, traces


def posterior_moments(
    posterior: Posterior, standardised: StandardisedEntries, size: int, *, for_draws: bool = False
) -> Moments:
    """Continue the chains by as many sweeps as the amount of data asks for, and return the moments.

    Parameters
    ----------
    posterior : Posterior
    standardised : StandardisedEntries
        Everything revealed.
    size : int
        Number of values of each stream.
    for_draws : bool
        Whether the moments are for draw probabilities alone, for which fewer sweeps are enough.
    """
    sweeps = (_DRAWS_WORK if for_draws else _WORK) // (size + _COLUMN_WORK * posterior.columns)
    kept = min(max(_MIN_KEPT, sweeps), MOST_KEPT)
    before = min(kept // 3, _BURN_IN) if posterior.sweeps else _BURN_IN
    return posterior.moments(standardised.blocks, standardised.live, before + kept, kept)


def plan_by_posterior(
    collected: Collected, standardised: StandardisedEntries, moments: Moments, *, centred: bool
) -> None:
    """Draw, from now on, by the posterior's residual deviations and regressors.

    Parameters
    ----------
    collected : Collected
    standardised : StandardisedEntries
        Everything revealed.
    moments : Moments
    centred : bool
        See `budgetreg.revealed.equal_values.EqualValues.known`.
    """
    W = standardised.regressors(moments, centred=True, intercept=True)[0]
    known = standardised.known(collected.phases[-1], centred=centred)
    collected.plan(standardised.spread(moments), W[:, :, 0], known, partial(standardised.joint, moments))


def draw_factors(
    data: ArrangedValues, W: np.ndarray, mu: np.ndarray, psi: np.ndarray, normal: Callable[[int, int], np.ndarray]
) -> np.ndarray:
    """Draw the factors (F, T, q) given loadings and noise.

    The system of an example is over columns or over factors, whichever are fewer. Columns are divided by the deviation
    of their noise, so that no eigenvalue is below 1. Systems are solved in float32, and those of streams with nearly no
    noise in float64.

    Parameters
    ----------
    data : ArrangedValues
    W : ndarray of float, shape (F, c, q)
    mu, psi : ndarray of float, shape (F, c)
    normal : callable
        Returns standard normal float32 (F T, n), for T examples of each stream and n.
    """
    F, _, q = W.shape
    deviations = np.sqrt(psi)
    W, mu, scale = (_table(of) for of in (W / deviations[:, :, None], mu / deviations, 1 / deviations))
    mu, scale = mu.astype(np.float32), scale.astype(np.float32)
    squares = np.sort(np.square(W).sum(axis=1).reshape(F, -1), axis=1)
    z = normal(data.examples, q)
    for cells in data.cells:
        T, n = cells.rows.shape
        x = cells.values * scale[cells.rows] - mu[cells.rows]
        if n <= q:
            x -= normal(T // F, n)
        single = squares[:, -n:].sum(axis=1) <= _LARGEST
        for dtype, streams in ((np.float32, single), (np.float64, ~single)):
            if streams.any():
                table = W.astype(dtype)
                draw = _corrected if n <= q else partial(_from_precision, products=packed(table))
                for examples, rows, values in cells._replace(values=x).of(streams).parts(q):
                    z[examples] = draw(table, rows, values, z[examples])
    return z.reshape(F, -1, q)


def whitened(z: np.ndarray) -> np.ndarray:
    """Return factors (F, T, q) with second moments of about I in each stream, the nearer the more examples."""
    T, q = z.shape[1:]
    covariance = ((z.swapaxes(1, 2) @ z).astype(float) + q * np.eye(q)) / (T + q)
    inverse = np.linalg.inv(np.linalg.cholesky(covariance))
    return np.asarray(z @ inverse.swapaxes(1, 2).astype(z.dtype))


def _table(x: np.ndarray) -> np.ndarray:
    """Return numbers (F, c, ...) of the columns in the rows of a `ArrangedValues`; those without a column are 0."""
    table = np.zeros((len(x), x.shape[1] + 1, *x.shape[2:]))
    table[:, :-1] = x
    return table.reshape(-1, *x.shape[2:])


def _corrected(W: np.ndarray, rows: np.ndarray, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return ``z + V' (V V' + I)^-1 (x - V z)``, (T, q), where V are the rows (n, q) of W that each example shows.

    If z and the noise subtracted from x are drawn from the prior, then this is a draw from the posterior. The systems
    are over columns.
    """
    T, n = rows.shape
    V = np.empty((T, n + 1, W.shape[1]), W.dtype)  # and z in the last row, for one product
    V[:, :n], V[:, n] = W[rows], z
    A = np.ascontiguousarray((V[:, :n] @ V.swapaxes(1, 2)).transpose(2, 1, 0))
    A[n] = x.T - A[n]
    return z + combined(rows, np.ascontiguousarray(solve(A, 0.0).T), W)


def _from_precision(
    W: np.ndarray, rows: np.ndarray, x: np.ndarray, noise: np.ndarray, products: np.ndarray
) -> np.ndarray:
    """Return ``P^-1 V' x + L'^-1 noise``, (T, q), where ``P = V' V + I = L L'`` and V are the rows of W shown.

    If the noise is standard normal, then this is a draw from the posterior. The systems are over factors. The products
    are those of the columns of W, see `packed`.
    """
    T, q = noise.shape
    A = np.empty((q + 1, q, T), W.dtype)
    A[lower_triangle(q)] = combined(rows, np.ones(rows.shape, W.dtype), products).T
    A[q] = combined(rows, x, W).T
    return solve(A, noise.T).T
