"""The scale of one's own attributes: learners that store what they see use all of it, others a pilot."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budgetreg.algorithms.learner import Observation
from budgetreg.common.errors import ConfigError
from budgetreg.protocol.repetitions import run_repetitions
from budgetreg.protocol.spending import automatic_pilot, axis_end, pilot_rows, rates
from budgetreg.protocol.split import split_data
from tests.plans import configured, planned
from tests.tiers import quick_but

KEYS = ("dataset=file", "k=4", "checkpoints=2", "tuning.folds=3")
STORING = ["ridge", "lasso", "baseline", "naive", "impute_ridge", "sgd_impute", "aemr", "aeml"]


@pytest.fixture
def file(tmp_path):
    """Return a function that stores a table and returns the keys that name it."""

    def store(X, y):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}" / "table.npz"
        path.parent.mkdir()
        np.savez(path, X=X, y=y)
        return f"dataset.path={path}"

    return store


def linear(n=160, d=6):
    rng = np.random.default_rng(3)
    X = rng.normal(2, 1, (n, d))
    return X, X @ np.linspace(-1, 2, d) + rng.normal(0, 0.5, n)


def heavy_tailed(n=437, d=25):
    """Return attributes that span orders of magnitude: exponentials of factors on which the target depends."""
    rng = np.random.default_rng(1)
    factors = rng.normal(size=(n, 4))
    X = np.exp(factors @ rng.normal(0, 0.8, (4, d)) + 0.4 * rng.normal(size=(n, d)))
    return X, factors @ [1, 0.5, -0.5, 0.3] + 0.5 * rng.normal(size=n)


def errors(*keys, repetitions=2):
    results = run_repetitions(planned(*KEYS, *keys), range(repetitions), lambda done: None)
    return np.array([[point["test_relative"] for point in result["curve"]] for result in results])


@pytest.mark.usefixtures("short_chains")
@pytest.mark.parametrize("pilot", ["auto", "0"])
@pytest.mark.parametrize("algo", quick_but(("aemr", "aeml", "naive"), STORING))
def test_the_unit_of_a_column_changes_no_prediction(file, algo, pilot):
    X, y = linear()
    by = np.array([2.0**-20, 1, 8, 2.0**12, 1, 4])  # powers of 2, so that no rounding differs
    plain, scaled = (errors(f"algo={algo}", file(table, y), f"pilot={pilot}") for table in (X, X * by))
    np.testing.assert_array_equal(plain, scaled)
    assert plain[:, -1].max() < 0.9
    if algo in ("ridge", "baseline"):
        other = errors(f"algo={algo}", file(X * [1, 3e5, 1, 0.7, 1e-7, 1], y), f"pilot={pilot}")
        np.testing.assert_allclose(other, plain, rtol=1e-6)


@pytest.mark.parametrize("algo", ["ridge", "lasso"])
def test_learners_on_full_rows_are_scaled_by_all_that_they_have_bought(file, algo):
    table = file(*heavy_tailed())
    keys = {"revealed": ["pilot=4"], "pilot": ["dataset.scale=pilot", "pilot=4"]}
    keys["more"] = ["dataset.scale=pilot", "pilot=20"]
    error = {name: errors(f"algo={algo}", table, *each, repetitions=4)[:, -1].mean() for name, each in keys.items()}
    assert error["pilot"] > 2
    assert error["revealed"] < error["more"] + 0.05
    assert error["revealed"] < 1


@pytest.mark.parametrize("norm", ["ridge", "lasso"])
def test_the_ball_is_in_units_of_the_standard_deviations(file, norm):
    X, y = linear()
    X = X * [1, 2, 3, 4, 5, 6e4]
    keys = (f"algo={norm}", "tuning=fixed", f"tuning.B={y.std() / 2}", "pilot=0", "checkpoints=[20,60]", "k=6")
    plan = planned("dataset=file", *keys, file(X, y))
    (result,) = run_repetitions(plan, [0], lambda done: None)
    w = result["model"]["w"].reshape(-1)
    rows = split_data(plan.config, plan.n_test, plan.pilot, 0).order[:60]
    size = np.linalg.norm(w * X[rows].std(axis=0, ddof=1), {"ridge": 2, "lasso": 1}[norm])
    assert size == pytest.approx(y.std() / 2, rel=1e-9)


@pytest.mark.parametrize("algo", ["ridge", "lasso", "baseline"])
@pytest.mark.parametrize("pilot", ["auto", "0"])
def test_a_constant_column_changes_nothing_where_attributes_are_centred(file, algo, pilot):
    X, y = linear()
    X[:, 2] = 7.3
    keys = (f"algo={algo}", f"pilot={pilot}")
    tested = X.copy()
    tested[:, 2] = 0
    np.testing.assert_allclose(errors(*keys, file(X, y)), errors(*keys, file(tested, y)), rtol=1e-9)


def test_other_scales_are_left_to_the_pilot(file):
    table = file(*heavy_tailed())
    given = configured("dataset=file", table, "algo=lasso", "dataset.scale=pilot").dataset
    own = configured("dataset=file", table, "algo=lasso").dataset
    assert (given.scaled_by_pilot, given.scaled_by_revealed) == (True, False)
    assert (own.scaled_by_pilot, own.scaled_by_revealed) == (True, True)
    assert not configured("dataset=file", table, "algo=popca", "algo.n_components=2").dataset.scaled_by_pilot


def rates_of(algo, total, d, n, n_complete=None):
    config = replace(configured("dataset=diabetes", f"algo={algo}", "k=4"), total=total)
    return rates(config, n, d, n if n_complete is None else n_complete)


def pilot_of(*facts, **more):
    return pilot_rows(rates_of(*facts, **more))


@settings(max_examples=100, deadline=None)
@given(
    algo=st.sampled_from(["aerr", "aelr", "ddaerr", "online_ridge", *STORING]),
    d=st.integers(4, 3000),
    rows=st.floats(0.5, 3000),
    n=st.integers(40, 5000),
)
def test_an_automatic_pilot_has_a_floor_and_a_ceiling(algo, d, rows, n):
    spent = max(int(rows * d), 4)
    given = rates_of(algo, spent, d, n)
    spent, learner = axis_end(given, 0), given.config.algo
    if learner.scales_itself:
        pilot = automatic_pilot(given, spent)
        assert pilot * d <= 0.1 * spent
        assert pilot >= 2 or 2 * d > 0.1 * spent or pilot == n // 2
    elif 2 * d > 0.25 * spent and learner.observation is not Observation.ALL:
        with pytest.raises(ConfigError, match=r"pilot=auto: .* needs 2 full rows"):
            automatic_pilot(given, spent)
    else:
        pilot = automatic_pilot(given, spent)
        assert pilot >= 2
        assert pilot * d <= max(0.1 * spent, 2 * d)
        assert pilot >= min(20, int(0.1 * spent / d), n // 2)


def test_a_wide_table_is_not_spent_on_the_pilot():
    assert pilot_of("aemr", 4800, 2308, 3000) == 0
    assert pilot_of("lasso", 4800, 2308, 3000) == 0
    with pytest.raises(ConfigError) as refusal:
        _ = pilot_of("aelr", 4800, 2308, 3000)
    assert str(refusal.value) == (
        "pilot=auto: aelr needs 2 full rows of 2308 attributes first, which cost 4,616, more than a quarter of 4,800; "
        "use dataset.ranges=FILE, dataset.scale=max_abs or none, or pilot=2"
    )
    assert pilot_of("aelr", 300, 10, 398) == 3
    assert pilot_of("aelr", 100, 10, 398) == 2
    assert pilot_of("aelr", 100_000, 10, 100_000) == 500
    assert pilot_of("aelr", 100_000, 10, 100_000, n_complete=300) == 150
