"""Tables and lists that lie about their size or never end are refused in one line; wide ones open in linear time."""

import bz2
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from budgetreg.cli import app
from budgetreg.common.errors import DataError
from budgetreg.data import tables, text_files
from budgetreg.data.attributes import read_prices, read_ranges
from budgetreg.data.file import parse_file
from budgetreg.runs import models
from tests.tiers import quick_but

PACK = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def refused(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        parse_file({"path": str(path), "target": None, "scale": "none"}).load()
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 500
    return text


def npy(shape: tuple[int, ...], descr: str = "<f8") -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    return file.getvalue() + bytes(240)


@pytest.mark.parametrize(
    ("X", "y", "descr"),
    [
        ((10**13, 3), (10**13,), "<f8"),
        ((3, 10**13), (3,), "<f8"),
        ((-10, 3), (-10,), "<f8"),
        ((10, 3), (30,), "<U500000000"),
    ],
)
def test_arrays_that_claim_more_than_the_file_has_are_refused(
    tmp_path: Path, X: tuple[int, ...], y: tuple[int, ...], descr: str
) -> None:
    (tmp_path / "X.npy").write_bytes(npy(X))
    (tmp_path / "y.npy").write_bytes(npy(y, descr))
    assert "its header gives shape" in refused(tmp_path)


@pytest.mark.parametrize("index", ["2147483646", "2147483650", "4294967298", "9" * 5000])
def test_an_index_beyond_memory_is_refused(tmp_path: Path, index: str) -> None:
    (tmp_path / "table.svm").write_text(f"1 1:2\n1 1:2 {index}:1\n")
    assert "line 2: index" in refused(tmp_path / "table.svm")


def test_numbers_of_libsvm_files_follow_the_rule_of_all_tables(tmp_path: Path) -> None:
    (tmp_path / "table.svm").write_text("1 1:2\n1 1:1_0\n")
    assert "line 2: '1_0' is not a finite number" in refused(tmp_path / "table.svm")


@pytest.mark.parametrize(
    ("ending", "line"), quick_but([(".bz2", b"0,0,0\n")], product(PACK, [b"0,0,0\n", b"\n", b"\0"]))
)
def test_compressed_text_out_of_all_proportion_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, line: bytes
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tables, "MOST_BYTES", 1 << 20)
    path = tmp_path / f"table.csv{ending}"
    path.write_bytes(PACK[ending](b"a,b,y\n1,2,3\n" + line * (1 << 20)))
    assert any(word in refused(path) for word in ("times its size", "a line is longer", "blank line"))
    assert [file.name for file in (tmp_path / "cache").rglob("*") if file.is_file()] in ([], ["lock"])


def test_compressed_arrays_out_of_all_proportion_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_BYTES", 1 << 20)
    np.savez_compressed(tmp_path / "table.npz", X=np.zeros((10**5, 40)), y=np.zeros(10**5))
    assert "times its size" in refused(tmp_path / "table.npz")


@pytest.mark.parametrize("ending", [".csv", ".svm"])
def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    monkeypatch.setattr(tables, "MOST_BYTES", 1 << 20)
    path = tmp_path / f"table{ending}"
    path.write_bytes(b"1" * (1 << 21))
    assert "a line is longer than 1 MiB" in refused(path)


def test_a_quotation_mark_that_is_left_open_does_not_fill_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_files, "_MOST_READ", 1 << 20)
    path = tmp_path / "table.csv"
    path.write_text("a,b,y\n1,2,3\n" + '1,"2,3\n' + "1,2,3\n" * (1 << 18))
    assert "quotation mark" in refused(path)
    path.write_text("a,b,y\n1,2,3\n" + "1,2,4\n" * (1 << 18))
    monkeypatch.setattr(tables, "CHUNK_ENTRIES", 1 << 18)
    assert len(parse_file({"path": str(path), "target": None, "scale": "none"}).load().y) == (1 << 18) + 1


def test_a_blank_table_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "_MOST_BLANK", 100)
    (tmp_path / "table.csv").write_text("\n" * 200)
    assert "blank line" in refused(tmp_path / "table.csv")


