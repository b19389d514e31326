"""The file of a study: an SQLite database that is replaced as a whole by each change, and ends in its digest.

SQLite never opens the file itself: queries and changes are made in memory. So there is no log beside it that a kill can
leave, or that belongs to another file; whoever copies the file has a backup, and who reads it waits for nobody.
The digest shows whether anything else has changed the file. SQLite's own number for applications marks the file as a
study, and its number for users is the schema.

Files of schema 1 have no digest, and may have a log. They are read, and get the present schema with their next change.
"""

import os
import sqlite3
import stat
import struct
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from budgetreg.errors import ConfigError, DataError, UserError
from budgetreg.files import digest, os_errors_explained, regular, write_atomically
from budgetreg.study.locking import changing
from budgetreg.study.tables import TABLES, fault_of_study

SCHEMA = 2
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
_LOGS = ("-wal", "-shm", "-journal")
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
            try:
                yield
            except sqlite3.OperationalError as error:  # such as a database that is too large
                raise UserError(f"cannot use {self.path}: {error}") from error

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

    def change(self, statement: str, rows: Iterable[Sequence[object]] = ((),)) -> None:
        """Execute a statement for each row of values, once if it has none."""
        self._connection.executemany(statement, rows)


def create(path: Path, tables: Iterable[tuple[str, Iterable[Sequence[object]]]]) -> None:
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
        for log in _logs(path).values():
            log.unlink(missing_ok=True)
    write_atomically(path, content + digest(content).encode(), replace=replace, keep_access=True)


def _opened(path: Path) -> sqlite3.Connection:
    """Return the content of a study in memory.

    Raises
    ------
    DataError
        As for `StudyFile`.
    """
    with os_errors_explained(f"open {path}", DataError):
        logs = _logs(path)
        regular(path)
        with path.open("rb") as file:
            header = file.read(_HEADER)
            schema = _schema(path, header)
            content = header + file.read()
    if schema == _WITHOUT_DIGEST:
        intact = False
        _refuse_changes_in(logs, path, content)
    else:
        content, seal = content[:-_DIGEST], content[-_DIGEST:]
        intact = digest(content).encode() == seal
    connection = _in_memory()
    try:
        connection.deserialize(bytes(content[: _MODES.start]) + _WITHOUT_LOG + content[_MODES.stop :])
        fault = "" if intact else fault_of_study(connection)
        connection.execute("PRAGMA foreign_keys = ON")
    except sqlite3.DatabaseError as error:
        connection.close()
        raise DataError(f"{path} is damaged: {error}; use a copy of it") from error
    if not intact and schema != _WITHOUT_DIGEST:
        fault = fault or "its checksum does not match"
    if fault:
        connection.close()
        raise DataError(f"{path} was changed outside budgetreg: {fault}; use a copy of it")
    return connection


def _schema(path: Path, header: bytes) -> int:
    """Return the schema in the first bytes of a file; refuse what is no study, and studies of newer versions."""

    def number(at: int) -> int:
        return int(struct.unpack_from(">i", header, at)[0])

    if not header.startswith(_MAGIC) or len(header) < _HEADER or number(_APPLICATION_AT) != _APPLICATION:
        raise DataError(f"{path} is not a study: budgetreg study create makes one")
    schema = number(_SCHEMA_AT)
    if schema > SCHEMA:
        raise DataError(
            f"{path} was written by a newer version of budgetreg (schema {schema}, and this one reads up to {SCHEMA}): "
            "update budgetreg"
        )
    return schema


def _logs(path: Path) -> dict[str, Path]:
    """Return by ending the files beside a study that SQLite would take for its logs.

    Raises
    ------
    DataError
        If one is no regular file: SQLite would follow it, or wait for it.
    """
    beside = {ending: Path(f"{os.path.realpath(path)}{ending}") for ending in _LOGS}
    logs = {ending: log for ending, log in beside.items() if os.path.lexists(log)}
    for log in logs.values():
        if not stat.S_ISREG(log.lstat().st_mode):
            raise DataError(f"{log} is not a regular file, but SQLite keeps the log of a study there: remove it")
    return logs


def _refuse_changes_in(logs: Mapping[str, Path], path: Path, content: bytes) -> None:
    """Refuse logs that would change a study of schema 1, as nothing shows whether they belong to it.

    The log that a killed process leaves has nothing that is not in the file, unless another process was reading it.
    """
    if not any(log.stat().st_size for log in logs.values()):
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "study")
        copy.write_bytes(content)
        for ending, log in logs.items():
            Path(f"{copy}{ending}").write_bytes(log.read_bytes())
        try:
            with closing(sqlite3.connect(copy)) as connection:
                changes = connection.serialize() != content
        except sqlite3.DatabaseError:
            changes = True
    if changes:
        raise DataError(
            f"{path} has a log beside it, {' and '.join(log.name for log in logs.values())}, that would change it, and "
            "nothing shows whether it belongs to this study: remove the log, if it is that of another study; if it is "
            f"its own, sqlite3 {path} 'PRAGMA wal_checkpoint' moves it into the study"
        )
