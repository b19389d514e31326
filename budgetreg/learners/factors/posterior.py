"""The posterior of a factor model, given what was revealed, by Gibbs sampling.

Of an example the columns are ``x = mu + W z + e``, with q factors ``z ~ N(0, I)`` and noise ``e_i ~ N(0, psi_i)``, all
independent. Which columns are seen may depend on what was seen before, not on what is not seen; then the likelihood of
those seen is all that the data say (Rubin 1976), and no probability of being seen enters.

What the posterior is asked for is the mean of the second moments. No regressor has a smaller expected error under
the posterior than that which solves for the mean moments, as the error of a regressor is linear in the moments. Where
little was revealed the prior speaks, under which attributes tell nothing of the target.

The prior is weak, for columns of variance about 1: ``psi_i ~ InvGamma(1, 0.3)``, ``mu_i ~ N(0, 10 psi_i)``, and
``W_ij ~ N(0, psi_i / alpha_j)`` with ``alpha_j ~ Gamma(1, 1/q)`` of each factor its own, so that factors for which
nothing speaks fade. Of the target it is known besides that factors explain no more than its variance, about 1, which
few examples with many attributes would forget: the density of its loadings has ``N(0, 2/q)`` for one more factor.

References
----------
D. B. Rubin. Inference and missing data. Biometrika 63, 1976.
D. J. C. MacKay, C. M. Bishop: automatic relevance determination. C. M. Bishop, Bayesian PCA, NIPS 1998.
J. S. Liu, Y. N. Wu. Parameter expansion for data augmentation. JASA 94, 1999: why the factors are made white.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from budgetreg.learners.factors.entries import Block

_SHAPE_ALPHA, _SHAPE_PSI, _RATE_PSI, _PRECISION_MU = 1.0, 1.0, 0.3, 0.1
_LEAST_ALPHA = 0.1
"""Loadings of columns hardly seen are held by nothing but alpha, and what moves them on drags it along."""
_START = 0.1
"""Standard deviation of the loadings that a chain begins with: factors that hardly matter, told apart by chance."""

_TOGETHER = 2**20
"""Loadings that are gathered at once: for more the memory of a block of examples would be felt."""


@dataclass(frozen=True)
class Moments:
    """Posterior means of the moments of columns, about the points from which these count.

    Attributes
    ----------
    first : ndarray of float, shape (F, c)
    second : ndarray of float, shape (F, c, c)
        Positive definite, and so is what is left of it without the outer product of `first`.
    """

    first: np.ndarray
    second: np.ndarray


class Posterior:
    """A chain for each of F streams, that goes on as more is revealed.

    Parameters
    ----------
    columns : int
        Columns c, the last of which is the target.
    n_factors : int
        Factors q.
    rngs : sequence of numpy.random.Generator
        One per stream; a stream's numbers depend on no other.

    Attributes
    ----------
    sweeps : int
        How far the chains are.
    """

    def __init__(self, columns: int, n_factors: int, rngs: Sequence[np.random.Generator]) -> None:
        F, c, q = len(rngs), columns, n_factors
        self.sweeps = 0
        self._rngs = rngs
        self._W = np.stack([rng.standard_normal((c, q)) for rng in rngs]) * _START
        self._mu, self._psi, self._alpha = np.zeros((F, c)), np.full((F, c), 0.5), np.full((F, q), float(q))

    def moments(self, blocks: Sequence[Block], live: np.ndarray, sweeps: int, kept: int) -> Moments:
        """Go on with the chains; return the mean of the moments over the last sweeps.

        Parameters
        ----------
        blocks : sequence of Block
            All that was revealed, in columns of variance about 1 that count from about their means.
        live : ndarray of bool, shape (F, c)
            Columns that take part; of the others nothing is asked, and their moments are 0.
        sweeps, kept : int
            Sweeps in all, and how many of the last count.
        """
        F, c, _ = self._W.shape
        self.sweeps += sweeps
        data = _Layout(blocks, live)
        first, second = np.zeros((F, c)), np.zeros((F, c, c))
        for sweep in range(sweeps):
            z = self._draw_factors(data)
            means, spread = self._draw_loadings(data, z, live)
            if sweep < sweeps - kept:
                continue
            # Given the factors, loadings of different columns are independent: their products' means are known.
            for f in range(F):
                first[f] += means[f, :, -1]
                second[f] += means[f] @ means[f].T
            diagonal = np.einsum("fii->fi", second)
            diagonal += np.where(live, spread + self._psi, 0.0)
        return Moments(first / kept, second / kept)

    def _draw_factors(self, data: "_Layout") -> np.ndarray:
        """Draw the factors (F, T, q) given loadings and noise, white within each stream.

        A draw from the prior, corrected by how far what it predicts is from what was seen, is one from the posterior;
        that takes the inverse of a matrix over columns or over factors, whichever are fewer.
        """
        F, c, q = self._W.shape
        W = np.append(self._W.reshape(F * c, q), np.zeros((1, q)), axis=0)
        mu, psi = np.append(self._mu, 0.0), np.append(self._psi, 1.0)
        z = np.stack([rng.standard_normal((data.examples, q)) for rng in self._rngs])
        for start, stop, places, values in data.blocks:
            n = values.shape[1]
            e = np.concatenate([rng.standard_normal((stop - start, n)) for rng in self._rngs])
            own = z[:, start:stop].reshape(-1, q)
            step = max(1, _TOGETHER // (n * q))
            for begin in range(0, len(own), step):
                part = slice(begin, begin + step)
                at = places[part]
                noise = psi[at]
                left = values[part] - mu[at] - e[part] * np.sqrt(noise)
                own[part] += _correction(W[at], noise, left, own[part])
            z[:, start:stop] = own.reshape(F, -1, q)
        spread = (z.swapaxes(1, 2) @ z + q * np.eye(q)) / (data.examples + q)
        return np.asarray(z @ np.linalg.inv(np.linalg.cholesky(spread)).swapaxes(1, 2))

    def _draw_loadings(self, data: "_Layout", z: np.ndarray, live: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Draw loadings and means, then noise, then how large loadings are, given the factors.

        Returns
        -------
        means : ndarray of float, shape (F, c, q + 1)
            Posterior means of the loadings, the last of which is that of the column's mean.
        spread : ndarray of float, shape (F, c)
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
        spread = self._psi * np.einsum("fcjj->fc", inverse)
        chance = np.stack([rng.standard_normal((c, q + 1)) for rng in self._rngs])
        drawn = (np.linalg.cholesky(inverse) @ chance[..., None])[..., 0] * np.sqrt(self._psi)[:, :, None]
        drawn = np.where(live[:, :, None], means + drawn, 0.0)
        self._W, self._mu = drawn[:, :, :q], drawn[:, :, q]
        left = data.squares - 2 * (drawn * b).sum(axis=2) + ((A @ drawn[..., None])[..., 0] * drawn).sum(axis=2)
        shapes = _SHAPE_PSI + (data.counts + q + 1) / 2
        gamma = [rng.standard_gamma(own) for rng, own in zip(self._rngs, shapes, strict=True)]
        self._psi = (_RATE_PSI + np.maximum(left, 0) / 2) / np.stack(gamma)
        size = (np.square(self._W) / self._psi[:, :, None]).sum(axis=1)
        for f, rng in enumerate(self._rngs):
            gamma = rng.standard_gamma(_SHAPE_ALPHA + live[f].sum() / 2, size=q)
            self._alpha[f] = np.maximum(gamma / (_SHAPE_ALPHA / q + size[f] / 2), _LEAST_ALPHA)
        return means, spread


def _correction(W: np.ndarray, psi: np.ndarray, left: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return ``W' (W W' + Psi)^-1 (left - W z)``, (T, q), for the columns seen of T examples: W (T, n, q)."""
    n, q = W.shape[1:]
    left = left - (W @ z[:, :, None])[..., 0]
    turned = W.swapaxes(1, 2)
    if n <= q:
        inner = W @ turned + psi[:, :, None] * np.eye(n)
        return np.asarray((turned @ np.linalg.solve(inner, left[:, :, None]))[..., 0])
    turned = turned / psi[:, None, :]
    return np.asarray(np.linalg.solve(turned @ W + np.eye(q), turned @ left[:, :, None])[..., 0])


