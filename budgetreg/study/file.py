"""The file of a study: an SQLite database that is replaced as a whole by each change, and ends in its digest.

SQLite never opens the file itself: queries and changes are made in memory. So there is no log beside it that a kill can
leave, or that belongs to another file; whoever copies the file has a backup, and who reads it waits for nobody.
The digest shows whether anything else has changed the file. SQLite's own number for applications marks the file as a
study, and its number for users is the schema.

Files of schema 1 have no digest, and may have a log of SQLite. Events of schema 2 have neither times nor charges. Both
are read, and get the present schema with their next change.
"""

import fcntl
import os
import shutil
import sqlite3
import struct
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from budgetreg.common.errors import ConfigError, DataError, UserError
from budgetreg.common.files import content_of_regular, digest, os_errors_explained, regular, write_atomically
from budgetreg.common.notices import say

SCHEMA = 3
"""Version of the file; one with a larger number was written by a newer version."""

_WITHOUT_DIGEST = 1
"""The schema of files that SQLite itself wrote, with a write-ahead log."""

_APPLICATION = 0x62677374
_MAGIC = b"SQLite format 3\0"
_HEADER = 100  # bytes
_MODES, _SCHEMA_AT, _APPLICATION_AT = slice(18, 20), 60, 68
"""Where SQLite's file format has the versions for writing and reading, the schema, and the application."""
_WITHOUT_LOG = b"\1\1"
_DIGEST = len(digest(b""))
LOGS = ("-wal", "-shm", "-journal")
"""Endings of the files that SQLite may keep beside a database."""

Row = tuple[Any, ...]


