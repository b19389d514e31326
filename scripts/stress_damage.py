"""Trials of `stress.py` that damage a file which a run wrote or cached."""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from stress_trials import Trial, TrialResult, compare, forked, snapshot

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


def tables(place: Path) -> dict[str, str]:
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


def prepared(place: Path, count: int) -> dict[str, dict[str, Any]]:
    """Run commands whose files will be damaged; return what the trials of each case need.

    Raises
    ------
    RuntimeError
        If a command fails undisturbed.
    """
    whole = place / "whole"
    whole.mkdir()
    _undisturbed(_RUN, whole)
    answers = {words: _undisturbed(words, whole) for words in _READ}
    left = {"words": _RUN, "answers": answers, "expected": snapshot(whole / "out"), "whole": whole}
    left["figure"] = snapshot(whole / "figure")
    cases: dict[str, dict[str, Any]] = {f"run: {name}": left | {"file": f"out/{name}"} for name in _LEFT}
    for name, table in islice(tables(place).items(), count // 2):
        folder = place / f"with {name}"
        folder.mkdir()
        words = f"run algo=ridge {table} repetitions=1 {_FIXED}"
        _undisturbed(words, folder)
        options = {"words": words, "answers": {}, "expected": snapshot(folder / "out"), "whole": folder}
        shutil.rmtree(folder / "out")
        for path in sorted((folder / "cache" / "budgetreg").rglob("*")):
            if path.is_file() and path.stat().st_size:
                case = options | {"file": str(path.relative_to(folder))}
                cases[f"cache of {name}: {path.name}"] = case
    return cases


def _undisturbed(words: str, folder: Path) -> str:
    answer = forked(words.split(), folder)
    if answer.code:
        raise RuntimeError(f"{words}: exit code {answer.code} undisturbed\n{answer.err}")
    return answer.out


def tried(trial: Trial) -> TrialResult:
    """Damage a file in a copy of the results, read the results, and run the command again."""
    result, options = TrialResult(trial), trial.options
    folder = Path(tempfile.mkdtemp(dir=trial.place)) / "copy"
    shutil.copytree(options["whole"], folder)
    path = folder / options["file"]
    how = damage(path, trial.rng)
    for words in options["answers"]:
        _read(result, words, folder, path.name, how)
    answer = forked(options["words"].split(), folder)
    result.judge(f"the run again after {how}", answer)
    if answer.code == 0:
        compare(result, folder / "out", options["expected"])
        if not options["answers"] and _MENDED not in answer.err:
            result.note("untold", f"{how}: the cache is not said to be made again\n{answer.err}")
    elif path.name not in answer.err:
        result.note("untold", f"{how}: {answer.err}")
    shutil.rmtree(folder.parent)
    return result


def _read(result: TrialResult, words: str, folder: Path, name: str, how: str) -> None:
    options: Mapping[str, Any] = result.trial.options
    answer = forked(words.split(), folder)
    result.judge(f"{words} after {how}", answer)
    if answer.code:
        if name not in answer.err:
            result.note("untold", f"{words} after {how}: {answer.err}")
    elif words.startswith("plot") and snapshot(folder / "figure") != options["figure"]:
        result.note("wrong", f"{words} after {how}: another figure")
    elif answer.out != options["answers"][words] and "complete" in answer.out.replace("incomplete", ""):
        result.note("wrong", f"{words} after {how}:\n{answer.out}")
