"""Offline ridge and lasso: the empirical loss minimised over balls, on each prefix of the examples, seen in full.

The comparisons of Cesa-Bianchi et al. 2010 and of Hazan & Koren 2012.
"""

from dataclasses import dataclass

from budgetreg.config.options import option
from budgetreg.config.requirements import one_of
from budgetreg.learners.declaration import RADIUS, Batching, Family, Observation, run_by
from budgetreg.learners.skipped_checks import ANY_BUDGET, SEES_ALL, UNBOUNDED
from budgetreg.tasks.regression import Regression

_PROBLEMS = {"ridge": "least squares in the 2-ball", "lasso": "least squares in the 1-ball"}


@dataclass(frozen=True)
class Options:
    """Which ball."""

    update: str = option("the update", one_of(*_PROBLEMS), tried=())


FAMILY = Family(
    name="offline",
    options=Options,
    fit=run_by("budgetreg.learners.offline.core", "centred", "intercept", problem="update"),
    task=lambda options: Regression(),
    observation=lambda options: Observation.ALL,
    parameters=(RADIUS,),
    tuned=lambda options: ("B",),
    batching=Batching.WITH_ITS_FOLDS,
    shares_settings=True,
    centres_itself=True,
    words=lambda options: (
        "all attributes, offline solution for each prefix of the examples",
        _PROBLEMS.get(options.update, ""),
    ),
    oracle="budgetreg.learners.offline.oracle",
    skipped_checks=lambda options: {
        "unbiased": "the loss is minimised itself, without gradients",
        "second moments": SEES_ALL,
        "full at k=d": SEES_ALL,
        "boundary": UNBOUNDED,
        "small k": ANY_BUDGET,
    },
)
FAMILIES = (FAMILY,)
