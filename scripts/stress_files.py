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
from stress_trials import DATA, Kind, Trial, Try, alike, limit_memory, overwrite, snapshot, undisturbed

from budgetreg.common.files import signed

# Files that a run has written or cached, damaged as by a bad disk


def _flip(content: bytearray, rng: np.random.Generator) -> bytearray:
    content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    return content


def _cut(content: bytearray, rng: np.random.Generator) -> bytearray:
    return content[: rng.integers(len(content))]


_DAMAGES = {"flip": _flip, "overwrite": overwrite, "cut": _cut}


def damage(path: Path, rng: np.random.Generator) -> str:
    """Damage a file without changing its time, as a bad disk does; return how."""
    before, way = path.stat(), str(rng.choice(list(_DAMAGES), p=(0.5, 0.25, 0.25)))
    path.write_bytes(_DAMAGES[way](bytearray(path.read_bytes()), rng))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    return f"{path.name}, {way}"


def _tables(place: Path) -> dict[str, str]:
    """Write a table in each format that the cache converts; return the overrides that read them."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(-3, 4, (60, 6)).astype(float), rng.normal(size=60)
    np.savez(place / "dense.npz", X=X, y=y)
    rows = [" ".join([f"{t:.6f}", *(f"{i}:{v}" for i, v in enumerate(x, 1) if v)]) for x, t in zip(X, y, strict=True)]
    (place / "sparse.svm").write_text("\n".join(rows) + "\n")
    (place / "mapped").mkdir()
    np.save(place / "mapped" / "X.npy", X)
    np.save(place / "mapped" / "y.npy", y)
    return {name: line.format(place / name) for name, line in DATA["damage"]["tables"].items()}


def cache_everything() -> None:
    """Make this process cache even small tables, as the trials need them in the cache."""
    from budgetreg.data import distributions, tables

    tables.IN_MEMORY = 0
    distributions._MOST_UNCACHED = 0


def _prepared_damages(place: Path, count: int) -> dict[str, dict[str, Any]]:
    """Run commands whose files will be damaged; the cache has little to damage unless tables are read from it."""
    data, whole = DATA["damage"], place / "whole"
    whole.mkdir()
    undisturbed(data["run"], whole)
    answers = {line: undisturbed(line, whole).out for line in data["read"]}
    left = {"line": data["run"], "answers": answers, "expected": snapshot(whole / "out"), "whole": whole}
    left["figure"] = snapshot(whole / "figure")
    cases: dict[str, dict[str, Any]] = {f"run: {name}": left | {"file": f"out/{name}"} for name in data["files"]}
    for name, table in islice(_tables(place).items(), count // 2):
        folder = place / f"with {name}"
        folder.mkdir()
        line = data["cached"].format(table)
        undisturbed(line, folder)
        options = {"line": line, "answers": {}, "expected": snapshot(folder / "out"), "whole": folder}
        shutil.rmtree(folder / "out")
        for path in sorted((folder / "cache" / "budgetreg").rglob("*")):
            if path.is_file() and path.stat().st_size:
                cases[f"cache of {name}: {path.name}"] = options | {"file": str(path.relative_to(folder))}
    return cases


def _damage_file(trial: Trial) -> None:
    """Damage a file, read the results, and run the command again."""
    options, path = trial.options, trial.folder / trial.options["file"]
    how = damage(path, trial.rng)
    for line, expected in options["answers"].items():
        answer = trial.run(line)
        if answer.code:
            trial.expect(path.name in answer.err, f"{line} after {how}: {answer.err}", "untold")
        elif line.startswith("plot"):
            trial.compare("figure", options["figure"])
        else:
            right = answer.out == expected or "complete" not in answer.out.replace("incomplete", "")
            trial.expect(right, f"{line} after {how}:\n{answer.out}")
    answer = trial.run(options["line"])
    if answer.code:
        trial.expect(path.name in answer.err, f"{how}: {answer.err}", "untold")
        return
    trial.compare("out", options["expected"])
    mended = options["answers"] or "is damaged: it is prepared again" in answer.err
    trial.expect(bool(mended), f"{how}: the cache is not said to be made again\n{answer.err}", "untold")


# Models, manifests and journals of models that are damaged, also where no checksum shows it, in 2 GiB more memory

_MEMORY = 1 << 31
_Damage = Callable[[Path, Trial], str]


def _arrays(folder: Path, trial: Trial) -> str:
    """Write a model with another array, or without it."""
    path = folder / "model.npz"
    with np.load(path) as file:
        model = dict(file)
    name = trial.pick(("w", "b", "c", "share", "explained", "repetitions", "names", "target", "labels"))
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
        changes |= {"one less": array[:-1], "twice": np.concatenate([array, array])}
    if name not in ("target", "names", "labels"):  # tables may be without these
        changes["missing"] = None
    if name in ("w", "b", "c", "share", "explained"):
        for value in (np.nan, np.inf, -np.inf):
            changes[f"{value}"] = array.copy()
            changes[f"{value}"][tuple(trial.rng.integers(array.shape))] = value
    if name in ("repetitions", "names", "labels"):
        changes["all the same"] = np.repeat(array[:1], len(array))
    if name == "repetitions":
        changes |= {"negative": -array - 1, "fractions": array + 0.5}
    how = trial.pick(list(changes))
    model[name] = changes[how]
    np.savez(path, **{key: value for key, value in model.items() if value is not None})
    return f"{name}: {how}"


def _header(folder: Path, trial: Trial) -> str:
    """Let the header of an array say what is not so."""
    data, path, name = DATA["model"], folder / "model.npz", trial.pick(("w", "b", "c"))
    shape = trial.pick([*map(tuple, data["shapes"]), "x", 3])
    dtype = trial.pick([*data["types"], [("x", "<f8")]])
    said = repr({"descr": dtype, "fortran_order": False, "shape": shape}).encode()
    cut = said[: trial.rng.integers(len(said))]
    header = trial.pick((said, said, said, cut, b"(" * 900, b"{'descr': 0x for}", b""))
    length = trial.pick((len(header), len(header), 0, 2**16 - 1))
    stream = io.BytesIO()
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(stream, "w") as out:
        for member in archive.namelist():
            content = archive.read(member)
            if member == f"{name}.npy":
                content = b"\x93NUMPY\x01\x00" + struct.pack("<H", length) + header + content[128:]
            out.writestr(member, content, trial.pick((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA)))
    path.write_bytes(stream.getvalue())
    return f"header of {name}: {header[:99]!r}"


def _member(folder: Path, trial: Trial) -> str:
    """Let the archive say something else of an array, such as another size, place or compression."""
    path = folder / "model.npz"
    content = bytearray(path.read_bytes())
    entry = trial.pick([at for at in range(len(content)) if content[at : at + 4] == b"PK\x01\x02"])
    at = trial.pick((6, 8, 9, 10, 20, 24, 28, 30, 42))
    new = trial.pick((trial.rng.bytes(1), b"\x63", b"\xfe\xff\xff\x7f"))
    content[entry + at : entry + at + len(new)] = new
    path.write_bytes(content)
    return f"{new!r} at byte {at} of an entry of the archive"


def _key(folder: Path, trial: Trial) -> str:
    """Invert a bit in the name of a key of the manifest."""
    path = folder / "manifest.json"
    content = bytearray(path.read_bytes())
    name = trial.pick((b'"sha256"', b'"sha256"', b'"tables"', b'"schema_version"', b'"model.npz"', b'"identity"'))
    content[content.rindex(name) + int(trial.rng.integers(len(name)))] ^= 1 << int(trial.rng.integers(8))
    path.write_bytes(content)
    return f"a bit in the name {name.decode()}"


def _journal_lines(folder: Path, trial: Trial) -> str:
    """Drop, repeat, swap and add lines of the journal of models."""
    path = folder / "models.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    more = (b"{}\n", b"\n", b"null\n", b"9" * 5000 + b"\n", b"[" * 10**5 + b"\n", b'{"a": ' * 10**5 + b"\n")
    some = [*(trial.pick(lines) for _ in range(trial.rng.integers(2 * len(lines)))), trial.pick(more)]
    path.write_bytes(b"".join(some))
    return f"{len(some)} lines in place of {len(lines)}, the last {some[-1][:9]!r}"


def _entry(folder: Path, trial: Trial) -> str:
    """Change an entry of the journal of models, and sign it."""
    path = folder / "models.jsonl"
    entries = [json.loads(line) for line in path.read_bytes().splitlines()]
    entry = trial.pick(entries)
    place = trial.pick((entry, entry["result"], entry["result"]["w"]))
    key = trial.pick([key for key in place if key not in ("sha256", "status")])
    value = place[key] = trial.pick(DATA["model"]["values"])
    path.write_text("".join(f"{json.dumps(signed(each))}\n" for each in entries))
    return f"{key}={value!r}"


def _bytes(name: str) -> _Damage:
    return lambda folder, trial: damage(folder / name, trial.rng)


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
    data, whole, rng = DATA["model"], place / "whole", np.random.default_rng(0)
    whole.mkdir()
    X = rng.normal(size=(60, 6))
    table = np.column_stack([X, np.sign(X @ np.arange(6.0) + rng.normal(size=60))])  # labels, with probabilities
    np.savetxt(whole / "table.csv", table, delimiter=",", header="a,b,c,d,e,f,y", comments="")
    (whole / "prices.csv").write_text("attribute,cost\na,1\nb,2\nc,3\nd,4\ne,5\nf,6\n")
    undisturbed(data["run"], whole)
    answers = {line: undisturbed(line, whole).out for line in data["read"]}
    expected, repriced = snapshot(whole / "out"), snapshot(whole / "repriced")
    shutil.rmtree(whole / "repriced")
    return alike(_MODEL_DAMAGES, whole=whole, answers=answers, expected=expected, repriced=repriced)


def _damage_model(trial: Trial) -> None:
    """Damage the results, read them with every command, and run the command again."""
    data, options = DATA["model"], trial.options
    how = f"{trial.case}: {_MODEL_DAMAGES[trial.case](trial.folder / 'out', trial)}"
    limited = partial(limit_memory, _MEMORY)
    for line, expected in options["answers"].items():
        answer = trial.run(line, (0, 1, 2, 3) if line.startswith("verify") else (0, 2, 3), before=limited)
        if answer.code == 0 and line.startswith("reprice"):
            trial.compare("repriced", options["repriced"])
        elif answer.code == 0:
            right = "same" in answer.out if line.startswith("verify") else answer.out == expected
            incomplete = line == "status out" and "complete" not in answer.out.replace("incomplete", "")
            trial.expect(right or incomplete, f"{line} after {how}: {answer.out}")
    answer = trial.run(data["run"], before=limited)
    if answer.code == 0:
        trial.compare("out", options["expected"])
    else:  # what a manifest vouches for is not made again
        trial.expect(trial.case.startswith("manifest"), f"the run again after {how}: {answer.err}", "untold")
    trial.without_leftovers()


# Full disks and folders that cannot be written; later the same command finishes the run

_LARGEST = 1 << 17  # bytes: more than any file that the run leaves


def _limit_files(trial: Trial) -> None:
    size = int(2 ** trial.rng.uniform(0, np.log2(_LARGEST)))
    trial.run(trial.options["line"], before=partial(resource.setrlimit, resource.RLIMIT_FSIZE, (size, size)))


def _limit_output(trial: Trial) -> None:
    def redirected() -> None:
        with Path("/dev/full").open("w") as full:
            os.dup2(full.fileno(), 1)

    trial.run(trial.options["line"], before=redirected)


def _full(name: str, trial: Trial) -> None:
    """Mount a folder with space for a few pages."""
    with _mounted(trial.folder / name, f"size={4 * trial.rng.integers(1, 40)}k"):
        trial.run(trial.options["line"])


def _read_only(name: str, trial: Trial) -> None:
    with _mounted(trial.folder / name, "ro,size=64k"):
        trial.run(trial.options["line"])


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


_DISKS: dict[str, Try] = {
    "files of limited size": _limit_files,
    "/dev/full as output": _limit_output,
    **{f"{name} full": partial(_full, name) for name in ("out", "cache", "tmp")},
    **{f"{name} read-only": partial(_read_only, name) for name in ("out", "cache", "tmp")},
}


def _prepared_disks(place: Path, count: int) -> Mapping[str, Mapping[str, Any]]:
    _tables(place)
    line = DATA["disk"].format(place / "dense.npz")
    undisturbed(line, place)
    try:
        with _mounted(place / "probe", "size=64k"):
            possible = list(_DISKS)
    except (OSError, subprocess.CalledProcessError):  # full and read-only disks need the right to mount
        possible = [name for name in _DISKS if not name.endswith((" full", " read-only"))]
    return alike(possible, line=line, expected=snapshot(place / "out"))


def _fill_disk(trial: Trial) -> None:
    """Run the command while something cannot be written, and again when it can."""
    _DISKS[trial.case](trial)
    trial.run(trial.options["line"], (0,))
    if not trial.faults:
        trial.compare("out", trial.options["expected"])


# Special files, planted links, odd paths, names that control a terminal, and clocks that are set back

_RUN = DATA["file"]["run"]
_WHOLE_RUN = f"{_RUN} dataset.path=table.csv dataset.costs=costs.csv out=left"
_PLANTED, _THEIRS = 20, b"theirs"
_YEAR = 365 * 24 * 3600

_SPECIAL: Mapping[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to(os.devnull),
    "folder": Path.mkdir,
    "circle": lambda path: path.symlink_to(path.name),
    "link": lambda path: path.symlink_to("theirs"),
    "link_to_nothing": lambda path: path.symlink_to("nothing yet"),
}


def _prepared_files(place: Path, count: int) -> Mapping[str, Mapping[str, Any]]:
    whole = place / "whole"
    whole.mkdir()
    rows = np.random.default_rng(0).normal(size=(40, 4)).round(6)
    np.savetxt(whole / "table.csv", rows, "%+.6f", ",", header="a,b,c,y", comments="")
    (whole / "costs.csv").write_text("attribute,cost\na,1\nb,2\nc,1\n")
    (whole / "theirs").write_bytes(_THEIRS)
    undisturbed(_WHOLE_RUN, whole)
    return alike(_FILES, whole=whole, expected=snapshot(whole / "left"))


def _attack_files(trial: Trial) -> None:
    """Try a command on hostile files; nothing may be left."""
    _FILES[trial.case](trial)
    trial.without_leftovers()
    left = [str(path) for path in trial.folder.rglob(".*.tmp") if not path.is_symlink()]
    trial.expect(not left, f"left: {', '.join(left)}", "leftovers")


def _special_output(trial: Trial) -> None:
    """Let a command write where something special is, which must stay what it is."""
    kind, name, line = trial.next_of(list(_SPECIAL)), "special", "predict left table.csv out=special"
    if direct := trial.pick((True, False)):
        path = trial.folder / name
    else:
        out = trial.pick(("left", "fresh"))
        name, line = f"{out}/{trial.pick(DATA['file']['files'])}", _WHOLE_RUN.replace("out=left", f"out={out}")
        path = trial.folder / name
        path.parent.mkdir(exist_ok=True)
        (path.parent / "theirs").write_bytes(_THEIRS)
        path.unlink(missing_ok=True)
    _SPECIAL[kind](path)
    before = path.lstat()
    answer = trial.run(line)
    seen = f"{kind} as {name}: {line}: {answer.code}\n{answer.err}"
    if stat.S_IFMT(before.st_mode) != stat.S_IFMT(path.lstat().st_mode):
        trial.note("wrong", f"replaced: {seen}")
    if direct and kind == "link_to_nothing":
        trial.expect(path.read_bytes()[:11] == b"prediction\n", f"not written: {seen}")
    elif direct:
        trial.expect(answer.code == 2 and (kind != "link" or path.read_bytes() == _THEIRS), f"written: {seen}")


def _planted(trial: Trial) -> None:
    """Plant links where temporary files might be, and files of a dead process where they were."""
    folder, rng = trial.folder, trial.rng
    shutil.rmtree(folder / "left")
    mask, dead = trial.pick((0o022, 0o077, 0o002)), 4_000_000 + int(rng.integers(10**5))

    def plant() -> None:
        os.umask(mask)
        for name in ("predictions.csv", *DATA["file"]["files"]):
            for ending in ("", ".0", *(f".{rng.bytes(8).hex()}" for _ in range(_PLANTED))):
                Path("left", f".{name}.{os.getpid()}{ending}.tmp").symlink_to("../theirs")

    (folder / "left").mkdir()
    (folder / "left" / f".curves.csv.{dead}.{rng.bytes(8).hex()}.tmp").write_bytes(b"half")
    answer = trial.run(_WHOLE_RUN, (0,), before=plant)
    trial.expect((folder / "theirs").read_bytes() == _THEIRS, "a planted link was followed")
    for path in folder.rglob(".*.tmp"):
        if path.is_symlink():
            path.unlink()  # ours
    if answer.code == 0:
        modes = {stat.S_IMODE((folder / "left" / name).stat().st_mode) for name in ("curves.csv", "curve.txt")}
        trial.expect(modes == {0o666 & ~mask}, f"permissions {modes} with the mask {mask:o}")
        trial.compare("left", trial.options["expected"])


def _odd_path(trial: Trial) -> None:
    """Name an odd path, or something special, in place of a path of a command."""
    folder, data, ending = trial.folder, DATA["file"], trial.pick(("", ".csv", ".npz", ".list"))
    for kind, make in _SPECIAL.items():
        make(folder / f"{kind}{ending}")
    (folder / "~.csv").write_bytes((folder / "table.csv").read_bytes())
    path = trial.pick([*data["paths"], "x" * 300, "\udcff", *(f"{kind}{ending}" for kind in _SPECIAL)])
    command, *words = trial.next_of(data["commands"]).split()
    words = [word.format(f"'{path}'" if command in ("run", "advise") else path) for word in words]
    if command == "run":
        key = words[0].partition("=")[0]
        words = [*(word for word in _WHOLE_RUN.split()[1:] if word.partition("=")[0] != key), *words]
    elif command == "advise":
        words = [*words, "dataset=file", "dataset.path=table.csv", "repetitions=1"]
    trial.run([command, *words], (0, 1, 2, 3))
    same = (folder / "theirs").read_bytes() == _THEIRS or any("link" in word for word in words)
    trial.expect(same, f"{command} {words}: another file was written")


def _controls(trial: Trial) -> None:
    """Have control characters in names of files, columns and units, in labels, and in words of the command line."""

    def odd(name: str) -> str:
        at = int(trial.rng.integers(len(name) + 1))
        return name[:at] + trial.pick(DATA["file"]["controls"]) + name[at:]

    folder, data, columns = trial.folder, DATA["file"], [odd(name * 3) for name in "abc"]
    names = {name: odd(name) for name in ("table", "unit", "out", "figure", "predictions", "run", "full")}
    names |= {"budget": odd("k=3"), "learner": odd("algo=aelr")}
    quoted = [f'"{name}"' for name in columns]
    rows = (folder / "table.csv").read_text().splitlines()[1:]
    table = folder / f"{names['table']}.csv"
    table.write_text("\n".join([",".join([*quoted, "y"]), *rows, ""]), newline="")
    (folder / "odd.csv").write_text("\n".join(["attribute,cost", *(f"{name},1" for name in quoted), ""]), newline="")
    first, *others = data["odd words"]
    some = sorted(trial.rng.choice(len(others), 3, replace=False))
    for line, *codes in [first, *(others[number] for number in some)]:
        words = [word.format(**names) for word in line.split()]
        answer = trial.run(words, codes)
        _no_controls(trial, f"{words}", answer.out + answer.err)
    for caption in folder.rglob("*.txt"):
        _no_controls(trial, str(caption), caption.read_text(encoding="utf-8"))


def _no_controls(trial: Trial, where: str, text: str) -> None:
    controls = {x for x in text if x != "\n" and unicodedata.category(x) in ("Cc", "Cf", "Zl", "Zp")}
    if controls:
        trial.note("wrong", f"{where}: printed {sorted(controls)!r}")


def _clock(trial: Trial) -> None:
    """Set the clock back, and the times of files forth and back; results must be those of any other time."""
    folder, shift = trial.folder, float(trial.rng.uniform(-50, 50) * _YEAR)
    started, real = time.time(), time.time

    def backwards() -> None:
        cache_everything()
        time.time = lambda: started - 10 * (real() - started)

    for path in folder.rglob("*"):
        os.utime(path, (started + shift, started + shift))
    if trial.pick((True, False)):
        shutil.rmtree(folder / "left")
    trial.run(_WHOLE_RUN, (0,), before=backwards)
    trial.compare("left", trial.options["expected"])
    for line in ("status left", "verify left", "predict left table.csv out=p.csv"):
        trial.run(line, (0,), before=backwards)
    table, fresh = folder / "table.csv", folder / "fresh.csv"
    rows, before = table.read_text().translate(str.maketrans("+-", "-+")), table.stat()
    table.write_text(rows)
    os.utime(table, ns=(before.st_atime_ns, before.st_mtime_ns))
    fresh.write_text(rows)
    errors = [trial.run(f"predict left {path.name}", before=backwards).out for path in (table, fresh)]
    trial.expect(errors[0] == errors[1], "a table that changed at an old time was not read again")


def _no_root(trial: Trial) -> None:
    """Name a folder without MNIST's files while the cache has them: a notice names it, and the results are the same."""
    checksums = {}
    raw = trial.folder / "root" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for part, n in (("train", 200), ("t10k", 60)):
        for name, shape, top in (("images-idx3", (n, 4, 4), 256), ("labels-idx1", (n,), 10)):
            values = trial.rng.integers(0, top, shape, dtype=np.uint8)
            content = bytes([0, 0, 8, values.ndim]) + np.array(shape, dtype=">u4").tobytes() + values.tobytes()
            (raw / f"{part}-{name}-ubyte").write_bytes(content)
            checksums[f"{part}-{name}-ubyte"] = hashlib.sha256(content).hexdigest()

    def miniature() -> None:
        from budgetreg.data.mnist import Mnist

        Mnist.load.__defaults__ = (checksums,)

    line, root = _RUN.replace("dataset=file", "dataset=mnist_3v5"), trial.pick(("nowhere", "theirs", "left"))
    answers = [
        trial.run(f"{line} dataset.root={name} out=of_{name}", codes, before=miniature)
        for name, codes in ((root, (3,)), ("root", (0,)), (root, (0,)))
    ]
    noticed = f"dataset.root={root} holds no MNIST/raw" in answers[-1].err
    trial.expect(noticed, f"dataset.root={root}: no notice", "untold")
    if not trial.faults:
        trial.compare(f"of_{root}", snapshot(trial.folder / "of_root"))


_FILES: Mapping[str, Try] = {
    "missing dataset.root": _no_root,
    "special file as output": _special_output,
    "planted temporary file": _planted,
    "odd path": _odd_path,
    "control characters": _controls,
    "clock set back": _clock,
}


KINDS = {
    "damage": Kind(200, _prepared_damages, _damage_file),
    "model": Kind(81, _prepared_models, _damage_model),
    "disk": Kind(40, _prepared_disks, _fill_disk),
    "file": Kind(180, _prepared_files, _attack_files),
}
