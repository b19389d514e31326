"""Debiased averaged SGD: a gradient of examples with zeros for what was not seen, corrected to be unbiased.

References
----------
A. Sportisse, C. Boyer, A. Dieuleveut, J. Josse. Debiasing Averaged Stochastic Gradient Descent to handle missing
values. NeurIPS 2020, Algorithm 1 and Lemma 1. The step size of theory is that of Theorem 4 for rows in the unit ball.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from budgetreg.algorithms.learner import (
    ONE_PASS,
    STEP_SIZE,
    UNBOUNDED,
    Batching,
    PairwiseLearner,
    Rngs,
    RunContext,
    Settings,
    SideInformation,
    Trajectory,
)
from budgetreg.algorithms.vectors import sum_in_order
from budgetreg.common.streams import blocks, subset
from budgetreg.config.options import one_of, option

if TYPE_CHECKING:
    from budgetreg.metering.accessor import Accessor

# The algorithm as printed, one example at a time. The paper's p is the probability of seeing an attribute, here k/d.


def debiased_sgd(
    X: np.ndarray, y: np.ndarray, shown: Sequence[np.ndarray], eta: float, mask: str
) -> Iterator[np.ndarray]:
    """Yield the mean of the iterates ``w_1 .. w_t`` after each example; Algorithm 1 starts from ``w_1 = 0``."""
    w, total = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for t, (x, target, S) in enumerate(zip(X, y, shown, strict=True), start=1):
        total += w
        yield total / t
        z = np.zeros(len(x))
        z[S] = x[S]
        w = w - eta * debiased_gradient(z, target, w, len(S), mask)


def debiased_gradient(z: np.ndarray, y: float, w: np.ndarray, k: int, mask: str) -> np.ndarray:
    """Return ``(z'w/p - y) z/p - (1-p)/p^2 diag(z^2) w`` for an example z (d,), 0 where it was not seen.

    This is unbiased if attributes are seen independently of each other. Uniform subsets of k show two attributes with
    the probability ``k (k-1) / (d (d-1))`` instead of ``p^2``, so that the mean of what is not on the diagonal is
    ``d (k-1) / (k (d-1))`` times what it should be. With ``mask=subset`` it is divided by the former probability.
    """
    alone, together = inclusion(len(z), k, mask)
    return np.asarray((z @ w / together - y / alone) * z + (1 / alone - 1 / together) * z**2 * w)


def inclusion(d: int, k: int, mask: str) -> tuple[float, float]:
    """Return the probabilities that an attribute is seen, and that two are seen together."""
    return k / d, k * (k - 1) / (d * (d - 1)) if mask == "subset" and k < d else (k / d) ** 2


# All replicas at once. A step changes the k attributes seen and no other, so that the mean of the iterates is kept as
# ``w_{c+1} + (1/c) sum_s s (w_s - w_{s+1})``, whose terms are 0 for all other attributes.


@dataclass(frozen=True)
class DebiasedGradient(PairwiseLearner):
    """Averaged SGD on uniform subsets of k attributes.

    Attributes
    ----------
    mask : {'independent', 'subset'}
        The distribution of subsets for which the gradient is unbiased, see `debiased_gradient`.
    """

    mask: str = option("the distribution that the correction assumes", one_of("independent", "subset"))

    core = "debiased_sgd"
    continues = True
    parameters = (STEP_SIZE,)
    tuned = ("eta",)
    batching = Batching.IN_STEP
    words = ("k attributes per example, zeros for the others", "debiased gradients, averaged")

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Run all settings along all streams; steps that are too large diverge, and are never chosen."""
        F, d, stream = accessor.n_streams, accessor.d, np.arange(accessor.n_streams)[:, None]
        alone, together = inclusion(d, given.k, self.mask)
        w, V = (np.zeros((F, d, accessor.n_settings)) for _ in range(2))
        for start, stop in blocks(0, checkpoints[-1]):
            attributes = np.stack([subset(rng, d, given.k) for rng in rngs])[:, : stop - start]
            accessor.open(start, stop)
            values, y = accessor.reveal_block(attributes), accessor.targets()
            with np.errstate(over="ignore", invalid="ignore"):
                for t in range(start + 1, stop + 1):
                    seen, z = (stream, attributes[:, t - start - 1]), values[:, t - start - 1, :, None]
                    before = w[seen]
                    inner = sum_in_order((z * before).swapaxes(0, 1))
                    residual = inner / together - y[:, t - start - 1, None] / alone
                    gradient = residual[:, None] * z + (1 / alone - 1 / together) * z**2 * before
                    step = settings["eta"] * gradient
                    w[seen] = before - step
                    V[seen] += t * step
                    if t in checkpoints:
                        yield t, w + V / t

    def theory(self, run: RunContext, B: float | None) -> Mapping[str, float]:
        """Return the step size ``p^2 / 2``, p = k/d, half the inverse of the gradients' Lipschitz constant."""
        return {"eta": (run.k / run.d) ** 2 / 2}

    @property
    def skipped_checks(self) -> Mapping[str, str]:
        """Nothing is minimised; the printed correction is biased where attributes are drawn without replacement."""
        skipped = {"boundary": UNBOUNDED, "minimiser": ONE_PASS}
        if self.mask == "independent":
            skipped["unbiased"] = "the printed correction assumes independent masks, and subsets are not independent"
        return skipped
