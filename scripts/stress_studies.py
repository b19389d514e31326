"""Trials of `stress.py` on studies: kills of commands, the file of a study, and what users write and give to it."""

import csv
import ctypes
import os
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from steady_output import TIMES
from stress_trials import Answer, Kind, TrialResult, Try, alike, forked, note_leftovers, undisturbed

from budgetreg import Study
from budgetreg.study.file import StudyFile

# Kills of a command at a random moment. The command is then repeated. Nothing may be lost, and nothing charged twice:
# the study and all files are those of an undisturbed sequence.

_EXAMPLES, _STUDY = 40, "trial.db"


def _laboratory(name: str, every: int) -> Callable[[Path], None]:
    """Return a laboratory that writes every n-th result into an order."""

    def fill(folder: Path) -> None:
        header, *lines = (folder / f"{name}.csv").read_text().splitlines()
        lines = [f"{line}{len(line)}.5" if at % every == 0 else line for at, line in enumerate(lines)]
        (folder / f"{name}-results.csv").write_text("\n".join([header, *lines]) + "\n")

    return fill


_CREATE = f"create {_STUDY} table=table.csv target=y id=id costs=costs.csv unit=EUR"
_SEQUENCE: Mapping[str, tuple[str, Callable[[Path], None] | None]] = {
    "create": (_CREATE, None),
    "ask": (f"ask {_STUDY} spend=200 order=1 out=one.csv", None),
    "tell": (f"tell {_STUDY} one-results.csv", _laboratory("one", 1)),
    "add": (f"add {_STUDY} more.csv", None),
    "ask again": (f"ask {_STUDY} spend=100 per_example=3 order=2 out=two.csv", None),
    "tell partly": (f"tell {_STUDY} two-results.csv", _laboratory("two", 2)),
    "cancel": (f"cancel {_STUDY} order=2", None),
    "replace": (f"tell {_STUDY} other.csv replace=true free=true", None),
    "export": (f"export {_STUDY} out=known.csv", None),
    "export a model": (f"export {_STUDY} out=model.npz", None),
    "show": (f"show {_STUDY}", None),
}
"""By case, the command, in their order; and what happens before it."""


def _prepared_studies(place: Path, count: int) -> Mapping[str, Mapping[str, Any]]:
    """Carry out the sequence undisturbed; return by case the folder before it, its time and the contents after it."""
    rng, folder = np.random.default_rng(0), place / "undisturbed"
    cases: dict[str, Any] = {}
    folder.mkdir()
    rows = [f"p{at},{x:.3f},,,{x + rng.normal():.3f}" for at, x in enumerate(rng.normal(size=_EXAMPLES))]
    (folder / "table.csv").write_text("\n".join(["id,age,a,b,y", *rows]) + "\n")
    (folder / "costs.csv").write_text("attribute,cost,group\nage,0,\na,1,\nb,2.5,\nc,4,cd\nd,4,cd\n")
    (folder / "more.csv").write_text("id,a,y\nq0,1.5,2\nq1,,3\np3,,\n")
    (folder / "other.csv").write_text("example,attribute,value\nq0,a,7\nq1,b,8\n")
    for case, (line, before) in _SEQUENCE.items():
        if before is not None:
            before(folder)
        start = place / case
        shutil.copytree(folder, start)
        began = time.monotonic()
        answer = undisturbed(f"study {line}", folder)
        cases[case] = {"line": line, "start": start, "seconds": time.monotonic() - began, "out": answer.out}
        cases[case]["expected"] = _all_contents(folder)
    return {**cases, **alike(_STORES)}


