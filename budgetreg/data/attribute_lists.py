"""Lists of attributes that a user brings: CSV files which say something of each attribute, such as what it costs.

An attribute is named as the data name it, or by its number, from 1.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from budgetreg.data.formats.delimited import records, separator_of
from budgetreg.data.formats.source import shown
from budgetreg.errors import DataError, nearest

_NAMES = "attribute"


class Form(NamedTuple):
    """A kind of list."""

    key: str
    """The key that names the file, such as ``dataset.costs``."""
    what: str
    """What the list is called, such as ``a price list``."""
    entry: str
    """What it says of an attribute, such as ``price``."""
    columns: tuple[str, ...]
    """In which columns, beside ``attribute``."""


class Entry(NamedTuple):
    """What a list says of an attribute."""

    at: int
    """Which attribute, from 0."""
    name: str
    """As the list calls it."""
    texts: tuple[str, ...]
    """What stands in the columns."""
    place: str
    """File and line, for messages."""


def known_names(names: Sequence[str], d: int) -> tuple[str, ...]:
    """Return what d attributes are called: as the data name them, or by their numbers from 1."""
    return tuple(names) or tuple(str(number) for number in range(1, d + 1))


def entries(form: Form, path: Path, known: Sequence[str]) -> Iterator[Entry]:
    """Give what a list says of each attribute, line by line.

    Parameters
    ----------
    form : Form
        What list it has to be.
    path : Path
        The file: fields separated by commas, semicolons or tabs; other columns than ours are left alone.
    known : sequence of str
        What the attributes are called, see `known_names`.

    Raises
    ------
    DataError
        If the file cannot be read, lacks a column or an attribute, or has one that is not there, or one twice.
    """
    header, rows = _read(form, path)
    places = {name: at for at, name in enumerate(known)}
    lines: dict[int, int] = {}
    for line, fields in rows:
        place = f"{path}: line {line}"
        if len(fields) != len(header):
            raise DataError(f"{place}: {len(fields)} fields where the header has {len(header)}")
        name, *texts = (fields[header.index(column)].strip() for column in (_NAMES, *form.columns))
        at = places.get(name, _number_of(name, len(known)))
        if at is None:
            raise DataError(
                f"{place}: the data have no attribute {name!r}{nearest(name, known)}; attributes: {shown(list(known))}"
            )
        if at in lines:
            raise DataError(f"{place}: attribute {name!r} has a {form.entry} already, on line {lines[at]}")
        lines[at] = line
        yield Entry(at, name, tuple(texts), place)
    missing = [name for at, name in enumerate(known) if at not in lines]
    if missing:
        raise DataError(f"{path}: no {form.entry} of {shown(missing)}: each of the {len(known)} attributes needs one")


def number(text: str, what: str) -> float:
    """Return a number.

    Raises
    ------
    DataError
        If it is none; the message begins with `what`.
    """
    try:
        return float(text)
    except ValueError:
        raise DataError(f"{what} is no number: {text!r}") from None


def _read(form: Form, path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Return the header and the rows, with the lines on which they stand."""
    try:
        rows = list(records(path, separator_of(path)))
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error} ({form.key})") from error
    header = rows[0][1] if rows else []
    columns = (_NAMES, *form.columns)
    for column in columns:
        if header.count(column) != 1:
            raise DataError(f"{path}: one column {column!r} is needed: {form.what} begins with {','.join(columns)}")
    return header, rows[1:]


def _number_of(name: str, d: int) -> int | None:
    """Return which attribute a number means, from 0; None if it is none of theirs."""
    return int(name) - 1 if name.isascii() and name.isdigit() and 1 <= int(name) <= d else None
