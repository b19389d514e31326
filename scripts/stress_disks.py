"""Trials of `stress.py` in which files cannot be written; later the same command finishes the run."""

import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from stress_damage import tables
from stress_trials import Trial, TrialResult, compare, forked, snapshot

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


CASES: dict[str, Callable[[Path, np.random.Generator], Any]] = {
    "files of limited size": _file_limit,
    "/dev/full as output": _output_full,
    **{f"{name} full": partial(_full, name) for name in ("out", "cache", "tmp")},
    **{f"{name} read-only": partial(_read_only, name) for name in ("out", "cache", "tmp")},
}


def can_mount(place: Path) -> bool:
    """Return whether this process may mount folders, which full and read-only disks need."""
    try:
        with _mounted(place / "probe", "size=64k"):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


def prepared(place: Path, count: int) -> dict[str, dict[str, Any]]:
    """Run the command undisturbed; return what the trials of each possible case need.

    Raises
    ------
    RuntimeError
        If it fails.
    """
    table = tables(place)["dense.npz"]
    words = f"run algo=ridge {table} k=4 repetitions=2 checkpoints=3 tuning=fixed tuning.B=2 backend=sequential out=out"
    answer = forked(words.split(), place)
    if answer.code:
        raise RuntimeError(f"{words}: exit code {answer.code} undisturbed\n{answer.err}")
    options = {"words": words, "expected": snapshot(place / "out")}
    mounts = can_mount(place)
    return {name: options for name in CASES if mounts or not name.endswith((" full", " read-only"))}


def tried(trial: Trial) -> TrialResult:
    """Run the command while something cannot be written, and again when it can."""
    result, rng = TrialResult(trial), trial.rng
    folder = Path(tempfile.mkdtemp(dir=trial.place))
    words = trial.options["words"].split()
    with CASES[trial.case](folder, rng) as limited:
        result.judge(f"{trial.case}", forked(words, folder, limited))
    answer = forked(words, folder)
    result.judge(f"the same again after {trial.case}", answer, (0,))
    if not result.faults:
        compare(result, folder / "out", trial.options["expected"])
    shutil.rmtree(folder)
    return result
