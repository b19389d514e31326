"""MBEG and MBEG+: the listing, and weight matrices after steps of any size."""

import numpy as np
import pytest

from budgetreg import streams
from budgetreg.algorithms.gonen_2016 import mbeg
from budgetreg.algorithms.gonen_2016.mbeg import MatrixGradientLearner, decompose
from budgetreg.algorithms.learner import SideInformation
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table

BLOCK = 16


@pytest.fixture
def small_blocks(monkeypatch):
    """Make blocks small, so that few examples, for which the listing's logm is fast, fill several of them."""
    for module in (mbeg, streams):
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


def listing(X, rng, *, k, n, update, alpha, eta):
    """Yield the average W, the choice and the attributes paid for, by the paper's Algorithm 2."""
    m, d = X.shape
    blocks = [(rng.integers(0, d, (BLOCK, k // 2)), rng.random((BLOCK, k // 2)), rng.random(BLOCK)) for _ in range(m)]
    second, uniforms, choices = (np.concatenate(part)[:m] for part in zip(*blocks, strict=True))
    alpha = min(eta * d**2, 0.5) if alpha == "theory" else alpha
    total = np.zeros((d, d))
    for t, (W, seen) in enumerate(mbeg.mbeg(X, uniforms, second, n, alpha, eta, update)):
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


def test_huge_steps_keep_eigenvalues_between_0_and_1():
    """And if one dimension is wanted, the sum of all steps has the same eigenvectors, as nothing is ever capped."""
    rng = np.random.default_rng(0)
    for n in (1, 3):
        weights, total = mbeg.Weights(3, 6, n, np.zeros(3)), np.zeros((3, 6, 6))
        for step in range(1, 40):
            change = rng.normal(size=(3, 6, 6)) * np.array([1e-3, 1.0, 100.0])[:, None, None]
            change = change + change.swapaxes(1, 2)
            weights.move(np.arange(3), change, step)
            total += change
        for W, C in zip(weights.W, total, strict=True):
            values, V = np.linalg.eigh(W)
            assert values.min() >= -1e-12 and values.max() <= 1 + 1e-12
            assert values.sum() == pytest.approx(n, abs=1e-11)
            if n == 1:
                assert abs(V[:, -1] @ np.linalg.eigh(C)[1][:, -1]) == pytest.approx(1, abs=1e-9)
