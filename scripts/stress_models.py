"""Trials of `stress.py` that damage a model, a manifest or the journal of models, also where no checksum shows it.

Each trial has 2 GiB of memory beyond what it has in use.
"""

import io
import json
import resource
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from stress_damage import damage
from stress_trials import Trial, TrialResult, compare, forked, note_leftovers, snapshot

from budgetreg.files import digest, signed

_RUN = (
    "run algo=aelr dataset=file dataset.path=table.csv dataset.costs=equal repetitions=3 k=3 checkpoints=2 "
    "tuning=fixed tuning.B=2 tuning.eta=0.01 backend=sequential out=out"
)
_READ = (
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


def _lines(folder: Path, rng: np.random.Generator) -> str:
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


_DAMAGES: dict[str, _Damage] = {
    "model.npz: arrays": _arrays,
    "model.npz: headers": _header,
    "model.npz: archive": _member,
    "model.npz: bytes": _bytes("model.npz"),
    "manifest.json: bytes": _bytes("manifest.json"),
    "manifest.json: names of keys": _key,
    "models.jsonl: bytes": _bytes("models.jsonl"),
    "models.jsonl: lines": _lines,
    "models.jsonl: signed": _entry,
}
"""By case, what damages the folder of a run."""


def prepared(place: Path, count: int) -> dict[str, dict[str, Any]]:
    """Make the run that will be damaged and read; return what the trials of each case need.

    Raises
    ------
    RuntimeError
        If a command fails undisturbed.
    """
    whole, rng = place / "whole", np.random.default_rng(0)
    whole.mkdir()
    X = rng.normal(size=(60, 6))
    table = np.column_stack([X, np.sign(X @ np.arange(6.0) + rng.normal(size=60))])  # labels, with probabilities
    np.savetxt(whole / "table.csv", table, delimiter=",", header="a,b,c,d,e,f,y", comments="")
    (whole / "prices.csv").write_text("attribute,cost\na,1\nb,2\nc,3\nd,4\ne,5\nf,6\n")
    answers = {}
    for words in (_RUN, *_READ):
        answer = forked(words.split(), whole)
        if answer.code:
            raise RuntimeError(f"{words}: exit code {answer.code} undisturbed\n{answer.err}")
        answers[words] = answer.out
    shared = {"whole": whole, "answers": answers, "expected": snapshot(whole / "out")}
    shared["repriced"] = snapshot(whole / "repriced")
    shutil.rmtree(whole / "repriced")
    return {case: shared for case in _DAMAGES}


def tried(trial: Trial) -> TrialResult:
    """Damage a copy of the results, read it with every command, and run the command again."""
    result, options, rng = TrialResult(trial), trial.options, trial.rng
    folder = Path(tempfile.mkdtemp(dir=trial.place)) / "copy"
    shutil.copytree(options["whole"], folder)
    how = _DAMAGES[trial.case](folder / "out", rng)
    if trial.case.startswith("model.npz"):
        how += f", {_digests(folder / 'out', rng)}"
    elif trial.case.startswith("models.jsonl") and rng.random() < 0.5:  # killed before it wrote tables
        for name in _TABLES:
            (folder / "out" / name).unlink()
        how += f", no tables, {_digests(folder / 'out', rng)}"
    for words in _READ:
        answer = forked(words.split(), folder, _limited)
        result.judge(f"{words} after {how}", answer, (0, 1, 2, 3) if words.startswith("verify") else (0, 2, 3))
        if answer.code == 0:
            for note in _differences(words, answer.out, folder, options):
                result.note("wrong", f"{words} after {how}: {note}")
    answer = forked(_RUN.split(), folder, _limited)
    result.judge(f"the run again after {how}", answer)
    if answer.code == 0:
        compare(result, folder / "out", options["expected"])
    elif not trial.case.startswith("manifest"):  # what a manifest vouches for is not made again
        result.note("untold", f"the run again after {how}: {answer.err}")
    note_leftovers(result, folder, set())
    shutil.rmtree(folder.parent)
    return result


def _limited() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, used + _MEMORY))


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
