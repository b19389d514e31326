"""Columns, tables and figures of runs that learn subspaces."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from budgetreg.common.errors import DataError
from budgetreg.figures.captions import about_config
from budgetreg.figures.curves import y_range
from budgetreg.figures.looks import style
from budgetreg.figures.specification import EXCESS_LOSS, axes_of
from budgetreg.figures.tables import comparison_tables, run_table
from budgetreg.runs.series import read_series
from budgetreg.runs.store import Store
from budgetreg.runs.tables import CURVES, columns
from tests.figures.drawn import drawn, of_series
from tests.toy_runs import toy_plan
from tests.written_runs import write_run as write_regressors
from tests.written_runs import write_run_manifest

EXCESS = (0.3, 0.02, 0.001)


def write_run(folder: Path, algo: str = "popca", kind: str = "coins", k: int = 4, excess=EXCESS, repetitions=2) -> Path:
    """Write a run whose excess loss falls, faster in later repetitions; the least relative error is 0.2."""
    rows = [
        {
            "experiment": "",
            "algo": algo,
            "dataset": kind,
            "k": k,
            "repetition": repetition,
            "examples": examples,
            "attributes": k * examples,
            "excess_loss": value / (repetition + 1),
            "relative_error": 0.2 + value / (repetition + 1),
            "principal_angle": 90 * value,
        }
        for repetition in range(repetitions)
        for examples, value in zip((10, 100, 1000), excess, strict=True)
    ]
    folder.mkdir(parents=True)
    pd.DataFrame(rows, columns=list(columns(of_subspaces=True)[CURVES])).to_csv(folder / "curves.csv", index=False)
    config = {
        "algo": {"name": algo, "core": "second_moment", "update": "active", "n_components": 2, "grid": {}},
        "dataset": {"name": kind, "kind": kind, "center": "none", "split": "official"},
        "tuning": {"name": "cv", "at": "end", "folds": 10},
        "k": k,
        "repetitions": repetitions,
        "seed": 0,
    }
    write_run_manifest(folder, config, 16)
    return folder


def text_of(table) -> str:
    console = Console(width=110)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def curves_of(figure):
    """Return the lines of curves, which have markers; bounds have none."""
    return [line for line in figure.axes[0].get_lines() if line.get_marker() != "None"]


def test_a_run_writes_the_columns_of_its_task(tmp_path):
    point = {"examples": 5, "attributes": 10, "excess_loss": 0.1, "relative_error": 0.3, "principal_angle": 4.0}
    model = {"V": np.eye(3), "c": np.zeros(3), "scale": np.ones(3)}
    result = {"repetition": 0, "curve": [point], "run": {"edge": ""}, "model": model}
    plan = toy_plan(tmp_path, repetitions=1, n_components=2, d=3)
    with Store.open(tmp_path, plan) as store:
        store.add({"repetition": 0, "status": "finished", "seconds": 0.5, "result": result})
        store.finish()
    lines = (tmp_path / "curves.csv").read_text().splitlines()
    assert lines[0] == ",".join(columns(of_subspaces=True)[CURVES])
    assert lines[0].endswith("k,repetition,examples,attributes,excess_loss,relative_error,principal_angle")
    assert lines[1].endswith("4,0,5,10,0.1,0.3,4.0")
    recorded = json.loads((tmp_path / "manifest.json").read_text())["columns"]["curves.csv"]
    assert recorded == columns(of_subspaces=True)[CURVES]


def test_curves_are_read_and_averaged(tmp_path):
    (series,) = read_series([write_run(tmp_path / "run")])
    assert series.of_subspaces
    curve = series.mean
    assert curve["excess_loss"].tolist() == pytest.approx([0.225, 0.015, 0.00075])
    assert curve["relative_error_sd"].tolist() == pytest.approx([np.std([v, v / 2], ddof=1) for v in EXCESS])
    again = write_run(tmp_path / "again")  # the same results: repetitions that count once
    assert len(read_series([tmp_path / "run", again])) == 1


def test_subspaces_and_regressors_do_not_mix(tmp_path):
    write_run(tmp_path / "subspaces")
    write_regressors(tmp_path / "regressors")
    with pytest.raises(DataError, match="folders of one kind") as caught:
        read_series([tmp_path])
    assert "\n" not in str(caught.value)


def test_figures_of_known_distributions_show_the_excess_loss_on_logarithmic_axes(tmp_path):
    coins = read_series([write_run(tmp_path / "coins")])
    mnist = read_series([write_run(tmp_path / "mnist", kind="mnist")])
    assert [axes_of(series)[1].column for series in (coins, mnist, [*coins, *mnist])] == [
        "excess_loss",
        "relative_error",
        "relative_error",
    ]
    (axes,) = of_series(coins)[0].axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    (axes,) = of_series(mnist)[0].axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")


@pytest.mark.parametrize(
    ("excess", "below", "low"), [((0.3, 0.0, 0.001), 1, 0.001), ((0.3, 1e-17, 0.0), 2, 0.3), ((0.0, 0.0, 0.0), 0, 1.0)]
)
def test_a_logarithmic_axis_ignores_zeros_and_rounding(tmp_path, excess, below, low):
    series = read_series([write_run(tmp_path / "run", excess=excess, repetitions=1)])
    curves = [series[0].mean]
    shown = y_range(curves, EXCESS_LOSS)
    assert shown.log
    assert shown.below(curves, EXCESS_LOSS) == (below or 3)
    assert shown.low < low < shown.high < 10 * max(excess[0], 1)
    plural = "" if below == 1 else "s"
    assert f"{below or 3} mean value{plural} of 0, or as small as rounding, not shown" in of_series(series)[1]


def test_captions_describe_subspaces(tmp_path):
    text = drawn(write_run(tmp_path / "run"))[1]
    for part in ("best one of as many", "leading eigenvectors of the estimated", "n_components=2", "no test part"):
        assert part in text
    assert "cross-validation" not in text


def test_a_learner_has_a_description():
    config = {"algo": {"core": "second_moment", "update": "passive", "grid": {}}, "tuning": {"name": "cv"}}
    (learner,) = [line for line in about_config(config) if line.startswith("learner")]
    assert "leading eigenvectors" in learner
    assert "k per example on average" in learner


def test_budgets_of_one_learner_look_different(tmp_path):
    series = read_series([write_run(tmp_path / f"k{k}", k=k) for k in (2, 4, 6, 8, 10, 12)])
    lines = curves_of(of_series(series)[0])
    assert len({(line.get_color(), line.get_linestyle(), line.get_markerfacecolor()) for line in lines}) == 6


def test_a_shade_and_a_marker_stand_for_the_same_budget_of_all_learners(tmp_path):
    series = read_series([write_run(tmp_path / f"{a}{k}", a, k=k) for a, k in (("oja", 2), ("oja", 4), ("popca", 4))])
    lines = curves_of(of_series(series)[0])
    assert {line.get_linestyle() for line in lines} == {"-"}  # as dashes stand for published curves
    plain, *light = lines
    assert plain.get_color() == style("oja").colour
    assert [line.get_markerfacecolor() for line in lines] == [plain.get_color(), "white", "white"]
    assert light[0].get_color() not in (plain.get_color(), light[1].get_color())


def test_tables_show_rounding_as_0(tmp_path):
    text = text_of(run_table(write_run(tmp_path / "run", excess=(0.3, 1e-17, 0.001))))
    assert "0 ± 0 " in text
    assert "e-17" not in text


def test_tables_show_excess_loss_and_relative_error(tmp_path):
    write_run(tmp_path / "worse", "oja", excess=(0.3, 0.2, 0.1))
    write_run(tmp_path / "better", "popca")
    text = text_of(run_table(tmp_path / "better"))
    for part in ("excess loss", "relative error", "angle", "0.00075 ± 0.00035", "squared length outside the subspace"):
        assert part in text
    compared = text_of(*comparison_tables(read_series([tmp_path])))
    assert compared.index("popca") < compared.index("oja")
    assert "0.20075 ± 0.00035" in compared
    assert "zero predictor" not in compared
