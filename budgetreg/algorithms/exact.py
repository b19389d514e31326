"""Online ridge and online lasso: all attributes are seen, and steps use the exact gradient ``g = (<w, x> - y) x``.

Hazan & Koren 2012 and Kukliansky & Shamir 2015 compare their learners with them. The G settings of a stream take each
step together, as arrays (G, d) that fit the processor's cache. The F streams take turns at each example, so that no
stream changes another's result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from budgetreg.algorithms import bases
from budgetreg.algorithms.averages import Averager
from budgetreg.algorithms.learner import RADIUS, STEP_SIZE, Learner, Observation, RunContext, Theorem
from budgetreg.algorithms.signature import Rngs, Settings, SideInformation, Trajectory
from budgetreg.algorithms.vectors import inner_products, project_l2
from budgetreg.metering.accessor import Accessor
from budgetreg.theory import eg_step, ogd_step


@dataclass(frozen=True)
class ExactGradientLearner(Learner):
    """Online ridge and online lasso.

    Attributes
    ----------
    update : {'ogd', 'eg'}
        'ogd' is online ridge, gradient descent on the 2-ball; 'eg' is online lasso, exponentiated gradient on the
        1-ball.
    average : {'all', 'suffix', 'last'}
        Which iterates the output averages.
    """

    update: str = bases.update_option("ogd", "eg")
    average: str = bases.average_option()

    core = "exact"
    continues = True
    observation = Observation.ALL
    parameters = (RADIUS, STEP_SIZE)
    tuned = ("B", "eta")
    skipped_checks: ClassVar[Mapping[str, str]] = {**bases.ON_FULL_ROWS, "minimiser": bases.ONE_PASS}

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Run online ridge or online lasso along all streams.

        These are the updates of AERR and AELR from ``w_1 = 0``, with the exact gradient; see `Learner.fit`. Settings
        are ``B`` and ``eta``.
        """
        d, step = accessor.d, _STEPS[self.update]
        w, total, theta = np.zeros((3, accessor.n_streams, accessor.n_settings, d))
        averager = Averager(checkpoints, self.average)
        marks = set(averager.marks)
        last = max(checkpoints)
        block = max(1, _BLOCK_VALUES // d)
        for start in range(0, last, block):
            X, y = accessor.rows(start, min(start + block, last))
            for position in range(X.shape[1]):
                total += w
                t = start + position + 1
                output = averager.observe(t, total.copy, w.copy) if t in marks else None
                if output is not None:
                    yield output[0], np.ascontiguousarray(output[1].swapaxes(1, 2))
                for f in range(accessor.n_streams):
                    w[f] = step(w[f], theta[f], X[f, position], y[f, position], settings["B"], settings["eta"])

    def theory(self, run: RunContext, B: float | None) -> Mapping[str, float]:
        """Return the step size of Hazan & Koren 2012 for exact gradients."""
        assert B is not None
        return {"eta": eg_step(B, run.d, run.m, None) if self.update == "eg" else ogd_step(run.d, run.m, None)}

    @property
    def words(self) -> Sequence[str]:
        """What it sees and how it moves."""
        return "all attributes, one pass", bases.UPDATES.get(self.update, "")

    @property
    def theorem(self) -> Theorem | None:
        """The regret bounds, of the average of all iterates."""
        return bases.gradient_theorem(self.update, None) if self.average == "all" else None


_BLOCK_VALUES = 2**18
"""Attribute values of one stream in a block."""


def _ogd(w: np.ndarray, theta: np.ndarray, x: np.ndarray, y: float, B: np.ndarray, eta: np.ndarray) -> np.ndarray:
    """Return the regressors (G, d) after a step on the 2-ball: ``w <- v B / max(|v|_2, B)``, ``v = w - eta g``."""
    residual = inner_products(w, x) - y
    return project_l2(w - (eta * residual)[:, None] * x, B)


def _eg(w: np.ndarray, theta: np.ndarray, x: np.ndarray, y: float, B: np.ndarray, eta: np.ndarray) -> np.ndarray:
    """Return the regressors (G, d) after a step on the 1-ball, and change their exponents theta (G, d).

    ``theta -= eta clip(g, 1/eta)``; ``w = B sinh(theta) / sum(cosh(theta))``, numerator and denominator multiplied by
    ``2 exp(-max |theta|)`` against overflow.
    """
    residual = inner_products(w, x) - y
    theta -= np.clip((eta * residual)[:, None] * x, -1, 1)
    M = np.abs(theta).max(axis=1, keepdims=True)
    up, down = np.exp(theta - M), np.exp(-M - theta)
    return np.asarray((up - down) * (B / (up + down).sum(axis=1))[:, None])


_STEPS = {"ogd": _ogd, "eg": _eg}
