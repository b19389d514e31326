"""The file of a study: an SQLite database; changes are whole, durable, and made by one process at a time.

The database is in the mode of a write-ahead log, so that readers do not wait for a writer. After each change the log
is moved into the file, so that a copy of the file alone is a backup. SQLite's own number for applications marks the
file as a study, and its number for users is the schema.
"""

import sqlite3
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from budgetreg.errors import ConfigError, DataError, UserError
from budgetreg.files.paths import regular
from budgetreg.files.writing import os_errors_explained, write_atomically

SCHEMA = 1
"""Version of the tables below; a file with a larger number was written by a newer version."""

_APPLICATION = 0x62677374
_MAGIC = b"SQLite format 3\0"
_HEADER = 100  # bytes
_MODES, _SCHEMA_AT, _APPLICATION_AT = 18, 60, 68
"""Where SQLite's file format has the versions for writing and reading, the schema, and the application."""
_WITH_LOG = b"\2\2"
_PATIENCE = 300.0
"""Seconds that a writer waits for another one: an order for a large table takes some."""

_TABLES = f"""
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {SCHEMA};
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
    order_number INTEGER REFERENCES orders, paid INTEGER NOT NULL CHECK (state = 'known' OR NOT paid),
    PRIMARY KEY (example, attribute)
) WITHOUT ROWID;
CREATE TABLE log (
    number INTEGER PRIMARY KEY, event TEXT NOT NULL, example INTEGER, attribute INTEGER, order_number INTEGER, old, new
);
CREATE TABLE estimates (state INTEGER PRIMARY KEY, spent REAL NOT NULL, content TEXT NOT NULL);
"""

Row = tuple[Any, ...]


class StudyFile:
    """An open study.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    DataError
        If there is no such file, or it is no study, damaged, or of a newer version.
    """

    def __init__(self, path: Path) -> None:
        _check(path)
        self.path = path
        with self._explained():
            self._connection = sqlite3.connect(
                f"file:{quote(str(path.absolute()))}?mode=rw", uri=True, timeout=_PATIENCE, isolation_level=None
            )
            # A change is on the disk before the command that made it reports it.
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute("PRAGMA foreign_keys = ON")

    def close(self) -> None:
        """Close the file; the last one to close it removes the log beside it."""
        with self._explained():
            self._connection.close()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Show one state of the file to all queries of the block, whatever others write meanwhile."""
        with self._explained():
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._connection.execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Make all changes of the block at once and durable, or none if it raises; others wait meanwhile."""
        with self._explained():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            # It waits for nobody: what a reader still needs stays in the log until a later change.
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

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

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn an error of SQLite into one line for the user."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                raise UserError(
                    f"{self.path}: another process has been writing for {_PATIENCE:.0f} s: try again later"
                ) from error
            raise UserError(f"cannot use {self.path}: {error}") from error
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError):
                raise  # a bug
            raise DataError(f"{self.path} is damaged: {error}; use a copy of it") from error


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
    refuse_existing(path)
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(_TABLES)
    for name, rows in tables:
        width = len(connection.execute(f"PRAGMA table_info({name})").fetchall())
        connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * width)})", rows)
    content = bytearray(connection.serialize())
    connection.close()
    content[_MODES : _MODES + len(_WITH_LOG)] = _WITH_LOG  # a database in memory has no log
    write_atomically(path, bytes(content), replace=False)


def refuse_existing(path: Path) -> None:
    """Refuse a path where something is.

    Raises
    ------
    ConfigError
        If there is something.
    """
    if path.exists() or path.is_symlink():
        raise ConfigError(f"{path} exists already: choose another name, or remove it")


def _check(path: Path) -> None:
    """Refuse what is no study, and studies of newer versions, before SQLite opens them."""
    with os_errors_explained(f"open {path}", DataError):
        regular(path)
        with path.open("rb") as file:
            header = file.read(_HEADER)
    if not header.startswith(_MAGIC) or len(header) < _HEADER or _number(header, _APPLICATION_AT) != _APPLICATION:
        raise DataError(f"{path} is not a study: budgetreg study create makes one")
    schema = _number(header, _SCHEMA_AT)
    if schema > SCHEMA:
        raise DataError(
            f"{path} was written by a newer version of budgetreg (schema {schema}, and this one reads up to {SCHEMA}): "
            "update budgetreg"
        )


def _number(header: bytes, at: int) -> int:
    number: int
    (number,) = struct.unpack_from(">i", header, at)
    return number