class StudyFile:
    """A study, of which nothing stays open between the blocks that read or change it.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    DataError
        If there is no such file, or it is no study, damaged, changed by something else, or of a newer version.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self.reading():
            pass

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Show one state of the file to all queries of the block, whatever others write meanwhile."""
        with closing(_opened(self.path)) as self._connection:
            yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Make all changes of the block at once and durable, or none if it raises; others wait meanwhile."""
        with changing(self.path), self.reading():
            self._connection.execute("BEGIN")
            yield
            self._connection.execute("COMMIT")
            if self._connection.total_changes:
                _write(self.path, self._connection, replace=True)

    def rows(self, query: str, values: Sequence[object] = ()) -> list[Row]:
        """Return the rows of a query."""
        return self._connection.execute(query, values).fetchall()

    def one(self, query: str, values: Sequence[object] = ()) -> Any:
        """Return the only value of the only row of a query."""
        (row,) = self.rows(query, values)
        (value,) = row
        return value

    def facts(self) -> dict[str, str]:
        """Return the facts of a study, such as the learner, by name."""
        return dict(self.rows("SELECT name, content FROM facts"))

    def change(self, statement: str, rows: Iterable[Sequence[object]] = ((),)) -> None:
        """Execute a statement for each row of values, once if it has none."""
        self._connection.executemany(statement, rows)

    def note(self, *rows: Sequence[object]) -> None:
        """Log events: the name of each, its example, attribute and order, the old and new value, and the charge."""
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        self.change(
            "INSERT INTO log (event, example, attribute, order_number, old, new, cost, time) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            ((*row, now) for row in rows),
        )

    def spent(self) -> float:
        """Return the bill: the exact sum of all that the log charges."""
        charges = self.rows("SELECT cost, COUNT(*) FROM log WHERE cost IS NOT NULL GROUP BY cost")
        return float(sum(exact(cost) * times for cost, times in charges))


def exact(amount: float) -> Fraction:
    """Return an amount of money as the decimal number that it is written as: sums of floats depend on their order."""
    return Fraction(repr(float(amount)))


def create_file(path: Path, tables: Iterable[tuple[str, Iterable[Sequence[object]]]]) -> None:
    """Write a new study; it appears whole or not at all.

    Parameters
    ----------
    path : Path
        The file.
    tables : iterable of (str, iterable of rows)
        Tables by name, with the values of all their columns.

    Raises
    ------
    ConfigError
        If there is a file already.
    UserError
        If the file cannot be written, or somebody else makes one meanwhile.
    """
    with os_errors_explained(f"write {path}"):
        if os.path.lexists(path):
            raise ConfigError(f"{path} exists already: choose another name, or remove it")
    with closing(_in_memory()) as connection:
        connection.executescript(TABLES)
        for name, rows in tables:
            width = len(connection.execute(f"PRAGMA table_info({name})").fetchall())
            connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * width)})", rows)
        _write(path, connection, replace=False)


def _in_memory() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None)


def _write(path: Path, connection: sqlite3.Connection, *, replace: bool) -> None:
    """Write a database to a file, without the logs that SQLite kept beside an earlier one of that name."""
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {SCHEMA}")
    content = connection.serialize()
    with os_errors_explained(f"write {path}"):
        for log in _logs(path):
            log.unlink()
    write_atomically(path, content + digest(content).encode(), replace=replace, keep_access=True)


def _opened(path: Path) -> sqlite3.Connection:
    """Return the content of a study in memory, in the present schema.

    Raises
    ------
    DataError
        As for `StudyFile`.
    """
    with os_errors_explained(f"open {path}", DataError):
        content = content_of_regular(path)
        schema = _schema(path, content)
        if schema == _WITHOUT_DIGEST:
            _refuse_changes_in_logs(path)
    if schema != _WITHOUT_DIGEST:
        content, seal = content[:-_DIGEST], content[-_DIGEST:]
        if digest(content).encode() != seal:
            raise DataError(f"{path} was changed outside budgetreg: its checksum does not match; use a copy of it")
    connection = _in_memory()
    try:
        connection.deserialize(content[: _MODES.start] + _WITHOUT_LOG + content[_MODES.stop :])
        if schema != SCHEMA:
            connection.deserialize(_upgraded(connection))
        connection.execute("PRAGMA foreign_keys = ON")
    except sqlite3.DatabaseError as error:
        connection.close()
        raise DataError(f"{path} is damaged: {error}; use a copy of it") from error
    return connection


def _upgraded(earlier: sqlite3.Connection) -> bytes:
    """Return a study of an earlier schema with the present tables.

    Earlier studies have no log of charges. Each attribute (group) of an example that has a paid value is charged its
    price, on the first result of its value that was ordered first.
    """
    with closing(_in_memory()) as connection:
        connection.executescript(TABLES)
        connection.execute("PRAGMA foreign_keys = ON")
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            columns = [column for _, column, *_ in earlier.execute(f"PRAGMA table_info({name})")]
            values = f"({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
            connection.executemany(f"INSERT INTO {name} {values}", earlier.execute(f"SELECT * FROM {name}"))
        connection.execute(
            "WITH paid AS (SELECT example, attribute, head, ROW_NUMBER() OVER (PARTITION BY example, head "
            "ORDER BY order_number IS NULL, order_number, attribute) AS place "
            "FROM cells JOIN attributes ON number = attribute WHERE paid) "
            "UPDATE log SET cost = first.cost FROM (SELECT MIN(log.number) AS number, heads.cost FROM log "
            "JOIN paid USING (example, attribute) JOIN attributes AS heads ON heads.number = paid.head "
            "WHERE event = 'tell' AND new != 'unavailable' AND place = 1 GROUP BY example, attribute) AS first "
            "WHERE log.number = first.number"
        )
        return connection.serialize()


def _schema(path: Path, content: bytes) -> int:
    """Return the schema in the first bytes of a file; refuse what is no study, and studies of newer versions."""
    if not content.startswith(_MAGIC) or len(content) < _HEADER or _number(content, _APPLICATION_AT) != _APPLICATION:
        raise DataError(f"{path} is not a study: budgetreg study create makes one")
    schema = _number(content, _SCHEMA_AT)
    if schema > SCHEMA:
        raise DataError(
            f"{path} was written by a newer version of budgetreg (schema {schema}, and this one reads up to {SCHEMA}): "
            "update budgetreg"
        )
    return schema


def _number(content: bytes, at: int) -> int:
    return int.from_bytes(content[at : at + 4], "big")


def _logs(path: Path) -> list[Path]:
    """Return the files beside a study that SQLite would take for its logs."""
    logs = [Path(f"{os.path.realpath(path)}{ending}") for ending in LOGS]
    return [log for log in logs if os.path.lexists(log)]


def _refuse_changes_in_logs(path: Path) -> None:
    """Refuse logs that would change a study of schema 1, as nothing shows whether they belong to it.

    The log that a killed process leaves has nothing that is not in the file, unless another process was reading it.
    """
    logs, study = _logs(path), Path(os.path.realpath(path))
    if not logs:
        return
    with tempfile.TemporaryDirectory() as folder:
        for file in (study, *logs):
            shutil.copy(file, folder)
        try:
            with closing(sqlite3.connect(Path(folder, study.name))) as connection:
                changes = connection.serialize() != study.read_bytes()
        except sqlite3.DatabaseError:
            changes = True
    if changes:
        raise DataError(
            f"{path} has a log beside it, {' and '.join(log.name for log in logs)}, that would change it, and "
            "nothing shows whether it belongs to this study: remove the log, if it is that of another study; if it is "
            f"its own, sqlite3 {path} 'PRAGMA wal_checkpoint' moves it into the study"
        )


SILENT, PATIENCE = 1.0, 30.0
"""Seconds of waiting before it is reported, and before it ends."""
_PAUSE = 0.02
_SQLITE = 0x40000001
"""The byte that SQLite locks in a database before it changes it."""


@contextmanager
def changing(path: Path) -> Iterator[None]:
    """Keep all other processes and threads from changing a file during the block; they wait.

    The lock is on the file itself, so that nothing has to lie beside it, and the end of a process releases it.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    UserError
        If the file cannot be changed, or another process is still changing it after 30 s.
    """
    began, reported = time.monotonic(), False
    while True:
        with os_errors_explained(f"write {path}"):
            regular(path)
            file = path.open("r+b")
        with file:
            with os_errors_explained(f"write {path}"):
                # The one that held the lock before may have put another file in its place.
                ours = _lock(file.fileno()) and os.path.samestat(os.fstat(file.fileno()), path.stat())
            if ours:
                yield
                return
        waited = time.monotonic() - began
        if waited > PATIENCE:
            raise UserError(f"{path}: another process has been changing it for {waited:.0f} s: try again later")
        if waited > SILENT and not reported:
            say(f"waiting for another process, which is changing {path}")
            reported = True
        time.sleep(_PAUSE)


def _lock(descriptor: int) -> bool:
    """Lock an open file, unless somebody else has locked it; return whether it is locked."""
    try:
        if sys.platform == "linux":
            # Unlike other locks on bytes, it excludes threads of the same process too; unlike a lock on the whole file,
            # it is one that SQLite respects.
            lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, _SQLITE, 1, 0)
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, lock)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, content TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE attributes (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, cost REAL NOT NULL, head INTEGER NOT NULL,
    low REAL, high REAL
);
CREATE TABLE examples (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, target);
CREATE TABLE orders (
    number INTEGER PRIMARY KEY, spend REAL NOT NULL, per_example INTEGER, seed INTEGER NOT NULL, reason TEXT NOT NULL,
    cancelled INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE lines (
    order_number INTEGER NOT NULL REFERENCES orders, place INTEGER NOT NULL,
    example INTEGER NOT NULL REFERENCES examples, attribute INTEGER NOT NULL REFERENCES attributes, cost REAL NOT NULL,
    PRIMARY KEY (order_number, place)
) WITHOUT ROWID;
CREATE TABLE cells (
    example INTEGER NOT NULL REFERENCES examples, attribute INTEGER NOT NULL REFERENCES attributes,
    state TEXT NOT NULL CHECK (state IN ('on order', 'known', 'unavailable')),
    value REAL CHECK ((value IS NOT NULL) = (state = 'known')),
    order_number INTEGER REFERENCES orders, paid INTEGER NOT NULL CHECK (state != 'on order' OR NOT paid),
    PRIMARY KEY (example, attribute)
) WITHOUT ROWID;
CREATE TABLE log (
    number INTEGER PRIMARY KEY, event TEXT NOT NULL, example INTEGER, attribute INTEGER, order_number INTEGER, old, new,
    time TEXT, cost REAL CHECK (typeof(cost) IN ('null', 'real'))
);
CREATE TABLE estimates (state INTEGER PRIMARY KEY, spent REAL NOT NULL, content TEXT NOT NULL);
"""
