"""Trials of `stress.py` on studies: kills of commands, copies of a study that is changed, and damage to its file."""

import shutil
import signal
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from steady_output import TIMES
from stress_files import damage
from stress_trials import DATA, Answer, Kind, Trial, Try, alike, forked, undisturbed

from budgetreg import Study

# Kills of a command at a random moment. The command is then repeated. Nothing may be lost, and nothing charged twice:
# the study and all files are those of an undisturbed sequence.

_EXAMPLES = 40
_KILLED: Mapping[str, list[Any]] = DATA["study"]["killed"]


def _fill(folder: Path, name: str, every: int) -> None:
    """Write every n-th result into an order, as a laboratory does."""
    header, *lines = (folder / f"{name}.csv").read_text().splitlines()
    lines = [f"{line}{len(line)}.5" if at % every == 0 else line for at, line in enumerate(lines)]
    (folder / f"{name}-results.csv").write_text("\n".join([header, *lines]) + "\n")


def _prepared_studies(place: Path, count: int) -> Mapping[str, Mapping[str, Any]]:
    """Carry out the sequence undisturbed; return by case the folder before it, its time and the contents after it."""
    rng, folder = np.random.default_rng(0), place / "undisturbed"
    cases: dict[str, Any] = {}
    folder.mkdir()
    rows = [f"p{at},{x:.3f},,,{x + rng.normal():.3f}" for at, x in enumerate(rng.normal(size=_EXAMPLES))]
    (folder / "table.csv").write_text("\n".join(["id,age,a,b,y", *rows]) + "\n")
    for name, content in DATA["study"]["files"].items():
        (folder / name).write_text(content)
    for case, (line, *order) in _KILLED.items():
        if order:
            _fill(folder, *order)
        start = place / case
        shutil.copytree(folder, start)
        began = time.monotonic()
        answer = undisturbed(f"study {line}", folder)
        cases[case] = {"line": f"study {line}", "start": start, "seconds": time.monotonic() - began, "out": answer.out}
        cases[case]["expected"] = _all_contents(folder)
    return {**cases, **alike(_FILES)}


def _kill_study(trial: Trial) -> None:
    """Kill a command at a random moment, repeat it, and compare what is left."""
    options = trial.options
    moment = float(trial.rng.uniform(0.001, 1.2 * options["seconds"]))
    killed = _killed(options, trial.folder, moment)
    while killed.code == 0:  # the command ended before: try earlier moments until the kill hits
        moment /= 2
        killed = _killed(options, trial.folder, moment)
    what = f"{options['line']}, killed after {moment:.3f} s"
    trial.judge(what, killed, (-signal.SIGALRM,))
    again = trial.run(options["line"], (0,))
    contents = _all_contents(trial.folder)
    names = {*contents, *options["expected"]}
    differ = sorted(name for name in names if contents.get(name) != options["expected"].get(name))
    trial.expect(not differ, f"{what}: {differ} differ from those of an undisturbed command")
    trial.expect(trial.case != "show" or again.out == options["out"], f"{what}: it prints something else\n{again.out}")
    trial.without_leftovers()


def _killed(options: Mapping[str, Any], folder: Path, moment: float) -> Answer:
    """Return the answer of a command in a fresh folder that is killed after some seconds, unless it ends before."""
    shutil.rmtree(folder)
    shutil.copytree(options["start"], folder)

    def kill_later() -> None:
        # What this signal does by default, Python cannot catch: the process is gone at once, as by SIGKILL.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, moment)

    return forked(options["line"], folder, kill_later)


def _all_contents(folder: Path) -> dict[str, str]:
    """Return the contents of all files by name, those of the study as SQL without the times of events."""
    files = [path for path in sorted(folder.iterdir()) if path.is_file()]
    return {
        path.name: TIMES.sub("NULL", _sql(path)) if path.suffix == ".db" else str(path.read_bytes()) for path in files
    }


def _sql(path: Path) -> str:
    """Return a study as SQL; something else if it cannot be read."""
    try:
        with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as connection:
            return "\n".join(connection.iterdump())
    except sqlite3.Error as error:
        return repr(error)


# The file of a study: copied while other processes read and change it, and damaged

_PATIENTS, _ATTRIBUTES = [f"p{number}" for number in range(8)], ["a", "b", "c"]


def _created(path: Path) -> Study:
    return Study.create(path, examples=_PATIENTS, targets=list(range(8)), attributes=_ATTRIBUTES, seed=0)


def _copy(trial: Trial) -> None:
    """Copy a study while programs read and write it: the copy has all that was reported before it."""
    path, reported = trial.folder / "s.db", trial.folder / "reported"
    _created(path)

    def tell() -> None:
        study = Study(path)
        for number in range(24):
            line = {"example": _PATIENTS[number // 3], "attribute": _ATTRIBUTES[number % 3], "value": 1.5}
            study.tell(pd.DataFrame([line]))
            reported.write_text(str(number + 1))

    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM facts").fetchall()
        writer = get_context("fork").Process(target=tell)
        writer.start()
        for _ in range(6):
            time.sleep(float(trial.rng.uniform(0, 0.05)))
            least = int(reported.read_text() or 0) if reported.exists() else 0
            shutil.copy(path, trial.folder / "copy.db")
            total = Study(trial.folder / "copy.db").bill().total
            trial.expect(total >= least, f"{least} values were reported, and a copy has {total}")
        writer.join()
    trial.expect(Study(path).bill().total == 24, "not all values are in the study")


def _damage(trial: Trial) -> None:
    """Damage a study: each command reports that in one line, and the file stays as it is."""
    path = trial.folder / "s.db"
    study = _created(path)
    order = study.ask(spend=9)
    study.tell(order.iloc[:5].assign(value=[1.0, -2.5, 0.0, 4.0, 7.0]))
    (trial.folder / "results.csv").write_text("example,attribute,value\np7,a,3\n")
    how, after = damage(path, trial.rng), path.read_bytes()
    for line in DATA["study"]["uses"]:
        trial.run(f"study {line}", (3,))
        trial.expect(path.read_bytes() == after, f"{line} after {how}: the study was changed")


_FILES: Mapping[str, Try] = {"copy while another writes": _copy, "damage": _damage}

KINDS = {"study": Kind(160, _prepared_studies, {**dict.fromkeys(_KILLED, _kill_study), **_FILES})}
