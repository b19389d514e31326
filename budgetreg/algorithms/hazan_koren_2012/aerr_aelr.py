"""AERR and AELR: k attributes of each example, in one pass.

Each gradient is the product of two independent estimates, of the data point and of the inner product. The algorithms as
printed come first, then what the theorems prescribe, the same for many replicas at once, and the learners.

The same class runs AER, whose state is `budgetreg.algorithms.cesa_bianchi_2010.Pegasos`, and DDAERR and DDAELR, which
draw by the moments of the attributes: options choose the update and the draws of the two estimates.

References
----------
E. Hazan, T. Koren. Linear Regression with Limited Observation. ICML 2012, Algorithms 1 and 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import TYPE_CHECKING

import numpy as np

from budgetreg.algorithms.cesa_bianchi_2010 import Pegasos, pegasos_regularisation
from budgetreg.algorithms.engine import (
    DATA_POINT_SAMPLERS,
    ControlVariate,
    DataPointSampler,
    Proportional,
    Round,
    data_point_weights,
    inner_product_weights,
    run,
)
from budgetreg.algorithms.learner import (
    RADIUS,
    STEP_SIZE,
    UPDATES,
    Missing,
    Parameter,
    Rngs,
    RunContext,
    Settings,
    SideInformation,
    SplitBudgetLearner,
    Theorem,
    Trajectory,
    prices_option,
    update_option,
)
from budgetreg.algorithms.regressors import FOLD_RATIO, ScaledRegressors
from budgetreg.algorithms.vectors import Steps, data_point, inner_product, invert, project_l2
from budgetreg.config.options import NOTHING, one_of, option

if TYPE_CHECKING:
    from budgetreg.metering.accessor import Accessor

# The algorithms as printed, one replica and one example at a time.


def aerr(
    X: np.ndarray,
    y: np.ndarray,
    attributes: np.ndarray,
    uniforms: np.ndarray,
    B: float,
    eta: float,
    q: np.ndarray | None = None,
    s: np.ndarray | None = None,
    start: np.ndarray | None = None,
) -> Steps:
    """Run Algorithm 1, AERR, on examples X (m, d) and y (m,).

    The listing asks for any ``w_1 != 0``, as its draws for the inner product are not defined at 0. But there the
    product is known and needs no draw, so that ``w_1 = 0``. Lines 8 and 9 draw one attribute; here k_ip are averaged.

    Parameters
    ----------
    attributes : ndarray of int, shape (m, k_x)
        The attributes ``i_{t,r}``, drawn from q.
    uniforms : ndarray of float, shape (m, k_ip)
        Numbers in [0, 1) that become the attributes ``j_t``.
    q, s : ndarray of float, shape (d,), optional
        Probabilities of the data point's draws, uniform by default, and ``sqrt(E x^2)`` for inner product draws in
        proportion to ``|w_j| s_j``: with both, GAERR of Kukliansky & Shamir 2015.
    start : ndarray of float, shape (d,), optional
        ``w_1``.
    """
    w = np.zeros(X.shape[1]) if start is None else start  # line 1
    for x, target, drawn, u in zip(X, y, attributes, uniforms, strict=True):  # 2
        p = w**2 if s is None else np.abs(w) * s
        j = invert(p, u)  # 8, without the factor that makes p sum to 1
        yield w, np.concatenate([drawn, j])
        x_ = data_point(x, drawn, q)  # 3 to 7
        phi = inner_product(w, x, p, j) - target  # 9
        w = aerr_update(w, phi, x_, B, eta)  # 10 to 12


def aerr_update(
    w: np.ndarray, phi: float | np.ndarray, x: np.ndarray, B: float | np.ndarray, eta: float | np.ndarray
) -> np.ndarray:
    """Return ``w_{t+1}`` by lines 10 to 12 of AERR: ``v = w - eta g``, ``g = phi x``, and ``v B / max(|v|_2, B)``.

    All arguments may have leading axes, for several regressors.
    """
    return project_l2(w - np.asarray(eta * phi)[..., None] * x, B)


def aelr(
    X: np.ndarray,
    y: np.ndarray,
    attributes: np.ndarray,
    uniforms: np.ndarray,
    B: float,
    eta: float,
    q: np.ndarray | None = None,
    s: np.ndarray | None = None,
    start: np.ndarray | None = None,
) -> Steps:
    """Run Algorithm 2, AELR, in the exponents theta of ``z+ = exp(theta)`` and ``z- = exp(-theta)``, which overflow.

    Parameters are those of `aerr`, the start being exponents; with q and s, GAELR of Kukliansky & Shamir 2015.
    """
    theta = np.zeros(X.shape[1]) if start is None else start  # line 1
    for x, target, drawn, u in zip(X, y, attributes, uniforms, strict=True):  # 2
        w = aelr_regressor(theta, B)  # 3
        p = np.abs(w) if s is None else np.abs(w) * s
        j = invert(p, u)  # 9
        yield w, np.concatenate([drawn, j])
        x_ = data_point(x, drawn, q)  # 4 to 8
        phi = inner_product(w, x, p, j) - target  # 10
        theta = aelr_update(theta, phi, x_, eta)  # 11 to 15


def aelr_regressor(theta: np.ndarray, B: float | np.ndarray) -> np.ndarray:
    """Return ``w = B (z+ - z-) / (|z+|_1 + |z-|_1)`` by line 3 of AELR, both divided by ``exp(max |theta|)``."""
    M = np.abs(theta).max(axis=-1, keepdims=True)
    up, down = np.exp(theta - M), np.exp(-M - theta)
    return np.asarray((up - down) * np.asarray(B / (up + down).sum(axis=-1))[..., None])


def aelr_update(theta: np.ndarray, phi: float | np.ndarray, x: np.ndarray, eta: float | np.ndarray) -> np.ndarray:
    """Return the next exponents by lines 11 to 15 of AELR: ``theta - eta clip(g, 1/eta)``, ``g = phi x``."""
    return np.asarray(theta - np.clip(np.asarray(eta * phi)[..., None] * x, -1, 1))


def aelr_exponents(w: np.ndarray, B: float | np.ndarray) -> np.ndarray:
    """Return exponents theta of which w is the regressor, for vectors w (..., d) of 1-norm below B.

    ``theta_j = asinh(C w_j / B)``, where ``C = sum(cosh(theta))`` is the root of ``sum_j sqrt(1 + (C w_j / B)^2) = C``.
    The difference of the two sides is convex and decreasing, so that Newton's method rises to the root from 0.
    Regressors on the surface of the ball, which no exponents reach, are first shrunk a little.
    """
    v = w / B
    v *= np.minimum(1, (1 - 1e-9) / np.maximum(np.abs(v).sum(axis=-1, keepdims=True), 1e-9))
    C = np.zeros((*v.shape[:-1], 1))
    rising = np.ones(C.shape, dtype=bool)
    while rising.any():
        cosh = np.sqrt(1 + np.square(C * v))
        slope = (C * np.square(v) / cosh).sum(axis=-1, keepdims=True) - 1
        step = (C - cosh.sum(axis=-1, keepdims=True)) / slope
        rising &= step > 1e-15 * C
        C += np.where(rising, step, 0)
    return np.asarray(np.arcsinh(C * v))


# What the theorems prescribe and bound. d attributes, m examples, and k_x draws for the data point; None: exact
# gradients. The inner product alone contributes 4 B^2 to the second moment G^2 of a gradient, and sampling the data
# point multiplies this by the spread G^2 / (4 B^2): 1 with full information, 2d/k_x for uniform draws. The excess risk
# of gradient descent is at most 2 B^2 / (eta m) + eta G^2 / 2, and that of exponentiated gradient B (log(2d) / (eta m)
# + 5 eta G^2) for eta <= 1/(2G), where G^2 bounds each coordinate (Kukliansky & Shamir 2015, Theorems 3.1 and 4.1). The
# step size eta minimises this, and the bound is the minimum.


def ogd_step(d: int, m: int, k_x: int | None) -> float:
    """Step size of online gradient descent on the 2-ball.

    Hazan & Koren 2012, Theorem 3.1: ``sqrt(k_x / (2 d m))``. With the exact gradient (k_x None), whose norm is at
    most 2B instead of ``2B sqrt(2d/k_x)``, the same regret bound (Zinkevich 2003) gives ``1 / sqrt(m)``.
    """
    return sqrt(k_x / (2 * d * m)) if k_x else 1 / sqrt(m)


def aerr_bound(B: float, d: int, m: int, k_x: int | None) -> float:
    """Excess risk of AERR: ``4 B^2 sqrt(2d / (k_x m))``; k_x None: exact gradients.

    Hazan & Koren 2012, Theorem 3.1.
    """
    return 4 * B**2 * sqrt(uniform_spread(d, k_x) / m)


def eg_step(B: float, d: int, m: int, k_x: int | None) -> float:
    """Step size of exponentiated gradient on the 1-ball.

    Hazan & Koren 2012, Theorem 3.4: ``sqrt(log(2d) / (5 m)) / G`` with ``G = 2B sqrt(2d/k_x)``, which is
    ``1/(4B) sqrt(2 k_x log(2d) / (5 m d))``: the theorem prints 1/(4B^2), its proof gives 1/(4B). With the exact
    gradient (k_x None), ``G = 2B``.
    """
    return eg_step_for(B, uniform_spread(d, k_x), d, m)


def aelr_bound(B: float, d: int, m: int, k_x: int | None) -> float:
    """Excess risk of AELR: ``4 B^2 sqrt(10 d log(2d) / (k_x m))``; k_x None: exact gradients.

    Hazan & Koren 2012, Theorem 3.4, for ``m >= log(2d)``.
    """
    return 4 * B**2 * sqrt(5 * log(2 * d) * uniform_spread(d, k_x) / m)


def ddaerr_step(second_moments: np.ndarray, m: int, k_x: int, prices: np.ndarray | None = None) -> float:
    """Step size of DDAERR for known ``E x_i^2``, shape (d,): ``1 / sqrt(m (H/k_x + 1))``, H their 1/2-norm.

    Kukliansky & Shamir 2015, Theorem 3.3. For price-aware draws with prices c, shape (d,), ``H = sum_i E x_i^2 / q_i``
    is ``(sum_i sqrt(E x_i^2 c_i)) (sum_i sqrt(E x_i^2 / c_i))``.
    """
    if prices is None:
        H = half_norm(second_moments)
    else:
        H = float(np.sqrt(second_moments * prices).sum() * np.sqrt(second_moments / prices).sum())
    return 1 / sqrt((H / k_x + 1) * m)


def ddaelr_step(B: float, second_moments: np.ndarray, m: int, k_x: int) -> float:
    """Step size of DDAELR for known ``E x_i^2``, shape (d,): ``1/(2B) sqrt(log(2d) / (5 m (H/k_x + 1)))``, H their sum.

    Kukliansky & Shamir 2015, Theorem 4.4.
    """
    return eg_step_for(B, float(np.sum(second_moments)) / k_x + 1, len(second_moments), m)


def half_norm(values: np.ndarray) -> float:
    """Return the 1/2-norm ``(sum_i sqrt(v_i))^2``."""
    return float(np.sqrt(values).sum()) ** 2


def uniform_spread(d: int, k_x: int | None) -> float:
    """Return the spread of uniform draws; 1 with full information (k_x None)."""
    return 2 * d / k_x if k_x else 1.0


def eg_step_for(B: float, spread: float, d: int, m: int) -> float:
    """Return the step size ``sqrt(log(2d) / (5m)) / G`` for ``G^2 = 4 B^2 spread``."""
    G = 2 * B * sqrt(spread)
    return sqrt(log(2 * d) / (5 * m)) / G


# The same algorithms for F x G replicas at once: a step changes few coordinates of u in w = c u, and the projection or
# the normalisation of all others is one change of c, so that every w_t is that of the listing, up to rounding.
#
#               OGD                                           EG
#     u         w / c                                         2 exp(-M) sinh(theta)
#     c         1 at first; a projection of v multiplies it   B / Z, Z = |u|_1 + 2 N = 2 exp(-M) sum(cosh(theta)),
#               by B / max(|v|_2, B)                          N = exp(-M) sum(exp(-|theta|))
#     V + C u   the sum of all iterates, where C sums c over the steps since the last fold
#
# A fold adds C u to V, and C begins again at 0; it is due when c has changed by `FOLD_RATIO` since the last one. If c
# or Z is about to leave the range of numbers, u is rescaled then: c becomes 1, or M the largest exponent.

RESCALE_BELOW = 1e-60
"""Smallest factor c of OGD before u is rescaled, so that ``u^2`` cannot overflow."""

RESCALE_RATIO = 1e100
"""Largest Z of EG, or 1/Z, before u is rescaled."""


class OGD(ScaledRegressors):
    """State of online gradient descent on the ball ``|w|_2 <= B``.

    Hazan & Koren 2012, Algorithm AERR; Kukliansky & Shamir 2015, GAERR. ``w <- v B / max(|v|_2, B)``,
    ``v = w - eta g~``; inner product draws from ``p_j = w_j^2 / |w|_2^2``; ``w_1 = 0``.

    Parameters are those of `ScaledRegressors`.
    """

    size = np.square

    def _prepare(self) -> None:
        self._c_folded = self._c.copy()
        # Projecting twice would change the last bits, so only streams that have moved are projected.
        self._moved = np.zeros(len(self._c), dtype=bool)

    def _begin(self, start: np.ndarray) -> None:
        self._u = self.layout.pad(start)
        self._update_trees(self.layout.nodes(np.arange(len(self._u))), np.arange(len(start)))

    def project_and_accumulate(self, now: np.ndarray) -> None:
        """Project, then add the regressors to the sum for the steps after those held up to ``now``, shape (F,)."""
        norm = self._c * np.sqrt(self._norm)
        self._c *= np.where(self._moved[:, None], self.B / np.maximum(norm, self.B), 1.0)
        self._moved[:] = False
        fallen = self._c * FOLD_RATIO < self._c_folded
        if fallen.any():
            self._fold(fallen)
            self._rescale(fallen & (self._c < RESCALE_BELOW))
            self._c_folded[fallen] = self._c[fallen]
        self._C += (now - self.held)[:, None] * self._c
        self.held = now

    def step(self, taken: Round, residual: np.ndarray) -> None:
        """Take the gradient step ``w -= eta phi~ x~`` for residual estimates of shape (F, G)."""
        stream, row = taken.stream, taken.row
        self._moved[taken.streams] = True
        change = (residual * (self.eta / self._c)).take(stream, axis=0)
        change *= taken.values
        self._u[row] = self._u.take(row, axis=0) - change
        change *= self._C.take(stream, axis=0)
        self._V[row] = self._V.take(row, axis=0) + change
        self._update_trees(taken.nodes, taken.streams)

    def _rescale(self, replicas: np.ndarray) -> None:
        """Set c to 1 for replicas, bool of shape (F, G), so that u are their regressors."""
        for f, rows, _ in self.active.by_stream(replicas):
            self._u[rows] *= np.where(replicas[f], self._c[f], 1.0)
            self._update_trees(self.layout.nodes(rows), np.array([f]))
        self._c[replicas] = 1.0


class EG(ScaledRegressors):
    """State of the exponentiated gradient algorithm on the ball ``|w|_1 <= B``.

    Hazan & Koren 2012, Algorithm AELR; Kukliansky & Shamir 2015, GAELR. ``g^- = clip(g~, 1/eta)``,
    ``theta -= eta g^-``, ``w = B sinh(theta) / sum(cosh(theta))``; inner product draws from
    ``p_j = |w_j| / |w|_1``; ``theta_1 = 0``, hence ``w_1 = 0``.

    Parameters are those of `ScaledRegressors`; regressors to start from need a 1-norm below B.
    """

    size = np.abs

    def _prepare(self) -> None:
        self._theta = np.zeros_like(self._u)
        self._M, self._N = np.zeros_like(self._c), np.full_like(self._c, self.layout.d)
        self._Z, self._Z_folded = 2 * self._N, 2 * self._N

    def _begin(self, start: np.ndarray) -> None:
        rows = np.ascontiguousarray(start.transpose(0, 2, 1))  # so that no sum depends on the number of settings
        self._theta = self.layout.pad(aelr_exponents(rows, self.B[:, None]).transpose(0, 2, 1))
        self._rescale(np.ones_like(self._c, dtype=bool))

    def project_and_accumulate(self, now: np.ndarray) -> None:
        """Add the regressors to the sum for the steps after those held up to ``now``, shape (F,)."""
        self._Z = self._norm + 2 * self._N
        ratio = self._Z / self._Z_folded
        if ratio.max() > FOLD_RATIO or ratio.min() * FOLD_RATIO < 1:
            changed = (ratio > FOLD_RATIO) | (ratio * FOLD_RATIO < 1)
            self._fold(changed)
            self._rescale(changed & ((self._Z > RESCALE_RATIO) | (self._Z * RESCALE_RATIO < 1)))
            self._Z_folded[changed] = self._Z[changed]
        self._c = self.B / self._Z
        self._C += (now - self.held)[:, None] * self._c
        self.held = now

    def step(self, taken: Round, residual: np.ndarray) -> None:
        """Take the step ``theta -= eta clip(phi~ x~, 1/eta)`` for residual estimates of shape (F, G)."""
        stream, row = taken.stream, taken.row
        change = (residual * self.eta).take(stream, axis=0) * taken.values
        old = self._theta.take(row, axis=0)
        theta = old - np.minimum(np.maximum(change, -1.0), 1.0)
        M = self._M.take(stream, axis=0)
        u, small = _parts(theta, M)
        self._theta[row] = theta
        moved = (self._u.take(row, axis=0) - u) * self._C.take(stream, axis=0)
        self._V[row] = self._V.take(row, axis=0) + moved
        self._u[row] = u
        small -= np.exp(-np.abs(old) - M)
        self._N[taken.streams] += np.add.reduceat(small, taken.stream_start, axis=0)
        self._update_trees(taken.nodes, taken.streams)

    def _rescale(self, replicas: np.ndarray) -> None:
        """Set the references M of replicas, bool of shape (F, G), to their largest exponents."""
        for f, rows, settings in self.active.by_stream(replicas):
            where = rows[:, None], settings
            theta = self._theta[where]
            M = np.abs(theta).max(axis=0)
            self._u[where], small = _parts(theta, M)
            self._M[f, settings] = M
            untouched = self.layout.d - rows.size
            self._N[f, settings] = np.ascontiguousarray(small.T).sum(axis=1) + untouched * np.exp(-M)
            self._update_trees(self.layout.nodes(rows), np.array([f]))
            self._Z[f] = self._norm[f] + 2 * self._N[f]


def _parts(theta: np.ndarray, M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``2 exp(-M) sinh(theta)`` and ``exp(-|theta| - M)``, without overflow for ``|theta| <= M + 700``."""
    size = np.abs(theta)
    small = np.exp(-size - M)
    return np.copysign(np.exp(size - M) - small, theta), small


