"""Curves against all that was paid for, including tuning."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from budgetreg.analysis.comparisons import ResampledCurves
from budgetreg.common.errors import DataError
from budgetreg.figures import plot_run
from budgetreg.figures.specification import axes_of, parse
from budgetreg.runs.series import along, read_series
from tests.figures.drawn import drawn, legend_of, of_series
from tests.written_runs import edit_manifest, edit_table, write_run

N, D = 160, 10
"""Mean attributes, as a run of 10, 40 and 160 examples pays for 40, 160 and 640 attributes, less 0 or 1."""


def paid_run(folder: Path, cells_tuning: int, rows_full: int, axis: str = "paid", **changes: Any) -> Path:
    """Write a run with the given mean bill of tuning over its repetitions."""
    write_run(folder, axis=axis, d=D, **changes)
    each = [cells_tuning - 1, cells_tuning + 1]
    edit_table(folder / "runs.csv", cells_tuning=lambda runs: np.resize(each, len(runs)), rows_full=rows_full)
    edit_manifest(folder, data={"d": D, "n_train": N})
    return folder


@pytest.mark.parametrize(
    ("cells_tuning", "rows_full", "paid"),
    [
        (1, 0, [40.5, 160.5, 640.5]),
        (100, 0, [139.5, 259.5, 739.5]),
        (100, 20, [200, 259.5, 739.5]),  # seen in full before the first example
        (1300, N, [1600, 1600, 1939.5]),  # what is drawn twice is charged twice
    ],
)
def test_each_checkpoint_includes_the_bill_of_tuning(
    tmp_path: Path, cells_tuning: int, rows_full: int, paid: list[float]
) -> None:
    (series,) = read_series([paid_run(tmp_path / "run", cells_tuning, rows_full)])
    assert along("paid", series, series.mean).tolist() == paid


def test_checkpoints_at_the_same_bill_show_the_last_one(tmp_path: Path) -> None:
    (series,) = read_series([paid_run(tmp_path / "run", 1300, N)])
    rows = ResampledCurves([series], "test_relative", "paid").rows(series)
    assert rows.x.tolist() == [1600, 1939.5]
    errors = series.points.pivot(index="repetition", columns="examples", values="test_relative").to_numpy()
    assert rows.values.tolist() == errors[:, 1:].tolist()


def lines(path: Path) -> tuple[list[list[float]], list[str], str]:
    """Return the points of a figure's curves, its legend and its caption."""
    figure, text = drawn(path)
    curves = [list(line.get_xdata()) for line in figure.axes[0].lines[1:]]  # after the zero predictor's
    return curves, legend_of(figure), text


def test_curves_end_at_the_total_and_the_caption_names_those_without_a_point(tmp_path: Path) -> None:
    paid_run(tmp_path / "1", 1, 0)
    paid_run(tmp_path / "2", 100, 0, algo="aerr")
    paid_run(tmp_path / "3", 1300, N, algo="aer")
    curves, legend, text = lines(tmp_path)
    # The total is 4 attributes of each of 160 examples.
    assert curves == [[40.5, 160.5], [139.5, 259.5]]
    assert [text for text in legend if "no point" in text] == ["aer: no point, as tuning passes the total"]
    assert "aer has no point, as what tuning pays for passes the total" in text
    assert "x: attributes paid for" in text


def priced_run(folder: Path, price: float, cost_cells: float, cost_rows: float, **changes: Any) -> Path:
    """Write a run whose attributes all cost the same, with the given cost of tuning."""
    paid_run(folder, 1300, N, dataset__costs="prices.csv", dataset__unit="EUR", **changes)
    edit_table(folder / "curves.csv", cost=lambda curves: price * curves["attributes"])
    edit_table(folder / "runs.csv", cost_cells_tuning=cost_cells, cost_rows_full=cost_rows)
    return folder


def test_with_prices_the_axis_paid_is_money(tmp_path: Path) -> None:
    priced_run(tmp_path / "1", 2, 100, 0)
    priced_run(tmp_path / "2", 3, 10, 500, algo="aerr")
    series = read_series([tmp_path])
    assert axes_of(series)[0].column == "paid_cost"
    assert along("paid_cost", series[0], series[0].mean).tolist() == [179, 419, 1379]
    curves, _, text = lines(tmp_path)
    # They end with their final runs, at 1279 and 1918.5 EUR.
    assert curves == [[179, 419], [500]]  # of two checkpoints that tuning pays for, the last
    assert "x: what attributes cost, in EUR: what pilot and final run were charged" in text
    priced_run(tmp_path / "1", 2, 100, 0, total=400)
    priced_run(tmp_path / "2", 3, 10, 500, algo="aerr", total=400)
    assert lines(tmp_path)[0] == [[179]]
    runs = pd.read_csv(tmp_path / "1" / "runs.csv")
    runs.drop(columns="cost_rows_full").to_csv(tmp_path / "1" / "runs.csv", index=False)
    with pytest.raises(DataError, match="does not count cells: run it again"):
        lines(tmp_path)


def test_with_several_units_the_axis_paid_is_attributes(tmp_path: Path) -> None:
    priced_run(tmp_path / "1", 2, 100, 0, total=400)
    paid_run(tmp_path / "2", 1, 0, algo="aerr")
    curves, _, _ = lines(tmp_path)
    assert curves == [[40.5, 160.5]]  # 640 attributes at most; the other's tuning passes that, and its 400 are EUR


def test_a_run_without_a_point_has_a_figure(tmp_path: Path) -> None:
    paid_run(tmp_path, 1300, N)
    assert all(path.stat().st_size for path in plot_run(tmp_path))
    assert lines(tmp_path)[0] == []


def test_a_recipe_may_draw_by_paid_attributes_without_a_total(tmp_path: Path) -> None:
    series = read_series([paid_run(tmp_path, 1300, N, axis="attributes")])
    assert axes_of(series)[0].column == "attributes"
    figure, _ = of_series(series, parse({"x": "paid"}))
    assert list(figure.axes[0].lines[1].get_xdata()) == [1600, 1939.5]


def test_a_single_point_has_a_band(tmp_path: Path) -> None:
    series = read_series([paid_run(tmp_path, 1, N, axis="attributes", repetitions=6)])
    (ax,) = of_series(series, parse({"x": "paid", "band": "spread"}))[0].axes
    assert list(ax.lines[1].get_xdata()) == [1600]
    errors = series[0].points.pivot(index="repetition", columns="examples", values="test_relative").to_numpy()[:, -1]
    (low, high) = ax.collections[0].get_segments()[0]
    assert [low[0], high[0]] == [1600, 1600]
    assert [low[1], high[1]] == pytest.approx(np.quantile(errors, [0.05, 0.95]))


def test_the_axis_is_paid_only_if_all_runs_ask_for_it(tmp_path: Path) -> None:
    paid_run(tmp_path / "1", 1300, N)
    paid_run(tmp_path / "2", 100, 0, axis="attributes", algo="aerr")
    assert lines(tmp_path)[0] == [[39.5, 159.5, 639.5]] * 2


def test_runs_without_counts_of_cells_are_refused_on_the_axis_paid(tmp_path: Path) -> None:
    write_run(tmp_path, axis="paid")
    with pytest.raises(DataError, match="does not count cells: run it again"):
        lines(tmp_path)
    paid_run(tmp_path, 5, 0)
    edit_table(tmp_path / "runs.csv", rows_full=[0, None])
    with pytest.raises(DataError, match="does not count cells"):
        lines(tmp_path)
