"""The posterior of a factor model given what was revealed, by Gibbs sampling.

The columns of an example are ``x = mu + W z + e``, with q factors ``z ~ N(0, I)`` and noise ``e_i ~ N(0, psi_i)``, all
independent. Which columns are seen may depend on values seen before, but not on unseen ones. Then the likelihood of
the seen values contains all the information in the data (Rubin 1976), and the draw probabilities drop out.

The result is the posterior mean of the second moments. The risk of a regressor is linear in the second moments, so the
regressor that solves for their posterior mean has the least posterior risk. With few values the prior dominates, and
under the prior attributes carry no information about the target.

The prior is weak, for columns of variance about 1: ``psi_i ~ InvGamma(1, 0.3)``, ``mu_i ~ N(0, 10 psi_i)``, and
``W_ij ~ N(0, psi_i / alpha_j)``, ``alpha_j ~ Exp`` with mean 5 j, so that what a few examples show is one factor rather
than many, and factors without support fade. The target starts on the first factor, with little noise.

Values of heavy tails tell less than normal ones. The variance of a mean square of values of kurtosis g is e = (g - 1)/2
times that of normal values, so n examples count as n/e. The noise of the target has ``InvGamma(1, min(0.3, 0.1 e))``,
and its loadings ``N(0, 12.5 / (q (e - 1)))`` as well, which is nothing for normal values. The covariance of the factor
model is revised (`budgetreg.algorithms.factors.covariance`) as if examples were e^2 times fewer: few values also show
less than the whole kurtosis.

References
----------
D. B. Rubin. Inference and missing data. Biometrika 63, 1976.
D. J. C. MacKay, C. M. Bishop: automatic relevance determination. C. M. Bishop, Bayesian PCA, NIPS 1998.
J. S. Liu, Y. N. Wu. Parameter expansion for data augmentation. JASA 94, 1999: why the factors are whitened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.sparse import csr_array

from budgetreg.algorithms.factors.covariance import Trust, revised
from budgetreg.revealed.collection import Block, Collected, dense_rows
from budgetreg.revealed.columns import Moments, Rescaled, StandardisedEntries

if TYPE_CHECKING:
    from budgetreg.algorithms.learner import SideInformation
    from budgetreg.metering.accessor import Accessor
    from budgetreg.metering.table import Outputs

_SHAPE_ALPHA, _SHAPE_PSI, _RATE_PSI, _RATE_TARGET, _PRECISION_MU = 1.0, 1.0, 0.3, 0.1, 0.1

_TAILS = 0.08
"""Precision of the prior of the target's loadings, for each factor, by which e exceeds 1."""

LEAST_NOISE = 0.02
"""Noise variance of the target at the start, in variances of the target."""

_MIN_ALPHA = 0.1
"""Lower bound of alpha. Only alpha bounds the loadings of rarely seen columns, and without a bound both would drift."""

_START, _TARGET_START, _RATE_START = 0.1, 0.9, 5.0
"""Standard deviation of the initial loadings: small, random values that make the factors differ; the target's loading
on the first factor; and alpha of the first factor, of which the next have multiples."""

_BURN_IN, _MIN_KEPT, MOST_KEPT, _MOST_AT_ONCE, _WORK = 60, 20, 100, 1000, 4_500_000
"""Least sweeps before those averaged when a chain starts; least and most sweeps averaged; most if a chain is new and no
plan is to come; and the work these may do in all. More data leave a narrower posterior, which fewer sweeps average well
enough."""

