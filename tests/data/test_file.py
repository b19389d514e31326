"""A user's CSV or NPZ file; other formats are in test_formats.py."""

import bz2
import gzip
import os
import shutil
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from budgetreg.cli.app import main
from budgetreg.common.errors import ConfigError, DataError
from budgetreg.data.file import parse_file
from budgetreg.data.registry import load
from tests.data.written import read
from tests.plans import configured
from tests.refusals import refusal

GOOD = "a,b,y\n1,-4,10\n2,2,20\n-2,1,35\n"


def csv(folder: Path, text: str | bytes, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def npz(folder: Path, **arrays: Any) -> Path:
    path = folder / "table.npz"
    np.savez(path, **arrays)
    return path


def message(path: Path | str | None, **options: Any) -> str:
    text = refusal(DataError, read, path, **options)
    assert str(path) in text
    return text


def test_the_last_column_is_the_target_by_default(tmp_path: Path) -> None:
    data = read(csv(tmp_path, GOOD))
    assert data.X.tolist() == [[1, -4], [2, 2], [-2, 1]]
    assert data.y.tolist() == [10, 20, 35]
    assert (data.name, data.scale, data.n_train, data.two_valued) == ("table", 1, None, False)
    assert data.notes == ()


def test_another_target_leaves_the_other_columns(tmp_path: Path) -> None:
    data = read(csv(tmp_path, GOOD), target="a")
    assert data.X.tolist() == [[-4, 10], [2, 20], [1, 35]]
    assert data.y.tolist() == [1, 2, -2]


def test_max_abs_scales_columns_and_notes_that_no_budget_pays(tmp_path: Path) -> None:
    data = read(csv(tmp_path, "a,b,zero,y\n1,-4,0,1\n2,2,0,2\n-2,1,0,3\n"), scale="max_abs")
    assert (data.X * data.scale).tolist() == [[0.5, -1, 0], [1, 0.5, 0], [-1, 0.25, 0]]
    assert "outside the attribute budget" in data.notes[-1]


@given(
    X=hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(2, 5)), elements=st.floats(-1e30, 1e30)),
    data=st.data(),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_csv_and_npz_preserve_every_bit(tmp_path: Path, X: np.ndarray, data: st.DataObject) -> None:
    X = np.vstack([X, np.ones(X.shape[1])])  # the largest absolute value must not be too small
    y = np.append(data.draw(hnp.arrays(np.float64, len(X) - 1, elements=st.floats(-1e9, 1e9))), 1.0)
    lines = [",".join([f"x{i}" for i in range(X.shape[1])] + ["y"])]
    lines += [",".join(repr(float(v)) for v in [*row, label]) for row, label in zip(X, y, strict=True)]
    from_csv, from_npz = read(csv(tmp_path, "\n".join(lines))), read(npz(tmp_path, X=X, y=y))
    assert np.array_equal(from_csv.X, X)
    assert np.array_equal(from_npz.X, X)
    assert np.array_equal(from_csv.y, from_npz.y)
    if len(set(y)) != 2:
        assert np.array_equal(from_npz.y, y)


@pytest.mark.parametrize(
    ("values", "note"),
    [
        (["dog", "cat", "dog"], "target: 'cat' -> -1, 'dog' -> +1"),
        (["1", "0", "1"], "target: 0 -> -1, 1 -> +1"),
        (["10", "9", "10"], "target: 9 -> -1, 10 -> +1"),
        (["1", "-1", "1"], None),
        (["True", "False", "True"], "target: 'False' -> -1, 'True' -> +1"),
    ],
)
def test_two_target_values_become_minus_and_plus_one(tmp_path: Path, values: list[str], note: str | None) -> None:
    rows = "\n".join(f"{i},{i},{value}" for i, value in enumerate(values))
    data = read(csv(tmp_path, f"a,b,y\n{rows}\n"))
    assert data.two_valued
    assert data.notes == (() if note is None else (note,))
    assert data.y.tolist() == ([-1, 1, -1] if values[0] == "9" else [1, -1, 1])


