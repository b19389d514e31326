"""AESVR: support-vector regression that sees k attributes of an example, k on average if GenEst estimates the slope.

The loss ``|u|_delta = max(|u| - delta, 0)`` of the residual ``u = <w, x> - y`` has a kink, where there is no unbiased
estimate of the slope. Smoothed at the scale eps it is within eps of

    f_eps(u) = (eps/2) rho((u - delta)/eps) + (eps/2) rho((u + delta)/eps) - delta
    rho(u) = u erf(u) + exp(-u^2)/sqrt(pi)

whose slope is a power series, as ``rho' = erf = sum_n a_n u^n``. GenEst draws an order n with probability
``2^{-(n+1)}``, then n independent unbiased estimates ``theta_r`` of u, and returns ``2^{n+1} a_n prod_r theta_r``,
whose mean is the series. The plug-in estimate is the slope at an estimate of u.

References
----------
E. Hazan, T. Koren. Linear Regression with Limited Observation. ICML 2012, Procedure 3 and Algorithm 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import factorial, log2, pi, sqrt
from typing import TYPE_CHECKING

import numpy as np

from budgetreg.algorithms.hazan_koren_2012.aerr_aelr import aerr_update, ogd_step
from budgetreg.algorithms.learner import (
    UPDATES,
    BudgetSplit,
    Cost,
    Observation,
    Rngs,
    RunContext,
    Settings,
    SideInformation,
    SplitBudgetLearner,
    Trajectory,
    update_option,
)
from budgetreg.algorithms.vectors import Averager, Steps, data_point, inner_product, invert
from budgetreg.common.errors import ConfigError
from budgetreg.common.streams import BLOCK, blocks, uniform
from budgetreg.config.options import NOT_NEGATIVE, POSITIVE, one_of, option

if TYPE_CHECKING:
    from budgetreg.algorithms.tasks import Regression
    from budgetreg.metering.accessor import Accessor

ORDERS = 128
"""Number of orders in the tables; a higher one has probability 2^-128."""

COEFFICIENTS = np.zeros(ORDERS)
"""``a_n`` for n below `ORDERS`; ``a_{2i+1} = (2/sqrt(pi)) (-1)^i / (i! (2i+1))``, Hazan & Koren 2012, Eq. 7."""
COEFFICIENTS[1::2] = [2 / sqrt(pi) * (-1) ** i / (factorial(i) * (2 * i + 1)) for i in range(ORDERS // 2)]

WEIGHTS = COEFFICIENTS * 2.0 ** np.arange(1, ORDERS + 1)
"""``2^{n+1} a_n``, the weight of a product of n factors."""

# The algorithm as printed, one replica and one example at a time.


def aesvr(
    X: np.ndarray,
    y: np.ndarray,
    attributes: np.ndarray,
    calls: Sequence[Sequence[tuple[int, Iterator[float]]]],
    B: float,
    eta: float,
    delta: float,
    eps: float,
) -> Steps:
    """Run Algorithm 4, AESVR: Algorithm 1, AERR, with lines 8 and 9 replaced by two calls of GenEst.

    Parameters
    ----------
    X, y, attributes, B, eta
        As for `budgetreg.algorithms.hazan_koren_2012.aerr_aelr.aerr`.
    calls : sequence of two pairs (int, iterator of float)
        For each example and call, the order n and uniforms that become attributes.
    delta, eps : float
        The residual that costs nothing, and the scale of the smoothing.
    """
    w = np.zeros(X.shape[1])
    for x, target, drawn, ((n_plus, u_plus), (n_minus, u_minus)) in zip(X, y, attributes, calls, strict=True):
        phi, j = float(smoothed_slope(np.array(-target), delta, eps)), list[int]()
        if w.any():  # line 2; at 0 the residual is known, and needs no draw
            plus, j = gen_est(w, x / eps, (target + delta) / eps, 2 * B / eps, n_plus, u_plus)
            minus, more = gen_est(w, x / eps, (target - delta) / eps, 2 * B / eps, n_minus, u_minus)
            phi, j = (plus + minus) / 2, j + more
        yield w, np.array([*drawn, *j])
        w = aerr_update(w, phi, data_point(x, drawn), B, eta)


def gen_est(
    w: np.ndarray, x: np.ndarray, y: float, B: float, n: int, uniforms: Iterator[float]
) -> tuple[float, list[int]]:
    """Return the estimate of ``f'(<w, x> - y)`` by Procedure 3, GenEst, and the attributes drawn for it.

    Line 2 draws the order n with probability ``2^{-(n+1)}``. An even one gives 0 for any draws, and needs none.
    """
    N = np.ceil(np.round(4 * B**2, 9))  # line 1
    if n % 2 == 0:
        return 0.0, []
    theta, drawn = [], []
    for _ in range(n):  # 3 to 13: each factor from one draw, or the mean of N
        u = [next(uniforms) for _ in range(1 if n <= 2 * log2(N) else int(N))]
        j = invert(w**2, np.array(u))
        theta.append(inner_product(w, x, w**2, j) - y)
        drawn += j.tolist()
    return float(2.0 ** (n + 1) * COEFFICIENTS[n] * np.prod(theta)), drawn  # 14


def svr_step(B: float, d: int, m: int, k_x: int) -> float:
    """Step size of gradient descent for a loss of slope at most 1: ``2B sqrt(k_x / (2 d m))``.

    Hazan & Koren 2012 leave the step size of AESVR to tuning. This one minimises the excess risk for
    ``G = sqrt(2d/k_x)``, which holds for residual estimates of size at most 1. Those of GenEst are not bounded and need
    a smaller step size.
    """
    return 2 * B * ogd_step(d, m, k_x)


# The same for F x G replicas at once: all of them draw and step together at each example, as arrays (F, G, d), each in
# the order of the listing.

INNER_PRODUCT_DRAWS = 3
"""Upper bound on the mean number of attributes for the two calls of GenEst per example, see `expected_draws`.

