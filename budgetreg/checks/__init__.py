"""Checks that every learner of ``conf/algo`` has to pass, generated from its configuration.

A check takes a `Learner` and raises if it fails. What does not apply to a learner is excused by name, with the reason.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from budgetreg.checks import conduct, estimates
from budgetreg.checks.learner import CheckError, Learner, compose
from budgetreg.protocol.configuration import AlgoConfig

__all__ = ["CHECKS", "EXCUSES", "CheckError", "Learner", "Verdict", "compose", "excuse", "verdict", "verdicts"]

CHECKS: Mapping[str, Callable[[Learner], None]] = {
    "unbiased": estimates.unbiased,
    "second moments": estimates.second_moments,
    "full at k=d": estimates.full_information,
    "budget": conduct.budget,
    "same bytes": conduct.same_bytes,
    "permutation": conduct.permutation,
    "unobserved": conduct.unobserved,
    "small k": conduct.refusal,
}

_SEES_ALL = "all attributes are seen, nothing is estimated"
_ANY_BUDGET = "k decides how many full rows a run buys, and any k is enough"
_FITTED = "the subspace is fitted to what is seen of each example, without an estimate of x x'"
_DIVIDED = "the estimate is popca's, and the step that follows it is divided by the size of all steps before"
_ZEROS = "zeros in place of what is not seen: biased, which is the comparison"
_NOW_AND_THEN = "at k=1 two attributes of an example are still seen now and then, and this learns"
EXCUSES: Mapping[tuple[str, str], str] = {  # by algo.core, with algo.update if that matters, and check
    ("second_moment full", "second moments"): _SEES_ALL,
    ("second_moment full", "full at k=d"): _SEES_ALL,
    ("second_moment full", "small k"): _ANY_BUDGET,
    ("second_moment zero_filled", "unbiased"): _ZEROS,
    ("second_moment zero_filled", "second moments"): _ZEROS,
    ("second_moment passive", "small k"): _NOW_AND_THEN,
    **{
        (f"streaming {update}", check): reason
        for update, reason in (("grouse", _FITTED), ("petrels", _FITTED), ("oja", _DIVIDED))
        for check in ("unbiased", "second moments", "full at k=d")
    },
    ("offline", "unbiased"): "the loss is minimised itself, without gradients",
    ("offline", "second moments"): _SEES_ALL,
    ("offline", "full at k=d"): _SEES_ALL,
    ("offline", "small k"): _ANY_BUDGET,
    ("exact", "second moments"): _SEES_ALL,
    ("exact", "full at k=d"): _SEES_ALL,
    ("exact", "small k"): _ANY_BUDGET,
    (
        "svr",
        "full at k=d",
    ): "no learner of this loss sees all attributes; the slope itself is compared with by 'unbiased'",
}
_PLUG_IN = "the plug-in is biased, and bounded instead"


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


def excuse(algo: AlgoConfig, check: str) -> str | None:
    """Return why a check does not apply to a learner; None if it does."""
    if algo.residual == "plug_in" and check in ("unbiased", "second moments"):
        return _PLUG_IN
    return EXCUSES.get((algo.core, check), EXCUSES.get((f"{algo.core} {algo.update}", check)))


def verdict(learner: Learner, check: str) -> Verdict:
    """Check a learner; any exception that it raises is a failure.

    Parameters
    ----------
    learner : Learner
        The learner.
    check : str
        Name of the check in `CHECKS`.
    """
    reason = excuse(learner.config.algo, check)
    if reason is not None:
        return Verdict(check, None, reason)
    try:
        CHECKS[check](learner)
    except CheckError as error:
        return Verdict(check, False, str(error))
    except Exception as error:  # a learner that crashes has failed, and the others are still to be checked
        return Verdict(check, False, f"{type(error).__name__}: {error}")
    return Verdict(check, True)


def verdicts(learner: Learner) -> Iterator[Verdict]:
    """Yield the verdict of every check."""
    for check in CHECKS:
        yield verdict(learner, check)
