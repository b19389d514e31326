"""After any sequence of calls, mistakes and kills, by several people, a study holds each recorded value exactly once.

A model of a few lines knows what was recorded. The bill is its sum.
"""

import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import budgetreg
from budgetreg.common.errors import ConfigError, DataError

pytestmark = pytest.mark.usefixtures("short_chains")

COSTS = {"age": 0.0, "ecg": 10.0, "iron": 20.5, "zinc": 20.5}
HEADS = {"age": "age", "ecg": "ecg", "iron": "iron", "zinc": "iron"}
STEPS = ("execute", "executemany", "serialize", "open", "write", "fstat", "replace", "close", "_exit")
KILLS = st.none() | st.integers(1, 40)
Cell = tuple[str, str]


def lines(*rows: tuple[Any, ...]) -> pd.DataFrame:
    """Return a table of results: lines of example, attribute, value, and perhaps cost."""
    return pd.DataFrame(rows, columns=["example", "attribute", "value", "cost"][: len(rows[0]) if rows else 3])


def value_of(cell: Cell) -> float:
    """Return what is measured in a cell."""
    return float(sum(map(ord, "".join(cell))))


def in_process(call: Callable[[], object], kill_at: int | None = None) -> int:
    """Make a call in a copy of this process, which may be killed before some step of SQLite or of writing the file.

    Return the copy's process number.
    """
    child = os.fork()
    if not child:
        steps = iter(range(1, 1000))

        def kill(frame: object, event: str, function: Any) -> None:
            if event == "c_call" and function.__name__ in STEPS and next(steps) == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.setprofile(kill)
            call()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return child


