"""What is expected of an estimate, and who is examined."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from budgetreg.metering.table import Table


class CheckError(AssertionError):
    """A learner does not do what it should; the message says what."""


def close(what: str, found: np.ndarray | float, expected: np.ndarray | float) -> None:
    """Expect a mean to be what it must be, up to round-off."""
    same(f"the mean of {what}", found, expected)


def same(what: str, found: np.ndarray | float, expected: np.ndarray | float) -> None:
    """Expect numbers to be what they must be, up to round-off."""
    off = float(np.abs(np.asarray(found) - expected).max() / np.abs(expected).max())
    expect(off < 1e-8, f"{what} is off by {off:.2g} of its size")


def expect(holds: Any, otherwise: str) -> None:
    """Do nothing if something holds.

    Raises
    ------
    CheckError
        If it does not.
    """
    if not holds:
        raise CheckError(otherwise)


class LearnerUnderTest(Protocol):
    """A learner under examination, see `budgetreg.checks.subject.Subject`."""

    @property
    def name(self) -> str:
        """What the learner is called."""

    @property
    def options(self) -> Any:
        """The options of its family."""

    def draws_for(self, d: int, k: int) -> tuple[int, int]:
        """Return how many draws a budget leaves for the data point and for the inner product."""

    def run(
        self,
        table: Table,
        orders: np.ndarray,
        rngs: Sequence[Any],
        k: int,
        settings: Any,
        checkpoints: Sequence[int] | None = None,
        opened: Callable[[int], None] = ...,
    ) -> tuple[list[np.ndarray], Any]:
        """Run it along some streams; return its outputs at the checkpoints, and what it saw."""

    def other(self, name: str) -> "LearnerUnderTest":
        """Return another learner of ``conf/algo``, under the same examination."""

    def __hash__(self) -> int:
        """Each is itself alone, as what was enumerated for it is remembered."""
