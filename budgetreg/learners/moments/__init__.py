"""AEMR: second moments of what was revealed, cleaned of noise and solved for a regressor; ours.

Sources are named in the modules: the cleaning of spectra in `spectrum`.
"""

from dataclasses import dataclass

from budgetreg.config.options import option
from budgetreg.config.requirements import one_of, whole
from budgetreg.learners import subspaces
from budgetreg.learners.declaration import Family, Missing, Parameter, run_by
from budgetreg.learners.skipped_checks import UNBOUNDED
from budgetreg.tasks.regression import Regression

CANDIDATE = Parameter("candidate", "which candidate", absolute=True, tried=(1.0, 25.0), unlimited=False)

_CLEANED = "moments are shrunk and cleaned, hence biased, less with each example"


@dataclass(frozen=True)
class RegressionOptions:
    """What the moments are solved for, and with whom."""

    partner: str = option("whether AEML's regressor is averaged in", one_of("auto", "none"), tried=("none",))
    norm: str = option("which norm of regressors is held small", one_of("auto", "l2", "l1"), tried=("l1", "l2"))
    choice: str = option("who chooses among candidates", one_of("revealed", "given"))
    n_factors: int = option("the factors of the partner's model", whole(1), tried=(2,))


def _refuse(options: RegressionOptions) -> str | None:
    if options.choice == "given" and (options.partner, options.norm) != ("none", "l2"):
        return "choice=given: candidates are those of moments alone; partner=none norm=l2"
    return None


AEMR = Family(
    name="moment_regression",
    version=2,
    options=RegressionOptions,
    fit=run_by("budgetreg.learners.moments.regression", "k", "partner", "norm", "n_factors", "centred", "intercept"),
    task=lambda options: Regression(),
    split_budget=subspaces.at_least_two,
    parameters=(CANDIDATE,),
    tuned=lambda options: ("candidate",) if options.choice == "given" else (),
    inactive_options=lambda options: ("n_factors",) if options.partner == "none" else (),
    missing=lambda options: Missing.LEFT_OUT,
    shares_settings=True,
    centres_itself=True,
    state_numbers=subspaces.square,
    chaotic=lambda options: True,
    words=lambda options: (
        "k attributes per example, drawn by what is known of them",
        "second moments of what was revealed, cleaned and solved"
        + (", averaged with a factor model's" if options.partner == "auto" else ""),
    ),
    oracle="budgetreg.learners.moments.oracle",
    skipped_checks=lambda options: {
        "unbiased": _CLEANED,
        "second moments": _CLEANED,
        "boundary": UNBOUNDED,
        "minimiser": "an average of candidates minimises nothing that was shown",
    },
    refuse=_refuse,
)
FAMILIES = (AEMR,)
