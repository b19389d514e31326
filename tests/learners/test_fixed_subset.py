"""Fixed subset: which attributes it sees, against a search that refits each set, and what it pays for."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import budgetreg
from budgetreg.algorithms.fixed_subset import FixedSubset, forward_selection
from budgetreg.data.dataset import Groups
from budgetreg.testing.checks import Recorder
from tests.learners.problems import fit
from tests.learners.test_imputation import cross_validated


def examples(m, d=10, seed=0):
    """Return correlated attributes in different units, of which three matter, and a target."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) + 0.7 * rng.normal(size=(m, 1))
    y = 2 * X[:, 1] - 2 * X[:, 4] + X[:, 7] + 0.3 * rng.normal(size=m)
    return 5 + X * np.geomspace(0.1, 10, d), y - 3


def fitted(X, y, orders, k, checkpoints=None, *, centred=True, scaled=False, **run):
    """Return {checkpoint: outputs} of streams (F, m), and which cells were charged, (rows, attributes)."""
    log, given = Recorder(X.shape[1]), {"centred": centred, "intercept": True, "scaled": scaled}
    outputs, _ = fit(FixedSubset(name="fixed"), X, y, orders, k, checkpoints, given=given, log=log, **run)
    return outputs, log.seen()


def searched(X, y, k):
    """Return the attributes that a search finds which fits ridge to each set, on standardised complete rows."""
    Z, chosen = (X - X.mean(axis=0)) / X.std(axis=0), []

    def loss(attributes):
        part = Z[:, attributes]
        w = Ridge(k, fit_intercept=False).fit(part, y - y.mean()).coef_
        return np.square(y - y.mean() - part @ w).sum() + k * w @ w

    for _ in range(k):
        chosen.append(min(set(range(X.shape[1])) - set(chosen), key=lambda j: loss([*chosen, j])))
    return sorted(chosen)


@pytest.mark.parametrize(("pilot", "k"), [(3, 4), (7, 5), (10, 4), (30, 1), (12, 10)])
def test_the_same_attributes_are_seen_of_each_example_and_fitted_with_the_pilot(pilot, k):
    X, y = examples(80)
    orders, known = np.arange(pilot, 80)[None], np.arange(pilot)[None]
    outputs, (rows, attributes) = fitted(X, y, orders, k, [5, 80 - pilot], pilot=known)
    chosen = searched(X[:pilot], y[:pilot], k)
    assert rows.tolist() == np.repeat(orders[0], k).tolist()
    assert attributes.reshape(-1, k).tolist() == [chosen] * (80 - pilot)
    for examples_seen, output in outputs.items():
        Z, target = X[: pilot + examples_seen, chosen], y[: pilot + examples_seen]
        alphas = cross_validated(Z - Z.mean(axis=0), target)
        w = np.mean([Ridge(alpha).fit(Z, target).coef_ for alpha in alphas], axis=0)
        assert set(np.flatnonzero(output.regressors[0, :, 0])) == set(chosen)
        np.testing.assert_allclose(output.regressors[0, chosen, 0], w, rtol=1e-8)
        assert output.intercept[0, 0] == pytest.approx(target.mean() - Z.mean(axis=0) @ w, rel=1e-8)


def test_a_constant_added_to_all_targets_changes_no_choice():
    """Also where attributes are not centred."""
    X, y = examples(40)
    orders, run = np.arange(10, 40)[None], {"pilot": np.arange(10)[None], "centred": False}
    _, cells = fitted(X, y, orders, 3, **run)
    _, moved = fitted(X, y + 1e3, orders, 3, **run)
    np.testing.assert_array_equal(moved, cells)


def test_equally_good_attributes_are_chosen_at_random():
    X, _ = examples(30)
    orders, known = np.tile(np.arange(6, 30), (40, 1)), np.tile(np.arange(6), (40, 1))
    outputs, (_, attributes) = fitted(X, np.ones(30), orders, 3, pilot=known)
    assert set(attributes.tolist()) == set(range(10))
    assert not outputs[24].regressors.any()


def test_no_target_or_value_after_the_pilot_decides_which_attributes_are_seen():
    X, y = examples(60)
    known, orders = np.arange(10)[None], np.arange(10, 60)[None]
    _, cells = fitted(X, y, orders, 3, pilot=known)
    other = np.concatenate([y[:10], y[:9:-1]])
    _, again = fitted(np.concatenate([X[:10], -X[:9:-1]]), other, orders, 3, pilot=known)
    np.testing.assert_array_equal(cells, again)


