"""Trials of `stress.py` on files: damaged ones, disks that are full, and special, odd or other people's ones."""

import hashlib
import io
import json
import os
import resource
import shutil
import stat
import struct
import subprocess
import tempfile
import time
import unicodedata
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from stress_trials import (
    Answer,
    Kind,
    TrialResult,
    Try,
    alike,
    compare,
    forked,
    limit_memory,
    note_leftovers,
    snapshot,
    undisturbed,
)

from budgetreg.common.files import digest, signed

# Files that a run has written or cached, damaged as by a bad disk

_FIXED = "k=4 checkpoints=3 tuning=fixed tuning.B=2 backend=sequential out=out"
_RUN = f"run algo=aelr repetitions=3 tuning.eta=0.01 {_FIXED}"
_LEFT = (
    *("curves.csv", "runs.csv", "model.npz", "manifest.json", "journal.jsonl", "models.jsonl"),
    *("curve.png", "curve.pdf", "curve.txt"),
)
_READ = ("status out", "plot out --out figure", "verify out --sample 1")
_MENDED = "is damaged: it is prepared again"


def _flip(content: bytearray, rng: np.random.Generator) -> bytearray:
    content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    return content


def _overwrite(content: bytearray, rng: np.random.Generator) -> bytearray:
    start, length = int(rng.integers(len(content))), int(rng.integers(1, 65))
    noise = rng.bytes(len(content[start : start + length]))
    content[start : start + length] = noise
    return content


def _cut(content: bytearray, rng: np.random.Generator) -> bytearray:
    return content[: rng.integers(len(content))]


DAMAGES: tuple[Callable[[bytearray, np.random.Generator], bytearray], ...] = (_flip, _overwrite, _cut)


def damage(path: Path, rng: np.random.Generator) -> str:
    """Damage a file without changing its time, as a bad disk does; return how."""
    content, before = path.read_bytes(), path.stat()
    way = DAMAGES[rng.choice(len(DAMAGES), p=(0.5, 0.25, 0.25))]
    path.write_bytes(way(bytearray(content), rng))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    return f"{path.name}, {way.__name__.strip('_')}"


def _cached_tables(place: Path) -> dict[str, str]:
    """Write a table in each format that the cache converts; return the overrides that read them."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(-3, 4, (60, 6)).astype(float), rng.normal(size=60)
    np.savez(place / "dense.npz", X=X, y=y)
    rows = [" ".join([f"{t:.6f}", *(f"{i}:{v}" for i, v in enumerate(x, 1) if v)]) for x, t in zip(X, y, strict=True)]
    (place / "sparse.svm").write_text("\n".join(rows) + "\n")
    (place / "mapped").mkdir()
    np.save(place / "mapped" / "X.npy", X)
    np.save(place / "mapped" / "y.npy", y)
    read = {name: f"dataset=file dataset.path={place / name}" for name in ("dense.npz", "sparse.svm", "mapped")}
    return read | {"power_law": "dataset=power_law dataset.implicit=true dataset.d=8 dataset.n=60 dataset.n_test=20"}


def cache_everything() -> None:
    """Make this process cache even small tables, as the trials need them in the cache."""
    from budgetreg.data import distributions, tables

    tables.IN_MEMORY = 0
    distributions._MOST_UNCACHED = 0


def _prepared_damages(place: Path, count: int) -> dict[str, dict[str, Any]]:
    """Run commands whose files will be damaged; the cache has little to damage unless tables are read from it."""
    whole = place / "whole"
    whole.mkdir()
    undisturbed(_RUN, whole)
    answers = {words: undisturbed(words, whole).out for words in _READ}
    left = {"words": _RUN, "answers": answers, "expected": snapshot(whole / "out"), "whole": whole}
    left["figure"] = snapshot(whole / "figure")
    cases: dict[str, dict[str, Any]] = {f"run: {name}": left | {"file": f"out/{name}"} for name in _LEFT}
    for name, table in islice(_cached_tables(place).items(), count // 2):
        folder = place / f"with {name}"
        folder.mkdir()
        words = f"run algo=ridge {table} repetitions=1 {_FIXED}"
        undisturbed(words, folder)
        options = {"words": words, "answers": {}, "expected": snapshot(folder / "out"), "whole": folder}
        shutil.rmtree(folder / "out")
        for path in sorted((folder / "cache" / "budgetreg").rglob("*")):
            if path.is_file() and path.stat().st_size:
                cases[f"cache of {name}: {path.name}"] = options | {"file": str(path.relative_to(folder))}
    return cases


def _damage_file(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Damage a file, read the results, and run the command again."""
    options = result.trial.options
    path = folder / options["file"]
    how = damage(path, rng)
    for words in options["answers"]:
        _read_damaged(result, words, folder, path.name, how)
    answer = forked(options["words"].split(), folder)
    result.judge(f"the run again after {how}", answer)
    if answer.code == 0:
        compare(result, folder / "out", options["expected"])
        if not options["answers"] and _MENDED not in answer.err:
            result.note("untold", f"{how}: the cache is not said to be made again\n{answer.err}")
    elif path.name not in answer.err:
        result.note("untold", f"{how}: {answer.err}")


