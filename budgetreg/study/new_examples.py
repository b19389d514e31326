"""Examples that a study is asked about: what is known of them, in the order of its attributes."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from budgetreg.data.formats.chunks import shown
from budgetreg.errors import DataError
from budgetreg.files import at_home
from budgetreg.study.examples import ID, examples_of
from budgetreg.study.sheets import Sheet, read_sheet, sheet_of
from budgetreg.study.state import State

if TYPE_CHECKING:
    import pandas as pd


def new_examples(state: State, examples: "pd.DataFrame | np.ndarray | str | Path") -> tuple[list[str], np.ndarray]:
    """Return the names of examples, and their values, shape (n, d), NaN where nothing is known.

    Parameters
    ----------
    state : State
        The study.
    examples : DataFrame, ndarray, str or Path
        A table, or the path of one, with some of the attributes and perhaps names; other columns may hold anything. Or
        an array (n, d). Without a column of names, the index of a frame has them, unless it merely counts the rows;
        then names are 1, 2, and so on.

    Raises
    ------
    DataError
        If the table cannot be read, has none of the attributes, or holds something other than numbers.
    """
    d = len(state.attributes)
    if isinstance(examples, np.ndarray):
        if examples.ndim != 2 or examples.shape[1] != d:
            raise DataError(f"the examples have shape {examples.shape}, and {d} columns are needed, for the attributes")
        return [str(row + 1) for row in range(len(examples))], _numbers(examples)
    sheet = read_sheet(at_home(examples)) if isinstance(examples, str | Path) else sheet_of(examples, "the examples")
    known = [name for name in state.attributes if name in sheet.columns]
    if not known:
        raise DataError(
            f"{sheet.source}: line 1: it has none of the attributes {shown(list(state.attributes))}; columns: "
            f"{shown(list(sheet.names))}"
        )
    id = next((name for name in (state.facts["id"], ID) if name in sheet.columns and name not in known), "")
    if id:
        names: Sequence[object] = sheet.columns[id]
    elif isinstance(examples, str | Path) or _counts_rows(examples):
        names = range(1, sheet.n + 1)
    else:
        names = list(examples.index)
    id = id or state.facts["id"]
    columns = {id: names, **{name: sheet.columns[name] for name in known}}
    rows = examples_of(Sheet(sheet.source, tuple(columns), columns, sheet.place), "", id, droppable=False)
    X = np.full((sheet.n, d), np.nan)
    for at, name in enumerate(state.attributes):
        if name in rows.values:
            X[:, at] = [np.nan if value is None else value for value in rows.values[name]]
    return rows.names, X


def _numbers(examples: np.ndarray) -> np.ndarray:
    """Return an array as estimators take it: NaN for what is masked, and no dates, text or values too large."""
    from budgetreg.estimators.containers import plain, refuse_sizes  # here, as scikit-learn is slow to load

    try:
        X = np.asarray(plain(examples, "the array of examples"), dtype=np.float64)
        refuse_sizes(X, "the array of examples", small=False)
    except (TypeError, ValueError) as error:
        raise DataError(str(error)) from error
    return X


def _counts_rows(frame: "pd.DataFrame") -> bool:
    """Whether the index is the one of a frame that was given none: 0, 1, 2, and so on."""
    import pandas as pd  # here, as it is slow to load

    return isinstance(frame.index, pd.RangeIndex) and frame.index.equals(pd.RangeIndex(len(frame)))
