"""Oja, GROUSE and PETRELS: streaming PCA, whose subspace moves with every example.

A uniform subset S of r attributes is seen of each example. Notation: the papers' rank k is n here (``n_components``); V
is the subspace as columns (d, n), and V_S are its rows at S. All F x G replicas take each step together; a replica's
result does not depend on the others. The references stand with the updates, `budgetreg.algorithms.streaming_subspaces`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from budgetreg.algorithms.bases import ONE_PASS, UNBOUNDED, SubspaceLearner
from budgetreg.algorithms.learner import STEP_SIZE, Batching, Parameter
from budgetreg.algorithms.signature import BudgetSplit, Rngs, Settings, SideInformation, Trajectory
from budgetreg.algorithms.streaming_subspaces import Grouse, Oja, Petrels
from budgetreg.config.options import one_of, option
from budgetreg.draws import blocks, subset
from budgetreg.errors import ConfigError
from budgetreg.metering.accessor import Accessor

_UPDATES = {
    "oja": "Oja's rule with an unbiased estimate of the second moment",
    "grouse": "GROUSE, gradient steps on the Grassmannian",
    "petrels": "PETRELS, recursive least squares for each attribute",
}
_FITTED = "the subspace is fitted to what is seen of each example, without an estimate of x x'"
_DIVIDED = "the estimate is popca's, and the step that follows it is divided by the size of all steps before"
_FORGETTING = "the factor by which an example's weight falls with each one that follows"


@dataclass(frozen=True)
class StreamingLearner(SubspaceLearner):
    """Oja, GROUSE and PETRELS: how the subspace moves."""

    update: str = option("the update", one_of(*_UPDATES), tried=())

    core = "streaming"
    continues = True
    parameters = (
        replace(STEP_SIZE, absolute=True),
        Parameter("forgetting", _FORGETTING, absolute=True, tried=(0.9, 0.99), unlimited=False),
    )
    batching = Batching.IN_STEP

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Run all settings along all streams, each from a uniformly random subspace; see `Learner.fit`.

        Memory is O(d n) per replica, and O(d n^2) for PETRELS.
        """
        F, G, d = accessor.n_streams, accessor.n_settings, accessor.d
        initial = np.stack([np.linalg.qr(rng.normal(size=(d, self.n_components)))[0] for rng in rngs])
        state = UPDATES[self.update](np.repeat(initial[:, None], G, axis=1), given.k, settings)
        first_row = d * np.arange(F * G).reshape(F, G, 1)
        for start, stop in blocks(0, checkpoints[-1]):
            attributes = np.stack([subset(rng, d, given.k) for rng in rngs])[:, : stop - start]
            accessor.open(start, stop)
            x = accessor.reveal_block(attributes)
            for position in range(stop - start):
                state.step(first_row + attributes[:, None, position], x[:, None, position, :, None])
                if start + position + 1 in checkpoints:
                    yield start + position + 1, state.subspace()

    def split_budget(self, k: int) -> BudgetSplit | None:
        """Refuse a budget of 1, and of no more attributes than weights that are fitted to them.

        Raises
        ------
        ConfigError
            If the budget is too small.
        """
        super().split_budget(k)
        n = self.n_components
        if self.update != "oja" and k <= n:
            raise ConfigError(
                f"k={k}: {self.name} fits {n} weights to the attributes of each example, and needs a budget above "
                f"algo.n_components={n}"
            )
        return None

    @property
    def tuned(self) -> Sequence[str]:
        """The step size, or for PETRELS how fast it forgets."""
        return ("forgetting",) if self.update == "petrels" else ("eta",)

    @property
    def words(self) -> Sequence[str]:
        """What it sees and how it moves."""
        return "k attributes per example", _UPDATES.get(self.update, "")

    @property
    def skipped_checks(self) -> Mapping[str, str]:
        """No estimate without bias, and no minimum."""
        reason = _DIVIDED if self.update == "oja" else _FITTED
        estimates = dict.fromkeys(("unbiased", "second moments", "full at k=d"), reason)
        return {**estimates, "boundary": UNBOUNDED, "minimiser": ONE_PASS}


UPDATES: Mapping[str, type[Oja] | type[Grouse] | type[Petrels]] = {"oja": Oja, "grouse": Grouse, "petrels": Petrels}
