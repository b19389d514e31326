"""Trials of `stress.py` on studies: those of `stress_store.py`, and kills of a command at a random moment.

The command is then repeated. Nothing may be lost, and nothing charged twice: the study and all files are those of an
undisturbed sequence.
"""

import shutil
import signal
import sqlite3
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import stress_store
from stress_trials import Answer, Trial, TrialResult, forked, note_leftovers

_N, _STUDY = 40, "trial.db"


def _filled(name: str, every: int) -> Callable[[Path], None]:
    """Return a laboratory that writes every n-th result into an order."""

    def fill(folder: Path) -> None:
        header, *lines = (folder / f"{name}.csv").read_text().splitlines()
        lines = [f"{line}{len(line)}.5" if at % every == 0 else line for at, line in enumerate(lines)]
        (folder / f"{name}-results.csv").write_text("\n".join([header, *lines]) + "\n")

    return fill


_CREATE = f"create {_STUDY} table=table.csv target=y id=id costs=costs.csv unit=EUR"
SEQUENCE: Mapping[str, tuple[str, Callable[[Path], None] | None]] = {
    "create": (_CREATE, None),
    "ask": (f"ask {_STUDY} spend=200 order=1 out=one.csv", None),
    "tell": (f"tell {_STUDY} one-results.csv", _filled("one", 1)),
    "add": (f"add {_STUDY} more.csv", None),
    "ask again": (f"ask {_STUDY} spend=100 per_example=3 order=2 out=two.csv", None),
    "tell partly": (f"tell {_STUDY} two-results.csv", _filled("two", 2)),
    "cancel": (f"cancel {_STUDY} order=2", None),
    "replace": (f"tell {_STUDY} other.csv replace=true free=true", None),
    "export": (f"export {_STUDY} out=known.csv", None),
    "export a model": (f"export {_STUDY} out=model.npz", None),
    "show": (f"show {_STUDY}", None),
}
"""By case, the command, in their order; and what happens before it."""


def prepared(place: Path, count: int) -> dict[str, dict[str, Any]]:
    """Carry out the sequence undisturbed; return by case the folder before it, its time and the contents after it.

    Raises
    ------
    RuntimeError
        If a command fails.
    """
    rng, folder, cases = np.random.default_rng(0), place / "undisturbed", {}
    folder.mkdir()
    rows = [f"p{at},{x:.3f},,,{x + rng.normal():.3f}" for at, x in enumerate(rng.normal(size=_N))]
    (folder / "table.csv").write_text("\n".join(["id,age,a,b,y", *rows]) + "\n")
    (folder / "costs.csv").write_text("attribute,cost,group\nage,0,\na,1,\nb,2.5,\nc,4,cd\nd,4,cd\n")
    (folder / "more.csv").write_text("id,a,y\nq0,1.5,2\nq1,,3\np3,,\n")
    (folder / "other.csv").write_text("example,attribute,value\nq0,a,7\nq1,b,8\n")
    for case, (line, before) in SEQUENCE.items():
        if before is not None:
            before(folder)
        start = place / case
        shutil.copytree(folder, start)
        began = time.monotonic()
        answer = _answered(line, folder)
        seconds = time.monotonic() - began
        if answer.code:
            raise RuntimeError(f"study {line}: exit code {answer.code} undisturbed\n{answer.err}")
        cases[case] = {
            "line": line,
            "start": start,
            "seconds": seconds,
            "expected": _contents(folder),
            "out": answer.out,
        }
    return cases | stress_store.prepared(place)


def tried(trial: Trial) -> TrialResult:
    """Kill a command at a random moment, repeat it, and compare what is left; or try the file of a study."""
    if trial.case not in SEQUENCE:
        return stress_store.tried(trial)
    result, options = TrialResult(trial), trial.options
    folder = Path(tempfile.mkdtemp(dir=trial.place)) / "here"
    moment = float(trial.rng.uniform(0.001, 1.2 * options["seconds"]))
    killed = _killed(options, folder, moment)
    while killed.code == 0:  # the command ended before: try earlier moments until the kill hits
        moment /= 2
        killed = _killed(options, folder, moment)
    what = f"study {options['line']}, killed after {moment:.3f} s"
    result.judge(what, killed, (-signal.SIGALRM,))
    again = _answered(options["line"], folder)
    result.judge(f"the same again after {what}", again, (0,))
    if not result.faults:
        contents = _contents(folder)
        for name in sorted({*contents, *options["expected"]}):
            if contents.get(name) != options["expected"].get(name):
                result.note("wrong", f"{what}: {name} differs from that of an undisturbed command")
        if trial.case == "show" and again.out != options["out"]:
            result.note("wrong", f"{what}: it prints something else\n{again.out}")
        note_leftovers(result, folder, set())
    shutil.rmtree(folder.parent)
    return result


def _killed(options: Mapping[str, Any], folder: Path, moment: float) -> Answer:
    """Return the answer of a command in a fresh folder that is killed after some seconds, unless it ends before."""
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(options["start"], folder)

    def kill_later() -> None:
        # What this signal does by default, Python cannot catch: the process is gone at once, as by SIGKILL.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, moment)

    return _answered(options["line"], folder, kill_later)


def _answered(line: str, folder: Path, before: Callable[[], object] = lambda: None) -> Answer:
    return forked(["study", *line.split()], folder, before)


def _contents(folder: Path) -> dict[str, str]:
    """Return the contents of all files by name, those of the study as SQL."""
    contents = {}
    for path in sorted(folder.iterdir()):
        if path.name == _STUDY:
            with sqlite3.connect(path) as connection:
                contents[path.name] = "\n".join(connection.iterdump())
            connection.close()
        elif path.is_file():
            contents[path.name] = path.read_bytes().hex()
    return contents
