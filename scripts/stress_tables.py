"""Trials of `stress.py` with tables and lists that are damaged, lie about their size, or never end.

Each trial may take 1.5 GiB of memory more than it begins with. Variants of a case take turns; the seed decides where
and how a file is damaged.
"""

import bz2
import gzip
import io
import lzma
import os
import resource
import shutil
import socket
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import stress_reading
from stress_trials import Trial, TrialResult, forked, note_leftovers

_MEMORY = 3 << 29
_FIXED = "k=2 repetitions=1 checkpoints=2 tuning=fixed tuning.B=1 backend=sequential"
_RUN = f"run dataset=file {_FIXED} algo=naive out=out dataset.path="
_LISTS = {"costs": "attribute,cost\na,{}\nb,1\n", "ranges": "attribute,low,high\na,0,{}\nb,-1,1\n"}
_PACK: Mapping[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
_PIECE, _PIECES = 1 << 24, 256  # bombs of 4 GiB

Variant = Callable[[Path, np.random.Generator], str]
"""Writes what the command line, which it returns, reads in the folder."""


def _rows(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(40, 3)).round(3)


def _csv(path: Path, rows: Sequence[Sequence[object]], header: str = "a,b,y") -> None:
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows), ""]))


def _table(folder: Path, rng: np.random.Generator) -> str:
    _csv(folder / "table.csv", _rows(rng).tolist())
    return f"{_RUN}table.csv"


def _npy(shape: Sequence[int], body: bytes, descr: str = "<f8") -> bytes:
    content = io.BytesIO()
    header = {"descr": descr, "fortran_order": False, "shape": tuple(shape)}
    np.lib.format.write_array_header_1_0(content, header)
    return content.getvalue() + body


def _npz(folder: Path, X: bytes, y: bytes, method: int = zipfile.ZIP_STORED) -> Path:
    path = folder / "table.npz"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("X.npy", X)
        archive.writestr("y.npy", y)
    return path


def _claims(X: Sequence[int], y: Sequence[int], descr: str = "<f8") -> Variant:
    """Return a variant of arrays that claim shapes, and a type of the targets."""

    def write(folder: Path, rng: np.random.Generator) -> str:
        rows = _rows(rng)
        parts = _npy(X, rows.tobytes()), _npy(y, rows[:, 0].tobytes(), descr)
        if rng.random() < 0.5:
            _npz(folder, *parts, zipfile.ZIP_DEFLATED)
            return f"{_RUN}table.npz"
        (folder / "arrays").mkdir()
        for name, part in zip("Xy", parts, strict=True):
            (folder / "arrays" / f"{name}.npy").write_bytes(part)
        return f"{_RUN}arrays"

    return write


def _whole_npz(folder: Path, rng: np.random.Generator, method: int) -> Path:
    rows = _rows(rng)
    return _npz(folder, _npy((40, 2), rows[:, :2].tobytes()), _npy((40,), rows[:, 2].tobytes()), method)


def _zip_field(value: int, local: int, central: int) -> Variant:
    """Return a variant whose ZIP file has another value in a field of all its headers."""

    def write(folder: Path, rng: np.random.Generator) -> str:
        path = _whole_npz(folder, rng, zipfile.ZIP_DEFLATED)
        content = bytearray(path.read_bytes())
        for mark, offset in ((b"PK\x03\x04", local), (b"PK\x01\x02", central)):
            at = content.find(mark)
            while at >= 0:
                content[at + offset] = value
                at = content.find(mark, at + 1)
        path.write_bytes(content)
        return f"{_RUN}table.npz"

    return write


def _noise(path: Path, rng: np.random.Generator, first: int, last: int, letters: bytes = bytes(range(256))) -> None:
    content = bytearray(path.read_bytes())
    start, length = int(rng.integers(first % len(content), last % len(content))), int(rng.integers(1, 33))
    content[start : start + length] = bytes(rng.choice(list(letters), len(content[start : start + length])).tolist())
    path.write_bytes(content)


