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
    DATA,
    LIMIT,
    Answer,
    Kind,
    Trial,
    Try,
    alike,
    environment,
    forked,
    limit_memory,
    overwrite,
    undisturbed,
)

# Tables and lists that are damaged, lie about their size, or never end, in 1.5 GiB more memory. Variants of a case take
# turns; the seed decides where and how a file is damaged.

_MEMORY = 3 << 29
_PACK: Mapping[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
_PIECE, _PIECES = 1 << 24, 256  # bombs of 4 GiB
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
_DIGITS = "9" * 5000

Variant = Callable[[Trial], str]
"""Writes what a command reads, and returns the words that name it."""


def _frame(trial: Trial) -> pd.DataFrame:
    return pd.DataFrame(trial.rng.normal(size=(40, 3)).round(3), columns=["a", "b", "y"])


def _with_cell(trial: Trial, frame: pd.DataFrame, text: str, rows: int | None = None) -> pd.DataFrame:
    """Return a table with another text in a cell, of the first rows if some are named."""
    frame = frame.astype(object)
    frame.iat[int(trial.rng.integers(rows or len(frame))), int(trial.rng.integers(frame.shape[1]))] = text
    return frame


def _table(trial: Trial) -> str:
    _frame(trial).to_csv(trial.folder / "table.csv", index=False)
    return "dataset.path=table.csv"


def _npy(shape: Sequence[int], body: bytes, descr: str = "<f8") -> bytes:
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, {"descr": descr, "fortran_order": False, "shape": tuple(shape)})
    return content.getvalue() + body


