"""Base classes, options, phrases and reasons to skip checks that several learners share.

The base classes are for a split budget, draws guided by moments, pairs of attributes, and subspaces.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from budgetreg.algorithms.learner import RADIUS, STEP_SIZE, Batching, Cost, Learner, Parameter, RunContext, Theorem
from budgetreg.algorithms.signature import BudgetSplit, Rngs, SideInformation
from budgetreg.config.options import NOTHING, Option, Options, one_of, option, whole
from budgetreg.errors import ConfigError
from budgetreg.metering.accessor import Accessor
from budgetreg.revealed.collection import Collected, collect
from budgetreg.revealed.everything import collect_everything
from budgetreg.revealed.importance_weights import PRICE_AWARE
from budgetreg.revealed.purchases import purchases
from budgetreg.tasks import SubspaceLearning
from budgetreg.theory import aelr_bound, aerr_bound

ON_FULL_ROWS: Mapping[str, str] = {
    **dict.fromkeys(("second moments", "full at k=d"), "all attributes are seen, nothing is estimated"),
    "small k": "k decides how many full rows a run pays for, and any k is enough",
}
"""The checks that learners skip that see all attributes, with the reasons."""

ONE_PASS = "each example leads to a step, none to a minimum"
UNBOUNDED = "nothing is clipped or projected on the way"
"""Reasons to skip a check that several learners share."""

SPLIT = one_of("literal", "even") | whole(1)
AVERAGE = one_of("all", "suffix", "last")

IGNORABLE: Options = {
    "split": Option("the split of the budget", SPLIT | NOTHING, default=None),
    "average": Option("the averaging of iterates", AVERAGE | NOTHING, default=None),
}
"""Keys that all learners accept, with or without effect, so that a sweep may set them for all."""

UPDATES: Mapping[str, str] = {
    "ogd": "online gradient descent in the 2-ball",
    "eg": "exponentiated gradient in the 1-ball",
    "pegasos": "regularised gradient descent (Pegasos) in the 1-ball",
}
"""Updates in the words of captions."""

COUNTERPARTS = {"ogd": "online_ridge", "eg": "online_lasso"}
"""By update, the learner with exact gradients."""


def prices_option(**declaration: Any) -> str:
    """Declare whether draws depend on prices; other parameters are those of `option`."""
    declared: str = option("whether draws depend on prices", one_of("aware", "ignored"), **declaration)
    return declared


def average_option() -> str:
    """Declare which iterates are averaged."""
    declared: str = option("the averaging of iterates", AVERAGE, default="all")
    return declared


def update_option(*updates: str) -> str:
    """Declare the update, one of a few; checks do not vary it, as each value has a learner file."""
    declared: str = option("the update", one_of(*updates), tried=())
    return declared


@dataclass(frozen=True)
class SplitBudgetLearner(Learner):
    """Base class of learners that divide the budget between two factors of the gradient's estimate.

    The data point is estimated from ``k_x`` draws, its inner product with the regressor from ``k_ip``.
    """

    split: str | int | None = option("the split of the budget", SPLIT, default="literal", tried=("literal", "even", 2))
    average: str = average_option()

    parameters: ClassVar[tuple[Parameter, ...]] = (RADIUS, STEP_SIZE)
    batching = Batching.IN_STEP

    @property
    def tuned(self) -> Sequence[str]:
        """The radius and the step size."""
        return ("B", "eta")

    def literal(self, k: int) -> int:
        """Return the draws for the inner product of ``split=literal``."""
        return k // 2

    def split_budget(self, k: int) -> BudgetSplit:
        """Divide a budget by the option ``split``; a number gives the draws for the inner product.

        Raises
        ------
        ConfigError
            If the budget is below 2, or the split leaves no draw for the data point or the inner product.
        """
        if k < 2:
            raise ConfigError(
                f"k={k}: {self.name} needs a budget of at least 2, one attribute for the data point and one for the "
                "inner product"
            )
        k_ip = self.split if isinstance(self.split, int) else self.literal(k) if self.split == "literal" else k // 2
        if not 1 <= k_ip < k:
            raise ConfigError(f"algo.split={k_ip}: inner-product draws must be between 1 and k-1={k - 1}")
        return BudgetSplit(k - k_ip, k_ip)

    def cost(self, d: int, k: int, settings: Mapping[str, float]) -> Cost:
        """Return what an example costs: k, or the draws for the data point alone where ``w = 0``."""
        return Cost(k, self.split_budget(k).k_x)

    @property
    def skipped_checks(self) -> Mapping[str, str]:
        """Nothing is minimised in one pass."""
        return {"minimiser": ONE_PASS}


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
        data_point = self.data_point == "moment" and PRICE_AWARE.get(self.update, False)
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
class PairwiseLearner(Learner):
    """Base class of learners that estimate how attributes vary together, from at least two of an example."""

    def split_budget(self, k: int) -> BudgetSplit | None:
        """Refuse a budget of one attribute.

        Raises
        ------
        ConfigError
            If the budget is 1.
        """
        if k < 2:
            raise ConfigError(
                f"k={k}: {self.name} needs a budget of at least 2, as one attribute of each example does not show "
                "how attributes vary together"
            )
        return None

    def state_numbers(self, d: int) -> int:
        """Return the size of a matrix of second moments."""
        return d**2


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
    everything: ClassVar[Mapping[str, str]] = {"draws": "everything"}

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


@dataclass(frozen=True)
class SubspaceLearner(PairwiseLearner):
    """Base class of learners of subspaces."""

    n_components: int = option("the dimension of the subspace", whole(1), tried=(1, 3))

    @property
    def task(self) -> SubspaceLearning:
        """A subspace of the dimension chosen."""
        return SubspaceLearning(self.n_components)
