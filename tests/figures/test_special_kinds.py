"""Figures of paired differences, of ratios, of relative errors, and of bills."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from budgetreg.common.errors import ConfigError
from budgetreg.figures.paired import differences, draw_paired
from budgetreg.figures.points import draw_bills, draw_ratios, draw_relative, draw_scaling, ratios_of, relative_to_best
from budgetreg.figures.specification import ATTRIBUTES, RELATIVE, Drawing, axes_of, parse, worst
from budgetreg.runs.series import Series, labelled, read_folder, read_series
from tests.figures.drawn import drawn, of_series
from tests.figures.test_paid import N, paid_run
from tests.written_runs import edit_table, write_run

MANY = 40  # repetitions, of which a single one lies beyond the 95 % quantile


def with_errors(folder: Path, algo: str, factor: float, repetitions: int = MANY) -> Path:
    """Write a run whose errors differ between repetitions, multiplied by a factor."""
    write_run(folder, algo, repetitions=repetitions)
    edit_table(folder / "curves.csv", test_relative=lambda curves: factor * (0.4 + curves["repetition"] / 100))
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
    points, estimates = differences(series["aer"], series["aelr"], y, x)
    assert points.tolist() == series["aer"].mean["attributes"].tolist()
    for estimate in estimates:
        assert estimate.value == pytest.approx(0.01 * (0.4 + (MANY - 1) / 200))
        assert 0 < estimate.low < estimate.value < estimate.high < 0.01


def test_a_difference_ends_where_one_of_the_curves_does(tmp_path: Path) -> None:
    with_errors(tmp_path / "1", "aelr", 1.0)
    write_run(tmp_path / "2", "aer", repetitions=MANY, examples=(20, 80, 640))
    series = by_algo(tmp_path)
    x, y = axes_of(list(series.values()))
    points, _ = differences(series["aer"], series["aelr"], y, x)
    begin, end = (series[name].mean["attributes"].iloc[at] for name, at in (("aer", 0), ("aelr", -1)))
    assert points.tolist() == [begin, series["aer"].mean["attributes"].iloc[1], end]


@pytest.mark.parametrize("spoilt", [False, True])
def test_a_mean_outside_its_band_is_marked(spoilt: bool, tmp_path: Path) -> None:
    for number, algo in enumerate(("aelr", "aer", "ridge")):
        with_errors(tmp_path / str(number), algo, 1.0 + number)
    if spoilt:
        spoil(tmp_path / "1", 1000)
    figure, _, paragraphs = draw_paired(read_series([tmp_path]), Drawing(against="aelr", band="spread"))
    heads = [ax.get_title("left") for ax in figure.axes[:3]]
    assert heads == ["aelr", "aer", "ridge"]
    circles = {
        head: [float(at) for line in ax.lines if line.get_markersize() == 12 for at in line.get_xdata()]
        for head, ax in zip(heads, figure.axes, strict=False)
    }
    place = by_algo(tmp_path)["aer"].mean["attributes"].iloc[-1]
    assert circles == {"aelr": [], "aer": [place] if spoilt else [], "ridge": []}
    said = " ".join(paragraphs[0].split())
    assert ("outside their band, which a few repetitions decide: aer at 620" in said) == spoilt
    # Other differences stay readable: the axis need not show what one repetition decides, of which a number remains.
    below = figure.axes[4:]
    assert all(ax.get_ylim()[1] < 2 for ax in below)
    assert [text.get_text()[:3] for ax in below for text in ax.texts] == (["+25"] if spoilt else [])


def test_each_data_set_has_a_row_with_the_same_learners(tmp_path: Path) -> None:
    for dataset in ("digits_3v5", "mnist_3v5"):
        for algo in ("aelr", "aer"):
            write_run(tmp_path / dataset / algo, algo, dataset)
    figure, *_ = draw_paired(read_series([tmp_path]), Drawing(against="aer"))
    titles = [ax.get_title("left") for ax in figure.axes]
    assert titles == ["aer", "aelr", "", ""] * 2
    texts = [text.get_text() for ax in figure.axes for text in ax.texts]
    assert texts == ["digits_3v5\nk = 4", "mnist_3v5\nk = 4"]
    assert [ax.axison for ax in figure.axes] == [True, True, False, True] * 2


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


def test_a_relative_error_is_that_beside_the_best_of_others_at_each_checkpoint(tmp_path: Path) -> None:
    """The best fixed k changes along the curves, and each is compared in the same repetitions."""
    with_errors(tmp_path / "1", "aelr", 1.5)
    for folder, k, factors in (("2", 2, (1.0, 1.0, 3.0)), ("3", 8, (3.0, 3.0, 1.2))):
        table = pd.read_csv(with_errors(tmp_path / folder, "aer", 1.0) / "curves.csv")
        table["test_relative"] *= table["examples"].map(dict(zip((10, 40, 160), factors, strict=True)))
        table["k"] = k
        table.to_csv(tmp_path / folder / "curves.csv", index=False)
    series = read_series([tmp_path])
    drawing = parse({"kind": "relative", "of": "aelr", "against": "aer"})
    points, ratios = relative_to_best(series, drawing, ATTRIBUTES, RELATIVE)
    assert points.tolist() == by_algo(tmp_path)["aelr"].mean["attributes"].tolist()
    assert [ratio.value for ratio in ratios] == pytest.approx([1.5, 1.5, 1.25])
    assert [(ratio.low, ratio.high) for ratio in ratios] == [pytest.approx((ratio.value,) * 2) for ratio in ratios]
    figure, title, _ = draw_relative(series, drawing)
    assert title.startswith("test error of AELR / that of AER with the best k")
    assert [text.get_text() for text in figure.axes[0].texts] == ["mnist_3v5"]


def test_relative_errors_have_a_panel_for_each_value_and_a_line_for_each_data_set(tmp_path: Path) -> None:
    for number, (dataset, noise) in enumerate((("a", 0.1), ("b", 0.1), ("c", 0.5))):
        for algo in ("aelr", "aer"):
            write_run(tmp_path / f"{number}{algo}", algo, dataset, dataset__noise=noise)
    drawing = parse({"kind": "relative", "of": "aelr", "against": "aer", "columns": "dataset.noise"})
    axes = draw_relative(read_series([tmp_path]), drawing).figure.axes
    assert [[text.get_text().split(",")[0] for text in ax.texts] for ax in axes] == [["a", "b"], ["c"]]
    assert [ax.get_title("left") for ax in axes] == ["0.1", "0.5"]
    with pytest.raises(ConfigError, match=r"figure\.of"):
        parse({"kind": "relative", "against": "aer"})


def test_what_was_paid_includes_tuning_and_markers_grow_with_k(tmp_path: Path) -> None:
    paid_run(tmp_path / "1", 0, 0, algo="aelr")
    paid_run(tmp_path / "2", 0, 0, algo="aelr", k=8)
    paid_run(tmp_path / "3", 1300, N, algo="aer")
    series = [curve for name in "123" for curve in labelled(read_folder(tmp_path / name))]
    (ax,) = draw_bills(series, Drawing()).figure.axes
    small, large, other = ax.lines[:3]
    assert (small.get_xdata()[0], other.get_xdata()[0]) == pytest.approx((639.5, 1939.5))
    assert small.get_markersize() < large.get_markersize()
    assert small.get_ydata()[0] == pytest.approx(series[0].mean["test_relative"].iloc[-1])
    paid_run(tmp_path / "4", 1301, N, algo="aerr")
    (ax,) = draw_bills([*series, *labelled(read_folder(tmp_path / "4"))], Drawing()).figure.axes
    alone, _, left, right = (line.get_xdata()[0] for line in ax.lines[:4])
    assert alone == pytest.approx(639.5)
    assert left < 1939.5 < 1940.5 < right  # learners that paid about the same stand side by side
    assert left * right == pytest.approx(1939.5 * 1940.5)


def test_what_cannot_be_drawn_is_said_in_one_line(tmp_path: Path) -> None:
    for at, (algo, k) in enumerate([("aelr", 2), ("aelr", 4), ("aer", 2)]):
        write_run(tmp_path / str(at), algo, k=k)
    series = read_series([tmp_path])
    relative = Drawing(kind="relative", of="aelr", against={"k": 2})
    with pytest.raises(ConfigError, match="a panel has 2 curves of aelr and 1 others"):
        draw_relative(series, relative)
    with pytest.raises(ConfigError, match=r"figure.over: dataset.center: none is not a number"):
        draw_scaling(series, Drawing(over="dataset.center"))
    with pytest.raises(ConfigError, match=r"effective_examples: .* learns no subspace"):
        draw_scaling(series, Drawing(over="k", x="effective_examples", level=0.5))
    write_run(tmp_path / "3", "aelr", k=2, examples=(20, 80), tuning__folds=5)
    with pytest.raises(ConfigError, match=r"figure.worst: tuning.folds: curves have other numbers of examples"):
        list(worst(read_series([tmp_path]), "tuning.folds", "test_relative"))


def test_points_that_are_not_shown_are_named_with_their_panel(tmp_path: Path) -> None:
    for at, (dataset, shift) in enumerate([("a", 0.0), ("b", -0.5)]):
        write_run(tmp_path / str(at), "aelr", dataset, shift=shift)
    _, _, paragraphs = draw_scaling(read_series([tmp_path]), Drawing(over="k", level=0.5))
    text = " ".join(" ".join(paragraphs).split())
    assert "before the first checkpoint: AELR at 4 (a, k = 4), AELR at 4 (b, k = 4)." in text


@pytest.mark.parametrize("kind", ["paired", "ratios", "relative"])
def test_a_comparison_needs_a_learner_to_compare_with(kind: str) -> None:
    with pytest.raises(ConfigError, match=r"figure\.against"):
        parse({"kind": kind})
    assert parse({"kind": kind, "against": "aelr", "of": "aer" if kind == "relative" else None}).against == "aelr"


def test_a_quick_look_says_so(tmp_path: Path) -> None:
    for number, algo in enumerate(("aelr", "aer")):
        paid_run(tmp_path / str(number), 10, 0, algo=algo)
    series, drawing = read_series([tmp_path]), Drawing(against="aelr", note="quick look")
    figures = (draw_paired(series, drawing), draw_ratios(series, drawing), draw_bills(series, drawing))
    for figure, *_ in figures:
        legends = [*figure.legends, *(ax.get_legend() for ax in figure.axes if ax.get_legend())]
        assert "quick look" in [text.get_text() for legend in legends for text in legend.get_texts()]


def test_further_figures_show_the_same_but_all_k_together() -> None:
    drawing = parse({"also": {"paid": "bills"}, "top": 1.1, "panels": ["dataset", "k"]})
    figures = drawing.figures("curves")
    assert figures["curves"] == drawing
    assert figures["curves_paid"] == replace(drawing, kind="bills", also={}, panels=["dataset"])
    assert parse({"also": {"paid": "bills"}, "panels": "k"}).figures("curves")["curves_paid"].panels == ["dataset"]
    with pytest.raises(ConfigError, match="bars"):
        parse({"also": {"paid": "bars"}})


def test_values_below_the_end_of_the_axis_are_triangles_on_it(tmp_path: Path) -> None:
    write_run(tmp_path / "1", "aelr", shift=-0.2)  # errors 0.75, 0.65, 0.55
    figure, text = drawn(tmp_path, bottom=0.7, y_scale="log")
    (ax,) = figure.axes
    (under,) = (line for line in ax.lines if line.get_marker() == "v" and line.get_linestyle() == "None")
    assert ax.get_ylim()[0] == 0.7
    assert under.get_ydata().tolist() == [0.7, 0.7]
    assert "triangles stand for means below 0.7" in text


@pytest.mark.parametrize(("published_as", "marker", "dash"), [("points", "D", "None"), ("curves", "D", "--")])
def test_published_numbers_are_points_or_curves(published_as: str, marker: str, dash: str, tmp_path: Path) -> None:
    write_run(tmp_path / "1", "aelr")
    points = (np.array([50.0, 600.0]), np.array([0.9, 0.8]))
    drawing = Drawing(published={("aelr", "attributes"): points}, published_as=published_as)
    (ax,) = of_series(read_series([tmp_path]), drawing)[0].axes
    (line,) = (line for line in ax.lines if line.get_xdata()[0] == 50 and len(line.get_xdata()) == 2)
    assert (line.get_marker(), line.get_linestyle()) == (marker, dash)
    assert line.get_ydata().tolist() == [0.9, 0.8]


def test_panels_of_curves_have_the_order_of_their_titles(tmp_path: Path) -> None:
    for number, dataset in enumerate(("first", "second", "third")):
        write_run(tmp_path / str(number), "aelr", dataset)
    figure, _ = drawn(tmp_path, titles={"third": "titled", "second": "second, too"})
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["titled", "second, too", "first, k = 4"]


def test_values_of_zero_lie_above_the_frame_and_a_predictor_beyond_it_has_no_label(tmp_path: Path) -> None:
    write_run(tmp_path / "1", "aelr", shift=-0.75)  # errors 0.15, 0.05 and, in the mean, -0.05
    (ax,) = drawn(tmp_path, y_scale="linear", top=0.5)[0].axes
    assert ax.get_ylim()[0] < min(ax.lines[-1].get_ydata())
    assert "zero predictor" not in [text.get_text() for text in ax.texts]


def test_guides_begin_at_the_learner_whose_slope_is_closest(tmp_path: Path) -> None:
    """The examples that learners need grow with k, and with its square from a higher first point."""
    for number, (algo, k, examples) in enumerate(
        [("aelr", 8, 10), ("aelr", 16, 21), ("aer", 8, 100), ("aer", 16, 410)]
    ):
        write_run(tmp_path / str(number), algo, k=k, examples=(examples // 2, examples, 2 * examples))
    drawing = Drawing(kind="scaling", over="k", level=0.85, x="examples")
    (ax,) = draw_scaling(read_series([tmp_path]), drawing).figure.axes
    guides = {text.get_text(): text.xy for text in ax.texts}
    assert guides["slope 1"] == pytest.approx((16, 2 * 10))
    assert guides["slope 2"] == pytest.approx((16, 4 * 100))