def _damaged_npz(method: int) -> Variant:
    def write(folder: Path, rng: np.random.Generator) -> str:
        path = _whole_npz(folder, rng, method)
        (folder / "whole").mkdir()
        shutil.copy(path, folder / "whole")
        _noise(path, rng, 0, -1)
        return f"{_RUN}table.npz"

    return write


def _types(name: str, dtype: Any) -> Variant:
    """Return a variant of arrays with a type that is no number, or beyond what is one."""

    def write(folder: Path, rng: np.random.Generator) -> str:
        arrays: dict[str, Any] = {"X": _rows(rng), "y": rng.normal(size=40)}
        with np.errstate(all="ignore"):
            arrays[name] = (1e5 * arrays[name]).astype(dtype)
        np.savez(folder / "table.npz", **arrays)
        return f"{_RUN}table.npz"

    return write


def _noisy(ending: str) -> Variant:
    """Return a variant of a valid table some bytes of which are overwritten."""

    def write(folder: Path, rng: np.random.Generator) -> str:
        words = {
            ".csv": _table,
            ".svm": _svm("3:1"),
            ".parquet": _parquet(float),
            ".npy": _claims((40, 3), (40,)),
        }[ending](folder, rng)
        letters = b'\r\n\t\0 ,;:.#+-"019eEnax_' if ending in (".csv", ".svm") else bytes(range(256))
        for path in (folder / "arrays" / "X.npy", folder / "table.npz", folder / f"table{ending}"):
            if path.exists():
                _noise(path, rng, 0, 150, letters)
        return words

    return write


def _svm(entry: str) -> Variant:
    def write(folder: Path, rng: np.random.Generator) -> str:
        lines = [f"{row[0]} 1:{row[1]} 2:{row[2]}" for row in _rows(rng)]
        at = int(rng.integers(len(lines)))
        lines[at] = f"{lines[at]} {entry}"
        (folder / "table.svm").write_text("\n".join(lines) + "\n")
        return f"{_RUN}table.svm"

    return write


def _parquet(target: Callable[[float], object], name: str = "y") -> Variant:
    def write(folder: Path, rng: np.random.Generator) -> str:
        import pyarrow as pa
        import pyarrow.parquet as pq

        a, b, y = _rows(rng).T
        pq.write_table(pa.table({"a": a, "b": b, "y": y} | {name: list(map(target, y))}), folder / "table.parquet")
        return f"{_RUN}table.parquet"

    return write


def _footer(folder: Path, rng: np.random.Generator) -> str:
    words = _parquet(float)(folder, rng)
    path = folder / "table.parquet"
    length = int.from_bytes(path.read_bytes()[-8:-4], "little")
    _noise(path, rng, -8 - length, -1)
    return words


