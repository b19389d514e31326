"""Trials of `stress.py` on the file of a study: logs beside it, copies, permissions, odd paths, waiting, and edits."""

import ctypes
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
from stress_trials import Trial, TrialResult, forked

from budgetreg import Study
from budgetreg.study.file import StudyFile

_NAMES, _ATTRIBUTES = [f"p{number}" for number in range(8)], ["a", "b", "c"]
_COMMANDS = (
    *("show s.db", "ask s.db spend=2", "tell s.db results.csv", "predict s.db new.csv", "next s.db new.csv"),
    *("export s.db out=table.csv", "export s.db out=model.npz", "cancel s.db order=1", "add s.db more.csv"),
)
_VALUES = (
    *("NULL", "-1", "0", "1", "2.5", "1e300", "9e999", "-9e999", "''", "'text'", "x'ff00'", "CAST(x'70ff' AS TEXT)"),
    *("99", "'known'", "'unavailable'", "4611686018427387904"),
)


def prepared(place: Path) -> dict[str, dict[str, Any]]:
    """Return by case where its trials take place."""
    return {case: {"place": place} for case in _CASES}


def tried(trial: Trial) -> TrialResult:
    """Try a case in a folder of its own."""
    result, folder = TrialResult(trial), Path(tempfile.mkdtemp(dir=trial.place))
    (folder / "new.csv").write_text("example,a\nn1,2\n")
    (folder / "more.csv").write_text("example,target\nq1,2\n")
    (folder / "results.csv").write_text("example,attribute,value\np7,a,3\n")
    _CASES[trial.case](trial, folder, result)
    shutil.rmtree(folder)
    return result


def _created(path: Path, seed: int = 0) -> Study:
    return Study.create(path, examples=_NAMES, targets=list(range(8)), attributes=_ATTRIBUTES, seed=seed)


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
    with closing(sqlite3.connect(path)) as connection:
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


def _stale_log(trial: Trial, folder: Path, result: TrialResult) -> None:
    """Put the log of another study, or of another state of the study, beside a study: it must not change the study."""
    rng, path, other = trial.rng, folder / "s.db", folder / "other.db"
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


def _copy(trial: Trial, folder: Path, result: TrialResult) -> None:
    """Copy a study while programs read and write it: the copy has all that was reported before it."""
    path, reported = folder / "s.db", folder / "reported"
    _created(path)

    def tell() -> None:
        study = Study(path)
        for number in range(24):
            frame = pd.DataFrame(
                {"example": [_NAMES[number // 3]], "attribute": [_ATTRIBUTES[number % 3]], "value": 1.5}
            )
            study.tell(frame)
            reported.write_text(str(number + 1))

    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM facts").fetchall()
        child = _in_child(tell)
        for _ in range(6):
            time.sleep(float(trial.rng.uniform(0, 0.05)))
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


def _read_only(trial: Trial, folder: Path, result: TrialResult) -> None:
    """Use a study that cannot be written: whatever reads it works, and the others report that in one line."""
    inside = folder / "inside"
    inside.mkdir()
    path = inside / "s.db"
    _bought(path)
    if trial.rng.integers(2):
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


def _odd_path(trial: Trial, folder: Path, result: TrialResult) -> None:
    """Give a study a name of any bytes and length, and put something odd beside it."""
    rng = trial.rng
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
        result.judge(f"{part} beside something odd", forked(["study", part, name, words], folder), (3,))


def _wait(trial: Trial, folder: Path, result: TrialResult) -> None:
    """Change a study while another process does, for some seconds: that is reported, and both changes are made."""
    path, started = folder / "s.db", folder / "started"
    _bought(path)
    by_sqlite, seconds = bool(trial.rng.integers(2)), float(trial.rng.uniform(0, 3))

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


def _edited(trial: Trial, folder: Path, result: TrialResult) -> None:
    """Change a study by SQL or on the disk: each command reports that in one line, unless nothing has changed."""
    rng, path = trial.rng, folder / "s.db"
    _bought(path)
    old = bool(rng.integers(2))
    if old:
        _as_schema_1(path)
    whole, before = _contents(path), path.read_bytes()
    if rng.integers(4):
        edit = _edit(rng, path)
    else:
        content, at = bytearray(before), int(rng.integers(100, len(before)))
        content[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(content)
        edit = f"bit {at}"
    after = path.read_bytes()
    same = before == after or (old and _contents(path) == whole)
    for line in _COMMANDS:
        path.write_bytes(after)
        answer = forked(["study", *line.split()], folder)
        # Nothing but a digest shows that a possible value has taken the place of another one.
        codes = (0, 2) if same else (0, 2, 3) if old else (3,)
        result.judge(f"{line} after {edit}", answer, codes)
        if answer.code == 3 and path.read_bytes() != after:
            result.note("wrong", f"{line} after {edit}: the study was changed")


def _edit(rng: Any, path: Path) -> str:
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


_CASES = {
    "stale log": _stale_log,
    "copy while another reads": _copy,
    "read-only": _read_only,
    "odd path": _odd_path,
    "wait": _wait,
    "contents edited": _edited,
}