def test_without_a_pilot_the_first_tenth_of_the_examples_replaces_it():
    X, y = examples(3000)
    outputs, (rows, attributes) = fitted(X, y, np.arange(3000)[None], 5, [30, 3000])
    assert (np.bincount(rows) == 5).all()
    first, later = attributes.reshape(-1, 5)[:300], attributes.reshape(-1, 5)[300:]
    assert np.unique(first).size == 10
    assert len({tuple(row) for row in later.tolist()}) == 1
    assert {1, 4, 7} <= set(later[0])
    assert set(np.flatnonzero(outputs[3000].regressors[0, :, 0])) == set(later[0])
    errors = [np.square(y - X @ out.regressors[0, :, 0] - out.intercept[0, 0]).mean() for out in outputs.values()]
    assert errors[1] < 0.2 * y.var()


def test_missing_values_are_skipped_and_free_attributes_are_seen_besides():
    X, y = examples(200)
    available, free = np.random.default_rng(1).random(X.shape) < 0.8, np.arange(10) == 9
    available[:20] = True
    orders, known = np.arange(20, 200)[None], np.arange(20)[None]
    hidden = np.where(available, X, np.nan)
    outputs, (rows, attributes) = fitted(hidden, y, orders, 3, pilot=known, table={"available": available}, free=free)
    chosen = np.unique(attributes)
    assert chosen.size == 4 and 9 in chosen
    cells = {(row, attribute) for row in range(20, 200) for attribute in chosen if available[row, attribute]}
    assert set(zip(rows.tolist(), attributes.tolist(), strict=True)) >= cells
    w = outputs[180].regressors[0, :, 0]
    assert np.isfinite(w).all() and set(np.flatnonzero(w)) == set(chosen)


def test_the_units_of_attributes_change_nothing_where_they_are_scaled():
    X, y = examples(60)
    orders, run = np.arange(8, 60)[None], {"pilot": np.arange(8)[None], "scaled": True}
    units = np.geomspace(1e3, 1e-3, 10)
    outputs, cells = fitted(X, y, orders, 4, **run)
    others, same_cells = fitted(X * units, y, orders, 4, **run)
    np.testing.assert_array_equal(cells, same_cells)
    np.testing.assert_allclose(others[52].regressors[0, :, 0] * units, outputs[52].regressors[0, :, 0], rtol=1e-8)


def test_equally_good_attributes_are_taken_in_order_and_copies_are_left_for_last():
    M, c, singles = np.eye(4), np.array([1.0, 0.0, 0.0, 0.5]), [[j] for j in range(4)]
    assert forward_selection(M, c, 0.1, 4, [[2], [1], [0], [3]]) == [0, 3, 2, 1]
    M[0, 3] = M[3, 0] = 0.999
    c[1], c[3] = 0.3, 0.999
    assert forward_selection(M, c, 0.1, 2, singles) == [0, 1]
    assert forward_selection(M, c, 0.1, 1, singles[1:], [0]) == [1]
    units = np.array([1e-3, 1, 10, 1e4])
    assert forward_selection(M * np.outer(units, units), c * units, 0.1, 2, singles) == [0, 1]


def test_groups_are_chosen_as_a_whole_by_a_search_that_refits_each_set():
    X, y = examples(60)
    groups = Groups((0, 0, 2, 2, 2, 5, 6, 6, 8, 9))
    units = [[0, 1], [2, 3, 4], [5], [6, 7], [8], [9]]
    Z = (X[:20] - X[:20].mean(axis=0)) / X[:20].std(axis=0)
    target, strength, chosen = y[:20] - y[:20].mean(), 3 * 10 / 6, []

    def loss(attributes):
        part = Z[:, attributes]
        w = Ridge(strength, fit_intercept=False).fit(part, target).coef_
        return np.square(target - part @ w).sum() + strength * w @ w

    for _ in range(3):
        chosen += min((unit for unit in units if unit[0] not in chosen), key=lambda unit: loss([*chosen, *unit]))
    outputs, (_, attributes) = fitted(X, y, np.arange(20, 60)[None], 3, pilot=np.arange(20)[None], groups=groups)
    assert attributes.reshape(40, -1).tolist() == [sorted(chosen)] * 40
    assert len(chosen) > 3
    assert set(np.flatnonzero(outputs[40].regressors[0, :, 0])) == set(chosen)


def test_a_run_pays_for_its_pilot(tmp_path):
    keys = {"algo": "fixed_subset", "dataset": "diabetes", "k": 3, "pilot": 12, "repetitions": 2, "checkpoints": 1}
    results = budgetreg.run({**keys, "out": str(tmp_path / "run")})
    assert (results.curves["attributes"] == 12 * 10 + 3 * (results.curves["examples"] - 12)).all()
    assert (results.curves["test_relative"] < 0.8).all()
