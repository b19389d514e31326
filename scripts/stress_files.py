"""Trials of `stress.py` on files: damaged results, and disks that are full or cannot be written."""

import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from stress_trials import DATA, Kind, Trial, Try, alike, limit_memory, snapshot, undisturbed

# Files that a run has written, damaged as by a bad disk, in 2 GiB more memory


def _flip(content: bytearray, rng: np.random.Generator) -> bytearray:
    content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    return content


def _overwrite(content: bytearray, rng: np.random.Generator) -> bytearray:
    start, length = int(rng.integers(len(content))), int(rng.integers(1, 65))
    content[start : start + length] = rng.bytes(len(content[start : start + length]))
    return content


def _cut(content: bytearray, rng: np.random.Generator) -> bytearray:
    return content[: rng.integers(len(content))]


def _mix(content: bytearray, rng: np.random.Generator) -> bytearray:
    lines = content.splitlines(keepends=True)
    return bytearray().join(lines[at] for at in rng.integers(len(lines), size=len(lines) + 1))


_DAMAGES = {"flip": _flip, "overwrite": _overwrite, "cut": _cut, "mix": _mix}
_SHARES = (0.4, 0.2, 0.2, 0.2)
_MEMORY = 1 << 31


def damage(path: Path, rng: np.random.Generator) -> str:
    """Damage a file without changing its time, as a bad disk does; return how."""
    before, way = path.stat(), str(rng.choice(list(_DAMAGES), p=_SHARES))
    path.write_bytes(_DAMAGES[way](bytearray(path.read_bytes()), rng))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    return f"{path.name}, {way}"


def write_table(folder: Path) -> None:
    """Write a table with two labels, of which models predict probabilities, and a price list."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    table = np.column_stack([X, np.sign(X @ np.arange(6.0) + rng.normal(size=60))])
    folder.mkdir()
    np.savetxt(folder / "table.csv", table, delimiter=",", header="a,b,c,d,e,f,y", comments="")
    (folder / "prices.csv").write_text("attribute,cost\na,1\nb,2\nc,3\nd,4\ne,5\nf,6\n")


def _prepared_damages(place: Path, count: int) -> dict[str, dict[str, Any]]:
    """Run a command whose files will be damaged, and whatever reads them."""
    data, whole, tables = DATA["damage"], place / "whole", place / "tables"
    write_table(tables)
    whole.mkdir()
    run = data["run"].format(tables)
    undisturbed(run, whole)
    answers = {line: undisturbed(line, whole).out for line in (line.format(tables) for line in data["read"])}
    options = {"whole": whole, "run": run, "answers": answers, "expected": snapshot(whole / "out")}
    for name in ("figure", "repriced"):
        options[name] = snapshot(whole / name)
        shutil.rmtree(whole / name)
    files = [path for path in sorted((whole / "out").iterdir()) if path.stat().st_size]
    return {path.name: options for path in files}


def _damage_file(trial: Trial) -> None:
    """Damage a file, read the results with every command, and run the command again."""
    options, path, limited = trial.options, trial.folder / "out" / trial.case, partial(limit_memory, _MEMORY)
    how = damage(path, trial.rng)
    for line, expected in options["answers"].items():
        answer = trial.run(line, before=limited)
        if answer.code:
            trial.expect(path.name in answer.err, f"{line} after {how}: {answer.err}", "untold")
            continue
        incomplete = "complete" not in answer.out.replace("incomplete", "") and line.startswith(("status", "verify"))
        trial.expect(answer.out == expected or incomplete, f"{line} after {how}: {answer.out}")
        if folder := line.partition("--out ")[2]:
            trial.compare(folder, options[folder])
    answer = trial.run(options["run"], before=limited)
    if answer.code:
        trial.expect(path.name in answer.err, f"{how}: {answer.err}", "untold")
        return
    trial.compare("out", options["expected"])
    trial.without_leftovers()


# Full disks and folders that cannot be written; later the same command finishes the run

_LARGEST = 1 << 17  # bytes: more than any file that the run leaves


def _limit_files(trial: Trial) -> None:
    size = int(2 ** trial.rng.uniform(0, np.log2(_LARGEST)))
    trial.run(trial.options["run"], before=partial(resource.setrlimit, resource.RLIMIT_FSIZE, (size, size)))


def _full(name: str, trial: Trial) -> None:
    """Mount a folder with space for a few pages."""
    with _mounted(trial.folder / name, f"size={4 * trial.rng.integers(1, 40)}k"):
        trial.run(trial.options["run"])


def _read_only(name: str, trial: Trial) -> None:
    with _mounted(trial.folder / name, "ro,size=64k"):
        trial.run(trial.options["run"])


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
    **{f"{name} full": partial(_full, name) for name in ("out", "cache", "tmp")},
    **{f"{name} read-only": partial(_read_only, name) for name in ("out", "cache", "tmp")},
}


def _prepared_disks(place: Path, count: int) -> Mapping[str, Mapping[str, Any]]:
    write_table(tables := place / "tables")
    run = DATA["disk"].format(tables)
    undisturbed(run, place)
    try:
        with _mounted(place / "probe", "size=64k"):
            possible = list(_DISKS)
    except (OSError, subprocess.CalledProcessError):  # full and read-only disks need the right to mount
        possible = ["files of limited size"]
    return alike(possible, run=run, expected=snapshot(place / "out"))


def _fill_disk(trial: Trial) -> None:
    """Run the command while something cannot be written, and again when it can."""
    _DISKS[trial.case](trial)
    trial.run(trial.options["run"], (0,))
    if not trial.faults:
        trial.compare("out", trial.options["expected"])


KINDS = {
    "damage": Kind(180, _prepared_damages, _damage_file),
    "disk": Kind(35, _prepared_disks, _fill_disk),
}
