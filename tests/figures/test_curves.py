"""Figures of curves: their axes, bands, legends and captions."""

from collections.abc import Mapping
from math import log, sqrt
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest

from budgetreg.algorithms.registry import section
from budgetreg.analysis.theory import excess_bound
from budgetreg.data.distributions import Gaussian
from budgetreg.figures import plot, plot_run
from budgetreg.figures.captions import about_config
from budgetreg.figures.looks import style
from budgetreg.runs.series import read_series
from tests.commands import python
from tests.figures.drawn import drawn, labels_of, legend_of
from tests.tiers import slow_but
from tests.written_runs import EXAMPLES, config, edit_manifest, edit_table, write_run


@pytest.mark.usefixtures("sketched")
def test_a_budget_at_prediction_has_a_panel_of_its_own(tmp_path: Path) -> None:
    for algo in ("aelr", "aemr"):
        for predict_k in (None, 2):
            write_run(tmp_path / f"{algo}{predict_k}", algo, predict_k=predict_k)
    target = tmp_path / "figure"
    plot(read_series([tmp_path]), target, "curves")
    text = (target / "curves.txt").read_text()
    for title in ("mnist_3v5, k = 4, predicted from all", "mnist_3v5, k = 4, predicted from 2"):
        assert title in text
    assert "AEMR predict_k" not in text  # as the title says it


@pytest.mark.parametrize("tails", [None, 5])
def test_the_bound_for_normal_data_is_a_line_that_ends_at_its_value(tmp_path: Path, tails: int | None) -> None:
    data = {"d": 6, "n": 100, "n_test": 100, "rho": 0.5, "n_factors": 0, "tails": tails, "support": None, "noise": 0.2}
    options = {f"dataset__{key}": value for key, value in data.items()}
    run = write_run(tmp_path / "run", "aer", "gaussian", 3, d=6, dataset__kind="gaussian", **options)
    figure, text = drawn(run, bound=True)
    lines = [line for line in figure.axes[0].lines if line.get_label() == "bound"]
    if tails is not None:
        assert not lines
        return
    joints = [Gaussian(**data).covariance(0, repetition) for repetition in range(2)]
    bound = np.mean([excess_bound(C, 3) for C in joints if C is not None])
    (line,) = lines
    x, y = np.array(line.get_xdata()), np.array(line.get_ydata())
    assert y[-1] == pytest.approx(0.2 + bound * 3 / x[-1])
    assert "subsets of 3 attributes" in text
    assert "bound" in legend_of(figure)
    assert not [line for line in drawn(run)[0].axes[0].lines if line.get_label() == "bound"]


@pytest.mark.usefixtures("laid_out")
@pytest.mark.slow
def test_the_same_curves_give_the_same_bytes_in_any_process(tmp_path: Path) -> None:
    folders = [write_run(tmp_path / "a"), write_run(tmp_path / "b", algo="aer"), write_run(tmp_path / "c", k=8)]
    before = dict(matplotlib.rcParams)
    with matplotlib.rc_context({"font.size": 20, "font.family": "serif", "lines.linewidth": 9}):
        written = plot(read_series(folders), tmp_path / "new/folder", "fig1")
    assert dict(matplotlib.rcParams) == before
    script = "import sys; from pathlib import Path; from budgetreg.figures import plot\n"
    script += "from budgetreg.runs.series import read_series\n"
    script += "plot(read_series(map(Path, sys.argv[1:])), Path(), 'fig1')"
    here = tmp_path / "here"
    here.mkdir()
    python("-c", script, *reversed(folders), folder=here, timeout=300, PYTHONHASHSEED="7").check_returncode()
    first = [path.read_bytes() for path in written]
    assert [(here / path.name).read_bytes() for path in written] == first
    assert b"CreationDate" not in first[1]
    assert b"atplotlib" not in first[0] + first[1]


