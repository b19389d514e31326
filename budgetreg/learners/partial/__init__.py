"""AERR, AELR, AER, DDAERR and DDAELR: k attributes of each example, in one pass (GAERR and GAELR).

Each gradient is the product of two independent estimates, of the data point and of the inner product.

References
----------
E. Hazan, T. Koren. Linear Regression with Limited Observation. ICML 2012, AERR and AELR.
N. Cesa-Bianchi, S. Shalev-Shwartz, O. Shamir. Efficient Learning with Partially Observed Attributes. ICML 2010, AER.
D. Kukliansky, O. Shamir. Attribute Efficient Linear Regression with Distribution-Dependent Sampling. ICML 2015.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from budgetreg.config.options import option
from budgetreg.config.requirements import NOTHING, one_of
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
    Theorem,
    run_by,
)
from budgetreg.learners.skipped_checks import ONE_PASS
from budgetreg.sampling.importance_weights import HEEDED
from budgetreg.tasks.regression import Regression
from budgetreg.theory import ddaelr_step, ddaerr_step, eg_step, ogd_step, pegasos_regularisation


@dataclass(frozen=True)
class Options:
    """How the regressor moves, and how its two estimates are drawn; see `budgetreg.learners.partial.core.fit`."""

    update: str = online.update_option("ogd", "eg", "pegasos")
    split: str | int | None = online.split_option()
    average: str = online.average_option()
    data_point: str = option("the draw of attributes for the data point", one_of("uniform", "subset", "moment"))
    inner_product: str = option(
        "the draw of attributes for the inner product", one_of("weight", "moment"), default="weight"
    )
    literal_split: str = option("the meaning of split=literal", one_of("one", "half"), default="one")
    moments: str = option(
        "where the attributes' second moments come from",
        one_of("given", "pilot") | NOTHING,
        default="given",
        own="pilot",
        tried=(),
    )
    control_variate: str = option("the control variate", one_of("none", "mean", "label"), default="none")
    prices: str = online.prices_option()


def _guided(options: Options) -> bool:
    return "moment" in (options.data_point, options.inner_product)


def _guided_by_prices(options: Options) -> tuple[str, ...]:
    data_point = options.data_point == "moment" and HEEDED.get(options.update, False)
    return (*(("k_x",) if data_point else ()), *(("k_ip",) if options.inner_product == "moment" else ()))


def _inactive_options(options: Options) -> tuple[str, ...]:
    return (
        *(() if _guided_by_prices(options) else ("prices",)),
        *(() if options.split == "literal" else ("literal_split",)),
        *(() if _guided(options) else ("moments",)),
    )


def _refuse(options: Options) -> str | None:
    if options.update == "pegasos" and _guided(options):
        return "algo.update=pegasos: its draws cannot be guided by moments; use ogd or eg"
    if options.update == "pegasos" and options.control_variate != "none":
        return "algo.update=pegasos: its inner product has no control variate; use ogd or eg"
    return None


def _theory(learner: Learner, run: RunContext, B: float | None) -> Mapping[str, float]:
    options, k_x = learner.options, run.budget_split.k_x if run.budget_split else 1
    assert B is not None
    if options.update == "pegasos":
        return {"lambda": pegasos_regularisation(B, run.d, run.m, run.k)}
    if options.data_point == "moment":
        moments = run.moments()
        return {
            "eta": ddaelr_step(B, moments, run.m, k_x)
            if options.update == "eg"
            else ddaerr_step(moments, run.m, k_x, run.prices)
        }
    return {"eta": eg_step(B, run.d, run.m, k_x) if options.update == "eg" else ogd_step(run.d, run.m, k_x)}


def _theorem(options: Options) -> Theorem | None:
    literal = options.inner_product == "weight" and options.control_variate == "none"
    proved = options.data_point == "uniform" and literal and options.average == "all"
    return online.theorem(options.update, Learner("", FAMILY, options)) if proved else None


FAMILY = Family(
    name="partial",
    options=Options,
    fit=run_by(
        "budgetreg.learners.partial.core",
        "update",
        "data_point",
        "inner_product",
        "k_x",
        "k_ip",
        "average",
        "moments",
        "control_variate",
        "prices",
    ),
    task=lambda options: Regression(),
    split_budget=online.split_budget,
    cost=online.cost,
    parameters=(RADIUS, STEP_SIZE, Parameter("lambda", "the regularisation", absolute=True, tried=(1.0, 3.0))),
    tuned=lambda options: online.PARAMETERS[options.update],
    theory=_theory,
    inactive_options=_inactive_options,
    given_moments=lambda options: options.moments if _guided(options) else None,
    cost_aware=lambda options: _guided_by_prices(options) if options.prices == "aware" else (),
    missing=lambda options: Missing.WEIGHED if options.control_variate == "none" else Missing.REFUSED,
    batching=Batching.IN_STEP,
    unequal_lengths=True,
    chaotic=online.chaotic,
    words=lambda options: ("k attributes per example", online.UPDATES.get(options.update, "")),
    theorem=_theorem,
    oracle="budgetreg.learners.partial.oracle",
    skipped_checks=lambda options: {"minimiser": ONE_PASS},
    refuse=_refuse,
)
FAMILIES = (FAMILY,)
