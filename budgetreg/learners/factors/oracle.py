"""What factor models have to make of examples seen in full: what all their second moments say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from budgetreg.enumeration.expectations import LearnerUnderTest, Oracle, expect
from budgetreg.metering.table import Table
from budgetreg.streams import generator

D, M = 6, 2000

_OFF = 0.03
"""Share of what is at stake that a model may lose to its prior, to chance and to how few steps it takes."""


@dataclass(frozen=True)
class FullRowsOracle(Oracle):
    """What learners that estimate all second moments have to find in full rows.

    Attributes
    ----------
    settings : mapping of str to sequence of float
        Parameters, one value each; those that the learner has are used.
    """

    settings: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def full_information(self, subject: LearnerUnderTest) -> None:
        """Compare with least squares, or the best subspace, at k = d on examples that one factor moves."""
        rng = generator("check factor models")
        X = np.outer(rng.standard_normal(M), np.linspace(0.4, 1.5, D))
        X += rng.standard_normal((M, D)) * np.linspace(1, 0.3, D)
        y = X @ np.linspace(-1, 1, D) + rng.standard_normal(M)
        orders, rngs = np.arange(M)[None], [generator("check factor draws")]
        (output,), _ = subject.run(Table(X, y), orders, rngs, D, self.settings)
        C = X.T @ X / M
        if output.ndim == 3:
            best, found = np.linalg.solve(C, X.T @ y / M), output[0, :, 0]
            lost, stake = float((found - best) @ C @ (found - best)), float(best @ C @ best)
        else:
            V = output[0, 0]
            stake = float(np.linalg.eigvalsh(C)[-V.shape[1] :].sum())
            lost = stake - float(np.vdot(V, C @ V))
        expect(lost <= _OFF * stake, f"full rows leave {lost / stake:.2g} of what they tell")
