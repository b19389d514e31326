"""AEML and AEFA: a factor model of what was revealed; ours.

Sources are named in the modules: the posterior in `posterior`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from budgetreg.config.options import option
from budgetreg.config.requirements import FRACTION, NOTHING, POSITIVE, one_of, whole
from budgetreg.enumeration.certificates import FullRowsOracle
from budgetreg.learners.bases import PairwiseLearner, SubspaceLearner
from budgetreg.learners.declaration import UNBOUNDED, Missing, Rngs, Settings, SideInformation, Trajectory
from budgetreg.metering.accessor import Accessor

_SHRUNK = "a posterior mean is shrunk, hence biased, less with each example"
_LIKELIEST = "a likeliest model is biased, and counts for less the more often pairs are seen"


@dataclass(frozen=True)
class FactorRegression(PairwiseLearner):
    """AEML: the posterior mean of a regressor under a factor model.

    Attributes
    ----------
    n_factors : int
        Factors of the model, capped at d.
    """

    n_factors: int = option("the factors of the model", whole(1), tried=(2,))

    core = "factor_regression"
    version = 2
    centres_itself = True
    check_streams = 24
    missing = Missing.LEFT_OUT
    bitwise_portable = False
    oracle = FullRowsOracle()
    skipped_checks: ClassVar[Mapping[str, str]] = {
        "unbiased": _SHRUNK,
        "second moments": _SHRUNK,
        "boundary": UNBOUNDED,
        "minimiser": "an average over the posterior minimises nothing that was shown",
    }

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Run `budgetreg.learners.factors.regression.fit`."""
        from budgetreg.learners.factors import regression

        return regression.fit(self, accessor, settings, checkpoints, rngs, given)

    @property
    def words(self) -> Sequence[str]:
        """How it draws and what it models."""
        return (
            "k attributes per example, drawn by what is known of them",
            f"posterior mean of a model with {self.n_factors} factors",
        )


@dataclass(frozen=True)
class StreamingFactorAnalysis(SubspaceLearner):
    """The streaming form of AEFA, which sees each example once; see `budgetreg.learners.factors.streaming.fit`.

    Attributes
    ----------
    n_components : int
        Dimension n of the subspace, below d.
    n_factors : int or None
        Factors q of the model, at least n; None: 2 n.
    design : {'importance', 'uniform'}
        'importance' draws attributes in proportion to their root mean squares, once each has 5 values on average, and
        plans again at each doubling; 'uniform' draws uniform subsets.
    """

    n_factors: int | None = option("the factors of the model", whole(1) | NOTHING, tried=(2, 5))
    design: str = option("how attributes are drawn", one_of("importance", "uniform"))

    core = "streaming_factor_analysis"
    centres_itself = True
    missing = Missing.LEFT_OUT
    oracle = FullRowsOracle()
    skipped_checks: ClassVar[Mapping[str, str]] = {
        "unbiased": _LIKELIEST,
        "second moments": _LIKELIEST,
        "boundary": UNBOUNDED,
        "minimiser": "a likelihood has several peaks, and a step is certified to go up by a test of its own",
    }

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Run `budgetreg.learners.factors.streaming.fit`."""
        from budgetreg.learners.factors import streaming

        return streaming.fit(self, accessor, settings, checkpoints, rngs, given)

    def refuse(self) -> str | None:
        """Refuse fewer factors than the subspace has dimensions."""
        n, q = self.n_components, self.n_factors
        return f"algo.n_factors={q}: must be at least algo.n_components={n}" if q is not None and q < n else None

    @property
    def words(self) -> Sequence[str]:
        """How it draws and what it models."""
        return (
            self._draws,
            f"leading subspace of a model with {self.n_factors or 2 * self.n_components} factors that "
            "looks at each example once",
        )

    @property
    def _draws(self) -> str:
        larger = ", those with larger second moments the likelier" if self.design == "importance" else ""
        return f"k attributes per example{larger}"


@dataclass(frozen=True)
class FactorAnalysis(StreamingFactorAnalysis):
    """AEFA: the likeliest factor model of all that was revealed; see `budgetreg.learners.factors.subspace.fit`.

    Attributes
    ----------
    n_components : int
        Dimension of the subspace, below d.
    n_factors : int or None
        Factors of the model; None: ``2 n_components``.
    design : {'importance', 'uniform'}
        'importance' draws attributes, after a uniform first phase, in proportion to their root mean squares in that
        phase; 'uniform' draws uniform subsets.
    phase_one : float
        The first phase's share of the examples up to the last checkpoint; it has at least ``10 d / k`` examples.
    mix : float
        Share of equal probabilities in the draws.
    noise : {'each', 'shared'}
        Whether each attribute has its noise variance, or all share one.
    kappa : 'auto', 'model' or float
        Weight of the model in each entry of the second moment, in observations of the pair. 'auto' takes the weight
        whose subspace keeps most of held-out examples, and 0 while too little was seen; 'model' uses the model alone.
    """

    phase_one: float = option("the first phase's share of the examples", FRACTION, tried=(0.5,))
    mix: float = option("the share of equal probabilities in the draws", FRACTION, tried=(0.5,))
    noise: str = option("whether each attribute has a noise of its own", one_of("each", "shared"))
    kappa: float | str = option(
        "by how many pairs the model counts", one_of("auto", "model") | POSITIVE, tried=("auto", "model", 100.0)
    )

    core = "factor_analysis"
    version = 3

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Run `budgetreg.learners.factors.subspace.fit`."""
        from budgetreg.learners.factors import subspace

        return subspace.fit(self, accessor, settings, checkpoints, rngs, given)

    def refuse(self) -> str | None:
        """Allow any number of factors: the model counts less the more often pairs are seen."""
        return None

    @property
    def words(self) -> Sequence[str]:
        """How it draws and what it models."""
        factors = self.n_factors or 2 * self.n_components
        return self._draws, f"leading subspace of the likeliest model with {factors} factors"
