"""Tables of every format equal the original arrays, whether they are read at once or converted in tables."""

import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from budgetreg.common.errors import ConfigError, DataError
from budgetreg.data import tables
from budgetreg.data.registry import load
from budgetreg.data.tables import NO_TARGET
from budgetreg.protocol.configuration import DatasetConfig
from tests.data import written
from tests.data.written import frame, read, values
from tests.refusals import refusal

pq = pytest.importorskip("pyarrow.parquet")

RNG = np.random.default_rng(0)
X = RNG.integers(-3, 4, (50, 6)) * (RNG.random((50, 6)) < 0.5) / 4
X[0] = 1.0  # no column is all 0, so that LIBSVM files show the number of columns
Y = RNG.choice([-1.0, 1.0], 50)
ENDINGS = [".csv", ".csv.gz", ".npz", "", ".parquet", ".libsvm"]


def write(folder: Path, ending: str, X: np.ndarray = X, y: Any = Y, **how: Any) -> Path:
    """Write a table; arrays and packed text are not those of other tests: compressed, and separated by semicolons."""
    path = written.write(folder, ending, X, y, **{"separator": ";" if ending == ".csv.gz" else ",", **how})
    if ending == ".npz":
        np.savez_compressed(path, X=X, y=y)
    return path


@pytest.fixture
def converting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Convert every table, a few rows at a time, into this cache."""
    monkeypatch.setattr(tables, "IN_MEMORY", -1)
    monkeypatch.setattr(tables, "CHUNK_ENTRIES", 20)
    monkeypatch.setattr("budgetreg.data.formats._BLOCK", 100)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def is_mapped(array: object) -> bool:
    return isinstance(array, np.memmap) or isinstance(getattr(array, "base", None), np.memmap)


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_format_gives_the_same_table(tmp_path: Path, ending: str) -> None:
    data = read(write(tmp_path, ending), scale="max_abs")
    expected = X * (1 / np.abs(X).max(axis=0))
    np.testing.assert_array_equal(values(data) * data.scale, expected)
    np.testing.assert_array_equal(data.y, Y)
    assert (data.name, data.n_train, data.two_valued) == ("table", None, True)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_converted_table_is_the_same_and_mapped(
    tmp_path: Path, converting: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    path = write(tmp_path, ending)
    converted, again = read(path, scale="max_abs"), read(path, scale="max_abs")
    monkeypatch.setattr(tables, "IN_MEMORY", 1 << 28)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    direct = read(path, scale="max_abs")
    for data in (converted, again):
        np.testing.assert_array_equal(values(data), values(direct))
        np.testing.assert_array_equal(data.y, direct.y)
        np.testing.assert_array_equal(data.scale, direct.scale)
        # The digest of sparse rows depends on the tables.
        assert ending == ".libsvm" or data.fingerprint() == direct.fingerprint()
        assert is_mapped(data.X if ending != ".libsvm" else data.X._data)  # type: ignore[union-attr]
    assert converted.fingerprint() == again.fingerprint()
    assert (tmp_path / "another").exists() == (ending == ".csv.gz")  # as its size is not known before it is read
    copies = list(converting.rglob("X.npy"))
    assert len(copies) == (ending not in ("", ".libsvm"))


def test_text_is_converted_from_a_smaller_size_on_than_arrays(
    tmp_path: Path, converting: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process would parse it again."""
    text, arrays = write(tmp_path, ".csv"), write(tmp_path, ".npz")
    for limit, stored in ((8 * text.stat().st_size - 1, 1), (8 * text.stat().st_size, 0)):
        monkeypatch.setattr(tables, "IN_MEMORY", limit)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / str(limit)))
        assert [is_mapped(read(path).X) for path in (text, arrays)] == [bool(stored), False]
        assert len(list((tmp_path / str(limit)).rglob("X.npy"))) == stored


