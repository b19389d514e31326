"""What a family of learners declares of itself, and a learner: a family with its options.

Everything else asks the declaration: which options there are and what they must be, what is seen of an example, which
parameters are tuned and in which units, how passes may be batched, what is told of it, what its theorem allows, and
what the checks are to compare with. No family is asked for by name.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from importlib import import_module
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from budgetreg.config.options import identity_of, options_of
from budgetreg.metering.accessor import Accessor
from budgetreg.tasks.task import Task


class Observation(Enum):
    """What a learner sees of an example, which is what it is charged for."""

    K = "k attributes of each example"
    K_ON_AVERAGE = "k attributes of an example on average"
    ALL = "all attributes"


class Batching(Enum):
    """Which streams of examples may advance together; no number of any depends on which do."""

    IN_STEP = "all, example by example: folds and final runs of several repetitions"
    APART = "any, but nothing is gained by it beyond a repetition"
    WITH_ITS_FOLDS = "the folds of a repetition, which share what they have in common and are never parted"


class Missing(Enum):
    """What a learner makes of cells without a value, which no budget buys and which draws pass over."""

    REFUSED = "every value that it asks for has to be there"
    WEIGHED = "what it sees is divided by how often that is there: each two attributes have to be together somewhere"
    LEFT_OUT = "what is there suffices"


class BudgetSplit(NamedTuple):
    """How the budget k is divided."""

    k_x: int
    """Draws for the data point."""
    k_ip: int
    """Draws for the inner product."""


class Cost(NamedTuple):
    """Attributes that an example costs, whatever its values are; on average, if draws decide."""

    usual: float
    """Where there is an inner product to estimate; of learners that estimate none, always."""
    at_zero: float
    """While the regressor is 0: the inner product is 0 too, and needs no draw."""


@dataclass(frozen=True)
class Parameter:
    """A parameter that is tuned, or given.

    Attributes
    ----------
    name : str
        As in settings and grids, where a radius is ``B``.
    what : str
        What it is, in words.
    absolute : bool
        Whether its grid holds values, rather than multiples of what theory prescribes.
    tried : tuple of float
        Two values, in absolute terms, with which the checks run learners that have it.
    unlimited : bool
        Whether it may have any value above 0, so that a grid can go on beyond both its ends.
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
    """What theory may ask about a run.

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
        What attributes cost, for learners that heed it.
    """

    k: int
    d: int
    m: int
    budget_split: BudgetSplit | None
    largest: float
    unit: float
    moments: Callable[[], np.ndarray]
    prices: np.ndarray | None = None


@dataclass(frozen=True)
class SideInformation:
    """What a learner is given beside examples and parameters.

    Attributes
    ----------
    k : int
        Attribute budget.
    budget_split : BudgetSplit or None
        How it is divided, for learners that declare it.
    moments : ndarray of float, shape (F, d), or None
        Second moments of the attributes, for learners that are given them.
    centred : bool
        For learners that store what they see: whether attributes count from the means of what was seen. Others get
        them centred.
    intercept : bool
        For learners that store what they see: whether the mean of the targets is predicted there. Others get targets
        less what is predicted.
    prices : ndarray of float, shape (d,), or None
        What attributes cost, for learners that heed it; all above 0.
    """

    k: int
    budget_split: BudgetSplit | None = None
    moments: np.ndarray | None = None
    centred: bool = False
    intercept: bool = False
    prices: np.ndarray | None = None


class WithIntercept(NamedTuple):
    """Regressors of a learner that decides itself what they count from: ``f(x) = intercept + <w, x>``."""

    regressors: np.ndarray
    """Shape (F, d, G)."""
    intercept: np.ndarray
    """Shape (F, G), in units of the target."""


Outputs = np.ndarray | WithIntercept


