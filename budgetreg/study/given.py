"""Tables as callers give them: frames, sequences and files of examples, with targets in several forms."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from budgetreg.errors import ConfigError, nearest, quoted
from budgetreg.files import at_home
from budgetreg.notices import plural
from budgetreg.study.examples import ID
from budgetreg.study.sheets import Sheet, read_sheet, sheet_of, text_of

if TYPE_CHECKING:
    import pandas as pd

_T = TypeVar("_T")
TARGET = "target"
"""The column of the targets, unless another one is named."""


def examples_sheet(examples: "pd.DataFrame | Sequence[object] | str | Path", id: str) -> Sheet:
    """Return a table of examples; the index of a frame has their names, unless a column has."""
    if isinstance(examples, str | Path):
        return read_sheet(at_home(examples), "table")
    import pandas as pd  # here, as it is slow to load

    column = id or ID
    if not isinstance(examples, pd.DataFrame):
        return Sheet("the examples", (column,), {column: list(examples)}, _entry)
    sheet = sheet_of(examples, "the examples")
    if column in sheet.columns:
        return sheet
    return Sheet(sheet.source, (column, *sheet.names), {column: list(examples.index), **sheet.columns}, sheet.place)


def with_targets(
    sheet: Sheet, targets: "Mapping[object, object] | Sequence[object] | str | None", id: str
) -> tuple[Sheet, str]:
    """Return a table with a column of targets, if there are any yet, and its name."""
    if targets is not None and not isinstance(targets, str):
        return with_column(sheet, TARGET, targets, id), TARGET
    targets = text_of(targets)
    if targets and nearest(targets, sheet.names) and targets not in sheet.columns:
        sheet.column(targets, "target names the column to predict")  # a mistyped one would be an attribute
    return sheet, targets or TARGET


def with_column(sheet: Sheet, column: str, targets: "Mapping[object, object] | Sequence[object]", id: str) -> Sheet:
    """Return a table with one more column: of targets by name, or in the order of the examples."""
    if column in sheet.columns:
        raise ConfigError(f"targets: the table has a column {column!r} already; name it instead: targets={column!r}")
    import pandas as pd  # here, as it is slow to load

    if isinstance(targets, Mapping | pd.Series):
        by_name = {text_of(name): target for name, target in targets.items()}
        cells = [by_name.get(text_of(name)) for name in sheet.columns[id]]
    else:
        cells = list(targets)
        if len(cells) != sheet.n:
            raise ConfigError(f"targets: {len(cells)} for {plural(sheet.n, 'example')}")
    return Sheet(sheet.source, (*sheet.names, column), {**sheet.columns, column: cells}, sheet.place)


def names_of(key: str, given: Iterable[object]) -> list[str]:
    """Return names as files have them, without blanks around them.

    Raises
    ------
    ConfigError
        If one is empty, or there twice.
    """
    names = list(map(text_of, given))
    if "" in names:
        raise ConfigError(f"{key}: entry {names.index('') + 1} has no name")
    repeated = next((name for name, count in Counter(names).items() if count > 1), None)
    if repeated is not None:
        raise ConfigError(f"{key}: {quoted(repeated)} is there twice: leave out one")
    return names


def by_name(key: str, given: "Mapping[str, _T]") -> "dict[str, _T]":
    """Return a mapping by names as `names_of` returns them, with the same errors."""
    return dict(zip(names_of(key, given), given.values(), strict=True))


def _entry(row: int) -> str:
    return f"entry {row + 1}"