def _no_end(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _bomb(line: bytes) -> Variant:
    """Return a variant of 4 GiB of equal lines, compressed, as a table or as a list."""

    def write(folder: Path, rng: np.random.Generator) -> str:
        ending = list(_PACK)[rng.integers(len(_PACK))]
        piece = _PACK[ending](line * (_PIECE // len(line)))
        what = ("table.csv", "table.svm", "list.csv")[rng.integers(3)]
        start = {
            "table.csv": b"a,b,y\n1,2,3\n2,1,4\n",
            "table.svm": b"1 1:2 2:3\n",
            "list.csv": b"attribute,cost\na,1\n",
        }
        with (folder / f"{what}{ending}").open("wb") as file:
            file.write(_PACK[ending](start[what] if rng.random() < 0.5 else b""))
            for _ in range(_PIECES):
                file.write(piece)
        if what.startswith("table"):
            return f"{_RUN}{what}{ending}"
        return f"{_table(folder, rng)} dataset.costs={what}{ending}"

    return write


def _long_line(ending: str) -> Variant:
    def write(folder: Path, rng: np.random.Generator) -> str:
        path = folder / f"long{ending}"
        path.write_bytes(b"a,b,y\n1,2,3\n" if ending == ".csv" and rng.random() < 0.5 else b"")
        os.truncate(path, 1_200_000_000)  # with zeros, which take no space on the disk
        return f"{_RUN}{path.name}" if ending != ".list" else f"{_table(folder, rng)} dataset.costs={path.name}"

    return write


def _open_quote(folder: Path, rng: np.random.Generator) -> str:
    piece = b"1,2,3\n" * (1 << 20)
    with (folder / "table.csv").open("wb") as file:
        file.write(b"a,b,y\n" + b"1,2,3\n" * int(rng.integers(3)) + b'1,"2,3\n')
        for _ in range(200):
            file.write(piece)
    return f"{_RUN}table.csv"


def _no_file(make: Callable[[Path], object]) -> Variant:
    """Return a variant with what is no file in place of a table, a list, or the table of `predict`."""

    def write(folder: Path, rng: np.random.Generator) -> str:
        where = int(rng.integers(5))
        ending = (".csv", ".npz", ".parquet", ".svm")[rng.integers(4)]
        make(folder / f"x{ending}")
        whole = _table(folder, rng)
        if where == 4:
            (folder / "arrays").mkdir()
            make(folder / "arrays" / "X.npy")
            np.save(folder / "arrays" / "y.npy", np.arange(40.0))
        return (
            f"{_RUN}x{ending}",
            f"{whole} dataset.costs=x{ending}",
            f"{whole} dataset.ranges=x{ending}",
            f"predict ../whole/left x{ending}",
            f"{_RUN}arrays",
        )[where]

    return write


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        before = Path.cwd()
        os.chdir(path.parent)  # the path of a socket must be short
        bound.bind(path.name)
        os.chdir(before)


def _list(name: str, line: str) -> Variant:
    """Return a variant of a list with a line that is wrong, or with a number that is wrong in a right one."""

    def write(folder: Path, rng: np.random.Generator) -> str:
        form = _LISTS[name]
        text = form.replace("a,", line, 1) if line.endswith(",") else form.replace("{}", line)
        (folder / "list.csv").write_text(text.replace("{}", "1"))
        return f"{_table(folder, rng)} dataset.{name}=list.csv"

    return write


def _cell(text: str) -> Variant:
    def write(folder: Path, rng: np.random.Generator) -> str:
        rows = _rows(rng).tolist()
        rows[rng.integers(40)][rng.integers(3)] = text
        _csv(folder / "table.csv", rows)
        return f"{_RUN}table.csv"

    return write


def _label(text: str) -> Variant:
    def write(folder: Path, rng: np.random.Generator) -> str:
        rows = _rows(rng).tolist()
        _csv(folder / "table.csv", [(a, b, text if y > 0 else "other") for a, b, y in rows])
        return f"{_RUN}table.csv"

    return write


def _wide(ending: str) -> Variant:
    """Return a variant of a valid table with 3,000 to 6,000 columns, and lists for it."""

    def write(folder: Path, rng: np.random.Generator) -> str:
        d = int(rng.integers(3000, 6000))
        names = [f"gene{i}" for i in range(d)]
        X, y = rng.integers(0, 9, (20, d)), rng.normal(size=20)
        _csv(folder / "costs.csv", [(name, 1) for name in names], "attribute,cost")
        _csv(folder / "ranges.csv", [(name, 0, 9) for name in names], "attribute,low,high")
        path = folder / f"wide{ending}"
        if ending == ".csv":
            _csv(path, [[*x, t] for x, t in zip(X.tolist(), y, strict=True)], ",".join([*names, "y"]))
        else:
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.table({**dict(zip(names, X.T, strict=True)), "y": y}), path)
        return f"{_RUN}{path.name} dataset.costs=costs.csv dataset.ranges=ranges.csv --dry-run"

    return write


_DIGITS = "9" * 5000
CASES: Mapping[str, tuple[Variant, ...]] = {
    "wide": (_wide(".csv"), _wide(".parquet")),
    "npz: shapes": (
        *(_claims((10**13, 3), (10**13,)), _claims((3, 10**13), (3,)), _claims((-40, 3), (-40,))),
        *(_claims((40, -3), (40,)), _claims((40, 3), (40,), "<U500000000"), _claims((40, 3), (10**13,))),
    ),
    "npz: packing": (
        *(_zip_field(1, 6, 8), _zip_field(99, 8, 10)),
        *map(_damaged_npz, (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)),
    ),
    "npz: types": (
        *(_types(name, dtype) for name in "Xy" for dtype in (object, complex, [("a", "f8")], "M8[s]", "f2")),
        *(_types("X", "U9"), _types("X", "V4")),
    ),
    "svm: index": tuple(map(_svm, ("2147483646:3", "2147483650:3", "4294967298:3", f"{_DIGITS}:3", "²:3"))),
    "parquet: columns": (
        *(_parquet(lambda y: b"\xff\xfe" if y > 0 else b"\x80"), _parquet(lambda y: [y > 0])),
        *(_parquet(lambda y: {"p": y}), _parquet(lambda y: [y], "b"), _parquet(float, ""), _parquet(str, "b")),
    ),
    "parquet: footer": (_footer,),
    "bomb": tuple(map(_bomb, (b"\0", b"0,0,0\n", b"\n", b"1", b"1 1:1\n"))),
    "long line": (_long_line(".csv"), _long_line(".svm"), _long_line(".list"), _open_quote),
    "no file": (_no_file(os.mkfifo), _no_file(_no_end), _no_file(_socket), _no_file(Path.mkdir)),
    "list: numbers": tuple(
        _list(name, line) for name in _LISTS for line in ("1_0", "\u0661", _DIGITS, "1e400", f"{_DIGITS},", "²,")
    ),
    "cell: numbers": tuple(
        map(_cell, ("1_0", "\u0661", "1e400", "0x10", "\0", "9" * 9999, "x" * 9999, "\ufeff1", "-", "1e"))
    ),
    "noise": tuple(map(_noisy, (".csv", ".svm", ".parquet", ".npy"))),
    "label": tuple(map(_label, ("NA", "None", "null", "n/a"))),
}
"""By case, the variants; what a command must answer is in `_CODES`."""

_CODES = {"wide": (0,), "npz: packing": (0, 3), "parquet: footer": (0, 3), "noise": (0, 2, 3)}  # (3,) for all others


def prepared(place: Path, count: int) -> dict[str, dict[str, Any]]:
    """Make a run for `predict`; return the cases.

    Raises
    ------
    RuntimeError
        If the run fails.
    """
    whole = place / "whole"
    whole.mkdir()
    words = _table(whole, np.random.default_rng(0)).replace("out=out", "out=left")
    answer = forked(words.split(), whole)
    if answer.code:
        raise RuntimeError(f"{words}: exit code {answer.code} undisturbed\n{answer.err}")
    return {name: {} for name in (*CASES, *stress_reading.TABLES)}


def _limited() -> None:
    inherited = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (inherited + _MEMORY,) * 2)


def tried(trial: Trial) -> TrialResult:
    """Write a bad table or list, and judge the answer of the command that reads it."""
    if trial.case in stress_reading.TABLES:
        return stress_reading.tried(trial)
    result, variants = TrialResult(trial), CASES[trial.case]
    folder = Path(tempfile.mkdtemp(dir=trial.place))
    words = variants[trial.number // len(CASES) % len(variants)](folder, trial.rng)
    answer = forked(words.split(), folder, _limited)
    seen = f"{words}: exit code {answer.code}\n{answer.err[-2000:]}"
    result.judge(words, answer, _CODES.get(trial.case, (3,)))
    if answer.code == 0 and (folder / "whole").exists():
        forked(words.split(), folder / "whole")
        contents = [(place / "out" / "curves.csv").read_bytes() for place in (folder, folder / "whole")]
        if contents[0] != contents[1]:
            result.note("wrong", seen)
    if "not enough memory" in answer.err:
        result.note("hangs", seen)
    if any(len(line) > 500 for line in answer.err.splitlines()):
        result.note("untold", seen)
    note_leftovers(result, folder, set())
    shutil.rmtree(folder)
    return result
