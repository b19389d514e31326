"""Ranges instead of a pilot: a run on a table equals that on the table scaled by hand."""

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets

from budgetreg.cli.app import main
from budgetreg.protocol.repetitions import run_repetitions
from tests.commands import one_line
from tests.plans import planned
from tests.tiers import quick_but

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


@pytest.mark.parametrize("center", ["none", "revealed", "full"])
@pytest.mark.parametrize(
    "algo", quick_but(("aelr", "ridge", "ddaerr"), ["aerr", "aelr", "baseline", "ridge", "ddaerr"])
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