_MOST_FOR_DRAWS, _DRAWS_WORK = 60, _WORK // 3
"""Most sweeps averaged, and the work, if only draw probabilities are wanted: they need no accurate moments."""

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
    doubted : bool
        Whether correlations of attributes do not count if they predict badly what is revealed later.

    Attributes
    ----------
    columns : int
        Columns c.
    sweeps : ndarray of int, shape (F,)
        Sweeps that each chain has done so far.
    trusts : list of Trust, or None
        Whether the correlations of each stream's attributes count; None: they do.
    """

    def __init__(
        self, columns: int, n_factors: int, rngs: Sequence[np.random.Generator], *, doubted: bool = False
    ) -> None:
        F, c, q = len(rngs), columns, n_factors
        self.columns, self.sweeps = columns, np.zeros(F, dtype=int)
        self._rngs = rngs
        self._W = np.stack([rng.standard_normal((c, q)) for rng in rngs]) * _START
        self._mu, self._psi = np.zeros((F, c)), np.full((F, c), 0.5)
        self._W[:, -1], self._W[:, -1, 0], self._psi[:, -1] = 0.0, _TARGET_START, LEAST_NOISE
        self._starts = _RATE_START * np.arange(1.0, q + 1)
        self._alpha = np.tile(self._starts, (F, 1))
        self.trusts = [Trust(c) for _ in rngs] if doubted else None

    def part(self, streams: Sequence[int] | np.ndarray) -> Posterior:
        """Return the chains of some streams, which `keep` takes back."""
        part = copy(self)
        part._rngs = [self._rngs[f] for f in streams]
        part._W, part._mu, part._psi, part._alpha, part.sweeps = (of[list(streams)] for of in self._states)
        part.trusts = self.trusts and [self.trusts[f] for f in streams]
        return part

    def keep(self, streams: np.ndarray, part: Posterior) -> None:
        """Take the chains of some streams back."""
        for of, of_part in zip(self._states, part._states, strict=True):
            of[streams] = of_part

    @property
    def _states(self) -> tuple[np.ndarray, ...]:
        return self._W, self._mu, self._psi, self._alpha, self.sweeps

    def moments(
        self, blocks: Sequence[Block], live: np.ndarray, sweeps: int, kept: int, tails: np.ndarray | None = None
    ) -> Moments:
        """Continue the chains, and return the mean of the moments over the last sweeps.

        Parameters
        ----------
        blocks : sequence of Block
            Everything revealed, in columns of variance about 1 that are centred on about their means.
        live : ndarray of bool, shape (F, c)
            Columns to model; the moments of all others are 0.
        sweeps, kept : int
            Number of sweeps, and how many of the last are averaged.
        tails : ndarray of float, shape (F,), optional
            How many examples tell as much as one of normal values, see `StandardisedEntries.tails`; by default 1.
        """
        F, c, q = self._W.shape
        tails = np.ones(F) if tails is None else tails
        self.sweeps += sweeps
        data = ArrangedValues(blocks, live, q)
        first, second, columns = np.zeros((F, c)), np.zeros((F, c, c)), [np.flatnonzero(of) for of in live]
        products = [np.zeros((of.size, of.size)) for of in columns]
        for sweep in range(sweeps):
            z = whitened(draw_factors(data, self._W, self._mu, self._psi, self._normal))
            means, traces = self._draw_loadings(data, z, live, tails)
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

    def _draw_loadings(
        self, data: ArrangedValues, z: np.ndarray, live: np.ndarray, tails: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
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
        if columns.size == 1:  # einsum would add in another order
            columns = columns.repeat(2)
        A, b = (of.reshape(F * c, -1)[columns] for of in data.sums(np.append(z, np.ones_like(z[:, :, :1]), axis=2)))
        prior = np.repeat(np.append(self._alpha, np.full((F, 1), _PRECISION_MU), axis=1)[:, None], c, axis=1)
        more = _TAILS * q * (tails - 1)
        prior[:, -1, :q] += (more * self._psi[:, -1])[:, None]
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
        residual[:, -1] -= more * self._psi[:, -1] * np.square(self._W[:, -1]).sum(axis=1)
        residual = np.where(live, residual, 0.0)
        shapes = _SHAPE_PSI + (data.counts + q + 1) / 2
        gamma = [rng.standard_gamma(shape) for rng, shape in zip(self._rngs, shapes, strict=True)]
        rates = np.full((F, c), _RATE_PSI)
        rates[:, -1] = np.minimum(_RATE_PSI, _RATE_TARGET * tails)
        self._psi = (rates + np.maximum(residual, 0) / 2) / np.stack(gamma)
        size = (np.square(self._W) / self._psi[:, :, None]).sum(axis=1)
        for f, rng in enumerate(self._rngs):
            gamma = rng.standard_gamma(_SHAPE_ALPHA + live[f].sum() / 2, size=q)
            self._alpha[f] = np.maximum(gamma / (_SHAPE_ALPHA / self._starts + size[f] / 2), _MIN_ALPHA)
        return means, traces


class Known(NamedTuple):
    """What is known of F streams.

    Attributes
    ----------
    standardised : StandardisedEntries
        Everything revealed.
    moments : Moments
        Posterior means under the factor model.
    inflation : ndarray of float, shape (F, d)
        Factors of the attributes' variances, see `budgetreg.revealed.columns.Rescaled`. Attributes with an infinite one
        are left out.
    """

    standardised: StandardisedEntries
    moments: Moments
    inflation: np.ndarray


def posterior_of(
    accessor: Accessor,
    collected: Collected,
    given: SideInformation,
    streams: Sequence[int],
    posterior: Posterior,
    *,
    for_draws: bool,
    chain: bool = True,
) -> tuple[Known, Callable[[Outputs], Outputs]]:
    """Return what is known from everything revealed to some streams; draw probabilities alone need fewer sweeps.

    The posterior has the chains of these streams. Without `chain`, streams whose examples are complete have the moments
    of `StandardisedEntries.sample_moments`. All others continue their chains, and those that begin one do more sweeps.
    So no stream's chain depends on the others. The second is `budgetreg.revealed.columns.Rescaled.as_revealed`.
    """
    rescaled = Rescaled(collected.entries.blocks(streams), accessor.d, given.scaled, accessor.stored_units(streams))
    standardised = StandardisedEntries(
        rescaled.blocks,
        posterior.columns - 1,
        centred=given.centred,
        intercept=given.intercept,
        zero_is_meaningful=given.zero_is_meaningful,
        excess=rescaled.excess,
    )
    inflation = np.where(rescaled.has_variance[:, None], rescaled.inflation, np.inf)
    F, c = standardised.live.shape
    moments = Moments(np.zeros((F, c)), np.zeros((F, c, c)))
    complete, is_new = standardised.complete & (not chain), posterior.sweeps == 0
    size, is_everything = collected.entries.size, collected.is_everything
    of_chain = partial(posterior_moments, posterior, standardised, for_draws=for_draws, is_everything=is_everything)
    for alike in map(np.flatnonzero, (complete, ~complete & is_new, ~complete & ~is_new)):
        if alike.size:
            part = standardised.sample_moments(alike) if complete[alike[0]] else of_chain(alike, size)
            moments.first[alike], moments.second[alike] = part.first, part.second
    return Known(standardised, moments, inflation), rescaled.as_revealed


def posterior_moments(
    posterior: Posterior,
    standardised: StandardisedEntries,
    streams: np.ndarray,
    size: int,
    *,
    for_draws: bool = False,
    is_everything: bool = False,
) -> Moments:
    """Continue the chains of some streams by as many sweeps as the data ask for, and return their revised moments.

    Parameters
    ----------
    posterior : Posterior
    standardised : StandardisedEntries
        Everything revealed.
    streams : ndarray of int
        The streams; all of them begin their chains now, or none does.
    size : int
        Number of values of each stream.
    for_draws : bool
        Whether the moments are for draw probabilities alone, for which fewer sweeps are enough.
    is_everything : bool
        Whether no plan is to come, so that no other sweeps bring new chains to their posterior.
    """
    is_new = not posterior.sweeps[streams].any()
    sweeps = (_DRAWS_WORK if for_draws else _WORK) // (size + _COLUMN_WORK * posterior.columns)
    most = _MOST_FOR_DRAWS if for_draws else _MOST_AT_ONCE if is_everything and is_new else MOST_KEPT
    kept = min(max(_MIN_KEPT, sweeps), most)
    before = max(kept // 3, _BURN_IN if is_new else 0)
    blocks = [Block(*(of[streams] for of in block)) for block in standardised.blocks]
    tails, part = standardised.tails[streams], posterior.part(streams)
    moments = part.moments(blocks, standardised.live[streams], before + kept, kept, tails)
    posterior.keep(streams, part)
    for f, stream in enumerate(streams):
        live, first = np.flatnonzero(standardised.live[stream]), moments.first[f]
        if live.size:
            cells, outer = np.ix_(live, live), np.outer(first, first)[np.ix_(live, live)]
            seen = centred_on(blocks, f, live, first)
            covariance = moments.second[f][cells] - outer
            if posterior.trusts is not None:
                covariance = posterior.trusts[stream].trusted(seen, live, covariance)
            moments.second[f][cells] = revised(seen, covariance, tails[f] ** 2) + outer
    return moments


def centred_on(
    blocks: Sequence[Block], f: int, live: np.ndarray, first: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return positions among the live columns, their number if there is none, and values less `first`, by block."""
    position = np.full(len(first) + 1, live.size)
    position[live] = np.arange(live.size)
    means = np.append(first, 0.0)
    return [(position[block.attributes[f]], block.values[f] - means[block.attributes[f]]) for block in blocks]


