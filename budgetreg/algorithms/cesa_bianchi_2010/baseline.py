"""Baseline and Naive: pairs of attributes estimate the loss, or the correlations with the target.

References
----------
N. Cesa-Bianchi, S. Shalev-Shwartz, O. Shamir. Efficient Learning with Partially Observed Attributes. ICML 2010,
Algorithm 1 and footnote 2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from budgetreg.algorithms.bases import UNBOUNDED
from budgetreg.algorithms.learner import RADIUS, Cost, Learner, Missing
from budgetreg.algorithms.signature import BudgetSplit, Rngs, Settings, SideInformation, Trajectory
from budgetreg.config.options import one_of, option
from budgetreg.errors import ConfigError
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.tasks import WithIntercept
from budgetreg.testing import certificates
from budgetreg.testing.certificates import RADII, Shown, largest, one_norm
from budgetreg.testing.expectations import LearnerUnderTest, Oracle, close, same
from budgetreg.testing.scripted_rng import distribution

_PROBLEMS = {
    "program": "estimated least squares in the 1-ball, negative eigenvalues set to 0",
    "correlation": "estimated correlations scaled to a 1-norm",
}


@dataclass(frozen=True)
class Baseline(Learner):
    """Baseline and Naive: what is solved for the estimates.

    Attributes
    ----------
    update : {'program', 'correlation'}
        How the regressor is computed from the estimates, see `minimisers` and `correlation`.
    """

    update: str = option("the update", one_of(*_PROBLEMS), tried=())

    core = "pairs"
    continues = True
    parameters = (RADIUS,)
    tuned = ("B",)
    missing = Missing.WEIGHED
    centres_itself = True
    scales_itself = True
    shares_settings = True
    skipped_checks: ClassVar[Mapping[str, str]] = {"boundary": UNBOUNDED}

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Estimate the loss along all streams and minimise it at the checkpoints; see `Learner.fit`.

        A pair is charged 2 attributes, also if they are equal. The setting is ``B``, the largest 1-norm. Where
        attributes are scaled, it is that for attributes in units of the standard deviations of what was seen.
        """
        from budgetreg.algorithms.cesa_bianchi_2010 import pairs_core  # imported here because SciPy loads slowly

        solve = {"program": pairs_core.minimisers, "correlation": pairs_core.correlation}[self.update]
        centred = given.centred or given.intercept
        centring = pairs_core.PairCentring(accessor) if centred or given.scaled else None
        for checkpoint, A, v in pairs_core.estimates(accessor, checkpoints, rngs, given.k, centring):
            scale = np.ones(v.shape)
            if centring:
                m, r = centring.origin(given.centred, given.intercept)
                A, v = centring.centre(A, v, m, r)
            if centring and given.scaled:
                scale = centring.scale(given.centred)
                A, v = A * (scale[:, :, None] * scale[:, None, :]), v * scale
            W = np.stack([solve(A_f, v_f, settings["B"]) for A_f, v_f in zip(A, v, strict=True)]) * scale[:, :, None]
            yield checkpoint, WithIntercept(W, r[:, None] - np.einsum("fd,fdg->fg", m, W)) if centred else W

    def split_budget(self, k: int) -> BudgetSplit | None:
        """Refuse a budget below a pair.

        Raises
        ------
        ConfigError
            If the budget is 1.
        """
        if k < 2:
            raise ConfigError(f"k={k}: {self.name} needs a budget of at least 2, the attributes of one pair")
        return None

    def cost(self, d: int, k: int, settings: Mapping[str, float]) -> Cost:
        """Return what whole pairs cost; one attribute of an odd budget is left over."""
        return Cost(k - k % 2, k - k % 2)

    @property
    def words(self) -> Sequence[str]:
        """What it sees and solves."""
        return "k attributes per example, in pairs", _PROBLEMS.get(self.update, "")

    @property
    def oracle(self) -> Oracle:
        """The distribution of what pairs estimate, and certificates of what is solved."""
        return PairEstimatesOracle(self.update)


