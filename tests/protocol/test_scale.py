"""The scale of one's own attributes: by what is stored, by a pilot, or by known ranges."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import datasets

from budgetreg.algorithms.learner import Observation
from budgetreg.cli.app import main
from budgetreg.common.errors import ConfigError
from budgetreg.protocol.repetitions import run_repetitions
from budgetreg.protocol.spending import Spending
from budgetreg.protocol.split import split_data
from tests.commands import one_line
from tests.plans import configured, planned
from tests.refusals import refusal
from tests.tiers import slow_but

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
@pytest.mark.parametrize("algo", slow_but(("ridge", "baseline", "impute_ridge"), STORING))
def test_the_unit_of_a_column_changes_no_prediction(file, algo, pilot):
    X, y = linear()
    by = np.array([2.0**-20, 1, 8, 2.0**12, 1, 4])  # powers of 2, so that no rounding differs
    plain, scaled = (errors(f"algo={algo}", file(table, y), f"pilot={pilot}") for table in (X, X * by))
    np.testing.assert_array_equal(plain, scaled)
    assert plain[:, -1].max() < 0.9
    if algo in ("ridge", "baseline"):
        other = errors(f"algo={algo}", file(X * [1, 3e5, 1, 0.7, 1e-7, 1], y), f"pilot={pilot}")
        np.testing.assert_allclose(other, plain, rtol=1e-6)


@pytest.mark.parametrize("algo", slow_but(["ridge"], ["ridge", "lasso"]))
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
@pytest.mark.parametrize("pilot", slow_but(["auto"], ["auto", "0"]))
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


def spending(algo, total, d, n, n_complete=None):
    config = replace(configured("dataset=diabetes", f"algo={algo}", "k=4"), total=total)
    return Spending(config, n, d, n if n_complete is None else n_complete, None, None, None)


def pilot_of(*facts, **more):
    return spending(*facts, **more).pilot


@given(
    algo=st.sampled_from(["aerr", "aelr", "ddaerr", "online_ridge", *STORING]),
    d=st.integers(4, 3000),
    rows=st.floats(0.5, 3000),
    n=st.integers(40, 5000),
)
def test_an_automatic_pilot_has_a_floor_and_a_ceiling(algo, d, rows, n):
    spent = max(int(rows * d), 4)
    given = spending(algo, spent, d, n)
    spent, learner = given.axis_end(0), given.config.algo
    if learner.scales_itself:
        pilot = given.automatic_pilot(spent)
        assert pilot * d <= 0.1 * spent
        assert pilot >= 2 or 2 * d > 0.1 * spent or pilot == n // 2
    elif 2 * d > 0.25 * spent and learner.observation is not Observation.ALL:
        with pytest.raises(ConfigError, match=r"pilot=auto: .* needs 2 full rows"):
            given.automatic_pilot(spent)
    else:
        pilot = given.automatic_pilot(spent)
        assert pilot >= 2
        assert pilot * d <= max(0.1 * spent, 2 * d)
        assert pilot >= min(20, int(0.1 * spent / d), n // 2)


def test_a_wide_table_is_not_spent_on_the_pilot():
    assert pilot_of("aemr", 4800, 2308, 3000) == 0
    assert pilot_of("lasso", 4800, 2308, 3000) == 0
    assert refusal(ConfigError, pilot_of, "aelr", 4800, 2308, 3000) == (
        "pilot=auto: aelr needs 2 full rows of 2308 attributes first, which cost 4,616, more than a quarter of 4,800; "
        "use dataset.ranges=FILE, dataset.scale=max_abs or none, or pilot=2"
    )
    assert pilot_of("aelr", 300, 10, 398) == 3
    assert pilot_of("aelr", 100, 10, 398) == 2
    assert pilot_of("aelr", 100_000, 10, 100_000) == 500
    assert pilot_of("aelr", 100_000, 10, 100_000, n_complete=300) == 150


# Ranges instead of a pilot: a run on a table equals that on the table scaled by hand

LOW = np.array([18, 1, 15, 60, 100, 40, 20, 2, 3, 60.0])
HIGH = np.array([80, 2, 45, 140, 300, 250, 100, 9, 6, 120.0])
FIXED = ["k=4", "tuning=fixed", "tuning.B=40", "tuning.eta=0.01", "checkpoints=4", "repetitions=2"]


@pytest.fixture
def tables(tmp_path):
    """Return keys of a table with ranges, and of the same table scaled by hand."""
    X, y = datasets.load_diabetes(return_X_y=True, scaled=False)
    names = [*"abcdefghij", "y"]
    pd.DataFrame(np.c_[X, y], columns=names).to_csv(tmp_path / "table.csv", index=False)
    by_hand = (X - (LOW + HIGH) / 2) / ((HIGH - LOW) / 2)
    (tmp_path / "by_hand").mkdir()
    pd.DataFrame(np.c_[by_hand, y], columns=names).to_csv(tmp_path / "by_hand" / "table.csv", index=False)
    pd.DataFrame({"attribute": range(1, 11), "low": LOW, "high": HIGH}).to_csv(tmp_path / "ranges.csv", index=False)
    known = [f"dataset.path={tmp_path / 'table.csv'}", f"dataset.ranges={tmp_path / 'ranges.csv'}"]
    return known, [f"dataset.path={tmp_path / 'by_hand' / 'table.csv'}", "dataset.scale=none"]


def run(*keys):
    return run_repetitions(planned("dataset=file", *FIXED, *keys), [0, 1], lambda done: None)


@pytest.mark.parametrize(
    ("algo", "center"),
    slow_but(
        [("aerr", "none"), ("aerr", "revealed"), ("baseline", "full")],
        product(["aerr", "aelr", "baseline", "ridge", "ddaerr"], ["none", "revealed", "full"]),
    ),
)
def test_a_run_in_ranges_equals_that_on_a_table_scaled_by_hand(tables, algo, center):
    known, by_hand = tables
    more = [f"algo={algo}", f"dataset.center={center}", *(["pilot=8"] if algo == "ddaerr" else [])]
    more += [] if algo == "ddaerr" else ["pilot=0"]
    for ours, theirs in zip(run(*known, *more), run(*by_hand, *more), strict=True):
        assert [point["attributes"] for point in ours["curve"]] == [point["attributes"] for point in theirs["curve"]]
        np.testing.assert_allclose(
            [point["test_mse"] for point in ours["curve"]], [point["test_mse"] for point in theirs["curve"]], rtol=1e-8
        )


def test_a_pilot_is_bought_only_for_moments(tables):
    known, _ = tables
    pilots = {algo: planned("dataset=file", *known, f"algo={algo}", "k=4") for algo in ("aerr", "ridge", "ddaerr")}
    assert [plan.pilot for plan in pilots.values()] == [0, 0, 15]
    assert not any("pilot" in note for note in pilots["aerr"].notes)
    assert pilots["ddaerr"].notes[-1].endswith("in all: centre and moments come from it")
    assert planned("dataset=file", *known, "k=4", "pilot=3").pilot == 3


def test_the_step_size_of_theory_reads_no_column(tables):
    known, _ = tables
    plan = planned("dataset=file", *known, "algo=ddaerr", "k=4", "tuning=theory", "tuning.B=1")
    m = plan.checkpoints[-1] - plan.pilot
    assert plan.settings["eta"][0] == pytest.approx(1 / np.sqrt(m * (10**2 / 3 / plan.budget_split.k_x + 1)))


@pytest.mark.slow
def test_a_changed_list_of_ranges_is_not_resumed(tables, tmp_path, capsys):
    known, _ = tables
    line = ["run", "dataset=file", *known, *FIXED, "algo=aerr", "repetitions=1", f"out={tmp_path / 'run'}"]
    assert main(line) == 0
    assert capsys.readouterr().err == ""
    assert main(line) == 0
    changed = (tmp_path / "ranges.csv").read_text().replace("18.0", "17.0")
    (tmp_path / "ranges.csv").write_text(changed)
    capsys.readouterr()
    assert main(line) == 2
    assert "data.fingerprint=" in one_line(capsys.readouterr().err)


def test_the_model_is_in_units_of_the_table(tables, tmp_path):
    predictions = []
    for folder, keys in zip((tmp_path, tmp_path / "by_hand"), tables, strict=True):
        model = run(*keys, "algo=ridge", "pilot=0")[0]["model"]
        X = pd.read_csv(folder / "table.csv").to_numpy()[:, :-1]
        predictions.append(model["b"] + (X - model["c"]) @ model["w"])
    np.testing.assert_allclose(*predictions, rtol=1e-8)
