"""MBEG and MBEG+: matrix exponentiated gradient on pairs of attributes, which its weight matrix chooses.

References
----------
A. Gonen, D. Rosenbaum, Y. C. Eldar, S. Shalev-Shwartz. Subspace Learning with Partial Information. JMLR 17, 2016,
Algorithm 2.  MBEG+ is ours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from budgetreg.algorithms.bases import ONE_PASS, SubspaceLearner
from budgetreg.algorithms.learner import STEP_SIZE, Batching, Cost, Missing, RunContext, Theorem
from budgetreg.algorithms.signature import BudgetSplit, Rngs, Settings, SideInformation, Trajectory
from budgetreg.config.options import FRACTION, ONE, ZERO, one_of, option
from budgetreg.draws import BLOCK, blocks
from budgetreg.errors import ConfigError
from budgetreg.metering.accessor import Accessor
from budgetreg.theory import mbeg_bound, mbeg_least_examples, mbeg_step

_UPDATES = {
    "pairs": "matrix exponentiated gradient",
    "singles": "matrix exponentiated gradient, the diagonal estimated from single attributes",
}


@dataclass(frozen=True)
class MatrixGradientLearner(SubspaceLearner):
    """MBEG and MBEG+; the options choose the estimate of the diagonal, the mixing of pairs and the output.

    Attributes
    ----------
    n_components : int
        Dimension n of the subspace, from 1 to d.
    update : {'pairs', 'singles'}
        The estimate of the diagonal: from pairs of an attribute with itself (MBEG), or from every attribute seen
        (MBEG+), see `from_pairs` and `from_singles` in `budgetreg.algorithms.gonen_2016.mbeg_core`.
    alpha : float or 'theory'
        Share of uniform pairs, in [0, 1]; 'theory': ``eta d^2``, at most 1/2.
    output : {'decompose', 'top'}
        How the average of the weight matrices becomes a subspace. 'decompose' writes it as a mixture of projections
        and draws one; 'top' takes its n leading eigenvectors.
    """

    update: str = option("the update", one_of(*_UPDATES), tried=())
    alpha: float | str = option(
        "the share of uniform pairs", one_of("theory") | ZERO | FRACTION | ONE, tried=("theory", 0, 0.3, 1)
    )
    output: str = option("the treatment of the averaged weight matrices", one_of("decompose", "top"))

    core = "mbeg"
    version = 2
    continues = True
    parameters = (STEP_SIZE,)
    tuned = ("eta",)
    batching = Batching.IN_STEP
    k_multiple = 2
    missing = Missing.WEIGHED
    skipped_checks: ClassVar[Mapping[str, str]] = {"minimiser": ONE_PASS}

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Run all settings along all streams, one pass; see `Learner.fit`. The setting is ``eta``.

        W starts at ``(n/d) I``. Each example's ``r/2`` pairs (s, q) are drawn with the probabilities

            p_sq = (1 - alpha) (W_ss + W_qq) / (2 d n) + alpha / d^2;

        a pair of an attribute with itself costs one attribute. C^ is the mean of the pairs' estimates of ``x x'``, and
        W becomes the projection of ``exp(log W + eta C^)`` onto the weight matrices. If all estimates are 0, W does not
        change and nothing is computed. With missing values, each entry of C^ is divided by the share of examples that
        have both attributes. A changed replica costs one eigendecomposition, O(d^3); memory is O(d^2) per replica.
        """
        # imported here because SciPy loads slowly
        from budgetreg.algorithms.gonen_2016.mbeg_core import ESTIMATES, Weights, output_subspace, reveal

        F, G, d, n = accessor.n_streams, accessor.n_settings, accessor.d, self.n_components
        pairs = BLOCK, given.k // 2
        step_size = settings["eta"]
        uniform_share = np.minimum(step_size * d**2, 0.5) if self.alpha == "theory" else np.full(G, float(self.alpha))
        eta, uniform_share = np.tile(step_size, F), np.tile(uniform_share, F)
        estimate = ESTIMATES[self.update]
        state = Weights(F * G, d, n, uniform_share)
        for start, stop in blocks(0, checkpoints[-1]):
            # One more number per example chooses the projection, so that checkpoints do not change later draws.
            draws = [(rng.integers(0, d, pairs), rng.random(pairs), rng.random(BLOCK)) for rng in rngs]
            second, uniforms, choices = (np.stack(part).repeat(G, axis=0) for part in zip(*draws, strict=True))
            accessor.open(start, stop)
            for step in range(start + 1, stop + 1):
                position = step - 1 - start
                s, q = state.draw(uniforms[:, position]), second[:, position]
                x_s, x_q = reveal(accessor, position, s, q)
                nonzero = x_s * x_q != 0 if self.update == "pairs" else (x_s != 0) | (x_q != 0)
                moved = np.flatnonzero(nonzero.any(axis=1))
                if moved.size:
                    w = state.diagonal[moved] / n
                    C = estimate(s[moved], q[moved], x_s[moved], x_q[moved], w, uniform_share[moved])
                    if not accessor.complete:
                        C /= accessor.together((moved // G)[:, None, None], *np.ogrid[:d, :d])
                    state.move(moved, eta[moved, None, None] * C, step)
                if step in checkpoints:
                    averages = zip(state.average(step), choices[:, position], strict=True)
                    V = [
                        output_subspace(W, n, choice if self.output == "decompose" else None) for W, choice in averages
                    ]
                    yield step, np.stack(V).reshape(F, G, d, n)

    def split_budget(self, k: int) -> BudgetSplit | None:
        """Refuse budgets that are not made of pairs.

        Raises
        ------
        ConfigError
            If the budget is 1 or odd.
        """
        super().split_budget(k)
        if k % 2:
            raise ConfigError(f"k={k}: {self.name} sees attributes in pairs and needs an even budget")
        return None

    def cost(self, d: int, k: int, settings: Mapping[str, float]) -> Cost:
        """Return the mean cost: one of d pairs is an attribute with itself, whatever the weights, and costs 1."""
        mean = k - k / (2 * d)
        return Cost(mean, mean)

    def theory(self, run: RunContext, B: float | None) -> Mapping[str, float]:
        """Return the step size of Gonen et al. 2016."""
        return {"eta": mbeg_step(run.k, run.d, run.m)}

    def notes(self, run: RunContext, settings: Mapping[str, Sequence[float]]) -> Sequence[str]:
        """Warn if the theorem does not hold, which needs ``alpha = eta d^2`` and at most 1/2."""
        eta = max(settings["eta"])
        if self.alpha != "theory" or eta * run.d**2 <= 1 / 2:
            return ()
        return (
            f"{self.name} is outside its theory: alpha = eta d^2 would be {eta * run.d**2:.2g} for eta up to "
            f"{eta:.2g}, and is set to 1/2; with theory's eta, it takes {mbeg_least_examples(run.k, run.d):.2g} "
            "examples to be inside",
        )

    @property
    def words(self) -> Sequence[str]:
        """What it sees and how it moves."""
        return "k attributes per example, in pairs", _UPDATES.get(self.update, "")

    @property
    def theorem(self) -> Theorem | None:
        """Theorem 7 of Gonen et al. 2016."""
        if (self.update, self.alpha, self.output) != ("pairs", "theory", "decompose"):
            return None
        n = self.n_components
        return Theorem(
            lambda B, d, m, k: mbeg_bound(n, d, k, m) if m >= mbeg_least_examples(k, d) else np.nan, "2-ball"
        )