@pytest.mark.parametrize("ending", ENDINGS)
def test_without_a_target_all_columns_are_attributes(
    tmp_path: Path, converting: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    path = write(tmp_path, ending)
    if ending == "":
        (path / "y.npy").unlink()
    table = (
        np.column_stack([X, Y]) if ending in (".csv", ".csv.gz", ".parquet") else X
    )  # in the other formats the target is not a column
    options = {"path": str(path), "target": None, "scale": "none"}
    config = DatasetConfig("file", "file", center="none", split="random", test_fraction=0.1, options=options)
    converted, mapped = load(config, 0, 0, targets=False), read(path, target=NO_TARGET)
    monkeypatch.setattr(tables, "IN_MEMORY", 1 << 28)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    for data in (converted, mapped, read(path, target=NO_TARGET)):
        np.testing.assert_array_equal(values(data), table)
        assert not data.y.any()
    if ending != "":
        assert load(config, 0, 0).y.any()


def test_two_columns_suffice_without_a_target(tmp_path: Path) -> None:
    (tmp_path / "two.csv").write_text("a,b\n1,2\n")
    pd.DataFrame({"a": [1], "b": [2]}).to_parquet(tmp_path / "two.parquet", index=False)
    (tmp_path / "one.csv").write_text("a\n1\n")
    for path in (tmp_path / "two.csv", tmp_path / "two.parquet"):
        assert values(read(path, target=NO_TARGET)).tolist() == [[1, 2]]
        check_message(path, "two attributes and a target are needed")
    with pytest.raises(DataError, match=r"1 column\(s\).*; two attributes are needed"):
        read(tmp_path / "one.csv", target=NO_TARGET)


@given(
    X=hnp.arrays(
        st.sampled_from([np.uint8, np.int16, np.float32, np.float64]),
        st.tuples(st.integers(1, 9), st.integers(2, 5)),
        elements=st.integers(0, 3),
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=8)
@pytest.mark.parametrize("ending", [".csv", ".npz", "", ".parquet"])
def test_chunks_lose_no_row_and_keep_small_types(tmp_path: Path, converting: Path, ending: str, X: np.ndarray) -> None:
    for order in ("C", "F"):
        data = read(write(tmp_path, ending, np.asarray(X, order=order), np.arange(len(X)) / 4))  # type: ignore[call-overload]
        np.testing.assert_array_equal(values(data), X)
        assert isinstance(data.X, np.ndarray)
        assert data.X.dtype == (X.dtype if X.dtype.kind != "i" and ending != ".csv" else np.float64)


@pytest.mark.parametrize("ending", [".svm", ".svmlight", ".libsvm.gz", ".libsvm.bz2", ".libsvm.xz", ".SVM"])
@pytest.mark.parametrize("zero_based", [False, True])
def test_libsvm_files_may_be_compressed_and_count_from_zero(
    tmp_path: Path, converting: Path, ending: str, zero_based: bool
) -> None:
    data = read(write(tmp_path, ending, zero_based=zero_based))
    np.testing.assert_array_equal(values(data), X)
    assert data.name == "table"


@pytest.mark.parametrize("ending", [".csv.gz", ".csv.bz2", ".csv.xz"])
def test_csv_files_may_be_compressed(tmp_path: Path, converting: Path, ending: str) -> None:
    path = write(tmp_path, ending, separator="\t")
    for _ in range(2):
        data = read(path)
        np.testing.assert_array_equal(values(data), X)
        assert (data.name, data.notes) == ("table", (f"{path.name}: fields are separated by tabs",))
    whole = path.read_bytes()
    for damaged in (whole[:-12], b"a,b,y", whole[:60] + bytes(20) + whole[80:]):
        path.write_bytes(damaged)
        check_message(path, "read")


@pytest.mark.parametrize(
    ("cell", "part"),
    [
        ("", "empty or NaN"),
        (
            "red",
            "'red' is not a number (name words for missing values in dataset.missing_values, encode categories one-hot",
        ),
        ("1,5", "decimal comma"),
        ("inf", "finite"),
    ],
)
@pytest.mark.parametrize("column", ["d", "y"])
def test_a_bad_cell_gives_the_same_message_for_any_chunk_size(
    tmp_path: Path, converting: Path, monkeypatch: pytest.MonkeyPatch, cell: str, part: str, column: str
) -> None:
    table = frame(X, RNG.random(50)).astype(object)
    table.loc[40, column] = cell
    path = tmp_path / "table.csv"
    path.write_text(table.to_csv(index=False, sep=";"))
    messages = []
    for entries in (20, 1 << 20):
        monkeypatch.setattr(tables, "CHUNK_ENTRIES", entries)
        monkeypatch.setattr(tables, "IN_MEMORY", entries - 21)
        if column == "y" and not cell:
            left_out = "1 of 50 rows have no target and are left out; the first is line 42, data row 41"
            assert left_out in read(path).notes
            continue
        messages.append(refusal(DataError, read, path))
    if not messages:
        return
    assert messages[0] == messages[1]
    assert "line 42, data row 41" in messages[0]
    assert column in messages[0]
    if column != "y":
        assert part in messages[0]


def test_parquet_files_may_have_text_targets_or_another_target(tmp_path: Path) -> None:
    y = np.where(Y > 0, "yes", "no")
    data = read(write(tmp_path, ".parquet", X, y))
    np.testing.assert_array_equal(data.y, Y)
    assert data.notes == ("target: 'no' -> -1, 'yes' -> +1",)
    np.testing.assert_array_equal(read(write(tmp_path, ".parquet"), target="c").y, X[:, 2])


def test_a_changed_file_is_converted_again_whatever_its_time_says(tmp_path: Path, converting: Path) -> None:
    read(path := write(tmp_path, ".csv"))
    before = path.stat()
    write(tmp_path, ".csv", X[::-1], Y)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    np.testing.assert_array_equal(values(read(path)), X[::-1])


def test_a_damaged_or_abandoned_conversion_is_repeated(tmp_path: Path, converting: Path) -> None:
    read(path := write(tmp_path, ".libsvm"))
    (array,) = converting.rglob("data.npy")
    array.write_bytes(array.read_bytes()[:-8])
    (array.parent.parent / "table.tmp").mkdir()
    np.testing.assert_array_equal(values(read(path)), X)
    assert [path.name for path in array.parent.parent.glob("*")].count("table.tmp") == 0


def test_the_message_for_an_unwritable_cache_says_what_to_set(
    tmp_path: Path, converting: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(write(tmp_path, ".csv")))
    with pytest.raises(DataError, match="set XDG_CACHE_HOME"):
        read(write(tmp_path, ".npz"))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["no rows"]),
        ("# nothing\n\n", ["no rows"]),
        ("1 1:2\n", ["two attributes", "no index is above 1"]),
        ("1 1:2 3:4\n2 1:2 3:nan\n", ["line 2", "'nan' is not a finite number"]),
        ("1 1:2 3:4\n2 1:2 3:1e999\n", ["line 2", "not a finite number"]),
        ("1 1:2 3:4\n\n2 3:2 1:4\n", ["line 3", "index 1 follows 3"]),
        ("1 1:2 1:4\n", ["line 1", "index 1 follows 1"]),
        ("1 1:2 3:4\n2 1:2 3:", ["line 2", "'' is not a finite number"]),
        ("1 1:2 3:4\n2 1:2 3", ["line 2", "'3' is not index:value"]),
        ("1 1:2 c:4\n", ["line 1", "'c:4' is not index:value"]),
        *((f"1 1:2 {index}:4\n", ["line 1", "too large"]) for index in ("2147483646", "9999999999", "9" * 5000)),
        ("1 1:2\n1 1:1_0\n", ["line 2: '1_0' is not a finite number"]),
        ("1 1:2 2:3\r2 1:1 2:2\r", ["line 1: '2' is not index:value"]),
        ("1 qid:3 1:2 2:3\n2 qid 1:1 2:2\n", ["line 2: 'qid' is not index:value"]),
        ("yes 1:2 3:4\n", ["line 1", "target 'yes' is not a finite number"]),
        ("nan 1:2 3:4\n", ["line 1", "target 'nan' is not a finite number"]),
        ("a,b,y\n1,2,3\n", ["line 1", "'a,b,y' is not a finite number"]),
    ],
)
def test_a_bad_libsvm_file_gives_a_one_line_message(
    tmp_path: Path, converting: Path, text: str, parts: list[str]
) -> None:
    path = tmp_path / "a.svm"
    path.write_text(text)
    check_message(path, *parts)


