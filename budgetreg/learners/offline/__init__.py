"""Offline ridge and lasso: the empirical loss minimised over balls, on each prefix of the examples, seen in full.

The comparisons of Cesa-Bianchi et al. 2010 and of Hazan & Koren 2012.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from budgetreg.config.options import option
from budgetreg.config.requirements import one_of
from budgetreg.enumeration.certificates import BallOracle, largest, one_norm, two_norm
from budgetreg.learners.bases import ON_FULL_ROWS, UNBOUNDED
from budgetreg.learners.declaration import RADIUS, Batching, Learner, Observation
from budgetreg.learners.signature import Rngs, Settings, SideInformation, Trajectory
from budgetreg.metering.accessor import Accessor
from budgetreg.tasks import WithIntercept

_PROBLEMS = {"ridge": "least squares in the 2-ball", "lasso": "least squares in the 1-ball"}
_NORMS = {"ridge": (two_norm, two_norm), "lasso": (one_norm, largest)}
"""The norm of the ball, and the dual norm."""

_BLOCK = 2**14
"""Examples of each stream in a block."""


@dataclass(frozen=True)
class OfflineLearner(Learner):
    """Ridge and lasso on full rows: which ball the regressor lies in.

    Attributes
    ----------
    update : {'ridge', 'lasso'}
        The ball: ``|w|_2 <= B`` or ``|w|_1 <= B``.
    """

    update: str = option("the update", one_of(*_PROBLEMS), tried=())

    core = "offline"
    observation = Observation.ALL
    parameters = (RADIUS,)
    tuned = ("B",)
    batching = Batching.WITH_ITS_FOLDS
    shares_settings = True
    centres_itself = True
    skipped_checks: ClassVar[Mapping[str, str]] = {
        **ON_FULL_ROWS,
        "unbiased": "the loss is minimised itself, without gradients",
        "boundary": UNBOUNDED,
    }

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Minimise ``|X w - y|_2^2`` over balls, at each checkpoint on the examples up to it; see `Learner.fit`.

        If least-squares solutions lie inside the ball, the one of least norm (the ball's norm) is returned. The setting
        is ``B``, and nothing is drawn.
        """
        from budgetreg.learners.offline import core  # imported here because SciPy loads slowly

        solve = {"ridge": core.solve_ridge, "lasso": core.solve_lasso}[self.update]
        streams = [core.LeastSquares(accessor.d) for _ in range(accessor.n_streams)]
        start = 0
        for checkpoint in sorted(set(checkpoints)):
            by_products = checkpoint > accessor.d
            if by_products:
                for stream in streams:
                    stream.drop_rows()
            while start < checkpoint:
                stop = min(start + _BLOCK, checkpoint)
                for members, X, y in accessor.distinct_rows(start, stop):
                    b, gram = y @ X, core.gram_matrix(X) if by_products else None
                    sums = np.append(X.sum(axis=0), y.sum()) if given.centred or given.intercept else None
                    for f in members:
                        streams[f].append(X, y, b, gram, sums)
                start = stop
            solutions: list[np.ndarray] = []
            for stream in streams:
                guess = solutions[-1] if solutions else None
                solutions.append(stream.centred(given.centred, given.intercept).solved(solve, settings["B"], guess))
            W = np.stack(solutions)
            if not (given.centred or given.intercept):
                yield checkpoint, W
                continue
            origins = [stream.origin(given.centred, given.intercept) for stream in streams]
            yield (
                checkpoint,
                WithIntercept(W, np.stack([r - m @ w for (m, r), w in zip(origins, solutions, strict=True)])),
            )

    @property
    def words(self) -> Sequence[str]:
        """What it sees and minimises."""
        return "all attributes, offline solution for each prefix of the examples", _PROBLEMS.get(self.update, "")

    @property
    def oracle(self) -> BallOracle:
        """Certificates that no regressor of the ball has a smaller loss."""
        return BallOracle(*_NORMS[self.update])