@pytest.mark.parametrize("number", ["1_0", "\u0661", "9" * 5000, "0x1"])
@pytest.mark.parametrize("read", [read_prices, read_ranges])
def test_lists_have_the_numbers_of_tables(tmp_path: Path, read: Callable[..., Any], number: str) -> None:
    column = "cost" if read is read_prices else "low,high"
    before = "" if read is read_prices else "0,"
    (tmp_path / "list.csv").write_text(f"attribute,{column}\na,{before}{number}\nb,{before}1\n")
    with pytest.raises(DataError, match=r"line 2: attribute 'a': .*(is not a number|must be (0 or )?from)") as caught:
        read(tmp_path / "list.csv", ("a", "b"), 2)
    assert len(str(caught.value)) < 500


def test_an_endless_name_in_a_list_is_cut_in_the_message(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text(f"attribute,cost\n{'9' * 5000},1\n")
    with pytest.raises(DataError, match=r"no attribute '9+\.\.\.'") as caught:
        read_prices(tmp_path / "list.csv", ("a", "b"), 2)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("label", ["NA", "None"])
def test_a_label_that_means_a_missing_value_is_named(tmp_path: Path, label: str) -> None:
    (tmp_path / "table.csv").write_text(f"a,b,y\n1,2,EU\n1,3,{label}\n")
    text = refused(tmp_path / "table.csv")
    assert f"line 3, data row 2: {label!r} means a missing value" in text
    assert "another word" in text


@pytest.mark.parametrize(
    ("targets", "part"),
    [([b"\xff", b"\x80"], "not UTF-8"), ([[1.0], [2.0]], "holds list"), ([{"p": 1}, {"p": 2}], "holds struct")],
)
def test_parquet_targets_that_are_neither_numbers_nor_text_are_refused(
    tmp_path: Path, targets: list[Any], part: str
) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"a": [1.0, 2.0], "b": [2.0, 1.0], "y": targets}), tmp_path / "table.parquet")
    assert part in refused(tmp_path / "table.parquet")


def test_too_little_memory_is_reported_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*words: object, **options: object) -> None:
        raise MemoryError

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "table.npz"
    np.savez(path, X=np.ones((10, 2)), y=np.arange(10.0))
    with monkeypatch.context() as patched:
        patched.setattr(tables, "check_finite", full)
        assert refused(path) == f"there is not enough memory to read {path}"
    monkeypatch.setattr(tables, "IN_MEMORY", 0)
    monkeypatch.setattr(pd, "concat", full)
    assert refused(path) == f"there is not enough memory to read {path}"


def test_too_little_memory_elsewhere_is_one_line_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*words: object) -> None:
        raise MemoryError("Unable to allocate 16 GiB")

    monkeypatch.setattr(app, "_dispatch", full)
    assert app.main(["predict"]) == 3
    assert capsys.readouterr().err == "budgetreg: not enough memory: Unable to allocate 16 GiB\n"


def parquet(folder: Path, **columns: Any) -> Path:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    a, b, y = np.arange(1.0, 5.0), np.array([1.0, 2.0, 2.0, 1.0]), np.array([3.0, 1.0, 4.0, 1.5])
    pq.write_table(pa.table({"a": a, "b": b, "y": y} | columns), folder / "table.parquet")
    return folder / "table.parquet"


def test_decimal_columns_of_parquet_files_are_numbers(tmp_path: Path) -> None:
    decimals = [Decimal(word) for word in ("1.25", "-2", "0.5", "1e3")]
    path = parquet(tmp_path, b=decimals, y=decimals)
    data = parse_file({"path": str(path), "target": None, "scale": "none"}).load()
    np.testing.assert_array_equal(np.asarray(data.X)[:, 1], [1.25, -2, 0.5, 1000])
    np.testing.assert_array_equal(data.y, [1.25, -2, 0.5, 1000])


def test_large_integers_beside_missing_ones_are_read_like_others(tmp_path: Path) -> None:
    path = parquet(tmp_path, b=[None, 2**60 + 1, 3, 2**53 + 1])
    options = {"path": str(path), "target": None, "scale": "none", "missing": "unavailable"}
    assert np.asarray(parse_file(options).load().X)[:, 1].tolist() == [0, 2.0**60, 3, 2.0**53]


