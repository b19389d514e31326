"""Trials of `stress.py` with hostile files: special ones, planted links, odd paths and names, and wrong times."""

import os
import shutil
import stat
import tempfile
import time
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from stress_damage import cache_everything
from stress_trials import Answer, Trial, TrialResult, compare, forked, note_leftovers, snapshot

_TINY = "algo=naive dataset=file k=2 repetitions=1 checkpoints=2 tuning=fixed tuning.B=2 backend=sequential"
_RUN = ("run", *_TINY.split())
_WORDS = (*_RUN, "dataset.path=table.csv", "dataset.costs=costs.csv", "out=left")
_LEFT = ("curves.csv", "runs.csv", "model.npz", "manifest.json", "journal.jsonl", "models.jsonl", "curve.txt", ".lock")
_CONTROLS = ("\x1b[2J", "\x1b]0;x\a", "\a", "\b", "\r", "\n", "\x7f", "\x9b31m", "\u202e", "\u2066", "\u2028")
_PLANTED, _THEIRS = 20, b"theirs"
_YEAR = 365 * 24 * 3600

SPECIAL: Mapping[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to(os.devnull),
    "folder": Path.mkdir,
    "circle": lambda path: path.symlink_to(path.name),
    "link": lambda path: path.symlink_to("theirs"),
    "link to nothing": lambda path: path.symlink_to("nothing yet"),
}
_PATHS = (
    "x" * 300,
    "x" * 300 + ".csv",
    "~.csv",
    "~x/..",
    "~x",
    ".",
    "..",
    "",
    "left",
    "table.csv",
    "nowhere/x",
    "\udcff",
)
_COMMANDS = (
    *("status {}", "status {} --why", "verify {}", "plot {}", "plot left --out {}", "compare {} error=9"),
    *("report {}", "report left --out {}"),
    *("predict {} table.csv", "predict left {}", "predict left table.csv out={}"),
    *("reprice {} costs=costs.csv", "reprice left costs={}", "reprice left costs=costs.csv --out {}", "run out={}"),
    *("run dataset.path={}", "run dataset.costs={}", "run dataset.ranges={}", "advise total=9 out={} k=2 algo=naive"),
    *("fetch mnist dataset.root={}/no", "reproduce nothing/at_all out={}", "verify left dataset.root={}"),
)


def prepared(place: Path, count: int) -> dict[str, dict[str, Any]]:
    """Make a run; return what the trials of each case need.

    Raises
    ------
    RuntimeError
        If the run fails.
    """
    whole = place / "whole"
    whole.mkdir()
    rows = np.random.default_rng(0).normal(size=(40, 4)).round(6)
    np.savetxt(whole / "table.csv", rows, "%+.6f", ",", header="a,b,c,y", comments="")
    (whole / "costs.csv").write_text("attribute,cost\na,1\nb,2\nc,1\n")
    (whole / "theirs").write_bytes(_THEIRS)
    answer = forked(_WORDS, whole)
    if answer.code:
        raise RuntimeError(f"{_WORDS}: exit code {answer.code} undisturbed\n{answer.err}")
    return {name: {"whole": whole, "expected": snapshot(whole / "left")} for name in CASES}


def tried(trial: Trial) -> TrialResult:
    """Try a command on hostile files in a copy of the run."""
    result = TrialResult(trial)
    folder = Path(tempfile.mkdtemp(dir=trial.place)) / "some" / "where"
    shutil.copytree(trial.options["whole"], folder)
    CASES[trial.case](result, folder, trial.rng)
    note_leftovers(result, folder, set())
    left = [path for path in folder.rglob(".*.tmp") if "." + "planted" not in path.name]
    if left:
        result.note("leftovers", f"left: {', '.join(map(str, left))}")
    shutil.rmtree(folder.parent.parent)
    return result


def _output(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Let a command write where something special is, which must stay what it is."""
    kinds = list(SPECIAL)
    kind, name = kinds[result.trial.number // len(CASES) % len(kinds)], "special"
    words: tuple[str, ...] = ("predict", "left", "table.csv", "out=special")
    if rng.random() < 0.5:
        name = str(rng.choice(_LEFT))
        words = (*_WORDS[:-1], "out=fresh") if rng.random() < 0.5 else _WORDS
        name = f"{words[-1][4:]}/{name}"
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    (path.parent / "theirs").write_bytes(_THEIRS)
    path.unlink(missing_ok=True)
    SPECIAL[kind](path)
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
    names = ("predictions.csv", *_LEFT)

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


def _path(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Name an odd path, or something special, in place of a path of a command."""
    number = result.trial.number // len(CASES)
    kinds = list(SPECIAL)
    ending = str(rng.choice(["", ".csv", ".npz", ".list"]))
    for kind in kinds:
        SPECIAL[kind](folder / f"{kind.replace(' ', '_')}{ending}")
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
    words = [*_RUN, f"dataset.path='{table}.csv'", "dataset.costs=odd.csv", f"dataset.unit='{unit}'", f"out='{out}'"]
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


CASES: Mapping[str, Callable[[TrialResult, Path, np.random.Generator], None]] = {
    "special file as output": _output,
    "planted temporary file": _planted,
    "odd path": _path,
    "control characters": _controls,
    "clock set back": _clock,
}
