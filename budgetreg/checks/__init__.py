"""Checks that every learner of ``conf/algo`` has to pass, generated from its configuration.

A check takes a `Subject` and raises if it fails. What is expected of estimates, and what does not apply and why, the
families declare; this room knows how a learner has to behave, whatever it is.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from budgetreg.checks import conduct
from budgetreg.checks.subject import Subject, examined
from budgetreg.enumeration.expectations import CheckError, expect
from budgetreg.learners.declaration import Law, Learner

__all__ = ["CHECKS", "CheckError", "Subject", "Verdict", "examined", "excuse", "verdict", "verdicts"]

CHECKS: Mapping[str, Callable[[Subject], None]] = {
    "unbiased": lambda subject: _law(subject).unbiased(subject),
    "second moments": lambda subject: _law(subject).second_moments(subject),
    "full at k=d": lambda subject: _law(subject).full_information(subject),
    "budget": conduct.budget,
    "same bytes": conduct.same_bytes,
    "permutation": conduct.permutation,
    "unobserved": conduct.unobserved,
    "small k": conduct.refusal,
}


@dataclass(frozen=True)
class Verdict:
    """What came of a check.

    Attributes
    ----------
    check : str
        Its name in `CHECKS`.
    passed : bool or None
        None if the learner is excused.
    reason : str
        Why it is excused, or what failed; empty if passed.
    """

    check: str
    passed: bool | None
    reason: str = ""


def excuse(learner: Learner, check: str) -> str | None:
    """Return why a check does not apply to a learner, as its family declares; None if it does."""
    return learner.family.excuses(learner.options).get(check)


def _law(subject: Subject) -> Law:
    """Return the law that a learner's estimates are compared with."""
    law = subject.learner.law
    expect(law is not None, f"the family {subject.learner.family.name} declares no law, nor that it is excused")
    assert law is not None
    return law


def verdict(subject: Subject, check: str) -> Verdict:
    """Check a learner; any exception that it raises is a failure.

    Parameters
    ----------
    subject : Subject
        The learner.
    check : str
        Name of the check in `CHECKS`.
    """
    reason = excuse(subject.learner, check)
    if reason is not None:
        return Verdict(check, None, reason)
    try:
        CHECKS[check](subject)
    except CheckError as error:
        return Verdict(check, False, str(error))
    except Exception as error:  # a learner that crashes has failed, and the others are still to be checked
        return Verdict(check, False, f"{type(error).__name__}: {error}")
    return Verdict(check, True)


def verdicts(subject: Subject) -> Iterator[Verdict]:
    """Yield the verdict of every check."""
    for check in CHECKS:
        yield verdict(subject, check)
