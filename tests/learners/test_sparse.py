"""Learners of sparse regressors: two phases after Kale et al., and Exploration and Hybrid of Murata & Suzuki."""

from itertools import permutations

import numpy as np
import pytest

from budgetreg.algorithms.corrected_moments import dantzig
from budgetreg.algorithms.kale_2017 import TwoPhaseSparse
from budgetreg.algorithms.learner import SideInformation
from budgetreg.algorithms.murata_suzuki_2018 import Search, SparseExploration, block_gradient
from budgetreg.common.errors import ConfigError
from budgetreg.testing.checks import Recorder
from tests.learners.problems import fit

# Two phases: the second shows the attributes that count


def sparse(m, d, seed=0):
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(m, d)), np.zeros(d)
    w[[1, 4, 7]] = 1.0, -1.0, 0.7
    return X, X @ w + 0.3 * rng.normal(size=m), w


def search(refit):
    return SparseExploration(name="search", refit=refit)


def run(learner, X, y, k, checkpoints):
    """Return the outputs at the checkpoints, and the cells that were seen."""
    log, run = Recorder(X.shape[1]), {"rngs": [np.random.default_rng(5)], "given": {"centred": True, "intercept": True}}
    outputs, _ = fit(learner, X, y, np.arange(len(y))[None], k, checkpoints, log=log, **run)
    return outputs, log.seen()


@pytest.mark.parametrize("solver", ["cocolasso", "dantzig"])
def test_the_second_phase_shows_the_attributes_that_count(solver):
    X, y, w = sparse(1500, 20)
    outputs, (rows, attributes) = run(TwoPhaseSparse(name="two", solver=solver, phase_one=0.4), X, y, 5, [600, 1500])
    late = attributes[rows >= 600].reshape(-1, 5)
    assert len(late) == 900
    assert (late == late[0]).all()
    assert {1, 4, 7} <= set(late[0].tolist())
    assert set(attributes[rows < 600].tolist()) == set(range(20))
    np.testing.assert_allclose(outputs[1500].regressors[0, :, 0], w, atol=0.05)


