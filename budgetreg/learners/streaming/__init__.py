"""Oja, GROUSE and PETRELS: a subspace that moves with every example, of which a uniform subset is seen.

The references stand with the updates, `budgetreg.updates`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from budgetreg.config.options import option
from budgetreg.config.requirements import one_of
from budgetreg.errors import ConfigError
from budgetreg.learners import subspaces
from budgetreg.learners.declaration import STEP_SIZE, Batching, Family, Learner, Parameter, run_by
from budgetreg.learners.skipped_checks import ONE_PASS, UNBOUNDED
from budgetreg.tasks.subspace_learning import SubspaceLearning

_UPDATES = {
    "oja": "Oja's rule with an unbiased estimate of the second moment",
    "grouse": "GROUSE, gradient steps on the Grassmannian",
    "petrels": "PETRELS, recursive least squares for each attribute",
}
_FITTED = "the subspace is fitted to what is seen of each example, without an estimate of x x'"
_DIVIDED = "the estimate is popca's, and the step that follows it is divided by the size of all steps before"
_FORGETTING = "the factor by which an example's weight falls with each one that follows"


@dataclass(frozen=True)
class Options:
    """How the subspace moves."""

    update: str = option("the update", one_of(*_UPDATES), tried=())
    n_components: int = subspaces.dimension_option()


def _refuse_too_few(learner: Learner, k: int) -> None:
    subspaces.at_least_two(learner, k)
    n = learner.options.n_components
    if learner.options.update != "oja" and k <= n:
        raise ConfigError(
            f"k={k}: {learner.name} fits {n} weights to the attributes of each example, and needs a budget above "
            f"algo.n_components={n}"
        )


def _excuses(options: Options) -> Mapping[str, str]:
    reason = _DIVIDED if options.update == "oja" else _FITTED
    estimates = dict.fromkeys(("unbiased", "second moments", "full at k=d"), reason)
    return {**estimates, "boundary": UNBOUNDED, "minimiser": ONE_PASS}


FAMILY = Family(
    name="streaming",
    options=Options,
    fit=run_by("budgetreg.learners.streaming.core", "k", "n_components", "update"),
    task=lambda options: SubspaceLearning(options.n_components),
    split_budget=_refuse_too_few,
    parameters=(
        replace(STEP_SIZE, absolute=True),
        Parameter("forgetting", _FORGETTING, absolute=True, tried=(0.9, 0.99), unlimited=False),
    ),
    tuned=lambda options: ("forgetting",) if options.update == "petrels" else ("eta",),
    batching=Batching.IN_STEP,
    state_numbers=subspaces.square,
    words=lambda options: ("k attributes per example", _UPDATES.get(options.update, "")),
    skipped_checks=_excuses,
)
FAMILIES = (FAMILY,)
