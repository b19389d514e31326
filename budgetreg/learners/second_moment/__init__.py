"""POPCA and PCA: the second moment ``C = E x x'`` is estimated, and its leading eigenvectors are put out.

References
----------
A. Gonen, D. Rosenbaum, Y. C. Eldar, S. Shalev-Shwartz. Subspace Learning with Partial Information. JMLR 17, 2016,
Algorithm 1 and the footnote of Section 3.  Importance sampling is ours.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from budgetreg.config.options import option
from budgetreg.config.requirements import FLAG, FRACTION, one_of
from budgetreg.learners import subspaces
from budgetreg.learners.declaration import Family, Learner, Missing, Observation, Theorem, run_by
from budgetreg.learners.skipped_checks import ANY_BUDGET, SEES_ALL, UNBOUNDED
from budgetreg.tasks.subspace_learning import SubspaceLearning
from budgetreg.theory import popca_bound

_DESIGNS = {
    "active": "k attributes per example",
    "passive": "each attribute with probability k/d, k per example on average",
    "importance": "k attributes per example, after a first phase those with larger second moments the likelier",
    "zero_filled": "k attributes per example, the others taken for 0",
    "full": "all attributes",
}
_SEES = {"passive": Observation.K_ON_AVERAGE, "full": Observation.ALL}
_ZEROS = "zeros in place of what is not seen: biased, which is the comparison"
_POOLED = "the estimate is pooled from two phases, which 'unbiased' compares; the other designs share what follows"
_EXCUSES: Mapping[str, Mapping[str, str]] = {
    "full": {
        "second moments": SEES_ALL,
        "full at k=d": SEES_ALL,
        "small k": ANY_BUDGET,
    },
    "zero_filled": {"unbiased": _ZEROS, "second moments": _ZEROS},
    "importance": {"minimiser": _POOLED},
    "passive": {"small k": "at k=1 two attributes of an example are still seen now and then, and this learns"},
}


@dataclass(frozen=True)
class Options:
    """Which attributes of an example are seen; see `budgetreg.learners.second_moment.core.fit`."""

    update: str = option("the update", one_of(*_DESIGNS), tried=())
    n_components: int = subspaces.dimension_option()
    replacement: bool = option("whether attributes are drawn with replacement", FLAG, only=("update", "active"))
    phase_one: float = option(
        "the first phase's share of the examples", FRACTION, only=("update", "importance"), tried=(0.5,)
    )
    mix: float = option(
        "the share of equal probabilities in the draws", FRACTION, only=("update", "importance"), tried=(0.5,)
    )


def _refuse_too_few(learner: Learner, k: int) -> None:
    if learner.options.update not in _SEES:  # at any budget, these see two attributes of an example now and then
        subspaces.at_least_two(learner, k)


def _theorem(options: Options) -> Theorem | None:
    """Return Corollary 3 of Gonen et al. 2016."""
    n = options.n_components
    if options.update == "full":
        return Theorem(lambda B, d, m, k: popca_bound(n, d, d, m), "2-ball")
    if options.update == "passive":
        return Theorem(lambda B, d, m, k: popca_bound(n, d, k, m), "2-ball")
    if options.update == "active" and not options.replacement:
        return Theorem(lambda B, d, m, k: popca_bound(n, d, k, m, passive=False), "2-ball")
    return None


FAMILY = Family(
    name="second_moment",
    version=2,
    options=Options,
    fit=run_by(
        "budgetreg.learners.second_moment.core", "k", "n_components", "update", "replacement", "phase_one", "mix"
    ),
    task=lambda options: SubspaceLearning(options.n_components),
    observation=lambda options: _SEES.get(options.update, Observation.K),
    split_budget=_refuse_too_few,
    missing=lambda options: Missing.REFUSED if options.update in ("full", "zero_filled") else Missing.WEIGHED,
    state_numbers=subspaces.square,
    words=lambda options: (
        "leading eigenvectors of the estimated second moment",
        _DESIGNS.get(options.update, ""),
    ),
    theorem=_theorem,
    oracle="budgetreg.learners.second_moment.oracle",
    skipped_checks=lambda options: {"boundary": UNBOUNDED, **_EXCUSES.get(options.update, {})},
)
FAMILIES = (FAMILY,)
