"""The subject of the checks: a learner composed as for a run, which a check runs on examples of its own."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from budgetreg.algorithms import contract
from budgetreg.algorithms.learner import Fit, Learner, Observation, SideInformation, SubspaceLearner
from budgetreg.config.composition import Composer
from budgetreg.config.options import REQUIRED, options_of
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.ledger import Bill
from budgetreg.metering.table import Origin, Table
from budgetreg.protocol.configuration import Config, validate
from budgetreg.protocol.plan import Plan, make_plan
from budgetreg.testing.steps import prices

_RUN = {
    "algo.average": "last",  # the iterates themselves, from which the steps follow
    "dataset": "sphere",
    "dataset.n": 20,
    "dataset.n_test": 5,
}


@dataclass(frozen=True, eq=False)
class Subject:
    """A learner that is checked.

    Attributes
    ----------
    config : Config
        The configuration; a check replaces its budget and its attributes.
    wrapped : callable
        Returns what runs in place of the learner's `fit`: tests break it here.
    changes : str
        Options that differ from the learner's file, as ``key=value``; empty if none does.
    """

    config: Config
    wrapped: Callable[[Fit], Fit] = lambda fit: fit
    changes: str = ""

    @property
    def learner(self) -> Learner:
        """The learner."""
        return self.config.algo

    @property
    def name(self) -> str:
        """The name of the learner."""
        return self.learner.name

    @property
    def draws(self) -> bool:
        """Whether the learner draws attributes."""
        return self.learner.observation is not Observation.ALL

    def other(self, name: str) -> "Subject":
        """Return another learner of ``conf/algo`` as a subject."""
        return examined(name)

    def variants(self) -> Iterator["Subject"]:
        """Yield the learner, then its variants with changed options, see `variants`."""
        for changes, learner in variants(self.learner):
            words = " ".join(f"{key}={value}" for key, value in changes.items())
            yield replace(self, config=replace(self.config, algo=learner), changes=words)

    def plan(self, d: int, k: int) -> Plan:
        """Return the plan of a run on d attributes.

        Raises
        ------
        ConfigError
            If the learner refuses the budget.
        """
        dataset = replace(self.config.dataset, options={**self.config.dataset.options, "d": d})
        return make_plan(replace(self.config, dataset=dataset, k=k))

    def draws_for(self, d: int, k: int) -> tuple[int, int]:
        """Return the numbers of draws for the data point and for the inner product at a budget of k."""
        budget_split = self.plan(d, k).budget_split
        assert budget_split
        return budget_split

    def run(
        self,
        table: Table,
        orders: np.ndarray,
        rngs: Sequence[Any],
        k: int,
        settings: Mapping[str, Sequence[float]],
        checkpoints: Sequence[int] | None = None,
        opened: Callable[[int], None] = lambda stop: None,
        known: Table | None = None,
        pilot: np.ndarray | None = None,
        costs: np.ndarray | None = None,
    ) -> tuple[list[np.ndarray], "Reveals"]:
        """Run the learner along F streams.

        Parameters
        ----------
        table : Table
            Examples.
        orders : ndarray of int, shape (F, m)
            Rows of each stream.
        rngs : sequence of numpy.random.Generator
            One per stream.
        k : int
            Attribute budget.
        settings : mapping of str to sequence of float
            Parameters; those that the learner has are used.
        checkpoints : sequence of int, optional
            Numbers of examples at which an output is wanted; by default the number of all.
        opened : callable, optional
            Called at each new block with the number of examples opened so far.
        known : Table, optional
            Examples whose second moments a learner is given that needs them; `table` by default.
        pilot : ndarray of int, shape (F, N), optional
            Rows that each stream knows beforehand. With them, attributes and targets are centred on their means,
            and learners that scale what they see do so.
        costs : ndarray of float, shape (d,), optional
            Prices of attributes, for price-aware learners; by default those of the oracles.

        Returns
        -------
        outputs : list of ndarray, shape (F, d, G) or (F, G, d, n)
            Regressors or subspaces, one array for each checkpoint; with a pilot the intercept is one more attribute.
        reveals : Reveals
            What the learner saw, and the bill.
        """
        plan = self.plan(table.d, k)
        # A step size such as eta_two, of a second phase, equals that of the first unless it is given.
        names = {name: name if name in settings else name.partition("_")[0] for name in plan.settings}
        values = {name: np.array(settings[names[name]], dtype=float) for name in plan.settings}
        checkpoints = checkpoints or [orders.shape[1]]
        n_settings = len(next(iter(values.values()), [None]))
        origin = pilot is not None
        centred, log = origin and not self.learner.centres_itself, Recorder(table.d)
        accessor = Accessor(
            table,
            orders,
            n_settings,
            plan.budget,
            checkpoints,
            opened,
            pilot=pilot,
            centre_attributes=centred,
            centre_targets=centred,
            log=log,
        )
        moments = np.square((known or table).rows(orders)).mean(axis=1) if self.learner.given_moments else None
        costs = prices(table.d) if costs is None else costs
        costs = costs if self.learner.cost_aware else None
        scaled = origin and self.learner.scales_itself
        given = SideInformation(k, plan.budget_split, moments, origin, origin, scaled, costs)
        fit = self.wrapped(self.learner.fit)
        outputs = contract.run(self.learner, accessor, values, checkpoints, list(rngs), given, fit)
        arrays = [_with_intercept(W, origins) if origin else W for _, W, origins in outputs]
        return arrays, Reveals(accessor.bill(), log.seen())


class Reveals(NamedTuple):
    """The cells that a learner saw along its streams, and the bill."""

    bill: Bill
    seen: tuple[np.ndarray, np.ndarray]
    """Rows and attributes of the values, in the order in which they were revealed."""

    def of(self, wanted: np.ndarray) -> list[np.ndarray]:
        """Return the attributes that were seen of each of some rows, in this order."""
        order = np.argsort(self.seen[0], kind="stable")
        rows, attributes = (part[order] for part in self.seen)
        ends = zip(np.searchsorted(rows, wanted), np.searchsorted(rows, wanted, side="right"), strict=True)
        return [attributes[begin:end] for begin, end in ends]


class Recorder:
    """Records which values an accessor returned, as its log.

    It records what was asked for and charged. It cannot see a learner that reads values without the accessor.
    """

    def __init__(self, d: int) -> None:
        self._d = d
        self._seen: list[tuple[np.ndarray, np.ndarray]] = []

    def open(self, start: int, rows: np.ndarray) -> None:
        """Begin a block, see `budgetreg.metering.ledger.Book`."""
        self._rows, self._streams = rows, np.arange(len(rows))

    def note_rows(self) -> None:
        """Record full rows."""
        self._note(self._rows[:, :, None], np.arange(self._d), None)

    def note_block(self, attributes: np.ndarray, drawn: np.ndarray | None) -> None:
        """Record what all settings draw."""
        self._note(self._rows[:, :, None], attributes, drawn)

    def note_example(self, position: np.ndarray, attributes: np.ndarray, drawn: np.ndarray | None) -> None:
        """Record what each replica draws."""
        self._note(self._rows[self._streams, position][:, None], attributes, drawn)

    def seen(self) -> tuple[np.ndarray, np.ndarray]:
        """Return rows and attributes of the values, in this order."""
        nothing = np.empty(0, dtype=np.intp)
        rows, attributes = zip((nothing, nothing), *self._seen, strict=True)
        return np.concatenate(rows), np.concatenate(attributes)

    def _note(self, rows: np.ndarray, attributes: np.ndarray, drawn: np.ndarray | None) -> None:
        rows, attributes, shown = np.broadcast_arrays(rows, attributes, True if drawn is None else drawn)
        self._seen.append((rows[shown], attributes[shown]))


def _with_intercept(W: np.ndarray, origins: Sequence[Origin]) -> np.ndarray:
    """Return regressors (F, d + 1, G) of examples with one more attribute, which is 1."""
    b = [
        np.broadcast_to(origin.intercept - (0 if origin.shift is None else origin.shift @ w), W.shape[2:])
        for origin, w in zip(origins, W, strict=True)
    ]
    return np.concatenate([W, np.stack(b)[:, None, :]], axis=1)


_composer = cache(Composer)  # Hydra is slow, and there are many learners


@cache
def examined(name: str) -> Subject:
    """Return the learner of a file in ``conf/algo`` as a subject.

    Raises
    ------
    ConfigError
        If the file does not describe one.
    """
    config = validate(_composer()({"algo": name, **_RUN}))
    learner = config.algo
    if isinstance(learner, SubspaceLearner):  # the checks' examples have few attributes
        learner = replace(learner, n_components=2)
    return Subject(replace(config, algo=learner))


def variants(learner: Learner) -> Iterator[tuple[Mapping[str, Any], Learner]]:
    """Yield the learner, then its variants with one option changed, and what is changed.

    Each option takes the values that it declares to be tried. An option without effect beside the others is changed
    together with one that gives it an effect. What the learner refuses is left out.

    Yields
    ------
    changes : mapping of str to Any
        Options and their values.
    Learner
    """
    yield {}, learner
    effective = _effective(learner)
    for changes, changed in _changed(learner, effective):
        yield changes, changed
        for more, both in _changed(changed, _effective(changed) - effective):
            yield {**changes, **more}, both


def _changed(learner: Learner, names: set[str]) -> Iterator[tuple[Mapping[str, Any], Learner]]:
    """Yield learners of which one option is changed, among some names."""
    for name, option in options_of(type(learner)).items():
        for value in option.values if name in names else ():
            if value != getattr(learner, name):
                changed = _completed(replace(learner, **{name: value}))
                if changed is not None:
                    yield {name: value}, changed


def _effective(learner: Learner) -> set[str]:
    """Return the names of options that have an effect beside the others."""
    options = options_of(type(learner)).items()
    return {name for name, option in options if option.applies(vars(learner))} - set(learner.inactive_options)


def _completed(learner: Learner) -> Learner | None:
    """Return a learner with the defaults of options that come to apply; None if one has no default, or it refuses."""
    for name, option in options_of(type(learner)).items():
        if option.applies(vars(learner)) and getattr(learner, name) is None and not option.must.accepts(None):
            if option.default is REQUIRED:
                return None
            learner = replace(learner, **{name: option.default})
    return learner if learner.refuse() is None else None
