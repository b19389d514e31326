"""AERR, AELR, AER, DDAERR and DDAELR: k attributes of each example, in one pass (GAERR and GAELR).

Each gradient is the product of two independent estimates, of the data point and of the inner product.

References
----------
E. Hazan, T. Koren. Linear Regression with Limited Observation. ICML 2012, AERR and AELR.
N. Cesa-Bianchi, S. Shalev-Shwartz, O. Shamir. Efficient Learning with Partially Observed Attributes. ICML 2010, AER.
D. Kukliansky, O. Shamir. Attribute Efficient Linear Regression with Distribution-Dependent Sampling. ICML 2015.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from budgetreg.algorithms import bases
from budgetreg.algorithms.control_variates import ControlVariate
from budgetreg.algorithms.engine import UPDATES, run
from budgetreg.algorithms.learner import RADIUS, STEP_SIZE, Missing, Parameter, RunContext, Theorem
from budgetreg.algorithms.regressors import ScaledRegressors
from budgetreg.algorithms.signature import Rngs, Settings, SideInformation, Trajectory
from budgetreg.config.options import NOTHING, one_of, option
from budgetreg.draws import BLOCK, DATA_POINT_SAMPLERS, DataPointSampler, Proportional
from budgetreg.metering.accessor import Accessor
from budgetreg.revealed import importance_weights
from budgetreg.testing.gradients import DrawProbabilities, GradientOracle
from budgetreg.testing.reference_updates import REFERENCE_UPDATES
from budgetreg.testing.steps import Step, prices
from budgetreg.theory import ddaelr_step, ddaerr_step, eg_step, ogd_step, pegasos_regularisation


@dataclass(frozen=True)
class GradientLearner(bases.GuidedLearner):
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
        given the target, see `budgetreg.algorithms.control_variates`; 'none' for 'pegasos'.
    """

    data_point: str = option("the draw of attributes for the data point", one_of("uniform", "subset", "moment"))
    moments: str = option(
        "the source of the attributes' second moments",
        one_of("given", "pilot") | NOTHING,
        default="given",
        own="pilot",
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
            options["root_moments"] = importance_weights.inner_product(given.moments, given.prices)
        samplers: Sequence[DataPointSampler]
        if self.data_point == "moment":
            assert given.moments is not None
            samplers = [
                Proportional(weights)
                for weights in importance_weights.data_point(self.update, given.moments, given.prices)
            ]
        else:
            samplers = [DATA_POINT_SAMPLERS[self.data_point]] * F
        state = UPDATES[self.update](F, d, given.split.k_ip, settings, **options)
        control = None
        if self.control_variate != "none":
            assert isinstance(state, ScaledRegressors)
            control = ControlVariate(state, F, d, slope=self.control_variate == "label")
        yield from run(
            accessor, state, 0, checkpoints, rngs, samplers, given.split, average=self.average, control=control
        )

    @property
    def tuned(self) -> Sequence[str]:
        """The radius, and the step size or the regularisation."""
        return ("B", "lambda") if self.update == "pegasos" else ("B", "eta")

    def theory(self, run: RunContext, B: float | None) -> Mapping[str, float]:
        """Return what the theorems of the three papers prescribe."""
        assert B is not None
        if self.update == "pegasos":
            return {"lambda": pegasos_regularisation(B, run.d, run.m, run.k)}
        if self.data_point == "moment":
            if self.update == "eg":
                return {"eta": ddaelr_step(B, run.moments(), run.m, run.k_x)}
            return {"eta": ddaerr_step(run.moments(), run.m, run.k_x, run.prices)}
        return {"eta": eg_step(B, run.d, run.m, run.k_x) if self.update == "eg" else ogd_step(run.d, run.m, run.k_x)}

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
        return "k attributes per example", bases.UPDATES.get(self.update, "")

    @property
    def theorem(self) -> Theorem | None:
        """The regret bounds of Hazan & Koren 2012, for what they analyse."""
        literal = self.inner_product == "weight" and self.control_variate == "none"
        proved = self.data_point == "uniform" and literal and self.average == "all"
        return bases.gradient_theorem(self.update, lambda k: self.split_budget(k).k_x) if proved else None

    @property
    def oracle(self) -> GradientOracle:
        """The probabilities with which attributes have to be drawn."""
        return GradientOracle(
            REFERENCE_UPDATES[self.update],
            self._draws,
            bases.COUNTERPARTS.get(self.update),
            self.average,
            late=self.control_variate != "none",
        )

    def _draws(self, step: Step, k_x: int) -> DrawProbabilities:
        """State the draws: uniform, or guided by the given second moments of all examples and by prices."""
        stated = guided_draws(self, step, np.square(step.X).mean(axis=0))
        slope = self.control_variate == "label"
        mu = None if self.control_variate == "none" else _expected(step, k_x, slope=slope)
        return replace(stated, subset=self.data_point == "subset", expected=mu)

    def refuse(self) -> str | None:
        """Refuse what Pegasos cannot do."""
        if self.update == "pegasos" and self._guided:
            return "algo.update=pegasos: its draws cannot be guided by moments; use ogd or eg"
        if self.update == "pegasos" and self.control_variate != "none":
            return "algo.update=pegasos: its inner product has no control variate; use ogd or eg"
        return None


def guided_draws(learner: bases.GuidedLearner, step: Step, moments: np.ndarray, mix: float = 0.0) -> DrawProbabilities:
    """State the draws of a learner to which attributes have some second moments, (d,), mixed with equal weights.

    Data points: on the 2-ball, guided draws have the weights ``sqrt(E x_i^2 / c_i)``, with the prices c of the checks,
    or 1 where the learner ignores them; on the 1-ball ``E x_i^2`` (Kukliansky & Shamir 2015, Equation 2; for prices,
    see `budgetreg.revealed.importance_weights`). Inner product: ``|w_j| sqrt(E x_j^2 / c_j)`` if guided, else ``w_j^2``
    on the 2-ball and ``|w_j|`` on the 1-ball.
    """
    d, on_2_ball = len(step.w), learner.update == "ogd"
    root = np.sqrt(moments / (prices(d) if learner.prices == "aware" else np.ones(d)))

    def mixed(weights: np.ndarray) -> np.ndarray:
        return np.asarray((1 - mix) * weights / weights.sum() + mix / d)

    q = (root if on_2_ball else moments) if learner.data_point == "moment" else np.ones(d)
    p = np.square(step.w) if on_2_ball else np.abs(step.w)
    if learner.inner_product == "moment":
        p = np.abs(step.w) * mixed(root)
    return DrawProbabilities(mixed(q), p / p.sum())


def data_points(step: Step, n: int, k_x: int) -> np.ndarray:
    """Return the attributes drawn for the data points of the first n examples, shape (n, k_x)."""
    return np.stack([seen[:k_x] for seen in step.earlier[:n]])


def _expected(step: Step, k_x: int, *, slope: bool) -> np.ndarray:
    """Return the least-squares fit of the values seen in earlier blocks, at the example's target, shape (d,).

    The regressors are 1, and with a slope the target. One more value of 0 shrinks the fit: half of it at a typical
    target, half at its negative.
    """
    seen, d = data_points(step, BLOCK, k_x), len(step.w)
    example = np.repeat(np.arange(BLOCK), k_x)
    y, typical = step.Y[example], np.sqrt(np.square(step.Y[:BLOCK]).mean())
    mu = np.zeros(d)
    for i in range(d):
        drawn = seen.ravel() == i
        targets = np.concatenate([y[drawn], [typical, -typical]])
        weights = np.sqrt(np.concatenate([np.ones(drawn.sum()), [0.5, 0.5]]))
        design = np.column_stack([np.ones(len(targets)), targets][: 1 + slope])
        values = np.concatenate([step.X[example[drawn], i], [0.0, 0.0]])
        fit = np.linalg.lstsq(design * weights[:, None], values * weights, rcond=None)[0]
        mu[i] = fit @ [1, step.y][: 1 + slope]
    return mu
