"""Two-phased DDAERR and DDAELR, which estimate the second moments that their draws depend on.

The first phase runs AERR or AELR, with uniform draws, and estimates the moments from what they reveal. The second phase
starts from the first one's average and draws as DDAERR or DDAELR do.

References
----------
D. Kukliansky, O. Shamir. Attribute Efficient Linear Regression with Distribution-Dependent Sampling. ICML 2015,
Algorithms 2 and 4; Section 5 says that the first phase learns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from budgetreg.algorithms import bases
from budgetreg.algorithms.engine import UPDATES, run
from budgetreg.algorithms.learner import RADIUS, STEP_SIZE, Missing, Parameter, RunContext
from budgetreg.algorithms.signature import Rngs, Settings, SideInformation, Trajectory
from budgetreg.config.options import FRACTION, NOT_NEGATIVE, ZERO, one_of, option
from budgetreg.draws import Proportional, uniform
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.centring import sums
from budgetreg.revealed import importance_weights
from budgetreg.theory import ddaelr_two_phase_step, ddaerr_two_phase_step, eg_step, first_phase, moment_error, ogd_step


@dataclass(frozen=True)
class TwoPhaseLearner(bases.GuidedLearner):
    """Two-phased DDAERR ('ogd') and DDAELR ('eg').

    Attributes
    ----------
    average : {'all', 'suffix', 'last'}
        Which iterates of its phase an output averages; the second phase starts from the first one's output.
    phase_one : float
        Share of the examples in the first phase.
    smoothing : float or 'theory'
        The error eps of the estimates: ``A + 13 eps / 6`` replaces the moments; 'theory': `moment_error`.
    mix : float
        Share of equal weights in the second phase's draws, see `mixed`.
    """

    update: str = bases.update_option("ogd", "eg")
    phase_one: float = option("the first phase's share of the examples", FRACTION, tried=(0.5,))
    smoothing: float | str = option(
        "the smoothing of estimated moments", one_of("theory") | NOT_NEGATIVE, tried=("theory", 0, 0.3)
    )
    mix: float = option("the share of equal weights in the draws", ZERO | FRACTION, tried=(0, 0.5))

    core = "two_phase"
    parameters = (RADIUS, STEP_SIZE, Parameter("eta_two", "the second phase's step size"))
    tuned = ("B", "eta", "eta_two")
    missing = Missing.WEIGHED

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Run all settings along all streams, one pass; see `Learner.fit`.

        Settings are ``B``, and ``eta`` and ``eta_two``, the step sizes of the two phases. The second phase starts from
        the first one's output.
        """
        k_x, k_ip = given.split
        F, d, m = accessor.n_streams, accessor.d, checkpoints[-1]
        m_1 = first_phase(self.phase_one, m)
        estimates = MomentEstimates(accessor)
        first = UPDATES[self.update](F, d, k_ip, {"B": settings["B"], "eta": settings["eta"]})
        early = sorted({*(checkpoint for checkpoint in checkpoints if checkpoint < m_1), m_1})
        phase = run(
            accessor, first, 0, early, rngs, [uniform] * F, given.split, average=self.average, revealed=estimates.note
        )
        for checkpoint, W in phase:
            start = W
            if checkpoint in checkpoints:
                yield checkpoint, W
        late = [checkpoint for checkpoint in checkpoints if checkpoint > m_1]
        if not late:
            return
        # Draws for the inner product do not estimate moments; the paper's first phase has k draws that do.
        eps = moment_error(d, CONFIDENCE, k_x, m_1) if self.smoothing == "theory" else float(self.smoothing)
        A = estimates.means() + 13 / 6 * eps
        options = {}
        if self.inner_product == "moment":
            options["root_moments"] = mixed(importance_weights.inner_product(A, given.prices), self.mix)
        second = UPDATES[self.update](
            F, d, k_ip, {"B": settings["B"], "eta": settings["eta_two"]}, start=start, **options
        )
        samplers = [
            Proportional(weights)
            for weights in mixed(importance_weights.data_point(self.update, A, given.prices), self.mix)
        ]
        yield from run(accessor, second, m_1, late, rngs, samplers, given.split, average=self.average)

    def theory(self, run: RunContext, B: float | None) -> Mapping[str, float]:
        """Return both phases' step sizes of Kukliansky & Shamir 2015."""
        assert B is not None
        k_x, m_1 = run.k_x, first_phase(self.phase_one, run.m)
        # Where the theorems make use of the estimates they cannot be had yet: what holds for any moments is taken.
        worst, m_2 = np.ones(run.d), max(1, run.m - m_1)
        if self.update == "eg":
            return {"eta": eg_step(B, run.d, m_1, k_x), "eta_two": ddaelr_two_phase_step(B, worst, 1.0, m_2, k_x)}
        return {"eta": ogd_step(run.d, m_1, k_x), "eta_two": ddaerr_two_phase_step(worst, 1.0, m_2, k_x)}

    @property
    def words(self) -> Sequence[str]:
        """What it sees and how it moves."""
        return (
            "k attributes per example, the first of two phases estimating moments",
            bases.UPDATES.get(self.update, ""),
        )


CONFIDENCE = 0.05
"""Probability delta, in the theory, that an estimated moment is too small."""


class MomentEstimates:
    """Estimates of the attributes' second moments ``A_i``, from the uniform draws of F streams."""

    def __init__(self, accessor: Accessor) -> None:
        self._accessor = accessor
        self._squares, self._times = np.zeros((2, accessor.n_streams, accessor.d))

    def note(self, attributes: np.ndarray, values: np.ndarray) -> None:
        """Add a block's attributes and values, (F, T, k_x) each; missing values are left out."""
        self._times += sums(attributes, self._accessor.available(attributes), self._accessor.d)
        self._squares += sums(attributes, np.square(values), self._accessor.d)

    def means(self) -> np.ndarray:
        """Return ``A``, shape (F, d); attributes that were never drawn get the mean of the others."""
        known = self._times > 0
        A = np.divide(self._squares, self._times, out=np.zeros_like(self._squares), where=known)
        typical = A.sum(axis=1, keepdims=True) / np.maximum(known.sum(axis=1, keepdims=True), 1)
        return np.where(known, A, typical)


def mixed(weights: np.ndarray, mix: float) -> np.ndarray:
    """Return weights (F, d) divided by their means and mixed with equal weights.

    Otherwise an attribute that was 0 in all draws of the first phase would never be drawn again.
    """
    mean = weights.mean(axis=1, keepdims=True)
    return np.where(mean > 0, (1 - mix) * weights / np.where(mean > 0, mean, 1.0) + mix, 1.0)
