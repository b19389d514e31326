"""AEML and AEFA: a factor model of what was revealed; ours.

Sources are named in the modules: the posterior in `posterior`.
"""

from dataclasses import dataclass, fields, replace
from typing import Any

from budgetreg.config.options import option
from budgetreg.config.requirements import FRACTION, NOTHING, POSITIVE, one_of, whole
from budgetreg.learners import subspaces
from budgetreg.learners.declaration import Family, Missing, run_by
from budgetreg.learners.skipped_checks import UNBOUNDED
from budgetreg.tasks.regression import Regression
from budgetreg.tasks.subspace_learning import SubspaceLearning

_SHRUNK = "a posterior mean is shrunk, hence biased, less with each example"
_LIKELIEST = "a likeliest model is biased, and counts for less the more often pairs are seen"


@dataclass(frozen=True)
class RegressionOptions:
    """How rich the model is."""

    n_factors: int = option("the factors of the model", whole(1), tried=(2,))


AEML = Family(
    name="factor_regression",
    version=2,
    options=RegressionOptions,
    fit=run_by("budgetreg.learners.factors.regression", "k", "n_factors", "centred", "intercept"),
    task=lambda options: Regression(),
    split_budget=subspaces.at_least_two,
    missing=lambda options: Missing.LEFT_OUT,
    centres_itself=True,
    state_numbers=subspaces.square,
    chaotic=lambda options: True,
    words=lambda options: (
        "k attributes per example, drawn by what is known of them",
        f"posterior mean of a model with {options.n_factors} factors",
    ),
    oracle="budgetreg.learners.factors.oracle",
    skipped_checks=lambda options: {
        "unbiased": _SHRUNK,
        "second moments": _SHRUNK,
        "boundary": UNBOUNDED,
        "minimiser": "an average over the posterior minimises nothing that was shown",
    },
)


@dataclass(frozen=True)
class SubspaceOptions:
    """What is drawn and modelled; see `budgetreg.learners.factors.subspace.fit`."""

    n_components: int = subspaces.dimension_option()
    n_factors: int | None = option("the factors of the model", whole(1) | NOTHING, tried=(2, 5))
    design: str = option("how attributes are drawn", one_of("importance", "uniform"))
    phase_one: float = option("the first phase's share of the examples", FRACTION, tried=(0.5,))
    mix: float = option("the share of equal probabilities in the draws", FRACTION, tried=(0.5,))
    noise: str = option("whether each attribute has a noise of its own", one_of("each", "shared"))
    kappa: float | str = option(
        "by how many pairs the model counts", one_of("auto", "model") | POSITIVE, tried=("auto", "model", 100.0)
    )


def _seen(options: Any) -> str:
    larger = ", those with larger second moments the likelier" if options.design == "importance" else ""
    return f"k attributes per example{larger}"


AEFA = Family(
    name="factor_analysis",
    version=3,
    options=SubspaceOptions,
    fit=run_by("budgetreg.learners.factors.subspace", "k", *(own.name for own in fields(SubspaceOptions))),
    task=lambda options: SubspaceLearning(options.n_components),
    split_budget=subspaces.at_least_two,
    missing=lambda options: Missing.LEFT_OUT,
    centres_itself=True,
    state_numbers=subspaces.square,
    words=lambda options: (
        _seen(options),
        f"leading subspace of the likeliest model with {options.n_factors or 2 * options.n_components} factors",
    ),
    oracle="budgetreg.learners.factors.oracle",
    skipped_checks=lambda options: {
        "unbiased": _LIKELIEST,
        "second moments": _LIKELIEST,
        "boundary": UNBOUNDED,
        "minimiser": "a likelihood has several peaks, and a step is certified to go up by a test of its own",
    },
)


@dataclass(frozen=True)
class StreamingOptions:
    """What is drawn and modelled; see `budgetreg.learners.factors.streaming.fit`."""

    n_components: int = subspaces.dimension_option()
    n_factors: int | None = option("the factors of the model", whole(1) | NOTHING, tried=(2, 5))
    design: str = option("how attributes are drawn", one_of("importance", "uniform"))


def _refuse_few_factors(options: StreamingOptions) -> str | None:
    n, q = options.n_components, options.n_factors
    return f"algo.n_factors={q}: must be at least algo.n_components={n}" if q is not None and q < n else None


STREAMING = replace(
    AEFA,
    name="streaming_factor_analysis",
    version=1,
    options=StreamingOptions,
    fit=run_by("budgetreg.learners.factors.streaming", "k", *(own.name for own in fields(StreamingOptions))),
    words=lambda options: (
        _seen(options),
        f"leading subspace of a model with {options.n_factors or 2 * options.n_components} factors that "
        "looks at each example once",
    ),
    refuse=_refuse_few_factors,
)
FAMILIES = (AEML, AEFA, STREAMING)
