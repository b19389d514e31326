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

from collections.abc import Sequence
from functools import partial

import numpy as np
from scipy.sparse import csr_array

from budgetreg.revealed.collection import Block, Collected
from budgetreg.revealed.standardised import Moments, StandardisedEntries

_SHAPE_ALPHA, _SHAPE_PSI, _RATE_PSI, _PRECISION_MU = 1.0, 1.0, 0.3, 0.1
_MIN_ALPHA = 0.1
"""Lower bound of alpha. Only alpha bounds the loadings of rarely seen columns, and without a bound both would drift."""

_START = 0.1
"""Standard deviation of the initial loadings: small, random values that make the factors differ."""

_CHUNK = 2**20
"""Loadings gathered at a time, which limits the memory that a block of examples needs."""

_BURN_IN, _MIN_KEPT, _MAX_KEPT, _MAX_VALUES = 60, 20, 120, 10_000_000
"""Sweeps before those averaged when a chain starts; least and most sweeps averaged; and the values that these may read
in all. More data leave a narrower posterior, which fewer sweeps average well enough."""


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
    sweeps : int
        Sweeps done so far.
    """

    def __init__(self, columns: int, n_factors: int, rngs: Sequence[np.random.Generator]) -> None:
        F, c, q = len(rngs), columns, n_factors
        self.sweeps = 0
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
        F, c, _ = self._W.shape
        self.sweeps += sweeps
        data = _Layout(blocks, live)
        first, second = np.zeros((F, c)), np.zeros((F, c, c))
        for sweep in range(sweeps):
            z = self._draw_factors(data)
            means, traces = self._draw_loadings(data, z, live)
            if sweep < sweeps - kept:
                continue
            # Given the factors, loadings of different columns are independent, so their products have known means.
            for f in range(F):
                first[f] += means[f, :, -1]
                second[f] += means[f] @ means[f].T
            diagonal = np.einsum("fii->fi", second)
            diagonal += np.where(live, traces + self._psi, 0.0)
        return Moments(first / kept, second / kept)

    def _draw_factors(self, data: "_Layout") -> np.ndarray:
        """Draw the factors (F, T, q) given loadings and noise, and whiten them within each stream.

        A draw from the prior becomes one from the posterior when it is corrected by the error of its predictions. That
        solves a system over columns or over factors, whichever are fewer.
        """
        F, c, q = self._W.shape
        W = np.append(self._W.reshape(F * c, q), np.zeros((1, q)), axis=0)
        mu, psi = np.append(self._mu, 0.0), np.append(self._psi, 1.0)
        z = np.stack([rng.standard_normal((data.examples, q)) for rng in self._rngs])
        for start, stop, rows, values in data.blocks:
            n = values.shape[1]
            e = np.concatenate([rng.standard_normal((stop - start, n)) for rng in self._rngs])
            factors = z[:, start:stop].reshape(-1, q)
            step = max(1, _CHUNK // (n * q))
            for begin in range(0, len(factors), step):
                part = slice(begin, begin + step)
                seen = rows[part]
                noise = psi[seen]
                residual = values[part] - mu[seen] - e[part] * np.sqrt(noise)
                factors[part] += _correction(W[seen], noise, residual, factors[part])
            z[:, start:stop] = factors.reshape(F, -1, q)
        covariance = (z.swapaxes(1, 2) @ z + q * np.eye(q)) / (data.examples + q)
        return np.asarray(z @ np.linalg.inv(np.linalg.cholesky(covariance)).swapaxes(1, 2))

    def _draw_loadings(self, data: "_Layout", z: np.ndarray, live: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Draw loadings and means, then psi, then alpha, given the factors.

        Returns
        -------
        means : ndarray of float, shape (F, c, q + 1)
            Posterior means of the loadings and, last, of mu.
        traces : ndarray of float, shape (F, c)
            Traces of their covariances.
        """
        F, c, q = self._W.shape
        A, b = data.sums(np.append(z, np.ones((*z.shape[:2], 1)), axis=2))
        np.einsum("fcjj->fcj", A)[:] += np.append(self._alpha, np.full((F, 1), _PRECISION_MU), axis=1)[:, None]
        precision = A.copy()
        np.einsum("fjj->fj", precision[:, -1, :q, :q])[:] += q / 2 * self._psi[:, -1:]
        inverse = np.linalg.inv(precision)
        inverse = (inverse + inverse.swapaxes(2, 3)) / 2
        means = np.where(live[:, :, None], (inverse @ b[..., None])[..., 0], 0.0)
        traces = self._psi * np.einsum("fcjj->fc", inverse)
        normal = np.stack([rng.standard_normal((c, q + 1)) for rng in self._rngs])
        drawn = (np.linalg.cholesky(inverse) @ normal[..., None])[..., 0] * np.sqrt(self._psi)[:, :, None]
        drawn = np.where(live[:, :, None], means + drawn, 0.0)
        self._W, self._mu = drawn[:, :, :q], drawn[:, :, q]
        residual = data.squares - 2 * (drawn * b).sum(axis=2) + ((A @ drawn[..., None])[..., 0] * drawn).sum(axis=2)
        shapes = _SHAPE_PSI + (data.counts + q + 1) / 2
        gamma = [rng.standard_gamma(shape) for rng, shape in zip(self._rngs, shapes, strict=True)]
        self._psi = (_RATE_PSI + np.maximum(residual, 0) / 2) / np.stack(gamma)
        size = (np.square(self._W) / self._psi[:, :, None]).sum(axis=1)
        for f, rng in enumerate(self._rngs):
            gamma = rng.standard_gamma(_SHAPE_ALPHA + live[f].sum() / 2, size=q)
            self._alpha[f] = np.maximum(gamma / (_SHAPE_ALPHA / q + size[f] / 2), _MIN_ALPHA)
        return means, traces