The paper has 6, because it draws for even orders too. The mean is at most 2.06 for any N, and 3 is the next
whole number.
"""


def smoothed_slope(u: np.ndarray, delta: float, eps: float) -> np.ndarray:
    """Return ``f_eps'(u)``, between -1 and 1."""
    from scipy.special import erf  # here, as scipy is slow to load and plans do not need it

    return np.asarray(erf((u - delta) / eps) + erf((u + delta) / eps)) / 2


def averaged_draws(B: np.ndarray, eps: float) -> np.ndarray:
    """Return N, the number of draws per factor in products of many factors: ``ceil(16 B^2 / eps^2)``.

    GenEst needs ``ceil(4 B'^2)``, and AESVR calls it with ``x/eps`` and ``(y ± delta)/eps``: ``B' = 2B/eps``.
    """
    return np.ceil(np.round(np.square(4 * B / eps), 9)).astype(np.intp)


def draws_per_factor(n: np.ndarray, N: np.ndarray) -> np.ndarray:
    """Return the number of draws averaged in each of n factors: 1 if ``n <= 2 log2 N``, else N."""
    return np.where(n <= 2 * np.log2(N), 1, N)


def expected_draws(N: int) -> float:
    """Return the mean number of attributes for the two calls of GenEst per example."""
    n = np.arange(1, ORDERS, 2)
    return float(2 * (n * draws_per_factor(n, np.array(N)) * 0.5 ** (n + 1)).sum())


def second_moment(theta: float, variance: float, N: int) -> float:
    """Return the exact ``E phi^2`` of GenEst; infinite where it overflows.

    The bound ``exp(O(log^2 B))`` of Lemma 4.1 in the paper does not hold: averaging N draws reduces their variance, not
    their mean.

    Parameters
    ----------
    theta : float
        The scaled residual ``(<w, x> - y ± delta)/eps`` that is estimated.
    variance : float
        Variance of the estimate of theta from one draw.
    N : int
        See `averaged_draws`.
    """
    n = np.arange(1, ORDERS, 2)
    with np.errstate(over="ignore"):
        squares = np.power(theta**2 + variance / draws_per_factor(n, np.array(N)), n)
        return float((COEFFICIENTS[n] * WEIGHTS[n] * squares).sum())


