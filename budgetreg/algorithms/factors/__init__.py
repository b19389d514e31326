"""AEML and AEFA: a factor model of what was revealed; ours.

AEML takes the `posterior` mean by Gibbs sampling, AEFA the model of largest `likelihood` by expectation and
maximisation, at once or as a stream. The modules name their sources.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from budgetreg.algorithms.learner import (
    UNBOUNDED,
    Batching,
    Missing,
    PairwiseLearner,
    Rngs,
    RunContext,
    Settings,
    SideInformation,
    SubspaceLearner,
    Trajectory,
    first_phase,
    prices_option,
)
from budgetreg.common.errors import ConfigError
from budgetreg.common.streams import BLOCK
from budgetreg.config.options import FRACTION, NOTHING, POSITIVE, one_of, option, whole
from budgetreg.revealed.collection import AttributeDraws, Collected, Entries, collect, collect_everything, reveal
from budgetreg.revealed.purchases import purchases

if TYPE_CHECKING:
    from budgetreg.algorithms.factors.posterior import Known
    from budgetreg.metering.accessor import Accessor
    from budgetreg.metering.table import Outputs, WithIntercept


_SHRUNK = "a posterior mean is shrunk, hence biased, less with each example"
_LIKELIEST = "a likeliest model is biased, and counts for less the more often pairs are seen"

_VALUES, _MIX = 5, 0.1
"""In a stream: mean number of values per attribute before the first plan; share of equal probabilities in the draws."""


@dataclass(frozen=True)
class FactorRegression(PairwiseLearner):
    """AEML: the posterior mean of a regressor under a factor model.

    It stores what it sees, and plans its draws by it and by prices.

    Attributes
    ----------
    prices : {'aware', 'ignored'}
        The files of learners say 'aware'. Runs that were recorded without the option ignored prices.
    draws : {'planned', 'everything'}
        'planned' draws k attributes of each example, by what is known of them; 'everything' draws nothing and plans
        nothing, because k = d pays for all values that are present.
    n_factors : int
        Factors of the model, capped at d.
    """

    prices: str = prices_option(default="ignored", tried=())
    draws: str = option("how attributes are drawn", one_of("planned", "everything"), default="planned", tried=())
    n_factors: int = option("the factors of the model", whole(1), tried=(2,))

    core = "factor_regression"
    version = 11
    centres_itself = True
    scales_itself = True
    check_streams = 24
    missing = Missing.LEFT_OUT
    unlabelled = True
    uses_free = True
    draws_groups = True
    bitwise_portable = False
    options_without_draws: ClassVar[Mapping[str, str]] = {"draws": "everything"}
    skipped_checks: ClassVar[Mapping[str, str]] = {
        "unbiased": _SHRUNK,
        "second moments": _SHRUNK,
        "boundary": UNBOUNDED,
        "minimiser": "an average over the posterior minimises nothing that was shown",
    }

    regresses: ClassVar[bool] = False
    """Whether the target is regressed on what was seen, under the model, with a generator of its own."""

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Draw k attributes of each example, and yield the regressor of all that was seen at each checkpoint.

        The first ``2 d / k`` examples show uniform subsets. After them, and whenever the number of examples has
        doubled, new inclusion probabilities are computed from the posterior, see
        `budgetreg.revealed.designs.regression_weights`. So draws depend neither on checkpoints nor on how many examples
        follow. There is one setting and nothing to tune; see `Learner.fit`.
        """
        # imported here because SciPy loads slowly
        from budgetreg.algorithms.factors.posterior import Posterior, plan_by_posterior, posterior_of
        from budgetreg.metering.table import with_others

        F, d = accessor.n_streams, accessor.d
        chains, *own = zip(*(rng.spawn(1 + self.regresses) for rng in rngs), strict=True)
        state = Posterior(d + 1, min(self.n_factors, d), chains, doubted=self.regresses), own
        for collected in self.collected(accessor, checkpoints, rngs, given):
            known = partial(posterior_of, accessor, collected, given, chain=not self.regresses)
            if collected.is_checkpoint:
                streams: Sequence[int] = range(F) if given.wanted is None else given.wanted[collected.examples]
                outputs: Outputs = np.zeros(0)
                if streams:
                    posterior, own = state
                    if not collected.is_everything:  # from a copy, so that no draw depends on where outputs are wanted
                        own = [tuple(of[f] for f in streams) for of in own]
                        posterior, own = deepcopy((posterior.part(streams), own))
                    now, as_revealed = known(streams, posterior, for_draws=False)
                    outputs = with_others(as_revealed(self.regressors(now, given, *own)), streams, F)
                yield collected.examples, outputs
            if collected.is_plan and given.rehearsed and collected.examples in given.rehearsed:
                plan, state = deepcopy(given.rehearsed[collected.examples])
                collected.plan(*plan)
            elif collected.is_plan:
                posterior, own = state
                now, _ = known(range(F), posterior, for_draws=collected.plans_draws_alone)
                plan = plan_by_posterior(collected, now, self.expected_parts(now, given, *own), centred=given.centred)
                if given.rehearsed is not None:
                    given.rehearsed[collected.examples] = deepcopy((plan, state))

    def regressors(self, known: Known, given: SideInformation, *rngs: Rngs) -> np.ndarray | WithIntercept:
        """Return the regressors of all streams, of standardised columns."""
        centring = {"centred": given.centred, "intercept": given.intercept}
        return known.standardised.regressors(known.moments, **centring, inflation=known.inflation)

    def expected_parts(self, known: Known, given: SideInformation, *rngs: Rngs) -> np.ndarray | None:
        """Return what attributes are expected to explain (F, d), by which they are drawn; None: the regressor says."""
        return None

    def collected(
        self, accessor: Accessor, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Iterator[Collected]:
        """Return what is revealed by each checkpoint and plan."""
        if self.draws == "everything":
            return collect_everything(accessor, checkpoints)
        if given.purse is not None:
            return purchases(accessor, checkpoints, rngs, given.purse, given.prices is not None)
        return collect(accessor, checkpoints, rngs, given.k, given.prices)

    @property
    def batching(self) -> Batching:  # type: ignore[override]
        """All streams, unless everything is seen: how many values examples have then differs from stream to stream."""
        return Batching.IN_STEP if self.draws == "planned" else Batching.APART

    @property
    def cost_aware(self) -> Sequence[str]:
        """All draws, if they are to be price-aware."""
        return ("k",) if self.prices == "aware" and self.draws == "planned" else ()

    def notes(self, run: RunContext, settings: Mapping[str, Sequence[float]]) -> Sequence[str]:
        """Return no notes.

        Raises
        ------
        ConfigError
            If everything is to be seen, and the budget is too small for it.
        """
        if self.draws == "everything" and run.k < run.d:
            raise ConfigError(f"algo.draws=everything: needs k={run.d}, all attributes, not k={run.k}; or use planned")
        return ()

    @property
    def chooses_k(self) -> bool:
        """Whether it draws at all."""
        return self.draws == "planned"

    independent_checkpoints = chooses_k  # without draws, one chain goes on from output to output

    @property
    def draws_in_words(self) -> str:
        """Return for captions which attributes of an example are seen."""
        return "k attributes per example, drawn by what is known of them" if self.chooses_k else "all values that exist"

    @property
    def words(self) -> Sequence[str]:
        """How it draws and what it models."""
        return self.draws_in_words, f"posterior mean of a model with {self.n_factors} factors"


@dataclass(frozen=True)
class StreamingFactorAnalysis(SubspaceLearner):
    """The streaming form of AEFA, which sees each example once.

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
    continues = True
    centres_itself = True
    missing = Missing.LEFT_OUT
    uses_free = True
    draws_groups = True
    skipped_checks: ClassVar[Mapping[str, str]] = {
        "unbiased": _LIKELIEST,
        "second moments": _LIKELIEST,
        "boundary": UNBOUNDED,
        "minimiser": "a likelihood has several peaks, and a step is certified to go up by a test of its own",
    }

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Draw k attributes of each example, and yield the factor model's leading subspace; see `Learner.fit`.

        Nothing depends on the number of examples to come. Memory is O(d q^2) per stream. The cost of an example does
        not depend on d, except for outputs and for plans, of which there is one per doubling of the examples. There is
        one setting and nothing to tune.
        """
        # imported here because SciPy loads slowly
        from budgetreg.algorithms.factors.likelihood import EM_BLOCK, StepwiseEM

        d = accessor.d
        q = min(self.n_factors or 2 * self.n_components, d)
        draws = [AttributeDraws(rng, d, given.k, accessor.free, accessor.groups) for rng in rngs]
        models = [StepwiseEM(rng, d, q) for rng in rngs]
        next_plan = -(-_VALUES * d // given.k)
        for start, stop in pairwise(sorted({*range(0, checkpoints[-1], EM_BLOCK), *checkpoints})):
            for model, i, x in zip(models, *reveal(accessor, draws, start, stop, d), strict=True):
                model.see(i, x)
            if stop in checkpoints:
                yield stop, np.stack([model.subspace(self.n_components) for model in models])[:, None]
            if self.design == "importance" and stop % EM_BLOCK == 0 and stop >= next_plan:
                next_plan = 2 * stop
                for draw, model in zip(draws, models, strict=True):
                    draw.plan(np.sqrt(model.mean_squares()[draw.members]), _MIX)

    def refuse(self) -> str | None:
        """Refuse fewer factors than the subspace has dimensions."""
        n, q = self.n_components, self.n_factors
        return f"algo.n_factors={q}: must be at least algo.n_components={n}" if q is not None and q < n else None

    @property
    def words(self) -> Sequence[str]:
        """How it draws and what it models."""
        factors = self.n_factors or 2 * self.n_components
        return self._draws, f"leading subspace of a model with {factors} factors that looks at each example once"

    @property
    def _draws(self) -> str:
        larger = ", those with larger second moments the likelier" if self.design == "importance" else ""
        return f"k attributes per example{larger}"


@dataclass(frozen=True)
class FactorAnalysis(StreamingFactorAnalysis):
    """AEFA: the likeliest factor model of all that was revealed.

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
        "the weight of the model, in pairs", one_of("auto", "model") | POSITIVE, tried=("auto", "model", 100.0)
    )

    core = "factor_analysis"
    continues = False  # its first phase is a share of all examples
    version = 3

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Draw k attributes of each example, and yield the moment estimate's leading subspace; see `Learner.fit`.

        There is one setting and nothing to tune.
        """
        # imported here because SciPy loads slowly
        from budgetreg.algorithms.eigenspaces import leading
        from budgetreg.algorithms.factors.likelihood import RevealedEntries, estimate

        d, last, k, n = accessor.d, checkpoints[-1], given.k, self.n_components
        m_1 = min(last, max(first_phase(self.phase_one, last), -(-10 * d // k)))
        entries, draws = Entries(d), [AttributeDraws(rng, d, k, accessor.free, accessor.groups) for rng in rngs]
        plans = {m_1} if self.design == "importance" else set()
        for start, stop in pairwise(sorted({*range(0, last, BLOCK), *checkpoints, *plans})):
            entries.add(*reveal(accessor, draws, start, stop, d))
            if stop in checkpoints or stop in plans:
                (block,) = entries.blocks()
                revealed = [RevealedEntries(i, x, d) for i, x in zip(*block, strict=True)]
            if stop in checkpoints:
                yield stop, np.stack([leading(estimate(self, stream), n) for stream in revealed])[:, None]
            if stop in plans:
                for draw, stream in zip(draws, revealed, strict=True):
                    draw.plan(np.sqrt(stream.mean_squares[draw.members]), self.mix)

    def refuse(self) -> str | None:
        """Allow any number of factors: the model counts less the more often pairs are seen."""
        return None

    @property
    def words(self) -> Sequence[str]:
        """How it draws and what it models."""
        factors = self.n_factors or 2 * self.n_components
        return self._draws, f"leading subspace of the likeliest model with {factors} factors"