STATES: Mapping[str, Callable[..., OGD | EG | Pegasos]] = {"ogd": OGD, "eg": EG, "pegasos": Pegasos}
"""The state of each update."""

# The learners.


@dataclass(frozen=True)
class GuidedLearner(SplitBudgetLearner):
    """Base class of learners whose draws may be guided by second moments and by prices."""

    update: str = update_option(*UPDATES)
    data_point: str = option("the draw of attributes for the data point", one_of("moment"), default="moment")
    inner_product: str = option(
        "the draw of attributes for the inner product", one_of("weight", "moment"), default="weight"
    )
    literal_split: str = option("the meaning of split=literal", one_of("one", "half"), default="one")
    prices: str = prices_option(default="aware")

    def literal(self, k: int) -> int:
        """Return the draws for the inner product of ``split=literal``, by the option `literal_split`."""
        return 1 if self.literal_split == "one" else k // 2

    @property
    def norm(self) -> int:
        """That of the ball of its update."""
        return 2 if self.update == "ogd" else 1

    @property
    def inactive_options(self) -> Sequence[str]:
        """Prices where no draw depends on them, and the meaning of a split that was not chosen."""
        return (
            *(() if self._guided_by_prices else ("prices",)),
            *(() if self.split == "literal" else ("literal_split",)),
        )

    @property
    def cost_aware(self) -> Sequence[str]:
        """The draws that moments guide, if they are to be price-aware."""
        return self._guided_by_prices if self.prices == "aware" else ()

    @property
    def _guided_by_prices(self) -> Sequence[str]:
        data_point = self.data_point == "moment" and self.update == "ogd"
        return (*(("k_x",) if data_point else ()), *(("k_ip",) if self.inner_product == "moment" else ()))

    @property
    def bitwise_portable(self) -> bool:
        """Whether round-off stays small in the path of a regressor, which it does not for gradient descent.

        Gradient descent draws for the inner product with ``w_j^2 / |w|^2``, and weighs what it reveals by
        ``|w|^2 / w_j``, which is unbounded where w_j is small by cancellation. EG's weights are bounded by ``|w|_1``,
        and the steps of Pegasos shrink what came before.
        """
        return self.update != "ogd"