def test_the_caption_says_how_the_figure_was_made_without_paths(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", dataset__center="full", tuning__at="each", seed=17)
    text = drawn(folder)[1]
    for said in (
        "mnist_3v5, aelr",
        "k = 4, 2 repetitions, 3 checkpoints, the last at 160 examples",
        "10-fold cross-validation, chosen again at each checkpoint",
        "centred by the means of the full training part",
        "split of the budget literal",
        "random split, 10 % for testing",
        "seed: 17",
        "B = 2, on the edge of the grid in 1 of 2 repetitions",
        "90 % intervals of the mean",
    ):
        assert said in text
    assert "/somewhere" not in text
    assert str(tmp_path) not in text


def test_the_caption_says_what_is_missing(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    edit_manifest(folder, config=config(repetitions=10))
    assert "2 repetitions (of 10 asked for)" in drawn(folder)[1]


def test_the_caption_says_once_what_all_curves_share(tmp_path: Path) -> None:
    write_run(tmp_path / "1")
    write_run(tmp_path / "2", algo="aer", algo__average="last")
    text = drawn(tmp_path)[1]
    assert text.count("attributes not centred") == 1
    assert text.index("attributes not centred") < text.index("mnist_3v5, aelr")
    assert text.index("mnist_3v5, aer") < text.index("last iterate")


def test_the_caption_has_every_setting_that_changes_results() -> None:
    text = "\n".join(about_config(config(algo__novelty=7, dataset__alpha=-0.5)))
    assert "algo.novelty=7" in text
    assert "dataset.alpha=-0.5" in text


@pytest.mark.parametrize(
    ("learners", "said"),
    [
        (("aemr", "fixed_subset", "ridge"), "prices: of c2.csv"),
        (("aelr", "ddaelr"), "prices: of c2.csv"),  # of one kind
        (("fixed_subset", "ridge"), "prices: of c2.csv; the draws ignore them"),
        (("aemr",), "prices: of c2.csv; the draws are price-aware"),
    ],
)
def test_the_caption_says_of_all_learners_what_holds_for_each(learners: tuple[str, ...], said: str) -> None:
    configs = ({**config(dataset__costs="prices/c2.csv"), "algo": section(learner)} for learner in learners)
    assert said in about_config(*configs)


def test_learners_of_one_kind_that_solve_different_problems_share_the_other_words() -> None:
    configs = ({**config(), "algo": section(learner)} for learner in ("cocolasso", "corrected_ridge"))
    assert "learner: k attributes per example" in about_config(*configs)


def test_each_data_set_has_a_panel_and_each_label_one_colour(tmp_path: Path) -> None:
    write_run(tmp_path / "1")
    write_run(tmp_path / "2", algo__split="even")
    write_run(tmp_path / "3", dataset="digits_3v5", algo__split="even")
    write_run(tmp_path / "4", dataset="power_law")
    figure, _ = drawn(tmp_path)
    panels = figure.axes
    assert [ax.get_title("left") for ax in panels] == ["digits_3v5, k = 4", "mnist_3v5, k = 4", "power_law, k = 4"]
    # Each panel has a line at the zero predictor's error and one per series.
    assert [len(ax.lines) for ax in panels] == [2, 3, 2]
    assert len({line.get_color() for line in panels[1].lines[1:]}) == 2


def test_compared_panels_have_the_same_y_axis(tmp_path: Path) -> None:
    write_run(tmp_path / "1")
    write_run(tmp_path / "2", dataset="digits_3v5", shift=-0.5)
    assert len({ax.get_ylim() for ax in drawn(tmp_path)[0].axes}) == 1
    assert len({ax.get_ylim() for ax in drawn(tmp_path, share_y=False)[0].axes}) == 2


@pytest.mark.usefixtures("laid_out")
def test_panels_in_one_row_have_a_legend_below_that_begins_with_the_named_learners(tmp_path: Path) -> None:
    for dataset in ("power_law", "digits_3v5", "wine"):
        for algo in ("aelr", "aemr", "ridge"):
            write_run(tmp_path / dataset / algo, algo=algo, dataset=dataset)
    figure, _ = drawn(tmp_path, row=True, named=["aemr"])
    figure.draw_without_rendering()
    panels = [ax.get_window_extent() for ax in figure.axes]
    assert len({round(panel.y0) for panel in panels}) == 1
    assert not any(ax.texts for ax in figure.axes)
    assert legend_of(figure)[:3] == ["aemr", "aelr", "ridge"]
    assert [bool(ax.get_xlabel()) for ax in figure.axes] == [False, True, False]
    assert max(panel.x1 for panel in panels) <= figure.bbox.x1
    below = figure.axes[1].xaxis.label.get_window_extent()
    assert below.y0 > figure.legends[0].get_window_extent().y1 - 1


@pytest.mark.usefixtures("laid_out")
def test_lines_have_labels_at_their_ends_in_the_order_of_the_last_errors(tmp_path: Path) -> None:
    for algo, shift in (("aemr", -0.5), ("aer", 0.0), ("aelr", -0.001), ("ridge", -0.3)):
        write_run(tmp_path / algo, algo=algo, shift=shift)
    figure, _ = drawn(tmp_path)
    (ax,) = figure.axes
    assert labels_of(ax) == ["zero predictor", "aer", "aelr", "ridge", "aemr"]
    places = sorted(text.get_window_extent().y0 for text in ax.texts)
    height = ax.texts[0].get_window_extent().height
    assert min(np.diff(places)) > 0.9 * height  # labels do not overlap, though aer and aelr do
    assert {text.get_weight() for text in ax.texts if text.get_text() == "aemr"} == {"bold"}
    assert legend_of(figure) == ["2 repetitions: too few for a band"]


@pytest.mark.usefixtures("laid_out")
def test_labels_that_do_not_fit_are_in_the_legend(tmp_path: Path) -> None:
    for k in range(1, 25):
        write_run(tmp_path / str(k), k=k, repetitions=1)
    figure, _ = drawn(tmp_path)
    assert labels_of(figure.axes[0]) == []
    assert {f"aelr k={k}" for k in range(1, 25)} < set(legend_of(figure))


def test_learners_that_a_recipe_does_not_name_are_thin_and_have_no_band(tmp_path: Path) -> None:
    for algo in ("aemr", "aer", "aelr"):
        write_run(tmp_path / algo, algo=algo, repetitions=6)
    (ax,) = drawn(tmp_path, named=["aemr", "aer"])[0].axes
    lines = {line.get_label(): line for line in ax.lines}
    assert {algo: lines[algo].get_color() for algo in ("aemr", "aelr")} == {
        a: style(a).colour for a in ("aemr", "aelr")
    }
    assert lines["aelr"].get_linewidth() < lines["aer"].get_linewidth() < lines["aemr"].get_linewidth()
    assert set(labels_of(ax)) == {"zero predictor", "aemr", "aer", "aelr"}
    assert len(ax.collections) == 2


def test_the_legend_defines_the_band(tmp_path: Path) -> None:
    write_run(tmp_path / "1", repetitions=5)
    assert legend_of(drawn(tmp_path)[0]) == ["band: 90 % interval of the mean, 5 repetitions"]
    write_run(tmp_path / "2", algo="aer", repetitions=1)
    figure, _ = drawn(tmp_path)
    assert legend_of(figure) == ["band: 90 % interval of the mean, repetitions"]
    assert set(labels_of(figure.axes[0])) == {"aelr (5 repetitions)", "aer (1 repetition)", "zero predictor"}


@pytest.mark.usefixtures("sketched")
def test_runs_at_equal_examples_are_drawn_against_examples(tmp_path: Path) -> None:
    run = write_run(tmp_path / "one", axis="examples")
    (ax,) = drawn(run)[0].axes
    assert ax.lines[1].get_xdata().tolist() == list(EXAMPLES)
    assert ax.get_xlabel() == "training examples (log scale)"
    text = plot(read_series([run]), run, "curves")[2].read_text()
    assert text.startswith("curves: test error against training examples\n\nx: training")
    (ax,) = drawn(run, write_run(tmp_path / "two", algo="aer"))[0].axes
    assert ax.lines[1].get_xdata().tolist() == [39.5, 159.5, 639.5]
    assert "attributes" in ax.get_xlabel()


def test_the_svr_loss_is_drawn_if_all_learners_have_it(tmp_path: Path) -> None:
    run = write_run(tmp_path / "one", algo="aesvr")
    edit_table(run / "curves.csv", test_svr_loss=lambda curves: curves["test_relative"] / 2)
    (ax,) = drawn(run)[0].axes
    (line,) = ax.lines  # of whose zero predictor nothing is known
    assert line.get_ydata().tolist() == pytest.approx([0.95 / 2, 0.85 / 2, 0.75 / 2])
    low, high = ax.get_ylim()
    assert low < 0.75 / 2 < 0.95 / 2 < high < 1
    assert "residual" in ax.get_ylabel()
    text = drawn(run)[1]
    assert "max(|residual| - delta, 0)" in text
    assert "answers zero" not in text
    (ax,) = drawn(run, write_run(tmp_path / "two", algo="aerr"))[0].axes
    assert ax.lines[1].get_ydata().tolist() == pytest.approx([0.95, 0.85, 0.75])


LONG = (100, 10_000, 1_000_000)
THEOREMS = {  # learner -> what its theorem allows with B = 2 and d = 2, in the loss without 1/2
    "aelr": lambda m: 8 * 2**2 * sqrt(10 * 2 * log(4) / (3 * m)),  # k_x = 3 of k = 4
    "aerr": lambda m: 8 * 2**2 * sqrt(2 * 2 / (2 * m)),  # k_x = 2, an even split
    "online_lasso": lambda m: 8 * 2**2 * sqrt(5 * log(4) / m),
    "online_ridge": lambda m: 8 * 2**2 / sqrt(m),
}


def bounded_run(folder: Path, algo: str, **changes: Any) -> Path:
    partial = algo in ("aelr", "aerr")
    composition = {
        "algo__core": "partial" if partial else "exact",
        "algo__update": "eg" if algo in ("aelr", "online_lasso") else "ogd",
        "algo__data_point": "uniform" if partial else None,
        "algo__literal_split": "one",
        "algo__split": "even" if algo == "aerr" else "literal",
        "dataset__kind": "sphere",
    }
    return write_run(folder, algo, **{"dataset": "sphere", "examples": LONG, "d": 2, **composition, **changes})


@pytest.mark.parametrize("algo", slow_but(["aelr", "online_ridge"], THEOREMS))
def test_a_bound_has_the_value_of_its_theorem(tmp_path: Path, algo: str) -> None:
    figure, text = drawn(bounded_run(tmp_path / "run", algo))
    _, curve, bound = figure.axes[0].lines
    assert bound.get_ydata().tolist() == pytest.approx([0.75 + THEOREMS[algo](m) for m in LONG])
    assert bound.get_xdata().tolist() == curve.get_xdata().tolist()
    assert bound.get_color() == curve.get_color()
    assert bound.get_linestyle() != curve.get_linestyle()
    assert [text.get_text() for text in figure.legends[0].get_texts()][-1] == "bound of the theorem"
    assert "in place of the unknown risk of the best regressor" in text


def test_bounds_start_from_the_least_error_of_all_learners(tmp_path: Path) -> None:
    write_run(tmp_path / "aer", algo="aer", dataset="sphere", examples=LONG, shift=-0.2)
    bounded_run(tmp_path / "aelr", "aelr")
    (ax,) = drawn(tmp_path)[0].axes
    (bound,) = (line for line in ax.lines if line.get_linewidth() < 1 and len(line.get_xdata()) == len(LONG))
    assert bound.get_ydata()[-1] == pytest.approx(0.55 + THEOREMS["aelr"](LONG[-1]))


@pytest.mark.parametrize(
    ("algo", "changes", "said"),
    [
        ("aelr", {"examples": EXAMPLES}, "they lie above the zero predictor's error (aelr)"),
        ("aerr", {"dataset__kind": "mnist"}, "the data may violate the assumptions"),
        ("aelr", {"dataset__center": "full"}, "the data may violate the assumptions"),
        ("aelr", {"algo__average": "last"}, None),
        ("aelr", {"algo__data_point": "subset"}, None),
        ("aelr", {"algo__update": "pegasos"}, None),
    ],
)
def test_vacuous_bounds_are_not_drawn(tmp_path: Path, algo: str, changes: Mapping[str, Any], said: str | None) -> None:
    figure, text = drawn(bounded_run(tmp_path / "run", algo, **changes))
    assert len(figure.axes[0].lines) == 2
    assert "bound" not in figure.legends[0].get_texts()[-1].get_text()
    assert (said in text) if said else ("bounds are omitted" not in text)


def test_a_remark_on_several_panels_is_made_once(tmp_path: Path) -> None:
    for dataset in ("first", "second", "third"):
        bounded_run(
            tmp_path / dataset, "aerr", dataset=dataset, dataset__kind="sphere" if dataset == "third" else "mnist"
        )
    outside = "the data may violate the assumptions"
    omitted = f"Theoretical bounds are omitted: {outside}"
    assert f" all panels: {omitted}" in drawn(tmp_path / "first", tmp_path / "second")[1]
    assert f" first, k = 4; second, k = 4: {omitted}" in drawn(tmp_path)[1]


def test_targets_beyond_the_radius_have_no_bound(tmp_path: Path) -> None:
    folder = bounded_run(tmp_path / "run", "aelr")
    edit_table(folder / "runs.csv", p_B=[2.0, 0.5])
    figure, text = drawn(folder)
    assert len(figure.axes[0].lines) == 2
    assert "|y| <= B" in text


@pytest.mark.slow
def test_the_figure_of_a_run_leaves_out_runs_in_folders_below(tmp_path: Path) -> None:
    names = [path.name for path in plot_run(write_run(tmp_path / "run"))]
    assert names == ["curve.png", "curve.pdf", "curve.txt"]
    alone = [(tmp_path / "run" / name).read_bytes() for name in names]
    write_run(tmp_path / "run" / "below" / "it", algo="aer")
    plot_run(tmp_path / "run")
    assert [(tmp_path / "run" / name).read_bytes() for name in names] == alone
    plot(read_series([tmp_path / "run"]), tmp_path / "run", "curves")
    assert "AER" in (tmp_path / "run" / "curves.txt").read_text().split()


def test_errors_of_runs_with_an_intercept_are_relative_to_the_mean_predictor(tmp_path: Path) -> None:
    none = write_run(tmp_path / "none", "aer", intercept="none")
    mean = write_run(tmp_path / "mean", "aelr", intercept="mean")
    assert "always answers zero" in drawn(none)[1]
    assert "always answers the mean of the training targets" in drawn(mean)[1]
    assert "the mean of the training targets for learners with an intercept, and else zero" in drawn(none, mean)[1]
