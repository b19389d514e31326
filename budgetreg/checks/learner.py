"""A learner under examination: composed as a run composes it, then run on examples of the check's own making."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from budgetreg.config import catalogue
from budgetreg.learners import dispatch
from budgetreg.metering.accessor import Accessor, Table
from budgetreg.protocol.configuration import Config, validate
from budgetreg.protocol.plan import Plan, make_plan

Fit = Callable[..., Iterator[tuple[int, np.ndarray]]]

_RUN = (
    "algo.average=last",  # the iterates themselves, which tell the steps
    "dataset=sphere",
    "dataset.n=20",
    "dataset.n_test=5",
)


class CheckError(AssertionError):
    """A learner does not do what it should; the message says what."""


def close(what: str, found: np.ndarray | float, expected: np.ndarray | float) -> None:
    """Expect a mean to be what it must be, up to round-off."""
    off = float(np.abs(np.asarray(found) - expected).max() / np.abs(expected).max())
    expect(off < 1e-8, f"the mean of {what} is off by {off:.2g} of its size")


def expect(holds: Any, otherwise: str) -> None:
    """Do nothing if something holds.

    Raises
    ------
    CheckError
        If it does not.
    """
    if not holds:
        raise CheckError(otherwise)


@dataclass(frozen=True, eq=False)
class Learner:
    """A learner and what runs it.

    Attributes
    ----------
    config : Config
        Its configuration; a check sets budget and attributes to its own.
    fit : callable
        Runs it, see `budgetreg.learners.dispatch.fit`.
    """

    config: Config
    fit: Fit = dispatch.fit

    @property
    def draws(self) -> bool:
        """Whether it draws anything."""
        return self.config.algo.core not in ("exact", "offline") and self.config.algo.update != "full"

    def plan(self, d: int, k: int) -> Plan:
        """Return the plan of a run on d attributes.

        Raises
        ------
        ConfigError
            If the learner refuses the budget.
        """
        dataset = replace(self.config.dataset, options={**self.config.dataset.options, "d": d})
        return make_plan(replace(self.config, dataset=dataset, k=k))

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
    ) -> tuple[list[np.ndarray], "Recorder"]:
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
            Parameters; those that the learner has are taken.
        checkpoints : sequence of int, optional
            Numbers of examples at which the iterate is wanted; that of all by default.
        opened : callable, optional
            Told the number of examples opened so far at each new block.
        known : Table, optional
            The examples from which learners that are given second moments have them; `table` by default.

        Returns
        -------
        outputs : list of ndarray, shape (F, d, G) or (F, G, d, n)
            Regressors or subspaces, one array for each checkpoint.
        accessor : Recorder
            What it saw, and the bill.
        """
        plan = self.plan(table.d, k)
        # A step size such as eta_two, of a second phase, is that of the first.
        own = {name: np.array(settings[name.partition("_")[0]], dtype=float) for name in plan.settings}
        checkpoints = checkpoints or [orders.shape[1]]
        n_settings = len(next(iter(own.values()), [None]))
        accessor = Recorder(table, orders, n_settings, plan.budget, checkpoints, opened)
        algo, budget = plan.config.algo, {"k": plan.config.k, "k_x": plan.k_x, "k_ip": plan.k_ip}
        given = {}
        if algo.knows_moments:
            given["moments"] = np.square((known or table).rows(orders)).mean(axis=1)
        outputs = self.fit(algo, accessor, own, checkpoints, list(rngs), **budget, **given)
        return [W for _, W in outputs], accessor


class Recorder(Accessor):
    """An accessor that remembers which values it has handed out.

    It takes down what was asked for and charged, not what was looked up: a learner that reads around it is not seen.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._log: list[tuple[np.ndarray, np.ndarray]] = []

    def reveal_block(self, attributes: np.ndarray, drawn: np.ndarray | None = None) -> np.ndarray:
        """Reveal, see `Accessor.reveal_block`."""
        values = super().reveal_block(attributes, drawn)
        self._note(self._rows[:, :, None], attributes, True if drawn is None else drawn)
        return values

    def reveal(self, position: np.ndarray, attributes: np.ndarray, paid: np.ndarray) -> np.ndarray:
        """Reveal, see `Accessor.reveal`."""
        values = super().reveal(position, attributes, paid)
        self._note(self._rows[self._stream, position][:, None], attributes, paid)
        return values

    def reveal_some(self, position: int, attributes: np.ndarray, drawn: np.ndarray) -> np.ndarray:
        """Reveal, see `Accessor.reveal_some`."""
        values = super().reveal_some(position, attributes, drawn)
        self._note(self._rows[:, position, None, None], attributes, drawn)
        return values

    def rows(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Reveal, see `Accessor.rows`."""
        examples = super().rows(start, stop)
        self._note(self._rows[:, :, None], np.arange(self.d))
        return examples

    def distinct_rows(self, start: int, stop: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Reveal, see `Accessor.distinct_rows`."""
        self._note(self._orders[:, start:stop, None], np.arange(self.d))
        return super().distinct_rows(start, stop)

    def seen(self) -> tuple[np.ndarray, np.ndarray]:
        """Return rows and attributes of the values handed out, in this order."""
        rows, attributes = zip(*self._log, strict=True)
        return np.concatenate(rows), np.concatenate(attributes)

    def _note(self, rows: np.ndarray, attributes: np.ndarray, which: np.ndarray | bool = True) -> None:
        rows, attributes, shown = np.broadcast_arrays(rows, attributes, which)
        self._log.append((rows[shown], attributes[shown]))


@cache
def compose(name: str) -> Learner:
    """Return the learner of a file in ``conf/algo``.

    Raises
    ------
    ConfigError
        If the file does not describe one.
    """
    from hydra import compose as composed
    from hydra import initialize_config_dir

    with initialize_config_dir(str(catalogue.conf_dir()), version_base="1.3"):
        config = validate(composed("config", overrides=[f"algo={name}", *_RUN]))
    # The checks' examples have few attributes.
    return Learner(config if config.algo.predicts else replace(config, algo=replace(config.algo, n_components=2)))