@pytest.mark.parametrize("numbers", [["3", "1.5", "-2e3", "4"], [str(10**24 + i * 10**20) for i in range(4)]])
def test_targets_that_are_numbers_as_text_are_numbers(tmp_path: Path, numbers: list[str]) -> None:
    lines = [f"{i},{i % 3},{number}" for i, number in enumerate(numbers)]
    (tmp_path / "table.csv").write_text("\n".join(["a,b,y", *lines]))
    np.savez(tmp_path / "table.npz", X=np.ones((4, 2)), y=np.array(numbers))
    for path in (tmp_path / "table.csv", tmp_path / "table.npz", parquet(tmp_path, y=numbers)):
        data = parse_file({"path": str(path), "target": None, "scale": "none"}).load()
        assert data.y.tolist() == list(map(float, numbers))


def test_a_column_without_a_name_is_refused(tmp_path: Path) -> None:
    path = parquet(tmp_path, **{"": [1.0, 2.0, 3.0, 4.0]})
    assert "column 4 has no name" in refused(path)  # not a table without targets


def test_extended_numbers_beyond_the_usual_ones_are_infinite(tmp_path: Path) -> None:
    huge = np.full((10, 2), np.finfo(np.longdouble).max)
    if huge.dtype == np.float64:
        pytest.skip("extended numbers are not larger here")
    np.savez(tmp_path / "table.npz", X=huge, y=np.arange(10.0))
    assert "data row 1, column 1: inf is not a finite number" in refused(tmp_path / "table.npz")
    np.savez(tmp_path / "table.npz", X=np.ones((10, 2)), y=huge[:, 0])
    assert "infinite" in refused(tmp_path / "table.npz")


def test_an_array_whose_name_has_no_ending_is_none(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "table.npz", "w") as archive:
        archive.writestr("X", npy((10, 3)))
    assert "no array 'X'; arrays: none" in refused(tmp_path / "table.npz")


def test_the_end_of_a_line_is_that_of_the_reader_of_libsvm_files(tmp_path: Path) -> None:
    (tmp_path / "table.svm").write_bytes(b"1 1:2 2:3\r2 1:1 2:2\r")
    assert "line 1: '2' is not index:value" in refused(tmp_path / "table.svm")


def test_a_query_without_a_number_is_named(tmp_path: Path) -> None:
    (tmp_path / "table.svm").write_text("1 qid:3 1:2 2:3\n2 qid 1:1 2:2\n")
    assert "line 2: 'qid' is not index:value" in refused(tmp_path / "table.svm")


def test_long_words_of_a_table_are_cut_in_messages(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    for content in (f"{'x' * 9999},b,y\n{'u' * 9999},1,2\n", f"a,b,y\n1,2,3\n1,3,{'u' * 9999}\n2,2,4\n"):
        path.write_text(content)
        refused(path)
    path.write_text(f"{'x' * 9999},b,y\n1,2,3\n")
    with pytest.raises(DataError) as caught:
        parse_file({"path": str(path), "target": "x" * 9998, "scale": "none"}).load()
    assert len(str(caught.value)) < 500


def test_the_header_of_a_list_may_have_spaces(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text(" attribute , cost \n a , 1 \n b , 2 \n")
    assert read_prices(tmp_path / "list.csv", ("a", "b"), 2).costs == (1.0, 2.0)


class Counted(str):
    """A name that counts how often names are compared."""

    compared = 0
    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__ne__(self, other)


def test_names_are_compared_a_few_times_for_each_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    d, split = 1000, text_files.records
    names = [Counted(f"gene{number}") for number in range(d)]
    lines = [",".join([*names, "y"])] + [",".join(map(str, range(row, row + d + 1))) for row in range(3)]
    (tmp_path / "wide.csv").write_text("\n".join(lines))
    (tmp_path / "costs.csv").write_text("attribute,cost\n" + "".join(f"{name},1\n" for name in reversed(names)))
    monkeypatch.setattr(text_files, "records", lambda *words: ((line, [*map(Counted, r)]) for line, r in split(*words)))
    monkeypatch.setattr(Counted, "compared", 0)
    data = parse_file({"path": str(tmp_path / "wide.csv"), "target": None, "scale": "none"}).load()
    read_prices(tmp_path / "costs.csv", data.names, d)
    learned = {"names": np.array(names[::-1]), "w": np.zeros((1, d))}
    assert models._columns(learned, replace(data, names=tuple(names)), tmp_path).tolist() == list(range(d))[::-1]
    assert 0 < Counted.compared < 20 * d
