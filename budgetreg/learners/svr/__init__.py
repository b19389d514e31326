"""AESVR: support-vector regression that sees k attributes of an example, k on average if GenEst estimates the slope.

References
----------
E. Hazan, T. Koren. Linear Regression with Limited Observation. ICML 2012, Procedure 3 and Algorithm 4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from budgetreg.config.options import option
from budgetreg.config.requirements import NOT_NEGATIVE, POSITIVE, one_of
from budgetreg.errors import ConfigError
from budgetreg.learners import online
from budgetreg.learners.declaration import (
    RADIUS,
    STEP_SIZE,
    Batching,
    BudgetSplit,
    Cost,
    Family,
    Learner,
    Observation,
    RunContext,
    run_by,
)
from budgetreg.learners.skipped_checks import ONE_PASS
from budgetreg.tasks.regression import Regression
from budgetreg.theory import svr_step
from budgetreg.updates.gen_est import INNER_PRODUCT_DRAWS, averaged_draws, expected_draws, second_moment

MOST_DRAWS = 1e8
"""Draws that GenEst may average for one factor."""

LARGE_SECOND_MOMENT = 1e4
"""Of GenEst's estimates of a slope that is 1 at most: beyond it, nothing can be learned in a pass of usual length."""

_PLUG_IN = "the plug-in is biased, and bounded instead"


@dataclass(frozen=True)
class Options:
    """The loss ``max(|residual| - delta, 0)``, the scale eps of its smoothing, and how its slope is estimated."""

    update: str = online.update_option("ogd")
    split: str | int | None = online.split_option()
    average: str = online.average_option()
    residual: str = option("the estimate of the residual's slope", one_of("gen_est", "plug_in"))
    delta: float = option("the residual that costs nothing", NOT_NEGATIVE, tried=(0, 0.3))
    eps: float = option("the scale of the smoothing", POSITIVE, tried=(1.0, 4.0))


def _unbiased(options: Options) -> bool:
    return options.residual == "gen_est"


def _split_budget(learner: Learner, k: int) -> BudgetSplit:
    """Set 3 draws aside for the inner product, which GenEst's cost 2.06 at most; the plug-in's split is free."""
    if not _unbiased(learner.options) and learner.options.split != "literal":
        return online.split_budget(learner, k)
    if k <= INNER_PRODUCT_DRAWS:
        raise ConfigError(
            f"k={k}: {learner.name} needs a budget of at least {INNER_PRODUCT_DRAWS + 1}, one attribute for the data "
            f"point and {INNER_PRODUCT_DRAWS} for the inner product"
        )
    return BudgetSplit(k - INNER_PRODUCT_DRAWS, INNER_PRODUCT_DRAWS)


def _cost(learner: Learner, d: int, k: int, settings: Mapping[str, float]) -> Cost:
    """Return what an example costs, GenEst's draws on average; nothing is drawn for the slope while it is known."""
    k_x, k_ip = _split_budget(learner, k)
    if not _unbiased(learner.options):
        return Cost(k_x + k_ip, k_x)
    return Cost(k_x + expected_draws(int(averaged_draws(np.array(settings["B"]), learner.options.eps))), k_x)


def _theory(learner: Learner, run: RunContext, B: float | None) -> Mapping[str, float]:
    assert B is not None
    return {"eta": svr_step(B, run.d, run.m, run.budget_split.k_x if run.budget_split else 1)}


def _notes(learner: Learner, run: RunContext, settings: Mapping[str, Sequence[float]]) -> tuple[str, ...]:
    """Warn if the second moment of GenEst's estimates is hopeless, for the largest target and ``|x|_2 <= 1``.

    Raises
    ------
    ConfigError
        If one of them would take more draws than can be made.
    """
    options, B = learner.options, max(settings["B"])
    if not _unbiased(options):
        return ()
    if 16 * (B / options.eps) ** 2 > MOST_DRAWS:
        raise ConfigError(
            f"algo.eps={options.eps:g}: GenEst cannot work with targets up to {run.largest:.3g} and B up to {B:.3g}; "
            "give algo.eps and algo.delta in units of the target, or take algo.residual=plug_in"
        )
    N = int(averaged_draws(np.array(B), options.eps))
    moment = second_moment((run.largest + options.delta) / options.eps, (B / options.eps) ** 2, N)
    if moment <= LARGE_SECOND_MOMENT:
        return ()
    return (
        f"algo.eps={options.eps:g} is small for targets up to {run.largest:.3g} and B up to {B:g}: GenEst's estimates "
        f"of a slope of at most 1 have a second moment of {moment:.1g}; raise algo.eps, or take algo.residual=plug_in",
    )


def _excuses(options: Options) -> Mapping[str, str]:
    alone = "no learner of this loss sees all attributes; the slope itself is compared with by 'unbiased'"
    biased = {} if _unbiased(options) else {"unbiased": _PLUG_IN, "second moments": _PLUG_IN}
    return {"full at k=d": alone, "minimiser": ONE_PASS, **biased}


FAMILY = Family(
    name="svr",
    options=Options,
    fit=run_by("budgetreg.learners.svr.core", "residual", "delta", "eps", "k_x", "k_ip", "average"),
    task=lambda options: Regression(options.delta),
    observation=lambda options: Observation.K_ON_AVERAGE if _unbiased(options) else Observation.K,
    split_budget=_split_budget,
    cost=_cost,
    parameters=(RADIUS, STEP_SIZE),
    tuned=lambda options: ("B", "eta"),
    theory=_theory,
    inactive_options=lambda options: ("split",) if _unbiased(options) else (),
    batching=Batching.IN_STEP,
    unequal_lengths=True,
    words=lambda options: (
        "k attributes per example (residual=gen_est: on average)",
        online.UPDATES.get(options.update, ""),
    ),
    notes=_notes,
    oracle="budgetreg.learners.svr.oracle",
    skipped_checks=_excuses,
)
FAMILIES = (FAMILY,)
