"""Checks that every learner of ``conf/algo`` has to pass, generated from its configuration.

A check takes a `Subject` and raises if it fails. The class of the learner declares its oracle, its costs, the values of
options to try and the checks to skip. This package knows how any learner has to behave.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from budgetreg.checks import behaviour
from budgetreg.checks.subject import Subject, examined
from budgetreg.enumeration.expectations import CheckError
from budgetreg.learners.declaration import Learner

__all__ = ["CHECKS", "CheckError", "CheckResult", "Subject", "examined", "run_check", "run_checks", "skip_reason"]

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
    """The result of a check.

    Attributes
    ----------
    check : str
        Name of the check in `CHECKS`.
    passed : bool or None
        Whether the learner passed; None if the check was skipped.
    reason : str
        Why the check was skipped, or what failed; empty if passed.
    changes : str
        Options that differ from the learner's file, as ``key=value``; empty if none does.
    """

    check: str
    passed: bool | None
    reason: str = ""
    changes: str = ""


def skip_reason(learner: Learner, check: str) -> str | None:
    """Return why a check does not apply to a learner; None if it applies."""
    if check == "origin" and not learner.predicts:
        return "a subspace contains 0, wherever that is"
    return learner.skipped_checks.get(check)


def run_check(subject: Subject, check: str) -> CheckResult:
    """Run one check; any exception that the learner raises is a failure.

    Parameters
    ----------
    subject : Subject
        The learner to check.
    check : str
        Name of the check in `CHECKS`.
    """
    reason = skip_reason(subject.learner, check)
    if reason is not None:
        return CheckResult(check, None, reason, subject.changes)
    try:
        CHECKS[check](subject)
    except CheckError as error:
        return CheckResult(check, False, str(error), subject.changes)
    except Exception as error:  # a learner that crashes has failed, and the others still have to be checked
        return CheckResult(check, False, f"{type(error).__name__}: {error}", subject.changes)
    return CheckResult(check, True, changes=subject.changes)


def run_checks(subject: Subject) -> Iterator[CheckResult]:
    """Yield the result of every check of a learner, then of its variants with changed options."""
    for variant in subject.variants():
        for check in CHECKS:
            yield run_check(variant, check)
