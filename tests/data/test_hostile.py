"""Tables and lists that lie about their size or never end are refused in one line; wide ones open in linear time."""

import bz2
import gzip
import io
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from budgetreg.cli import app
from budgetreg.data.attributes import read_prices, read_ranges
from budgetreg.data.formats import chunks, delimited
from budgetreg.data.tabular import parse_file
from budgetreg.errors import DataError
from budgetreg.results import predictions

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


@pytest.mark.parametrize("ending", PACK)
@pytest.mark.parametrize("line", [b"0,0,0\n", b"\n", b"\0"])
def test_compressed_text_out_of_all_proportion_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, line: bytes
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(chunks, "MOST_BYTES", 1 << 20)
    path = tmp_path / f"table.csv{ending}"
    path.write_bytes(PACK[ending](b"a,b,y\n1,2,3\n" + line * (1 << 20)))
    assert any(word in refused(path) for word in ("times its size", "a line is longer", "blank line"))
    assert [file.name for file in (tmp_path / "cache").rglob("*") if file.is_file()] in ([], ["lock"])


def test_compressed_arrays_out_of_all_proportion_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "MOST_BYTES", 1 << 20)
    np.savez_compressed(tmp_path / "table.npz", X=np.zeros((10**5, 40)), y=np.zeros(10**5))
    assert "times its size" in refused(tmp_path / "table.npz")


@pytest.mark.parametrize("ending", [".csv", ".svm"])
def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    monkeypatch.setattr(chunks, "MOST_BYTES", 1 << 20)
    path = tmp_path / f"table{ending}"
    path.write_bytes(b"1" * (1 << 21))
    assert "a line is longer than 1 MiB" in refused(path)


def test_a_quotation_mark_that_is_left_open_does_not_fill_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "_MOST_CHUNK", 1 << 20)
    path = tmp_path / "table.csv"
    path.write_text("a,b,y\n1,2,3\n" + '1,"2,3\n' + "1,2,3\n" * (1 << 18))
    assert "quotation mark" in refused(path)
    path.write_text("a,b,y\n1,2,3\n" + "1,2,4\n" * (1 << 18))
    monkeypatch.setattr(chunks, "CHUNK_ENTRIES", 1 << 18)
    assert len(parse_file({"path": str(path), "target": None, "scale": "none"}).load().y) == (1 << 18) + 1


def test_a_blank_table_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "_MOST_BLANK", 100)
    (tmp_path / "table.csv").write_text("\n" * 200)
    assert "blank line" in refused(tmp_path / "table.csv")


@pytest.mark.parametrize("number", ["1_0", "\u0661", "9" * 5000, "0x1"])
@pytest.mark.parametrize("read", [read_prices, read_ranges])
def test_lists_have_the_numbers_of_tables(tmp_path: Path, read: Callable[..., Any], number: str) -> None:
    column = "cost" if read is read_prices else "low,high"
    before = "" if read is read_prices else "0,"
    (tmp_path / "list.csv").write_text(f"attribute,{column}\na,{before}{number}\nb,{before}1\n")
    with pytest.raises(DataError, match=r"line 2: attribute 'a': .*(is not a number|must be from)") as caught:
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
    def full(*words: object) -> None:
        raise MemoryError

    np.savez(tmp_path / "table.npz", X=np.ones((10, 2)), y=np.arange(10.0))
    monkeypatch.setattr(chunks, "check_finite", full)
    assert refused(tmp_path / "table.npz") == f"there is not enough memory to read {tmp_path / 'table.npz'}"


def test_too_little_memory_elsewhere_is_one_line_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*words: object) -> None:
        raise MemoryError("Unable to allocate 16 GiB")

    monkeypatch.setattr(app, "_dispatch", full)
    assert app.main(["predict"]) == 3
    assert capsys.readouterr().err == "budgetreg: not enough memory: Unable to allocate 16 GiB\n"


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
    d, split = 1000, delimited.records
    names = [Counted(f"gene{number}") for number in range(d)]
    lines = [",".join([*names, "y"])] + [",".join(map(str, range(row, row + d + 1))) for row in range(3)]
    (tmp_path / "wide.csv").write_text("\n".join(lines))
    (tmp_path / "costs.csv").write_text("attribute,cost\n" + "".join(f"{name},1\n" for name in reversed(names)))
    monkeypatch.setattr(delimited, "records", lambda *words: ((line, [*map(Counted, r)]) for line, r in split(*words)))
    monkeypatch.setattr(Counted, "compared", 0)
    data = parse_file({"path": str(tmp_path / "wide.csv"), "target": None, "scale": "none"}).load()
    read_prices(tmp_path / "costs.csv", data.names, d)
    learned = {"names": np.array(names[::-1]), "w": np.zeros((1, d))}
    assert predictions._columns(learned, names, d, tmp_path).tolist() == list(range(d))[::-1]
    assert 0 < Counted.compared < 20 * d
