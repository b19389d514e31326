"""Baseline and Naive: pairs of attributes estimate the loss, or the correlations with the target.

References
----------
N. Cesa-Bianchi, S. Shalev-Shwartz, O. Shamir. Efficient Learning with Partially Observed Attributes. ICML 2010,
Algorithm 1 and footnote 2.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from budgetreg.config.options import option
from budgetreg.config.requirements import one_of
from budgetreg.errors import ConfigError
from budgetreg.learners.declaration import RADIUS, Cost, Family, Learner, Missing, run_by
from budgetreg.learners.skipped_checks import UNBOUNDED
from budgetreg.tasks.regression import Regression

_PROBLEMS = {
    "program": "estimated least squares in the 1-ball, negative eigenvalues set to 0",
    "correlation": "estimated correlations scaled to a 1-norm",
}


@dataclass(frozen=True)
class Options:
    """What is made of the estimates."""

    update: str = option("the update", one_of(*_PROBLEMS), tried=())


def _at_least_a_pair(learner: Learner, k: int) -> None:
    if k < 2:
        raise ConfigError(f"k={k}: {learner.name} needs a budget of at least 2, the attributes of one pair")


def _cost(learner: Learner, d: int, k: int, settings: Mapping[str, float]) -> Cost:
    """Return what whole pairs cost; one attribute of an odd budget is left over."""
    return Cost(k - k % 2, k - k % 2)


FAMILY = Family(
    name="pairs",
    options=Options,
    fit=run_by("budgetreg.learners.pairs.core", "k", "centred", "intercept", problem="update"),
    task=lambda options: Regression(),
    split_budget=_at_least_a_pair,
    cost=_cost,
    parameters=(RADIUS,),
    tuned=lambda options: ("B",),
    missing=lambda options: Missing.WEIGHED,
    shares_settings=True,
    centres_itself=True,
    words=lambda options: ("k attributes per example, in pairs", _PROBLEMS.get(options.update, "")),
    oracle="budgetreg.learners.pairs.oracle",
    skipped_checks=lambda options: {"boundary": UNBOUNDED},
)
FAMILIES = (FAMILY,)