def test_the_line_of_excel_is_named(tmp_path: Path) -> None:
    reason = message(csv(tmp_path, "sep=;\na;b;y\n1;2;3\n2;1;4\n"))
    assert "delete the first line, which tells Excel how fields are separated" in reason


def test_booleans_are_the_same_targets_beside_a_hole(tmp_path: Path) -> None:
    whole, holes = (read(csv(tmp_path, f"a,b,y\n1,2,True\n2,3,False\n{more}")) for more in ("3,4,True\n", "3,4,\n"))
    assert whole.labels == holes.labels == ("False", "True")
    assert holes.y.tolist() == [1, -1]


def test_words_for_a_missing_value_may_have_blanks_around_them(tmp_path: Path) -> None:
    text = "a,b,y\n1,NA ,1\n? ,2, 2\n 3,na,3\n4 ,5 ,4\n"
    data = read(csv(tmp_path, text), missing="unavailable", missing_values=["?"])
    assert data.available is not None
    assert data.available.tolist() == [[True, False], [False, True], [True, False], [True, True]]
    with pytest.raises(DataError, match=r"column 'b': .*(empty|NaN)"):
        read(csv(tmp_path, "a,b,y\n1,NA ,1\n2,3,2\n"))


def test_blanks_around_labels_are_no_part_of_them(tmp_path: Path) -> None:
    assert read(csv(tmp_path, "a,b,y\n1,2,no\n3,5, yes\n2,4,no \n4,4,yes\t\n")).labels == ("no", "yes")


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = csv(tmp_path, GOOD)
    config = configured("dataset=file", f"dataset.path={path}").dataset
    first = load(config, 0, 0)
    csv(tmp_path, GOOD.replace("35", "36"))
    os.utime(path, ns=(1, 1))  # independent of the clock's resolution
    assert (first.y[-1], load(config, 0, 0).y[-1]) == (35, 36)


@pytest.mark.parametrize("text", ["\ufeff" + GOOD, "\n\n" + GOOD, GOOD.replace(",", ", "), GOOD.replace("\n", "\r\n")])
def test_harmless_variants_of_csv_give_the_same_table(tmp_path: Path, text: str) -> None:
    data = read(csv(tmp_path, text), target="y")
    assert data.X.tolist() == [[1, -4], [2, 2], [-2, 1]]


@pytest.mark.parametrize(
    ("separator", "note"),
    [(",", ()), (";", ("fields are separated by semicolons",)), ("\t", ("fields are separated by tabs",))],
)
@pytest.mark.parametrize("name", ["table.csv", "table.tsv", "table.CSV"])
def test_the_separator_is_detected_and_noted(tmp_path: Path, separator: str, note: tuple[str, ...], name: str) -> None:
    data = read(csv(tmp_path, GOOD.replace(",", separator), name))
    assert data.X.tolist() == [[1, -4], [2, 2], [-2, 1]]
    assert data.notes == tuple(f"{name}: {text}" for text in note)
    assert data.name == "table"


@pytest.mark.parametrize(
    "text",
    [
        "price, EUR;size, m;y\n1;-4;10\n2;2;20\n-2;1;35\n",
        '"a;b";"c,d,e";y\n1;-4;10\n2;2;20\n-2;1;35\n',
        "\ufeff\n" + GOOD.replace(",", ";").replace("\n", "\r\n"),
    ],
)
def test_separators_within_names_are_recognised(tmp_path: Path, text: str) -> None:
    assert read(csv(tmp_path, text)).X.tolist() == [[1, -4], [2, 2], [-2, 1]]


def test_a_header_may_be_longer_than_the_largest_field(tmp_path: Path) -> None:
    names = [f"attribute_{i:090}" for i in range(1400)]
    text = "\n".join([",".join(names), *(",".join([value] * len(names)) for value in "123")])
    assert read(csv(tmp_path, text)).X.shape == (3, 1399)


