"""AER, Baseline and Naive.

References
----------
N. Cesa-Bianchi, S. Shalev-Shwartz, O. Shamir. Efficient Learning with Partially Observed Attributes. ICML 2010,
Algorithms 1 and 2, and footnote 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log, sqrt
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from budgetreg.algorithms.learner import (
    RADIUS,
    UNBOUNDED,
    BudgetSplit,
    Cost,
    Learner,
    Missing,
    Rngs,
    Settings,
    SideInformation,
    Trajectory,
    update_option,
)
from budgetreg.algorithms.regressors import FAN, ActiveRows, Inverter, Layout, Levels, Minima, PrefixSums
from budgetreg.algorithms.vectors import Steps, data_point, inner_product, invert, project_l1
from budgetreg.common.errors import ConfigError
from budgetreg.common.streams import blocks, subset

if TYPE_CHECKING:
    from budgetreg.algorithms.engine import Round
    from budgetreg.metering.accessor import Accessor

# The algorithms as printed, one replica and one example at a time.


def baseline(X: np.ndarray, y: np.ndarray, C: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the averages A (d, d) and v (d,) of Algorithm 1, Baseline, whose program is ``min w'A w - w'v``.

    The paper prints ``+ w'v``.

    Parameters
    ----------
    X, y : ndarray of float, shapes (m, d) and (m,)
        Examples.
    C : sequence of ndarray of int, shape (k/2, 2)
        The pairs drawn for each example, uniformly and without replacement from ``[d] x [d]``.
    """
    m, d = X.shape
    A_, v_ = np.zeros((d, d)), np.zeros(d)
    for x, target, pairs in zip(X, y, C, strict=True):
        k = 2 * len(pairs)
        A, v = np.zeros((d, d)), np.zeros(d)
        for i, j in pairs:
            v[i] += d / k * x[i]
            v[j] += d / k * x[j]
            A[i, j] += d**2 / k * x[i] * x[j]
            A[j, i] += d**2 / k * x[i] * x[j]
        A_ += A / m
        v_ += 2 * target * v / m
    return A_, v_


def aer(X: np.ndarray, y: np.ndarray, attributes: np.ndarray, uniforms: np.ndarray, B: float, lam: float) -> Steps:
    """Run Algorithm 2, AER, on examples X (m, d) and y (m,).

    Its inner loop prints ``x_j`` where ``x_i`` is meant. Its output is the mean of ``w_2 .. w_{m+1}``; here, as in the
    papers that follow, that of ``w_1 .. w_m``.

    Parameters
    ----------
    attributes : ndarray of int, shape (m, k/2)
        The subsets C.
    uniforms : ndarray of float, shape (m, k/2)
        Numbers in [0, 1) that become the attributes i.
    """
    w = np.zeros(X.shape[1])
    for t, (x, target, C, u) in enumerate(zip(X, y, attributes, uniforms, strict=True), start=1):
        i = invert(np.abs(w), u)  # with P[i] = |w_i| / |w|_1
        yield w, np.concatenate([C, i])
        v = data_point(x, C)  # v_j += 2/k d x_j for each j of C
        y_ = inner_product(w, x, np.abs(w), i)  # += 2/k sgn(w_i) |w|_1 x_i for each i
        w = aer_update(w, y_ - target, v, t, B, lam)


def aer_update(w: np.ndarray, phi: float, x: np.ndarray, t: int, B: float, lam: float) -> np.ndarray:
    """Return the projection of ``(1 - 1/t) w - 2 / (lambda t) phi x`` onto the 1-ball of radius B."""
    return project_l1((1 - 1 / t) * w - 2 / (lam * t) * phi * x, B)


def pegasos_regularisation(B: float, d: int, m: int, k: int) -> float:
    """Regularisation lambda of AER.

    Theorem 2: ``((B + 1) d / B_2) sqrt(log(m) / (m k))`` with ``|w*|_2 <= B_2``. B is such a
    bound, and taken for it.
    """
    return (B + 1) * d / B * sqrt(log(max(m, 2)) / (m * k))


