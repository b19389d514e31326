"""AESVR: support-vector regression that sees k attributes of an example, k on average if GenEst estimates the slope.

References
----------
E. Hazan, T. Koren. Linear Regression with Limited Observation. ICML 2012, Procedure 3 and Algorithm 4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from budgetreg.algorithms import bases
from budgetreg.algorithms.averages import Averager
from budgetreg.algorithms.hazan_koren_2012 import gen_est
from budgetreg.algorithms.hazan_koren_2012.gen_est import INNER_PRODUCT_DRAWS, GenEst, PlugIn
from budgetreg.algorithms.learner import Cost, Observation, RunContext
from budgetreg.algorithms.signature import BudgetSplit, Rngs, Settings, SideInformation, Trajectory
from budgetreg.algorithms.vectors import project_l2
from budgetreg.config.options import NOT_NEGATIVE, POSITIVE, one_of, option
from budgetreg.draws import BLOCK, blocks, uniform
from budgetreg.errors import ConfigError
from budgetreg.metering.accessor import Accessor
from budgetreg.tasks import Regression
from budgetreg.testing.expectations import LearnerUnderTest, Oracle, close
from budgetreg.testing.gradients import D, DrawProbabilities, compare_moves, point_square, points
from budgetreg.testing.reference_updates import REFERENCE_UPDATES
from budgetreg.testing.steps import STEP, Place, Step, enumerate_step
from budgetreg.theory import svr_step

MOST_DRAWS = 1e8
"""Draws that GenEst may average for one factor."""

LARGE_SECOND_MOMENT = 1e4
"""Of GenEst's estimates of a slope that is 1 at most: beyond it, nothing can be learned in a pass of usual length."""

_PLUG_IN = "the plug-in is biased, and bounded instead"


@dataclass(frozen=True)
class SupportVectorLearner(bases.SplitBudgetLearner):
    """The loss ``max(|residual| - delta, 0)``, the scale eps of its smoothing, and how its slope is estimated.

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

    update: str = bases.update_option("ogd")
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
        of the smoothed loss at the residual (see `gen_est`). All F x G replicas take each step
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
                output = averager.observe(t, total.copy, w.copy) if t in averager.marks else None
                if output:
                    yield output[0], np.ascontiguousarray(output[1].swapaxes(1, 2))
                phi = slope.estimate(accessor, position, w, y[:, position])
                w = project_l2(w - (eta * phi)[:, :, None] * points[:, position, None, :], B)

    @property
    def _unbiased(self) -> bool:
        return self.residual == "gen_est"

    @property
    def task(self) -> Regression:
        """A regressor, judged by this loss too."""
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
        return Cost(k_x + gen_est.expected_draws(int(gen_est.averaged_draws(np.array(settings["B"]), self.eps))), k_x)

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
        N = int(gen_est.averaged_draws(np.array(B), self.eps))
        moment = gen_est.second_moment((run.largest + self.delta) / self.eps, (B / self.eps) ** 2, N)
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
        return "k attributes per example (residual=gen_est: on average)", bases.UPDATES.get(self.update, "")

    @property
    def oracle(self) -> Oracle:
        """The distribution of GenEst's and the plug-in's estimates."""
        return SlopeOracle(self)

    @property
    def skipped_checks(self) -> Mapping[str, str]:
        """The plug-in is biased."""
        alone = "no learner of this loss sees all attributes; the slope itself is compared with by 'unbiased'"
        biased = {} if self._unbiased else {"unbiased": _PLUG_IN, "second moments": _PLUG_IN}
        return {"full at k=d": alone, **super().skipped_checks, **biased}


_ORDERS = (1, 3)
"""Orders of the series that are enumerated."""

_MOVES = REFERENCE_UPDATES["ogd"]
_Q = np.full(D, 1 / D)
"""Probabilities of the data point's draws."""