def test_a_constant_target_is_unpredictable(tmp_path: Path) -> None:
    path = csv(tmp_path, "a,b,y\n1,-4,3\n2,2,3\n-2,1,3\n")
    reason = read(path).unpredictable
    assert "all 3 targets are 3" in reason
    assert str(path) in reason
    assert read(path, target="a").unpredictable == ""
    assert "the only target is 3:" in read(csv(tmp_path, "a,b,y\n1,2,3\n")).unpredictable


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["empty"]),
        ("\n\n", ["empty"]),
        ("a,b,y\n", ["no rows"]),
        ("1,2,3\n4,5,6\n", ["no header"]),
        ("a:b:y\n1:2:3\n", ["1 column(s)", "commas"]),
        ("a;y\n1;2\n", ["2 column(s)", "semicolons"]),
        ("b,y\n1,2\n", ["two attributes"]),
        ("a,,y\n1,2,3\n", ["column 2 has no name"]),
        ("a,a,y\n1,2,3\n", ["two columns", "'a'"]),
        ("a,b,y\n1,2,3\n1,,3\n", ["line 3, data row 2", "'b'", "empty or NaN"]),
        ('a,b,y\n"1\n",2,3\n\n   \n1,NA,4\n', ["line 6, data row 2", "'b'", "empty or NaN"]),
        ('a,b,y\n"1\n2",2,3\n', ["line 2, data row 1", "'a'", "not a number"]),
        ('a,b,y\n1,2,3\n  \n""\n1,2,3\n', ["line 4, data row 2", "'a'", "empty or NaN"]),
        ("a\tb\ty\n1\t2\t3\n\t2\t3\n", ["line 3, data row 2", "'a'", "empty or NaN"]),
        ("a,b,y\n1,2,3\n1,nan,3\n", ["data row 2", "'b'", "empty or NaN"]),
        ("a,b,y\n1,2,3\n1,2,3\n-inf,2,3\n", ["data row 3", "'a'", "not a finite number"]),
        ("a,b,y\n1,2,3\nx,2,3\n1,z,3\n", ["data row 2", "'a'", "'x'"]),
        ("a,b,y\n1,1e999,3\n", ["data row 1", "'b'", "not a finite number"]),
        ("a,colour,y\n1,red,3\n2,blue,4\n", ["line 2", "'colour'", "'red'", "categories", "one-hot"]),
        ("a;b;y\n1;2;3\n1;2,5;3\n", ["line 3", "'b'", "'2,5'", "decimal comma", "point"]),
        ("a;b;y\n1;2;3\n1;-1.234,5;3\n", ["'-1.234,5'", "decimal comma"]),
        ("a;b;y\n1;2;3\n1;2;0,5\n1;2;4\n", ["'y'", "line 3", "'0,5'", "decimal comma"]),
        ("a;b;y\n1;2;3\n1;2;0,5\n4;1;0,5\n", ["'y'", "line 3", "'0,5'", "decimal comma"]),
        ("a,b,y\n1,5,2,5,3,5\n", ["line 2: 6 fields, but the header has 3 (if numbers have a decimal comma"]),
        ("a,b,y\n1,2,3\n1,2,inf\n", ["'y'", "data row 2", "infinite"]),
        ("a,b,y\n1,2,3\n1,2,4\n1,2,oops\n", ["'y'", "data row 3", "'oops'", "two values"]),
        ("a,b,y\n1,2,u\n1,2,u\n", ["'y'", "'u'", "not 1"]),
        ("a,b,y\n1,2,3,4\n5,6,7,8\n", ["line 2: 4 fields, but the header has 3"]),
        ("a,b,y\n1,2,3\n5,6,7,8\n", ["line 3: 4 fields, but the header has 3 (if", "decimal comma"]),
        ('a,b,c,y\n1,2,3,4\n1,2,"x\n5",4\n1,2,3,4,5\n', ["line 5: 5 fields, but the header has 4"]),
        ("a,b,y\n1,2,3,\n1,2,3,\n1,2,3,4\n", ["line 4: 4 fields, but the header has 3"]),
        ("a,b,y\n1,2\n", ["has no rows of data with a target"]),
        ('a,b,y\n1,2,3\n2,"3,4\n5,6,7\n', ["line 3 cannot be read", "close each quote"]),
        ('a,b,y\n1,2,3\n2,3,"low\n5,6,"low"\n', ["line 3 cannot be read", "close each quote"]),
        (b"a,b,y\n1,2,3\n1,\xe9,3\n", ["not UTF-8", "line 3, byte 3 is 0xe9", "iconv -f WINDOWS-1252 -t UTF-8"]),
        (b"a,\xe9,y\n1,2,3\n", ["not UTF-8", "line 1, byte 3 is 0xe9"]),
        (b"a,b,y\n" + b"1,2,3\n" * 10**5 + b"\xe9,2,3\n", ["not UTF-8", "line 100002, byte 1"]),
        ("a,b,y\n1,2,3\n".encode("utf-16"), ["not UTF-8", "line 1, byte 1", "iconv -f UTF-16 -t UTF-8"]),
    ],
)
def test_a_bad_csv_file_gives_a_one_line_message(tmp_path: Path, text: str | bytes, parts: list[str]) -> None:
    reason = message(csv(tmp_path, text))
    for part in parts:
        assert part in reason


