"""MBEG and MBEG+: matrix exponentiated gradient on pairs of attributes, which its weight matrix chooses.

References
----------
A. Gonen, D. Rosenbaum, Y. C. Eldar, S. Shalev-Shwartz. Subspace Learning with Partial Information. JMLR 17, 2016,
Algorithm 2.  MBEG+ is ours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from budgetreg.config.options import option
from budgetreg.config.requirements import FRACTION, ONE, ZERO, one_of
from budgetreg.errors import ConfigError
from budgetreg.learners import subspaces
from budgetreg.learners.declaration import (
    STEP_SIZE,
    Batching,
    Cost,
    Family,
    Learner,
    Missing,
    RunContext,
    Theorem,
    run_by,
)
from budgetreg.learners.skipped_checks import ONE_PASS
from budgetreg.tasks.subspace_learning import SubspaceLearning
from budgetreg.theory import mbeg_bound, mbeg_least_examples, mbeg_step

_UPDATES = {
    "pairs": "matrix exponentiated gradient",
    "singles": "matrix exponentiated gradient, the diagonal estimated from single attributes",
}


@dataclass(frozen=True)
class Options:
    """What estimates the diagonal, how pairs are mixed, and what is put out; see `budgetreg.learners.mbeg.core.fit`."""

    update: str = option("the update", one_of(*_UPDATES), tried=())
    n_components: int = subspaces.dimension_option()
    alpha: float | str = option(
        "the share of uniform pairs", one_of("theory") | ZERO | FRACTION | ONE, tried=("theory", 0, 0.3, 1)
    )
    output: str = option("what becomes of the average of the weight matrices", one_of("decompose", "top"))


def _refuse_odd(learner: Learner, k: int) -> None:
    subspaces.at_least_two(learner, k)
    if k % 2:
        raise ConfigError(f"k={k}: {learner.name} sees attributes in pairs and needs an even budget")


def _cost(learner: Learner, d: int, k: int, settings: Mapping[str, float]) -> Cost:
    """Return the mean cost: one of d pairs is that of an attribute with itself, whatever the weights, and costs 1."""
    mean = k - k / (2 * d)
    return Cost(mean, mean)


def _notes(learner: Learner, run: RunContext, settings: Mapping[str, Sequence[float]]) -> tuple[str, ...]:
    """Warn if the theorem does not hold, which wants ``alpha = eta d^2`` and at most 1/2."""
    eta = max(settings["eta"])
    if learner.options.alpha != "theory" or eta * run.d**2 <= 1 / 2:
        return ()
    return (
        f"{learner.name} is outside its theory: alpha = eta d^2 would be {eta * run.d**2:.2g} for eta up to {eta:.2g}, "
        f"and is set to 1/2; with theory's eta, it takes {mbeg_least_examples(run.k, run.d):.2g} examples to be inside",
    )


def _theorem(options: Options) -> Theorem | None:
    """Return Theorem 7 of Gonen et al. 2016."""
    if (options.update, options.alpha, options.output) != ("pairs", "theory", "decompose"):
        return None
    n = options.n_components
    return Theorem(
        lambda B, d, m, k: mbeg_bound(n, d, k, m) if m >= mbeg_least_examples(k, d) else np.nan,
        "2-ball",
    )


FAMILY = Family(
    name="mbeg",
    version=2,
    options=Options,
    fit=run_by("budgetreg.learners.mbeg.core", "k", "n_components", "update", "alpha", "output"),
    task=lambda options: SubspaceLearning(options.n_components),
    split_budget=_refuse_odd,
    cost=_cost,
    k_multiple=2,
    parameters=(STEP_SIZE,),
    tuned=lambda options: ("eta",),
    theory=lambda learner, run, B: {"eta": mbeg_step(run.k, run.d, run.m)},
    missing=lambda options: Missing.WEIGHED,
    batching=Batching.IN_STEP,
    state_numbers=subspaces.square,
    words=lambda options: ("k attributes per example, in pairs", _UPDATES.get(options.update, "")),
    notes=_notes,
    theorem=_theorem,
    oracle="budgetreg.learners.mbeg.oracle",
    skipped_checks=lambda options: {"minimiser": ONE_PASS},
)
FAMILIES = (FAMILY,)
