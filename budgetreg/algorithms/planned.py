"""The base class of learners that store what they see, and plan their draws by it and by prices."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from budgetreg.algorithms.learner import PairwiseLearner, Rngs, RunContext, SideInformation, prices_option
from budgetreg.config.options import one_of, option
from budgetreg.errors import ConfigError
from budgetreg.metering.accessor import Accessor
from budgetreg.revealed.collection import Collected, collect, collect_everything
from budgetreg.revealed.purchases import purchases


@dataclass(frozen=True)
class PlannedDrawsLearner(PairwiseLearner):
    """Base class of learners that store what they see, and plan their draws by it and by prices.

    Attributes
    ----------
    prices : {'aware', 'ignored'}
        The files of learners say 'aware'. Runs that were recorded without the option ignored prices.
    draws : {'planned', 'everything'}
        'planned' draws k attributes of each example, by what is known of them; 'everything' draws nothing and plans
        nothing, because k = d pays for all values that are present.
    """

    prices: str = prices_option(default="ignored", tried=())
    options_without_draws: ClassVar[Mapping[str, str]] = {"draws": "everything"}

    draws: str = option("how attributes are drawn", one_of("planned", "everything"), default="planned", tried=())

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

    @property
    def draws_in_words(self) -> str:
        """Return for captions which attributes of an example are seen."""
        everything = self.draws == "everything"
        return "all values that exist" if everything else "k attributes per example, drawn by what is known of them"