def ended(child: int) -> int:
    """Wait for a process, and return how it ended."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class AnySequence(RuleBasedStateMachine):
    """Calls of a study beside a model of what it should know."""

    kills = False

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "trial.db"
        self.examples: list[str] = []
        self.beforehand: dict[Cell, float] = {}
        self.paid: dict[Cell, float] = {}
        self.charges: dict[Cell, float] = {}
        self.excluded: set[str] = set()
        self.unavailable: set[Cell] = set()
        self.pending: dict[Cell, int] = {}
        self.lines: dict[int, list[Cell]] = {}

    def teardown(self) -> None:
        self.folder.cleanup()

    def made(self, call: Callable[[budgetreg.Study], object], kill_at: int | None) -> None:
        """Make a call, which is killed before, and then repeated, if kills are tried."""

        def whole() -> None:
            with budgetreg.Study(self.path) as study:
                call(study)

        if self.kills and kill_at is not None:
            assert ended(in_process(whole, kill_at)) in (0, -signal.SIGKILL)
        whole()

    @initialize(known=st.booleans())
    def create(self, known: bool) -> None:
        self.examples = ["p0", "p1", "p2"]
        self.beforehand = {("p0", "ecg"): 7.0} if known else {}
        frame = pd.DataFrame({"example": self.examples, "ecg": [7.0 if known else None, None, None]})
        groups = {"iron": "blood", "zinc": "blood"}
        budgetreg.Study.create(self.path, examples=frame, costs=COSTS, groups=groups).close()

    @rule(kill_at=KILLS)
    def add(self, kill_at: int | None) -> None:
        name = f"p{len(self.examples)}"
        self.made(lambda study: study.add([name], targets=[1.0]), kill_at)
        self.examples.append(name)

    @rule(spend=st.sampled_from([5, 10, 35, 200]), per_example=st.sampled_from([None, 1, 2]), kill_at=KILLS)
    def ask(self, spend: float, per_example: int | None, kill_at: int | None) -> None:
        number = len(self.lines) + 1
        try:
            self.made(lambda study: study.ask(spend, per_example, order=number), kill_at)
        except (ConfigError, AssertionError):
            with budgetreg.Study(self.path) as study, pytest.raises(ConfigError):
                study.ask(spend, per_example, order=number)
            return
        self.note_order(number, spend, per_example)

    def note_order(self, number: int, spend: float, per_example: int | None) -> None:
        """Note an order, which must be within its limits and hold nothing that is known or on order."""
        with budgetreg.Study(self.path) as study:
            order = study.order(number)
        cells = list(zip(order["example"], order["attribute"], strict=True))
        assert len(set(cells)) == len(cells) > 0
        assert order["cost"].sum() <= spend
        assert not {*cells} & {*self.beforehand, *self.paid, *self.unavailable, *self.pending}
        assert not {example for example, _ in cells} & self.excluded
        self.lines[number] = cells
        self.pending |= dict.fromkeys(cells, number)
        if per_example is not None:
            # What costs nothing is ordered, too, of examples that already have as much as the limit, or more.
            for name in set(order["example"][order["cost"] > 0]):
                attributes = [attribute for example, attribute in self.counted() if example == name]
                assert len({HEADS[attribute] for attribute in attributes if COSTS[attribute]}) <= per_example

    def counted(self) -> set[Cell]:
        """Return the cells of all orders that were not released."""
        ordered = {cell for cells in self.lines.values() for cell in cells}
        return ordered & {*self.paid, *self.unavailable, *self.pending}

    @rule(spend=st.sampled_from([10, 35]))
    def two_ask_at_once(self, spend: float) -> None:
        children = [in_process(lambda: budgetreg.Study(self.path).ask(spend)) for _ in range(2)]
        for _ in range([ended(child) for child in children].count(0)):
            self.note_order(len(self.lines) + 1, spend, None)

    @rule(share=st.integers(1, 4), never=st.booleans(), kill_at=KILLS)
    def tell_what_arrived(self, share: int, never: bool, kill_at: int | None) -> None:
        """Some of the pending cells have arrived, in another order; the others are still empty."""
        cells = sorted(self.pending, reverse=True)
        arrived = dict.fromkeys(cells[::share])
        values = [None if cell not in arrived else "unavailable" if never else value_of(cell) for cell in cells]
        frame = lines(*((*cell, value) for cell, value in zip(cells, values, strict=True)))
        self.made(lambda study: study.tell(frame), kill_at)
        for cell in arrived:
            del self.pending[cell]
            if never:
                self.unavailable.add(cell)
            else:
                self.paid[cell] = value_of(cell)
                self.charges.setdefault((cell[0], HEADS[cell[1]]), COSTS[cell[1]])

    @rule(cost=st.sampled_from([0.0, 7.25, 31.1]), kill_at=KILLS)
    def tell_with_an_invoice(self, cost: float, kill_at: int | None) -> None:
        """The first pending purchase of one attribute arrives, and costs something else."""
        cell = next((cell for cell in sorted(self.pending) if cell[1] == "ecg"), None)
        if cell is not None:
            self.made(lambda study: study.tell(lines((*cell, value_of(cell), cost))), kill_at)
            del self.pending[cell]
            self.paid[cell], self.charges[cell] = value_of(cell), cost

    @rule(at=st.integers(0, 20), refund=st.booleans(), kill_at=KILLS)
    def exclude(self, at: int, refund: bool, kill_at: int | None) -> None:
        name = self.examples[at % len(self.examples)]
        self.made(lambda study: study.exclude(examples=[name], refund=refund), kill_at)
        self.excluded.add(name)
        self.pending = {cell: order for cell, order in self.pending.items() if cell[0] != name}
        if refund:
            self.beforehand |= {cell: value for cell, value in self.paid.items() if cell[0] == name}
            self.paid = {cell: value for cell, value in self.paid.items() if cell[0] != name}
            self.charges = {cell: cost for cell, cost in self.charges.items() if cell[0] != name}

    @rule(at=st.integers(0, 20), attribute=st.sampled_from(sorted(COSTS)), free=st.booleans())
    def tell_what_nobody_ordered(self, at: int, attribute: str, free: bool) -> None:
        cell = self.examples[at % len(self.examples)], attribute
        if cell in {*self.beforehand, *self.paid, *self.unavailable, *self.pending}:
            return
        self.made(lambda study: study.tell(lines((*cell, value_of(cell))), free=free), 3)
        (self.beforehand if free else self.paid)[cell] = value_of(cell)
        if not free:
            self.charges.setdefault((cell[0], HEADS[attribute]), COSTS[attribute])

    @rule()
    def repeat_and_contradict(self) -> None:
        rows = [(*cell, value) for cell, value in self.paid.items()]
        with budgetreg.Study(self.path) as study:
            study.tell(lines(*rows))
            if rows:
                with pytest.raises(DataError):
                    study.tell(lines((*rows[0][:2], -1.0), *rows[::-1]))
            with pytest.raises(DataError):
                study.tell(lines(("p0", "nothing", 1)))

    @rule(at=st.integers(0, 20), kill_at=KILLS)
    def cancel(self, at: int, kill_at: int | None) -> None:
        if not self.lines:
            return
        number = 1 + at % len(self.lines)
        self.made(lambda study: study.cancel(number), kill_at)
        self.pending = {cell: order for cell, order in self.pending.items() if order != number}

    @invariant()
    def holds_what_was_told_once(self) -> None:
        if not self.examples:
            return
        with budgetreg.Study(self.path) as study:
            state, bill = study.state(), study.bill()
        known = {
            (name, attribute): state.values[i, j]
            for i, name in enumerate(state.examples)
            for j, attribute in enumerate(state.attributes)
            if state.known[i, j]
        }
        assert known == {**self.beforehand, **self.paid}
        total = pytest.approx(sum(self.charges.values()), abs=1e-9)
        assert bill.total == total == bill.by_order["cost"].sum() == bill.by_attribute["cost"].sum()
        assert int(state.on_order.sum()) == len(self.pending)
        assert int(state.unavailable.sum()) == len(self.unavailable)
        assert sorted(path.name for path in self.path.parent.iterdir()) == ["trial.db"]


class WithKills(AnySequence):
    """The same with kills."""

    kills = True


_CHECKED = settings(deadline=None, suppress_health_check=list(HealthCheck))


def test_any_sequence_of_calls() -> None:
    run_state_machine_as_test(AnySequence, settings=settings(_CHECKED, max_examples=2, stateful_step_count=8))


@pytest.mark.slow
def test_any_sequence_of_calls_with_kills() -> None:
    run_state_machine_as_test(WithKills, settings=settings(_CHECKED, max_examples=40, stateful_step_count=20))