def _read_damaged(result: TrialResult, words: str, folder: Path, name: str, how: str) -> None:
    options = result.trial.options
    answer = forked(words.split(), folder)
    result.judge(f"{words} after {how}", answer)
    if answer.code:
        if name not in answer.err:
            result.note("untold", f"{words} after {how}: {answer.err}")
    elif words.startswith("plot") and snapshot(folder / "figure") != options["figure"]:
        result.note("wrong", f"{words} after {how}: another figure")
    elif answer.out != options["answers"][words] and "complete" in answer.out.replace("incomplete", ""):
        result.note("wrong", f"{words} after {how}:\n{answer.out}")


# Models, manifests and journals of models that are damaged, also where no checksum shows it, in 2 GiB more memory

_MODEL_RUN = (
    "run algo=aelr dataset=file dataset.path=table.csv dataset.costs=equal repetitions=3 k=3 checkpoints=2 "
    "tuning=fixed tuning.B=2 tuning.eta=0.01 backend=sequential out=out"
)
_MODEL_READ = (
    *("predict out table.csv", "predict out table.csv repetition=1", "compare out error=0.9", "verify out --sample 1"),
    *("status out", "reprice out costs=prices.csv --out repriced"),
)
_TABLES = ("curves.csv", "runs.csv", "reveals.csv", "model.npz")
_MEMORY = 1 << 31
_Damage = Callable[[Path, np.random.Generator], str]


def _arrays(folder: Path, rng: np.random.Generator) -> str:
    """Write a model with another array, or without it."""
    path = folder / "model.npz"
    with np.load(path) as file:
        model = dict(file)
    name = str(rng.choice(["w", "b", "c", "share", "explained", "repetitions", "names", "target", "labels"]))
    array = model[name]
    changes: dict[str, Any] = {
        "one more axis": array[None],
        "no entries": np.zeros((0, 6)),
        "objects": array.astype(object),
        "bytes": array.astype("S9"),
        "complex numbers": np.full(array.shape, 1j),
        "records": np.zeros(array.shape, [("x", float)]),
        "much more": np.zeros((3, 10**5)),
    }
    if name != "target":
        changes |= {"missing": None, "one less": array[:-1], "twice": np.concatenate([array, array])}
    if name in ("w", "b", "c", "share", "explained"):
        at = tuple(rng.integers(array.shape))
        for value in (np.nan, np.inf, -np.inf):
            changes[f"{value} at {at}"] = array.copy()
            changes[f"{value} at {at}"][at] = value
    if name in ("repetitions", "names", "labels"):
        changes["all the same"] = np.repeat(array[:1], len(array))
    if name == "repetitions":
        changes |= {"negative": -array - 1, "fractions": array + 0.5}
    how = str(rng.choice(list(changes)))
    if changes[how] is None and name in ("names", "labels"):  # as of a table without them
        how = "one less"
    model[name] = changes[how]
    np.savez(path, **{key: value for key, value in model.items() if value is not None})
    return f"{name}: {how}"