def plan_by_posterior(
    collected: Collected, known: Known, parts: np.ndarray | None = None, *, centred: bool
) -> tuple[np.ndarray | None, ...]:
    """Draw, from now on, by the posterior's residual deviations and regressors.

    Returns the arguments of `Collected.plan`, but for the posterior's moments.

    Parameters
    ----------
    collected : Collected
    known : Known
    parts : ndarray of float, shape (F, d), optional
        See `budgetreg.revealed.designs.regression_weights`.
    centred : bool
        See `budgetreg.revealed.columns.EqualValues.known`.
    """
    standardised, moments = known.standardised, known.moments
    W = standardised.regressors(moments, centred=True, intercept=True)[0]
    equal = standardised.known(collected.phases[-1], centred=centred)
    by = standardised.spread(moments), W[:, :, 0], equal
    collected.plan(*by, partial(standardised.joint, moments), parts)
    return *by, None, parts


def draw_factors(
    data: ArrangedValues, W: np.ndarray, mu: np.ndarray, psi: np.ndarray, normal: Callable[[int, int], np.ndarray]
) -> np.ndarray:
    """Draw the factors (F, T, q) given loadings and noise.

    The system of an example is over columns or over factors, whichever are fewer. Columns are divided by the deviation
    of their noise, so that no eigenvalue is below 1. Systems are solved in float32, and those of streams with nearly no
    noise in float64. Complete examples share one system.

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
    for cells, known in data.cells:
        T, n = cells.rows.shape
        x = known * scale.take(cells.rows) - mu.take(cells.rows)
        if n <= q:
            x -= normal(T // F, n)
        single, left = squares[:, -n:].sum(axis=1) <= _LARGEST, ~np.isin(np.arange(F), list(data.complete))
        for dtype, streams in ((np.float32, single & left), (np.float64, ~single & left)):
            if streams.any():
                table = W.astype(dtype)
                draw = _corrected if n <= q else partial(_from_precision, products=packed(table))
                for part, values in cells.parts(streams, x, q):
                    z[part.examples] = draw(table, part, values, z[part.examples])
    z = z.reshape(F, -1, q)
    tables, shifts, scales = (of.reshape(F, -1, *of.shape[1:])[:, :-1] for of in (W, mu, scale))
    for f, values in data.complete.items():
        V = tables[f]
        root = np.linalg.cholesky(V.T @ V + np.eye(q))
        half = solve_triangular(root, V.T @ (values * scales[f] - shifts[f]).T, lower=True)
        z[f] = solve_triangular(root, half + z[f].T, lower=True, trans=1).T
    return z


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


def _corrected(W: np.ndarray, block: ArrangedBlock, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return ``z + V' (V V' + I)^-1 (x - V z)``, (T, q), where V are the rows (n, q) of W that each example shows.

    If z and the noise subtracted from x are drawn from the prior, then this is a draw from the posterior. The systems
    are over columns.
    """
    n = block.rows.shape[1]
    V = np.concatenate([W, z]).take(block.rows_and_own, axis=0)  # z is in the last row, for one product
    A = np.ascontiguousarray((V[:, :n] @ V.swapaxes(1, 2)).transpose(2, 1, 0))
    A[n] = x.T - A[n]
    return z + block.combined(np.ascontiguousarray(solve(A, 0.0).T), W)


