"""DDAERR and DDAELR, whose draws depend on the attributes' second moments, and the two-phased ones that estimate them.

References
----------
D. Kukliansky, O. Shamir. Attribute Efficient Linear Regression with Distribution-Dependent Sampling. ICML 2015,
Algorithms 1 to 4; Section 5 says that the first phase learns, and how draws for the inner product are improved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import TYPE_CHECKING

import numpy as np

from budgetreg.algorithms.engine import Proportional, data_point_weights, inner_product_weights, run
from budgetreg.algorithms.hazan_koren_2012.aerr_aelr import (
    STATES,
    GuidedLearner,
    aelr,
    aelr_exponents,
    aerr,
    eg_step,
    eg_step_for,
    half_norm,
    ogd_step,
)
from budgetreg.algorithms.learner import (
    RADIUS,
    STEP_SIZE,
    UPDATES,
    Missing,
    Parameter,
    Rngs,
    RunContext,
    Settings,
    SideInformation,
    Trajectory,
    first_phase,
    update_option,
)
from budgetreg.algorithms.vectors import Steps, invert
from budgetreg.common.streams import uniform
from budgetreg.config.options import FRACTION, NOT_NEGATIVE, ZERO, one_of, option

if TYPE_CHECKING:
    from budgetreg.metering.accessor import Accessor

# The algorithms as printed, one replica and one example at a time. GAERR (Algorithm 1) and GAELR (Algorithm 3) are the
# listings of AERR and AELR with other probabilities of the draws. DDAERR is GAERR with q ~ sqrt(E x^2), DDAELR is GAELR
# with q ~ E x^2, and the improved draws for the inner product have p_j ~ |w_j| sqrt(E x_j^2) (Section 5).


def ddaerr(
    X: np.ndarray, y: np.ndarray, attributes: np.ndarray, uniforms: np.ndarray, B: float, eta: float, A: np.ndarray
) -> Steps:
    """Run DDAERR with improved draws for known moments A (d,); the attributes are drawn from ``q ~ sqrt(A)``."""
    q = np.sqrt(A)
    return aerr(X, y, attributes, uniforms, B, eta, q / q.sum(), np.sqrt(A))


def ddaelr(
    X: np.ndarray, y: np.ndarray, attributes: np.ndarray, uniforms: np.ndarray, B: float, eta: float, A: np.ndarray
) -> Steps:
    """Run DDAELR with improved draws for known moments A (d,); the attributes are drawn from ``q ~ A``."""
    return aelr(X, y, attributes, uniforms, B, eta, A / A.sum(), np.sqrt(A))


def two_phases(
    update: str,
    X: np.ndarray,
    y: np.ndarray,
    attributes: np.ndarray,
    numbers: np.ndarray,
    uniforms: np.ndarray,
    B: float,
    etas: tuple[float, float],
    eps: float,
    mix: float,
    *,
    improved: bool = True,
) -> Steps:
    """Run Algorithm 2 or 4, two-phased DDAERR ('ogd') or DDAELR ('eg'), on examples X (m, d) and y (m,).

    The first phase has m_1 examples. It is AERR or AELR, and its draws for the data points estimate the moments. The
    second one is GAERR or GAELR with these moments. It starts from the average of the first, as Section 5 suggests, and
    its draws may be mixed with equal ones, which is ours.

    Parameters
    ----------
    attributes : ndarray of int, shape (m_1, k_x)
        The first phase's attributes, drawn uniformly.
    numbers : ndarray of float, shape (m - m_1, k_x)
        Numbers in [0, 1) that become the second phase's attributes.
    uniforms : ndarray of float, shape (m, k_ip)
        Numbers in [0, 1) that become the attributes drawn for the inner products.
    etas : tuple of float
        Step sizes of the phases.
    eps : float
        Error of the moments, see `moment_error`.
    mix : float
        Share of equal weights in the second phase's draws.
    improved : bool
        Whether its draws for the inner products are the improved ones.
    """
    listing = {"ogd": aerr, "eg": aelr}[update]
    m_1, total = len(attributes), np.zeros(X.shape[1])
    for w, drawn in listing(X[:m_1], y[:m_1], attributes, uniforms[:m_1], B, etas[0]):
        yield w, drawn
        total += w
    A = estimated_moments(X[:m_1], attributes, eps)
    q, s = (
        (1 - mix) * weights / weights.sum() + mix / weights.size
        for weights in (np.sqrt(A) if update == "ogd" else A, np.sqrt(A))
    )
    start = total / m_1 if update == "ogd" else aelr_exponents(total / m_1, B)
    drawn = np.stack([invert(q, u) for u in numbers])
    yield from listing(X[m_1:], y[m_1:], drawn, uniforms[m_1:], B, etas[1], q, s if improved else None, start)


def estimated_moments(X: np.ndarray, attributes: np.ndarray, eps: float) -> np.ndarray:
    """Return ``A_i + 13 eps / 6`` from the first phase's examples X (m_1, d) and their draws (m_1, k_x).

    ``A_i`` is the mean square of attribute i where it was drawn. One that never was has the mean of the others.
    """
    d = X.shape[1]
    times = np.bincount(attributes.ravel(), minlength=d)
    squares = np.bincount(attributes.ravel(), np.take_along_axis(X, attributes, axis=1).ravel() ** 2, minlength=d)
    A = np.divide(squares, times, out=np.full(d, np.nan), where=times > 0)
    return np.asarray(np.where(times > 0, A, np.nanmean(A)) + 13 / 6 * eps)


# What the theorems prescribe, see `budgetreg.algorithms.hazan_koren_2012.aerr_aelr`.


def moment_error(d: int, delta: float, k: int, m_1: int) -> float:
    """Half-width eps of the confidence interval of second moments estimated by uniform draws.

    ``min(1, d log(2d/delta) / (k m_1))`` for k draws (the paper's k + 1) from each of m_1 examples, with probability
    1 - delta. Kukliansky & Shamir 2015, Sections 3.2 and 4.2. They print the maximum of 1 for the lasso only, but no
    second moment in the unit range has a larger error.
    """
    return min(1.0, d * log(2 * d / delta) / (k * m_1))


def ddaerr_two_phase_step(estimates: np.ndarray, eps: float, m_2: int, k_x: int) -> float:
    """Step size of the second phase of two-phased DDAERR.

    Kukliansky & Shamir 2015, Theorem 3.4, in terms of `moment_error`: ``max(eta_1, eta_2)``, where eta_1 is valid for
    any estimates and eta_2 is larger for good ones.

    Parameters
    ----------
    estimates : ndarray of float, shape (d,)
        Second moments A estimated in the first phase.
    eps : float
        Their error, see `moment_error`.
    m_2, k_x : int
        Examples of the second phase, and draws for the data point of each.
    """
    d, H = len(estimates), half_norm(2 * np.asarray(estimates) + 10 / 3 * eps)
    guided = (2 * H + 2 * d * sqrt(5 / 3 * eps * H)) / k_x + 1
    return 1 / sqrt(min(6 * d / k_x, guided) * m_2)


def ddaelr_two_phase_step(B: float, estimates: np.ndarray, eps: float, m_2: int, k_x: int) -> float:
    """Step size of the second phase of two-phased DDAELR; parameters as in `ddaerr_two_phase_step`.

    Kukliansky & Shamir 2015, Theorem 4.5.
    """
    d = len(estimates)
    return eg_step_for(B, (8 * float(np.sum(estimates)) + 20 * d * eps) / k_x + 1, d, m_2)


# The two phases for F x G replicas at once: each is one run of the engine, the second from the first one's average.

CONFIDENCE = 0.05
"""Probability delta, in the theory, that an estimated moment is too small."""


class MomentEstimates:
    """Estimates of the attributes' second moments ``A_i``, from the uniform draws of F streams."""

    def __init__(self, accessor: Accessor) -> None:
        self._accessor = accessor
        self._squares, self._times = np.zeros((2, accessor.n_streams, accessor.d))

    def note(self, attributes: np.ndarray, values: np.ndarray) -> None:
        """Add a block's attributes and values, (F, T, k_x) each; missing values are left out."""
        from budgetreg.metering.table import sums

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


@dataclass(frozen=True)
class TwoPhaseLearner(GuidedLearner):
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

    update: str = update_option("ogd", "eg")
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
        first = STATES[self.update](F, d, k_ip, {"B": settings["B"], "eta": settings["eta"]})
        early = sorted({*(checkpoint for checkpoint in checkpoints if checkpoint < m_1), m_1})
        phase = run(
            accessor, first, early, rngs, [uniform] * F, given.split, average=self.average, revealed=estimates.note
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
        root = mixed(inner_product_weights(A, given.prices), self.mix) if self.inner_product == "moment" else None
        second = STATES[self.update](
            F, d, k_ip, {"B": settings["B"], "eta": settings["eta_two"]}, root_moments=root, start=start, first=m_1
        )
        samplers = list(map(Proportional, mixed(data_point_weights(self.update, A, given.prices), self.mix)))
        yield from run(accessor, second, late, rngs, samplers, given.split, average=self.average)

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
        return ("k attributes per example, the first of two phases estimating moments", UPDATES.get(self.update, ""))