def test_rows_within_a_column_that_is_left_out_are_missed(tmp_path: Path) -> None:
    text = 'a,b,note,y\n1,2,"x,3\n2,3,y,5\n5,6,"z",7\n5,7,"one\ntwo",8\n'
    with pytest.raises(DataError, match="line 2 cannot be read"):
        read(csv(tmp_path, text), drop=["note"])
    path = csv(tmp_path, text.replace('"x,', "x,"), "closed.csv")
    assert read(path, drop=["note"]).y.tolist() == [3, 5, 7, 8]


@given(text=st.text(alphabet='ab12,;\t"\n\r .-é\0', max_size=30))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_read_or_gives_a_one_line_message(tmp_path: Path, text: str) -> None:
    for begins in ("a,b,y\n1,2,3\n", "a;b;y\r\n1;2;3\r\n", ""):
        path = csv(tmp_path, begins + text)
        try:
            assert np.isfinite(read(path).y).all()
        except DataError as error:
            assert "\n" not in str(error)


def test_an_unknown_target_is_refused_with_the_nearest_column(tmp_path: Path) -> None:
    reason = message(csv(tmp_path, "price,size,rooms\n1,2,3\n"), target="prise")
    assert "did you mean 'price'" in reason
    assert "price, size, rooms" in reason


def test_a_path_may_begin_with_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    csv(tmp_path, GOOD)
    assert read("~/table.csv").y.tolist() == [10, 20, 35]


def test_missing_files_and_folders_without_arrays_are_refused(tmp_path: Path) -> None:
    assert "No such file" in message(tmp_path / "none.csv")
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    assert "is a folder" in message(folder)


