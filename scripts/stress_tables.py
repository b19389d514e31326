"""Trials of `stress.py` on what commands read: bad and ambiguous tables, odd names, and odd command lines."""

import bz2
import gzip
import io
import lzma
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from stress_trials import (
    LIMIT,
    Answer,
    Kind,
    TrialResult,
    Try,
    alike,
    environment,
    forked,
    limit_memory,
    note_leftovers,
    undisturbed,
)

# Tables and lists that are damaged, lie about their size, or never end, in 1.5 GiB more memory. Variants of a case take
# turns; the seed decides where and how a file is damaged.

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


def _categories(folder: Path, rng: np.random.Generator) -> str:
    frame = pd.DataFrame(_rows(rng), columns=["a", "b", "y"])
    frame.assign(b=pd.Categorical(["u", "v"] * 20)).to_parquet(folder / "table.parquet")
    return f"{_RUN}table.parquet"


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
            f"predict ../../../whole/left x{ending}",
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
_TABLES: Mapping[str, tuple[Variant, ...]] = {
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
        *(_parquet(lambda y: {"p": y}, "b"), _categories),
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


def _prepared_tables(place: Path, count: int) -> dict[str, dict[str, Any]]:
    whole = place / "whole"  # for `predict`
    whole.mkdir()
    undisturbed(_table(whole, np.random.default_rng(0)).replace("out=out", "out=left"), whole)
    return {name: {} for name in (*_TABLES, *_READ_TABLES)}


def _read_table(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Write a bad table or list, and judge the answer of the command that reads it."""
    case, variants = result.trial.case, _TABLES[result.trial.case]
    words = variants[result.trial.turn(len(_TABLES)) % len(variants)](folder, rng)
    answer = forked(words.split(), folder, partial(limit_memory, _MEMORY))
    seen = f"{words}: exit code {answer.code}\n{answer.err[-2000:]}"
    result.judge(words, answer, _CODES.get(case, (3,)))
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


# Tables and words that can be read in two ways: commands take the right one, or ask

_LEARN = ["algo=naive", "k=2", "total=60", "tuning=fixed", "tuning.B=9", "out=o"]
_LOOK_LIKE_NUMBERS = (
    "1_1",
    "1e3",
    "true",
    "null",
    "0x1",
    "007",
    "1.0",
    "+1",
    "2024_01_15",
    "nan",
    "-.5",
    "1_000",
    "No",
    "Größe",
    "µg/l",
    "1€",
)
_EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
_LETTERS = "'\"[](){} $=#\\ab1_é~!`:;%&|<>*?.-+/"


class _Commands:
    """The commands of a trial, whose answers are judged."""

    def __init__(self, result: TrialResult, folder: Path) -> None:
        self.result, self.folder = result, folder

    def __call__(self, *words: str, codes: tuple[int, ...] = (0,)) -> Answer:
        answer = forked(words, self.folder)
        self.result.judge(shlex.join(words), answer, codes)
        return answer

    def fit(self, path: str, *words: str, codes: tuple[int, ...] = (0,)) -> Answer:
        shutil.rmtree(self.folder / "o", ignore_errors=True)
        return self("fit", "dataset=file", f"dataset.path={path}", *_LEARN, *words, codes=codes)

    def model(self) -> dict[str, np.ndarray]:
        with np.load(self.folder / "o" / "model.npz") as file:
            return dict(file)

    def expect(self, what: str, right: bool) -> None:
        if not right and not self.result.faults:
            self.result.note("wrong", what)


def _sparse(path: Path, X: np.ndarray, y: np.ndarray, first: int) -> None:
    lines = ([f"{at + first}:{x[at]!r}" for at in np.flatnonzero(x).tolist()] for x in X)
    path.write_text("".join(f"{t!r} {' '.join(line)}\n" for t, line in zip(y.tolist(), lines, strict=True)))


def _widths(run: _Commands, rng: np.random.Generator) -> None:
    d, first = int(rng.integers(3, 9)), int(rng.integers(2))
    X, Z = (rng.normal(size=(n, d)).round(3) for n in (40, 6))
    X = X.astype(object)
    _sparse(run.folder / "train.svm", X, np.asarray(X.sum(axis=1), dtype=float), first)
    drop = sorted(rng.choice(d, int(rng.integers(0, d - 1)), replace=False).tolist())
    run.fit("train.svm", f"dataset.drop=[{','.join(str(at + first) for at in drop)}]")
    Z[:, rng.random(d) < 0.4] = 0
    _sparse(run.folder / "new.svm", Z.astype(object), np.zeros(6), first)
    run("predict", "o", "new.svm", "out=p.csv")
    if not run.result.faults:
        model, kept = run.model(), np.delete(Z, drop, axis=1)
        said = pd.read_csv(run.folder / "p.csv")["prediction"].to_numpy()
        run.expect(
            f"base {first}, {d} columns without {drop}",
            np.allclose(said, model["b"] + (kept - model["c"]) @ model["w"][0]),
        )
    Z[:] = 1
    _sparse(run.folder / "other.svm", Z.astype(object), np.zeros(6), 1 - first)
    run("predict", "o", "other.svm", codes=(3,))


def _indexes(run: _Commands, rng: np.random.Generator) -> None:
    frame = pd.DataFrame(rng.normal(size=(40, 4)).round(3), columns=["a", "b", "c", "y"])
    frame.to_csv(run.folder / "t.csv", index=False)
    ids = rng.permutation(1000)[:40]
    kind = int(rng.integers(4))
    index = [pd.Index(ids, name="id"), pd.Index(ids), pd.MultiIndex.from_arrays([ids % 3, ids], names=["site", None])]
    (frame if kind == 3 else frame.set_index(index[kind])).to_parquet(run.folder / "t.parquet", row_group_size=9)
    run.fit("t.csv")
    expected = {} if run.result.faults else run.model()
    run.fit("t.parquet")
    if not run.result.faults:
        model = run.model()
        run.expect(f"index {kind}", all(np.array_equal(model[name], expected[name]) for name in expected))


def _first_rows(run: _Commands, rng: np.random.Generator) -> None:
    rows = rng.normal(size=(30, 5)).round(2).astype(str).tolist()
    labels = rng.choice(["red", "blue"], 30).tolist()
    table = [[*row, label] for row, label in zip(rows, labels, strict=True)]
    start, step = int(rng.integers(1, 2000)), int(rng.integers(1, 5))
    header = [*(str(start + step * at) for at in range(5)), "colour"]
    headless = rng.random() < 0.5
    if headless and rng.random() < 0.5:
        table[0][int(rng.integers(5))] = str(rng.choice(["NA", "?", "1,5", "n/a", "-"]))
    lines = [",".join(f'"{field}"' if "," in field else field for field in row) for row in table]
    (run.folder / "t.csv").write_text("\n".join([*([] if headless else [",".join(header)]), *lines, ""]))
    run.fit("t.csv", codes=(3,) if headless else (0,))
    if not headless and not run.result.faults:
        run.expect("names that are numbers", run.model()["names"].tolist() == header[:5])


def _thousands(run: _Commands, rng: np.random.Generator) -> None:
    number = int(10 ** rng.uniform(3, 9))
    mark = str(rng.choice([",", ",", " ", "'", "_"]))
    text = f"{number:,}".replace(",", mark) + (f".{rng.integers(10)}" if rng.random() < 0.5 else "")
    frame = pd.DataFrame(rng.normal(size=(30, 4)).round(2).astype(str), columns=["a", "b", "c", "y"])
    frame.iloc[int(rng.integers(30)), int(rng.integers(4))] = text
    frame.to_csv(run.folder / "t.csv", index=False)
    answer = run.fit("t.csv", codes=(3,))
    run.expect(
        f"{text}: {answer.err}", f"write {text.replace(mark, '')}" in answer.err and "decimal comma" not in answer.err
    )


def _endings(run: _Commands, rng: np.random.Generator) -> None:
    frame = pd.DataFrame(rng.normal(size=(30, 4)).round(2), columns=["a", "b", "c", "y"])
    write: Mapping[str, Callable[[Path], Any]] = {
        "parquet": frame.to_parquet,
        "npz": lambda path: np.savez(path.open("wb"), X=frame[["a", "b", "c"]].to_numpy(), y=frame["y"].to_numpy()),
    }
    kind = str(rng.choice(sorted(write)))
    name = f"t.{rng.choice(['csv', 'svm', 'csv.gz'] if kind == 'parquet' else ['csv', 'parquet'])}"
    write[kind](run.folder / name)
    answer = run.fit(name, codes=(3,))
    run.expect(f"{kind} as {name}: {answer.err}", "decimal comma" not in answer.err and name in answer.err)


def _labels(run: _Commands, rng: np.random.Generator) -> None:
    X, words = rng.normal(size=(30, 3)), rng.permutation(["sick", "healthy"] * 15)
    as_objects = bool(rng.random() < 0.5)
    np.savez(run.folder / "t.npz", X=X, y=words.astype(object if as_objects else str))
    answer = run.fit("t.npz", codes=(3,) if as_objects else (0,))
    run.expect(answer.err, not as_objects or "y holds Python objects: save it as" in answer.err)


def _unnamed(run: _Commands, rng: np.random.Generator) -> None:
    frame = pd.DataFrame(rng.normal(size=(60, 4)).round(2), columns=["a", "b", "c", "y"])
    some = frame.sample(n=int(rng.integers(20, 50)), random_state=int(rng.integers(2**31)))
    some.reset_index(names="Unnamed: 0").to_csv(run.folder / "t.csv", index=False)
    answer = run.fit("t.csv")
    run.expect(answer.err, "'Unnamed: 0' looks like an identifier of the rows" in answer.err)


def _typed(run: _Commands, rng: np.random.Generator) -> None:
    names = rng.permutation(_LOOK_LIKE_NUMBERS).tolist()
    columns = [*names[:6], *(f"c{at}" for at in range(6)), "y"]
    pd.DataFrame(rng.normal(size=(30, 13)).round(2), columns=columns).to_csv(run.folder / "t.csv", index=False)
    drop = names[: int(rng.integers(1, 4))]
    run.fit("t.csv", f"dataset.drop=[{','.join(drop)}]", "dataset.target=y")
    if not run.result.faults:
        run.expect(f"drop {drop}", run.model()["names"].tolist() == [name for name in columns[:-1] if name not in drop])

    out = names[0].replace("/", "_")
    run("run", "algo=naive", "k=4", *_TINY.split(), "tuning.B=2", f"out={out}")
    if not run.result.faults:
        run.expect(f"out={out}", out == "null" or (run.folder / out / "curves.csv").exists())


def _interpolations(run: _Commands, rng: np.random.Generator) -> None:
    """Take the value of a key from the environment: it is what it would be if it had been typed."""
    numbers = {"k": "4", "n_jobs": "1", "seed": "3", "repetitions": "1", "checkpoints": "2", "total": "200"}
    key = str(rng.choice(list(numbers)))
    value = str(rng.choice([numbers[key], numbers[key], "two", "2.5", "", "[1", "true"]))
    words = ["run", "algo=naive", "dataset=digits_3v5", "tuning=fixed", "tuning.B=2", "--dry-run"]
    typed = run(*words, f"{key}='{value}'" if value in ("", "[1") else f"{key}={value}", codes=(0, 2))
    given = forked([*words, f"{key}=${{oc.env:GIVEN}}"], run.folder, lambda: os.environ.update(GIVEN=value))
    run.result.judge(f"{key}=${{oc.env:GIVEN}} with {value!r}", given, (typed.code,))
    run.expect(f"{key}: {value!r}: {given.err or given.out}", (given.code, given.out) == (typed.code, typed.out))


def _helped(run: _Commands, rng: np.random.Generator) -> None:
    """Ask an example for help in any place of its line: it writes nothing."""
    name = str(rng.choice(["buy_measurements.py", "laboratory.py", "write_tables.py"]))
    words = [*rng.choice(["folder", "other", "3"], int(rng.integers(0, 2))), str(rng.choice(["--help", "-h"]))]
    words = [str(word) for word in rng.permutation(words)]
    (run.folder / "empty").mkdir()
    done = subprocess.run(
        [sys.executable, _EXAMPLES / name, *words],
        cwd=run.folder / "empty",
        env={**environment(run.folder), "PYTHONPATH": str(_EXAMPLES.parent)},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    answer = Answer(done.returncode, done.stdout, done.stderr)
    run.result.judge(f"{name} {words}", answer, (0,))
    left = os.listdir(run.folder / "empty")
    run.expect(f"{name} {words}: {answer.out} {left}", answer.out.startswith(f"usage: {name}") and not left)


def _hints(run: _Commands, rng: np.random.Generator) -> None:
    name = "x" + "".join(rng.choice(list(_LETTERS), int(rng.integers(1, 8)))).rstrip() + "z"
    frame = pd.DataFrame(rng.normal(size=(30, 4)).round(2), columns=["a", "b", "c", "y"])
    frame.insert(0, name, range(30))
    frame.to_csv(run.folder / "t.csv", index=False)
    seen = run.fit("t.csv", codes=(0,)).err
    typed = run.fit("t.csv", f"dataset.drop=[{name}]", codes=(0, 2, 3)).err
    for said, pattern in ((seen, r"of the rows: (.*) leaves it out"), (typed, r"special characters in quotes: (.*)")):
        for hint in re.findall(pattern, said):
            run.fit("t.csv", *shlex.split(hint))
            if not run.result.faults:
                run.expect(f"{name!r}: {hint}", run.model()["names"].tolist() == ["a", "b", "c"])


def _asking(case: Callable[[_Commands, np.random.Generator], None]) -> Try:
    return lambda result, folder, rng: case(_Commands(result, folder), rng)


_READ_TABLES: Mapping[str, Try] = {
    "sparse widths": _asking(_widths),
    "parquet: indexes": _asking(_indexes),
    "first rows": _asking(_first_rows),
    "thousands": _asking(_thousands),
    "file endings": _asking(_endings),
    "npz: labels": _asking(_labels),
    "unnamed column": _asking(_unnamed),
}
_READ_LINES: Mapping[str, Try] = {
    "names like numbers": _asking(_typed),
    "pasted hints": _asking(_hints),
    "interpolations": _asking(_interpolations),
    "help of examples": _asking(_helped),
}

# Command lines that are changed at random: the answer is a result, or one line and an exit code

_TINY = "repetitions=1 checkpoints=2 tuning=fixed backend=sequential"

_LINES: dict[str, tuple[str, ...]] = {  # by command, lines that work; what takes long or reaches the net is left out
    "run": (
        f"run algo=naive k=4 {_TINY} tuning.B=2 out=o",
        f"run algo=aelr k=4 {_TINY} tuning.B=2 tuning.eta=0.01 algo.split=even algo.average=suffix",
        f"run algo=ridge dataset=file dataset.path=table.csv dataset.target=y k=2 {_TINY} tuning.B=1",
    ),
    "run --dry-run": (
        "run algo=aelr k=4 checkpoints=[0.1,0.5,1] axis=examples seed=3 n_jobs=1 --dry-run",
        "run -m algo=aer,aelr k=4,8 repetitions=2 --dry-run",
        "run algo=popca algo.n_components=2 dataset=coins k=2 --dry-run",
        "run algo=aerr dataset=power_law dataset.alpha=-2 dataset.d=20 k=4 algo.grid.B=[1,2] --dry-run",
        "run algo=aesvr dataset=sphere algo.residual=plug_in tuning=theory tuning.B=2 --dry-run",
        "run experiment=hazan_koren_2012/fig1 protocol=paper dataset=digits_3v5 --dry-run",
        "run algo=lasso k='range(2,5)' -m out=o --dry-run",
        "run --cfg job algo=aer",
        "run +hydra.job.name=x ~seed ++k=3 --dry-run",
    ),
    "plot": ("plot left", "plot left left --out figure"),
    "status": ("status left", "status . --why"),
    "verify": ("verify left --sample 1 --seed 2", "verify left --all n_jobs=1"),
    "list": ("list", "list algos", "list datasets", "list experiments"),
    "reproduce": ("reproduce nothing/at_all --quick n_jobs=1", "reproduce --help"),
    "check": ("check algo=nothing,naive", "check --help"),
    "fetch": ("fetch nothing dataset.root=data", "fetch --help"),
    "no command": ("--help", "--version", "nothing", "-sc bash run algo="),
}

_LONG = ("run", "reproduce", "check")  # which compute for minutes or hours without the words that these lines have

_VALUES = (
    *("", "0", "-1", "1e400", "nan", "-.inf", "null", "true", "''", "'", '"', "[", "[]", "[1,[2]]", "{a: 1}", "{", ","),
    *("a,b", "range(0)", "choice(1,x)", "glob(*)", "interval(0,1)", "${k}", "${", "${nothing}", "${oc.env:NOTHING}"),
    *(
        "?",
        "???",
        "~",
        "..",
        "/",
        "left",
        "nowhere/x",
        "table.csv",
        "/dev/null",
        "/proc/self/mem",
        "é",
        "\u202e",
        "1 2",
    ),
    *(
        "1 2",
        "=",
        "a=b",
        "0x10",
        "1_000",
        "08",
        "1.5",
        "9" * 30,
        "x" * 5000,
        "\\",
        "\t",
        "--help",
        "*",
        "%s",
        "{}",
        "@",
        "#",
    ),
)
_KEYS = (
    *(
        "k",
        "seed",
        "algo",
        "algo.grid",
        "algo.grid.B",
        "algo.name",
        "dataset",
        "dataset.path",
        "dataset.center",
        "axis",
    ),
    *("tuning.at", "tuning.folds", "out", "protocol", "hydra.mode", "hydra/launcher", "hydra.job.num", "experiment"),
    *("backend.name", "omit", "learners", "figure", "+new", "~k", "++algo.x", "algo@other", "", ".", "k.x", "[0]"),
)
_CHARACTERS = "'\"{}[](),=:$*?~+-./\\ @#!;&|<>%é0\n"


def _prepared_lines(place: Path, count: int) -> dict[str, dict[str, Any]]:
    whole = place / "whole"
    whole.mkdir()
    rng = np.random.default_rng(0)
    np.savetxt(whole / "table.csv", rng.normal(size=(40, 4)), delimiter=",", header="a,b,c,y", comments="")
    undisturbed(f"run algo=naive k=4 {_TINY} tuning.B=2 out=left", whole)
    lines = {name: {"whole": whole, "turns": len(lines)} for name, lines in _LINES.items()}
    return lines | {name: {} for name in _READ_LINES}


def _mistype(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Change a valid line in a few places, and judge the answer."""
    case = result.trial.case
    words = shlex.split(_LINES[case][rng.integers(len(_LINES[case]))])
    for _ in range(rng.integers(1, 4)):
        words = changed(words, rng, case in _LONG)
    result.judge(shlex.join(words), forked([word.replace("\0", "") for word in words], folder), (0, 1, 2, 3))


def changed(words: list[str], rng: np.random.Generator, works: bool) -> list[str]:
    """Change a word, or the order of words, so that no line takes long."""
    at = int(rng.integers(len(words))) if words else 0
    word, others = words[at] if words else "", words[at + 1 :]
    key, equals, value = word.partition("=")
    way = int(rng.integers(8))
    if way == 0 and not works:
        return [*words[:at], *others]
    if way == 1:
        return [*words[:at], word, word, *others]
    if way == 2:
        return [words[i] for i in rng.permutation(len(words))]
    if way in (3, 4) and equals:
        return [*words[:at], f"{key}={_VALUES[rng.integers(len(_VALUES))]}", *others]
    if way == 5:
        new = f"{_KEYS[rng.integers(len(_KEYS))]}={_VALUES[rng.integers(len(_VALUES))]}"
        return [*words[:at], word, new, *others]
    if way == 6 and equals:
        return [*words[:at], f"{_KEYS[rng.integers(len(_KEYS))]}={value}", *others]
    place = int(rng.integers(len(word) + 1))
    character = _CHARACTERS[rng.integers(len(_CHARACTERS))]
    if rng.random() < 0.5 and not works:
        return [*words[:at], word[:place] + word[place + 1 :], *others]
    return [*words[:at], word[:place] + character + word[place:], *others]


# Names of any text, which runs, figures and reports must show without a warning

_PARTS: Mapping[str, tuple[str, ...]] = {
    "formulas": ("$", "$$", "\\$", "_", "^", "{", "}", "\\frac", "%", "\\", "$x_1$", "#", "&", "~"),
    "scripts": ("é", "ß", "a\u0301", "עברית", "عربى", "हिन्दी", "漢字", "한글", "😀", "👩\u200d🔬", "Ω", "\u00ad"),
    "controls": ("\x1b[2J", "\x07", "\t", "\n", "\r", "\u202e", "\u2028", "\ufeff", "\x7f", "\x85"),
    "bytes": ("\udce9", "\udcff\udcfe", "\udc80"),
    "long": ("x" * 90, "words " * 12, "$" * 80),
}
"""By case, what names are made of."""


def _name_all(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Name a file, attributes, a unit and a study, and draw all that there is."""
    case = result.trial.case
    text = "formulas" if case == "bytes" else case  # tables are UTF-8
    file, study = f"{_name(case, rng)}.csv", f"{_name(text, rng)}.db"
    unit, *columns = (f"{_name(text, rng)}{at}" for at in range(4))
    values = rng.normal(size=(20, 1)) + rng.normal(size=(20, 3))
    frame = pd.DataFrame(values, columns=columns)
    frame["y"] = values.sum(axis=1)
    frame.to_csv(folder / file, index=False)
    pd.DataFrame({"attribute": columns, "cost": 1.0}).to_csv(folder / "costs.csv", index=False)
    some = frame.mask(rng.random(frame.shape) < 0.3)
    some.insert(0, "id", range(20))
    some.to_csv(folder / "table.csv", index=False)
    fixed = "algo=aelr k=2 repetitions=2 checkpoints=2 tuning=fixed tuning.B=1 tuning.eta=0.1 out=o backend=sequential"
    run = ["run", "dataset=file", _quoted("dataset.path", file), "dataset.costs=costs.csv"]
    create = ["study", "create", study, "table=table.csv", "target=y", "id=id", "costs=costs.csv", "algo=aeml"]
    lines = [
        [*run, _quoted("dataset.unit", unit), *fixed.split()],
        ["plot", "o"],
        ["report", "o"],
        [*create, f"unit={unit}"],
        ["study", "show", study],
        ["report", study],
    ]
    for words in lines:
        answer = forked(words, folder)
        result.judge(repr(words), answer)
        refused = answer.code and case != "controls"  # no table can have line breaks in its header
        if refused or "Warning" in answer.err:
            result.note("untold", f"{words}: exit code {answer.code}: {answer.err[-1000:]}")
            break


def _name(case: str, rng: np.random.Generator) -> str:
    parts = _PARTS[case]
    longest = 200  # a study's files beside it have longer names
    text = "".join(["n", *(f"{parts[rng.integers(len(parts))]}{rng.integers(9)}" for _ in range(rng.integers(1, 4)))])
    return text[:longest]


def _quoted(key: str, value: str) -> str:
    """Return an override of Hydra whose value is any text without quotes that does not end in a backslash."""
    return f"{key}='{value}'"


KINDS = {
    "table": Kind("tables", 252, _prepared_tables, {**dict.fromkeys(_TABLES, _read_table), **_READ_TABLES}),
    "line": Kind("lines", 555, _prepared_lines, {**dict.fromkeys(_LINES, _mistype), **_READ_LINES}),
    "name": Kind("names", 30, lambda place, count: alike(_PARTS), _name_all),
}
