"""Exploration and Hybrid: the gradient against its listing and an enumeration, and the attributes that are found."""

from itertools import permutations

import numpy as np
import pytest

from budgetreg.algorithms.learner import SideInformation
from budgetreg.algorithms.murata_suzuki_2018 import Search, SparseExploration, block_gradient
from budgetreg.cli.app import main
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.testing.checks import Recorder

PLAIN = SideInformation(3)


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
    state, theta, squares, counts, start = Search(d, PLAIN), np.zeros(d), np.zeros(d), np.zeros(d), 0
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


def sparse(m, d, seed=0):
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(m, d)), np.zeros(d)
    w[[1, 4, 7]] = 1.0, -1.0, 0.7
    return X, X @ w + 0.3 * rng.normal(size=m), w


def run(X, y, k, checkpoints, refit, n_nonzero=None):
    log = Recorder(X.shape[1])
    accessor = Accessor(Table(X, y), np.arange(len(y))[None], 1, k, checkpoints, log=log)
    learner = SparseExploration(name="search", refit=refit, n_nonzero=n_nonzero)
    given = SideInformation(k, centred=True, intercept=True)
    return dict(learner.fit(accessor, {}, checkpoints, [np.random.default_rng(5)], given)), log.seen()


@pytest.mark.parametrize(("refit", "tolerance"), [(False, 0.2), (True, 0.05)])
def test_the_attributes_that_count_are_found(refit, tolerance):
    X, y, w = sparse(8000, 40)
    outputs, (rows, attributes) = run(X, y, 8, [8000], refit)
    np.testing.assert_allclose(outputs[8000].regressors[0, :, 0], w, atol=tolerance)
    assert (np.bincount(rows) == 8).all()
    distinct = [len(set(attributes[rows == t].tolist())) for t in range(0, 8000, 500)]
    assert distinct == [8] * 16


def test_hybrid_shows_the_same_attributes_in_turn_with_exploration():
    X, y, _ = sparse(2000, 12)
    _, (_, attributes) = run(X, y, 4, [2000], refit=True)
    shown = np.sort(attributes.reshape(-1, 4), axis=1)
    same = (shown[1:] == shown[:-1]).all(axis=1)
    # 10 examples of each of 3 blocks at first, then 30 examples alike.
    assert same[:9].all()
    assert not same[9]
    assert same[30:59].all()


@pytest.mark.parametrize("refit", [False, True])
def test_checkpoints_change_no_draw(refit):
    X, y, _ = sparse(1500, 12)
    often, seen = run(X, y, 4, [3, 100, 777, 1500], refit)
    once, again = run(X, y, 4, [1500], refit)
    np.testing.assert_array_equal(seen[1], again[1])
    np.testing.assert_array_equal(often[1500].regressors, once[1500].regressors)


def test_a_budget_that_leaves_nothing_to_explore_with_is_refused(tmp_path, capsys):
    words = ["run", "algo=hybrid", "algo.n_nonzero=4", "dataset=wine", "k=4", f"out={tmp_path / 'out'}"]
    assert main(words) == 2
    assert "algo.n_nonzero=4: must be below k=4" in capsys.readouterr().err