@pytest.mark.parametrize(
    ("path", "key"), [(None, "dataset.path"), ("a.xlsx", r"\.csv, \.tsv, \.npz, .*\.gz, .*X\.npy")]
)
def test_messages_name_impossible_options(path: str | None, key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        parse_file({"path": path, "target": None, "scale": "none"})


def test_npz_files_may_have_another_target(tmp_path: Path) -> None:
    X = np.arange(6, dtype=np.int32).reshape(3, 2)
    path = npz(tmp_path, X=X, y=np.array(["b", "a", "b"]), z=np.array([1.0, 2.0, 4.0]))
    data = read(path)
    assert data.X.tolist() == X.tolist()
    assert data.X.dtype == np.float64
    assert (data.y.tolist(), data.two_valued) == ([1, -1, 1], True)
    assert read(path, target="z").y.tolist() == [1, 2, 4]


@pytest.mark.parametrize(
    ("arrays", "parts"),
    [
        ({"X": np.ones((2, 2))}, ["no array 'y'", "arrays: X"]),
        ({"x": np.ones((2, 2)), "y": np.ones(2)}, ["no array 'X'"]),
        ({"X": np.ones(2), "y": np.ones(2)}, ["(2,)", "(n, d)"]),
        ({"X": np.ones((2, 2)), "y": np.ones(3)}, ["(2, 2)", "(3,)"]),
        ({"X": np.ones((2, 2)), "y": np.ones((2, 1))}, ["(2, 1)"]),
        ({"X": np.ones((0, 2)), "y": np.ones(0)}, ["at least one row"]),
        ({"X": np.ones((2, 1)), "y": np.ones(2)}, ["two attributes"]),
        ({"X": np.array([["a", "b"]]), "y": np.ones(1)}, ["numbers"]),
        ({"X": np.ones((1, 2)), "y": np.array([1j])}, ["numbers"]),
        ({"X": np.array([[1, 2], [3, np.nan]]), "y": np.ones(2)}, ["row 2", "column 2: empty or NaN"]),
        ({"X": np.array([[1, 2], [3, np.inf]]), "y": np.ones(2)}, ["row 2", "column 2: inf is not a finite number"]),
        ({"X": np.array([[1, None]], dtype=object), "y": np.ones(1)}, ["Python objects", ".astype(float)"]),
    ],
)
def test_a_bad_npz_file_gives_a_one_line_message(tmp_path: Path, arrays: dict[str, Any], parts: list[str]) -> None:
    reason = message(npz(tmp_path, **arrays))
    for part in parts:
        assert part in reason


def test_a_damaged_npz_file_gives_a_one_line_message(tmp_path: Path) -> None:
    assert "not an NPZ file" in message(csv(tmp_path, "hello", "a.npz"))
    assert "empty" in message(csv(tmp_path, "", "b.npz"))
    path = tmp_path / "c.npz"
    np.savez_compressed(path, X=np.random.default_rng(0).random((50, 4)), y=np.ones(50))
    content = bytearray(path.read_bytes())
    content[200:400] = bytes(200)
    path.write_bytes(content)
    assert "cannot be read" in message(path)


@pytest.mark.parametrize(
    ("row", "column"),
    [("1,2,1e155", "'y'"), ("1,2,-1e155", "'y'"), ("1e200,2,3", "attribute 'a'"), ("1,-1e31,3", "attribute 'b'")],
)
def test_too_large_numbers_are_refused(tmp_path: Path, row: str, column: str) -> None:
    reason = message(csv(tmp_path, f"a,b,y\n1,2,1\n1,2,2\n{row}\n"))
    for part in (column, "only 1e-30 to 1e+30 can be computed with", "power of ten"):
        assert part in reason


@pytest.mark.parametrize(("scale", "column"), [("1,2,{}e-170", "'y'"), ("{}e-170,2,1", "attribute 'a'")])
def test_too_small_numbers_are_refused(tmp_path: Path, scale: str, column: str) -> None:
    rows = "\n".join(scale.format(number) for number in (1, 2, 3))
    text = f"a,b,y\n{rows}\n"
    if "attribute" in column:
        text = text.replace("2,1\n", "2,4\n", 1)
    assert column in message(csv(tmp_path, text))


def test_small_numbers_beside_larger_ones_and_two_target_values_are_allowed(tmp_path: Path) -> None:
    data = read(csv(tmp_path, "a,b,y\n1,1e-170,1e155\n1e-170,2,-1e155\n1,0,1e155\n"))
    assert data.y.tolist() == [1, -1, 1]
    arrays = {"X": np.array([[1, 1e40], [2, 3]]), "y": np.array([1, 2])}
    assert "attribute number 2" in message(npz(tmp_path, **arrays))


ROWS = np.random.default_rng(0).normal(size=(30, 5)).round(2)


def table(path: Path, header: str) -> Path:
    d = header.count(",") + 1
    lines = [",".join(map(str, row)) for row in ROWS[:, :d].tolist()]
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


@pytest.mark.parametrize(
    "header",
    [
        "1990,1991,1992,1993,y",
        "id,400,402.5,405,407.5",
        "9,8,7,6,target",
        "2019,2020,y",
        "x,1,2",
        "1,b,c,d,5",
        "PAR1,b,y",
        "31.5,63,125,250,y",
    ],
)
def test_names_may_be_numbers(tmp_path: Path, header: str) -> None:
    assert ",".join(read(table(tmp_path / "t.csv", header)).names) in header


@pytest.mark.parametrize(
    "first",
    [
        *("5.1,3.5,1.4,0.2,setosa", "1,2,3,4,?", "1,2,3,4,NA", '1,2,3,4,"1,5"', "1,2,3,4,2020-01-01", "1.5,2.5,yes"),
        *("1.5,abc,3", "3,1,2,7,x", "nan,1,2,3,x", "1,2,3,4,-"),
    ],
)
def test_a_first_row_of_data_is_not_lost(tmp_path: Path, first: str) -> None:
    path = table(tmp_path / "t.csv", first)
    with pytest.raises(
        DataError, match=r"its first row looks like data, as . of . fields are numbers: write the names"
    ):
        read(path)
    assert main(["study", "create", str(tmp_path / "s.db"), f"table={path}"]) == 3


def test_a_label_that_comes_again_is_no_name(tmp_path: Path) -> None:
    assert "looks like data" in message(csv(tmp_path, "1,2,3,4,red\n2,3,4,5,blue\n3,4,5,6,red\n"))


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("1,234", "if it separates thousands, write 1234; if decimals, write 1.234"),
        ("-12,345", "if it separates thousands, write -12345; if decimals, write -12.345"),
        ("5,400.0", "has commas between thousands: write 5400.0"),
        ("1,234,567", "has commas between thousands: write 1234567"),
        ("1_000", "is not a number"),
        ("0,234", "has a decimal comma: write numbers with a point, such as 0.234"),
        ("1234,5", "has a decimal comma: write numbers with a point, such as 1234.5"),
        ("1.234,5", "such as 1234.5"),
        ("1,23,4", "is not a number"),
    ],
)
def test_what_a_comma_means(tmp_path: Path, cell: str, said: str) -> None:
    for row in (f'"{cell}",2,4', f'1,2,"{cell}"'):
        assert said in message(csv(tmp_path, f"a,b,y\n1,2,3\n{row}\n3,2,1\n"))