def test_the_dantzig_selector_has_the_least_norm_within_its_tolerance():
    """No regressor within the tolerance is shorter: the dual program has the same value."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(12, 8))
    Gamma, gamma = root.T @ root / 12, rng.normal(size=8)
    tolerances = np.abs(gamma).max() * np.array([1.0, 0.5, 0.1])
    W = dantzig(Gamma, gamma, tolerances)
    np.testing.assert_allclose(W[:, 0], 0, atol=1e-9)
    for w, tolerance in zip(W.T[1:], tolerances[1:], strict=True):
        residual = gamma - Gamma @ w
        assert np.abs(residual).max() <= tolerance * (1 + 1e-7)
        active, bound = np.abs(w) > 1e-9, np.abs(residual) > tolerance * (1 - 1e-7)
        v = np.zeros(8)  # |w|_1 >= v'gamma - tolerance |v|_1 where |Gamma v|_inf <= 1
        v[bound] = np.linalg.lstsq(Gamma[np.ix_(active, bound)], np.sign(w[active]))[0]
        assert np.abs(Gamma @ v).max() <= 1 + 1e-6
        assert v @ gamma - tolerance * np.abs(v).sum() == pytest.approx(np.abs(w).sum())


def test_tolerances_that_no_regressor_meets_repeat_the_one_before():
    Gamma, gamma = np.diag([1.0, 0.0]), np.array([1.0, 0.5])
    W = dantzig(Gamma, gamma, np.array([0.8, 0.1]))
    np.testing.assert_allclose(W, [[0.2, 0.2], [0, 0]])


# Exploration and Hybrid


def test_the_gradient_is_unbiased_over_all_partitions():
    """With one example of each block, every attribute is equally often in the block of each example."""
    rng = np.random.default_rng(0)
    X, y, theta = rng.normal(size=(2, 6)), rng.normal(size=2), np.array([0.0, 0.5, 0, 0, -1, 0])
    others = [0, 2, 3, 5]
    g = [block_gradient(X, y, theta, [np.array(order[:2]), np.array(order[2:])], 1) for order in permutations(others)]
    r = X @ theta - y
    np.testing.assert_allclose(np.mean(g, axis=0), r @ X / 2)


def test_steps_follow_the_listing():
    """The first begins at 0, and the second at two attributes in use; both in units of the root mean squares seen."""
    rng, d, B = np.random.default_rng(1), 7, 200
    X = rng.normal(size=(2 * B * d, d)) * np.linspace(1, 2, d)
    y = X @ np.array([0, 2.0, 0, 0, -1, 0, 0.1])
    state, theta, squares, counts, start = Search(d, SideInformation(3)), np.zeros(d), np.zeros(d), np.zeros(d), 0
    for k in (1, 3):
        S = np.flatnonzero(theta)
        shown = state.blocks(rng, k)
        assert sorted(shown[:, S.size :].ravel().tolist()) == sorted(set(range(d)) - set(S.tolist()))
        attributes = np.repeat(shown, B, axis=0)
        rows, targets = X[start : start + len(attributes)], y[start : start + len(attributes)]
        values = np.take_along_axis(rows, attributes, axis=1)
        np.add.at(squares, attributes, values**2)
        np.add.at(counts, attributes, 1)
        unit = np.sqrt(squares / counts)
        state.add(attributes, values, targets, alike=False)
        moved = state.step(2)
        Z = rows[:, S] / unit[S]
        eta = 1 / max(np.linalg.eigvalsh(Z.T @ Z / len(Z)).max(initial=1), 1)
        g = block_gradient(rows, targets, theta, list(shown[:, S.size :]), B)
        np.testing.assert_allclose(moved, theta * unit - eta * g / unit)
        theta, start = state.output[0], start + len(rows)
        kept = np.argsort(-np.abs(moved))[:2]
        np.testing.assert_allclose(theta[kept], (moved / unit)[kept])
        assert np.count_nonzero(theta) == 2
    assert state.support.tolist() == [1, 4]


@pytest.mark.parametrize(("refit", "tolerance"), [(False, 0.2), (True, 0.05)])
def test_the_attributes_that_count_are_found(refit, tolerance):
    X, y, w = sparse(8000, 40)
    outputs, (rows, attributes) = run(search(refit), X, y, 8, [8000])
    np.testing.assert_allclose(outputs[8000].regressors[0, :, 0], w, atol=tolerance)
    assert (np.bincount(rows) == 8).all()
    distinct = [len(set(attributes[rows == t].tolist())) for t in range(0, 8000, 500)]
    assert distinct == [8] * 16


def test_hybrid_shows_the_same_attributes_in_turn_with_exploration():
    X, y, _ = sparse(2000, 12)
    _, (_, attributes) = run(search(True), X, y, 4, [2000])
    shown = np.sort(attributes.reshape(-1, 4), axis=1)
    same = (shown[1:] == shown[:-1]).all(axis=1)
    # 10 examples of each of 3 blocks at first, then 30 examples alike.
    assert same[:9].all()
    assert not same[9]
    assert same[30:59].all()


@pytest.mark.parametrize("refit", [False, True])
def test_checkpoints_change_no_draw(refit):
    X, y, _ = sparse(1500, 12)
    often, seen = run(search(refit), X, y, 4, [3, 100, 777, 1500])
    once, again = run(search(refit), X, y, 4, [1500])
    np.testing.assert_array_equal(seen[1], again[1])
    np.testing.assert_array_equal(often[1500].regressors, once[1500].regressors)


def test_a_budget_that_leaves_nothing_to_explore_with_is_refused():
    with pytest.raises(ConfigError, match=r"algo\.n_nonzero=4: must be below k=4"):
        SparseExploration(name="hybrid", refit=True, n_nonzero=4).split_budget(4)