class _Layout:
    """Revealed values by example and by column; columns that take no part are in a place behind all others."""

    def __init__(self, blocks: Sequence[Block], live: np.ndarray) -> None:
        F, c = live.shape
        self.examples = sum(block.values.shape[1] for block in blocks)
        self.blocks: list[tuple[int, int, np.ndarray, np.ndarray]] = []
        shape, stream = (F * c + 1, F * self.examples), np.arange(F)[:, None, None]
        self._where, self._known = csr_array(shape), csr_array(shape)
        start = 0
        live = np.append(live, np.zeros((F, 1), dtype=bool), axis=1)  # what is missing takes no part either
        for block in blocks:
            T, n = block.values.shape[1:]
            seen = live[stream, block.attributes]
            places = np.where(seen, stream * c + block.attributes, F * c).reshape(-1, n)
            values = np.where(seen, block.values, 0.0).reshape(-1, n)
            self.blocks.append((start, start + T, places, values))
            examples = (np.arange(F)[:, None] * self.examples + np.arange(start, start + T)).reshape(-1)
            at = places.reshape(-1), np.repeat(examples, n)
            self._where += csr_array((np.ones(places.size), at), shape)
            self._known += csr_array((values.reshape(-1), at), shape)
            start += T
        self.counts = self._where.sum(axis=1)[:-1].reshape(F, c)
        self.squares = self._known.power(2).sum(axis=1)[:-1].reshape(F, c)

    def sums(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sum up, over the examples of which a column was seen, ``z z'`` (F, c, q, q) and ``x z``; z is (F, T, q)."""
        F, c = self.counts.shape
        flat, q = z.reshape(-1, z.shape[2]), z.shape[2]
        A, b = np.empty((F * c, q, q)), (self._known @ flat)[:-1].reshape(F, c, q)
        for j in range(q):  # one row of the products at a time, as all of them would take much memory
            A[:, j, j:] = A[:, j:, j] = (self._where @ (flat[:, j:] * flat[:, j, None]))[:-1]
        return A.reshape(F, c, q, q), b
