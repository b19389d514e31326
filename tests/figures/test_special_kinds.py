"""Figures of paired differences, of ratios, and of bills."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from budgetreg.errors import ConfigError
from budgetreg.figures import curves, paired
from budgetreg.figures.points import bill_of, draw_bills, draw_ratios, ratios_of
from budgetreg.figures.registry import plot
from budgetreg.figures.specification import PAID, RELATIVE, Drawing, axes_of, parse
from budgetreg.runs.series import Series, labelled, read_folder, read_series
from tests.figures.test_paid import N, paid_run
from tests.written_runs import write_run

MANY = 40  # repetitions, of which a single one lies beyond the 95 % quantile


def with_errors(folder: Path, algo: str, factor: float, repetitions: int = MANY) -> Path:
    """Write a run whose errors differ between repetitions, multiplied by a factor."""
    write_run(folder, algo, repetitions=repetitions)
    table = pd.read_csv(folder / "curves.csv")
    table["test_relative"] = factor * (0.4 + table["repetition"] / 100)
    table.to_csv(folder / "curves.csv", index=False)
    return folder


def spoil(folder: Path, error: float) -> None:
    """Let one repetition have a huge last error."""
    table = pd.read_csv(folder / "curves.csv")
    table.loc[(table["repetition"] == 0) & (table["examples"] == 160), "test_relative"] = error
    table.to_csv(folder / "curves.csv", index=False)


def by_algo(path: Path) -> dict[str, Series]:
    return {curve.algo: curve for curve in read_series([path])}


def test_a_difference_is_that_of_the_same_repetitions(tmp_path: Path) -> None:
    """Errors vary by a factor of two between repetitions, but their difference hardly does."""
    with_errors(tmp_path / "1", "aelr", 1.0)
    with_errors(tmp_path / "2", "aer", 1.01)
    series = by_algo(tmp_path)
    x, y = axes_of(list(series.values()))
    points, estimates = paired.differences(series["aer"], series["aelr"], y, x)
    assert points.tolist() == series["aer"].mean["attributes"].tolist()
    for estimate in estimates:
        assert estimate.value == pytest.approx(0.01 * (0.4 + (MANY - 1) / 200))
        assert 0 < estimate.low < estimate.value < estimate.high < 0.01


def test_a_difference_ends_where_one_of_the_curves_does(tmp_path: Path) -> None:
    with_errors(tmp_path / "1", "aelr", 1.0)
    write_run(tmp_path / "2", "aer", repetitions=MANY, examples=(20, 80, 640))
    series = by_algo(tmp_path)
    x, y = axes_of(list(series.values()))
    points, _ = paired.differences(series["aer"], series["aelr"], y, x)
    begin, end = (series[name].mean["attributes"].iloc[at] for name, at in (("aer", 0), ("aelr", -1)))
    assert points.tolist() == [begin, series["aer"].mean["attributes"].iloc[1], end]


@pytest.mark.parametrize("spoilt", [False, True])
def test_a_mean_outside_its_band_is_marked(spoilt: bool, tmp_path: Path) -> None:
    for number, algo in enumerate(("aelr", "aer", "ridge")):
        with_errors(tmp_path / str(number), algo, 1.0 + number)
    if spoilt:
        spoil(tmp_path / "1", 1000)
    figure, remarks = paired.draw(read_series([tmp_path]), Drawing(against="aelr", band="spread"))
    heads = [ax.get_title("left") for ax in figure.axes[:3]]
    assert heads == ["aelr", "aer", "ridge"]
    circles = {
        head: [float(at) for line in ax.lines if line.get_markersize() == 12 for at in line.get_xdata()]
        for head, ax in zip(heads, figure.axes, strict=False)
    }
    place = by_algo(tmp_path)["aer"].mean["attributes"].iloc[-1]
    assert circles == {"aelr": [], "aer": [place] if spoilt else [], "ridge": []}
    assert any("outside their band" in remark and "aer at 620" in remark for remark in remarks) == spoilt
    # Other differences stay readable: the axis need not show what one repetition decides, of which a number remains.
    below = figure.axes[4:]
    assert all(ax.get_ylim()[1] < 2 for ax in below)
    assert [text.get_text()[:3] for ax in below for text in ax.texts] == (["+25"] if spoilt else [])


def test_each_data_set_has_a_row_with_the_same_learners(tmp_path: Path) -> None:
    for dataset in ("digits_3v5", "mnist_3v5"):
        for algo in ("aelr", "aer"):
            write_run(tmp_path / dataset / algo, algo, dataset)
    figure, _ = paired.draw(read_series([tmp_path]), Drawing(against="aer"))
    titles = [ax.get_title("left") for ax in figure.axes]
    assert titles == ["aer", "aelr", "", ""] * 2
    texts = [text.get_text() for ax in figure.axes for text in ax.texts]
    assert texts == ["digits_3v5\nk = 4", "mnist_3v5\nk = 4"]
    assert [ax.axison for ax in figure.axes] == [True, True, False, True] * 2


def test_published_points_are_those_of_the_recipe_of_a_series(tmp_path: Path) -> None:
    write_run(tmp_path / "1", "aelr", experiment="paper/one")
    write_run(tmp_path / "2", "aelr", "digits_3v5", experiment="paper/two")
    own, beside = ({("aelr", "attributes"): (np.array([50.0]), np.array([value]))} for value in (0.8, 0.7))
    drawing = Drawing(published=own, published_beside={"paper/one": beside})
    found = {
        curve.config["experiment"]: drawing.published_points(curve, "attributes") for curve in read_series([tmp_path])
    }
    assert {name: points and points[1][0] for name, points in found.items()} == {"paper/one": 0.7, "paper/two": 0.8}


def test_ratios_are_those_of_the_same_repetitions(tmp_path: Path) -> None:
    with_errors(tmp_path / "1", "aelr", 1.0)
    with_errors(tmp_path / "2", "aer", 1.25)
    with_errors(tmp_path / "3", "ridge", 0.5, repetitions=4)
    series = read_series([tmp_path])
    drawing = Drawing(against="aelr")
    of_panel = ratios_of(series, drawing, RELATIVE)
    assert {label: ratio.value for label, ratio in of_panel.items()} == pytest.approx({"aer": 1.25, "ridge": 0.5})
    assert (of_panel["aer"].low, of_panel["aer"].high) == pytest.approx((1.25, 1.25))
    assert np.isnan(of_panel["ridge"].low)  # of four repetitions
    figure, title, _ = draw_ratios(series, drawing)
    assert title.endswith("relative to aelr")
    (ax,) = figure.axes
    assert [text.get_text() for text in ax.get_yticklabels()] == ["ridge", "aer"]
    assert [text.get_text() for text in ax.texts] == ["0.50", "1.25"]


def test_a_bill_has_the_run_and_what_tuning_revealed_besides(tmp_path: Path) -> None:
    (series,) = read_series([paid_run(tmp_path / "run", 1300, N)])
    bill = bill_of(series, PAID, RELATIVE)
    assert (bill.run, bill.tuning) == (639.5, 1300)
    assert bill.error.value == pytest.approx(series.mean["test_relative"].iloc[-1])


def test_bars_and_dots_are_in_the_order_of_the_errors(tmp_path: Path) -> None:
    paid_run(tmp_path / "1", 0, 0, algo="aelr", shift=0.3)
    paid_run(tmp_path / "2", 1300, N, algo="aer")
    series = labelled([curve for name in "12" for curve in read_folder(tmp_path / name)])
    bars, dots = draw_bills(series, Drawing(top=1.0)).figure.axes
    assert [text.get_text() for text in bars.get_yticklabels()] == ["aer", "aelr"]
    assert [text.get_text() for text in bars.texts] == ["1.94k", "640"]
    widths = {round(patch.get_y() + patch.get_height() / 2): 0.0 for patch in bars.patches}
    for patch in bars.patches:
        widths[round(patch.get_y() + patch.get_height() / 2)] += patch.get_width()
    assert widths == {0: 1939.5, 1: 639.5}
    # An error beyond the end of the axis is an arrow with its value.
    assert [text.get_text().strip() for text in dots.texts] == ["1.05"]
    assert dots.get_xlim()[1] < 1.2


@pytest.mark.parametrize("kind", ["paired", "ratios"])
def test_a_comparison_needs_a_learner_to_compare_with(kind: str) -> None:
    with pytest.raises(ConfigError, match=r"figure\.against"):
        parse({"kind": kind})
    assert parse({"kind": kind, "against": "aelr"}).against == "aelr"


def test_a_quick_look_says_so(tmp_path: Path) -> None:
    for number, algo in enumerate(("aelr", "aer")):
        paid_run(tmp_path / str(number), 10, 0, algo=algo)
    series, drawing = read_series([tmp_path]), Drawing(against="aelr", note="quick look")
    figures = (paired.draw_paired(series, drawing), draw_ratios(series, drawing), draw_bills(series, drawing))
    for figure, *_ in figures:
        legends = [*figure.legends, *(ax.get_legend() for ax in figure.axes if ax.get_legend())]
        assert "quick look" in [text.get_text() for legend in legends for text in legend.get_texts()]


def test_further_figures_differ_in_their_kind_alone() -> None:
    drawing = parse({"also": {"paid": "bills"}, "top": 1.1})
    figures = drawing.figures("curves")
    assert figures["curves"] == drawing
    assert figures["curves_paid"] == replace(drawing, kind="bills", also={})
    with pytest.raises(ConfigError, match="bars"):
        parse({"also": {"paid": "bars"}})


def test_learners_apart_have_panels_of_their_own_beside_one_of_the_others(tmp_path: Path) -> None:
    for dataset in ("digits_3v5", "mnist_3v5"):
        for algo in ("aelr", "aer", "ridge"):
            write_run(tmp_path / dataset / algo, algo, dataset, shift=5.0 if algo == "ridge" else 0.0)
    series = read_series([tmp_path])
    drawing = parse({"apart": ["ridge"], "against": "aelr"})
    rows = [[[curve.algo for curve in panel] for panel in row] for row in drawing.rows(series)]
    assert rows == [[["aelr", "aer"]] * 2, [["aelr", "ridge"]] * 2]
    tops = [ax.get_ylim()[1] for ax in curves.draw(series, drawing)[0].axes]
    assert tops[0] == tops[1] < 2 < 5 < tops[2] == tops[3]


def test_values_below_the_end_of_the_axis_are_triangles_on_it(tmp_path: Path) -> None:
    write_run(tmp_path / "1", "aelr", shift=-0.2)  # errors 0.75, 0.65, 0.55
    (ax,) = (figure := curves.draw(read_series([tmp_path]), Drawing(bottom=0.7, y_scale="log")))[0].axes
    (under,) = (line for line in ax.lines if line.get_marker() == "v" and line.get_linestyle() == "None")
    assert ax.get_ylim()[0] == 0.7
    assert under.get_ydata().tolist() == [0.7, 0.7]
    assert any("triangles stand for means below 0.7" in remark for remark in figure[1])


@pytest.mark.parametrize(("published_as", "marker", "dash"), [("crosses", "x", "None"), ("curves", "D", "--")])
def test_published_numbers_are_crosses_or_curves(published_as: str, marker: str, dash: str, tmp_path: Path) -> None:
    write_run(tmp_path / "1", "aelr")
    points = (np.array([50.0, 600.0]), np.array([0.9, 0.8]))
    drawing = Drawing(published={("aelr", "attributes"): points}, published_as=published_as)
    (ax,) = curves.draw(read_series([tmp_path]), drawing)[0].axes
    (line,) = (line for line in ax.lines if line.get_xdata()[0] == 50 and len(line.get_xdata()) == 2)
    assert (line.get_marker(), line.get_linestyle()) == (marker, dash)
    assert line.get_ydata().tolist() == [0.9, 0.8]


@pytest.mark.slow
def test_files_have_the_same_bytes_each_time(tmp_path: Path) -> None:
    for number, algo in enumerate(("aelr", "aer")):
        paid_run(tmp_path / "runs" / str(number), 10, 0, algo=algo, repetitions=2)
    series, drawing = read_series([tmp_path / "runs"]), Drawing(against="aelr")
    for kind in ("paired", "ratios", "bills"):
        of_kind = replace(drawing, kind=kind)
        first, second = (plot(series, tmp_path / place, kind, of_kind) for place in ("first", "second"))
        assert [path.name for path in first] == [f"{kind}.png", f"{kind}.pdf", f"{kind}.txt"]
        assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