def _header(folder: Path, rng: np.random.Generator) -> str:
    """Let the header of an array say what is not so."""
    path, name = folder / "model.npz", str(rng.choice(["w", "b", "c"]))
    shapes: list[Any] = [(10**13, 6), (3, 10**9), (2**63, 2), (-3, 6), (3, -6), (True, 6), (3, 7), (3.0, 6), "x", 3]
    types: list[Any] = ["<f8", "<f8", "|O", "<U9", "<U500000000", "<c16", "|V8", "<U0", "nonsense", [("x", "<f8")]]
    shape, dtype = shapes[rng.integers(len(shapes))], types[rng.integers(len(types))]
    said = repr({"descr": dtype, "fortran_order": False, "shape": shape}).encode()
    header = [said, said, said, said[: rng.integers(len(said))], b"(" * 900, b"{'descr': 0x for}", b""][rng.integers(7)]
    length = [len(header), len(header), 0, 2**16 - 1][rng.integers(4)]
    stream = io.BytesIO()
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(stream, "w") as out:
        for member in archive.namelist():
            content = archive.read(member)
            if member == f"{name}.npy":
                content = b"\x93NUMPY\x01\x00" + struct.pack("<H", length) + header + content[128:]
            out.writestr(member, content, int(rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])))
    path.write_bytes(stream.getvalue())
    return f"header of {name}: {header[:99]!r}"


def _member(folder: Path, rng: np.random.Generator) -> str:
    """Let the archive say something else of an array, such as another size, place or compression."""
    path = folder / "model.npz"
    content = bytearray(path.read_bytes())
    entries = [at for at in range(len(content)) if content[at : at + 4] == b"PK\x01\x02"]
    at = int(rng.choice([6, 8, 9, 10, 20, 24, 28, 30, 42]))
    new = [rng.bytes(1), b"\x63", b"\xfe\xff\xff\x7f"][rng.integers(3)]
    entry = entries[rng.integers(len(entries))]
    content[entry + at : entry + at + len(new)] = new
    path.write_bytes(content)
    return f"{new!r} at byte {at} of an entry of the archive"


def _digests(folder: Path, rng: np.random.Generator) -> str:
    """Sign the manifest with the digests of the tables there are, without that of the model, or without any."""
    path, how = folder / "manifest.json", ["signed", "no digest of the model", "no digests"][rng.integers(3)]
    manifest = json.loads(path.read_text())
    names = [name for name in manifest["tables"] if how == "signed" or (name != "model.npz" and how != "no digests")]
    manifest["tables"] = {name: digest((folder / name).read_bytes()) for name in names if (folder / name).exists()}
    path.write_text(json.dumps(signed(manifest)))
    return how


def _key(folder: Path, rng: np.random.Generator) -> str:
    """Invert a bit in the name of a key of the manifest."""
    path = folder / "manifest.json"
    content = bytearray(path.read_bytes())
    names = [b'"sha256"', b'"sha256"', b'"tables"', b'"schema_version"', b'"model.npz"', b'"identity"']
    name = names[rng.integers(len(names))]
    content[content.rindex(name) + int(rng.integers(len(name)))] ^= 1 << int(rng.integers(8))
    path.write_bytes(content)
    return f"a bit in the name {name.decode()}"