class Fit(Protocol):
    """How a learner runs, one pass along all streams of an accessor; the same for all families."""

    def __call__(
        self,
        accessor: Accessor,
        settings: Mapping[str, np.ndarray],
        checkpoints: Sequence[int],
        rngs: Sequence[np.random.Generator],
        options: Any,
        given: SideInformation,
    ) -> Iterator[tuple[int, Outputs]]:
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
        options : dataclass
            The family's own.
        given : SideInformation
            Budget, and what is known beforehand.

        Yields
        ------
        checkpoint : int
        outputs : ndarray of float, shape (F, d, G) or (F, G, d, n); or WithIntercept
            Regressors, or orthonormal columns that span subspaces of n dimensions.
        """


@dataclass(frozen=True)
class Theorem:
    """What is proved of a learner, without unknown constants.

    Attributes
    ----------
    excess : callable
        ``excess(B, d, m, k)``: most that the expected loss lies above that of the best after m examples; B is None for
        learners without a radius. Of regressors the mean squared error, of subspaces the squared distance. NaN for an
        m for which nothing is proved.
    domain : str
        Where attributes must lie: one of `budgetreg.data.kind.DOMAINS`.
    """

    excess: Callable[[float | None, int, int, int], float]
    domain: str


class Oracle(Protocol):
    """What the checks compare a learner with; each raises a `CheckError` of that module if it is off.

    A law needs no comparison from which all learners of its family are excused. A subject is a learner under
    examination, see `budgetreg.enumeration.expectations.LearnerUnderTest`.
    """

    def unbiased(self, subject: Any) -> None:
        """Compare the mean of what is estimated from one example, over all that may be drawn, with what it is of."""

    def second_moments(self, subject: Any) -> None:
        """Compare the mean square of the estimate with its formula for the probabilities that the family states."""

    def full_information(self, subject: Any) -> None:
        """Compare the estimate at k = d with what full information gives."""

    def boundary(self, subject: Any) -> None:
        """Compare steps at which something clips or projects with what has to come of the unbiased estimate there."""

    def minimiser(self, subject: Any) -> None:
        """Certify, at some checkpoints, that the output is the best for what was seen."""


def run_by(module: str, *names: str, **renamed: str) -> Fit:
    """Return how the core of a family runs: the function ``fit`` of a module that is imported when it is needed.

    Parameters
    ----------
    module : str
        Its dotted name.
    *names : str
        Which options, which of ``k_x`` and ``k_ip``, and which fields of `SideInformation` ``fit`` takes by name.
    **renamed : str
        What it takes by other names.
    """
    taken = {**dict(zip(names, names, strict=True)), **renamed}

    def fit(
        accessor: Accessor,
        settings: Mapping[str, np.ndarray],
        checkpoints: Sequence[int],
        rngs: Sequence[np.random.Generator],
        options: Any,
        given: SideInformation,
    ) -> Iterator[tuple[int, Outputs]]:
        budget_split = given.budget_split._asdict() if given.budget_split else {}
        known = {**vars(options), **vars(given), **budget_split}
        arguments = {name: known[source] for name, source in taken.items()}
        outputs: Iterator[tuple[int, Outputs]] = import_module(module).fit(
            accessor, settings, checkpoints, rngs, **arguments
        )
        return outputs

    return fit


def _nothing(*_: Any) -> tuple[()]:
    return ()


def _none(*_: Any) -> None:
    return None


@dataclass(frozen=True, eq=False, kw_only=True)
class Family:
    """A kind of learner, as it declares itself; functions are given the family's own options or a `Learner`.

    Attributes
    ----------
    name : str
        The value of ``algo.core``.
    version : int
        Of its results: raised when its numbers change, which makes those that are there stale.
    options : type
        A frozen dataclass whose fields are made with `budgetreg.config.options.option`.
    fit : Fit
        Runs it.
    task : callable
        ``task(options)``: what it learns.
    observation : callable
        ``observation(options)``: what it sees of an example.
    split_budget : callable
        ``split_budget(learner, k)``: how k is divided, None if it is not; raises a `ConfigError` if k is too small.
    cost : callable or None
        ``cost(learner, d, k, settings)``: what an example costs, as a `Cost`, for parameters by name. None if it is k
        attributes, or all d, as `observation` says.
    k_multiple : int
        Budgets are multiples of this.
    parameters : tuple of Parameter
        All that learners of the family may have.
    tuned : callable
        ``tuned(options)``: names of those that one has.
    theory : callable or None
        ``theory(learner, circumstances, B)``: what its theorem prescribes for a radius (None if it has none), by
        parameter. None if there is no theorem.
    inactive_options : callable
        ``inactive_options(options)``: names of options that change nothing beside the others.
    given_moments : callable
        ``given_moments(options)``: where the attributes' second moments come from that it is given: ``given`` if from
        full rows of the training part, which no budget pays for, or ``pilot``; None if it is given none.
    cost_aware : callable
        ``cost_aware(options)``: which of its draws depend on what attributes cost, where prices are given, by the
        names of a `BudgetSplit`; none if none do.
    missing : callable
        ``missing(options)``: what becomes of cells without a value, as `Missing`.
    batching : Batching
    unequal_lengths : bool
        Whether streams that advance together may end at different lengths.
    shares_settings : bool
        Whether one solution serves all settings, so that their last bits may depend on which there are.
    centres_itself : bool
        Whether it stores or adds up what it sees, which an origin that moves would spoil: it takes the exact means of
        what it has seen for one (`SideInformation`).
    state_numbers : callable
        ``state_numbers(d)``: numbers of the state of a replica, up to a factor.
    chaotic : callable
        ``chaotic(options)``: whether round-off grows in its path without bound, so that another processor, which
        rounds otherwise, has other numbers of the same law.
    words : callable
        ``words(options)``: phrases for a caption, what it sees and how it learns.
    notes : callable
        ``notes(learner, circumstances, settings)``: what the user is told of a plan.
    theorem : callable
        ``theorem(options)``: the bound on its excess loss; None if there is none.
    oracle : Oracle, str or None
        What its estimates are compared with, or the module whose functions do; None if all these checks are excused.
    excuses : callable
        ``skipped_checks(options)``: by name of a check, the reason why it does not apply.
    refuse : callable
        ``refuse(options)``: why options cannot go together, as a key with value and the reason; None if they can.
    """

    name: str
    version: int = 1
    options: type
    fit: Fit
    task: Callable[[Any], Task]
    observation: Callable[[Any], Observation] = lambda options: Observation.K
    split_budget: Callable[["Learner", int], BudgetSplit | None] = _none
    cost: Callable[["Learner", int, int, Mapping[str, float]], Cost] | None = None
    k_multiple: int = 1
    parameters: tuple[Parameter, ...] = ()
    tuned: Callable[[Any], Sequence[str]] = _nothing
    theory: Callable[["Learner", RunContext, float | None], Mapping[str, float]] | None = None
    inactive_options: Callable[[Any], Sequence[str]] = _nothing
    given_moments: Callable[[Any], str | None] = _none
    cost_aware: Callable[[Any], Sequence[str]] = _nothing
    missing: Callable[[Any], Missing] = lambda options: Missing.REFUSED
    batching: Batching = Batching.APART
    unequal_lengths: bool = False
    shares_settings: bool = False
    centres_itself: bool = False
    state_numbers: Callable[[int], int] = lambda d: d
    chaotic: Callable[[Any], bool] = lambda options: False
    words: Callable[[Any], Sequence[str]] = _nothing
    notes: Callable[["Learner", RunContext, Mapping[str, Sequence[float]]], Sequence[str]] = _nothing
    theorem: Callable[[Any], Theorem | None] = _none
    oracle: Oracle | str | None = None
    skipped_checks: Callable[[Any], Mapping[str, str]] = lambda options: {}
    refuse: Callable[[Any], str | None] = _none

    def __reduce__(self) -> tuple[Any, ...]:
        """Let a worker find the declaration by name, as functions of ours need not be sent."""
        from budgetreg.learners import family

        return family, (self.name,)


@dataclass(frozen=True)
class Learner:
    """A family with its options, named: what a file of ``conf/algo`` composes.

    Attributes
    ----------
    name : str
        What it is called in files and figures.
    family : Family
    options : dataclass
        The family's own.
    grid : mapping of str to tuple of float
        Candidates for its parameters, as values or as multiples of what theory prescribes.
    """

    name: str
    family: Family
    options: Any
    grid: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def task(self) -> Task:
        """What it learns."""
        return self.family.task(self.options)

    @property
    def predicts(self) -> bool:
        """Whether it predicts targets; if not, it learns a subspace."""
        return self.task.predicts

    @property
    def observation(self) -> Observation:
        """What it sees of an example."""
        return self.family.observation(self.options)

    @property
    def given_moments(self) -> str | None:
        """Where the attributes' second moments come from that it is given; None if it is given none."""
        return self.family.given_moments(self.options)

    @property
    def cost_aware(self) -> Sequence[str]:
        """Which of its draws, ``k_x`` and ``k_ip``, depend on what attributes cost, where prices are given."""
        return self.family.cost_aware(self.options)

    @property
    def missing(self) -> Missing:
        """What becomes of cells without a value."""
        return self.family.missing(self.options)

    @property
    def chaotic(self) -> bool:
        """Whether round-off grows in its path without bound."""
        return self.family.chaotic(self.options)

    def split_budget(self, k: int) -> BudgetSplit | None:
        """Return how a budget is divided; None if it is not.

        Raises
        ------
        ConfigError
            If it is too small.
        """
        return self.family.split_budget(self, k)

    def cost(self, d: int, k: int, settings: Mapping[str, float]) -> Cost:
        """Return what an example of d attributes costs at a budget of k, as the family declares it."""
        if self.family.cost is not None:
            return self.family.cost(self, d, k, settings)
        each = d if self.observation is Observation.ALL else k
        return Cost(each, each)

    @property
    def oracle(self) -> Oracle | None:
        """What its estimates are compared with."""
        law = self.family.oracle
        return cast(Oracle, import_module(law)) if isinstance(law, str) else law

    def in_grid(self, parameter: str) -> Parameter:
        """Return what is declared of one of its parameters."""
        return next(one for one in self.family.parameters if one.name == parameter)

    def identity(self, section: Mapping[str, Any]) -> dict[str, Any]:
        """Return what of its checked section ``algo`` decides its results, but for the grid."""
        without = self.family.inactive_options(self.options)
        decided = identity_of(options_of(self.family.options), section, without)
        return {"name": self.name, "core": self.family.name, "version": self.family.version, **decided}
