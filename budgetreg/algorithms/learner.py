"""The base class of learners, what they are given, and the records with which they answer the protocol and the checks.

A learner is a frozen dataclass that derives from `Learner`. Its fields are its options, its class attributes declare
what holds for all values of these options, and its methods answer the protocol, the checks and the captions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from budgetreg.common.errors import ConfigError
from budgetreg.config.options import NOTHING, Option, Options, identity_of, one_of, option, options_of, whole

if TYPE_CHECKING:  # what learners are given and return is known here by name alone
    from budgetreg.algorithms.tasks import SubspaceLearning, Task
    from budgetreg.metering.accessor import Accessor
    from budgetreg.metering.table import Outputs
    from budgetreg.revealed.collection import Entries
    from budgetreg.revealed.purchases import Purse


class BudgetSplit(NamedTuple):
    """The division of the budget k."""

    k_x: int
    """Draws for the data point."""
    k_ip: int
    """Draws for the inner product."""


@dataclass(frozen=True)
class SideInformation:
    """Information that a learner is given beside examples and parameters.

    Attributes
    ----------
    k : int
        Attribute budget; all attributes if there is a purse.
    budget_split : BudgetSplit or None
        How the budget is divided, for learners that divide it.
    moments : ndarray of float, shape (F, d), or None
        Second moments of the attributes, for learners that are given them.
    centred : bool
        For learners that centre what they see themselves: whether attributes are centred on the means of what was
        seen. Other learners get centred attributes from the accessor.
    intercept : bool
        For the same learners: whether the mean of the targets is predicted at these means. Other learners get
        centred targets from the accessor.
    scaled : bool
        For learners that scale what they see themselves: whether attributes are divided by the standard deviations of
        what was seen. The regressors that they yield are for attributes as the accessor returns them.
    prices : ndarray of float, shape (d,), or None
        What attributes cost, for price-aware learners; all above 0.
    zero_is_meaningful : bool
        Whether the learner sees the values of the data, scaled perhaps. If not, means that nobody paid for have been
        subtracted, and a value of 0 or another constant has no meaning.
    purse : Purse or None
        For learners that choose how many attributes they see of each example (`Learner.chooses_k`): what they may
        spend. Checkpoints are then amounts, the last of which is the total.
    rehearsed : dict or None
        What learners keep of a rehearsal (see `budgetreg.protocol.passes`) for the runs that follow, if these see the
        same. None if there is none.
    wanted : mapping of int to sequence of int, or None
        The streams whose outputs are used at each checkpoint; those of others may be 0, and an empty array is yielded
        if there are none. None for all of them.
    """

    k: int
    budget_split: BudgetSplit | None = None
    moments: np.ndarray | None = None
    centred: bool = False
    intercept: bool = False
    scaled: bool = False
    prices: np.ndarray | None = None
    zero_is_meaningful: bool = True
    purse: Purse | None = None
    rehearsed: dict[Any, Any] | None = None
    wanted: Mapping[int, Sequence[int]] | None = None

    @property
    def split(self) -> BudgetSplit:
        """The division of the budget, for learners that always divide it."""
        assert self.budget_split is not None
        return self.budget_split


Trajectory = Iterator[tuple[int, "Outputs"]]
"""Checkpoints with the outputs of all settings along all streams."""
Settings = Mapping[str, np.ndarray]
"""Parameters in absolute values, shape (G,) each."""
Rngs = Sequence[np.random.Generator]
"""One random generator per stream."""
Fit = Callable[["Accessor", Settings, Sequence[int], Rngs, SideInformation], Trajectory]


class Observation(Enum):
    """The attributes of an example that a learner sees and pays for."""

    K = "k attributes of each example"
    K_ON_AVERAGE = "k attributes of an example on average"
    ALL = "all attributes"


class Batching(Enum):
    """The streams of examples that may advance together; no number of a stream depends on the others."""

    IN_STEP = "all, example by example: folds and final runs of several repetitions"
    APART = "streams of one repetition together; mixing repetitions saves nothing"
    WITH_ITS_FOLDS = "the folds of a repetition, which share work and are never separated"


class Missing(Enum):
    """The treatment of missing values, which are free and which draws skip."""

    REFUSED = "every value that it asks for has to exist"
    WEIGHED = "what it sees is divided by how often that exists: each two attributes have to exist together somewhere"
    LEFT_OUT = "the values that exist suffice"
    SKIPPED = "the values that exist suffice, and no other attribute is seen in place of one that is missing"


class Cost(NamedTuple):
    """Attributes that an example costs, whatever its values are; the mean, if draws decide."""

    usual: float
    """The cost where there is an inner product to estimate, or of a learner that estimates none."""
    at_zero: float
    """The cost while the regressor is 0: the inner product is 0 too, and needs no draw."""


@dataclass(frozen=True)
class Parameter:
    """A parameter that is tuned, or given.

    Attributes
    ----------
    name : str
        Its name in settings and grids, where a radius is ``B``.
    what : str
        What it is, in words.
    absolute : bool
        Whether its grid holds values, rather than multiples of what theory prescribes.
    tried : tuple of float
        Two values, in absolute terms, with which the checks run learners that have it.
    unlimited : bool
        Whether it may have any value above 0, so that a grid can grow beyond both its ends.
    """

    name: str
    what: str
    absolute: bool = False
    tried: tuple[float, float] = (0.1, 0.3)
    unlimited: bool = True


RADIUS = Parameter("B", "the radius", absolute=True, tried=(1.0, 0.5))
STEP_SIZE = Parameter("eta", "the step size")


@dataclass(frozen=True)
class RunContext:
    """The facts about a run that theory uses.

    Attributes
    ----------
    k, d, m : int
        Attribute budget, attributes, and examples at the last checkpoint.
    budget_split : BudgetSplit or None
        How k is divided.
    largest : float
        Largest absolute target, less what is predicted without attributes.
    unit : float
        Unit of the radii in a grid: 1, or the standard deviation of the targets where there is an intercept.
    moments : callable
        Returns the attributes' second moments, shape (d,), from full rows: for learners that are given them.
    prices : ndarray of float, shape (d,), or None
        What attributes cost, for price-aware learners.
    """

    k: int
    d: int
    m: int
    budget_split: BudgetSplit | None
    largest: float
    unit: float
    moments: Callable[[], np.ndarray]
    prices: np.ndarray | None = None

    @property
    def k_x(self) -> int:
        """Draws for the data point; 1 if the budget is not divided."""
        return self.budget_split.k_x if self.budget_split else 1


@dataclass(frozen=True)
class Theorem:
    """A proved bound on the excess loss of a learner, without unknown constants.

    Attributes
    ----------
    excess : callable
        ``excess(B, d, m, k)``: an upper bound on the expected loss after m examples less the least possible loss; B is
        None for learners without a radius. The loss is the mean squared error of regressors and the squared distance
        of subspaces. NaN for an m for which nothing is proved.
    domain : str
        Where attributes must lie: one of `budgetreg.data.registry.DOMAINS`.
    """

    excess: Callable[[float | None, int, int, int], float]
    domain: str


@dataclass(frozen=True)
class Learner:
    """Base class of learners: frozen dataclasses whose fields, made with `option`, are their options.

    A subclass sets the class attribute `core` and writes `fit`; everything else has a default. What the base declares
    as a property, a subclass may set as a class attribute. A variant of a learner is a subclass of its class.

    Attributes
    ----------
    name : str
        The learner's name in files and figures.
    grid : mapping of str to tuple of float
        Candidates for its parameters, as values or as multiples of what theory prescribes.
    core : str
        The value of ``algo.core`` that selects the class.
    version : int
        Version of its results: raise it when its numbers change, which makes existing results stale.
    parameters : tuple of Parameter
        All parameters that learners of the class may have.
    batching : Batching
    k_multiple : int
        Budgets are multiples of this.
    unequal_lengths : bool
        Whether streams of one batch may have different numbers of examples.
    independent_checkpoints : bool
        Whether no draw and no output depends on where other outputs are wanted, not even in its last bits.
    shares_settings : bool
        Whether one solution serves all settings, so that their last bits may depend on which settings there are.
    centres_itself : bool
        Whether it keeps or adds up what it sees, and so cannot have an origin that moves: it centres what it has seen
        itself, as `SideInformation` asks, and then yields `WithIntercept`.
    scales_itself : bool
        Whether it stores what it sees, and divides it by the standard deviations of all that it has seen where
        `SideInformation` asks for that. Such a learner needs no scale from a pilot.
    options_without_draws : mapping of str to str
        Options with which it sees all values that exist, without draws, where k = d.
    unlabelled : bool
        Whether examples without a target, which the accessor returns as NaN, still inform the model of the attributes.
    check_streams : int
        Number of streams over which `budgetreg check` averages; a learner whose fit is slow needs fewer.
    """

    name: str = field(kw_only=True)
    grid: Mapping[str, tuple[float, ...]] = field(default_factory=dict, kw_only=True)

    core: ClassVar[str]
    version: ClassVar[int] = 1
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    batching: ClassVar[Batching] = Batching.APART
    k_multiple: ClassVar[int] = 1
    unequal_lengths: ClassVar[bool] = False
    independent_checkpoints: ClassVar[bool] = False
    shares_settings: ClassVar[bool] = False
    centres_itself: ClassVar[bool] = False
    scales_itself: ClassVar[bool] = False
    options_without_draws: ClassVar[Mapping[str, str]] = MappingProxyType({})
    unlabelled: ClassVar[bool] = False
    check_streams: ClassVar[int] = 250

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Run all settings along all streams.

        Parameters
        ----------
        accessor : Accessor
            F streams of examples, G settings; the only way to a value.
        settings : mapping of str to ndarray of shape (G,)
            Parameters, in absolute values.
        checkpoints : sequence of int
            Numbers of examples, at least 1, at which the output is wanted, increasing.
        rngs : sequence of numpy.random.Generator
            One per stream; a learner that sees every attribute draws nothing.
        given : SideInformation
            Budget, and what is known beforehand.

        Yields
        ------
        checkpoint : int
        outputs : ndarray of float, shape (F, d, G) or (F, G, d, n); or WithIntercept
            Regressors, or orthonormal columns that span subspaces of n dimensions.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method fit")

    @property
    def task(self) -> Task:
        """The task: regression unless the class sets another one."""
        from budgetreg.algorithms.tasks import Regression  # here, as an algorithm alone needs no judge

        return Regression()

    @property
    def predicts(self) -> bool:
        """Whether it predicts targets; if not, it learns a subspace."""
        return self.task.predicts

    @property
    def observation(self) -> Observation:
        """The attributes that it sees of an example."""
        return Observation.K

    def split_budget(self, k: int) -> BudgetSplit | None:
        """Return how a budget is divided; None if it is not.

        Raises
        ------
        ConfigError
            If the budget is too small.
        """
        return None

    def cost(self, d: int, k: int, settings: Mapping[str, float]) -> Cost:
        """Return what an example of d attributes costs at a budget of k, for parameters by name."""
        each = d if self.observation is Observation.ALL else k
        return Cost(each, each)

    @property
    def tuned(self) -> Sequence[str]:
        """Names of the parameters that it has with its options."""
        return ()

    def theory(self, run: RunContext, B: float | None) -> Mapping[str, float]:
        """Return what its theorem prescribes for a radius (None if it has none), by parameter.

        Raises
        ------
        ConfigError
            If there is no theorem.
        """
        names = " and ".join(name for name in self.tuned if name != RADIUS.name)
        raise ConfigError(
            f"{self.name}: no theorem prescribes {names}: use tuning=cv or tuning=fixed; if there is one, "
            f"write the method theory of {type(self).__name__}, if not, declare its parameters with absolute=True"
        )

    @property
    def inactive_options(self) -> Sequence[str]:
        """Names of options that change nothing beside the others."""
        return ()

    @property
    def given_moments(self) -> str | None:
        """The source of the second moments that it is given; None if it is given none.

        ``given``: full rows of the training part, which no budget pays for; or ``pilot``.
        """
        return None

    @property
    def norm(self) -> int | None:
        """The norm of the ball that its regressors lie in or are measured by: 1 or 2; None if there is none."""
        return None

    @property
    def cost_aware(self) -> Sequence[str]:
        """The draws that depend on prices, if there are any: names of a `BudgetSplit`, or ``k`` for all."""
        return ()

    @property
    def uses_free(self) -> bool:
        """Whether it uses attributes that cost nothing, beside the k that it draws."""
        return self.observation is Observation.ALL

    @property
    def draws_groups(self) -> bool:
        """Whether it can draw k groups of attributes that are bought together, in place of k attributes."""
        return self.observation is Observation.ALL

    @property
    def chooses_k(self) -> bool:
        """Whether it can choose how many attributes it sees of each example: ``k=auto``."""
        return False

    @property
    def most_attributes(self) -> int | None:
        """How many attributes the data may have; None if any number. Words for groups leave out those with a limit."""
        return None

    @property
    def continues(self) -> bool:
        """Whether the attributes seen of an example do not depend on how many examples follow.

        Its parameters are given then, and so is the number of rows of a pilot.
        """
        return False

    @property
    def missing(self) -> Missing:
        """Its treatment of missing values."""
        return Missing.REFUSED

    def state_numbers(self, d: int) -> int:
        """Return how many numbers the state of a replica holds, up to a factor."""
        return d

    @property
    def bitwise_portable(self) -> bool:
        """Whether processors that round differently give the same result but for rounding.

        If not, rounding errors grow in its path without bound, and another processor gives other numbers of the same
        distribution.
        """
        return True

    @property
    def words(self) -> Sequence[str]:
        """Phrases for a caption: what it sees and how it learns."""
        return ()

    def notes(self, run: RunContext, settings: Mapping[str, Sequence[float]]) -> Sequence[str]:
        """Return notes for the user on a planned run.

        Raises
        ------
        ConfigError
            If it cannot run with these settings.
        """
        return ()

    @property
    def theorem(self) -> Theorem | None:
        """The bound on its excess loss; None if there is none."""
        return None

    @property
    def oracle(self) -> Any:
        """The object with which checks compare it, an `Oracle`; None if `budgetreg.testing.oracles` has one."""
        return None

    @property
    def skipped_checks(self) -> Mapping[str, str]:
        """By name of a check, the reason why it does not apply."""
        return {}

    def refuse(self) -> str | None:
        """Return why options cannot go together, as a key with value and the reason; None if they can."""
        return None

    def in_grid(self, name: str) -> Parameter:
        """Return what is declared of one of its parameters."""
        return next(parameter for parameter in self.parameters if parameter.name == name)

    def identity(self, section: Mapping[str, Any]) -> dict[str, Any]:
        """Return what of its checked section ``algo`` decides its results, except the grid."""
        decided = identity_of(options_of(type(self)), section, self.inactive_options)
        return {"name": self.name, "core": self.core, "version": self.version, **decided}


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


def prices_option(**declaration: Any) -> Any:
    """Declare whether draws depend on prices; other parameters are those of `option`."""
    return option("whether draws depend on prices", one_of("aware", "ignored"), **declaration)


def average_option() -> Any:
    """Declare which iterates are averaged."""
    return option("the averaging of iterates", AVERAGE, default="all")


def update_option(*updates: str) -> Any:
    """Declare the update, one of a few; checks do not vary it, as each value has a learner file."""
    return option("the update", one_of(*updates), tried=())


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
class UniformSubsetsLearner(PairwiseLearner):
    """Base class of learners that store uniform subsets of k attributes, and solve for a regressor at each checkpoint.

    They have one setting and nothing to tune. A subclass writes `solved` in place of `fit`.
    """

    continues = True
    centres_itself = True
    scales_itself = True
    missing = Missing.LEFT_OUT
    uses_free = True
    draws_groups = True

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Draw k attributes of each example uniformly, and solve at each checkpoint; see `Learner.fit`."""
        from budgetreg.revealed.collection import collect  # here, as other learners store nothing

        for collected in collect(accessor, checkpoints, rngs, given.k):
            if collected.is_checkpoint:  # no plans: the draws stay uniform
                yield collected.examples, self.solved(collected.entries, accessor, given)

    def solved(self, entries: Entries, accessor: Accessor, given: SideInformation) -> Outputs:
        """Return the regressors (F, d, 1) of all streams from everything revealed."""
        raise NotImplementedError(f"{type(self).__name__} has no method solved")


