"""Full rows: online learners against their listings, and certificates of the offline ones on degenerate data."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog
from sklearn.datasets import load_digits

from budgetreg.algorithms import full_rows
from budgetreg.algorithms.full_rows import ExactGradientLearner, OfflineLearner
from budgetreg.algorithms.least_squares import lasso, lasso_path
from budgetreg.algorithms.vectors import Averager
from budgetreg.protocol.split import folds
from tests.learners.problems import averaged, fit
from tests.tiers import slow_but

# Online ridge and online lasso, one replica and one example at a time


AVERAGES = ("all", "suffix", "last")


def streams(F, m, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(F, m, d)) * (rng.random((F, m, d)) < 0.6)
    return X, rng.choice([-1.0, 1.0], size=(F, m))


def grid(*pairs):
    B, eta = np.array(pairs).T
    return {"B": B.copy(), "eta": eta.copy()}


def online(X, y, settings, checkpoints, update, average):
    F, m, d = X.shape
    learner, orders = ExactGradientLearner(name="online", update=update, average=average), np.arange(F * m)
    rows = X.reshape(-1, d), y.ravel(), orders.reshape(F, m)
    outputs, accessor = fit(learner, *rows, d, checkpoints, settings=settings)
    assert (accessor.bill().total == d * checkpoints[-1]).all()  # no row is read after the last checkpoint
    return outputs


def ogd_iterates(X, y, B, eta):
    w = np.zeros(X.shape[1])
    for x, target in zip(X, y, strict=True):
        yield w
        v = w - eta * (w @ x - target) * x
        w = v * B / max(np.linalg.norm(v), B)


def eg_iterates(X, y, B, eta):
    z_plus, z_minus = np.ones(X.shape[1]), np.ones(X.shape[1])
    for x, target in zip(X, y, strict=True):
        w = B * (z_plus - z_minus) / (z_plus.sum() + z_minus.sum())
        yield w
        g = (w @ x - target) * x
        clipped = np.maximum(np.minimum(g, 1 / eta), -1 / eta)
        z_plus, z_minus = z_plus * np.exp(-eta * clipped), z_minus * np.exp(eta * clipped)


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize(("update", "listing"), [("ogd", ogd_iterates), ("eg", eg_iterates)])
def test_core_equals_listing(update, listing, average):
    X, y = streams(F=2, m=41, d=9)
    settings = grid((0.5, 0.1), (2.0, 0.4), (3.0, 5.0))  # the last takes projections and clips
    checkpoints = (1, 2, 7, 14, 30)
    W = online(X, y, settings, checkpoints, update, average)
    assert tuple(W) == checkpoints
    for checkpoint, f, g in [(c, f, g) for c in checkpoints for f in range(2) for g in range(3)]:
        iterates = listing(X[f, :checkpoint], y[f, :checkpoint], settings["B"][g], settings["eta"][g])
        expected = averaged(np.array(list(iterates)), average)
        np.testing.assert_allclose(W[checkpoint][f, :, g], expected, rtol=1e-12, atol=1e-12)


def test_eg_does_not_overflow_where_the_listing_does():
    X, y = np.ones((1, 3000, 2)), np.full((1, 3000), 5.0)
    X[:, :, 1] = 0
    with np.errstate(over="raise", invalid="raise"):
        w = online(X, y, grid((1.0, 1.0)), (3000,), "eg", "last")[3000][0, :, 0]
    np.testing.assert_allclose(w, [1, 0], atol=1e-15)


@given(
    checkpoints=st.lists(st.integers(1, 30), min_size=1, max_size=6),
    average=st.sampled_from(AVERAGES),
    seed=st.integers(0, 99),
)
def test_averager_agrees_with_the_definition(checkpoints, average, seed):
    w = np.random.default_rng(seed).normal(size=(30, 2))
    total, iterate = np.zeros(2), np.zeros(2)  # buffers that are overwritten at every mark
    averager = Averager(checkpoints, average)
    assert set(checkpoints) <= set(averager.marks)
    averages = {}
    for mark in averager.marks:
        total[:], iterate[:] = w[:mark].sum(axis=0), w[mark - 1]
        result = averager.observe(mark, lambda: total, lambda: iterate)
        if result is not None:
            averages[result[0]] = result[1]
    assert list(averages) == sorted(set(checkpoints))
    for checkpoint, value in averages.items():
        np.testing.assert_allclose(value, averaged(w[:checkpoint], average), rtol=1e-12, atol=1e-12)


# Offline ridge and lasso


RADII = np.array([0.01, 0.3, 1.0, 3.0, 8.0, 30.0])
PROBLEMS = {"ridge": 2, "lasso": 1}
problems = pytest.mark.parametrize("problem", PROBLEMS)


def minimised(problem, X, y, orders, radii, checkpoints=None):
    learner = OfflineLearner(name="test", update=problem)
    return fit(learner, X, y, orders, X.shape[1], checkpoints, settings={"B": radii})


def solve(problem, X, y, radii=RADII):
    outputs, _ = minimised(problem, X, y, np.arange(len(X))[None], radii)
    return outputs[len(X)][0]


def assert_optimal(problem, X, y, W, radii=RADII, gap=1e-8):
    """Check ``loss(w) - min loss <= gap * loss(0)``; convexity bounds it by the largest ``<g, w - z>``."""
    order = PROBLEMS[problem]
    for w, B in zip(W.T, radii, strict=True):
        norm = np.linalg.norm(w, order)
        assert norm <= B * (1 + 1e-9)
        g = X.T @ (X @ w - y)
        # Strictly inside the ball the gradient is 0, and a huge B must not magnify its rounding.
        reach = B if norm > B * (1 - 1e-9) else max(norm, 1)
        assert reach * np.linalg.norm(g, 2 if order == 2 else np.inf) + g @ w <= gap * (y @ y)


def digits(n, seed):
    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(seed).permutation(np.flatnonzero((y == 3) | (y == 5)))[:n]
    return X[rows], np.where(y[rows] == 3, -1.0, 1.0)


@problems
@pytest.mark.parametrize("n", slow_but([1, 60, 200], [1, 3, 20, 40, 60, 200]))
@pytest.mark.parametrize("scale", [1, 1 / 16])
@pytest.mark.parametrize("centred", [False, True])
def test_minimisers_of_digits_have_certificates(problem, n, scale, centred):
    X, y = digits(n, seed=n)
    X = (X - X.mean(axis=0)) * scale if centred else X * scale
    assert_optimal(problem, X, y, solve(problem, X, y))


@problems
@given(data=st.data(), n=st.integers(1, 8), d=st.integers(1, 8), low=st.integers(-2, 0))
def test_minimisers_of_degenerate_columns_have_certificates(problem, data, n, d, low):
    X = data.draw(arrays(float, (n, d), elements=st.integers(low, 2).map(float)))
    y = data.draw(arrays(float, n, elements=st.integers(-1, 1).map(float)))
    X = np.column_stack([X, X[:, :2], -X[:, :1], X[:, 0] + X[:, -1], np.zeros(n)])
    assert_optimal(problem, X, y, solve(problem, X, y))


@pytest.mark.parametrize("noise", [1e-12, 1e-8, 1e-6, 1e-5, 1e-3])
@pytest.mark.parametrize("seed", range(2))
def test_lasso_with_nearly_collinear_columns_stays_feasible_and_close(noise, seed):
    X, y = digits(50, seed)
    X = X / 16
    rng = np.random.default_rng(seed)
    X = np.hstack([X, X @ rng.normal(size=(64, 64)) + noise * rng.normal(size=X.shape)])
    assert_optimal("lasso", X, y, solve("lasso", X, y), gap=1e-3)


@pytest.mark.parametrize("n", [4, 40])
def test_ridge_of_a_large_ball_is_the_least_norm_solution(n):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 6)) @ rng.normal(size=(6, 15))
    y = rng.normal(size=n)
    expected = np.linalg.pinv(X, rcond=1e-10) @ y
    np.testing.assert_allclose(solve("ridge", X, y, np.array([1e6]))[:, 0], expected, rtol=1e-7, atol=1e-10)


def test_ridge_of_a_small_ball_does_not_depend_on_a_large_one():
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(40, 5)) @ rng.normal(size=(5, 12)), rng.normal(size=40)
    radii = np.array([1e-3, 0.02, 1e6])
    W = solve("ridge", X, y, radii)
    assert_optimal("ridge", X, y, W, radii)
    np.testing.assert_array_equal(solve("ridge", X, y, radii[:2]), W[:, :2])


def test_ridge_reaches_the_sphere_for_ill_conditioned_data():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(25, 25)) * np.logspace(0, -9, 25)
    y = rng.normal(size=25)
    radii = np.logspace(-3, 6, 19)
    W = solve("ridge", X, y, radii)
    np.testing.assert_allclose(np.linalg.norm(W, axis=0), radii, rtol=1e-13)
    assert_optimal("ridge", X, y, W, radii)


@given(exponent=st.integers(0, 97), seed=st.integers(0, 99), n=st.integers(1, 12), d=st.integers(1, 12))
def test_units_do_not_change_ridge(exponent, seed, n, d):
    """Targets and radii times 2^e are the same problem; with fixed radii lambda becomes huge."""
    rng, unit = np.random.default_rng(seed), 2.0**exponent
    X, y = rng.normal(size=(n, d)), rng.normal(size=n)
    np.testing.assert_array_equal(solve("ridge", X, unit * y, unit * RADII), unit * solve("ridge", X, y))
    W = solve("ridge", X, unit * y)
    b = X.T @ y
    if unit * np.linalg.norm(b) > 1e8 * RADII[-1] * np.linalg.norm(X) ** 2:  # X'X w is negligible beside X'y
        np.testing.assert_allclose(W, RADII * (b / np.linalg.norm(b))[:, None], rtol=1e-6, atol=1e-6 * RADII[0])


@pytest.mark.parametrize("radii", [RADII, [20.0], [4.0, 0.1, 9.0]])
def test_lasso_by_radii_equals_the_path(radii):
    X, y = digits(300, 7)
    gram, b, radii = X.T @ X / 256, y @ X / 16, np.array(radii)
    expected = lasso_path(gram.__getitem__, gram.diagonal(), b, radii)
    np.testing.assert_allclose(lasso(gram, b, radii), expected, rtol=1e-7, atol=1e-9)


def test_lasso_does_not_depend_on_the_guess():
    X, y = digits(300, 7)
    gram, b, radii = X.T @ X / 256, y @ X / 16, np.array([0.3, 2.0, 4.0, 20.0])
    W = lasso(gram, b, radii)
    others = lasso(X[:250].T @ X[:250] / 256, y[:250] @ X[:250] / 16, radii)
    everything = np.random.default_rng(2).normal(size=W.shape)  # more than the rank
    for guess in (W, -W, others, np.zeros_like(W), everything):
        np.testing.assert_array_equal(lasso(gram, b, radii, guess), W)


def test_lasso_of_a_large_ball_has_the_least_1_norm():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(6, 14)), rng.normal(size=6)
    w = solve("lasso", X, y, np.array([1e6]))[:, 0]
    np.testing.assert_allclose(X @ w, y, atol=1e-9)
    smallest = linprog(np.ones(28), A_eq=np.hstack([X, -X]), b_eq=y).fun
    assert np.abs(w).sum() == pytest.approx(smallest, rel=1e-9)


@problems
@pytest.mark.parametrize("X", [np.zeros((3, 4)), np.array([[1.0, 1.0], [1.0, 1.0]])])
def test_zero_data_give_the_zero_regressor(problem, X):
    y = np.array([1.0, -1.0, 0.0])[: len(X)]
    np.testing.assert_allclose(solve(problem, X, y), 0, atol=1e-15)


@problems
def test_checkpoints_use_the_examples_before_them(problem, monkeypatch):
    monkeypatch.setattr(full_rows, "_BLOCK", 7)
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(2, 50, 12)), rng.normal(size=(2, 50))
    checkpoints, orders = [3, 12, 13, 40], np.arange(100).reshape(2, 50)  # more examples than attributes later on
    minimisers, accessor = minimised(problem, X.reshape(100, 12), y.ravel(), orders, RADII, checkpoints)
    assert list(minimisers) == checkpoints
    assert (accessor.bill().total == 40 * 12).all()
    for n, W in minimisers.items():
        assert W.shape == (2, 12, len(RADII))
        for f in range(2):
            np.testing.assert_allclose(W[f], solve(problem, X[f, :n], y[f, :n]), rtol=1e-7, atol=1e-9)


@problems
def test_folds_that_share_examples_equal_separate_ones(problem):
    X, y = digits(360, 6)
    X = X / 16
    training, _ = folds(np.random.default_rng(0).permutation(360), 5, np.random.default_rng(1))
    checkpoints = [40, 200, training.shape[1]]
    minimisers, accessor = minimised(problem, X, y, training, RADII, checkpoints)
    for n, W in minimisers.items():
        for rows, w in zip(training, W, strict=True):
            assert_optimal(problem, X[rows[:n]], y[rows[:n]], w)
    bill = accessor.bill()
    for n in checkpoints:
        assert (bill.at[n] == n * X.shape[1]).all()
    assert (bill.most == X.shape[1]).all()
