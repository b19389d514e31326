"""Two-phased DDAERR and DDAELR: the second moments that guide the draws are estimated on the way.

References
----------
D. Kukliansky, O. Shamir. Attribute Efficient Linear Regression with Distribution-Dependent Sampling. ICML 2015,
Algorithms 2 and 4.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from budgetreg.config.options import option
from budgetreg.config.requirements import FRACTION, NOT_NEGATIVE, ZERO, one_of
from budgetreg.learners import online
from budgetreg.learners.declaration import (
    RADIUS,
    STEP_SIZE,
    Batching,
    Family,
    Learner,
    Missing,
    Parameter,
    RunContext,
    run_by,
)
from budgetreg.learners.skipped_checks import ONE_PASS
from budgetreg.sampling.importance_weights import HEEDED
from budgetreg.tasks.regression import Regression
from budgetreg.theory import ddaelr_two_phase_step, ddaerr_two_phase_step, eg_step, first_phase, ogd_step


@dataclass(frozen=True)
class Options:
    """How the two phases share the examples, and what of the first guides the second."""

    update: str = online.update_option("ogd", "eg")
    split: str | int | None = online.split_option()
    average: str = online.average_option()
    data_point: str = option("the draw of attributes for the data point", one_of("moment"), default="moment")
    inner_product: str = option(
        "the draw of attributes for the inner product", one_of("weight", "moment"), default="weight"
    )
    literal_split: str = option("the meaning of split=literal", one_of("one", "half"), default="one")
    phase_one: float = option("the first phase's share of the examples", FRACTION, tried=(0.5,))
    smoothing: float | str = option(
        "the smoothing of estimated moments", one_of("theory") | NOT_NEGATIVE, tried=("theory", 0, 0.3)
    )
    mix: float = option("the share of equal weights in the draws", ZERO | FRACTION, tried=(0, 0.5))
    prices: str = online.prices_option()


def _theory(learner: Learner, run: RunContext, B: float | None) -> Mapping[str, float]:
    options, k_x = learner.options, run.budget_split.k_x if run.budget_split else 1
    assert B is not None
    m_1 = first_phase(options.phase_one, run.m)
    # Where the theorems make use of the estimates they cannot be had yet: what holds for any moments is taken.
    worst, m_2 = np.ones(run.d), max(1, run.m - m_1)
    if options.update == "eg":
        return {"eta": eg_step(B, run.d, m_1, k_x), "eta_two": ddaelr_two_phase_step(B, worst, 1.0, m_2, k_x)}
    return {"eta": ogd_step(run.d, m_1, k_x), "eta_two": ddaerr_two_phase_step(worst, 1.0, m_2, k_x)}


def _guided_by_prices(options: Options) -> tuple[str, ...]:
    return (*(("k_x",) if HEEDED[options.update] else ()), *(("k_ip",) if options.inner_product == "moment" else ()))


def _inactive_options(options: Options) -> tuple[str, ...]:
    return (
        *(() if options.split == "literal" else ("literal_split",)),
        *(() if _guided_by_prices(options) else ("prices",)),
    )


FAMILY = Family(
    name="two_phase",
    options=Options,
    fit=run_by(
        "budgetreg.learners.two_phase.core",
        "update",
        "inner_product",
        "k_x",
        "k_ip",
        "average",
        "phase_one",
        "smoothing",
        "mix",
        "prices",
    ),
    task=lambda options: Regression(),
    split_budget=online.split_budget,
    cost=online.cost,
    parameters=(RADIUS, STEP_SIZE, Parameter("eta_two", "the second phase's step size")),
    tuned=lambda options: ("B", "eta", "eta_two"),
    theory=_theory,
    inactive_options=_inactive_options,
    cost_aware=lambda options: _guided_by_prices(options) if options.prices == "aware" else (),
    missing=lambda options: Missing.WEIGHED,
    batching=Batching.IN_STEP,
    chaotic=online.chaotic,
    words=lambda options: (
        "k attributes per example, the first of two phases estimating moments",
        online.UPDATES.get(options.update, ""),
    ),
    oracle="budgetreg.learners.two_phase.oracle",
    skipped_checks=lambda options: {"minimiser": ONE_PASS},
)
FAMILIES = (FAMILY,)