def posterior_moments(posterior: Posterior, standardised: StandardisedEntries, size: int) -> Moments:
    """Continue the chains by as many sweeps as the number of values asks for, and return the moments.

    Parameters
    ----------
    posterior : Posterior
    standardised : StandardisedEntries
        Everything revealed.
    size : int
        Number of values of each stream.
    """
    kept = min(max(_MIN_KEPT, _MAX_VALUES // size), _MAX_KEPT)
    before = kept // 3 if posterior.sweeps else _BURN_IN
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


def _correction(W: np.ndarray, psi: np.ndarray, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return ``W' (W W' + Psi)^-1 (x - W z)``, (T, q), for T examples with the loadings W (T, n, q)."""
    n, q = W.shape[1:]
    error = x - (W @ z[:, :, None])[..., 0]
    transposed = W.swapaxes(1, 2)
    if n <= q:
        inner = W @ transposed + psi[:, :, None] * np.eye(n)
        return np.asarray((transposed @ np.linalg.solve(inner, error[:, :, None]))[..., 0])
    scaled = transposed / psi[:, None, :]
    return np.asarray(np.linalg.solve(scaled @ W + np.eye(q), scaled @ error[:, :, None])[..., 0])


class _Layout:
    """Revealed values by example and by column; columns that are not live share one extra row, the last."""

    def __init__(self, blocks: Sequence[Block], live: np.ndarray) -> None:
        F, c = live.shape
        self.examples = sum(block.values.shape[1] for block in blocks)
        self.blocks: list[tuple[int, int, np.ndarray, np.ndarray]] = []
        shape, stream = (F * c + 1, F * self.examples), np.arange(F)[:, None, None]
        self._seen, self._known = csr_array(shape), csr_array(shape)
        start = 0
        live = np.append(live, np.zeros((F, 1), dtype=bool), axis=1)  # missing values are not live either
        for block in blocks:
            T, n = block.values.shape[1:]
            is_live = live[stream, block.attributes]
            rows = np.where(is_live, stream * c + block.attributes, F * c).reshape(-1, n)
            values = np.where(is_live, block.values, 0.0).reshape(-1, n)
            self.blocks.append((start, start + T, rows, values))
            examples = (np.arange(F)[:, None] * self.examples + np.arange(start, start + T)).reshape(-1)
            cells = rows.reshape(-1), np.repeat(examples, n)
            self._seen += csr_array((np.ones(rows.size), cells), shape)
            self._known += csr_array((values.reshape(-1), cells), shape)
            start += T
        self.counts = self._seen.sum(axis=1)[:-1].reshape(F, c)
        self.squares = self._known.power(2).sum(axis=1)[:-1].reshape(F, c)

    def sums(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums of ``z z'`` and ``x z`` over the examples that show a column; z is (F, T, q)."""
        F, c = self.counts.shape
        flat, q = z.reshape(-1, z.shape[2]), z.shape[2]
        A, b = np.empty((F * c, q, q)), (self._known @ flat)[:-1].reshape(F, c, q)
        for j in range(q):  # one row of the products at a time, to save memory
            A[:, j, j:] = A[:, j:, j] = (self._seen @ (flat[:, j:] * flat[:, j, None]))[:-1]
        return A.reshape(F, c, q, q), b
