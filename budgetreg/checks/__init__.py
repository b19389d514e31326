"""Checks that every learner of ``conf/algo`` has to pass, generated from its configuration.

A check takes a `Subject` and raises if it fails. What is expected of estimates, steps and minimisers, what an example
costs, which values of options are tried, and what does not apply and why, the families declare; this room knows how a
learner has to behave, whatever it is.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from budgetreg.checks import behaviour
from budgetreg.checks.subject import Subject, examined
from budgetreg.enumeration.expectations import CheckError
from budgetreg.learners.declaration import Learner

__all__ = ["CHECKS", "CheckError", "CheckResult", "Subject", "examined", "excuse", "verdict", "verdicts"]

CHECKS: Mapping[str, Callable[[Subject], None]] = {
    "unbiased": lambda subject: subject.learner.oracle.unbiased(subject),
    "second moments": lambda subject: subject.learner.oracle.second_moments(subject),
    "full at k=d": lambda subject: subject.learner.oracle.full_information(subject),
    "boundary": lambda subject: subject.learner.oracle.boundary(subject),
    "minimiser": lambda subject: subject.learner.oracle.minimiser(subject),
    "budget": behaviour.budget,
    "same bytes": behaviour.same_bytes,
    "permutation": behaviour.permutation,
    "unobserved": behaviour.unobserved,
    "origin": behaviour.origin,
    "small k": behaviour.refusal,
}


@dataclass(frozen=True)
class CheckResult:
    """What came of a check.

    Attributes
    ----------
    check : str
        Its name in `CHECKS`.
    passed : bool or None
        None if the learner is excused.
    reason : str
        Why it is excused, or what failed; empty if passed.
    changes : str
        Which options are not those of its file, as ``key=value``; empty if all are.
    """

    check: str
    passed: bool | None
    reason: str = ""
    changes: str = ""


def excuse(learner: Learner, check: str) -> str | None:
    """Return why a check does not apply to a learner, as its family declares; None if it does."""
    if check == "origin" and not learner.predicts:
        return "a subspace contains 0, wherever that is"
    return learner.skipped_checks.get(check)


def verdict(subject: Subject, check: str) -> CheckResult:
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
        return CheckResult(check, None, reason, subject.changes)
    try:
        CHECKS[check](subject)
    except CheckError as error:
        return CheckResult(check, False, str(error), subject.changes)
    except Exception as error:  # a learner that crashes has failed, and the others are still to be checked
        return CheckResult(check, False, f"{type(error).__name__}: {error}", subject.changes)
    return CheckResult(check, True, changes=subject.changes)


def verdicts(subject: Subject) -> Iterator[CheckResult]:
    """Yield the verdict of every check of a learner, then of its variants, in which options are changed."""
    for variant in subject.variants():
        for check in CHECKS:
            yield verdict(variant, check)
