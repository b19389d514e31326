"""The file of a study: an SQLite database that is replaced as a whole by each change, and ends in its digest.

SQLite never opens the file itself: queries and changes are made in memory. So there is no log beside it that a kill can
leave, or that belongs to another file; whoever copies the file has a backup, and who reads it waits for nobody.
The digest shows whether anything else has changed the file. SQLite's own number for applications marks the file as a
study, and its number for users is the schema.

Files of schema 1 have no digest, and may have a log of SQLite. Events of schema 2 have neither times nor charges. Both
are read, and get the present schema with their next change.
"""

import fcntl
import json
import math
import os
import sqlite3
import stat
import struct
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from math import fsum
from pathlib import Path
from typing import Any

from budgetreg.common.errors import ConfigError, DataError, UserError
from budgetreg.common.files import digest, os_errors_explained, regular, write_atomically
from budgetreg.common.notices import say
from budgetreg.data.dataset import LARGEST

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

    def note(self, *rows: Sequence[object]) -> None:
        """Log events: the name of each, its example, attribute and order, the old and new value, and the charge."""
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        self.change(
            "INSERT INTO log (event, example, attribute, order_number, old, new, cost, time) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            ((*row, now) for row in rows),
        )

    def spent(self) -> float:
        """Return the bill: the exactly rounded sum of all that the log charges."""
        return fsum(cost for (cost,) in self.rows("SELECT cost FROM log WHERE cost IS NOT NULL"))


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
        fault = "" if intact else fault_of_study(connection, TABLES if schema == SCHEMA else EARLIER_TABLES)
        if schema != SCHEMA and not fault:
            connection.deserialize(_upgraded(connection))
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


def _upgraded(earlier: sqlite3.Connection) -> bytes:
    """Return a study of an earlier schema with the present tables.

    Earlier studies have no log of charges. Each attribute (group) of an example that has a paid value is charged its
    price, on the first result of its value that was ordered first.
    """
    with closing(_in_memory()) as connection:
        connection.executescript(TABLES)
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


SILENT, PATIENCE = 1.0, 30.0
"""Seconds of waiting before it is reported, and before it ends."""
_PAUSE = 0.02
_SQLITE = 0x40000001
"""The byte that SQLite locks in a database before it changes it."""