# AER for F x G replicas at once. ``U = (t - 1) w_t`` is what no step rescales, so that a step changes few coordinates.
# The projection of U is soft thresholding, which is one change of a threshold T for all coordinates but those that it
# sets to 0. So every w_t is that of the listing, up to rounding.
#
#     kappa     keys of the coordinates: sign(U) (|U| + T), 0 where U is 0; |kappa| - T is the weight of a draw
#     T         the threshold of a replica; raising it sets the coordinates whose keys it reaches to 0, and no other
#     h, P      the sums of 1/(t-1) and T/(t-1) over the steps since the last fold
#     V + h kappa - P sign(kappa)   the sum of all iterates; a fold adds to V, and T, h and P begin again at 0
#
# Weights are linear in T: the trees hold keys as real parts, and the number of coordinates that are not 0 as imaginary
# parts, so that one T applies to any node.

FOLD_RATIO = 1e3
"""Largest threshold before a fold, in multiples of the ball's radius; with larger ones keys would lose digits."""
LARGEST_STEP = 2.0**26
"""Largest coordinate of a step, in multiples of the radius of the projection.

Half of a double's digits remain for the result of the projection, and half for the order of the coordinates.
"""
HARMONIC_BLOCK = 4096
"""Number of terms by which the table of harmonic numbers grows."""


