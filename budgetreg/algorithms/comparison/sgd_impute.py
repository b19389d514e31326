"""SGD on imputed examples: a simple comparison, in which running means stand for the attributes that are not seen.

The gradient ``(<w, x> - y) x`` is computed for the imputed example as if all of it had been seen, hence biased.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from budgetreg.algorithms.learner import (
    ONE_PASS,
    RADIUS,
    STEP_SIZE,
    UPDATES,
    Batching,
    Learner,
    Missing,
    Rngs,
    Settings,
    SideInformation,
    Trajectory,
    average_option,
)
from budgetreg.algorithms.vectors import Averager, inner_products, project_l2
from budgetreg.metering.accessor import Accessor
from budgetreg.revealed.collection import AttributeDraws, reveal
from budgetreg.streams import blocks

_GUESSED = "imputed values are guesses, so the gradient is biased"


@dataclass(frozen=True)
class ImputedGradientLearner(Learner):
    """Projected SGD on uniform subsets of k attributes, the others imputed by the means of what was revealed."""

    average: str = average_option()

    core = "sgd_impute"
    continues = True
    parameters = (RADIUS, replace(STEP_SIZE, absolute=True))
    tuned = ("B", "eta")
    batching = Batching.IN_STEP
    missing = Missing.LEFT_OUT
    uses_free = True
    draws_groups = True
    words = ("k attributes per example, the others imputed by their running means", UPDATES["ogd"])
    skipped_checks: ClassVar[Mapping[str, str]] = {
        "unbiased": _GUESSED,
        "second moments": _GUESSED,
        "minimiser": ONE_PASS,
        "small k": "the means need one attribute of an example, so any k is enough",
    }

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Run all settings along all streams; missing values are imputed like values that are not seen."""
        F, G, d = accessor.n_streams, accessor.n_settings, accessor.d
        averager = Averager(checkpoints, self.average)
        sums, counts = np.zeros((F, d + 1)), np.zeros((F, d + 1))  # column d collects the values that are missing
        w, total = np.zeros((F, G, d)), np.zeros((F, G, d))
        stream = np.arange(F)[:, None]
        draws = [AttributeDraws(rng, d, given.k, accessor.free, accessor.groups) for rng in rngs]
        for start, stop in blocks(0, checkpoints[-1]):
            attributes, values = reveal(accessor, draws, start, stop, missing=d)
            y = accessor.targets()
            for t in range(stop - start):
                total += w
                mark = start + t + 1
                output = averager.observe(mark, total.copy, w.copy) if mark in averager.marks else None
                if output:
                    yield mark, np.ascontiguousarray(output[1].swapaxes(1, 2))
                seen = stream, attributes[:, t]
                x = sums / np.maximum(counts, 1)
                x[seen] = values[:, t]
                x = x[:, :d].copy()
                residual = inner_products(w, x[:, None]) - y[:, t, None]
                w = project_l2(w - (settings["eta"] * residual)[:, :, None] * x[:, None], settings["B"])
                sums[seen] += values[:, t]
                counts[seen] += 1