@contextmanager
def changing(path: Path) -> Iterator[None]:
    """Let no other process change a file during the block, nor another thread; they wait.

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
"""They are compared with those of a file, by their text."""

EARLIER_TABLES = TABLES.replace(",\n    time TEXT, cost REAL CHECK (typeof(cost) IN ('null', 'real'))", "").replace(
    "CHECK (state != 'on order' OR", "CHECK (state = 'known' OR"
)
"""Those of the schemas 1 and 2."""

_TABLES_OF = "SELECT type, name, tbl_name, COALESCE(sql, '') FROM sqlite_master"
_FACTS = ("algo", "id", "origin", "seed", "target", "unit")


def _numbered(table: str, first: int) -> str:
    """Return a query that finds a row if the rows of a table are not numbered one after the other."""
    counts = f"SELECT COUNT(*) AS n, MIN(number) AS low, MAX(number) AS high FROM {table}"
    return f"SELECT 1 FROM ({counts}) WHERE low != {first} OR high != n - 1 + {first}"


def _can_be_computed_with(number: str) -> str:
    return f"(typeof({number}) = 'real' AND ({number} = 0 OR abs({number}) BETWEEN :least AND :most))"


def _is_text(text: str) -> str:
    return f"(typeof({text}) = 'text' AND {text} != '')"


def _is_amount(number: str) -> str:
    return f"(typeof({number}) = 'real' AND {number} BETWEEN 0 AND :finite)"


_FAULTS = {
    "it lacks a fact": (
        f"SELECT 1 FROM (SELECT COUNT(*) AS n FROM facts WHERE name IN {_FACTS} AND typeof(content) = 'text') "
        f"WHERE n < {len(_FACTS)}"
    ),
    "its seed is not a whole number": (
        "SELECT 1 FROM facts WHERE name = 'seed' AND (content = '' OR content GLOB '*[^0-9]*')"
    ),
    "attributes are missing": f"{_numbered('attributes', 0)} OR n < 2",
    "examples are missing": _numbered("examples", 0),
    "orders are missing": _numbered("orders", 1),
    "events are missing": _numbered("log", 1),
    "an attribute has no name": f"SELECT 1 FROM attributes WHERE NOT {_is_text('name')}",
    "an example has no name": f"SELECT 1 FROM examples WHERE NOT {_is_text('name')}",
    "a price is not a number of at least 0": f"SELECT 1 FROM attributes WHERE NOT {_is_amount('cost')}",
    "the groups of attributes are not possible": (
        "SELECT 1 FROM attributes LEFT JOIN attributes AS heads ON heads.number = attributes.head "
        "WHERE heads.head IS NOT attributes.head OR heads.number > attributes.number "
        "OR (heads.number != attributes.number AND attributes.cost != 0)"
    ),
    "a range of values is not possible": (
        "SELECT 1 FROM attributes WHERE (low IS NOT NULL OR high IS NOT NULL) AND "
        "(typeof(low) = 'real' AND typeof(high) = 'real' AND low < high AND abs(low) <= :finite "
        "AND abs(high) <= :finite) IS NOT 1"
    ),
    "a target is not possible": (
        f"SELECT 1 FROM examples WHERE target IS NOT NULL AND NOT {_is_text('target')} "
        f"AND NOT {_can_be_computed_with('target')}"
    ),
    "its targets are neither numbers nor two labels": (
        "SELECT 1 FROM (SELECT COUNT(DISTINCT target) AS labels FROM examples WHERE typeof(target) = 'text') "
        "WHERE labels > 2 OR (labels AND EXISTS (SELECT 1 FROM examples WHERE typeof(target) = 'real'))"
    ),
    "an order is not possible": (
        f"SELECT 1 FROM orders WHERE NOT {_is_amount('spend')} OR typeof(seed) != 'integer' OR seed < 0 "
        "OR (per_example IS NOT NULL AND (typeof(per_example) != 'integer' OR per_example < 1)) "
        "OR typeof(reason) != 'text' OR cancelled NOT IN (0, 1)"
    ),
    "an order has no lines": (
        "SELECT 1 FROM orders LEFT JOIN (SELECT order_number, COUNT(*) AS n, MIN(place) AS low, MAX(place) AS high, "
        "SUM(cost) AS cost FROM lines GROUP BY order_number) ON order_number = number "
        "WHERE (low = 0 AND high = n - 1 AND cost <= spend * (1 + 1e-9)) IS NOT 1"
    ),
    "an order has a line that is not possible": (
        "SELECT 1 FROM lines LEFT JOIN orders ON orders.number = order_number "
        "LEFT JOIN examples ON examples.number = example LEFT JOIN attributes ON attributes.number = attribute "
        "LEFT JOIN attributes AS heads ON heads.number = attributes.head "
        "WHERE (orders.number + examples.number + attributes.number + heads.number) IS NULL "
        f"OR NOT {_is_amount('lines.cost')} OR (lines.cost NOT IN (0, heads.cost) "
        "AND NOT EXISTS (SELECT 1 FROM log WHERE event = 'price' AND log.attribute = heads.number))"
    ),
    "a value is not possible": (
        "SELECT 1 FROM cells LEFT JOIN examples ON examples.number = example "
        "LEFT JOIN attributes ON attributes.number = attribute "
        "WHERE (examples.number + attributes.number) IS NULL OR state NOT IN ('known', 'on order', 'unavailable') "
        f"OR (state = 'known' AND NOT {_can_be_computed_with('value')}) OR (state != 'known' AND value IS NOT NULL) "
        "OR typeof(paid) != 'integer' OR paid NOT IN (0, 1) OR (paid AND state = 'on order') "
        "OR (state = 'on order' AND order_number IS NULL)"
    ),
    "a value belongs to an order that lacks it": (
        "SELECT example, attribute, order_number FROM cells WHERE order_number IS NOT NULL "
        "EXCEPT SELECT example, attribute, order_number FROM lines"
    ),
    "a cancelled order has pending values": (
        "SELECT 1 FROM cells JOIN orders ON number = order_number WHERE state = 'on order' AND cancelled"
    ),
    "an event is not possible": (
        "SELECT 1 FROM log LEFT JOIN examples ON examples.number = example "
        "LEFT JOIN attributes ON attributes.number = attribute LEFT JOIN orders ON orders.number = order_number "
        "WHERE (order_number IS NOT NULL AND orders.number IS NULL) OR CASE event "
        "WHEN 'ask' THEN orders.number IS NULL WHEN 'cancel' THEN orders.number IS NULL "
        "WHEN 'example' THEN examples.number IS NULL "
        f"WHEN 'target' THEN examples.number IS NULL OR NOT ({_is_text('new')} OR {_can_be_computed_with('new')}) "
        "WHEN 'tell' THEN examples.number IS NULL OR attributes.number IS NULL "
        f"OR NOT ({_can_be_computed_with('new')} OR new IS 'unavailable') "
        "WHEN 'beforehand' THEN examples.number IS NULL OR attributes.number IS NULL "
        f"OR NOT {_can_be_computed_with('new')} "
        "WHEN 'invoice' THEN examples.number IS NULL OR attributes.number IS NULL "
        "WHEN 'refund' THEN examples.number IS NULL OR attributes.number IS NULL "
        f"WHEN 'attribute' THEN attributes.number IS NULL WHEN 'price' THEN NOT {_is_amount('new')} "
        "WHEN 'exclude' THEN (examples.number IS NULL) = (attributes.number IS NULL) "
        "WHEN 'include' THEN (examples.number IS NULL) = (attributes.number IS NULL) ELSE 1 END"
    ),
    "its orders are not those of its log": (
        "SELECT number FROM orders EXCEPT SELECT order_number FROM log WHERE event = 'ask'"
    ),
    "a value is not the one in its log": (
        "SELECT 1 FROM (SELECT example, attribute, new, MAX(number) FROM log WHERE event IN ('tell', 'beforehand') "
        "GROUP BY example, attribute) AS last LEFT JOIN cells USING (example, attribute) "
        "WHERE CASE state WHEN 'known' THEN value WHEN 'unavailable' THEN state END IS NOT new"
    ),
    "a target is not the one in its log": (
        "SELECT 1 FROM (SELECT example, new, MAX(number) FROM log WHERE event = 'target' GROUP BY example) AS last "
        "LEFT JOIN examples ON number = example WHERE target IS NOT new"
    ),
}
"""What can be wrong with a study, in an order such that each may rely on those before: queries that then find a row."""


def fault_of_study(connection: sqlite3.Connection, tables: str) -> str:
    """Return what is wrong with a study, whose tables must be these, if something else has changed it; else nothing.

    Raises
    ------
    sqlite3.DatabaseError
        If they cannot be read.
    """
    with closing(sqlite3.connect(":memory:")) as empty:
        empty.executescript(tables)
        if sorted(empty.execute(_TABLES_OF)) != sorted(connection.execute(_TABLES_OF)):
            return "its tables are not those of a study"
        names = [name for _, name, *_ in empty.execute(_TABLES_OF) if not name.startswith("sqlite_")]
    ((whole,),) = connection.execute("PRAGMA integrity_check(1)").fetchall()
    if whole != "ok":
        raise sqlite3.DatabaseError(" ".join(whole.split()))
    for name in names:  # text that is not UTF-8 cannot be read
        connection.execute(f"SELECT * FROM {name}").fetchall()
    bounds = {"least": 1 / LARGEST, "most": LARGEST, "finite": sys.float_info.max}
    for fault, query in _FAULTS.items():
        if connection.execute(query, bounds).fetchone():
            return fault
    rows = connection.execute("SELECT state, spent, content FROM estimates").fetchall()
    return "" if all(_is_estimate(*row) for row in rows) else "an estimate is not possible"


def _is_estimate(state: object, spent: object, content: object) -> bool:
    """Return whether a row can be an estimate, see `budgetreg.study.forecast`."""
    try:
        record = json.loads(str(content))
        intervals = [(record["complete"], 3), (record["as_bought"], 3), *((each, 4) for each in record["further"])]
        numbers = [float(number) for interval, _ in intervals for number in interval]
    except (ValueError, TypeError, LookupError):
        return False
    lengths = all(len(interval) == length for interval, length in intervals)
    return lengths and isinstance(spent, float) and all(map(math.isfinite, [*numbers, spent]))
