"""The tables of a study, and what must hold of them."""

import json
import math
import sqlite3
import sys
from contextlib import closing

from budgetreg.data.dataset import LARGEST

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
    order_number INTEGER REFERENCES orders, paid INTEGER NOT NULL CHECK (state = 'known' OR NOT paid),
    PRIMARY KEY (example, attribute)
) WITHOUT ROWID;
CREATE TABLE log (
    number INTEGER PRIMARY KEY, event TEXT NOT NULL, example INTEGER, attribute INTEGER, order_number INTEGER, old, new
);
CREATE TABLE estimates (state INTEGER PRIMARY KEY, spent REAL NOT NULL, content TEXT NOT NULL);
"""
"""They are compared with those of a file, by their text."""

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
        "OR typeof(lines.cost) != 'real' OR lines.cost NOT IN (0, heads.cost)"
    ),
    "a value is not possible": (
        "SELECT 1 FROM cells LEFT JOIN examples ON examples.number = example "
        "LEFT JOIN attributes ON attributes.number = attribute "
        "WHERE (examples.number + attributes.number) IS NULL OR state NOT IN ('known', 'on order', 'unavailable') "
        f"OR (state = 'known' AND NOT {_can_be_computed_with('value')}) OR (state != 'known' AND value IS NOT NULL) "
        "OR typeof(paid) != 'integer' OR paid NOT IN (0, 1) OR (paid AND state != 'known') "
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
        f"OR NOT {_can_be_computed_with('new')} ELSE 1 END"
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


def fault_of_study(connection: sqlite3.Connection) -> str:
    """Return what is wrong with the tables of a study that something else may have changed; empty if nothing is.

    Raises
    ------
    sqlite3.DatabaseError
        If they cannot be read.
    """
    with closing(sqlite3.connect(":memory:")) as empty:
        empty.executescript(TABLES)
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
    """Return whether a row can be an estimate, see `budgetreg.study.estimates`."""
    try:
        record = json.loads(str(content))
        intervals = [(record["complete"], 3), (record["as_bought"], 3), *((each, 4) for each in record["further"])]
        numbers = [float(number) for interval, _ in intervals for number in interval]
    except (ValueError, TypeError, LookupError):
        return False
    lengths = all(len(interval) == length for interval, length in intervals)
    return lengths and isinstance(spent, float) and all(map(math.isfinite, [*numbers, spent]))
