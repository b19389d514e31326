"""Trials of `stress.py` on studies: kills of commands, the file of a study, and what users write and give to it."""

import ctypes
import os
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from steady_output import TIMES
from stress_trials import DATA, Answer, Kind, Trial, Try, alike, forked, undisturbed

from budgetreg import Study
from budgetreg.study.file import StudyFile

# Kills of a command at a random moment. The command is then repeated. Nothing may be lost, and nothing charged twice:
# the study and all files are those of an undisturbed sequence.

_EXAMPLES = 40
_KILLED: Mapping[str, list[Any]] = DATA["study"]["killed"]


def _fill(folder: Path, name: str, every: int) -> None:
    """Write every n-th result into an order, as a laboratory does."""
    header, *lines = (folder / f"{name}.csv").read_text().splitlines()
    lines = [f"{line}{len(line)}.5" if at % every == 0 else line for at, line in enumerate(lines)]
    (folder / f"{name}-results.csv").write_text("\n".join([header, *lines]) + "\n")


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, content in files.items():
        (folder / name).write_text(content)


def _prepared_studies(place: Path, count: int) -> Mapping[str, Mapping[str, Any]]:
    """Carry out the sequence undisturbed; return by case the folder before it, its time and the contents after it."""
    rng, folder = np.random.default_rng(0), place / "undisturbed"
    cases: dict[str, Any] = {}
    folder.mkdir()
    rows = [f"p{at},{x:.3f},,,{x + rng.normal():.3f}" for at, x in enumerate(rng.normal(size=_EXAMPLES))]
    _write(folder, {"table.csv": "\n".join(["id,age,a,b,y", *rows]) + "\n", **DATA["study"]["files"]})
    for case, (line, *order) in _KILLED.items():
        if order:
            _fill(folder, *order)
        start = place / case
        shutil.copytree(folder, start)
        began = time.monotonic()
        answer = undisturbed(f"study {line}", folder)
        cases[case] = {"line": f"study {line}", "start": start, "seconds": time.monotonic() - began, "out": answer.out}
        cases[case]["expected"] = _all_contents(folder)
    return {**cases, **alike(_STORES)}


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


# The file of a study: logs beside it, copies, permissions, odd paths, waiting, and edits

_PATIENTS, _ATTRIBUTES = [f"p{number}" for number in range(8)], ["a", "b", "c"]
_READS, _CHANGES = ([f"study {line}" for line in DATA["study"][key]] for key in ("reads", "changes"))


def _study_and(case: Try) -> Try:
    """Return a case before which the files that commands read are written."""

    def tried(trial: Trial) -> None:
        _write(trial.folder, DATA["study"]["used"])
        case(trial)

    return tried


def _created(path: Path) -> Study:
    return Study.create(path, examples=_PATIENTS, targets=list(range(8)), attributes=_ATTRIBUTES, seed=0)


def _bought(path: Path) -> None:
    """Make a study with an order, some of its results, and a cancelled order."""
    study = _created(path)
    order = study.ask(spend=9)
    study.tell(order.iloc[:5].assign(value=[1.0, -2.5, 0.0, 4.0, 7.0]))
    study.ask(spend=3)
    study.cancel(2)


def _in_child(call: Callable[[], object]) -> int:
    child = os.fork()
    if not child:
        try:
            call()
        finally:
            os._exit(0)
    return child


