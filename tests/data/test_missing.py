"""Tables with missing values are refused by default, or read with a mask of the available values."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from budgetreg.common.errors import DataError
from budgetreg.data import tables
from budgetreg.data.dataset import Dataset
from tests.data.written import read, write
from tests.refusals import refusal

RNG = np.random.default_rng(0)
WHOLE = RNG.normal(size=(40, 4))
GAPS = RNG.random(WHOLE.shape) < 0.2
GAPS[:, 0] = False
X = np.where(GAPS, np.nan, WHOLE)
Y = RNG.normal(size=40)
HINT = "dataset.missing=unavailable"


def written(folder: Path, ending: str, X: np.ndarray) -> Path:
    return write(folder, ending, X, Y)


def loaded(path: Path, missing: str | None, scale: str = "none") -> Dataset:
    return read(path, missing=missing, scale=scale)


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npz", ""])
@pytest.mark.parametrize("in_memory", [True, False])
def test_the_mask_shows_which_cells_have_a_value(tmp_path, monkeypatch, ending, in_memory):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tables, "CHUNK_ENTRIES", 30)
    if not in_memory:
        monkeypatch.setattr(tables, "IN_MEMORY", 0)
    path = written(tmp_path, ending, X)
    for _ in range(2):  # first read, then mapped
        data = loaded(path, "unavailable", "max_abs")
        np.testing.assert_array_equal(data.available, ~GAPS)
        np.testing.assert_array_equal(data.X, np.where(GAPS, 0, WHOLE))
        np.testing.assert_allclose(1 / np.asarray(data.scale), np.nanmax(np.abs(X), axis=0))
        np.testing.assert_array_equal(data.complete, ~GAPS.any(axis=1))
    with pytest.raises(DataError, match=HINT):
        loaded(path, "refuse")
    assert HINT not in refusal(DataError, loaded, path, None)  # no option allows missing values, as for predictions


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_wide_rows_that_are_read_together_give_the_same_table(tmp_path, monkeypatch, ending):
    monkeypatch.setattr(tables, "CHUNK_ENTRIES", 10)
    assert tables.rows_per_read(5) == 4 * tables.rows_per_chunk(5) == 8
    path = written(tmp_path, ending, X)
    together = loaded(path, "unavailable")
    monkeypatch.setattr(tables, "rows_per_read", tables.rows_per_chunk)
    alone = loaded(path, "unavailable")
    assert together.fingerprint() == alone.fingerprint()
    np.testing.assert_array_equal(together.X, alone.X)
    np.testing.assert_array_equal(together.y, alone.y)


@pytest.mark.parametrize("ending", [".csv", ".npz", ""])
def test_a_table_without_gaps_is_the_same_with_either_option(tmp_path, ending):
    path = written(tmp_path, ending, WHOLE)
    data = loaded(path, "unavailable")
    assert data.available is None
    assert data.fingerprint() == loaded(path, "refuse").fingerprint()
    assert data.complete.all()


def test_the_fingerprint_includes_the_places_of_missing_values(tmp_path):
    other = X.copy()
    row, column = np.argwhere(GAPS)[0]
    other[row, column] = 0.0  # as it is stored in the other table
    fingerprints = set()
    for name, table in (("first", X), ("other", other)):
        (tmp_path / name).mkdir()
        fingerprints.add(loaded(written(tmp_path / name, ".csv", table), "unavailable").fingerprint())
    assert len(fingerprints) == 2


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a,b,y\n1,,3\n1,red,3\n", "'red' is not a number"),
        ("a,b,y\n1,,3\n1,inf,3\n", "finite"),
    ],
)
def test_text_and_infinite_values_are_always_refused(tmp_path, text, part):
    (tmp_path / "table.csv").write_text(text)
    with pytest.raises(DataError, match=part) as error:
        loaded(tmp_path / "table.csv", "unavailable")
    assert HINT not in str(error.value)


def test_booleans_and_whole_numbers_may_be_missing(tmp_path):
    frame = pd.DataFrame(
        {"a": pd.array([True, None, False], "boolean"), "b": pd.array([7, 8, None], "Int64"), "y": Y[:3]}
    )
    frame.to_csv(tmp_path / "table.csv", index=False)
    paths = [tmp_path / "table.csv"]
    if pytest.importorskip("pyarrow"):
        frame.to_parquet(tmp_path / "table.parquet", index=False)
        paths.append(tmp_path / "table.parquet")
    for path in paths:
        data = loaded(path, "unavailable")
        np.testing.assert_array_equal(data.X, [[1, 7], [0, 8], [0, 0]])
        np.testing.assert_array_equal(data.available, [[True, True], [False, True], [True, False]])


def test_libsvm_files_have_no_missing_values(tmp_path):
    (tmp_path / "table.svm").write_text("1 1:2\n2 2:3\n")
    with pytest.raises(DataError, match="never missing"):
        loaded(tmp_path / "table.svm", "unavailable")


def test_a_mask_of_another_shape_or_type_is_refused():
    for mask in (np.ones((3, 3), dtype=bool), np.ones((3, 2))):
        with pytest.raises(ValueError, match="available"):
            Dataset("t", np.ones((3, 2)), np.ones(3), 1.0, None, False, available=mask)
    masks = (np.ones((3, 2), dtype=bool), np.eye(3, 2) > 0)
    assert (
        len({Dataset("t", np.ones((3, 2)), np.ones(3), 1.0, None, False, available=m).fingerprint() for m in masks})
        == 2
    )


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npz", ""])
def test_words_for_missing_values_are_those_of_the_user(tmp_path, monkeypatch, ending):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(f"{__name__}.Y", np.where(np.arange(40) == 2, -999, Y))
    marked = np.where(GAPS, -999, WHOLE)
    path = written(tmp_path, ending, marked)
    if ending == ".csv":  # text, too
        path.write_text(path.read_text().replace("-999.0,", "?,", 3))
    words = ["?", "-999"]
    for in_memory in (1 << 20, 0):
        monkeypatch.setattr(tables, "IN_MEMORY", in_memory)
        data = read(path, missing="unavailable", missing_values=words)
        np.testing.assert_array_equal(data.available, np.delete(~GAPS, 2, axis=0))
        np.testing.assert_array_equal(data.X, np.delete(np.where(GAPS, 0, WHOLE), 2, axis=0))
    with pytest.raises(DataError, match=r"nan is not a finite|empty or NaN") as error:
        read(path, missing_values=words)
    assert HINT in str(error.value)


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npz"])
@pytest.mark.parametrize("in_memory", [True, False])
def test_rows_without_a_target_are_left_out_with_a_notice(tmp_path, monkeypatch, ending, in_memory):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tables, "CHUNK_ENTRIES", 30)
    monkeypatch.setattr(tables, "IN_MEMORY", 1 << 28 if in_memory else 0)
    without = np.array([3, 7, 20])
    monkeypatch.setattr(f"{__name__}.Y", np.where(np.isin(np.arange(40), without), np.nan, Y))
    path = written(tmp_path, ending, WHOLE)
    for _ in range(2):
        data = loaded(path, "unavailable")
        np.testing.assert_array_equal(data.X, np.delete(WHOLE, without, axis=0))
        np.testing.assert_array_equal(data.y, np.delete(Y, without))
        place = "line 5, data row 4" if ending == ".csv" else "data row 4"
        assert data.notes[-1] == f"3 of 40 rows have no target and are left out; the first is {place}"


def test_messages_about_targets_count_the_rows_that_were_left_out(tmp_path):
    (tmp_path / "table.csv").write_text("a,b,y\n1,2,\n3,4,5\n1,1,6\n1,2,red\n")
    with pytest.raises(DataError, match="line 5, data row 4: 'red' is not a number"):
        loaded(tmp_path / "table.csv", None)
