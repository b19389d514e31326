"""Online ridge and online lasso: the exact gradient from all attributes, in one pass.

The comparisons of Hazan & Koren 2012 and of Kukliansky & Shamir 2015.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from budgetreg.learners import online
from budgetreg.learners.declaration import RADIUS, STEP_SIZE, Family, Learner, Observation, RunContext, run_by
from budgetreg.learners.skipped_checks import ANY_BUDGET, ONE_PASS, SEES_ALL
from budgetreg.tasks.regression import Regression
from budgetreg.theory import eg_step, ogd_step


@dataclass(frozen=True)
class Options:
    """How the regressor moves."""

    update: str = online.update_option("ogd", "eg")
    average: str = online.average_option()


def _theory(learner: Learner, run: RunContext, B: float | None) -> Mapping[str, float]:
    assert B is not None
    return {"eta": eg_step(B, run.d, run.m, None) if learner.options.update == "eg" else ogd_step(run.d, run.m, None)}


FAMILY = Family(
    name="exact",
    options=Options,
    fit=run_by("budgetreg.learners.exact.core", "update", "average"),
    task=lambda options: Regression(),
    observation=lambda options: Observation.ALL,
    parameters=(RADIUS, STEP_SIZE),
    tuned=lambda options: ("B", "eta"),
    theory=_theory,
    words=lambda options: ("all attributes, one pass", online.UPDATES.get(options.update, "")),
    theorem=lambda options: online.theorem(options.update, None) if options.average == "all" else None,
    oracle="budgetreg.learners.exact.oracle",
    skipped_checks=lambda options: {
        "second moments": SEES_ALL,
        "full at k=d": SEES_ALL,
        "minimiser": ONE_PASS,
        "small k": ANY_BUDGET,
    },
)
FAMILIES = (FAMILY,)