def test_line_numbers_count_all_blocks(tmp_path: Path, converting: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_text("1 1:2 3:4\n" * 100 + "1 x\n")
    check_message(path, "line 101", "'x'")


@pytest.mark.parametrize(
    ("table", "parts"),
    [
        (pd.DataFrame({"a": [1.0], "y": [2.0]}), ["two attributes"]),
        (pd.DataFrame({"a": [1.0], "b": [1.0], "y": [2.0]}).iloc[:0], ["no rows"]),
        (pd.DataFrame({"a": ["u"], "b": [1.0], "y": [2.0]}), ["'a'", "numbers are needed", "one-hot"]),
        (pd.DataFrame({"a": pd.Categorical(["u", "v"]), "b": 1.0, "y": 2.0}), ["'a'", "numbers are needed", "one-hot"]),
        (pd.DataFrame({"a": [{"x": 1}], "b": [1.0], "y": [2.0]}), ["'a'", "struct", "numbers are needed"]),
        (pd.DataFrame({"a": [1.0] * 9, "b": [*[1.0] * 8, np.inf], "y": 2.0}), ["data row 9", "'b'", "inf"]),
        (pd.DataFrame({"a": [1.0] * 9, "b": [*[1.0] * 8, None], "y": 2.0}), ["data row 9", "'b'", "empty"]),
        (pd.DataFrame({"a": [1.0, 2.0], "": 1.0, "y": 2.0}), ["column 2 has no name"]),
        (pd.DataFrame({"a": [1.0, 2.0], "b": 1.0, "y": [b"\xff", b"\x80"]}), ["holds binary"]),
        (pd.DataFrame({"a": [1.0, 2.0], "b": 1.0, "y": [[1.0], [2.0]]}), ["holds list"]),
    ],
)
def test_a_bad_parquet_file_gives_a_one_line_message(
    tmp_path: Path, converting: Path, table: pd.DataFrame, parts: list[str]
) -> None:
    path = tmp_path / "a.parquet"
    table.to_parquet(path)
    check_message(path, *parts)


def test_damaged_files_give_a_one_line_message(tmp_path: Path, converting: Path) -> None:
    for ending in (".parquet", ".npz", ""):
        path = write(tmp_path, ending, RNG.random((50, 6)), Y)
        array = path / "X.npy" if path.is_dir() else path
        array.write_bytes(array.read_bytes()[:-900])
        check_message(path)
    path = write(tmp_path, ".svm.gz")
    path.write_bytes(path.read_bytes()[:-10])
    check_message(path, "cannot be read")
    path.write_bytes(b"1 1:2 3:4\n")
    check_message(path, "cannot be read")


def test_damage_to_what_pandas_wrote_beside_the_columns_is_no_damage_to_them(tmp_path: Path, converting: Path) -> None:
    path = write(tmp_path, ".parquet")
    content = path.read_bytes()
    assert content.count(b'"creator"') == 1
    path.write_bytes(content.replace(b'"creator"', b"'creator'"))
    np.testing.assert_array_equal(values(read(path)), X)


def test_without_pyarrow_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, ".parquet")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    check_message(path, "pip install '.[parquet]' in a clone")


