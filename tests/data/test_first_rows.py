"""What a file begins with: a header or data, and the format that its name promises; and numbers with commas."""

import bz2
import gzip
import shutil
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from budgetreg.cli.app import main
from budgetreg.common.errors import DataError
from budgetreg.data.file import parse_file

ROWS = np.random.default_rng(0).normal(size=(30, 5)).round(2)


def load(path: Path) -> tuple[str, ...]:
    return parse_file({"path": str(path), "target": None, "scale": "none", "drop": []}).load().names


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
    assert ",".join(load(table(tmp_path / "t.csv", header))) in header


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
        load(path)
    assert main(["study", "create", str(tmp_path / "s.db"), f"table={path}"]) == 3


def test_a_label_that_comes_again_is_no_name(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("1,2,3,4,red\n2,3,4,5,blue\n3,4,5,6,red\n")
    with pytest.raises(DataError, match="looks like data"):
        load(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("1,234", "if it separates thousands, write 1234; if decimals, write 1.234"),
        ("-12,345", "if it separates thousands, write -12345; if decimals, write -12.345"),
        ("5,400.0", "has commas between thousands: write 5400.0"),
        ("1,234,567", "has commas between thousands: write 1234567"),
        ("-1 234 567.5", "has spaces between thousands: write -1234567.5"),
        ("1\u202f234,5", "has spaces between thousands: write 1234.5"),
        ("1'234", "has apostrophes between thousands: write 1234"),
        ("1_000", "has underscores between thousands: write 1000"),
        ("0,234", "has a decimal comma: write numbers with a point, such as 0.234"),
        ("1234,5", "has a decimal comma: write numbers with a point, such as 1234.5"),
        ("1.234,5", "such as 1234.5"),
        ("1,23,4", "is not a number"),
    ],
)
def test_what_a_comma_means(tmp_path: Path, cell: str, said: str) -> None:
    (tmp_path / "t.csv").write_text(f'a,b,y\n1,2,3\n"{cell}",2,4\n3,2,1\n')
    with pytest.raises(DataError) as refusal:
        load(tmp_path / "t.csv")
    assert said in str(refusal.value)
    (tmp_path / "y.csv").write_text(f'a,b,y\n1,2,3\n1,2,"{cell}"\n3,2,1\n')
    with pytest.raises(DataError) as refusal:
        load(tmp_path / "y.csv")
    assert said in str(refusal.value)


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
    with pytest.raises(DataError) as refusal:
        load(tmp_path / name)
    assert f"{name} looks like " in str(refusal.value)
    assert said in str(refusal.value)


def test_objects_of_python_are_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", X=ROWS[:, :3], y=np.array(["a", "b"] * 15, dtype=object))
    with pytest.raises(DataError, match=r"t.npz: y holds Python objects: save it as y.astype\(float\)"):
        load(tmp_path / "t.npz")


def test_an_index_column_that_pandas_named_is_noticed_in_any_order(tmp_path: Path) -> None:
    frame = pd.DataFrame(ROWS, columns=list("abcdy"))
    frame.insert(0, "Unnamed: 0", range(7, 7 * 31, 7))
    frame.sample(25, random_state=0).to_csv(tmp_path / "t.csv", index=False)
    data = parse_file({"path": str(tmp_path / "t.csv"), "target": None, "scale": "none", "missing": "refuse"}).load()
    assert any("'Unnamed: 0' looks like an identifier" in note for note in data.notes)