class PlugIn:
    """The slope at an estimate of the residual: at most 1, but biased if the loss is not quadratic.

    Parameters
    ----------
    delta, eps : float
        Parameters of the smoothed loss.
    k_ip : int
        Draws for the inner product.
    """

    def __init__(self, delta: float, eps: float, k_ip: int) -> None:
        self._delta, self._eps, self._k_ip = delta, eps, k_ip

    def next_block(self, rngs: Sequence[np.random.Generator]) -> None:
        """Draw what the next `BLOCK` examples of each stream need."""
        self._uniforms = np.stack([rng.random((BLOCK, self._k_ip)) for rng in rngs])

    def estimate(self, accessor: Accessor, position: int, w: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return ``phi~``, shape (F, G); if ``w = 0`` the inner product is known and nothing is drawn."""
        cumulative = np.cumsum(np.square(w), axis=2)
        j, coefficient = _draw(w, cumulative, self._uniforms[:, position])
        nonzero = cumulative[:, :, -1] > 0
        x = accessor.reveal_some(position, j, np.broadcast_to(nonzero[:, :, None], j.shape))
        return smoothed_slope((coefficient * x).mean(axis=2) - y[:, None], self._delta, self._eps)


class GenEst:
    """The paper's unbiased estimate, whose second moment grows fast with ``1/eps``.

    Parameters
    ----------
    B : ndarray of float, shape (G,)
        Radii, which determine how many draws are averaged.
    delta, eps : float
        Parameters of the smoothed loss.
    rngs : sequence of numpy.random.Generator
        One per stream.
    """

    AT_HAND = 8
    """Uniforms drawn in advance for each call. A call that needs more, which is rare, reads them from a generator of
    its own, so that no replica's draws depend on how many another needs."""

    def __init__(self, B: np.ndarray, delta: float, eps: float, rngs: Sequence[np.random.Generator]) -> None:
        self._N = averaged_draws(B, eps)
        self._delta, self._eps = delta, eps
        self._keys = [rng.integers(2**64, size=2, dtype=np.uint64) for rng in rngs]
        self._block = -1

    def next_block(self, rngs: Sequence[np.random.Generator]) -> None:
        """Draw what the next `BLOCK` examples of each stream need."""
        self._block += 1
        orders = np.stack([rng.geometric(0.5, (BLOCK, 2)) - 1 for rng in rngs])
        self._orders = np.where(orders % 2, orders, 0)  # an even order gives 0 for any draws
        self._uniforms = np.stack([rng.random((BLOCK, 2, self.AT_HAND)) for rng in rngs])

    def estimate(self, accessor: Accessor, position: int, w: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return ``phi~``, shape (F, G); if ``w = 0`` the slope is known and nothing is drawn."""
        cumulative = np.cumsum(np.square(w), axis=2)
        nonzero = cumulative[:, :, -1] > 0
        calls = []
        for call, target in enumerate((y + self._delta, y - self._delta)):
            n = self._orders[:, position, call]
            repeats = draws_per_factor(n[:, None], self._N)
            count = n[:, None] * repeats * nonzero
            if not count.any():
                calls.append(np.zeros(nonzero.shape))
                continue
            j, coefficient = _draw(w, cumulative, self._read(position, call, count.max(axis=1)))
            x = accessor.reveal_some(position, j, np.arange(j.shape[2]) < count[:, :, None])
            theta = (coefficient * x - target[:, None, None]) / self._eps
            calls.append(WEIGHTS[n][:, None] * _product(theta, count, repeats))
        return np.where(nonzero, (calls[0] + calls[1]) / 2, smoothed_slope(-y[:, None], self._delta, self._eps))

    def _read(self, position: int, call: int, count: np.ndarray) -> np.ndarray:
        """Return uniforms, shape (F, max(count)); those beyond a stream's count are 0 or unused."""
        uniforms = np.zeros((count.size, max(self.AT_HAND, int(count.max()))))
        uniforms[:, : self.AT_HAND] = self._uniforms[:, position, call]
        for f in np.flatnonzero(count > self.AT_HAND):
            # The lowest word counts the numbers read; the other words identify the call.
            counter = np.array([0, self._block, position, call], dtype=np.uint64)
            rng = np.random.Generator(np.random.Philox(key=self._keys[f], counter=counter))
            uniforms[f, self.AT_HAND : count[f]] = rng.random(count[f] - self.AT_HAND)
        return uniforms[:, : count.max()]


def _product(theta: np.ndarray, count: np.ndarray, repeats: np.ndarray) -> np.ndarray:
    """Return the product of factors, each the mean of `repeats` of the `count` estimates ``theta[f, g]``."""
    product = np.ones(count.shape)
    single = np.where(repeats == 1, count, 0)
    for r in range(single.max()):
        np.multiply(product, theta[:, :, r], out=product, where=r < single)
    for f, g in np.argwhere((repeats > 1) & (count > 0)):
        product[f, g] = theta[f, g, : count[f, g]].reshape(-1, repeats[f, g]).mean(axis=1).prod()
    return product


def _draw(w: np.ndarray, cumulative: np.ndarray, uniforms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Draw attributes with probabilities ``w_j^2 / |w|^2``.

    Parameters
    ----------
    w, cumulative : ndarray of float, shape (F, G, d)
        Regressors, and the cumulative sums of their squares.
    uniforms : ndarray of float, shape (F, n)
        Numbers in [0, 1), shared by the settings of a stream.

    Returns
    -------
    attributes : ndarray of int, shape (F, G, n)
    coefficients : ndarray of float, shape (F, G, n)
        ``w_j / p_j = |w|^2 / w_j``; 0 where w is.
    """
    square = cumulative[:, :, -1]
    thresholds = square[:, :, None] * uniforms[:, None, :]
    n = thresholds.shape[2]
    below = [np.count_nonzero(cumulative <= thresholds[:, :, r, None], axis=2) for r in range(n)]
    attributes = np.minimum(np.stack(below, axis=2), w.shape[2] - 1)
    drawn = np.take_along_axis(w, attributes, axis=2)
    return attributes, np.divide(square[:, :, None], drawn, out=np.zeros_like(drawn), where=drawn != 0)


MOST_DRAWS = 1e8
"""Draws that GenEst may average for one factor."""

LARGE_SECOND_MOMENT = 1e4
"""Of GenEst's estimates of a slope that is 1 at most: beyond it, nothing can be learned in a pass of usual length."""

_PLUG_IN = "the plug-in is biased, and bounded instead"


@dataclass(frozen=True)
class SupportVectorLearner(SplitBudgetLearner):
    """AESVR: gradient descent for the loss ``max(|residual| - delta, 0)``, smoothed at the scale eps.

    Attributes
    ----------
    residual : {'gen_est', 'plug_in'}
        The paper's estimate of the slope, which is unbiased; or the slope at an estimate of the residual, which is
        biased but bounded.
    delta : float
        Residuals up to this cost nothing, at least 0.
    eps : float
        Scale of the smoothing, above 0.
    average : {'all', 'suffix', 'last'}
        Which iterates are averaged.
    """

    update: str = update_option("ogd")
    residual: str = option("the estimate of the residual's slope", one_of("gen_est", "plug_in"))
    delta: float = option("the residual that costs nothing", NOT_NEGATIVE, tried=(0, 0.3))
    eps: float = option("the scale of the smoothing", POSITIVE, tried=(1.0, 4.0))

    core = "svr"
    continues = True
    unequal_lengths = True

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Run all settings along all streams, one pass; see `Learner.fit`.

        It is gradient descent on the 2-ball as in AERR, along ``phi~ x~``: x~ estimates the data point, phi~ the slope
        of the smoothed loss at the residual (see `GenEst`). All F x G replicas take each step
        together, as arrays (F, G, d); a replica's result does not depend on the others. Settings are ``B`` and ``eta``.
        GenEst's draws for one example are unbounded, so the accessor must have no budget for it.
        """
        F, G, d = accessor.n_streams, accessor.n_settings, accessor.d
        B, eta = settings["B"], settings["eta"]
        slope: GenEst | PlugIn = PlugIn(self.delta, self.eps, given.split.k_ip)
        if self._unbiased:
            slope = GenEst(B, self.delta, self.eps, rngs)
        averager = Averager(checkpoints, self.average)
        w, total = np.zeros((F, G, d)), np.zeros((F, G, d))
        stream, example = np.ogrid[:F, :BLOCK]
        for start, stop in blocks(0, checkpoints[-1]):
            attributes = np.stack([uniform(rng, d, given.split.k_x) for rng in rngs])[:, : stop - start]
            slope.next_block(rngs)
            accessor.open(start, stop)
            y = accessor.targets()
            points = np.zeros((F, stop - start, d))
            cells = stream[..., None], example[:, : stop - start, None], attributes
            np.add.at(points, cells, accessor.reveal_block(attributes) * (d / given.split.k_x))
            for position in range(stop - start):
                total += w
                t = start + position + 1
                output = averager.observe(t, total.copy, w.copy)
                if output:
                    yield output[0], np.ascontiguousarray(output[1].swapaxes(1, 2))
                phi = slope.estimate(accessor, position, w, y[:, position])
                w = aerr_update(w, phi, points[:, position, None, :], B, eta)

    @property
    def _unbiased(self) -> bool:
        return self.residual == "gen_est"

    @property
    def task(self) -> Regression:
        """A regressor, judged by this loss too."""
        from budgetreg.algorithms.tasks import Regression  # here, as an algorithm alone needs no judge

        return Regression(self.delta)

    @property
    def observation(self) -> Observation:
        """GenEst draws a random number of attributes."""
        return Observation.K_ON_AVERAGE if self._unbiased else Observation.K

    def split_budget(self, k: int) -> BudgetSplit:
        """Set 3 draws aside for the inner product, which GenEst's cost 2.06 at most; the plug-in's split is free.

        Raises
        ------
        ConfigError
            If the budget is too small.
        """
        if not self._unbiased and self.split != "literal":
            return super().split_budget(k)
        if k <= INNER_PRODUCT_DRAWS:
            raise ConfigError(
                f"k={k}: {self.name} needs a budget of at least {INNER_PRODUCT_DRAWS + 1}, one attribute for the data "
                f"point and {INNER_PRODUCT_DRAWS} for the inner product"
            )
        return BudgetSplit(k - INNER_PRODUCT_DRAWS, INNER_PRODUCT_DRAWS)

    def cost(self, d: int, k: int, settings: Mapping[str, float]) -> Cost:
        """Return what an example costs, GenEst's draws on average; nothing is drawn for the slope while it is known."""
        k_x, k_ip = self.split_budget(k)
        if not self._unbiased:
            return Cost(k_x + k_ip, k_x)
        return Cost(k_x + expected_draws(int(averaged_draws(np.array(settings["B"]), self.eps))), k_x)

    def theory(self, run: RunContext, B: float | None) -> Mapping[str, float]:
        """Return the step size of Hazan & Koren 2012."""
        assert B is not None
        return {"eta": svr_step(B, run.d, run.m, run.k_x)}

    @property
    def inactive_options(self) -> Sequence[str]:
        """The split, which GenEst decides."""
        return ("split",) if self._unbiased else ()

    def notes(self, run: RunContext, settings: Mapping[str, Sequence[float]]) -> Sequence[str]:
        """Warn if the second moment of GenEst's estimates is hopeless, for the largest target and ``|x|_2 <= 1``.

        Raises
        ------
        ConfigError
            If one of them would take more draws than can be made.
        """
        B = max(settings["B"])
        if not self._unbiased:
            return ()
        if 16 * (B / self.eps) ** 2 > MOST_DRAWS:
            raise ConfigError(
                f"algo.eps={self.eps:g}: GenEst cannot work with targets up to {run.largest:.3g} and B up to {B:.3g}; "
                "give algo.eps and algo.delta in units of the target, or take algo.residual=plug_in"
            )
        N = int(averaged_draws(np.array(B), self.eps))
        moment = second_moment((run.largest + self.delta) / self.eps, (B / self.eps) ** 2, N)
        if moment <= LARGE_SECOND_MOMENT:
            return ()
        return (
            f"algo.eps={self.eps:g} is small for targets up to {run.largest:.3g} and B up to {B:g}: GenEst's estimates "
            f"of a slope of at most 1 have a second moment of {moment:.1g}; raise algo.eps, or take "
            "algo.residual=plug_in",
        )

    @property
    def words(self) -> Sequence[str]:
        """What it sees and how it moves."""
        return "k attributes per example (residual=gen_est: on average)", UPDATES.get(self.update, "")

    @property
    def skipped_checks(self) -> Mapping[str, str]:
        """The plug-in is biased."""
        alone = "no learner of this loss sees all attributes; the slope itself is compared with by 'unbiased'"
        biased = {} if self._unbiased else {"unbiased": _PLUG_IN, "second moments": _PLUG_IN}
        return {"full at k=d": alone, **super().skipped_checks, **biased}
