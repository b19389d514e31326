"""Reading, merging and drawing curves: numbers through public functions, figures through their files."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from math import log, sqrt
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import budgetreg
from budgetreg.captions import about_config, caption
from budgetreg.curves import find_folders, mean_curve, read_series
from budgetreg.errors import DataError
from budgetreg.labels import differences
from budgetreg.palette import STYLES, style
from budgetreg.plots import draw, plot_folders
from budgetreg.schema import CURVE_COLUMNS

EXAMPLES = (10, 40, 160)


def config(algo: str = "aelr", dataset: str = "mnist_3v5", k: int = 4, **changes: Any) -> dict[str, Any]:
    """Build a resolved configuration; a change is written ``algo__split="even"``."""
    resolved: dict[str, Any] = {
        "experiment": "",
        "algo": {
            "name": algo,
            "core": "partial",
            "update": "eg",
            "split": "literal",
            "average": "all",
            "grid": {"B": [1.0, 2.0]},
        },
        "dataset": {
            "name": dataset,
            "root": "/somewhere/data",
            "center": "none",
            "split": "random",
            "test_fraction": 0.1,
        },
        "tuning": {"name": "cv", "at": "end", "folds": 10},
        "backend": {"name": "loky", "batch_size": 64},
        "k": k,
        "repetitions": 2,
        "seed": 0,
        "checkpoints": 3,
        "n_jobs": 1,
        "out": "/somewhere/out",
    }
    for key, value in changes.items():
        *groups, last = key.split("__")
        level = resolved
        for group in groups:
            level = level[group]
        level[last] = value
    return resolved


def write_run(
    folder: Path,
    algo: str = "aelr",
    dataset: str = "mnist_3v5",
    k: int = 4,
    repetitions: int = 2,
    shift: float = 0.0,
    examples: Sequence[int] = EXAMPLES,
    d: int = 784,
    **changes: Any,
) -> Path:
    """Write what a run leaves; repetition r is charged r attributes less than k per example would be."""
    rows = [
        {
            "experiment": "",
            "algo": algo,
            "dataset": dataset,
            "k": k,
            "repetition": repetition,
            "examples": seen,
            "attributes": k * seen - repetition,
            "test_mse": 0.9 + shift + repetition / 10 - at / 10,
            "test_relative": 0.9 + shift + repetition / 10 - at / 10,
            "test_error_rate": 0.1,
        }
        for repetition in range(repetitions)
        for at, seen in enumerate(examples)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows, columns=list(CURVE_COLUMNS)).to_csv(folder / "curves.csv", index=False)
    runs = pd.DataFrame({"repetition": range(repetitions), "p_B": 2.0, "edge": ["B:high"] + [""] * (repetitions - 1)})
    runs.to_csv(folder / "runs.csv", index=False)
    resolved = config(algo, dataset, k, repetitions=repetitions, **changes)
    (folder / "manifest.json").write_text(json.dumps({"config": resolved, "data": {"d": d}, "schema_version": 1}))
    return folder


def add_svr_loss(folder: Path) -> Path:
    """Let the curves of a run have a column of SVR losses, half of the other errors."""
    table = pd.read_csv(folder / "curves.csv")
    table["test_svr_loss"] = table["test_relative"] / 2
    table.to_csv(folder / "curves.csv", index=False)
    return folder


def labels(*folders: Path) -> list[str]:
    return [series.label for series in read_series(folders)]


def test_repetitions_are_grouped_by_examples_although_attributes_differ(tmp_path: Path) -> None:
    (series,) = read_series([write_run(tmp_path / "run")])
    curve = mean_curve(series.points)
    assert curve["examples"].tolist() == [10, 40, 160]
    assert curve["attributes"].tolist() == [39.5, 159.5, 639.5]
    assert curve["repetitions"].tolist() == [2, 2, 2]
    assert curve["test_relative"].tolist() == pytest.approx([0.95, 0.85, 0.75])
    assert curve["test_relative_sd"].tolist() == pytest.approx([np.std([0, 0.1], ddof=1)] * 3)


def test_one_repetition_has_no_standard_deviation_and_no_band(tmp_path: Path) -> None:
    one = read_series([write_run(tmp_path / "one", repetitions=1)])
    assert mean_curve(one[0].points)["test_relative_sd"].isna().all()
    assert len(draw(one)[0].axes[0].collections) == 0
    two = read_series([write_run(tmp_path / "two", repetitions=2)])
    assert len(draw(two)[0].axes[0].collections) == 1


def test_an_undefined_error_is_not_averaged_away(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    table = pd.read_csv(folder / "curves.csv")
    table.loc[0, "test_relative"] = np.nan
    table.to_csv(folder / "curves.csv", index=False)
    curve = mean_curve(read_series([folder])[0].points)
    assert curve["test_relative"].isna().tolist() == [True, False, False]


def test_folders_are_found_below_those_given_once_and_in_order(tmp_path: Path) -> None:
    for name in ("b", "a/2", "a/1"):
        write_run(tmp_path / name)
    assert find_folders([tmp_path]) == [tmp_path / "a/1", tmp_path / "a/2", tmp_path / "b"]
    assert find_folders([tmp_path / "b", tmp_path]) == [tmp_path / "b", tmp_path / "a/1", tmp_path / "a/2"]


def test_a_label_says_k_only_if_several_occur(tmp_path: Path) -> None:
    four, aer = write_run(tmp_path / "4"), write_run(tmp_path / "aer", algo="aer")
    assert labels(four, aer) == ["aelr", "aer"]
    assert labels(four, write_run(tmp_path / "8", k=8)) == ["aelr k=4", "aelr k=8"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"algo__split": "even"}, ["aelr split=even", "aelr split=literal"]),
        ({"dataset__split": "official"}, ["aelr dataset.split=official", "aelr dataset.split=random"]),
        ({"seed": 1, "algo__average": "suffix"}, ["aelr average=all seed=0", "aelr average=suffix seed=1"]),
        ({"tuning": {"name": "fixed", "values": {"B": 1.0}}}, ["aelr tuning=cv", "aelr tuning=fixed"]),
        (
            {"tuning": {"name": "cv", "at": "each", "folds": 10}},
            ["aelr tuning.at=each", "aelr tuning.at=end"],
        ),
        ({"algo__grid": {"B": [3.0]}}, ["aelr grid.B=[1,2]", "aelr grid.B=[3]"]),
    ],
)
def test_runs_of_one_learner_are_told_apart_by_the_keys_that_differ(
    tmp_path: Path, changes: Mapping[str, Any], expected: list[str]
) -> None:
    folders = write_run(tmp_path / "one"), write_run(tmp_path / "two", shift=0.1, **changes)
    assert labels(*folders) == expected


def test_runs_that_differ_only_in_what_changes_no_result_are_one_series(tmp_path: Path) -> None:
    few = write_run(tmp_path / "few", repetitions=2)
    many = write_run(tmp_path / "many", repetitions=5, n_jobs=8, out="/elsewhere", experiment="paper/fig1")
    for order in ([few, many], [many, few]):
        (series,) = read_series(order)
        assert (series.label, series.repetitions, len(series.points)) == ("aelr", 5, 15)
        assert sorted(series.runs["repetition"]) == [0, 1, 2, 3, 4]


def test_results_that_contradict_each_other_are_not_merged(tmp_path: Path) -> None:
    folders = write_run(tmp_path / "old/run"), write_run(tmp_path / "new/run", shift=0.1)
    assert labels(*folders) == ["aelr (new/run)", "aelr (old/run)"]


@given(st.lists(st.fixed_dictionaries({"a": st.floats(0, 1), "b": st.sampled_from([None, "x", "y"])}), min_size=1))
def test_differences_are_equal_only_for_equal_configurations(configs: list[dict[str, Any]]) -> None:
    texts = differences(configs)
    for text, one in zip(texts, configs, strict=True):
        for other_text, other in zip(texts, configs, strict=True):
            assert (text == other_text) == (one == other)


def test_floats_are_read_back_exactly(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", repetitions=1)
    values = [0.1 + 0.2, 1 / 3, 2.225073858507203e-308]
    table = pd.read_csv(folder / "curves.csv")
    table["test_relative"] = values
    table.to_csv(folder / "curves.csv", index=False)
    assert read_series([folder])[0].points["test_relative"].tolist() == values


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "empty"),
        (",".join(CURVE_COLUMNS) + "\n", "no finished repetition"),
        ("algo,dataset,k,repetition,examples,attributes,excess_loss\npca,m,4,0,1,4,.1\n", "test_mse"),
        (",".join(CURVE_COLUMNS) + "\n,aelr,m,4,0,ten,40,1,1,\n", "column examples"),
        (",".join(CURVE_COLUMNS) + "\n,aelr,m,4,0,10,40,much,1,\n", "column test_mse"),
        (",".join(CURVE_COLUMNS) + "\n" + "a," * 9 + "b\n" + "b," * 40 + "\n", "cannot be read"),
        (b"\xff\xfe\x00", "cannot be read"),
    ],
)
def test_bad_curves_are_refused_in_one_line(tmp_path: Path, content: str | bytes, says: str) -> None:
    folder = write_run(tmp_path / "run")
    (folder / "curves.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError) as caught:
        plot_folders([folder])
    assert says in str(caught.value)
    assert "curves.csv" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not list(folder.glob("curves.p*"))


def test_missing_folders_and_damaged_manifests_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        plot_folders([tmp_path / "nowhere"])
    with pytest.raises(DataError, match=r"no curves\.csv"):
        plot_folders([tmp_path])
    folder = write_run(tmp_path / "run")
    for text in ("{", "[]", '{"config": 3}'):
        (folder / "manifest.json").write_text(text)
        with pytest.raises(DataError, match=r"manifest\.json"):
            read_series([folder])


def test_by_default_files_appear_in_the_only_folder(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    assert plot_folders([folder]) == [folder / f"curves.{ending}" for ending in ("png", "pdf", "txt")]
    assert all((folder / f"curves.{ending}").stat().st_size for ending in ("png", "pdf", "txt"))
    assert len(list(folder.iterdir())) == 6


def test_the_same_curves_give_the_same_bytes_in_any_process(tmp_path: Path) -> None:
    folders = [
        write_run(tmp_path / "a"),
        write_run(tmp_path / "b", algo="aer"),
        write_run(tmp_path / "c", k=8),
    ]
    before = dict(matplotlib.rcParams)
    with matplotlib.rc_context({"font.size": 20, "font.family": "serif", "lines.linewidth": 9}):
        written = plot_folders(folders, tmp_path / "new/folder", "fig1")
    assert dict(matplotlib.rcParams) == before
    # Several folders and no place named: the working directory.
    script = "import sys; from pathlib import Path; from budgetreg.plots import plot_folders\n"
    script += "plot_folders(map(Path, sys.argv[1:]), name='fig1')"
    arguments = [sys.executable, "-c", script, *map(str, reversed(folders))]
    here = tmp_path / "here"
    here.mkdir()
    package = str(Path(budgetreg.__file__).parents[1])
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": package}
    subprocess.run(arguments, check=True, cwd=here, env=environment)
    first = [path.read_bytes() for path in written]
    assert [(here / path.name).read_bytes() for path in written] == first
    assert b"CreationDate" not in first[1]
    assert b"atplotlib" not in first[0] + first[1]


def test_the_caption_says_how_the_figure_was_made_and_no_path(tmp_path: Path) -> None:
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


def test_the_caption_tells_of_what_is_missing(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["config"]["repetitions"] = 10
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert "2 repetitions (of 10 asked for)" in caption("fig", read_series([folder]), [])
    (folder / "manifest.json").unlink()
    assert "not recorded" in caption("fig", read_series([folder]), [])


def test_what_all_curves_share_is_said_once(tmp_path: Path) -> None:
    write_run(tmp_path / "1")
    write_run(tmp_path / "2", algo="aer", algo__average="last")
    text = caption("fig", read_series([tmp_path]), [])
    assert text.count("attributes not centred") == 1
    assert text.index("attributes not centred") < text.index("mnist_3v5, aelr")
    assert text.index("mnist_3v5, aer") < text.index("last iterate")


def test_every_setting_that_matters_is_in_the_caption() -> None:
    text = "\n".join(about_config(config(algo__novelty=7, dataset__alpha=-0.5)))
    assert "algo.novelty=7" in text
    assert "dataset.alpha=-0.5" in text


def test_a_panel_per_data_set_and_the_same_dash_for_a_label_in_all(tmp_path: Path) -> None:
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
    # Each panel: one line at the zero predictor's error and one per series.
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
    one = write_run(tmp_path / "one", axis="examples")
    (ax,) = draw(read_series([one]))[0].axes
    assert ax.lines[1].get_xdata().tolist() == list(EXAMPLES)
    assert ax.get_xlabel() == "training examples (log scale)"
    assert plot_folders([one])[2].read_text().startswith("curves: test error against training examples\n\nx: training")
    (ax,) = draw(read_series([one, write_run(tmp_path / "two", algo="aer")]))[0].axes
    assert ax.lines[1].get_xdata().tolist() == [39.5, 159.5, 639.5]
    assert "attributes" in ax.get_xlabel()


def test_the_svr_loss_is_drawn_where_all_learners_have_it(tmp_path: Path) -> None:
    one = add_svr_loss(write_run(tmp_path / "one", algo="aesvr"))
    (ax,) = draw(read_series([one]))[0].axes
    (line,) = ax.lines  # of whose zero predictor nothing is known
    assert line.get_ydata().tolist() == pytest.approx([0.95 / 2, 0.85 / 2, 0.75 / 2])
    low, high = ax.get_ylim()
    assert low < 0.75 / 2 < 0.95 / 2 < high < 1
    assert "residual" in ax.get_ylabel()
    text = caption("fig", read_series([one]), [])
    assert "max(|residual| - delta, 0)" in text
    assert "answers zero" not in text
    (ax,) = draw(read_series([one, write_run(tmp_path / "two", algo="aerr")]))[0].axes
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
def test_a_bound_has_the_height_that_the_theorem_gives_it(tmp_path: Path, algo: str) -> None:
    figure, remarks = draw(read_series([bounded_run(tmp_path / "run", algo)]))
    _, curve, bound = figure.axes[0].lines
    assert bound.get_ydata().tolist() == pytest.approx([0.75 + THEOREMS[algo](m) for m in LONG])
    assert bound.get_xdata().tolist() == curve.get_xdata().tolist()
    assert bound.get_color() == curve.get_color()
    assert bound.get_linestyle() != curve.get_linestyle()
    assert [text.get_text() for text in figure.legends[0].get_texts()][-1] == "bound of the theorem"
    assert "in place of the unknown risk of the best regressor" in remarks[0]


def test_bounds_stand_on_the_least_error_of_all_learners(tmp_path: Path) -> None:
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
def test_bounds_that_say_nothing_are_not_drawn(
    tmp_path: Path, algo: str, changes: Mapping[str, Any], said: str | None
) -> None:
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


def test_learners_of_one_kind_never_look_alike() -> None:
    assert len(set(STYLES.values())) == len(STYLES)
    figures = [
        ["aelr", "aer", "lasso", "online_lasso"],
        ["aerr", "aer", "ridge", "lasso", "baseline"],
        ["ddaerr", "ddaerr_two_phase", "aerr", "online_ridge", "ridge"],
        ["ddaelr", "ddaelr_two_phase", "aelr", "online_lasso", "lasso"],
        ["popca", "popca_importance", "pca", "oja", "grouse", "petrels", "mbeg", "mbeg_plus"],
    ]
    for learners in figures:
        assert len({style(algo).colour for algo in learners}) == len(learners)
    assert style("somebody's new one") == style("somebody's new one")