@dataclass(frozen=True)
class SubspaceLearner(PairwiseLearner):
    """Base class of learners of subspaces.

    Attributes
    ----------
    n_components : int
        Dimension of the subspace.
    """

    n_components: int = option("the dimension of the subspace", whole(1), tried=(1, 3))

    @property
    def fits_weights(self) -> bool:
        """Whether it fits a weight for each dimension to the attributes seen of an example."""
        return False

    def split_budget(self, k: int) -> BudgetSplit | None:
        """Refuse a budget of 1, and of no more attributes than weights that are fitted to them.

        Raises
        ------
        ConfigError
            If the budget is too small.
        """
        if self.fits_weights and 1 < k <= self.n_components:
            raise ConfigError(
                f"k={k}: {self.name} fits {self.n_components} weights to the attributes of each example, and needs a "
                f"budget above algo.n_components={self.n_components}"
            )
        return super().split_budget(k)

    @property
    def task(self) -> SubspaceLearning:
        """A subspace of the dimension chosen."""
        from budgetreg.algorithms.tasks import SubspaceLearning  # here, as an algorithm alone needs no judge

        return SubspaceLearning(self.n_components)


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


def first_phase(share: float, m: int) -> int:
    """Return the number of examples in the first of two phases, a share of all m, at least 1."""
    return max(1, int(share * m))