class Pegasos:
    """State of AER: Pegasos with a Euclidean projection onto the ball ``|w|_1 <= B``.

    Cesa-Bianchi, Shalev-Shwartz & Shamir 2010, Algorithm 2 (AER), whose loss has no factor 1/2:
    ``w <- (1 - 1/t) w - (2 / (lambda t)) phi~ x~``, then the projection of Duchi et al. 2008; inner product draws
    from ``p_j = |w_j| / |w|_1``; ``w_1 = 0``.

    Parameters
    ----------
    n_streams, d, k_ip : int
        Streams F, attributes d, and draws for the inner product.
    settings : mapping of str to ndarray of shape (G,)
        ``B``, radius; ``lambda``, regularisation.
    """

    def __init__(self, n_streams: int, d: int, k_ip: int, settings: Mapping[str, np.ndarray]) -> None:
        self.B, self.lam = settings["B"], settings["lambda"]
        self._short = LARGEST_STEP * self.B.min()  # a step of this size is bounded for no replica
        shape = n_streams, self.B.size
        self.layout = Layout(d)
        self._kappa, self._V = (np.zeros((n_streams * self.layout.padded, self.B.size)) for _ in range(2))
        self._T, self._P, self._h = (np.zeros(shape) for _ in range(3))
        self._trees = PrefixSums(*shape, self.layout, dtype=complex)
        self._least, self._inverter = Minima(*shape, self.layout), Inverter(*shape, self.layout, k_ip)
        self._norm = np.zeros(shape)
        self.active = ActiveRows(n_streams, self.layout)
        self.held = np.zeros(n_streams, dtype=np.intp)
        # Projecting twice would change the last bits, so only streams that have moved are projected.
        self._moved = np.zeros(n_streams, dtype=bool)
        self._norm_factor = np.zeros(n_streams)
        self._harmonic_table = np.zeros(2, dtype=np.longdouble)

    @property
    def nonzero(self) -> np.ndarray:
        """Replicas with ``w != 0``, shape (F, G)."""
        return self._trees.total.imag > 0

    def project_and_accumulate(self, now: np.ndarray) -> None:
        """Project, then add the iterates after those held up to ``now``, shape (F,), to their sum."""
        radius = self.held[:, None] * self.B
        self._project(radius)
        high = radius < self._T / FOLD_RATIO
        if high.any():
            self._fold(high)
        self._norm = np.maximum(self._trees.total.real - self._trees.total.imag * self._T, 0.0)
        elapsed = self._harmonic(now) - self._harmonic(self.held)
        self._h += elapsed[:, None]
        self._P += elapsed[:, None] * self._T
        self._norm_factor = 1.0 / np.maximum(now - 1, 1)
        self.held = now

    def draw(self, uniforms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Draw for the inner product: attributes j and coefficients ``w_j / p_j``, both (n, F, G), from (n, F)."""
        T = np.tile(self._T.reshape(-1), len(uniforms))

        def before(level: int, position: np.ndarray) -> np.ndarray:
            sums = self._trees.before(level, position)
            return np.asarray(sums.real - sums.imag * T)

        root = self._trees.root.real - self._trees.root.imag * self._T
        attributes = self._inverter(uniforms[:, :, None] * self._norm, root, before)
        kappa = self._inverter.values(self._kappa, attributes)
        return attributes, np.sign(kappa) * (self._norm * self._norm_factor[:, None])

    def step(self, taken: Round, residual: np.ndarray) -> None:
        """Take the step ``U -= (2 / lambda) phi~ x~`` for residual estimates of shape (F, G)."""
        stream, row = taken.stream, taken.row
        self._moved[taken.streams] = True
        T = self._T.take(stream, axis=0)
        rate = self._bounded(residual * (2.0 / self.lam), taken).take(stream, axis=0)
        old = self._kappa.take(row, axis=0)
        sign_old = np.sign(old)
        U = old - sign_old * T - rate * taken.values
        sign = np.sign(U)
        new = U + sign * T
        moved = (old - new) * self._h.take(stream, axis=0) - (sign_old - sign) * self._P.take(stream, axis=0)
        self._V[row] = self._V.take(row, axis=0) + moved
        self._kappa[row] = new
        nodes, streams = taken.nodes, taken.streams
        self._rekey(self._kappa.take(self.layout.leaves(nodes, streams), axis=0), nodes, streams)

    def _bounded(self, rate: np.ndarray, taken: Round) -> np.ndarray:
        """Shorten steps so large that rounding would lose the radius; their projection is nearly the same."""
        sizes = np.abs(taken.values)
        if np.abs(rate).max() * sizes.max() <= self._short:
            return rate
        largest = np.ones((len(rate), sizes.shape[1]))
        largest[taken.streams] = np.maximum.reduceat(sizes, taken.stream_start, axis=0)
        bound = LARGEST_STEP * taken.step[:, None] / largest * self.B
        return np.clip(rate, -bound, bound)

    def running_sum(self) -> np.ndarray:
        """Return the sum of the iterates held so far, shape (F, d, G)."""
        kappa = self.layout.unpad(self._kappa)
        return self.layout.unpad(self._V) + kappa * self._h[:, None, :] - np.sign(kappa) * self._P[:, None, :]

    def iterate(self) -> np.ndarray:
        """Return the regressors, shape (F, d, G); valid after `project_and_accumulate`."""
        kappa = self.layout.unpad(self._kappa)
        return (kappa - np.sign(kappa) * self._T[:, None, :]) * self._norm_factor[:, None, None]

    def _project(self, radius: np.ndarray) -> None:
        """Project onto ``|U|_1 <= radius`` (F, G), dropping the keys that the threshold reaches (Michelot 1986)."""
        total = self._trees.total
        excess = total.real - total.imag * self._T - radius
        stream, setting = np.nonzero((excess > 0) & self.nonzero & self._moved[:, None])
        self._moved[:] = False
        while stream.size:
            replicas = stream, setting
            T = (total.real[replicas] - radius[replicas]) / total.imag[replicas]
            self._T[replicas] = T
            passed = self._least.least[replicas] <= T
            stream, setting = stream[passed], setting[passed]
            if stream.size:
                self._drop(stream, setting, T[passed])

    def _drop(self, stream: np.ndarray, setting: np.ndarray, T: np.ndarray) -> None:
        """Set to 0 the coordinates of K replicas whose keys are at most T (K,)."""
        replica, nodes = self._least.reaching(stream, setting, T)
        stream, setting, rows = stream[replica], setting[replica], self.layout.below(1, nodes)
        kappa = self._kappa[rows, setting]
        child, at = np.nonzero((np.abs(kappa) <= T[replica]) & (kappa != 0))
        dropped, gone, replicas = (rows[child, at], setting[at]), kappa[child, at], (stream[at], setting[at])
        self._V[dropped] += gone * self._h[replicas] - np.sign(gone) * self._P[replicas]
        self._kappa[dropped] = kappa[child, at] = 0.0
        self._rekey(kappa, [nodes // FAN**level for level in range(self.layout.levels)], stream, setting)

    def _rekey(self, kappa: np.ndarray, nodes: Levels, streams: np.ndarray, setting: np.ndarray | None = None) -> None:
        key = np.abs(kappa)
        active = key > 0
        self._trees.update(key + 1j * active, nodes, streams, setting)
        self._least.update(np.where(active, key, np.inf), nodes, streams, setting)

    def _fold(self, replicas: np.ndarray) -> None:
        """Set the thresholds of replicas, bool of shape (F, G), to 0."""
        for f, rows, settings in self.active.by_stream(replicas):
            where = rows[:, None], settings
            kappa = self._kappa[where]
            sign = np.sign(kappa)
            self._V[where] += kappa * self._h[f, settings] - sign * self._P[f, settings]
            self._kappa[where] = kappa - sign * self._T[f, settings]
            nodes, streams = self.layout.nodes(rows), np.array([f])
            self._rekey(self._kappa.take(self.layout.leaves(nodes, streams), axis=0), nodes, streams)
        self._T[replicas] = self._P[replicas] = self._h[replicas] = 0.0

    def _harmonic(self, t: np.ndarray) -> np.ndarray:
        """Return ``1/1 + ... + 1/(t - 1)`` in extended precision; its differences are the weights of the average."""
        while self._harmonic_table.size <= t.max():
            size = self._harmonic_table.size
            terms = 1 / np.arange(size - 1, size - 1 + HARMONIC_BLOCK, dtype=np.longdouble)
            terms[0] += self._harmonic_table[-1]
            self._harmonic_table = np.concatenate([self._harmonic_table, np.cumsum(terms)])
        return self._harmonic_table[t]


# Baseline along all streams: the sums over examples come first, and the weights once, when the averages are wanted.
# With values missing completely at random, missing values count as 0. Products are divided by the share of examples
# that have both attributes, and single values by the share that has the attribute, which makes the estimates unbiased
# again.


class PairCentring:
    """The further sums that centred and scaled estimates need: for attributes and targets less their means.

    The sum of ``(x_i - m_i)(x_j - m_j)`` over the pairs revealed is the sum of ``x_i x_j``, less ``m_j`` times the sum
    of ``x_i`` over the same pairs, and so on. Thus a constant added to an attribute or to the targets changes nothing.
    Subtracting the means from the finished estimates would not achieve this, because their weights do not sum to 1.

    Parameters
    ----------
    accessor : Accessor
        The streams along which pairs are drawn.
    """

    def __init__(self, accessor: Accessor) -> None:
        F, d = accessor.n_streams, accessor.d
        self._together = together(accessor)
        self._first, self._pairs = np.zeros((F, d, d)), np.zeros((F, d, d))
        self._x, self._y, self._count = np.zeros((F, d)), np.zeros((F, d)), np.zeros((F, d))
        self._targets, self._n, self._drawn = np.zeros(F), 0, 0
        X, _ = accessor.pilot()
        self._known, self._values, self._squares = X.shape[1], X.sum(axis=1), np.square(X).sum(axis=1)

    def add(self, attributes: np.ndarray, x: np.ndarray, y: np.ndarray, available: np.ndarray) -> None:
        """Add pairs (F, T, n, 2), their values, targets (F, T), and which of the values are available."""
        from budgetreg.metering.table import sums

        F, d = self._x.shape
        both = available.all(axis=-1).reshape(F, 1, -1).astype(float)
        i, j = attributes[..., 0].reshape(F, 1, -1), attributes[..., 1].reshape(F, 1, -1)
        for first, second, values in ((i, j, x[..., 0]), (j, i, x[..., 1])):
            cell = first * d + second
            self._first += sums(cell, values.reshape(F, 1, -1) * both, d * d).reshape(F, d, d)
            self._pairs += sums(cell, both, d * d).reshape(F, d, d)
        singles = attributes.reshape(*y.shape, -1)
        single = available.reshape(singles.shape).astype(float)
        self._x += sums(singles, x.reshape(singles.shape), d)
        self._squares += sums(singles, np.square(x).reshape(singles.shape), d)
        self._y += sums(singles, y[..., None] * single, d)
        self._count += sums(singles, single, d)
        self._targets += y.sum(axis=1)
        self._n += y.shape[1]
        self._drawn += attributes.shape[1] * attributes.shape[2]

    def origin(self, centred: bool, intercept: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return what is subtracted from attributes (F, d) and targets (F,): their means, or 0."""
        m, r = self._x / np.maximum(self._count, 1), self._targets / self._n
        return m if centred else np.zeros_like(m), r if intercept else np.zeros_like(r)

    def scale(self, centred: bool) -> np.ndarray:
        """Return the inverse standard deviations (F, d) of what was seen, the pilot and repeated draws included.

        Attributes that are constant have 0 if they are centred, because then nothing but rounding errors is left.
        """
        from budgetreg.revealed.columns import units

        counts, values = self._known + self._count, self._values + self._x
        unit, varies = units(counts, self._squares, self._squares - np.square(values) / np.maximum(counts, 1))
        return np.where(varies, 1 / unit, 0.0) if centred else 1 / unit

    def centre(self, A: np.ndarray, v: np.ndarray, m: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the estimates A (F, d, d) and v (F, d) for attributes less m (F, d) and targets less r (F,)."""
        d, r = A.shape[1], r[:, None]
        cross = self._first * m[:, None, :]
        products = self._pairs * (m[:, :, None] * m[:, None, :]) - cross - cross.transpose(0, 2, 1)
        singles = self._count * (r * m) - r * self._x - m * self._y
        if self._together is not None:
            products, singles = products / self._together, singles / self._together.diagonal(axis1=1, axis2=2)
        return A + products * (d**2 / (2 * self._drawn)), v + singles * (d / self._drawn)


def estimates(
    accessor: Accessor, checkpoints: Sequence[int], rngs: Rngs, k: int, centring: PairCentring | None = None
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Estimate the loss along all streams of the accessor; the parameters are those of `Learner.fit`.

    A `centring` is given the same pairs.

    Yields
    ------
    checkpoint : int
    A : ndarray of float, shape (F, d, d)
        Estimates of ``mean(x x')``.
    v : ndarray of float, shape (F, d)
        Estimates of ``mean(2 y x)``.
    """
    F, d = accessor.n_streams, accessor.d
    A, v = np.zeros((F, d, d)), np.zeros((F, d))
    shares = together(accessor)
    for start, stop in blocks(0, checkpoints[-1]):
        pairs = np.stack([subset(rng, d * d, k // 2) for rng in rngs])[:, : stop - start]
        attributes = np.stack(np.divmod(pairs, d), axis=-1)
        accessor.open(start, stop)
        y = accessor.targets()
        x = accessor.reveal_block(attributes.reshape(F, stop - start, -1)).reshape(attributes.shape)
        for first, last in pairwise([start, *(c for c in checkpoints if start < c < stop), stop]):
            part = slice(first - start, last - start)
            _add(A, v, attributes[:, part], x[:, part], y[:, part])
            if centring:
                available = accessor.available(attributes.reshape(F, stop - start, -1)).reshape(attributes.shape)
                centring.add(attributes[:, part], x[:, part], y[:, part], available[:, part])
            if last in checkpoints:
                # At the last checkpoint A is overwritten, because allocating F d x d more numbers is slow.
                means = np.multiply(A, d**2 / (2 * (k // 2) * last), out=A if last == checkpoints[-1] else None)
                singles = v * (d / ((k // 2) * last))
                if shares is not None:
                    means, singles = means / shares, singles / shares.diagonal(axis1=1, axis2=2)
                yield last, means, singles


def together(accessor: Accessor) -> np.ndarray | None:
    """Return the shares (F, d, d) of examples that have two attributes; None if all have all."""
    if accessor.complete:
        return None
    return accessor.together(*np.ogrid[: accessor.n_streams, : accessor.d, : accessor.d])


def _add(A: np.ndarray, v: np.ndarray, attributes: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    """Add ``x_i x_j`` of pairs (F, T, n, 2) to A, symmetrically, and ``y x_i`` and ``y x_j`` to v."""
    products = x.prod(axis=-1)
    d = v.shape[1]
    pairs = np.nonzero(products)
    i, j = attributes[pairs].T
    np.add.at(A.reshape(-1), (pairs[0] * d + i) * d + j, products[pairs])
    np.add.at(A.reshape(-1), (pairs[0] * d + j) * d + i, products[pairs])
    singles = np.nonzero(x)
    np.add.at(v.reshape(-1), singles[0] * d + attributes[singles], x[singles] * y[singles[:2]])


def minimisers(A: np.ndarray, v: np.ndarray, radii: np.ndarray) -> np.ndarray:
    """Minimise ``w'A w - w'v`` over 1-balls, with the negative eigenvalues of A set to 0.

    The estimate A is symmetric but rarely positive semidefinite, and then the program is not convex.

    Parameters
    ----------
    A : ndarray of float, shape (d, d)
        Estimate of ``mean(x x')``.
    v : ndarray of float, shape (d,)
        Estimate of ``mean(2 y x)``.
    radii : ndarray of float, shape (G,)
        Radii B of the balls.

    Returns
    -------
    ndarray of float, shape (d, G)
    """
    from budgetreg.algorithms.least_squares import lasso  # here, as AER needs none

    W = np.zeros((len(v), len(radii)))
    known = np.flatnonzero(A.any(axis=0) | (v != 0))
    W[known] = lasso(_clipped(A[np.ix_(known, known)]), v[known] / 2, radii)
    return W


def _clipped(A: np.ndarray) -> np.ndarray:
    """Return a symmetric matrix with negative eigenvalues, and those that are 0 up to rounding, set to 0."""
    result = np.zeros_like(A)
    seen = np.flatnonzero(A.any(axis=0))
    s, V = np.linalg.eigh(A[np.ix_(seen, seen)])
    rounding = np.finfo(float).eps * len(s) * np.abs(s).max(initial=0)
    roots = V[:, s > rounding] * np.sqrt(s[s > rounding])
    roots[(roots**2).sum(axis=1) <= rounding] = 0
    result[np.ix_(seen, seen)] = roots @ roots.T
    return result


def correlation(A: np.ndarray, v: np.ndarray, norms: np.ndarray) -> np.ndarray:
    """Return ``w = B v / |v|_1``, the direction of the minimiser for uncorrelated attributes.

    Parameters and return value are those of `minimisers`; the estimate A is not used.
    """
    return np.outer(v, norms) / max(np.abs(v).sum(), np.finfo(float).tiny)


_PROBLEMS = {
    "program": "estimated least squares in the 1-ball, negative eigenvalues set to 0",
    "correlation": "estimated correlations scaled to a 1-norm",
}


@dataclass(frozen=True)
class Baseline(Learner):
    """Baseline and Naive, which solve different problems for the same estimates.

    Attributes
    ----------
    update : {'program', 'correlation'}
        How the regressor is computed from the estimates, see `minimisers` and `correlation`.
    """

    update: str = update_option(*_PROBLEMS)

    core = "pairs"
    continues = True
    parameters = (RADIUS,)
    tuned = ("B",)
    missing = Missing.WEIGHED
    centres_itself = True
    scales_itself = True
    shares_settings = True
    skipped_checks: ClassVar[Mapping[str, str]] = {"boundary": UNBOUNDED}

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Estimate the loss along all streams and minimise it at the checkpoints; see `Learner.fit`.

        A pair is charged 2 attributes, also if they are equal. The setting is ``B``, the largest 1-norm. Where
        attributes are scaled, it is that for attributes in units of the standard deviations of what was seen.
        """
        from budgetreg.metering.table import WithIntercept

        solve = {"program": minimisers, "correlation": correlation}[self.update]
        centred = given.centred or given.intercept
        centring = PairCentring(accessor) if centred or given.scaled else None
        for checkpoint, A, v in estimates(accessor, checkpoints, rngs, given.k, centring):
            scale = np.ones(v.shape)
            if centring:
                m, r = centring.origin(given.centred, given.intercept)
                A, v = centring.centre(A, v, m, r)
            if centring and given.scaled:
                scale = centring.scale(given.centred)
                A, v = A * (scale[:, :, None] * scale[:, None, :]), v * scale
            W = np.stack([solve(A_f, v_f, settings["B"]) for A_f, v_f in zip(A, v, strict=True)]) * scale[:, :, None]
            yield checkpoint, WithIntercept(W, r[:, None] - np.einsum("fd,fdg->fg", m, W)) if centred else W

    def split_budget(self, k: int) -> BudgetSplit | None:
        """Refuse a budget below a pair.

        Raises
        ------
        ConfigError
            If the budget is 1.
        """
        if k < 2:
            raise ConfigError(f"k={k}: {self.name} needs a budget of at least 2, the attributes of one pair")
        return None

    def cost(self, d: int, k: int, settings: Mapping[str, float]) -> Cost:
        """Return what whole pairs cost; one attribute of an odd budget is left over."""
        return Cost(k - k % 2, k - k % 2)

    @property
    def words(self) -> Sequence[str]:
        """What it sees and solves."""
        return "k attributes per example, in pairs", _PROBLEMS.get(self.update, "")
