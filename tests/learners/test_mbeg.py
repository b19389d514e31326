"""MBEG and MBEG+: estimates by enumeration, the listing, independence of replicas, the budget."""

from itertools import product

import numpy as np
import pytest

from budgetreg.algorithms import gonen_2016
from budgetreg.algorithms.gonen_2016 import PAIR_ESTIMATES, MatrixGradientLearner, decompose
from budgetreg.algorithms.learner import SideInformation
from budgetreg.common import streams
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table

BLOCK = 16
ALPHAS = np.array([0.0, 0.3, 1.0])


@pytest.fixture
def small_blocks(monkeypatch):
    """Make blocks small, so that few examples, for which the listing's logm is fast, fill several of them."""
    for module in (gonen_2016, streams):
        monkeypatch.setattr(module, "BLOCK", BLOCK)


def examples(m, d, seed=0, sparse=0.4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) @ np.diag(np.linspace(1.5, 0.2, d)) * (rng.random((m, d)) > sparse)
    return X / np.sqrt(d)


def run(X, streams=(0,), eta=(0.05,), checkpoints=None, *, k=4, n=2, update="pairs", alpha=0.2, output="top"):
    """Run the core along some streams, each with its order and draws."""
    checkpoints = checkpoints or [len(X)]
    orders = np.stack([np.random.default_rng(f).permutation(len(X)) for f in streams])
    accessor = Accessor(Table(X, np.zeros(len(X))), orders, len(eta), k, checkpoints)
    rngs = [np.random.default_rng([9, f]) for f in streams]
    learner = MatrixGradientLearner(name="mbeg", n_components=n, update=update, alpha=alpha, output=output)
    return dict(learner.fit(accessor, {"eta": np.array(eta)}, checkpoints, rngs, SideInformation(k))), accessor


def probabilities(w, alpha):
    """``p_sq`` of Equation 7, from ``w_i = W_ii / n``."""
    d = len(w)
    return (1 - alpha) * (w[:, None] + w) / (2 * d) + alpha / d**2


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("update", ["pairs", "singles"])
def test_estimates_have_the_mean_and_the_variance_of_the_formulas(update, alpha):
    x, w = np.array([0.7, -1.3, 0.4]), np.array([0.6, 0.1, 0.3])
    p = probabilities(w, alpha)
    estimate = PAIR_ESTIMATES[update]

    def mean_estimate(pairs):
        s, q = np.array(pairs).T[:, None]
        return estimate(s, q, x[s], x[q], w[None], np.array([alpha]))[0]

    pairs = list(product(range(3), repeat=2))
    mean = sum(p[pair] * mean_estimate([pair]) for pair in pairs)
    np.testing.assert_allclose(mean, np.outer(x, x), atol=1e-14)
    mean_of_two = sum(p[first] * p[second] * mean_estimate([first, second]) for first in pairs for second in pairs)
    np.testing.assert_allclose(mean_of_two, np.outer(x, x), atol=1e-14)

    off_diagonal = (np.outer(x, x) ** 2 / (2 * p))[~np.eye(3, dtype=bool)].sum()
    a, p_ss = p.sum(axis=1), np.diag(p)
    diagonal = x**4 / p_ss if update == "pairs" else x**4 * (a + p_ss) / (2 * a**2)
    second = sum(p[pair] * np.square(mean_estimate([pair])).sum() for pair in pairs)
    assert second == pytest.approx(off_diagonal + diagonal.sum(), rel=1e-12)


def test_pairs_are_drawn_with_the_probabilities_in_the_estimates():
    weights = gonen_2016.Weights(3, 4, 2, ALPHAS)
    weights.move(np.arange(3), np.diag([1.0, -1.0, 0.5, 0.0]) + np.full((3, 4, 4), 0.3), 1)
    N = 40_000
    drawn = weights.draw(np.tile((np.arange(N) + 0.5) / N, (3, 1)))
    for i in range(3):
        first = np.bincount(drawn[i], minlength=4) / N
        pair = np.outer(first, np.full(4, 0.25))
        # Estimates are symmetric in the attributes of a pair.
        np.testing.assert_allclose((pair + pair.T) / 2, probabilities(weights.diagonal[i] / 2, ALPHAS[i]), atol=2 / N)


