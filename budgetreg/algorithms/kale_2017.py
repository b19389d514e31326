"""Two phases for sparse targets: find k attributes by uniform draws, then see these alone.

References
----------
S. Kale, Z. Karnin, T. Liang, D. Pal. Adaptive Feature Selection: Computationally Efficient Online Sparse Linear
Regression under RIP. ICML 2017. Their learner restarts with a Dantzig selector; F. Li, H. Liao, H. Xu, F. Nie (2025)
follow them. The texts of both were not at hand. This is a batch form with two phases; the share of the first, the
number of attributes that are kept, and ridge in place of least squares in the second are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from budgetreg.algorithms.corrected_moments import PairSums, solved_streams
from budgetreg.algorithms.imputation import regressors
from budgetreg.algorithms.learner import (
    UNBOUNDED,
    Missing,
    PairwiseLearner,
    Rngs,
    Settings,
    SideInformation,
    Trajectory,
    first_phase,
)
from budgetreg.common.streams import blocks
from budgetreg.config.options import FRACTION, one_of, option
from budgetreg.metering.table import Outputs, WithIntercept
from budgetreg.revealed.collection import AttributeDraws, Entries, drawn, pilot_entries, revealed
from budgetreg.revealed.columns import Rescaled

if TYPE_CHECKING:
    from budgetreg.metering.accessor import Accessor

_SOLVERS = {"cocolasso": "maximum", "hmlasso": "weights", "dantzig": "dantzig"}

_LEAST_ROWS = 2
"""Examples of the second phase, for each attribute kept, from which on its regressor replaces that of the first."""


@dataclass(frozen=True)
class TwoPhaseSparse(PairwiseLearner):
    """A sparse regressor from corrected moments, then ridge on its k largest attributes.

    Attributes
    ----------
    solver : {'cocolasso', 'hmlasso', 'dantzig'}
        What finds the sparse regressor, see `budgetreg.algorithms.corrected_moments`.
    phase_one : float
        Share of the examples whose attributes are drawn uniformly.
    """

    solver: str = option("how the regressor of the first phase is found", one_of(*_SOLVERS))
    phase_one: float = option("the share of the examples in the first phase", FRACTION, default=0.5, tried=(0.3,))

    core = "two_phase_sparse"
    centres_itself = True
    scales_itself = True
    missing = Missing.SKIPPED
    check_streams = 40
    words = ("k attributes per example: uniform subsets, then the k that a sparse regressor weighs most", "ridge")
    skipped_checks: ClassVar[Mapping[str, str]] = {
        "unbiased": "the moments are those of corrected_lasso, for which they are checked",
        "second moments": "the moments are those of corrected_lasso",
        "boundary": UNBOUNDED,
    }

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Choose the attributes after the first phase; there is one setting and nothing to tune, see `Learner.fit`."""
        d, last = accessor.d, checkpoints[-1]
        (first, _), second, orders = pilot_entries(accessor), Entries(d + 1), [rng.permutation(d) for rng in rngs]
        draws = [AttributeDraws(rng, d, given.k) for rng in rngs]
        m_1 = first_phase(self.phase_one, last)
        chosen = None
        for start, stop in blocks(0, last, {*checkpoints, m_1}):
            accessor.open(start, stop)
            if chosen is None:
                attributes, entries = drawn(accessor, draws, stop - start), first
            else:
                attributes, entries = np.repeat(chosen[:, None], stop - start, axis=1), second
            entries.add(*revealed(accessor, attributes, d + 1), accessor.targets())
            if stop == m_1 or (stop in checkpoints and chosen is None):
                sparse, chosen_by_now = self._sparse(first, orders, accessor, given)
            if stop == m_1:
                chosen = chosen_by_now
            if stop in checkpoints:
                if stop - m_1 >= _LEAST_ROWS * given.k:
                    sparse = regressors(second, accessor, given, impute="mean", rescale=False, among=chosen)
                yield stop, sparse

    def _sparse(
        self, entries: Entries, orders: Sequence[np.ndarray], accessor: Accessor, given: SideInformation
    ) -> tuple[Outputs, np.ndarray]:
        """Return the sparse regressors of all streams, and the k attributes (F, k) that each weighs most."""
        F, d = accessor.n_streams, accessor.d
        rescaled = Rescaled(entries.blocks(), d, given.scaled, accessor.stored_units())
        W, b, kept = solved_streams(_SOLVERS[self.solver], rescaled, F, d, given)
        streams = zip(W, kept, orders, strict=True)
        chosen = np.stack([np.sort(_largest(w[:, 0], sums, order)[: given.k]) for w, sums, order in streams])
        centred = given.centred or given.intercept
        return rescaled.as_revealed(WithIntercept(W, b) if centred else W), chosen


def _largest(w: np.ndarray, sums: PairSums, order: np.ndarray) -> np.ndarray:
    """Return the attributes from the largest ``|w_i| s_i`` on; equal ones by the correlation with the target."""
    C, _ = sums.moments(np.arange(len(sums.examples)))
    s = np.sqrt(C.diagonal()[:-1])
    return np.lexsort((order, -np.abs(C[:-1, -1]) / np.where(s > 0, s, 1.0), -np.abs(w) * s))
