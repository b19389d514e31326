"""Centres: running means of revealed attributes, exact means of what is stored, and an intercept."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

from budgetreg.algorithms.cesa_bianchi_2010 import baseline
from budgetreg.algorithms.learner import SideInformation
from budgetreg.algorithms.least_squares import lasso
from budgetreg.common.errors import BudgetExceeded
from budgetreg.common.streams import generator, subset
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.protocol import repetitions as protocol
from budgetreg.protocol import split
from budgetreg.protocol.plan import make_plan
from tests.plans import planned
from tests.tiers import slow_but

BLOCK = 256


def running_means(X, attributes):
    """Return for each example the means of what was drawn for earlier blocks, example by example."""
    means, total, count = np.zeros(X.shape), np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for t, (x, drawn) in enumerate(zip(X, attributes, strict=True)):
        means[t] = means[t - 1] if t % BLOCK else [s / n if n else 0.0 for s, n in zip(total, count, strict=True)]
        for i in drawn:
            total[i] += x[i]
            count[i] += 1
    return means


def _shifts(accessor, examples):
    return np.stack([origin.shift for origin in accessor.origins(examples)])


def test_each_kind_of_reveal_subtracts_the_means_of_earlier_blocks():
    X = np.random.default_rng(0).random((5, 3))
    accessor = Accessor(Table(X, np.zeros(5), 2.0), np.array([[4, 0, 1], [2, 3, 0]]), 2, 4, [3], centre_attributes=True)
    everyone = np.ones((2, 2), dtype=bool)
    accessor.open(0, 2)
    first = np.array([[[0, 0], [1, 0]], [[2, 1], [2, 1]]])
    np.testing.assert_array_equal(accessor.reveal_block(first)[0, 1], 2 * X[0, [1, 0]])
    accessor.reveal(np.array([0, 0]), np.full((1, 2, 2), 2), everyone)
    np.testing.assert_array_equal(_shifts(accessor, 2), np.zeros((2, 3)))
    accessor.open(2, 3)
    first = [2 * (2 * X[4, 0] + X[0, 0]) / 3, 2 * X[0, 1], 0.0]
    two = [0.0, X[2, 1] + X[3, 1], X[2, 2] + X[3, 2]]
    np.testing.assert_allclose(_shifts(accessor, 3), [first, two], rtol=1e-15)
    expected = 2 * X[[1, 0]] - [first, two]
    attributes = np.array([[[0, 1], [2, 0]]])
    np.testing.assert_allclose(accessor.reveal_block(np.array([[[2]], [[1]]]))[:, 0, 0], expected[[0, 1], [2, 1]])
    np.testing.assert_allclose(
        accessor.reveal(np.array([0, 0]), attributes, everyone)[0], expected[[[0], [1]], attributes[0]]
    )
    some = accessor.reveal_some(0, attributes.transpose(1, 2, 0), np.array([[[True], [False]], [[True], [True]]]))
    np.testing.assert_allclose(some[..., 0], expected[[[0], [1]], attributes[0]] * [[1, 0], [1, 1]])
    with pytest.raises(BudgetExceeded):
        accessor.reveal_block(np.zeros((2, 1, 2), dtype=int))
    np.testing.assert_array_equal(accessor.bill().total, [[8, 7], [8, 8]])


def test_full_rows_are_centred_in_blocks_however_many_are_read_at_once():
    X = np.random.default_rng(1).random((600, 4))
    orders = np.stack([np.random.default_rng(f).permutation(600) for f in range(2)])
    accessor = Accessor(Table(X, np.zeros(600)), orders, 1, 4, [600], centre_attributes=True)
    rows = np.concatenate([accessor.rows(0, 2 * BLOCK)[0], accessor.rows(2 * BLOCK, 600)[0]], axis=1)
    for f, order in enumerate(orders):
        means = running_means(X[order], np.tile(np.arange(4), (600, 1)))
        np.testing.assert_allclose(rows[f], X[order] - means, rtol=0, atol=1e-14)
        np.testing.assert_allclose(_shifts(accessor, 600)[f], means[-1], rtol=1e-13)
    assert not (rows[:, 0] - X[orders[:, 0]]).any()


# The intercept: centred targets, exact means of what is stored, errors relative to the mean predictor

CENTRES = [(False, False), (True, False), (False, True), (True, True)]


def far_from_0(n=60, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 3 * rng.random(d)
    return X, 20 + X @ rng.normal(size=d) + 0.3 * rng.normal(size=n)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(0, 2**32 - 1))
def test_targets_are_centred_by_earlier_ones_and_the_first_is_0(sizes, seed):
    rng = np.random.default_rng(seed)
    y = rng.normal(10, 3, (2, sum(sizes)))
    table = Table(np.zeros((y.size, 1)), y.reshape(-1))
    accessor = Accessor(table, np.arange(y.size).reshape(y.shape), 1, 1, centre_targets=True)
    before = np.stack([[row[:t].mean() if t else row[0] for t in range(len(row))] for row in y])
    start = 0
    for size in sizes:
        accessor.open(start, start + size)
        expected = (y - before)[:, start : start + size]
        np.testing.assert_allclose(accessor.targets(), expected, atol=1e-12)
        for c in range(start + 1, start + size + 1):
            intercepts = [origin.intercept for origin in accessor.origins(c)]
            np.testing.assert_allclose(intercepts, y[:, :c].mean(axis=1), rtol=1e-14)
        start += size


def fit_offline(algo, X, y, orders, checkpoints, centred, intercept, B, k=4):
    plan = planned(f"algo={algo}", f"k={k}", "dataset=power_law", f"dataset.d={X.shape[1]}")
    learner = plan.config.algo
    accessor = Accessor(Table(X, y), orders, 1, plan.budget, checkpoints)
    rngs = [generator("test", f) for f in range(len(orders))]
    given = SideInformation(k, plan.budget_split, None, centred, intercept)
    yield from learner.fit(accessor, {"B": np.array([B])}, checkpoints, rngs, given)


@pytest.mark.parametrize("algo", ["ridge", "lasso"])
def test_offline_learners_with_centring_and_intercept_find_the_least_squares_line(algo):
    X, y = far_from_0()
    orders = np.stack([np.random.default_rng(f).permutation(60) for f in range(3)])
    for checkpoint, (W, b, *_) in fit_offline(algo, X, y, orders, [4, 5, 7, 60], True, True, 1e6):
        for f, order in enumerate(orders):
            rows = order[:checkpoint]
            line = LinearRegression().fit(X[rows], y[rows])
            where = X if algo == "ridge" or checkpoint > 6 else X[rows]  # lines of several norms fit
            np.testing.assert_allclose(b[f, 0] + where @ W[f, :, 0], line.predict(where), rtol=1e-7)


@pytest.mark.parametrize(("centred", "intercept"), CENTRES[1:])
@pytest.mark.parametrize("checkpoint", [4, 40])
def test_offline_learners_minimise_over_the_ball_after_centring_what_they_saw(centred, intercept, checkpoint):
    X, y = far_from_0()
    m = X[:checkpoint].mean(axis=0) * centred
    r = y[:checkpoint].mean() * intercept
    ((_, (W, b, *_)),) = fit_offline("ridge", X, y, np.arange(60)[None], [checkpoint], centred, intercept, 0.7)
    w = W[0, :, 0]
    gradient = (X[:checkpoint] - m).T @ ((X[:checkpoint] - m) @ w - (y[:checkpoint] - r))
    assert np.linalg.norm(w) == pytest.approx(0.7)
    np.testing.assert_allclose(gradient / np.linalg.norm(gradient), -w / 0.7, atol=1e-8)
    assert b[0, 0] == pytest.approx(r - m @ w)


@pytest.mark.parametrize(("centred", "intercept"), CENTRES)
def test_learners_from_pairs_centre_their_estimates_by_what_they_saw(centred, intercept):
    X, y = far_from_0(40, 3)
    ((_, outputs),) = fit_offline("baseline", X, y, np.arange(40)[None], [40], centred, intercept, 0.5, k=3)
    pairs = [divmod(pair, 3) for (pair,) in subset(generator("test", 0), 9, 1)[:40]]
    values = [[X[t, j] for t, pair in enumerate(pairs) for j in pair if j == i] for i in range(3)]
    c, b = np.array([np.mean(column) for column in values]) * centred, y.mean() * intercept
    A, v = baseline(X - c, y - b, np.array(pairs)[:, None])
    s, V = np.linalg.eigh(A)
    w = lasso((V * np.maximum(s, 0)) @ V.T, v / 2, np.array([0.5]))[:, 0]
    W, learned = outputs[:2] if isinstance(outputs, tuple) else (outputs, np.zeros((1, 1)))
    np.testing.assert_allclose(W[0, :, 0], w, atol=1e-9)
    assert learned[0, 0] == pytest.approx(b - c @ w)


FEW = ["dataset=power_law", "dataset.d=6", "dataset.n=400", "dataset.n_test=40", "tuning.folds=3", "k=4"]


@pytest.mark.parametrize(
    "algo",
    slow_but(
        ("aelr", "ridge", "baseline"), ["aerr", "aelr", "aer", "ddaerr", "online_ridge", "ridge", "baseline", "aesvr"]
    ),
)
@pytest.mark.parametrize("center", ["none", "revealed"])
def test_a_constant_added_to_all_targets_is_added_to_predictions(algo, center, monkeypatch):
    grid = "algo.grid={B: [1, 3], lambda: [1]}" if algo == "aer" else "algo.grid={B: [1, 3], eta: [1]}"
    grid = "algo.grid={B: [1, 3]}" if algo in ("ridge", "baseline") else grid
    plan = planned(f"algo={algo}", *FEW, grid, "intercept=mean", f"dataset.center={center}", "checkpoints=[20,300]")
    (here,) = protocol.run_repetitions(plan, [0], lambda done: None)
    data = split.load(plan.config.dataset, 0, 0)
    monkeypatch.setattr(split, "load", lambda *args, **options: replace(data, y=data.y + 1000.0))
    (there,) = protocol.run_repetitions(plan, [0], lambda done: None)
    for before, after in zip(here["curve"], there["curve"], strict=True):
        assert after["test_mse"] == pytest.approx(before["test_mse"], rel=1e-6)
        assert after["test_relative"] == pytest.approx(before["test_relative"], rel=1e-6)
        assert before["test_relative"] < 5


@pytest.mark.parametrize("intercept", ["mean", "none"])
def test_errors_are_relative_to_the_mean_of_the_training_targets(intercept):
    few = ("algo.grid={B: [1e-9], eta: [1]}", "checkpoints=[400]", f"intercept={intercept}")
    (result,) = protocol.run_repetitions(planned("algo=aelr", *FEW, *few), [0], lambda done: None)
    assert result["curve"][0]["test_relative"] == pytest.approx(1, abs=1e-6)


def test_own_data_have_an_intercept_by_default(tmp_path):
    file = tmp_path / "own.csv"
    X, y = far_from_0()
    np.savetxt(file, np.column_stack([X, y]), delimiter=",", header="a,b,c,d,e,target", comments="")
    keys = ["dataset=file", f"dataset.path={file}", "k=2"]
    assert (planned(*keys).intercept, planned(*keys).centred) == (True, True)
    assert (planned(*keys, "intercept=none").intercept, planned(*keys, "dataset.center=none").centred) == (False, False)
    subspace = planned(*keys, "algo=popca", "algo.n_components=2")
    assert (subspace.intercept, subspace.centred) == (False, False)
    assert planned("k=2").intercept is False


def test_learners_of_subspaces_refuse_an_intercept():
    with pytest.raises(Exception, match="intercept=mean: popca learns a subspace and predicts nothing"):
        make_plan(planned("algo=popca", "intercept=mean").config)
