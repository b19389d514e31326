"""POPCA and PCA: the second moment ``C = E x x'`` is estimated, and its leading eigenvectors are the result.

References
----------
A. Gonen, D. Rosenbaum, Y. C. Eldar, S. Shalev-Shwartz. Subspace Learning with Partial Information. JMLR 17, 2016,
Algorithm 1 and the footnote of Section 3.  Importance sampling is ours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from budgetreg.algorithms.bases import ON_FULL_ROWS, UNBOUNDED, SubspaceLearner
from budgetreg.algorithms.learner import Missing, Observation, Theorem
from budgetreg.algorithms.signature import BudgetSplit, Rngs, Settings, SideInformation, Trajectory
from budgetreg.config.options import FLAG, FRACTION, one_of, option
from budgetreg.metering.accessor import Accessor
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
_SKIPPED: Mapping[str, Mapping[str, str]] = {
    "full": ON_FULL_ROWS,
    "zero_filled": {"unbiased": _ZEROS, "second moments": _ZEROS},
    "importance": {"minimiser": _POOLED},
    "passive": {"small k": "at k=1 two attributes of an example are still seen now and then, and this learns"},
}


@dataclass(frozen=True)
class SecondMomentLearner(SubspaceLearner):
    """POPCA and its variants; the design chooses which attributes of an example are seen.

    Attributes
    ----------
    n_components : int
        Dimension of the subspace, below d.
    update : {'active', 'passive', 'importance', 'zero_filled', 'full'}
        'active' draws uniform subsets of k attributes; 'passive' each attribute with probability k/d; 'importance' k
        attributes, larger ones more often; 'zero_filled' as 'active', with 0 for unseen values; 'full' sees all.
    replacement : bool
        Whether 'active' draws with replacement.
    phase_one, mix : float
        For 'importance', see `budgetreg.algorithms.gonen_2016.popca_core`.
    """

    update: str = option("the update", one_of(*_DESIGNS), tried=())
    replacement: bool = option("whether attributes are drawn with replacement", FLAG, only=("update", "active"))
    phase_one: float = option(
        "the first phase's share of the examples", FRACTION, only=("update", "importance"), tried=(0.5,)
    )
    mix: float = option(
        "the share of equal probabilities in the draws", FRACTION, only=("update", "importance"), tried=(0.5,)
    )

    core = "second_moment"
    version = 2

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Estimate C along all streams, and yield its leading eigenvectors; see `Learner.fit`.

        There is one setting and nothing to tune.
        """
        from budgetreg.algorithms.gonen_2016.popca_core import estimates  # imported here because SciPy loads slowly
        from budgetreg.eigenspaces import leading

        for checkpoint, moment in estimates(self, accessor, checkpoints, rngs, given.k):
            yield checkpoint, np.stack([leading(C, self.n_components) for C in moment])[:, None]

    @property
    def observation(self) -> Observation:
        """What the design sees."""
        return _SEES.get(self.update, Observation.K)

    def split_budget(self, k: int) -> BudgetSplit | None:
        """Refuse a budget of 1, except where two attributes of an example are still seen now and then."""
        return None if self.update in _SEES else super().split_budget(k)

    @property
    def continues(self) -> bool:
        """Whether there is no first phase, which is a share of all examples."""
        return self.update != "importance"

    @property
    def missing(self) -> Missing:
        """Estimates without bias are weighed."""
        return Missing.REFUSED if self.update in ("full", "zero_filled") else Missing.WEIGHED

    @property
    def words(self) -> Sequence[str]:
        """What it computes and sees."""
        return "leading eigenvectors of the estimated second moment", _DESIGNS.get(self.update, "")

    @property
    def theorem(self) -> Theorem | None:
        """Corollary 3 of Gonen et al. 2016."""
        n = self.n_components
        if self.update == "full":
            return Theorem(lambda B, d, m, k: popca_bound(n, d, d, m), "2-ball")
        if self.update == "passive":
            return Theorem(lambda B, d, m, k: popca_bound(n, d, k, m), "2-ball")
        if self.update == "active" and not self.replacement:
            return Theorem(lambda B, d, m, k: popca_bound(n, d, k, m, passive=False), "2-ball")
        return None

    @property
    def skipped_checks(self) -> Mapping[str, str]:
        """What does not apply to the design."""
        return {"boundary": UNBOUNDED, **_SKIPPED.get(self.update, {})}
