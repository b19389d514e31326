"""Impute, then ridge: what is commonly done where values are missing, for comparison with learners made for a budget.

All of it is scikit-learn's: its imputers, and `RidgeCV`, which chooses the strength by leaving out one row at a time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from budgetreg.config.options import option
from budgetreg.config.requirements import one_of
from budgetreg.errors import ConfigError
from budgetreg.learners import subspaces
from budgetreg.learners.declaration import Family, Learner, Missing, RunContext, run_by
from budgetreg.learners.skipped_checks import UNBOUNDED
from budgetreg.tasks.regression import Regression

_WAYS = {"mean": "the means of those seen", "iterative": "regressions on all others, ten times over"}

_MOST_ATTRIBUTES = 100
"""For iterative imputation, which takes ten times d regressions on d attributes at each checkpoint."""

_GUESSED = "imputed values are guesses, and the regressor is not linear in them"


@dataclass(frozen=True)
class Options:
    """How values that were not seen are made up."""

    impute: str = option("the way to impute", one_of(*_WAYS))


def _notes(learner: Learner, run: RunContext, settings: Mapping[str, Sequence[float]]) -> tuple[str, ...]:
    """Tell nothing.

    Raises
    ------
    ConfigError
        If there are too many attributes.
    """
    del settings
    if learner.options.impute == "iterative" and run.d > _MOST_ATTRIBUTES:
        raise ConfigError(
            f"algo.impute=iterative: at most {_MOST_ATTRIBUTES} attributes, as {run.d} would take too long; use mean"
        )
    return ()


def _excuses(options: Options) -> Mapping[str, str]:
    guessed = {"unbiased": _GUESSED, "second moments": _GUESSED, "boundary": UNBOUNDED}
    if options.impute == "mean":
        return guessed
    return {**guessed, "minimiser": "what it minimises depends on values that scikit-learn makes up"}


FAMILY = Family(
    name="imputation",
    options=Options,
    fit=run_by("budgetreg.learners.imputation.core", "k", "impute", "centred", "intercept"),
    task=lambda options: Regression(),
    split_budget=subspaces.at_least_two,
    missing=lambda options: Missing.LEFT_OUT,
    centres_itself=True,
    state_numbers=subspaces.square,
    words=lambda options: (
        "k attributes per example",
        f"ridge, what was not seen being imputed by {_WAYS[options.impute]}",
    ),
    notes=_notes,
    oracle="budgetreg.learners.imputation.oracle",
    skipped_checks=_excuses,
)
FAMILIES = (FAMILY,)
