"""Figures of curves: their axes, bands, legends and captions."""

import os
import subprocess
import sys
from collections.abc import Mapping
from math import log, sqrt
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd
import pytest

import budgetreg
from budgetreg.config import catalogue
from budgetreg.figures.captions import about_config, caption
from budgetreg.figures.curves import draw, plot_run, plot_series
from budgetreg.figures.palette import style
from budgetreg.results.series import read_series
from tests.written_runs import EXAMPLES, add_svr_loss, config, edit_manifest, write_run


def test_a_figure_is_an_image_a_document_and_a_caption(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    assert plot_series(read_series([folder]), folder, "curves") == [
        folder / f"curves.{ending}" for ending in ("png", "pdf", "txt")
    ]
    assert all((folder / f"curves.{ending}").stat().st_size for ending in ("png", "pdf", "txt"))
    assert len(list(folder.iterdir())) == 6


@pytest.mark.slow
def test_the_same_curves_give_the_same_bytes_in_any_process(tmp_path: Path) -> None:
    folders = [
        write_run(tmp_path / "a"),
        write_run(tmp_path / "b", algo="aer"),
        write_run(tmp_path / "c", k=8),
    ]
    before = dict(matplotlib.rcParams)
    with matplotlib.rc_context({"font.size": 20, "font.family": "serif", "lines.linewidth": 9}):
        written = plot_series(read_series(folders), tmp_path / "new/folder", "fig1")
    assert dict(matplotlib.rcParams) == before
    script = "import sys; from pathlib import Path; from budgetreg.figures.curves import plot_series\n"
    script += "from budgetreg.results.series import read_series\n"
    script += "plot_series(read_series(map(Path, sys.argv[1:])), Path(), 'fig1')"
    arguments = [sys.executable, "-c", script, *map(str, reversed(folders))]
    here = tmp_path / "here"
    here.mkdir()
    package = str(Path(budgetreg.__file__).parents[1])
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": package}
    subprocess.run(arguments, check=True, cwd=here, env=environment, timeout=300)
    first = [path.read_bytes() for path in written]
    assert [(here / path.name).read_bytes() for path in written] == first
    assert b"CreationDate" not in first[1]
    assert b"atplotlib" not in first[0] + first[1]


def test_the_caption_says_how_the_figure_was_made_without_paths(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", dataset__center="full", tuning__at="each", seed=17)
    text = caption("fig", read_series([folder]), [])
    flowing = " ".join(text.split())
    for said in (
        "mnist_3v5, aelr",
        "k = 4, 2 repetitions, 3 checkpoints, the last at 160 examples",
        "10-fold cross-validation, a choice of its own at each checkpoint",
        "centred by the means of the full training part",
        "split of the budget literal",
        "random split, 10 % for testing",
        "seed: 17",
        "B = 2, on the edge of the grid in 1 of 2 repetitions",
        "one standard deviation over repetitions",
    ):
        assert said in flowing
    assert "/somewhere" not in text
    assert str(tmp_path) not in text


def test_the_caption_says_what_is_missing(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    edit_manifest(folder, config=config(repetitions=10))
    assert "2 repetitions (of 10 asked for)" in caption("fig", read_series([folder]), [])


def test_the_caption_says_once_what_all_curves_share(tmp_path: Path) -> None:
    write_run(tmp_path / "1")
    write_run(tmp_path / "2", algo="aer", algo__average="last")
    text = caption("fig", read_series([tmp_path]), [])
    assert text.count("attributes not centred") == 1
    assert text.index("attributes not centred") < text.index("mnist_3v5, aelr")
    assert text.index("mnist_3v5, aer") < text.index("last iterate")


def test_the_caption_has_every_setting_that_changes_results() -> None:
    text = "\n".join(about_config(config(algo__novelty=7, dataset__alpha=-0.5)))
    assert "algo.novelty=7" in text
    assert "dataset.alpha=-0.5" in text


def test_each_data_set_has_a_panel_and_each_label_one_dash(tmp_path: Path) -> None:
    write_run(tmp_path / "1")
    write_run(tmp_path / "2", algo__split="even")
    write_run(tmp_path / "3", dataset="digits_3v5", algo__split="even")
    write_run(tmp_path / "4", dataset="power_law")
    figure, _ = draw(read_series([tmp_path]))
    visible = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_title("left") for ax in visible] == [
        "digits_3v5, k = 4",
        "mnist_3v5, k = 4",
        "power_law, k = 4",
    ]
    # Each panel has a line at the zero predictor's error and one per series.
    assert [len(ax.lines) for ax in visible] == [2, 3, 2]
    dashes = [line.get_linestyle() for line in visible[1].lines[1:]]
    assert len(set(dashes)) == 2


def test_the_legend_defines_the_band(tmp_path: Path) -> None:
    figure, _ = draw(read_series([write_run(tmp_path / "1")]))
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "aelr",
        "band: mean ± one s.d. over 2 repetitions",
    ]
    other = write_run(tmp_path / "2", algo="aer", repetitions=1)
    texts = [text.get_text() for text in draw(read_series([tmp_path / "1", other]))[0].legends[0].get_texts()]
    assert texts == ["aelr (2 repetitions)", "aer (1 repetition)", "band: mean ± one s.d. over repetitions"]


def test_runs_at_equal_examples_are_drawn_against_examples(tmp_path: Path) -> None:
    run = write_run(tmp_path / "one", axis="examples")
    (ax,) = draw(read_series([run]))[0].axes
    assert ax.lines[1].get_xdata().tolist() == list(EXAMPLES)
    assert ax.get_xlabel() == "training examples (log scale)"
    text = plot_series(read_series([run]), run, "curves")[2].read_text()
    assert text.startswith("curves: test error against training examples\n\nx: training")
    (ax,) = draw(read_series([run, write_run(tmp_path / "two", algo="aer")]))[0].axes
    assert ax.lines[1].get_xdata().tolist() == [39.5, 159.5, 639.5]
    assert "attributes" in ax.get_xlabel()


def test_the_svr_loss_is_drawn_if_all_learners_have_it(tmp_path: Path) -> None:
    run = add_svr_loss(write_run(tmp_path / "one", algo="aesvr"))
    (ax,) = draw(read_series([run]))[0].axes
    (line,) = ax.lines  # of whose zero predictor nothing is known
    assert line.get_ydata().tolist() == pytest.approx([0.95 / 2, 0.85 / 2, 0.75 / 2])
    low, high = ax.get_ylim()
    assert low < 0.75 / 2 < 0.95 / 2 < high < 1
    assert "residual" in ax.get_ylabel()
    text = caption("fig", read_series([run]), [])
    assert "max(|residual| - delta, 0)" in text
    assert "answers zero" not in text
    (ax,) = draw(read_series([run, write_run(tmp_path / "two", algo="aerr")]))[0].axes
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


@pytest.mark.parametrize("algo", THEOREMS)
def test_a_bound_has_the_value_of_its_theorem(tmp_path: Path, algo: str) -> None:
    figure, remarks = draw(read_series([bounded_run(tmp_path / "run", algo)]))
    _, curve, bound = figure.axes[0].lines
    assert bound.get_ydata().tolist() == pytest.approx([0.75 + THEOREMS[algo](m) for m in LONG])
    assert bound.get_xdata().tolist() == curve.get_xdata().tolist()
    assert bound.get_color() == curve.get_color()
    assert bound.get_linestyle() != curve.get_linestyle()
    assert [text.get_text() for text in figure.legends[0].get_texts()][-1] == "bound of the theorem"
    assert "in place of the unknown risk of the best regressor" in remarks[0]


def test_bounds_start_from_the_least_error_of_all_learners(tmp_path: Path) -> None:
    write_run(tmp_path / "aer", algo="aer", dataset="sphere", examples=LONG, shift=-0.2)
    bounded_run(tmp_path / "aelr", "aelr")
    (ax,) = draw(read_series([tmp_path]))[0].axes
    (bound,) = (line for line in ax.lines if line.get_linewidth() < 1 and len(line.get_xdata()) == len(LONG))
    assert bound.get_ydata()[-1] == pytest.approx(0.55 + THEOREMS["aelr"](LONG[-1]))


@pytest.mark.parametrize(
    ("algo", "changes", "said"),
    [
        ("aelr", {"examples": EXAMPLES}, "they lie above the zero predictor's error (aelr)"),
        ("aerr", {"dataset__kind": "mnist"}, "the data may lie outside what the theorems assume"),
        ("aelr", {"dataset__center": "full"}, "the data may lie outside what the theorems assume"),
        ("aelr", {"dataset__kind": "file"}, "the data may lie outside what the theorems assume"),
        ("aelr", {"algo__average": "last"}, None),
        ("aelr", {"algo__data_point": "subset"}, None),
        ("aelr", {"algo__update": "pegasos"}, None),
    ],
)
def test_vacuous_bounds_are_not_drawn(tmp_path: Path, algo: str, changes: Mapping[str, Any], said: str | None) -> None:
    figure, remarks = draw(read_series([bounded_run(tmp_path / "run", algo, **changes)]))
    assert len(figure.axes[0].lines) == 2
    assert "bound" not in figure.legends[0].get_texts()[-1].get_text()
    assert [said in remark for remark in remarks] == ([True] if said else [])


def test_targets_beyond_the_radius_have_no_bound(tmp_path: Path) -> None:
    folder = bounded_run(tmp_path / "run", "aelr")
    runs = pd.read_csv(folder / "runs.csv")
    runs["p_B"] = [2.0, 0.5]
    runs.to_csv(folder / "runs.csv", index=False)
    figure, remarks = draw(read_series([folder]))
    assert len(figure.axes[0].lines) == 2
    assert "|y| <= B" in remarks[0]


def test_no_two_learners_share_colour_and_marker() -> None:
    names = catalogue.options("algo")
    assert len(set(map(style, names))) == len(names)
    figures = [
        ["aelr", "aer", "lasso", "online_lasso"],
        ["aerr", "aer", "ridge", "lasso", "baseline", "aeml", "impute_ridge"],
        ["ddaerr", "ddaerr_two_phase", "aerr", "online_ridge", "ridge"],
        ["ddaelr", "ddaelr_two_phase", "aelr", "online_lasso", "lasso"],
        ["popca", "popca_importance", "pca", "oja", "grouse", "petrels", "mbeg", "mbeg_plus", "aefa"],
    ]
    for learners in figures:
        assert len({style(algo).colour for algo in learners}) == len(learners)
    assert style("somebody's new one") == style("somebody's new one")


@pytest.mark.slow
def test_the_figure_of_a_run_leaves_out_runs_in_folders_below(tmp_path: Path) -> None:
    names = [path.name for path in plot_run(write_run(tmp_path / "run"))]
    assert names == ["curve.png", "curve.pdf", "curve.txt"]
    alone = [(tmp_path / "run" / name).read_bytes() for name in names]
    write_run(tmp_path / "run" / "below" / "it", algo="aer")
    plot_run(tmp_path / "run")
    assert [(tmp_path / "run" / name).read_bytes() for name in names] == alone
    plot_series(read_series([tmp_path / "run"]), tmp_path / "run", "curves")
    assert "aer" in (tmp_path / "run" / "curves.txt").read_text().split()


def test_errors_of_runs_with_an_intercept_are_relative_to_the_mean_predictor(tmp_path: Path) -> None:
    folders = [tmp_path / "none", tmp_path / "mean"]
    for folder in folders:
        choices = {"dataset": "diabetes", "k": 4, "tuning": "theory", "repetitions": 1, "checkpoints": 2}
        budgetreg.run({**choices, "intercept": folder.name, "out": str(folder)})
    answers = (
        ["always answers zero"],
        ["always answers the mean of the training targets"],
        ["to learners with an", "zero"],
    )
    for drawn, said in zip(([folders[0]], [folders[1]], folders), answers, strict=True):
        text = " ".join(caption("title", read_series(drawn), []).split())
        for words in said:
            assert words in text
