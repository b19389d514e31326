"""MBEG and MBEG+: matrix exponentiated gradient on pairs of attributes, which its weight matrix chooses.

References
----------
A. Gonen, D. Rosenbaum, Y. C. Eldar, S. Shalev-Shwartz. Subspace Learning with Partial Information. JMLR 17, 2016,
Algorithm 2.  MBEG+ is ours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from budgetreg.algorithms.bases import ONE_PASS, SubspaceLearner
from budgetreg.algorithms.learner import STEP_SIZE, Batching, Cost, Missing, RunContext, Theorem
from budgetreg.algorithms.signature import BudgetSplit, Rngs, Settings, SideInformation, Trajectory
from budgetreg.config.options import FRACTION, ONE, ZERO, one_of, option
from budgetreg.draws import BLOCK, blocks
from budgetreg.errors import ConfigError
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.testing.expectations import LearnerUnderTest, Oracle, close, expect, same
from budgetreg.testing.scripted_rng import Scripted, distribution, outcomes
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

    @property
    def oracle(self) -> Oracle:
        """The distribution of pairs and of what they estimate."""
        return PairsOracle(self)


_X = np.array([0.7, -1.1, 0.4, 0.2])
D = len(_X)
_X_1 = np.array([0.5, 0.9, 1.2, -0.8])
"""The first example, which moves the weight matrix."""
_ALPHA, _W = 0.3, np.array([0.4, 0.3, 0.2, 0.1])
"""Share of uniform pairs, and the diagonal of a weight matrix over n, for estimates of one example."""


@dataclass(frozen=True)
class PairsOracle(Oracle):
    """Enumerates the pairs of one example, and those that follow a step."""

    learner: MatrixGradientLearner

    def unbiased(self, subject: LearnerUnderTest) -> None:
        """Compare the mean of the estimate with ``x x'``."""
        for k in (2, D):
            C, probability = self._estimates(k)
            close("C", np.tensordot(probability, C, axes=1), np.outer(_X, _X))

    def second_moments(self, subject: LearnerUnderTest) -> None:
        """Compare ``E |C^|^2`` with its formula, and the pairs that are drawn after a step with their probabilities."""
        for k in (2, D):
            C, probability = self._estimates(k)
            square = float(probability @ np.square(C).sum(axis=(1, 2)))
            close(f"C's square at k={k}", square, self._square(k))
        self._compare_pairs(subject, 0.02)

    def full_information(self, subject: LearnerUnderTest) -> None:
        """Compare the mean with ``x x'`` also at k = d: draws may repeat attributes."""
        self.unbiased(subject)

    def boundary(self, subject: LearnerUnderTest) -> None:
        """Compare the pairs that are drawn after a step that is so long that eigenvalues of W are capped at 1.

        ``C^`` is unbiased; W is the projection of ``exp(log W + eta C^)`` in relative entropy, exactly: its
        eigenvectors stay, and its eigenvalues u become ``min(1, c u)``, of sum n. The mean of W is that of the
        projections.
        """
        self._compare_pairs(subject, 3.0)

    def _estimates(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the estimates from one example for all outcomes, at a weight matrix with the diagonal ``n _W``."""
        from budgetreg.algorithms.gonen_2016 import mbeg_core  # imported here because SciPy loads slowly

        state = mbeg_core.Weights(1, D, 1, np.array([_ALPHA]))
        state.move(np.array([0]), (np.diag(np.log(_W)) + np.log(D))[None] * np.eye(D), 1)
        pairs = k // 2

        def drawn(scripts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return state.draw(scripts[:, :pairs]), np.floor(D * scripts[:, pairs:]).astype(int)

        scripts, probability = outcomes([0] * pairs + [D] * pairs, lambda scripts: np.hstack(drawn(scripts)), {})
        s, q = drawn(scripts)
        N = len(scripts)
        w, alpha = np.tile(state.diagonal, (N, 1)), np.full(N, _ALPHA)
        return mbeg_core.ESTIMATES[self.learner.update](s, q, _X[s], _X[q], w, alpha), probability

    def _square(self, k: int) -> float:
        """Return ``E |C^|^2`` of the mean of ``k/2`` independent pairs' estimates.

        One pair's, with the probabilities p and their row sums a: ``sum_{s!=q} (x_s x_q)^2 / (2 p_sq)``, and on the
        diagonal ``sum_s x_s^4 / p_ss``; from single attributes, ``sum_s (a_s + p_ss) x_s^4 / (2 a_s^2)``.
        """
        p = (1 - _ALPHA) * (_W[:, None] + _W) / (2 * D) + _ALPHA / D**2
        p_ss, a = np.diagonal(p), p.sum(axis=1)
        products = np.square(np.outer(_X, _X)) / (2 * p)
        diagonal = _X**4 / p_ss if self.learner.update == "pairs" else (a + p_ss) * _X**4 / (2 * a**2)
        single = products.sum() - np.trace(products) + diagonal.sum()
        pairs, mean = k // 2, float(_X @ _X) ** 2
        return float(single / pairs + (1 - 1 / pairs) * mean)

    def _compare_pairs(self, subject: LearnerUnderTest, eta: float) -> None:
        """Compare the pairs of a second example with their probabilities after the step of the first."""

        def shown(rngs: list[Any]) -> np.ndarray:
            F = len(rngs)
            table = Table(np.tile([_X_1, _X], (F, 1)), np.zeros(2 * F))
            _, reveals = subject.run(table, np.arange(2 * F).reshape(F, 2), rngs, 2, {"eta": [eta]})
            # An attribute that is seen alone is a pair with itself.
            return np.array([(seen[0], seen[-1]) for seen in reveals.of(np.arange(2 * F))]).reshape(F, 2, 2)

        rows = [1] * 3  # the second example, in the three calls for it
        first = shown([Scripted(rows)])[0, 0]
        alpha = min(eta * D**2, 0.5) if self.learner.alpha == "theory" else float(self.learner.alpha)
        w = np.diagonal(self._weights(eta, *first)) / self.learner.n_components
        p = (1 - alpha) * (w[:, None] + w) / (2 * D) + alpha / D**2
        second, probability = distribution(rows, lambda rngs: shown(rngs)[:, 1])
        pairs = np.zeros((D, D))
        np.add.at(pairs, tuple(second.T), probability)
        same("the probability of a pair after a step", pairs + pairs.T, 2 * p)

    def _weights(self, eta: float, s: int, q: int) -> np.ndarray:
        """Return W after the first step, from the attributes s and q; all pairs have ``p_sq = 1/d^2`` there."""
        expect(s != q, "the first pair has to have different attributes")
        n, C = self.learner.n_components, np.zeros((D, D))
        C[s, q] = C[q, s] = _X_1[s] * _X_1[q] * D**2 / 2
        if self.learner.update == "singles":
            C[s, s], C[q, q] = _X_1[s] ** 2 * D / 2, _X_1[q] ** 2 * D / 2
        theta, V = np.linalg.eigh(np.log(n / D) * np.eye(D) + eta * C)
        low, high = -theta.max() - np.log(D), -theta.min()  # of log c
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if np.exp(np.minimum(theta + middle, 0)).sum() < n else (low, middle)
        return np.asarray((V * np.exp(np.minimum(theta + high, 0))) @ V.T)
