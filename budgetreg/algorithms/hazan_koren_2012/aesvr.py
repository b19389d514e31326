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
    def skipped_checks(self) -> Mapping[str, str]:
        """The plug-in is biased."""
        alone = "no learner of this loss sees all attributes; the slope itself is compared with by 'unbiased'"
        biased = {} if self._unbiased else {"unbiased": _PLUG_IN, "second moments": _PLUG_IN}
        return {"full at k=d": alone, **super().skipped_checks, **biased}