@dataclass(frozen=True)
class SlopeOracle(Oracle):
    """Enumerates the draws of one call of GenEst, order by order of its series, and those of the plug-in.

    The n factors of order n have d^n outcomes, which are drawn with ``p_j = w_j^2/|w|^2``.
    """

    learner: SupportVectorLearner

    def unbiased(self, subject: LearnerUnderTest) -> None:
        """Compare the estimate with its series, order by order, and the series with the slope of the smoothed loss."""
        delta, eps = self.learner.delta, self.learner.eps
        for order in _ORDERS:
            step, _ = self._step(subject, order)
            mean = step.mean(step.gradient(_MOVES))
            close("the gradient", mean, _weight(order) * self._theta(step) ** order * step.x)
        # The mean over the orders is sum_n 2^{-(n+1)} E phi_n.
        u = float(step.w @ step.x - step.y)
        n = np.arange(gen_est.ORDERS)
        theta = (u + delta * np.array([-1.0, 1.0])[:, None]) / eps
        series = (gen_est.WEIGHTS * 0.5 ** (n + 1) * theta**n).sum() / 2
        close("the slope", series, float(gen_est.smoothed_slope(np.array(u), delta, eps)))

    def second_moments(self, subject: LearnerUnderTest) -> None:
        """Compare the mean square of a call's estimate with that of a product of independent factors."""
        for order in _ORDERS:
            step, k_x = self._step(subject, order)
            x, w = step.x, step.w
            variance = float(w @ w * (x @ x) - (w @ x) ** 2) / self.learner.eps**2
            phi = _weight(order) ** 2 * (self._theta(step) ** 2 + variance) ** order
            squares = np.square(step.gradient(_MOVES)).sum(axis=1)
            stated = DrawProbabilities(_Q, _p(step))
            close("the gradient's square", step.mean(squares), phi * point_square(step, stated, k_x))

    def boundary(self, subject: LearnerUnderTest) -> None:
        """Compare the projected steps along the estimates with the paper's listing.

        The mean of the regressor is that of the projections, not the point to which the mean gradient leads.
        """
        delta, eps = self.learner.delta, self.learner.eps
        for order in _ORDERS if self.learner.residual == "gen_est" else (None,):
            step, k_x = self._step(subject, order, edge=True)
            factors = (step.w * step.x / _p(step))[step.attributes[:, k_x:]]
            if order is None:
                phi = gen_est.smoothed_slope(factors.mean(axis=1) - step.y, delta, eps)
            else:
                phi = _weight(order) * ((factors[:, :order] - step.y - delta) / eps).prod(axis=1)
            compare_moves(step, _MOVES, phi[:, None] * points(step, _Q, k_x))

    def _theta(self, step: Step) -> float:
        """Return the scaled residual that the factors estimate."""
        return float(step.w @ step.x - step.y - self.learner.delta) / self.learner.eps

    def _step(self, subject: LearnerUnderTest, order: int | None, edge: bool = False) -> tuple[Step, int]:
        """Return a step in which GenEst's first call has a given order, and its second one order 0, which gives 0.

        The plug-in has no orders. With it comes the number of draws for the data point.
        """
        k_x, _ = subject.draws_for(D, D)
        fixed: tuple[tuple[int, float], ...] = ()
        if order is not None:
            # The data point is drawn, then two orders, n from a part 2^{-(n+1)} of the interval, then uniforms for
            # either.
            first = k_x + 2
            unused = [(i, 0.5) for i in range(first + order, first + 2 * GenEst.AT_HAND)]
            fixed = ((k_x, 1 - 1.5 * 0.5 ** (order + 1)), (k_x + 1, 0.25), *unused)
        return enumerate_step(subject, D, D, Place(STEP, edge, self.learner.average, fixed=fixed)), k_x


def _weight(order: int) -> float:
    """Return the weight of one of two calls of GenEst with an order."""
    return float(gen_est.WEIGHTS[order]) / 2


def _p(step: Step) -> np.ndarray:
    """Return the probabilities of the inner product's draws."""
    return np.asarray(np.square(step.w) / (step.w @ step.w))