D = 4
_X, _Y = np.array([0.7, -1.1, 0.4, 0.2]), -1.5


@dataclass(frozen=True)
class PairEstimatesOracle(Oracle):
    """Enumerates the pairs of one example, and certifies what is solved for."""

    update: str

    def unbiased(self, subject: LearnerUnderTest) -> None:
        """Compare the means with ``x x'`` and ``2 y x``."""
        for k in (2, 3, D):
            A, v, probability = _estimates(k)
            close("A", np.tensordot(probability, A, axes=1), np.outer(_X, _X))
            close("v", probability @ v, 2 * _Y * _X)

    def second_moments(self, subject: LearnerUnderTest) -> None:
        """Compare with the variance of a mean over n of d^2 pairs without replacement, as in survey sampling."""
        k = 4
        A, v, probability = _estimates(k)
        n, pairs, norm = k // 2, D**2, float(_X @ _X)
        share = (pairs - n) / (n * (pairs - 1))
        single_A, single_v = pairs / 2 * (norm**2 + float((_X**4).sum())), 4 * _Y**2 * (D + 1) / 2 * norm
        mean_A, mean_v = norm**2, 4 * _Y**2 * norm
        close("A's square", probability @ np.square(A).sum(axis=(1, 2)), mean_A + share * (single_A - mean_A))
        close("v's square", probability @ np.square(v).sum(axis=1), mean_v + share * (single_v - mean_v))

    def full_information(self, subject: LearnerUnderTest) -> None:
        """Compare the means with ``x x'`` and ``2 y x`` also at k = d."""
        self.unbiased(subject)

    def minimiser(self, subject: LearnerUnderTest) -> None:
        """Certify the program's minimisers over 1-balls by their duality gaps, or compare the scaled correlations.

        A and v are computed again from the pairs that were shown. A is unbiased. With its negative eigenvalues set to 0
        it is the nearest matrix that makes the program convex, and no longer unbiased.
        """
        for shown in certificates.run(subject, {"B": RADII}):
            A, v = _averages(shown)
            if self.update == "correlation":
                same("the regressors", shown.output, np.outer(v, RADII) / np.abs(v).sum())
                continue
            s, V = np.linalg.eigh(A)
            convex = (V * np.maximum(s, 0)) @ V.T
            for w, B in zip(shown.output.T, RADII, strict=True):
                what, gradient = f"the program of {len(shown.y)} examples", 2 * convex @ w - v
                certificates.least(what, w, B, gradient, B * largest(v), one_norm, largest)


def _estimates(k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return A (N, d, d) and v (N, d) of one example for all outcomes, and these outcomes' probabilities."""
    from budgetreg.algorithms.cesa_bianchi_2010 import pairs_core  # imported here because SciPy loads slowly

    def estimated(rngs: list[Any]) -> np.ndarray:
        accessor = Accessor(Table(_X[None], np.array([_Y])), np.zeros((len(rngs), 1)), 1, k, [1])
        ((_, A, v),) = pairs_core.estimates(accessor, [1], rngs, k)
        return np.concatenate([A, v[:, None]], axis=1)

    # The learner draws once for each pair of the only example.
    found, probability = distribution([0] * (k // 2), estimated)
    return found[:, :D], found[:, D], probability


def _averages(shown: Shown) -> tuple[np.ndarray, np.ndarray]:
    """Return the means of A and v by the paper's listing, from n pairs of each example."""
    d = certificates.D
    A, v = np.zeros((d, d)), np.zeros(d)
    for attributes, x, y in zip(shown.attributes, shown.values, shown.y, strict=True):
        n = len(attributes) // 2
        for (i, j), (x_i, x_j) in zip(attributes.reshape(n, 2), x.reshape(n, 2), strict=True):
            A[i, j] += d**2 / (2 * n) * x_i * x_j
            A[j, i] += d**2 / (2 * n) * x_i * x_j
            v[i] += 2 * y * d / (2 * n) * x_i
            v[j] += 2 * y * d / (2 * n) * x_j
    return A / len(shown.y), v / len(shown.y)