def listing(X, rng, *, k, n, update, alpha, eta):
    """Yield the average W, the choice and the attributes paid for, by the paper's Algorithm 2."""
    m, d = X.shape
    blocks = [(rng.integers(0, d, (BLOCK, k // 2)), rng.random((BLOCK, k // 2)), rng.random(BLOCK)) for _ in range(m)]
    second, uniforms, choices = (np.concatenate(part)[:m] for part in zip(*blocks, strict=True))
    alpha = min(eta * d**2, 0.5) if alpha == "theory" else alpha
    total = np.zeros((d, d))
    for t, (W, seen) in enumerate(gonen_2016.mbeg(X, uniforms, second, n, alpha, eta, update)):
        total += W
        yield total / (t + 1), choices[t], len(seen)


@pytest.mark.parametrize(
    ("update", "alpha", "n"), [("pairs", "theory", 1), ("pairs", 0.1, 2), ("singles", 0.3, 2), ("singles", "theory", 1)]
)
def test_core_equals_listing(small_blocks, update, alpha, n):
    X, eta = examples(24, 5), [0.01, 0.5]
    checkpoints = [1, 12, 16, 24]
    options = {"k": 4, "n": n, "update": update, "alpha": alpha}
    top, accessor = run(X, [0, 1], eta, checkpoints, **options)
    drawn, _ = run(X, [0, 1], eta, checkpoints, output="decompose", **options)
    bill = accessor.bill()
    for f, g in ((0, 1), (1, 0)):
        order, rng = np.random.default_rng(f).permutation(len(X)), np.random.default_rng([9, f])
        steps = list(listing(X[order], rng, eta=eta[g], **options))
        assert bill.total[f, g] == sum(paid for _, _, paid in steps)
        for c in checkpoints[1:]:  # at the first, all directions are equal
            W, choice, _ = steps[c - 1]
            values, U = np.linalg.eigh(W)
            np.testing.assert_allclose(top[c][f, g] @ top[c][f, g].T, U[:, -n:] @ U[:, -n:].T, atol=1e-7)
            weights, members = decompose(values, n)
            chosen = U[:, members[np.searchsorted(np.cumsum(weights), choice)]]
            np.testing.assert_allclose(drawn[c][f, g] @ drawn[c][f, g].T, chosen @ chosen.T, atol=1e-7)


class Recorded(gonen_2016.Weights):
    """Weights that record the sum of their changes."""

    last: "Recorded"

    def __init__(self, R, d, n, alpha):
        super().__init__(R, d, n, alpha)
        Recorded.last, self.changes = self, np.zeros((R, d, d))

    def move(self, rows, change, step):
        super().move(rows, change, step)
        self.changes[rows] += change


@pytest.mark.parametrize("update", ["pairs", "singles"])
def test_one_component_is_the_top_eigenvector_of_the_mean_estimate(monkeypatch, update):
    monkeypatch.setattr(gonen_2016, "Weights", Recorded)
    run(examples(80, 6), [0, 1], [0.01, 0.3], n=1, update=update)
    for W, C in zip(Recorded.last.W, Recorded.last.changes, strict=True):
        top, expected = np.linalg.eigh(W)[1][:, -1], np.linalg.eigh(C)[1][:, -1]
        assert abs(top @ expected) == pytest.approx(1, abs=1e-9)
        assert np.trace(W) == pytest.approx(1, abs=1e-12)


def test_huge_steps_keep_eigenvalues_between_0_and_1(monkeypatch):
    monkeypatch.setattr(gonen_2016, "Weights", Recorded)
    outputs, _ = run(examples(80, 6), eta=[1e-3, 1.0, 100.0], n=3, output="decompose")
    for W in Recorded.last.W:
        values = np.linalg.eigvalsh(W)
        assert values.min() >= -1e-12
        assert values.max() <= 1 + 1e-12
        assert values.sum() == pytest.approx(3, abs=1e-11)
    V = outputs[80][0]
    np.testing.assert_allclose(V.transpose(0, 2, 1) @ V, np.tile(np.eye(3), (3, 1, 1)), atol=1e-12)