def test_targets_that_a_format_lacks_are_refused(tmp_path: Path) -> None:
    check_message(write(tmp_path, ".libsvm"), "begin with", target="b")
    check_message(write(tmp_path, ".parquet"), "did you mean 'b'", target="bb")
    with pytest.raises(DataError, match=r"z\.npy"):
        read(write(tmp_path, ""), target="z")
    with pytest.raises(ConfigError, match="must end in"):
        read(tmp_path / "table.npz.gz")


def check_message(path: Path, *parts: str, target: str | None = None) -> None:
    message = refusal(DataError, read, path, target=target)
    assert len(message) < 500
    for part in (str(path), *parts):
        assert part in message


def test_numbers_of_other_types_are_numbers(tmp_path: Path) -> None:
    decimals = [Decimal(word) for word in ("1.25", "-2", "0.5", "1e3")]
    table = pd.DataFrame({"a": [None, 2**60 + 1, 3, 2**53 + 1], "b": decimals, "y": decimals})
    table.astype({"a": "Int64"}).to_parquet(tmp_path / "t.parquet")
    data = read(tmp_path / "t.parquet", missing="unavailable")
    assert np.asarray(data.X).tolist() == [[0, 1.25], [2.0**60, -2], [3, 0.5], [2.0**53, 1000]]
    assert data.y.tolist() == [1.25, -2, 0.5, 1000]


@pytest.mark.parametrize("numbers", [["3", "1.5", "-2e3", "4"], [str(10**24 + i * 10**20) for i in range(4)]])
def test_targets_that_are_numbers_as_text_are_numbers(tmp_path: Path, numbers: list[str]) -> None:
    table = np.array([[0, 1], [1, 2], [2, 0], [3, 1]])
    for ending in (".csv", ".npz", ".parquet"):
        data = read(write(tmp_path, ending, table, np.array(numbers)))
        assert data.y.tolist() == list(map(float, numbers))


@pytest.mark.parametrize(("X", "y"), [((10**13, 3), (10**13,)), ((3, 10**13), (3,))])
def test_arrays_that_claim_more_than_the_file_has_are_refused(
    tmp_path: Path, X: tuple[int, ...], y: tuple[int, ...]
) -> None:
    for name, shape in (("X", X), ("y", y)):
        with (tmp_path / f"{name}.npy").open("wb") as file:
            np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
            file.write(bytes(240))
    check_message(tmp_path)


def test_too_little_memory_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, converting: Path
) -> None:
    def full(*words: object, **options: object) -> None:
        raise MemoryError

    path = write(tmp_path, ".npz")
    monkeypatch.setattr(pd, "concat", full)
    for limit in (-1, 1 << 28):
        monkeypatch.setattr(tables, "IN_MEMORY", limit)
        check_message(path, f"there is not enough memory to read {path}")


def test_a_label_that_means_a_missing_value_is_refused_if_it_is_one_of_two(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a,b,y\n1,2,EU\n1,3,NA\n")
    check_message(tmp_path / "table.csv", "text needs exactly two values, not 1")


def test_long_words_of_a_table_are_cut_in_messages(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    for content in (f"{'x' * 9999},b,y\n{'u' * 9999},1,2\n", f"a,b,y\n1,2,3\n1,3,{'u' * 9999}\n2,2,4\n"):
        path.write_text(content)
        check_message(path, "...")
    check_message(path, target="x" * 9998)