def _from_precision(
    W: np.ndarray, block: ArrangedBlock, x: np.ndarray, noise: np.ndarray, products: np.ndarray
) -> np.ndarray:
    """Return ``P^-1 V' x + L'^-1 noise``, (T, q), where ``P = V' V + I = L L'`` and V are the rows of W shown.

    If the noise is standard normal, then this is a draw from the posterior. The systems are over factors. The products
    are those of the columns of W, see `packed`.
    """
    T, q = noise.shape
    A = np.empty((q + 1, q, T), W.dtype)
    A[lower_triangle(q)] = block.combined(np.ones(block.rows.shape, W.dtype), products).T
    A[q] = block.combined(x, W).T
    return solve(A, noise.T).T


# The values arranged for the chain, and solvers of many small systems at once.
#
# Streams are stacked. Sums over examples are taken within a stream, in an order that depends on no other stream. Small
# systems lie along the last axis: NumPy then works on long vectors, and no system's result depends on the others.

_PART = 2**20
"""Numbers in an array of a part of the examples, which limits the memory needed."""

_SUMMED = 2**18
"""Products summed in float32 at a time, before the sums are added in float64."""

_PACKED = 1000
"""Rows of which `packed` forms the products at a time; they stay in the cache, which powers of two would not."""


@dataclass(frozen=True)
class ArrangedBlock:
    """Cells of T examples with equally many values.

    Attributes
    ----------
    examples : ndarray of int, shape (T,)
        Numbers of the examples, among those of all streams.
    rows : ndarray of int, shape (T, n)
        Rows of the columns in arrays of all streams, see `ArrangedValues`.
    n_rows : int
        Number of rows of such arrays.
    """

    examples: np.ndarray
    rows: np.ndarray
    n_rows: int

    def parts(self, streams: np.ndarray, x: np.ndarray, q: int) -> Iterator[tuple[ArrangedBlock, np.ndarray]]:
        """Yield examples of some streams, a mask (F,), with their part of x (T, n).

        The parts are small enough for arrays of n or of q x q numbers per example.
        """
        step = max(1, _PART // max(self.rows.shape[1], q * q))
        if streams.all() and len(x) <= step:
            yield self, x
            return
        chosen = np.flatnonzero(np.repeat(streams, len(x) // len(streams)))
        for begin in range(0, len(chosen), step):
            some = chosen[begin : begin + step]
            yield ArrangedBlock(self.examples[some], self.rows[some], self.n_rows), x[some]

    @cached_property
    def rows_and_own(self) -> np.ndarray:
        """The rows, and a row of its own for each example in arrays that have those of all examples last."""
        return np.append(self.rows, self.n_rows + np.arange(len(self.rows))[:, None], axis=1)

    @cached_property
    def _matrix(self) -> csr_array:
        T, n = self.rows.shape
        cells = np.zeros(T * n), self.rows.reshape(-1), np.arange(0, T * n + 1, n)
        return csr_array(cells, (T, self.n_rows))

    def combined(self, weights: np.ndarray, table: np.ndarray) -> np.ndarray:
        """Return for each example the sum of rows of a table, with these weights (T, n)."""
        self._matrix.data = weights.reshape(-1)
        return np.asarray(self._matrix @ table)


class ArrangedValues:
    """Revealed values of F streams by example and by column.

    The columns of each stream are followed by one more, c, for values that are missing or not in a live column. So
    column i of stream f has the row ``f (c + 1) + i`` in an array of all streams.

    Parameters
    ----------
    blocks : sequence of Block
        Everything revealed.
    live : ndarray of bool, shape (F, c)
        Columns to model.
    n_factors : int
        Factors q.

    Attributes
    ----------
    examples : int
        Examples of each stream.
    cells : list of tuple of ArrangedBlock and ndarray of float32, shape (T, n)
        By block, the streams one after the other, and the values; 0 in columns that are not modelled.
    counts, squares : ndarray of float, shape (F, c)
        Number of the values of each column, and the sum of their squares.
    complete : dict of int to ndarray of float, shape (T, c)
        The values of streams whose examples all show all live columns; 0 in the others.
    """

    def __init__(self, blocks: Sequence[Block], live: np.ndarray, n_factors: int) -> None:
        F, c = live.shape
        self.examples = sum(block.values.shape[1] for block in blocks)
        self.cells: list[tuple[ArrangedBlock, np.ndarray]] = []
        stream, start, size = np.arange(F)[:, None, None], 0, F * (c + 1)
        live = np.append(live, np.zeros((F, 1), dtype=bool), axis=1)  # missing values are not live either
        columns, values, counts, squares = [], [], np.zeros(size), np.zeros(size)
        for block in blocks:
            T, n = block.values.shape[1:]
            is_live = live[stream, block.attributes]
            columns.append(np.where(is_live, block.attributes, c).astype(np.int32))
            values.append(np.where(is_live, block.values, 0.0))
            rows = (stream * (c + 1) + columns[-1]).astype(np.int32).reshape(-1, n)
            examples = (stream[:, 0] * self.examples + np.arange(start, start + T)).reshape(-1)
            self.cells.append((ArrangedBlock(examples, rows, size), values[-1].astype(np.float32).reshape(-1, n)))
            counts += np.bincount(rows.reshape(-1), minlength=size)
            squares += np.bincount(rows.reshape(-1), np.square(values[-1]).reshape(-1), size)
            start += T
        self.counts, self.squares = counts.reshape(F, c + 1)[:, :c], squares.reshape(F, c + 1)[:, :c]
        self.complete: dict[int, np.ndarray] = {}
        for f in np.flatnonzero((self.counts == self.examples).sum(axis=1) == live.sum(axis=1)):
            rows = []
            for i, x in zip(columns, values, strict=True):
                rows.append(dense_rows(i[f], x[f], c))
                i[f] = c  # not among the values by column
            self.complete[int(f)] = np.concatenate(rows)
        step = max(1, _SUMMED // ((n_factors + 1) * (n_factors + 2) // 2))
        self._by_column = list(_by_column(columns, values, c, step))

    def sums(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return sums over the examples that show a column.

        Parameters
        ----------
        z : ndarray of float32, shape (F, T, q)

        Returns
        -------
        products : ndarray of float, shape (F, c, q (q + 1) / 2)
            Sums of ``z z'``, packed as by `packed`.
        weighted : ndarray of float, shape (F, c, q)
            Sums of ``x z``.
        """
        (F, c), q = self.counts.shape, z.shape[2]
        products, weighted = np.zeros((F * c, q * (q + 1) // 2)), np.zeros((F * c, q))
        z = z.reshape(-1, q)
        for rows, chunk, seen, known in self._by_column:
            products[rows] += seen @ packed(z[chunk])
            weighted[rows] += known @ z[chunk].astype(float)
        products, weighted = products.reshape(F, c, -1), weighted.reshape(F, c, q)
        for f, values in self.complete.items():
            own = z.reshape(F, -1, q)[f].astype(float)
            products[f], weighted[f] = (own.T @ own)[lower_triangle(q)], values.T @ own
        return products, weighted


def _by_column(
    columns: list[np.ndarray], values: list[np.ndarray], c: int, step: int
) -> Iterator[tuple[slice, slice, csr_array, csr_array]]:
    """Yield the columns of some streams, and at most `step` of their examples, with matrices of ones and of values.

    Columns and examples are numbered across streams. Examples are those of a few whole streams, or some of one stream.
    """
    F, T = len(columns[0]), sum(of.shape[1] for of in columns)
    widths = np.concatenate([np.full(of.shape[1], of.shape[2]) for of in columns])
    numbered = [np.where(of < c, np.arange(F)[:, None, None] * c + of, F * c) for of in columns]
    cells = [np.concatenate([of[f].reshape(-1) for f in range(F) for of in parts]) for parts in (values, numbered)]
    by_example = csr_array((*cells, np.append(0, np.cumsum(np.tile(widths, F)))), (F * T, F * c + 1))
    together = max(1, step // T)
    for f in range(0, F, together):
        end = min(f + together, F)
        rows = slice(f * c, end * c)
        for start in range(f * T, end * T, step):
            chunk = slice(start, min(start + step, end * T))
            known = by_example[chunk].T.tocsr()[rows]
            ones = np.ones(known.nnz, np.float32)
            yield rows, chunk, csr_array((ones, known.indices, known.indptr), known.shape), known


def packed(z: np.ndarray) -> np.ndarray:
    """Return the products ``z_i z_j`` with i <= j of each row, in the order of `numpy.triu_indices`."""
    T, q = z.shape
    products = np.empty((T, q * (q + 1) // 2), z.dtype)
    for start in range(0, T, _PACKED):
        of = slice(start, start + _PACKED)
        factors = np.ascontiguousarray(z[of].T)
        products[of] = np.concatenate([factors[j:] * factors[j] for j in range(q)]).T
    return products


@cache
def lower_triangle(q: int) -> tuple[np.ndarray, np.ndarray]:
    """Return row and column numbers of a lower triangle (q, q), in the order of `packed`."""
    column, row = np.triu_indices(q)
    return row, column


def solve(A: np.ndarray, noise: np.ndarray | float) -> np.ndarray:
    """Return ``M^-1 b + L'^-1 noise``, (q, T), for T positive definite matrices ``M = L L'``.

    Parameters
    ----------
    A : ndarray of float, shape (q + 1, q, T)
        The lower triangles of M - I, followed by b as the last row. Overwritten.
    noise : ndarray of float, shape (q, T), or float
    """
    q, T = A.shape[1:]
    if T == 1:  # einsum would add in another order
        return solve(A.repeat(2, axis=2), noise)[:, :1]
    for j in range(q):
        A[j, j] += 1
        if j:
            A[j:, j] -= np.einsum("ikt,kt->it", A[j:, :j], A[j, :j])
        # M has no eigenvalue below 1, and so no pivot; rounding must not make one smaller
        A[j, j] = np.sqrt(np.maximum(A[j, j], 1))
        A[j + 1 :, j] /= A[j, j]
    x = A[q] + noise
    for j in reversed(range(q)):
        x[j] /= A[j, j]
        x[:j] -= A[j, :j] * x[j]
    return x


def inverse_of_lower(L: np.ndarray) -> np.ndarray:
    """Return the inverses of T lower triangular matrices (q, q, T)."""
    inverse = np.zeros_like(L)
    for j in range(len(L)):
        inverse[j, j] = 1.0
        inverse[j, : j + 1] /= L[j, j]
        inverse[j + 1 :, : j + 1] -= L[j + 1 :, j, None] * inverse[j, : j + 1]
    return inverse