def _stale_log(trial: Trial) -> None:
    """Put the log of another study beside a study: it must not change the study."""
    path, other = trial.folder / "s.db", trial.folder / "other.db"
    values = trial.rng.normal(size=int(trial.rng.integers(1, 5))).tolist()
    _bought(other)

    def leave() -> None:  # the log, as this process ends at once
        connection = sqlite3.connect(other, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        for value in values:
            connection.execute("UPDATE cells SET value = ? WHERE state = 'known'", (value,))
        os._exit(0)

    os.waitpid(_in_child(leave), 0)
    _bought(path)
    for ending in ("-wal", "-shm"):
        shutil.copy(f"{other}{ending}", f"{path}{ending}")
    if trial.pick((True, False)):
        path.with_name("s.db-journal").write_bytes(trial.rng.bytes(600))
    before = _sql(path)
    for line in ("study export s.db out=t.csv", "study tell s.db results.csv"):
        trial.run(line, (0,))
    right = _sql(path) != before and not list(trial.folder.glob("s.db-*")) and Study(path).bill().total == 6
    trial.expect(right, f"the study was changed by a log: {sorted(os.listdir(trial.folder))}")


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
        child = _in_child(tell)
        for _ in range(6):
            time.sleep(float(trial.rng.uniform(0, 0.05)))
            least = int(reported.read_text() or 0) if reported.exists() else 0
            shutil.copy(path, trial.folder / "copy.db")
            total = Study(trial.folder / "copy.db").bill().total
            trial.expect(total >= least, f"{least} values were reported, and a copy has {total}")
        os.waitpid(child, 0)
    trial.expect(Study(path).bill().total == 24, "not all values are in the study")


def _without_privileges() -> None:
    """Give up what root may do with other people's files."""
    version, nothing = 0x20080522, (ctypes.c_uint32 * 6)()
    ctypes.CDLL(None).capset((ctypes.c_uint32 * 2)(version, 0), nothing)


def _read_only(trial: Trial) -> None:
    """Use a study that cannot be written: whatever reads it works, and the others report that in one line."""
    inside = trial.folder / "inside"
    inside.mkdir()
    path = inside / "s.db"
    _bought(path)
    path.chmod(0o444)
    inside.chmod(0o555)
    before = path.read_bytes()
    for line, code in [
        *((line, 0) for line in (*_READS, "report s.db --out r.html")),
        *((line, 2) for line in _CHANGES),
    ]:
        trial.run(line.replace("s.db", "inside/s.db"), (code,), before=_without_privileges)
    same = path.read_bytes() == before and len(list(inside.iterdir())) == 1
    trial.expect(same, "a study that must not be written was changed")
    inside.chmod(0o755)


def _odd_path(trial: Trial) -> None:
    """Give a study a name of any bytes and length, and put something odd beside it."""
    folder, letters = trial.folder, bytes(set(range(1, 256)) - {ord("/")})
    length = trial.pick(DATA["study"]["lengths"])
    name = os.fsdecode(b"n" + bytes(trial.pick(letters) for _ in range(length - 1)))
    (folder / "t.csv").write_text("id,y,a,b\np1,1,,\np2,3,,\n")
    before = set(os.listdir(folder))
    if trial.run(["study", "create", name, "table=t.csv", "target=y", "id=id"], (0, 2)).code:
        left = set(os.listdir(folder)) - before
        trial.expect(not left, f"a refused study left {left}", "leftovers")
        return
    for command, *words in (("ask", "spend=2", "out=o.csv"), ("show", "out=figures"), ("export", "out=e.csv")):
        trial.run(["study", command, name, *words], (0,))
    beside = os.fsencode(folder / name) + trial.pick((b"-wal", b"-shm", b"-journal"))
    try:
        trial.pick((os.mkfifo, os.mkdir, partial(os.symlink, "t.csv")))(beside)
    except OSError:  # the name is too long for it
        return
    for command, word in (("ask", "spend=1"), ("export", "out=e.csv")):
        trial.run(["study", command, name, word], (0, 2))


def _wait(trial: Trial) -> None:
    """Change a study while another process does, for some seconds: that is reported, and both changes are made."""
    path, started = trial.folder / "s.db", trial.folder / "started"
    _bought(path)
    by_sqlite, seconds = trial.pick((True, False)), float(trial.rng.uniform(0, 3))

    def change() -> None:
        if by_sqlite:
            connection = sqlite3.connect(path, isolation_level=None)
            connection.execute("BEGIN IMMEDIATE")
            started.touch()
            time.sleep(seconds)
            return
        study = StudyFile(path)
        with study.writing():
            started.touch()
            time.sleep(seconds)
            study.change("UPDATE examples SET target = 7.5 WHERE number = 0")

    child = _in_child(change)
    while not started.exists():
        time.sleep(0.01)
    err = trial.run("study tell s.db results.csv", (0,)).err
    os.waitpid(child, 0)
    said = "waiting for another process" in err
    clear = said if seconds > 2 else not said or seconds > 0.5
    trial.expect(clear, f"waited at most {seconds:.1f} s, and printed {err!r}", "untold")
    state = Study(path).state()
    trial.expect(state.known.sum() == 6 and (state.y[0] == 7.5) != by_sqlite, "one of two changes is lost")


def _edited(trial: Trial) -> None:
    """Change a study by SQL or on the disk: each command reports that in one line, unless nothing has changed."""
    path = trial.folder / "s.db"
    _bought(path)
    before = path.read_bytes()
    if trial.pick((True, True, True, False)):
        edit = _edit(trial, path)
    else:
        content, at = bytearray(before), int(trial.rng.integers(100, len(before)))
        content[at] ^= 1 << int(trial.rng.integers(8))
        path.write_bytes(content)
        edit = f"bit {at}"
    after = path.read_bytes()
    for line in (*_READS, *_CHANGES):
        path.write_bytes(after)
        answer = trial.run(line, (0, 2) if before == after else (3,))
        trial.expect(answer.code != 3 or path.read_bytes() == after, f"{line} after {edit}: the study was changed")


def _edit(trial: Trial, path: Path) -> str:
    """Carry out a random statement, whatever the tables forbid, and return it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        while True:
            table = trial.pick(tables)
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            column, other = trial.pick(columns), trial.pick(columns)
            row = f"{column} IN (SELECT {column} FROM {table} ORDER BY {other} LIMIT 1 OFFSET {trial.rng.integers(3)})"
            value = trial.pick([*DATA["study"]["values"], other, f"{column} + 1", f"-{column}", f"{column} || 'x'"])
            statements = (
                f"UPDATE OR IGNORE {table} SET {column} = {value} WHERE {row}",
                f"UPDATE OR IGNORE {table} SET {column} = {value}",
                f"DELETE FROM {table} WHERE {row}",
                f"DROP TABLE {table}",
            )
            statement = str(trial.rng.choice(statements, p=[0.6, 0.2, 0.17, 0.03]))
            try:
                connection.execute(statement)
                return statement
            except sqlite3.Error:  # a value that even SQLite refuses there
                continue


_STORES: Mapping[str, Try] = {
    "stale log": _stale_log,
    "copy while another reads": _copy,
    "read-only": _read_only,
    "odd path": _odd_path,
    "wait": _wait,
    "contents edited": _edited,
}


# What users write and give to a study. A file that is there stays as it is. Any word is a name, whatever its role, and
# is the same name from the table to the exported one. A line with another order than those of the study, or with a cost
# that is no amount, is refused, and nothing of its file is stored.

_INPUT: Mapping[str, Any] = DATA["input"]
_WAYS: Mapping[str, Callable[[Path, Path], object]] = {
    "copy": shutil.copy,
    "link": lambda source, out: out.symlink_to(source.name),
    "second name": os.link,
}
_N = 12
_Names = Mapping[str, str]


def _create(trial: Trial, names: _Names, codes: tuple[int, ...] = (0,)) -> Answer:
    """Create a study with a price list and a group; names of its parts are those given."""
    examples = [names["example"], *(f"p{at}" for at in range(1, _N))]
    table = pd.DataFrame({names["id"]: examples, "b": trial.rng.normal(size=_N).round(3)})
    table[[names["attribute"], "c"]] = None
    table[names["target"]] = ["well", names["label"]] * (_N // 2)
    table.to_csv(trial.folder / "table.csv", index=False)
    group, attribute = names["group"], names["attribute"]
    prices = f"attribute,cost,group\nb,1,\n{attribute},2,{group}\nc,2,{group}\n"
    new = f"{names['id']},b,c\n{names['example']},1,\nn2,2,1\n"
    _write(trial.folder, {"prices.csv": prices, "new.csv": new})
    return trial.run(_INPUT["create"].format(**names), codes)


def _csv(text: str | Path) -> pd.DataFrame:
    return pd.read_csv(text, dtype=str, keep_default_na=False)


def _play(trial: Trial, **words: str) -> None:
    """Play create, ask, tell, show, predict, next and export; every name must come out as it went in."""
    folder, names = trial.folder, {**_INPUT["names"], **words}
    if _create(trial, names, (0, 3)).code:  # a word for a missing value beside one label
        trial.expect(names["label"] != "sick", f"{names}: refused")
        return
    trial.run("study ask s.db spend=1000 out=order.csv", (0,))
    order = _csv(folder / "order.csv")
    order.assign(value=np.arange(len(order)) + 0.5).to_csv(folder / "filled.csv", index=False)
    told = trial.run("study tell s.db filled.csv", (0,)).out
    complete = f"{2 * _N} values recorded" in told and set(order["attribute"]) == {names["attribute"], "c"}
    trial.expect(complete, f"{names}: {told}")
    trial.run("study show s.db", (0,))
    for command, columns in (("predict", None), ("next", 6)):
        header, *lines = trial.run(f"study {command} s.db new.csv", (0,)).out.splitlines()
        examples, unique = [line.split(",")[0] for line in lines], len(set(header.split(",")))
        known = {names["example"], "n2"}
        right = set(examples) == known if command == "predict" else set(examples) <= known
        trial.expect(right and unique == (columns or header.count(",") + 1), f"{names}: {command}: {header} {lines}")
    trial.run("study export s.db out=known.csv", (0,))
    if not trial.faults:
        exported = _csv(folder / "known.csv")
        first = exported.iloc[0].tolist()
        right = list(exported) == [names["id"], "b", names["attribute"], "c", names["target"]]
        trial.expect(right and first[0] == names["example"] and "" not in first, f"{names}: {exported}")


def _words(trial: Trial) -> None:
    """Call a part of a study as a missing value."""
    _play(trial, **{trial.next_of(list(_INPUT["names"])): trial.pick(_INPUT["words"])})


def _columns(trial: Trial) -> None:
    """Call the ids, the target and an attribute as columns that commands write."""
    words = trial.rng.choice(_INPUT["columns"], 3, replace=False).tolist()
    _play(trial, **dict(zip(("id", "target", "attribute"), words, strict=True)))


def _there(trial: Trial) -> None:
    """Name a file that is there, or its second name, as the output of a command."""
    folder = trial.folder
    _create(trial, _INPUT["names"])
    trial.run("study ask s.db spend=6 order=1 out=order.csv", (0,))
    _csv(folder / "order.csv").assign(value=1).to_csv(folder / "filled.csv", index=False)
    _write(folder, {"whole.csv": "a,b,c\n1,2,3\n", "theirs": "theirs", "empty": ""})
    (folder / "folder").mkdir()
    shutil.copy(folder / "s.db", folder / "copy.db")
    trial.run("study export s.db out=model.npz", (0,))
    (folder / "theirs.npz").write_bytes((folder / "model.npz").read_bytes() + b"theirs")
    there, way, line = trial.pick(_INPUT["there"]), trial.pick(["itself", *_WAYS]), trial.pick(_INPUT["writes"])
    out = source = folder / there
    if way != "itself" and there not in ("folder", "s.db-wal"):
        out = folder / trial.pick(("out.npz", "out.csv") if "export" in line else ("out.csv",))
        _WAYS[way](source, out)
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    trial.run(line.format(out.name), (2,))
    same = before == {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    trial.expect(same, f"{line} with {there} ({way}): files changed")


def _wrong_lines(trial: Trial) -> None:
    """Spoil the order or the cost in one line of a completed order."""
    folder = trial.folder
    _create(trial, _INPUT["names"])
    trial.run("study ask s.db spend=9 out=first.csv", (0,))
    trial.run("study ask s.db spend=9 out=order.csv", (0,))
    right = _csv(folder / "order.csv").assign(value="1.5")
    at, column = int(trial.rng.integers(len(right))), trial.pick(list(_INPUT["wrong"]))
    wrong = right.copy()
    wrong.loc[at, column] = trial.pick(_INPUT["wrong"][column])
    for name, frame in (("wrong", wrong), ("right", right)):
        frame.to_csv(folder / f"{name}.csv", index=False)
    err = trial.run("study tell s.db wrong.csv", (3,)).err
    trial.expect(f"line {at + 2}, column '{column}'" in err, f"{wrong.loc[at, column]}: {err}", "untold")
    out = trial.run("study tell s.db right.csv", (0,)).out
    trial.expect(f"{len(right)} values recorded\n" in out, "part of a refused file was stored")


_INPUTS: Mapping[str, Try] = {
    "study: out= on other files": _there,
    "study: names like missing values": _words,
    "study: names of output columns": _columns,
    "study: wrong cost or order": _wrong_lines,
}


KINDS = {
    "study": Kind(
        *(210, _prepared_studies),
        {**dict.fromkeys(_KILLED, _kill_study), **{case: _study_and(tried) for case, tried in _STORES.items()}},
    ),
    "input": Kind(40, lambda place, count: alike(_INPUTS), _INPUTS),
}