def as_excel(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", "")


def as_npz(path: Path) -> None:
    np.savez(path.with_suffix(".npz"), X=ROWS[:, :3], y=ROWS[:, 3])
    shutil.move(path.with_suffix(".npz"), path)


def as_npy(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, ROWS)


def as_sqlite(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("create table t(a)")
    connection.close()


@pytest.mark.parametrize(
    ("name", "write", "said"),
    [
        (
            "t.csv",
            lambda path: pd.DataFrame({"a": [1], "b": 2, "y": 3}).to_parquet(path),
            "a Parquet file: name it t.parquet",
        ),
        ("t.svm", as_npz, "an NPZ file: name it t.npz"),
        ("t.csv", as_excel, "an Excel workbook: save the table as CSV"),
        ("t.csv", as_sqlite, "an SQLite database: save the table as CSV"),
        ("t.npz", as_npy, "a single array of NumPy"),
        ("t.csv", lambda path: path.write_bytes(gzip.compress(b"a,b,y\n1,2,3\n")), "gzip: name it t.csv.gz"),
        ("t.parquet", lambda path: path.write_bytes(bz2.compress(b"a,b,y\n1,2,3\n")), "bzip2: unpack it first"),
    ],
)
def test_a_file_under_a_wrong_name(tmp_path: Path, name: str, write: Callable[[Path], object], said: str) -> None:
    write(tmp_path / name)
    reason = message(tmp_path / name)
    assert f"{name} looks like " in reason
    assert said in reason


def test_objects_of_python_are_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", X=ROWS[:, :3], y=np.array(["a", "b"] * 15, dtype=object))
    with pytest.raises(DataError, match=r"t.npz: X or y holds Python objects: save it with .astype\(float\)"):
        read(tmp_path / "t.npz")


def test_an_index_column_that_pandas_named_is_noticed_in_any_order(tmp_path: Path) -> None:
    frame = pd.DataFrame(ROWS, columns=list("abcdy"))
    frame.insert(0, "Unnamed: 0", range(7, 7 * 31, 7))
    frame.sample(25, random_state=0).to_csv(tmp_path / "t.csv", index=False)
    assert any("'Unnamed: 0' looks like an identifier" in note for note in read(tmp_path / "t.csv").notes)
