"""POPCA, MBEG and their variants: the listings, the gain of importance sampling, and weights after huge steps."""

import numpy as np
import pytest

from budgetreg.algorithms import gonen_2016
from budgetreg.algorithms.gonen_2016 import MatrixGradientLearner, SecondMomentLearner, moment_estimates, popca
from budgetreg.common import streams
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.revealed import designs
from tests.learners.problems import fit

# POPCA


GUIDED = {"phase_one": 0.3, "mix": 0.2}


def table(m, d, seed=0, seen=0.5):
    rng = np.random.default_rng(seed)
    return Table(rng.normal(size=(m, d)) * (rng.random((m, d)) < seen), np.zeros(m))


def estimate(data, k, update, F=1, checkpoints=None, **options):
    """Return {checkpoint: C (F, d, d)} and the accessor."""
    m = len(data.y)
    checkpoints = checkpoints or [m]
    accessor = Accessor(data, np.tile(np.arange(m), (F, 1)), 1, None, checkpoints)
    learner = SecondMomentLearner(name=update, n_components=1, update=update, **options)
    rngs = [np.random.default_rng([7, f]) for f in range(F)]
    return dict(moment_estimates(learner, accessor, checkpoints, rngs, k)), accessor


@pytest.mark.parametrize("seen", [0.15, 1.0])
@pytest.mark.parametrize("replacement", [False, True])
def test_popca_equals_its_listing(replacement, seen):
    """Over several blocks: ``x^x^'/pi_2 + (1/pi_1 - 1/pi_2) diag(x^x^')``, example by example."""
    m, d, k = 300, 30, 4
    data = table(m, d, seen=seen)
    outputs, accessor = estimate(data, k, "active", checkpoints=[7, m], replacement=replacement)
    rng = np.random.default_rng([7, 0])
    design = designs.with_replacement(d, k) if replacement else designs.uniform_subset(d, k)
    drawn = np.concatenate([design.draw(rng).attributes for _ in range(2)])
    pi_1, pi_2 = k / d, k * (k - 1) / (d * (d - 1))
    if replacement:
        pi_1, pi_2 = 1 - (1 - 1 / d) ** k, 1 - 2 * (1 - 1 / d) ** k + (1 - 2 / d) ** k
    X = data.rows(np.arange(m))
    for checkpoint in (7, m):
        expected = popca(X[:checkpoint], drawn[:checkpoint], pi_1, pi_2)
        np.testing.assert_allclose(outputs[checkpoint][0], expected, atol=1e-10)
        assert (outputs[checkpoint] == outputs[checkpoint].transpose(0, 2, 1)).all()
    assert accessor.bill().total.tolist() == [[m * k]]


def test_zeros_and_full_rows():
    data = table(20, 6)
    X = data.rows(np.arange(20))
    np.testing.assert_allclose(estimate(data, 2, "full")[0][20][0], X.T @ X / 20, atol=1e-12)
    C = estimate(data, 3, "zero_filled")[0][20][0]
    drawn = designs.uniform_subset(6, 3).draw(np.random.default_rng([7, 0])).attributes[:20]
    X = np.where((drawn[:, :, None] == np.arange(6)).any(axis=1), X, 0.0)
    np.testing.assert_allclose(C, X.T @ X / 20, atol=1e-12)


def test_importance_sampling_has_less_error():
    d, m, k = 20, 4000, 3
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, d)) * np.where(np.arange(d) < 4, 1.0, 0.05)
    data, C = Table(X, np.zeros(m)), X.T @ X / m
    errors = {}
    for update, options in (("active", {}), ("importance", GUIDED)):
        outputs, accessor = estimate(data, k, update, 10, **options)
        errors[update] = np.square(outputs[m] - C).sum(axis=(1, 2)).mean()
        assert (accessor.bill().most == k).all()
    assert errors["importance"] < 0.2 * errors["active"]


def test_few_examples_are_enough():
    for m in (1, 2, 3):
        outputs, accessor = estimate(table(m, 5), 2, "importance", checkpoints=[m], **GUIDED)
        assert np.isfinite(outputs[m]).all()
        assert accessor.bill().total.tolist() == [[2 * m]]


# MBEG


BLOCK = 16


@pytest.fixture
def small_blocks(monkeypatch):
    """Make blocks small, so that few examples, for which the listing's logm is fast, fill several of them."""
    for module in (gonen_2016, streams):
        monkeypatch.setattr(module, "BLOCK", BLOCK)


def run(X, streams, eta, checkpoints, *, k, n, update, alpha, output="top"):
    """Run the core along some streams, each with its order and draws."""
    orders = np.stack([np.random.default_rng(f).permutation(len(X)) for f in streams])
    rngs = [np.random.default_rng([9, f]) for f in streams]
    learner = MatrixGradientLearner(name="mbeg", n_components=n, update=update, alpha=alpha, output=output)
    return fit(learner, X, np.zeros(len(X)), orders, k, checkpoints, settings={"eta": eta}, rngs=rngs)


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
def test_mbeg_equals_its_listing(small_blocks, update, alpha, n):
    rng, eta = np.random.default_rng(0), [0.01, 0.5]
    X = rng.normal(size=(24, 5)) * np.linspace(1.5, 0.2, 5) * (rng.random((24, 5)) > 0.4) / np.sqrt(5)
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
            weights, members = gonen_2016.decompose(values, n)
            chosen = U[:, members[np.searchsorted(np.cumsum(weights), choice)]]
            np.testing.assert_allclose(drawn[c][f, g] @ drawn[c][f, g].T, chosen @ chosen.T, atol=1e-7)


def test_huge_steps_keep_eigenvalues_between_0_and_1():
    """And if one dimension is wanted, the sum of all steps has the same eigenvectors, as nothing is ever capped."""
    rng = np.random.default_rng(0)
    for n in (1, 3):
        weights, total = gonen_2016.Weights(3, 6, n, np.zeros(3)), np.zeros((3, 6, 6))
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