def _kill_study(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Kill a command at a random moment, repeat it, and compare what is left."""
    options = result.trial.options
    moment = float(rng.uniform(0.001, 1.2 * options["seconds"]))
    killed = _killed(options, folder, moment)
    while killed.code == 0:  # the command ended before: try earlier moments until the kill hits
        moment /= 2
        killed = _killed(options, folder, moment)
    what = f"study {options['line']}, killed after {moment:.3f} s"
    result.judge(what, killed, (-signal.SIGALRM,))
    again = forked(["study", *options["line"].split()], folder)
    result.judge(f"the same again after {what}", again, (0,))
    if not result.faults:
        contents = _all_contents(folder)
        for name in sorted({*contents, *options["expected"]}):
            if contents.get(name) != options["expected"].get(name):
                result.note("wrong", f"{what}: {name} differs from that of an undisturbed command")
        if result.trial.case == "show" and again.out != options["out"]:
            result.note("wrong", f"{what}: it prints something else\n{again.out}")
        note_leftovers(result, folder, set())


def _killed(options: Mapping[str, Any], folder: Path, moment: float) -> Answer:
    """Return the answer of a command in a fresh folder that is killed after some seconds, unless it ends before."""
    shutil.rmtree(folder)
    shutil.copytree(options["start"], folder)

    def kill_later() -> None:
        # What this signal does by default, Python cannot catch: the process is gone at once, as by SIGKILL.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, moment)

    return forked(["study", *options["line"].split()], folder, kill_later)


def _all_contents(folder: Path) -> dict[str, str]:
    """Return the contents of all files by name, those of the study as SQL without the times of events."""
    contents = {}
    for path in sorted(folder.iterdir()):
        if path.name == _STUDY:
            with sqlite3.connect(path) as connection:
                contents[path.name] = TIMES.sub("NULL", "\n".join(connection.iterdump()))
            connection.close()
        elif path.is_file():
            contents[path.name] = path.read_bytes().hex()
    return contents


# The file of a study: logs beside it, copies, permissions, odd paths, waiting, and edits

_PATIENTS, _ATTRIBUTES = [f"p{number}" for number in range(8)], ["a", "b", "c"]
_COMMANDS = (
    *("show s.db", "ask s.db spend=2", "tell s.db results.csv", "predict s.db new.csv", "next s.db new.csv"),
    *("export s.db out=table.csv", "export s.db out=model.npz", "cancel s.db order=1", "add s.db more.csv"),
)
_VALUES = (
    *("NULL", "-1", "0", "1", "2.5", "1e300", "9e999", "-9e999", "''", "'text'", "x'ff00'", "CAST(x'70ff' AS TEXT)"),
    *("99", "'known'", "'unavailable'", "4611686018427387904"),
)


def _study_and(case: Try) -> Try:
    """Return a case before which the files that commands read are written."""

    def tried(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
        (folder / "new.csv").write_text("example,a\nn1,2\n")
        (folder / "more.csv").write_text("example,target\nq1,2\n")
        (folder / "results.csv").write_text("example,attribute,value\np7,a,3\n")
        case(result, folder, rng)

    return tried


def _created(path: Path, seed: int = 0) -> Study:
    return Study.create(path, examples=_PATIENTS, targets=list(range(8)), attributes=_ATTRIBUTES, seed=seed)


def _bought(path: Path) -> Study:
    """Return a study with an order, some of its results, and a cancelled order."""
    study = _created(path)
    order = study.ask(spend=9)
    study.tell(order.iloc[:5].assign(value=[1.0, -2.5, 0.0, 4.0, 7.0]))
    study.ask(spend=3)
    study.cancel(2)
    return study


def _as_schema_1(path: Path) -> None:
    """Turn a study into one as SQLite itself wrote it, without a digest, with a write-ahead log."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for column in ("time", "cost"):
            connection.execute(f"ALTER TABLE log DROP COLUMN {column}")
        connection.execute("PRAGMA user_version = 1")
    content = bytearray(path.read_bytes())
    content[18:20] = b"\2\2"
    path.write_bytes(content[: len(content) // 4096 * 4096])


def _contents(path: Path) -> str:
    """Return a study as SQL; something else if it cannot be read."""
    try:
        with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as connection:
            return "\n".join(connection.iterdump())
    except sqlite3.Error as error:
        return repr(error)


def _in_child(call: Callable[[], object]) -> int:
    child = os.fork()
    if not child:
        try:
            call()
        finally:
            os._exit(0)
    return child


def _stale_log(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Put the log of another study, or of another state of the study, beside a study: it must not change the study."""
    path, other = folder / "s.db", folder / "other.db"
    _bought(other)
    _as_schema_1(other)

    def leave() -> None:
        connection = sqlite3.connect(other, isolation_level=None)
        for value in rng.normal(size=int(rng.integers(1, 5))).tolist():
            connection.execute("UPDATE cells SET value = ? WHERE state = 'known'", (value,))
        os._exit(0)

    os.waitpid(_in_child(leave), 0)
    for ending in ("-wal", "-shm"):
        shutil.copy(f"{other}{ending}", f"{path}{ending}")
    old = bool(rng.integers(2))
    if rng.integers(2):
        path.with_name("s.db-journal").write_bytes(rng.bytes(600))
    if old:  # of the same tables: nothing shows whose log it is
        logs = [file.rename(f"{file}-aside") for file in folder.glob("s.db-*")]
        _bought(path)
        _as_schema_1(path)
        for log in logs:
            log.rename(str(log).removesuffix("-aside"))
    else:
        _bought(path)
    before = _contents(path)
    for line in ("export s.db out=t.csv", "tell s.db results.csv"):
        answer = forked(["study", *line.split()], folder)
        result.judge(line, answer, (3,) if old else (0,))
    after = _contents(path)
    if (after == before) != old or (not old and list(folder.glob("s.db-*"))):
        result.note("wrong", f"the study was changed by a log: {sorted(file.name for file in folder.iterdir())}")


def _copy(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Copy a study while programs read and write it: the copy has all that was reported before it."""
    path, reported = folder / "s.db", folder / "reported"
    _created(path)

    def tell() -> None:
        study = Study(path)
        for number in range(24):
            frame = pd.DataFrame(
                {"example": [_PATIENTS[number // 3]], "attribute": [_ATTRIBUTES[number % 3]], "value": 1.5}
            )
            study.tell(frame)
            reported.write_text(str(number + 1))

    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM facts").fetchall()
        child = _in_child(tell)
        for _ in range(6):
            time.sleep(float(rng.uniform(0, 0.05)))
            least = int(reported.read_text() or 0) if reported.exists() else 0
            shutil.copy(path, folder / "copy.db")
            total = Study(folder / "copy.db").bill().total
            if total < least:
                result.note("wrong", f"{least} values were reported, and a copy has {total}")
        os.waitpid(child, 0)
    if Study(path).bill().total != 24:
        result.note("wrong", "not all values are in the study")


def _without_privileges() -> None:
    """Give up what root may do with other people's files."""
    version, nothing = 0x20080522, (ctypes.c_uint32 * 6)()
    ctypes.CDLL(None).capset((ctypes.c_uint32 * 2)(version, 0), nothing)


def _read_only(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Use a study that cannot be written: whatever reads it works, and the others report that in one line."""
    inside = folder / "inside"
    inside.mkdir()
    path = inside / "s.db"
    _bought(path)
    if rng.integers(2):
        _as_schema_1(path)
    path.chmod(0o444)
    inside.chmod(0o555)
    before = path.read_bytes()
    for line in _COMMANDS:
        changes = line.split()[0] in ("ask", "tell", "cancel", "add")
        answer = forked(["study", *line.replace("s.db", "inside/s.db").split()], folder, _without_privileges)
        result.judge(line, answer, (2,) if changes else (0,))
    result.judge("report", forked(["report", "inside/s.db", "--out", "r.html"], folder, _without_privileges), (0,))
    if path.read_bytes() != before or len(list(inside.iterdir())) != 1:
        result.note("wrong", "a study that must not be written was changed")
    inside.chmod(0o755)


def _odd_path(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Give a study a name of any bytes and length, and put something odd beside it."""
    letters = bytes(set(range(1, 256)) - {ord("/")})
    length = int(rng.choice([1, 5, 60, 200, 250, 255, 256, 4000]))
    name = os.fsdecode(b"n" + bytes(rng.choice(list(letters), length - 1).astype("uint8")))
    table = ["table=t.csv", "target=y", "id=id"]
    (folder / "t.csv").write_text("id,y,a,b\np1,1,,\np2,3,,\n")
    before = set(os.listdir(folder))
    answer = forked(["study", "create", name, *table], folder)
    result.judge("create", answer, (0, 2))
    before |= {"tmp", "cache"}
    if answer.code:
        if set(os.listdir(folder)) != before:
            result.note("leftovers", f"a refused study left {set(os.listdir(folder)) - before}")
        return
    for line in (["ask", name, "spend=2", "out=o.csv"], ["show", name, "out=figures"], ["export", name, "out=e.csv"]):
        result.judge(line[0], forked(["study", *line], folder), (0,))
    beside = os.fsencode(folder / name) + bytes(rng.choice([b"-wal", b"-shm", b"-journal"]))
    try:
        (os.mkfifo, os.mkdir, lambda path: os.symlink("t.csv", path))[rng.integers(3)](beside)
    except OSError:  # the name is too long for it
        return
    for part in ("ask", "export"):
        words = {"ask": "spend=1", "export": "out=e.csv"}[part]
        result.judge(f"{part} beside something odd", forked(["study", part, name, words], folder), (0, 2))


def _wait(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Change a study while another process does, for some seconds: that is reported, and both changes are made."""
    path, started = folder / "s.db", folder / "started"
    _bought(path)
    by_sqlite, seconds = bool(rng.integers(2)), float(rng.uniform(0, 3))

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
    answer = forked(["study", "tell", "s.db", "results.csv"], folder)
    os.waitpid(child, 0)
    result.judge("tell", answer, (0,))
    said = "waiting for another process" in answer.err
    if (seconds > 2 and not said) or (seconds < 0.5 and said):
        result.note("untold", f"waited at most {seconds:.1f} s, and printed {answer.err!r}")
    state = Study(path).state()
    if state.known.sum() != 6 or (state.y[0] == 7.5) == by_sqlite:
        result.note("wrong", "one of two changes is lost")


def _edited(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Change a study by SQL or on the disk: each command reports that in one line, unless nothing has changed."""
    path = folder / "s.db"
    _bought(path)
    before = path.read_bytes()
    if rng.integers(4):
        edit = _sql(rng, path)
    else:
        content, at = bytearray(before), int(rng.integers(100, len(before)))
        content[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(content)
        edit = f"bit {at}"
    after = path.read_bytes()
    for line in _COMMANDS:
        path.write_bytes(after)
        answer = forked(["study", *line.split()], folder)
        result.judge(f"{line} after {edit}", answer, (0, 2) if before == after else (3,))
        if answer.code == 3 and path.read_bytes() != after:
            result.note("wrong", f"{line} after {edit}: the study was changed")


def _sql(rng: Any, path: Path) -> str:
    """Carry out a random statement, whatever the tables forbid, and return it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        while True:
            table = str(rng.choice(tables))
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            column, other = (str(rng.choice(columns)) for _ in range(2))
            row = f"{column} IN (SELECT {column} FROM {table} ORDER BY {other} LIMIT 1 OFFSET {rng.integers(3)})"
            value = str(rng.choice([*_VALUES, other, f"{column} + 1", f"-{column}", f"{column} || 'x'"]))
            statement = str(
                rng.choice(
                    [
                        f"UPDATE OR IGNORE {table} SET {column} = {value} WHERE {row}",
                        f"UPDATE OR IGNORE {table} SET {column} = {value}",
                        f"DELETE FROM {table} WHERE {row}",
                        f"DROP TABLE {table}",
                    ],
                    p=[0.6, 0.2, 0.17, 0.03],
                )
            )
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

_WORDS = ("Na", "NA", "None", "none", "null", "NULL", "nan", "NaN", "N/A", "#N/A", "<NA>", "-nan")
_COLUMNS = (
    *(
        "prediction",
        "std",
        "label",
        "attribute",
        "cost",
        "std_before",
        "std_after",
        "for_all",
        "order",
        "example",
        "value",
    ),
    "target",
)
_ROLES = ("id", "target", "attribute", "example", "group", "label")
_THERE = {
    "somebody's file": "theirs",
    "empty file": "empty",
    "table": "table.csv",
    "price list": "prices.csv",
    "order": "order.csv",
    "completed order": "filled.csv",
    "study": "s.db",
    "copy of the study": "copy.db",
    "log of the study": "s.db-wal",
    "folder": "folder",
    "model": "theirs.npz",
}
_WAYS: Mapping[str, Callable[[Path, Path], object]] = {
    "itself": lambda source, out: None,
    "copy": lambda source, out: shutil.copy(source, out),
    "link": lambda source, out: out.symlink_to(source.name),
    "second name": lambda source, out: os.link(source, out),
}
_WRITES = (
    *("study ask s.db spend=3 out={}", "study ask s.db spend=6 order=2 out={}", "study predict s.db new.csv out={}"),
    *("study next s.db new.csv out={}", "study export s.db out={}", "predict model.npz whole.csv out={}"),
    "report s.db --out {}",
)
_N = 12


class _Names:
    """The names in a study, some of which a trial replaces by a word."""

    def __init__(self, **words: str) -> None:
        names = {"id": "patient", "target": "outcome", "attribute": "a", "example": "p0", "group": "g", "label": "sick"}
        self.__dict__.update({**names, **words})


def _written_study(folder: Path, names: Any, rng: np.random.Generator) -> None:
    """Write a table, a price list with a group, and new examples, all with the names."""
    labels = [names.label if at % 2 else "well" for at in range(_N)]
    examples = [names.example, *(f"p{at}" for at in range(1, _N))]
    rows = [f"{name},{rng.normal():.3f},,,{label}" for name, label in zip(examples, labels, strict=True)]
    header = f"{names.id},b,{names.attribute},c,{names.target}"
    (folder / "table.csv").write_text("\n".join([header, *rows]) + "\n")
    group = names.group
    (folder / "prices.csv").write_text(f"attribute,cost,group\nb,1,\n{names.attribute},2,{group}\nc,2,{group}\n")
    (folder / "new.csv").write_text(f"{names.id},b,c\n{names.example},1,\nn2,2,1\n")


def _said(result: TrialResult, folder: Path, words: str, codes: tuple[int, ...] = (0,)) -> Answer:
    answer = forked(words.split(), folder)
    result.judge(words, answer, codes)
    return answer


def _filled(folder: Path, value: Callable[[int], object]) -> list[dict[str, str]]:
    """Write values into order.csv, and return its lines as they were."""
    with (folder / "order.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    _written(folder / "filled.csv", [{**line, "value": str(value(at))} for at, line in enumerate(lines)])
    return lines


def _written(path: Path, lines: list[dict[str, str]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)


def _create(names: Any) -> str:
    return f"study create s.db table=table.csv target={names.target} id={names.id} costs=prices.csv"


def _play(result: TrialResult, folder: Path, names: Any, rng: np.random.Generator) -> None:
    """Play create, ask, tell, show, predict, next and export; every name must come out as it went in."""
    _written_study(folder, names, rng)
    if _said(result, folder, _create(names), (0, 3)).code:
        if names.label == "sick":
            result.note("wrong", f"{_create(names)} with {vars(names)}: refused")
        return  # a word for a missing value beside one label
    _said(result, folder, "study ask s.db spend=1000 out=order.csv")
    lines = _filled(folder, lambda at: at + 0.5)
    told = _said(result, folder, "study tell s.db filled.csv")
    if f"{2 * _N} values recorded" not in told.out or {line["attribute"] for line in lines} != {names.attribute, "c"}:
        result.note("wrong", f"{vars(names)}: {told.out}")
    _said(result, folder, "study show s.db")
    predicted = _said(result, folder, "study predict s.db new.csv").out.splitlines()
    useful = _said(result, folder, "study next s.db new.csv").out.splitlines()
    header = predicted[0].split(",")
    if [line.split(",")[0] for line in predicted[1:]] != [names.example, "n2"] or len(set(header)) != len(header):
        result.note("wrong", f"{vars(names)}: predict: {predicted}")
    if {line.split(",")[0] for line in useful[1:]} - {names.example, "n2"} or len(set(useful[0].split(","))) != 6:
        result.note("wrong", f"{vars(names)}: next: {useful}")
    _said(result, folder, "study export s.db out=known.csv")
    with (folder / "known.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    if header != [names.id, "b", names.attribute, "c", names.target] or rows[0][0] != names.example or "" in rows[0]:
        result.note("wrong", f"{vars(names)}: export: {header} {rows[0]}")


def _words(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Call a part of a study as a missing value."""
    role = _ROLES[result.trial.turn(len(_INPUTS)) % len(_ROLES)]
    _play(result, folder, _Names(**{role: str(rng.choice(_WORDS))}), rng)


def _columns(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Call the ids, the target and an attribute as columns that commands write."""
    words = map(str, rng.choice(_COLUMNS, 3, replace=False))
    _play(result, folder, _Names(**dict(zip(("id", "target", "attribute"), words, strict=True))), rng)


def _there(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Name a file that is there, or its second name, as the output of a command."""
    names = _Names()
    _written_study(folder, names, rng)
    _said(result, folder, _create(names))
    _said(result, folder, "study ask s.db spend=6 order=1 out=order.csv")
    _filled(folder, lambda at: at)
    (folder / "whole.csv").write_text("a,b,c\n1,2,3\n")
    (folder / "theirs").write_bytes(b"theirs")
    (folder / "empty").touch()
    (folder / "folder").mkdir()
    shutil.copy(folder / "s.db", folder / "copy.db")
    _said(result, folder, "study export s.db out=model.npz")
    (folder / "theirs.npz").write_bytes((folder / "model.npz").read_bytes() + b"theirs")
    there = str(rng.choice(list(_THERE)))
    source = folder / _THERE[there]
    way, words = str(rng.choice(list(_WAYS))), str(rng.choice(_WRITES))
    out = folder / ("out.npz" if "export" in words and rng.random() < 0.5 else "out.csv")
    if way == "itself" or there in ("folder", "log of the study"):
        out = source
    else:
        _WAYS[way](source, out)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    words = words.format(out.name)
    _said(result, folder, words, (2,))
    after = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    changed = [name for name in before if after.get(name) != before[name]] + sorted(set(after) - set(before))
    if changed:
        result.note("wrong", f"{words} with {there} ({way}): changed: {changed}")


def _wrong_lines(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Spoil the order or the cost in one line of a completed order."""
    names = _Names()
    _written_study(folder, names, rng)
    _said(result, folder, _create(names))
    _said(result, folder, "study ask s.db spend=9 out=first.csv")
    _said(result, folder, "study ask s.db spend=9 out=order.csv")
    lines = [{**line, "value": "1.5"} for line in _filled(folder, lambda at: at)]
    at, column = int(rng.integers(len(lines))), str(rng.choice(["order", "cost"]))
    old = lines[at][column]
    wrong = {"order": ("0", "-1", "1", "3", "abc", "1.5", "2a"), "cost": ("-7", "-0.5", "2,0", "2 EUR", "1e99", "<2")}
    lines[at][column] = str(rng.choice(wrong[column]))
    _written(folder / "wrong.csv", lines)
    answer = _said(result, folder, "study tell s.db wrong.csv", (3,))
    if f"line {at + 2}, column '{column}'" not in answer.err:
        result.note("untold", f"{column} {old} as {lines[at][column]}: {answer.err}")
    lines[at][column] = old
    _written(folder / "right.csv", lines)
    if f"{len(lines)} values recorded\n" not in _said(result, folder, "study tell s.db right.csv").out:
        result.note("wrong", "part of a refused file was stored")


_INPUTS: Mapping[str, Try] = {
    "study: out= on other files": _there,
    "study: names like missing values": _words,
    "study: names of output columns": _columns,
    "study: wrong cost or order": _wrong_lines,
}


KINDS = {
    "study": Kind(
        *("studies", 210, _prepared_studies),
        {**dict.fromkeys(_SEQUENCE, _kill_study), **{case: _study_and(tried) for case, tried in _STORES.items()}},
    ),
    "input": Kind("inputs", 40, lambda place, count: alike(_INPUTS), _INPUTS),
}
