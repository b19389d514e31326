"""The intercept: centred targets, exact means of what is stored, errors relative to the mean predictor."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

from budgetreg.algorithms.learner import SideInformation
from budgetreg.algorithms.least_squares import lasso
from budgetreg.common.streams import generator, subset
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.protocol import repetitions as protocol
from budgetreg.protocol import split
from budgetreg.protocol.plan import make_plan
from tests.plans import planned
from tests.tiers import quick_but

CENTRES = [(False, False), (True, False), (False, True), (True, True)]


def problem(n=60, d=5, seed=0):
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


def fit(algo, X, y, orders, checkpoints, centred, intercept, B, k=4):
    plan = planned(f"algo={algo}", f"k={k}", "dataset=power_law", f"dataset.d={X.shape[1]}")
    learner = plan.config.algo
    accessor = Accessor(Table(X, y), orders, 1, plan.budget, checkpoints)
    rngs = [generator("test", f) for f in range(len(orders))]
    given = SideInformation(k, plan.budget_split, None, centred, intercept)
    yield from learner.fit(accessor, {"B": np.array([B])}, checkpoints, rngs, given)


@pytest.mark.parametrize("algo", ["ridge", "lasso"])
def test_offline_learners_with_centring_and_intercept_find_the_least_squares_line(algo):
    X, y = problem()
    orders = np.stack([np.random.default_rng(f).permutation(60) for f in range(3)])
    for checkpoint, (W, b, *_) in fit(algo, X, y, orders, [4, 5, 7, 60], True, True, 1e6):
        for f, order in enumerate(orders):
            rows = order[:checkpoint]
            line = LinearRegression().fit(X[rows], y[rows])
            where = X if algo == "ridge" or checkpoint > 6 else X[rows]  # lines of several norms fit
            np.testing.assert_allclose(b[f, 0] + where @ W[f, :, 0], line.predict(where), rtol=1e-7)


@pytest.mark.parametrize(("centred", "intercept"), CENTRES[1:])
@pytest.mark.parametrize("checkpoint", [4, 40])
def test_offline_learners_minimise_over_the_ball_after_centring_what_they_saw(centred, intercept, checkpoint):
    X, y = problem()
    m = X[:checkpoint].mean(axis=0) * centred
    r = y[:checkpoint].mean() * intercept
    ((_, (W, b, *_)),) = fit("ridge", X, y, np.arange(60)[None], [checkpoint], centred, intercept, 0.7)
    w = W[0, :, 0]
    gradient = (X[:checkpoint] - m).T @ ((X[:checkpoint] - m) @ w - (y[:checkpoint] - r))
    assert np.linalg.norm(w) == pytest.approx(0.7)
    np.testing.assert_allclose(gradient / np.linalg.norm(gradient), -w / 0.7, atol=1e-8)
    assert b[0, 0] == pytest.approx(r - m @ w)


@pytest.mark.parametrize(("centred", "intercept"), CENTRES)
def test_learners_from_pairs_centre_their_estimates_by_what_they_saw(centred, intercept):
    X, y = problem(40, 3)
    ((_, outputs),) = fit("baseline", X, y, np.arange(40)[None], [40], centred, intercept, 0.5, k=3)
    seen = []
    for t, (pair,) in enumerate(subset(generator("test", 0), 9, 1)[:40]):
        i, j = divmod(pair, 3)
        seen += [(t, i, j)]
    values = [[X[t, j] for t, *pair in seen for j in pair if j == i] for i in range(3)]
    c, b = np.array([np.mean(column) for column in values]) * centred, y.mean() * intercept
    A, v = np.zeros((3, 3)), np.zeros(3)
    for t, i, j in seen:
        A[i, j] += 9 / 2 * (X[t, i] - c[i]) * (X[t, j] - c[j]) / 40
        A[j, i] += 9 / 2 * (X[t, i] - c[i]) * (X[t, j] - c[j]) / 40
        for a in (i, j):
            v[a] += 3 / 2 * 2 * (y[t] - b) * (X[t, a] - c[a]) / 40
    s, V = np.linalg.eigh(A)
    w = lasso((V * np.maximum(s, 0)) @ V.T, v / 2, np.array([0.5]))[:, 0]
    W, learned = outputs[:2] if isinstance(outputs, tuple) else (outputs, np.zeros((1, 1)))
    np.testing.assert_allclose(W[0, :, 0], w, atol=1e-9)
    assert learned[0, 0] == pytest.approx(b - c @ w)


SMALL = ["dataset=power_law", "dataset.d=6", "dataset.n=400", "dataset.n_test=40", "tuning.folds=3", "k=4"]


@pytest.mark.parametrize(
    "algo",
    quick_but(("aerr", "aer"), ["aerr", "aelr", "aer", "ddaerr", "online_ridge", "ridge", "baseline", "aesvr"]),
)
@pytest.mark.parametrize("center", ["none", "revealed"])
def test_a_constant_added_to_all_targets_is_added_to_predictions(algo, center, monkeypatch):
    grid = "algo.grid={B: [1, 3], lambda: [1]}" if algo == "aer" else "algo.grid={B: [1, 3], eta: [1]}"
    grid = "algo.grid={B: [1, 3]}" if algo in ("ridge", "baseline") else grid
    plan = planned(f"algo={algo}", *SMALL, grid, "intercept=mean", f"dataset.center={center}", "checkpoints=[20,300]")
    (here,) = protocol.run_repetitions(plan, [0], lambda done: None)
    load = split.load

    def moved(*args, **kwargs):
        from dataclasses import replace

        data = load(*args, **kwargs)
        return replace(data, y=data.y + 1000.0)

    monkeypatch.setattr(split, "load", moved)
    (there,) = protocol.run_repetitions(plan, [0], lambda done: None)
    for before, after in zip(here["curve"], there["curve"], strict=True):
        assert after["test_mse"] == pytest.approx(before["test_mse"], rel=1e-6)
        assert after["test_relative"] == pytest.approx(before["test_relative"], rel=1e-6)
        assert before["test_relative"] < 5


def test_errors_are_relative_to_the_mean_of_the_training_targets():
    plan = planned("algo=aelr", *SMALL, "algo.grid={B: [1e-9], eta: [1]}", "intercept=mean", "checkpoints=[400]")
    (result,) = protocol.run_repetitions(plan, [0], lambda done: None)
    assert result["curve"][0]["test_relative"] == pytest.approx(1, abs=1e-6)
    without = planned("algo=aelr", *SMALL, "algo.grid={B: [1e-9], eta: [1]}", "checkpoints=[400]")
    (result,) = protocol.run_repetitions(without, [0], lambda done: None)
    assert result["curve"][0]["test_relative"] == pytest.approx(1, abs=1e-6)


def test_own_data_have_an_intercept_by_default(tmp_path):
    file = tmp_path / "own.csv"
    X, y = problem()
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