def _claims(X: Sequence[int], y: Sequence[int], trial: Trial, descr: str = "<f8") -> str:
    """Write arrays that claim shapes, and a type of the targets, as an archive or as files."""
    rows = _frame(trial).to_numpy()
    parts = {"X.npy": _npy(X, rows.tobytes()), "y.npy": _npy(y, rows[:, 0].tobytes(), descr)}
    if trial.pick((True, False)):
        with zipfile.ZipFile(trial.folder / "table.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, part in parts.items():
                archive.writestr(name, part)
        return "dataset.path=table.npz"
    (trial.folder / "arrays").mkdir()
    for name, part in parts.items():
        (trial.folder / "arrays" / name).write_bytes(part)
    return "dataset.path=arrays"


def _npz(trial: Trial, method: int = zipfile.ZIP_DEFLATED) -> Path:
    rows, path = _frame(trial).to_numpy(), trial.folder / "table.npz"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("X.npy", _npy((40, 2), rows[:, :2].tobytes()))
        archive.writestr("y.npy", _npy((40,), rows[:, 2].tobytes()))
    return path


def _zip_field(value: int, local: int, central: int, trial: Trial) -> str:
    """Write another value in a field of all headers of an archive."""
    path = _npz(trial)
    content = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", local), (b"PK\x01\x02", central)):
        for found in re.finditer(re.escape(mark), content):
            content[found.start() + offset] = value
    path.write_bytes(content)
    return "dataset.path=table.npz"


def _noise(trial: Trial, path: Path, first: int, last: int, letters: bytes = bytes(range(256))) -> None:
    """Overwrite some bytes between two places of a file."""
    content = bytearray(path.read_bytes())
    content[first:last] = overwrite(content[first:last], trial.rng, letters)
    path.write_bytes(content)


def _damaged_npz(method: int, trial: Trial) -> str:
    path = _npz(trial, method)
    (trial.folder / "whole").mkdir()
    shutil.copy(path, trial.folder / "whole")
    _noise(trial, path, 0, -1)
    return "dataset.path=table.npz"


def _types(name: str, dtype: Any, trial: Trial) -> str:
    """Write arrays with a type that is no number, or beyond what is one."""
    arrays = {"X": trial.rng.normal(size=(40, 3)), "y": trial.rng.normal(size=40)}
    with np.errstate(all="ignore"):
        arrays[name] = (1e5 * arrays[name]).astype(dtype)
    np.savez(trial.folder / "table.npz", X=arrays["X"], y=arrays["y"])
    return "dataset.path=table.npz"


def _noisy(write: Variant, letters: bytes, trial: Trial) -> str:
    """Overwrite some of the first bytes of a valid table."""
    words = write(trial)
    path = trial.folder / words.removeprefix("dataset.path=")
    _noise(trial, path / "X.npy" if path.is_dir() else path, 0, 150, letters)
    return words


def _svm(entry: str, trial: Trial) -> str:
    lines = [f"{y} 1:{a} 2:{b}" for a, b, y in _frame(trial).itertuples(index=False)]
    lines[trial.rng.integers(len(lines))] += f" {entry}"
    (trial.folder / "table.svm").write_text("\n".join(lines) + "\n")
    return "dataset.path=table.svm"


def _parquet(target: Callable[[float], object], trial: Trial, name: str = "y") -> str:
    frame = _frame(trial)
    frame.assign(**{name: frame["y"].map(target)}).to_parquet(trial.folder / "table.parquet")
    return "dataset.path=table.parquet"


def _categories(trial: Trial) -> str:
    _frame(trial).assign(b=pd.Categorical(["u", "v"] * 20)).to_parquet(trial.folder / "table.parquet")
    return "dataset.path=table.parquet"


def _footer(trial: Trial) -> str:
    words, path = _parquet(float, trial), trial.folder / "table.parquet"
    length = int.from_bytes(path.read_bytes()[-8:-4], "little")
    _noise(trial, path, -8 - length, -1)
    return words


def _bomb(line: str, trial: Trial) -> str:
    """Write 4 GiB of equal lines, compressed, as a table or as a list."""
    pack = _PACK[ending := trial.pick(list(_PACK))]
    starts = {"table.csv": b"a,b,y\n1,2,3\n2,1,4\n", "table.svm": b"1 1:2 2:3\n", "list.csv": b"attribute,cost\na,1\n"}
    name = trial.pick(list(starts))
    piece = pack(line.encode() * (_PIECE // len(line)))
    with (trial.folder / f"{name}{ending}").open("wb") as file:
        file.write(pack(trial.pick((starts[name], b""))))
        for _ in range(_PIECES):
            file.write(piece)
    of_list = f"{_table(trial)} dataset.costs={name}{ending}"
    return of_list if name == "list.csv" else f"dataset.path={name}{ending}"


def _long_line(ending: str, trial: Trial) -> str:
    path = trial.folder / f"long{ending}"
    path.write_bytes(trial.pick((b"a,b,y\n1,2,3\n", b"")) if ending == ".csv" else b"")
    os.truncate(path, 1_200_000_000)  # with zeros, which take no space on the disk
    return f"{_table(trial)} dataset.costs=long.list" if ending == ".list" else f"dataset.path={path.name}"


def _open_quote(trial: Trial) -> str:
    with (trial.folder / "table.csv").open("wb") as file:
        file.write(b"a,b,y\n" + b"1,2,3\n" * int(trial.rng.integers(3)) + b'1,"2,3\n')
        for _ in range(200):
            file.write(b"1,2,3\n" * (1 << 20))
    return "dataset.path=table.csv"


def _no_file(make: Callable[[Path], object], trial: Trial) -> str:
    """Have what is no file in place of a table, a list, or the table of `predict`."""
    name, whole = f"x{trial.pick(('.csv', '.npz', '.parquet', '.svm'))}", _table(trial)
    make(trial.folder / name)
    (trial.folder / "arrays").mkdir()
    make(trial.folder / "arrays" / "X.npy")
    np.save(trial.folder / "arrays" / "y.npy", np.arange(40.0))
    return trial.pick(
        (
            f"dataset.path={name}",
            f"{whole} dataset.costs={name}",
            f"{whole} dataset.ranges={name}",
            f"predict ../../../whole/left {name}",
            "dataset.path=arrays",
        )
    )


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        before = Path.cwd()
        os.chdir(path.parent)  # the path of a socket must be short
        bound.bind(path.name)
        os.chdir(before)


def _list(name: str, number: str, trial: Trial) -> str:
    """Write a list with an odd number."""
    (trial.folder / "list.csv").write_text(DATA["table"]["lists"][name].format(number))
    return f"{_table(trial)} dataset.{name}=list.csv"


def _list_of(name: str, trial: Trial) -> str:
    """Write a list with an odd name of an attribute."""
    text = DATA["table"]["lists"][name].format("1").replace("\na,", f"\n{trial.pick((_DIGITS, '²'))},")
    (trial.folder / "list.csv").write_text(text)
    return f"{_table(trial)} dataset.{name}=list.csv"


def _cell(text: str, trial: Trial) -> str:
    _with_cell(trial, _frame(trial), text).to_csv(trial.folder / "table.csv", index=False)
    return "dataset.path=table.csv"


def _label(text: str, trial: Trial) -> str:
    frame = _frame(trial)
    frame.assign(y=np.where(frame["y"] > 0, text, "other")).to_csv(trial.folder / "table.csv", index=False)
    return "dataset.path=table.csv"


def _wide(ending: str, trial: Trial) -> str:
    """Write a valid table with 3,000 to 6,000 columns, and lists for it."""
    d = int(trial.rng.integers(3000, 6000))
    frame = pd.DataFrame(trial.rng.integers(0, 9, (20, d))).rename(columns="gene{}".format)
    lists = pd.DataFrame({"attribute": frame.columns, "cost": 1, "low": 0, "high": 9})
    lists[["attribute", "cost"]].to_csv(trial.folder / "costs.csv", index=False)
    lists[["attribute", "low", "high"]].to_csv(trial.folder / "ranges.csv", index=False)
    table, path = pd.concat([frame, pd.Series(trial.rng.normal(size=20), name="y")], axis=1), trial.folder / "wide"
    if ending == ".csv":
        table.to_csv(f"{path}.csv", index=False)
    else:
        table.to_parquet(f"{path}.parquet")
    return f"dataset.path=wide{ending} dataset.costs=costs.csv dataset.ranges=ranges.csv --dry-run"


_TEXT, _BYTES = b'\r\n\t\0 ,;:.#+-"019eEnax_', bytes(range(256))
_OBJECTS: tuple[Any, ...] = (object, complex, [("a", "f8")], "M8[s]", "f2")
_TABLES: Mapping[str, Sequence[Variant]] = {
    "wide": [partial(_wide, ".csv"), partial(_wide, ".parquet")],
    "npz: shapes": [
        *(partial(_claims, *shapes) for shapes in DATA["table"]["shapes"]),
        partial(_claims, (40, 3), (40,), descr="<U500000000"),
    ],
    "npz: packing": [
        *(partial(_zip_field, 1, 6, 8), partial(_zip_field, 99, 8, 10)),
        *(partial(_damaged_npz, method) for method in _METHODS),
    ],
    "npz: types": [
        *(partial(_types, name, dtype) for name in "Xy" for dtype in _OBJECTS),
        *(partial(_types, "X", "U9"), partial(_types, "X", "V4")),
    ],
    "svm: index": [partial(_svm, entry) for entry in (*DATA["table"]["svm"], f"{_DIGITS}:3")],
    "parquet: columns": [
        partial(_parquet, lambda y: b"\xff\xfe" if y > 0 else b"\x80"),
        partial(_parquet, lambda y: [y > 0]),
        partial(_parquet, lambda y: {"p": y}),
        partial(_parquet, lambda y: [y], name="b"),
        partial(_parquet, float, name=""),
        partial(_parquet, str, name="b"),
        partial(_parquet, lambda y: {"p": y}, name="b"),
        _categories,
    ],
    "parquet: footer": [_footer],
    "bomb": [partial(_bomb, line) for line in DATA["table"]["bombs"]],
    "long line": [*(partial(_long_line, ending) for ending in (".csv", ".svm", ".list")), _open_quote],
    "no file": [
        partial(_no_file, make)
        for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero"), _socket, Path.mkdir)  # the second has no end
    ],
    "list: numbers": [
        *(partial(_list, name, number) for name in ("costs", "ranges") for number in DATA["table"]["numbers"]),
        *(partial(_list, "costs", _DIGITS), partial(_list_of, "costs"), partial(_list_of, "ranges")),
    ],
    "cell: numbers": [partial(_cell, text) for text in (*DATA["table"]["cells"], "9" * 9999, "x" * 9999)],
    "noise": [
        *(partial(_noisy, _table, _TEXT), partial(_noisy, partial(_svm, "3:1"), _TEXT)),
        *(partial(_noisy, partial(_parquet, float), _BYTES), partial(_noisy, partial(_claims, (40, 3), (40,)), _BYTES)),
    ],
    "label": [partial(_label, text) for text in DATA["table"]["labels"]],
}
"""By case, the variants."""


def _prepared_tables(place: Path, count: int) -> dict[str, dict[str, Any]]:
    whole = place / "whole"  # for `predict`
    whole.mkdir()
    pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["a", "b", "y"]).to_csv(
        whole / "table.csv", index=False
    )
    undisturbed(f"{DATA['table']['run']} dataset.path=table.csv out=left", whole)
    return {name: {} for name in (*_TABLES, *_ASKED_TABLES)}


def _read_table(trial: Trial) -> None:
    """Write a bad table or list, and judge the answer of the command that reads it."""
    words = trial.next_of(_TABLES[trial.case])(trial)
    line = words if words.startswith("predict") else f"{DATA['table']['run']} {words}"
    answer = trial.run(line, DATA["table"]["codes"].get(trial.case, (3,)), before=partial(limit_memory, _MEMORY))
    seen = f"{words}: exit code {answer.code}\n{answer.err[-2000:]}"
    if answer.code == 0 and (trial.folder / "whole").exists():
        forked(line, trial.folder / "whole")
        contents = [(place / "out" / "curves.csv").read_bytes() for place in (trial.folder, trial.folder / "whole")]
        trial.expect(contents[0] == contents[1], seen)
    if "not enough memory" in answer.err:
        trial.note("hangs", seen)
    if any(len(line) > 500 for line in answer.err.splitlines()):
        trial.note("untold", seen)
    trial.without_leftovers()


# Tables and words that can be read in two ways: commands take the right one, or ask

_EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def _fit(trial: Trial, path: str, *words: str, codes: tuple[int, ...] = (0,)) -> Answer:
    shutil.rmtree(trial.folder / "o", ignore_errors=True)
    return trial.run([*DATA["table"]["fit"].format(path).split(), *words], codes)


def _model(trial: Trial) -> dict[str, np.ndarray]:
    """Return the arrays of a model; none if there is no model."""
    path = trial.folder / "o" / "model.npz"
    return dict(np.load(path)) if path.exists() else {}


def _expect_names(trial: Trial, what: str, names: Sequence[str]) -> None:
    if not trial.faults:
        trial.expect(_model(trial)["names"].tolist() == list(names), what)


def _sparse(path: Path, X: np.ndarray, first: int) -> None:
    """Write rows and their sums."""
    lines = (" ".join([f"{x.sum():.9g}", *(f"{at + first}:{x[at]:g}" for at in np.flatnonzero(x))]) for x in X)
    path.write_text("\n".join(lines) + "\n")


def _widths(trial: Trial) -> None:
    """Predict on sparse rows that end early, after columns were left out; the base of the indices must be the same."""
    rng, folder = trial.rng, trial.folder
    d, first = int(rng.integers(3, 9)), int(rng.integers(2))
    X, Z = (rng.normal(size=(n, d)).round(3) for n in (40, 6))
    _sparse(folder / "train.svm", X, first)
    drop = sorted(rng.choice(d, int(rng.integers(0, d - 1)), replace=False).tolist())
    _fit(trial, "train.svm", f"dataset.drop=[{','.join(str(at + first) for at in drop)}]")
    Z[:, rng.random(d) < 0.4] = 0
    _sparse(folder / "new.svm", Z, first)
    trial.run("predict o new.svm out=p.csv", (0,))
    if not trial.faults:
        model, kept = _model(trial), np.delete(Z, drop, axis=1)
        expected = model["b"] + (kept - model["c"]) @ model["w"][0]
        said = pd.read_csv(folder / "p.csv")["prediction"].to_numpy()
        trial.expect(np.allclose(said, expected), f"base {first}, {d} columns without {drop}")
    _sparse(folder / "other.svm", np.ones_like(Z), 1 - first)
    trial.run("predict o other.svm", (3,))


def _indexes(trial: Trial) -> None:
    """Have an index in a Parquet file: it is no attribute."""
    frame, ids = _named_frame(trial), trial.rng.permutation(1000)[:30]
    frame.to_csv(trial.folder / "t.csv", index=False)
    index: Any = trial.pick(
        (pd.Index(ids, name="id"), pd.Index(ids), pd.MultiIndex.from_arrays([ids % 3, ids], names=["site", None]), None)
    )
    (frame if index is None else frame.set_index(index)).to_parquet(trial.folder / "t.parquet", row_group_size=9)
    _fit(trial, "t.csv")
    expected = _model(trial)
    _fit(trial, "t.parquet")
    if not trial.faults:
        model = _model(trial)
        trial.expect(all(np.array_equal(model[name], expected[name]) for name in expected), f"index {index}")


def _named_frame(trial: Trial, columns: Sequence[str] = ("a", "b", "c", "y")) -> pd.DataFrame:
    return pd.DataFrame(trial.rng.normal(size=(30, len(columns))).round(2), columns=list(columns))


def _first_rows(trial: Trial) -> None:
    """Have names that are numbers, or no names at all."""
    start, step = int(trial.rng.integers(1, 2000)), int(trial.rng.integers(1, 5))
    names = [str(start + step * at) for at in range(5)]
    frame, headless = _named_frame(trial, names), trial.pick((True, False))
    if headless and trial.pick((True, False)):
        frame = _with_cell(trial, frame, trial.pick(("NA", "?", "1,5", "n/a", "-")), 1)
    frame["colour"] = trial.rng.choice(["red", "blue"], 30)
    frame.to_csv(trial.folder / "t.csv", index=False, header=not headless)
    _fit(trial, "t.csv", codes=(3,) if headless else (0,))
    if not headless:
        _expect_names(trial, "names that are numbers", names)


def _thousands(trial: Trial) -> None:
    """Have a mark between thousands: the error says how to write the number."""
    mark, digit = trial.pick((",", ",", " ", "'", "_")), f".{trial.rng.integers(10)}"
    text = f"{int(10 ** trial.rng.uniform(3, 9)):,}".replace(",", mark) + trial.pick((digit, ""))
    _with_cell(trial, _named_frame(trial), text).to_csv(trial.folder / "t.csv", index=False)
    err = _fit(trial, "t.csv", codes=(3,)).err
    trial.expect(f"write {text.replace(mark, '')}" in err and "decimal comma" not in err, f"{text}: {err}")


def _endings(trial: Trial) -> None:
    """Give a table a wrong ending: the error names the file."""
    frame, parquet = _named_frame(trial), trial.pick((True, False))
    name = f"t.{trial.pick(('csv', 'svm', 'csv.gz') if parquet else ('csv', 'parquet'))}"
    with (trial.folder / name).open("wb") as file:
        if parquet:
            frame.to_parquet(file)
        else:
            np.savez(file, X=frame[["a", "b", "c"]].to_numpy(), y=frame["y"].to_numpy())
    err = _fit(trial, name, codes=(3,)).err
    trial.expect("decimal comma" not in err and name in err, f"parquet {parquet} as {name}: {err}")


def _labels(trial: Trial) -> None:
    """Have labels as text or as Python objects."""
    X, words = trial.rng.normal(size=(30, 3)), trial.rng.permutation(["sick", "healthy"] * 15)
    as_objects = trial.pick((True, False))
    np.savez(trial.folder / "t.npz", X=X, y=words.astype(object if as_objects else str))
    err = _fit(trial, "t.npz", codes=(3,) if as_objects else (0,)).err
    trial.expect(not as_objects or "y holds Python objects: save it as" in err, err)


def _unnamed(trial: Trial) -> None:
    """Have a column of row numbers without a name: a notice names it."""
    some = _named_frame(trial).sample(n=int(trial.rng.integers(20, 30)), random_state=int(trial.rng.integers(2**31)))
    some.reset_index(names="Unnamed: 0").to_csv(trial.folder / "t.csv", index=False)
    err = _fit(trial, "t.csv").err
    trial.expect("'Unnamed: 0' looks like an identifier of the rows" in err, err)


def _typed(trial: Trial) -> None:
    """Have names that YAML would read as numbers, and type them on the command line."""
    names = trial.rng.permutation(DATA["table"]["names"]).tolist()
    columns = [*names[:6], *(f"c{at}" for at in range(6)), "y"]
    _named_frame(trial, columns).to_csv(trial.folder / "t.csv", index=False)
    drop = names[: int(trial.rng.integers(1, 4))]
    _fit(trial, "t.csv", f"dataset.drop=[{','.join(drop)}]", "dataset.target=y")
    _expect_names(trial, f"drop {drop}", [name for name in columns[:-1] if name not in drop])
    out = names[0].replace("/", "_")
    trial.run([*DATA["line"]["commands"]["run"][0].split()[:-1], f"out={out}"], (0,))
    trial.expect(out == "null" or (trial.folder / out / "curves.csv").exists(), f"out={out}")


def _interpolations(trial: Trial) -> None:
    """Take the value of a key from the environment: it is what it would be if it had been typed."""
    numbers = DATA["line"]["interpolated"]
    key = trial.pick(list(numbers))
    value = trial.pick((numbers[key], numbers[key], "two", "2.5", "", "[1", "true"))
    words = ["run", "algo=naive", "dataset=digits_3v5", "tuning=fixed", "tuning.B=2", "--dry-run"]
    typed = trial.run([*words, f"{key}='{value}'" if value in ("", "[1") else f"{key}={value}"], (0, 2))
    before = partial(os.environ.update, GIVEN=value)
    given = trial.run([*words, f"{key}=${{oc.env:GIVEN}}"], (typed.code,), before=before)
    trial.expect((given.code, given.out) == (typed.code, typed.out), f"{key}: {value!r}: {given.err or given.out}")


def _helped(trial: Trial) -> None:
    """Ask an example for help in any place of its line: it writes nothing."""
    name = trial.pick(("buy_measurements.py", "laboratory.py", "write_tables.py"))
    others = trial.rng.choice(["folder", "other", "3"], int(trial.rng.integers(0, 2))).tolist()
    words = trial.rng.permutation([*others, trial.pick(("--help", "-h"))]).tolist()
    empty = trial.folder / "empty"
    empty.mkdir()
    done = subprocess.run(
        [sys.executable, _EXAMPLES / name, *words],
        cwd=empty,
        env={**environment(trial.folder), "PYTHONPATH": str(_EXAMPLES.parent)},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    trial.judge(f"{name} {words}", Answer(done.returncode, done.stdout, done.stderr), (0,))
    trial.expect(done.stdout.startswith(f"usage: {name}") and not os.listdir(empty), f"{name} {words}: {done.stdout}")


def _hints(trial: Trial) -> None:
    """Have a name with special characters, and paste what notices propose."""
    letters = "".join(trial.rng.choice(list(DATA["line"]["letters"]), int(trial.rng.integers(1, 8))))
    name, frame = f"x{letters.rstrip()}z", _named_frame(trial)
    frame.insert(0, name, range(30))
    frame.to_csv(trial.folder / "t.csv", index=False)
    seen = _fit(trial, "t.csv").err
    typed = _fit(trial, "t.csv", f"dataset.drop=[{name}]", codes=(0, 2, 3)).err
    for said, pattern in ((seen, r"of the rows: (.*) leaves it out"), (typed, r"special characters in quotes: (.*)")):
        for hint in re.findall(pattern, said):
            _fit(trial, "t.csv", *shlex.split(hint))
            _expect_names(trial, f"{name!r}: {hint}", ["a", "b", "c"])


_ASKED_TABLES: Mapping[str, Try] = {
    "sparse widths": _widths,
    "parquet: indexes": _indexes,
    "first rows": _first_rows,
    "thousands": _thousands,
    "file endings": _endings,
    "npz: labels": _labels,
    "unnamed column": _unnamed,
}
_ASKED_LINES: Mapping[str, Try] = {
    "names like numbers": _typed,
    "pasted hints": _hints,
    "interpolations": _interpolations,
    "help of examples": _helped,
}

# Command lines that are changed at random: the answer is a result, or one line and an exit code


def _prepared_lines(place: Path, count: int) -> dict[str, dict[str, Any]]:
    whole, commands = place / "whole", DATA["line"]["commands"]
    whole.mkdir()
    rng = np.random.default_rng(0)
    np.savetxt(whole / "table.csv", rng.normal(size=(40, 4)), delimiter=",", header="a,b,c,y", comments="")
    undisturbed([*commands["run"][0].split(), "out=left"], whole)
    lines = {name: {"whole": whole, "turns": len(lines)} for name, lines in commands.items()}
    return lines | {name: {} for name in _ASKED_LINES}


def _mistype(trial: Trial) -> None:
    """Change a valid line in a few places, and judge the answer."""
    words = shlex.split(trial.pick(DATA["line"]["commands"][trial.case]))
    for _ in range(trial.rng.integers(1, 4)):
        words = changed(words, trial)
    trial.run([word.replace("\0", "") for word in words], (0, 1, 2, 3))


def changed(words: list[str], trial: Trial) -> list[str]:
    """Change a word, or the order of words, so that no line takes long."""
    data, rng = DATA["line"], trial.rng
    values, keeps_all = [*data["values"], "x" * 5000], trial.case in data["long"]
    at = int(rng.integers(len(words))) if words else 0
    word, others = words[at] if words else "", words[at + 1 :]
    key, equals, value = word.partition("=")
    place = int(rng.integers(len(word) + 1))
    new = [word[:place] + trial.pick(data["characters"]) + word[place:]]
    match int(rng.integers(8)):
        case 0 if not keeps_all:
            new = []
        case 1:
            new = [word, word]
        case 2:
            return [words[i] for i in rng.permutation(len(words))]
        case 3 | 4 if equals:
            new = [f"{key}={trial.pick(values)}"]
        case 5:
            new = [word, f"{trial.pick(data['keys'])}={trial.pick(values)}"]
        case 6 if equals:
            new = [f"{trial.pick(data['keys'])}={value}"]
        case _ if not keeps_all and trial.pick((True, False)):
            new = [word[:place] + word[place + 1 :]]
    return [*words[:at], *new, *others]


# Names of any text, which runs, figures and reports must show without a warning


def _name_all(trial: Trial) -> None:
    """Name a file, attributes, a unit and a study, and draw all that there is."""
    case, folder, rng = trial.case, trial.folder, trial.rng
    text = "formulas" if case == "bytes" else case  # tables are UTF-8
    names = {"file": f"{_name(case, trial)}.csv", "study": f"{_name(text, trial)}.db", "unit": f"{_name(text, trial)}0"}
    columns = [f"{_name(text, trial)}{at}" for at in range(1, 4)]
    values = rng.normal(size=(20, 1)) + rng.normal(size=(20, 3))
    frame = pd.DataFrame(values, columns=columns)
    frame["y"] = values.sum(axis=1)
    frame.to_csv(folder / names["file"], index=False)
    pd.DataFrame({"attribute": columns, "cost": 1.0}).to_csv(folder / "costs.csv", index=False)
    some = frame.mask(rng.random(frame.shape) < 0.3)
    some.insert(0, "id", range(20))
    some.to_csv(folder / "table.csv", index=False)
    for line in DATA["name"]["lines"]:
        words = [word.format(**names) for word in line.split()]
        answer = trial.run(words)
        refused = answer.code and case != "controls"  # no table can have line breaks in its header
        if refused or "Warning" in answer.err:
            trial.note("untold", f"{words}: exit code {answer.code}: {answer.err[-1000:]}")
            break


_NAMES = {
    **DATA["name"]["parts"],
    "bytes": ["\udce9", "\udcff\udcfe", "\udc80"],
    "long": ["x" * 90, "words " * 12, "$" * 80],
}


def _name(case: str, trial: Trial) -> str:
    longest = 200  # a study's files beside it have longer names
    parts = (f"{trial.pick(_NAMES[case])}{trial.rng.integers(9)}" for _ in range(trial.rng.integers(1, 4)))
    return "".join(["n", *parts])[:longest]


KINDS = {
    "table": Kind(252, _prepared_tables, {**dict.fromkeys(_TABLES, _read_table), **_ASKED_TABLES}),
    "line": Kind(555, _prepared_lines, {**dict.fromkeys(DATA["line"]["commands"], _mistype), **_ASKED_LINES}),
    "name": Kind(30, lambda place, count: alike(_NAMES), _name_all),
}
