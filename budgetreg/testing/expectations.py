"""Expectations that raise, the learner under test, and the base class of what it is compared with."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from budgetreg.metering.table import Table


class CheckError(AssertionError):
    """A learner fails a check; the message gives the reason."""


def close(what: str, mean: np.ndarray | float, expected: np.ndarray | float) -> None:
    """Expect a mean to equal its expected value, up to rounding."""
    same(f"the mean of {what}", mean, expected)


def same(what: str, actual: np.ndarray | float, expected: np.ndarray | float) -> None:
    """Expect numbers to equal other numbers, up to rounding."""
    off = float(np.abs(np.asarray(actual) - expected).max() / np.abs(expected).max())
    expect(off < 1e-8, f"{what} is off by {off:.2g} of its size")


def expect(holds: Any, otherwise: str) -> None:
    """Raise a `CheckError` with the message `otherwise` unless a condition holds."""
    if not holds:
        raise CheckError(otherwise)


class LearnerUnderTest(Protocol):
    """A learner that is checked, see `budgetreg.testing.subject.Subject`."""

    @property
    def name(self) -> str:
        """The learner's name."""

    def draws_for(self, d: int, k: int) -> tuple[int, int]:
        """Return the numbers of draws for the data point and for the inner product at a budget of k."""

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
        """Run the learner along some streams; return its outputs at the checkpoints, and what it saw."""

    def other(self, name: str) -> "LearnerUnderTest":
        """Return another learner of ``conf/algo``."""

    def __hash__(self) -> int:
        """Only the same object is equal, as enumerated steps are cached for each learner."""


class Oracle:
    """The expected behaviour of a learner; each method raises a `CheckError` if the learner differs.

    A learner needs only the comparisons that it does not list in `skipped_checks`.
    """

    def unbiased(self, subject: LearnerUnderTest) -> None:
        """Check that the expectation of what is estimated from one example, over all draws, equals its target."""
        self._undeclared(subject, "unbiased")

    def second_moments(self, subject: LearnerUnderTest) -> None:
        """Check that the mean square of the estimate equals its formula for the draws that the learner states."""
        self._undeclared(subject, "second moments")

    def full_information(self, subject: LearnerUnderTest) -> None:
        """Check that the estimate at k = d agrees with full information."""
        self._undeclared(subject, "full at k=d")

    def boundary(self, subject: LearnerUnderTest) -> None:
        """Check steps at which something clips or projects against the same step of the unbiased estimate."""
        self._undeclared(subject, "boundary")

    def minimiser(self, subject: LearnerUnderTest) -> None:
        """Certify, at some checkpoints, that the output is the best for what was seen."""
        self._undeclared(subject, "minimiser")

    @staticmethod
    def _undeclared(subject: LearnerUnderTest, check: str) -> None:
        raise CheckError(
            f"the class of {subject.name} declares nothing to compare with: add the comparison to its oracle, or a "
            f"reason for '{check}' to its skipped_checks"
        )
