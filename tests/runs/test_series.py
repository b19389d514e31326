"""Reading and merging curves: numbers through public functions."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import budgetreg
from budgetreg.common.errors import DataError
from budgetreg.config.nested import variants
from budgetreg.figures.specification import PLAIN
from budgetreg.runs.series import find_folders, read_series
from budgetreg.runs.tables import CURVES, columns
from tests.figures.drawn import drawn
from tests.written_runs import edit_table, write_run


def labels(*folders: Path) -> list[str]:
    return [series.label for series in read_series(folders)]


def test_repetitions_are_grouped_by_examples_although_attributes_differ(tmp_path: Path) -> None:
    (series,) = read_series([write_run(tmp_path / "run")])
    curve = series.mean
    assert curve["examples"].tolist() == [10, 40, 160]
    assert curve["attributes"].tolist() == [39.5, 159.5, 639.5]
    assert curve["repetitions"].tolist() == [2, 2, 2]
    assert curve["test_relative"].tolist() == pytest.approx([0.95, 0.85, 0.75])
    assert curve["test_relative_sd"].tolist() == pytest.approx([np.std([0, 0.1], ddof=1)] * 3)


def test_runs_of_a_file_that_has_changed_are_not_compared(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    for number, algo in enumerate(("ridge", "lasso")):
        X = np.random.default_rng(number).normal(size=(40, 3))
        pd.DataFrame(X, columns=list("abc")).assign(y=X.sum(axis=1)).to_csv(table, index=False)
        data = {
            "dataset": "file",
            "dataset.path": str(table),
            "tuning": "fixed",
            "tuning.B": 1,
            "repetitions": 2,
            "checkpoints": 1,
        }
        budgetreg.run({"algo": algo, **data, "k": 2, "out": str(tmp_path / "runs" / algo), "backend": "sequential"})
    with pytest.raises(DataError, match=r"learned from different tables, both from .*table.csv: the file"):
        read_series([tmp_path / "runs"])
    assert len(read_series([tmp_path / "runs" / "ridge"])) == 1


def test_few_repetitions_have_no_band_and_one_has_no_standard_deviation(tmp_path: Path) -> None:
    series = read_series([write_run(tmp_path / "one", repetitions=1)])
    assert series[0].mean["test_relative_sd"].isna().all()
    for repetitions, bands in ((1, 0), (4, 0), (5, 1)):
        figure, _ = drawn(write_run(tmp_path / str(repetitions), repetitions=repetitions))
        assert len(figure.axes[0].collections) == bands


def test_the_band_is_the_interval_of_the_mean(tmp_path: Path) -> None:
    series = read_series([write_run(tmp_path / "run", repetitions=10)])
    curve = series[0].mean
    low, high = PLAIN.edges(series[0].points, "test_relative")
    assert (low < curve["test_relative"]).all()
    assert (curve["test_relative"] < high).all()
    student = 1.833 * curve["test_relative_sd"] / np.sqrt(10)  # half the width of the exact interval of normal data
    assert ((high - low) / 2).tolist() == pytest.approx(student.tolist(), rel=0.1)


def test_an_undefined_error_is_not_averaged_away(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    edit_table(folder / "curves.csv", test_relative=[np.nan, *[0.5] * 5])
    curve = read_series([folder])[0].mean
    assert curve["test_relative"].isna().tolist() == [True, False, False]


def test_folders_are_found_below_those_given_once_and_in_order(tmp_path: Path) -> None:
    for name in ("b", "a/2", "a/1"):
        write_run(tmp_path / name)
    assert find_folders([tmp_path]) == [tmp_path / "a/1", tmp_path / "a/2", tmp_path / "b"]
    assert find_folders([tmp_path / "b", tmp_path]) == [tmp_path / "b", tmp_path / "a/1", tmp_path / "a/2"]


def test_a_label_contains_k_only_if_there_are_several(tmp_path: Path) -> None:
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
def test_runs_of_one_learner_are_labelled_by_the_keys_that_differ(
    tmp_path: Path, changes: Mapping[str, Any], expected: list[str]
) -> None:
    folders = write_run(tmp_path / "one"), write_run(tmp_path / "two", shift=0.1, **changes)
    assert labels(*folders) == expected


def test_runs_that_differ_only_in_keys_without_effect_are_one_series(tmp_path: Path) -> None:
    few = write_run(tmp_path / "few", repetitions=2)
    many = write_run(tmp_path / "many", repetitions=5, n_jobs=8, out="/elsewhere", experiment="paper/fig1")
    for order in ([few, many], [many, few]):
        (series,) = read_series(order)
        assert (series.label, series.repetitions, len(series.points)) == ("aelr", 5, 15)
        assert sorted(series.runs["repetition"]) == [0, 1, 2, 3, 4]


def test_contradictory_results_are_not_merged(tmp_path: Path) -> None:
    folders = write_run(tmp_path / "old/run"), write_run(tmp_path / "new/run", shift=0.1)
    assert labels(*folders) == ["aelr (new/run)", "aelr (old/run)"]


@given(st.lists(st.fixed_dictionaries({"a": st.floats(0, 1), "b": st.sampled_from([None, "x", "y"])}), min_size=1))
def test_variants_are_equal_only_for_equal_configurations(configs: list[dict[str, Any]]) -> None:
    texts = variants(configs)
    for text, config in zip(texts, configs, strict=True):
        for other_text, other in zip(texts, configs, strict=True):
            assert (text == other_text) == (config == other)


def test_floats_are_read_back_exactly(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", repetitions=1)
    values = [0.1 + 0.2, 1 / 3, 2.225073858507203e-308]
    edit_table(folder / "curves.csv", test_relative=values)
    assert read_series([folder])[0].points["test_relative"].tolist() == values


def test_curves_without_a_finished_repetition_are_refused(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    (folder / "curves.csv").write_text(",".join(columns(of_subspaces=False)[CURVES]) + "\n")
    with pytest.raises(DataError, match=r"curves\.csv: holds no finished repetition yet"):
        read_series([folder])


def test_missing_folders_and_damaged_manifests_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        read_series([tmp_path / "nowhere"])
    with pytest.raises(DataError, match=r"no curves\.csv"):
        read_series([tmp_path])
    folder = write_run(tmp_path / "run")
    for text in ("{", "[]", '{"config": 3}'):
        (folder / "manifest.json").write_text(text)
        with pytest.raises(DataError, match=r"manifest\.json"):
            read_series([folder])