_BOUNDS = {"ogd": (aerr_bound, "2-ball"), "eg": (aelr_bound, "inf-ball")}


def gradient_theorem(update: str, k_x: Callable[[int], int] | None) -> Theorem | None:
    """Return the theorem of gradient estimates with uniform draws, or of exact gradients.

    Hazan & Koren 2012, Theorems 3.1 and 3.4; with exact gradients the same inequalities. Their loss has a factor 1/2.

    Parameters
    ----------
    update : str
        The update.
    k_x : callable or None
        Returns the draws for the data point that a budget leaves; None with exact gradients.
    """
    if update not in _BOUNDS:
        return None
    bound, domain = _BOUNDS[update]

    def excess(B: float | None, d: int, m: int, k: int) -> float:
        assert B is not None
        return 2 * bound(B, d, m, k_x(k) if k_x else None)

    return Theorem(excess, domain)


@dataclass(frozen=True)
class GradientLearner(GuidedLearner):
    """Learners of the AER, AERR and AELR families; options choose the update and the draws of its two estimates.

    Attributes
    ----------
    update : {'ogd', 'eg', 'pegasos'}
        The update rule.
    data_point : {'uniform', 'subset', 'moment'}
        The sampler of the data point: the first two have ``q = 1/d``, the last depends on the moments.
    inner_product : {'weight', 'moment'}
        Whether the draws for the inner product depend on the moments, too; not for 'pegasos'.
    average : {'all', 'suffix', 'last'}
        Which iterates are averaged.
    control_variate : {'none', 'mean', 'label'}
        Whether the draws for the inner product estimate the deviation from the attributes' means, or from their means
        given the target, see `budgetreg.algorithms.engine`; 'none' for 'pegasos'.
    """

    data_point: str = option("the draw of attributes for the data point", one_of("uniform", "subset", "moment"))
    moments: str = option(
        "the source of the attributes' second moments",
        one_of("given", "pilot") | NOTHING,
        default="given",
        null_for_own_data="pilot",
        tried=(),
    )
    control_variate: str = option("the control variate", one_of("none", "mean", "label"), default="none")

    core = "partial"
    continues = True
    parameters = (RADIUS, STEP_SIZE, Parameter("lambda", "the regularisation", absolute=True, tried=(1.0, 3.0)))
    unequal_lengths = True

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Run all settings along all streams, one pass; see `Learner.fit`.

        Settings are ``B``, and ``eta`` or ``lambda``.
        """
        F, d = accessor.n_streams, accessor.d
        options = {}
        if self.inner_product == "moment":
            assert given.moments is not None
            options["root_moments"] = inner_product_weights(given.moments, given.prices)
        samplers: Sequence[DataPointSampler]
        if self.data_point == "moment":
            assert given.moments is not None
            samplers = list(map(Proportional, data_point_weights(self.update, given.moments, given.prices)))
        else:
            samplers = [DATA_POINT_SAMPLERS[self.data_point]] * F
        state = STATES[self.update](F, d, given.split.k_ip, settings, **options)
        control = None
        if self.control_variate != "none":
            assert isinstance(state, ScaledRegressors)
            control = ControlVariate(state, F, d, slope=self.control_variate == "label")
        yield from run(accessor, state, checkpoints, rngs, samplers, given.split, average=self.average, control=control)

    @property
    def tuned(self) -> Sequence[str]:
        """The radius, and the step size or the regularisation."""
        return ("B", "lambda") if self.update == "pegasos" else ("B", "eta")

    def theory(self, run: RunContext, B: float | None) -> Mapping[str, float]:
        """Return what the theorems of the three papers prescribe."""
        assert B is not None
        d, m, k_x, guided = run.d, run.m, run.k_x, self.data_point == "moment"
        if self.update == "pegasos":
            return {"lambda": pegasos_regularisation(B, d, m, run.k)}
        if self.update == "eg":
            return {"eta": ddaelr_step(B, run.moments(), m, k_x) if guided else eg_step(B, d, m, k_x)}
        return {"eta": ddaerr_step(run.moments(), m, k_x, run.prices) if guided else ogd_step(d, m, k_x)}

    @property
    def _guided(self) -> bool:
        return "moment" in (self.data_point, self.inner_product)

    @property
    def inactive_options(self) -> Sequence[str]:
        """Also the source of moments that guide no draw."""
        return (*super().inactive_options, *(() if self._guided else ("moments",)))

    @property
    def given_moments(self) -> str | None:
        """The source of the moments that guide draws."""
        return self.moments if self._guided else None

    @property
    def missing(self) -> Missing:
        """Estimates are weighed; control variates are not."""
        return Missing.WEIGHED if self.control_variate == "none" else Missing.REFUSED

    @property
    def words(self) -> Sequence[str]:
        """What it sees and how it moves."""
        return "k attributes per example", UPDATES.get(self.update, "")

    @property
    def theorem(self) -> Theorem | None:
        """The regret bounds of Hazan & Koren 2012, for what they analyse."""
        literal = self.inner_product == "weight" and self.control_variate == "none"
        proved = self.data_point == "uniform" and literal and self.average == "all"
        return gradient_theorem(self.update, lambda k: self.split_budget(k).k_x) if proved else None

    def refuse(self) -> str | None:
        """Refuse what Pegasos cannot do."""
        if self.update == "pegasos" and self._guided:
            return "algo.update=pegasos: its draws cannot be guided by moments; use ogd or eg"
        if self.update == "pegasos" and self.control_variate != "none":
            return "algo.update=pegasos: its inner product has no control variate; use ogd or eg"
        return None