def _journal_lines(folder: Path, rng: np.random.Generator) -> str:
    """Drop, repeat, swap and add lines of the journal of models."""
    path = folder / "models.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    more = [b"{}\n", b"\n", b"null\n", b"9" * 5000 + b"\n", b"[" * 10**5 + b"\n", b'{"a": ' * 10**5 + b"\n"]
    some = [*(lines[at] for at in rng.integers(len(lines), size=rng.integers(2 * len(lines)))), rng.choice(more)]
    path.write_bytes(b"".join(some))
    return f"{len(some)} lines in place of {len(lines)}, the last {some[-1][:9]!r}"


def _entry(folder: Path, rng: np.random.Generator) -> str:
    """Change an entry of the journal of models, and sign it."""
    path = folder / "models.jsonl"
    entries = [json.loads(line) for line in path.read_bytes().splitlines()]
    entry = entries[rng.integers(len(entries))]
    place = [entry, entry["result"], entry["result"]["w"]][rng.integers(3)]
    keys = [key for key in place if key not in ("sha256", "status")]
    key = keys[rng.integers(len(keys))]
    values: list[Any] = [None, True, -1, 10**30, float("nan"), "x", "AAAA", [], [1], {}, {"a": 1}, [10**13], [[6]]]
    value = place[key] = values[rng.integers(len(values))]
    path.write_text("".join(f"{json.dumps(signed(each))}\n" for each in entries))
    return f"{key}={value!r}"


def _bytes(name: str) -> _Damage:
    return lambda folder, rng: damage(folder / name, rng)


_MODEL_DAMAGES: dict[str, _Damage] = {
    "model.npz: arrays": _arrays,
    "model.npz: headers": _header,
    "model.npz: archive": _member,
    "model.npz: bytes": _bytes("model.npz"),
    "manifest.json: bytes": _bytes("manifest.json"),
    "manifest.json: names of keys": _key,
    "models.jsonl: bytes": _bytes("models.jsonl"),
    "models.jsonl: lines": _journal_lines,
    "models.jsonl: signed": _entry,
}
"""By case, what damages the folder of a run."""


def _prepared_models(place: Path, count: int) -> Mapping[str, Mapping[str, Any]]:
    whole, rng = place / "whole", np.random.default_rng(0)
    whole.mkdir()
    X = rng.normal(size=(60, 6))
    table = np.column_stack([X, np.sign(X @ np.arange(6.0) + rng.normal(size=60))])  # labels, with probabilities
    np.savetxt(whole / "table.csv", table, delimiter=",", header="a,b,c,d,e,f,y", comments="")
    (whole / "prices.csv").write_text("attribute,cost\na,1\nb,2\nc,3\nd,4\ne,5\nf,6\n")
    answers = {words: undisturbed(words, whole).out for words in (_MODEL_RUN, *_MODEL_READ)}
    expected, repriced = snapshot(whole / "out"), snapshot(whole / "repriced")
    shutil.rmtree(whole / "repriced")
    return alike(_MODEL_DAMAGES, whole=whole, answers=answers, expected=expected, repriced=repriced)


def _damage_model(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Damage the results, read them with every command, and run the command again."""
    options, case, limited = result.trial.options, result.trial.case, partial(limit_memory, _MEMORY)
    how = f"{case}: {_MODEL_DAMAGES[case](folder / 'out', rng)}"
    for words in _MODEL_READ:
        answer = forked(words.split(), folder, limited)
        result.judge(f"{words} after {how}", answer, (0, 1, 2, 3) if words.startswith("verify") else (0, 2, 3))
        if answer.code == 0:
            for note in _differences(words, answer.out, folder, options):
                result.note("wrong", f"{words} after {how}: {note}")
    answer = forked(_MODEL_RUN.split(), folder, limited)
    result.judge(f"the run again after {how}", answer)
    if answer.code == 0:
        compare(result, folder / "out", options["expected"])
    elif not case.startswith("manifest"):  # what a manifest vouches for is not made again
        result.note("untold", f"the run again after {how}: {answer.err}")
    note_leftovers(result, folder, set())


def _differences(words: str, out: str, folder: Path, options: Any) -> Iterator[str]:
    """Give what a command has answered otherwise than for undamaged results."""
    if words.startswith("reprice"):
        if snapshot(folder / "repriced") != options["repriced"]:
            yield "another table or figure"
    elif words.startswith("verify"):  # of fewer repetitions, if some are lost
        if "same" not in out:
            yield out
    elif out != options["answers"][words] and (words != "status out" or "complete" in out.replace("incomplete", "")):
        yield out


# Full disks and folders that cannot be written; later the same command finishes the run

_LARGEST = 1 << 17  # bytes: more than any file that the run leaves


@contextmanager
def _file_limit(folder: Path, rng: np.random.Generator) -> Iterator[Callable[[], object]]:
    size = int(2 ** rng.uniform(0, np.log2(_LARGEST)))
    yield partial(resource.setrlimit, resource.RLIMIT_FSIZE, (size, size))


@contextmanager
def _output_full(folder: Path, rng: np.random.Generator) -> Iterator[Callable[[], object]]:
    def redirected() -> None:
        with Path("/dev/full").open("w") as full:
            os.dup2(full.fileno(), 1)

    yield redirected


@contextmanager
def _full(name: str, folder: Path, rng: np.random.Generator) -> Iterator[Callable[[], object]]:
    """Mount a folder with space for a few pages."""
    pages = int(rng.integers(1, 40))
    with _mounted(folder / name, f"size={4 * pages}k"):
        yield lambda: None


@contextmanager
def _read_only(name: str, folder: Path, rng: np.random.Generator) -> Iterator[Callable[[], object]]:
    with _mounted(folder / name, "ro,size=64k"):
        yield lambda: None


@contextmanager
def _mounted(folder: Path, options: str) -> Iterator[None]:
    """Mount memory as a folder; its content at the end stays in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", folder], check=True, capture_output=True)
    try:
        yield
        kept = Path(tempfile.mkdtemp(dir=folder.parent))
        shutil.copytree(folder, kept, dirs_exist_ok=True)
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
    shutil.copytree(kept, folder, dirs_exist_ok=True)
    shutil.rmtree(kept)


_DISKS: dict[str, Callable[[Path, np.random.Generator], Any]] = {
    "files of limited size": _file_limit,
    "/dev/full as output": _output_full,
    **{f"{name} full": partial(_full, name) for name in ("out", "cache", "tmp")},
    **{f"{name} read-only": partial(_read_only, name) for name in ("out", "cache", "tmp")},
}


def _can_mount(place: Path) -> bool:
    """Return whether this process may mount folders, which full and read-only disks need."""
    try:
        with _mounted(place / "probe", "size=64k"):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


def _prepared_disks(place: Path, count: int) -> Mapping[str, Mapping[str, Any]]:
    table = _cached_tables(place)["dense.npz"]
    words = f"run algo=ridge {table} k=4 repetitions=2 checkpoints=3 tuning=fixed tuning.B=2 backend=sequential out=out"
    undisturbed(words, place)
    mounts = _can_mount(place)
    possible = [name for name in _DISKS if mounts or not name.endswith((" full", " read-only"))]
    return alike(possible, words=words, expected=snapshot(place / "out"))


def _fill_disk(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Run the command while something cannot be written, and again when it can."""
    options, case = result.trial.options, result.trial.case
    words = options["words"].split()
    with _DISKS[case](folder, rng) as limited:
        result.judge(case, forked(words, folder, limited))
    result.judge(f"the same again after {case}", forked(words, folder), (0,))
    if not result.faults:
        compare(result, folder / "out", options["expected"])


# Special files, planted links, odd paths, names that control a terminal, and clocks that are set back

_TINY = "algo=naive dataset=file k=2 repetitions=1 checkpoints=2 tuning=fixed tuning.B=2 backend=sequential"
_FILE_RUN = ("run", *_TINY.split())
_WORDS = (*_FILE_RUN, "dataset.path=table.csv", "dataset.costs=costs.csv", "out=left")
_FILES_LEFT = (
    "curves.csv",
    "runs.csv",
    "model.npz",
    "manifest.json",
    "journal.jsonl",
    "models.jsonl",
    "curve.txt",
    ".lock",
)
_CONTROLS = ("\x1b[2J", "\x1b]0;x\a", "\a", "\b", "\r", "\n", "\x7f", "\x9b31m", "\u202e", "\u2066", "\u2028")
_PLANTED, _THEIRS = 20, b"theirs"
_YEAR = 365 * 24 * 3600

_SPECIAL: Mapping[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to(os.devnull),
    "folder": Path.mkdir,
    "circle": lambda path: path.symlink_to(path.name),
    "link": lambda path: path.symlink_to("theirs"),
    "link to nothing": lambda path: path.symlink_to("nothing yet"),
}
_LONG = "x" * 300
_PATHS = (_LONG, f"{_LONG}.csv", "~.csv", "~x/..", "~x", ".", "..", "", "left", "table.csv", "nowhere/x", "\udcff")
_COMMANDS = (
    *("status {}", "status {} --why", "verify {}", "plot {}", "plot left --out {}", "compare {} error=9"),
    *("report {}", "report left --out {}"),
    *("predict {} table.csv", "predict left {}", "predict left table.csv out={}"),
    *("reprice {} costs=costs.csv", "reprice left costs={}", "reprice left costs=costs.csv --out {}", "run out={}"),
    *("run dataset.path={}", "run dataset.costs={}", "run dataset.ranges={}", "advise total=9 out={} k=2 algo=naive"),
    *("fetch mnist dataset.root={}/no", "reproduce nothing/at_all out={}", "verify left dataset.root={}"),
)


def _prepared_files(place: Path, count: int) -> Mapping[str, Mapping[str, Any]]:
    whole = place / "whole"
    whole.mkdir()
    rows = np.random.default_rng(0).normal(size=(40, 4)).round(6)
    np.savetxt(whole / "table.csv", rows, "%+.6f", ",", header="a,b,c,y", comments="")
    (whole / "costs.csv").write_text("attribute,cost\na,1\nb,2\nc,1\n")
    (whole / "theirs").write_bytes(_THEIRS)
    undisturbed(_WORDS, whole)
    return alike(_FILES, whole=whole, expected=snapshot(whole / "left"))


def _attack_files(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Try a command on hostile files; nothing may be left."""
    _FILES[result.trial.case](result, folder, rng)
    note_leftovers(result, folder, set())
    left = [path for path in folder.rglob(".*.tmp") if "." + "planted" not in path.name]
    if left:
        result.note("leftovers", f"left: {', '.join(map(str, left))}")


def _special_output(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Let a command write where something special is, which must stay what it is."""
    kinds = list(_SPECIAL)
    kind, name = kinds[result.trial.turn(len(_FILES)) % len(kinds)], "special"
    words: tuple[str, ...] = ("predict", "left", "table.csv", "out=special")
    if rng.random() < 0.5:
        name = str(rng.choice(_FILES_LEFT))
        words = (*_WORDS[:-1], "out=fresh") if rng.random() < 0.5 else _WORDS
        name = f"{words[-1][4:]}/{name}"
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    (path.parent / "theirs").write_bytes(_THEIRS)
    path.unlink(missing_ok=True)
    _SPECIAL[kind](path)
    before = path.lstat()
    answer = forked(words, folder)
    seen = f"{kind} as {name}: {words}: {answer.code}\n{answer.err}"
    result.judge(seen, answer)
    if not path.is_symlink() and stat.S_IFMT(path.lstat().st_mode) != stat.S_IFMT(before.st_mode):
        result.note("wrong", f"replaced: {seen}")
    if stat.S_ISLNK(before.st_mode) != path.is_symlink():
        result.note("wrong", f"replaced: {seen}")
    if kind in ("pipe", "device", "folder", "circle") and name == "special" and answer.code != 2:
        result.note("wrong", f"written: {seen}")
    if kind == "link to nothing" and name == "special" and path.read_bytes()[:11] != b"prediction\n":
        result.note("wrong", f"not written: {seen}")
    if kind == "link" and name == "special" and (answer.code != 2 or path.read_bytes() != _THEIRS):
        result.note("wrong", f"written: {seen}")


def _planted(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Plant links where temporary files might be, and files of a dead process where they were."""
    shutil.rmtree(folder / "left")
    mask, dead = int(rng.choice([0o022, 0o077, 0o002])), 4_000_000 + int(rng.integers(10**5))
    names = ("predictions.csv", *_FILES_LEFT)

    def plant() -> None:
        os.umask(mask)
        for name in names:
            for ending in ("", ".0", *(f".{rng.bytes(8).hex()}" for _ in range(_PLANTED))):
                Path("left", f".{name}.{os.getpid()}{ending}.tmp").symlink_to("../theirs")

    (folder / "left").mkdir()
    (folder / "left" / f".curves.csv.{dead}.{rng.bytes(8).hex()}.tmp").write_bytes(b"half")
    answer = forked(_WORDS, folder, plant)
    result.judge("a run with planted links", answer, (0,))
    if (folder / "theirs").read_bytes() != _THEIRS:
        result.note("wrong", "a planted link was followed")
    modes = {stat.S_IMODE((folder / "left" / name).stat().st_mode) for name in ("curves.csv", "curve.txt")}
    if answer.code == 0 and modes != {0o666 & ~mask}:
        result.note("wrong", f"permissions {modes} with the mask {mask:o}")
    for path in folder.rglob(".*.tmp"):
        if path.is_symlink():
            path.unlink()  # ours
    if answer.code == 0:
        compare(result, folder / "left", result.trial.options["expected"])


def _odd_path(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Name an odd path, or something special, in place of a path of a command."""
    number = result.trial.turn(len(_FILES))
    kinds = list(_SPECIAL)
    ending = str(rng.choice(["", ".csv", ".npz", ".list"]))
    for kind in kinds:
        _SPECIAL[kind](folder / f"{kind.replace(' ', '_')}{ending}")
    paths = (*_PATHS, *(f"{kind.replace(' ', '_')}{ending}" for kind in kinds))
    (folder / "~.csv").write_bytes((folder / "table.csv").read_bytes())
    path = paths[int(rng.integers(len(paths)))]
    command, *words = _COMMANDS[number % len(_COMMANDS)].split()
    words = [word.format(f"'{path}'" if command in ("run", "advise") else path) for word in words]
    if command == "run":
        words = [*(word for word in _WORDS[1:] if word.partition("=")[0] != words[0].partition("=")[0]), *words]
    elif command == "advise":
        words = [*words, "dataset=file", "dataset.path=table.csv", "repetitions=1"]
    answer = forked([command, *words], folder)
    result.judge(f"{command} {words}", answer, (0, 1, 2, 3))
    if (folder / "theirs").read_bytes() != _THEIRS and not any("link" in word for word in words):
        result.note("wrong", f"{command} {words}: another file was written")


def _controls(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Have control characters in names of files, columns and units, in labels, and in words of the command line."""

    def odd(name: str) -> str:
        at = int(rng.integers(len(name) + 1))
        return name[:at] + str(rng.choice(_CONTROLS)) + name[at:]

    names, table, unit, out = [odd(name * 3) for name in "abc"], odd("table"), odd("unit"), odd("out")
    quoted = [f'"{name}"' for name in names]
    rows = (folder / "table.csv").read_text().splitlines()[1:]
    (folder / f"{table}.csv").write_text("\n".join([",".join([*quoted, "y"]), *rows, ""]), newline="")
    (folder / "odd.csv").write_text("\n".join(["attribute,cost", *(f"{name},1" for name in quoted), ""]), newline="")
    words = [
        *_FILE_RUN,
        f"dataset.path='{table}.csv'",
        "dataset.costs=odd.csv",
        f"dataset.unit='{unit}'",
        f"out='{out}'",
    ]
    commands: list[tuple[list[str], tuple[int, ...]]] = [
        (words, (0, 3)),  # 3: a name that ends in a line break is no name
        ([*words[:-1], "out=left"], (2, 3)),
        (["status", out], (0, 3)),
        (["plot", out, "--out", odd("figure")], (0, 3)),
        (["reprice", out, f"costs={rng.choice(['odd', 'costs'])}.csv"], (0, 3)),
        (["predict", out, f"{table}.csv", f"out={odd('p.csv')}"], (0, 3)),
        (["predict", out, "table.csv"], (3,)),
        ([odd("run"), odd("k=3")], (2,)),
        (["run", odd("algo=aelr")], (2,)),
        (["run", "-m", "k=2,3", f"dataset.center='{odd('full')}'"], (2,)),
    ]
    for number in (0, *sorted(rng.choice(len(commands) - 1, 3, replace=False) + 1)):
        given, codes = commands[number]
        answer = forked(given, folder)
        result.judge(f"{given}", answer, codes)
        _judge_controls(result, given, answer)
    for caption in folder.rglob("*.txt"):
        _judge_controls(result, [str(caption)], Answer(0, caption.read_text(encoding="utf-8"), ""))


def _judge_controls(result: TrialResult, words: list[str], answer: Answer) -> None:
    printed = answer.out + answer.err
    controls = {
        letter for letter in printed if letter != "\n" and unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp")
    }
    if controls:
        result.note("wrong", f"{words}: printed {sorted(controls)!r}")


def _clock(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Set the clock back, and the times of files forth and back; results must be those of any other time."""
    shift = float(rng.uniform(-50, 50) * _YEAR)
    started, real = time.time(), time.time

    def backwards() -> None:
        cache_everything()
        time.time = lambda: started - 10 * (real() - started)

    for path in folder.rglob("*"):
        os.utime(path, (started + shift, started + shift))
    if rng.random() < 0.5:
        shutil.rmtree(folder / "left")
    answer = forked(_WORDS, folder, backwards)
    result.judge("a run with the clock set back", answer, (0,))
    compare(result, folder / "left", result.trial.options["expected"])
    for words in ("status left", "verify left", "predict left table.csv out=p.csv"):
        result.judge(f"{words} with the clock set back", forked(words.split(), folder, backwards), (0,))
    table, fresh = folder / "table.csv", folder / "fresh.csv"
    rows, before = table.read_text().replace("+", "~").replace("-", "+").replace("~", "-"), table.stat()
    table.write_text(rows)
    os.utime(table, ns=(before.st_atime_ns, before.st_mtime_ns))
    fresh.write_text(rows)
    errors = [forked(["predict", "left", str(path)], folder, backwards) for path in (table, fresh)]
    if errors[0].out != errors[1].out:
        result.note("wrong", "a table that changed at an old time was not read again")


def _no_root(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Name a folder without MNIST's files while the cache has them: a notice names it, and the results are the same."""
    checksums = {}
    raw = folder / "root" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for part, n in (("train", 200), ("t10k", 60)):
        for name, shape, top in (("images-idx3", (n, 4, 4), 256), ("labels-idx1", (n,), 10)):
            values = rng.integers(0, top, shape, dtype=np.uint8)
            content = bytes([0, 0, 8, values.ndim]) + np.array(shape, dtype=">u4").tobytes() + values.tobytes()
            (raw / f"{part}-{name}-ubyte").write_bytes(content)
            checksums[f"{part}-{name}-ubyte"] = hashlib.sha256(content).hexdigest()

    def miniature() -> None:
        from budgetreg.data.mnist import Mnist

        Mnist.load.__defaults__ = (checksums,)

    def run(root: str, codes: tuple[int, ...]) -> Answer:
        words = ["run", "dataset=mnist_3v5", *_TINY.split(), f"dataset.root={root}", f"out=of_{root}"]
        answer = forked([word for word in words if word != "dataset=file"], folder, miniature)
        result.judge(f"dataset.root={root}", answer, codes)
        return answer

    root = str(rng.choice(["nowhere", "theirs", "left"]))
    run(root, (3,))
    run("root", (0,))
    if f"dataset.root={root} holds no MNIST/raw" not in run(root, (0,)).err:
        result.note("untold", f"dataset.root={root}: no notice")
    if not result.faults:
        compare(result, folder / f"of_{root}", snapshot(folder / "of_root"))


_FILES: Mapping[str, Try] = {
    "missing dataset.root": _no_root,
    "special file as output": _special_output,
    "planted temporary file": _planted,
    "odd path": _odd_path,
    "control characters": _controls,
    "clock set back": _clock,
}


KINDS = {
    "damage": Kind("flips", 200, _prepared_damages, _damage_file),
    "model": Kind("models", 81, _prepared_models, _damage_model),
    "disk": Kind("disks", 40, _prepared_disks, _fill_disk),
    "file": Kind("files", 180, _prepared_files, _attack_files),
}
