"""AERR, AELR, AER, DDAERR and DDAELR: k attributes of each example, in one pass (GAERR and GAELR).

Each gradient is the product of two independent estimates, of the data point and of the inner product.

References
----------
E. Hazan, T. Koren. Linear Regression with Limited Observation. ICML 2012, AERR and AELR.
N. Cesa-Bianchi, S. Shalev-Shwartz, O. Shamir. Efficient Learning with Partially Observed Attributes. ICML 2010, AER.
D. Kukliansky, O. Shamir. Attribute Efficient Linear Regression with Distribution-Dependent Sampling. ICML 2015.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from budgetreg.algorithms import bases
from budgetreg.algorithms.control_variates import ControlVariate
from budgetreg.algorithms.engine import UPDATES, run
from budgetreg.algorithms.learner import RADIUS, STEP_SIZE, Missing, Parameter, RunContext, Theorem
from budgetreg.algorithms.regressors import ScaledRegressors
from budgetreg.algorithms.signature import Rngs, Settings, SideInformation, Trajectory
from budgetreg.config.options import NOTHING, one_of, option
from budgetreg.draws import DATA_POINT_SAMPLERS, DataPointSampler, Proportional
from budgetreg.metering.accessor import Accessor
from budgetreg.revealed import importance_weights
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

    def refuse(self) -> str | None:
        """Refuse what Pegasos cannot do."""
        if self.update == "pegasos" and self._guided:
            return "algo.update=pegasos: its draws cannot be guided by moments; use ogd or eg"
        if self.update == "pegasos" and self.control_variate != "none":
            return "algo.update=pegasos: its inner product has no control variate; use ogd or eg"
        return None
