"""Parquet files, by way of pyarrow, which only they need.

Rows in messages are counted from 1.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from budgetreg.data.formats.source import (
    NO_TARGET,
    ONE_HOT,
    STORED,
    EmptyCellError,
    Source,
    column_of,
    first_not_finite,
    not_finite,
    one_line,
    rows_per_piece,
)
from budgetreg.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


def open_parquet(path: Path, target: str | None, missing: bool = False) -> Source:
    """Read the schema of a Parquet file, and its rows when they are asked for.

    Parameters
    ----------
    path : Path
        The file; attributes are numbers or truth values.
    target : str or None
        Column of the target; None: the last one; `NO_TARGET`: none.
    missing : bool
        Whether attributes may be missing: null or NaN.

    Raises
    ------
    DataError
        If it is no such table, or pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise DataError(f"{path}: Parquet files need pyarrow: pip install '.[parquet]' in a clone") from error
    try:
        file = pq.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise DataError(f"{path} is not a Parquet file: {one_line(error)}") from error
    names, n = file.schema_arrow.names, file.metadata.num_rows
    least = 2 if target == NO_TARGET else 3
    if len(names) < least:
        need = "two attributes and a target" if least > 2 else "two attributes"
        raise DataError(f"{path} has {len(names)} column(s); {need} are needed")
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"{path}: two columns are named {name!r}")
        if name.startswith("__index_level_"):
            raise DataError(
                f"{path}: column {name!r} is an index that pandas wrote along: to_parquet(..., index=False)"
            )
    target_name = column_of(names, target, str(path))
    kinds = {name: kind for name, kind in zip(names, file.schema_arrow.types, strict=True) if name != target_name}
    for name, kind in kinds.items():
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            raise DataError(f"{path}: column {name!r} holds {kind}; numbers are needed{ONE_HOT}")
    types = {np.dtype(kind.to_pandas_dtype()) for kind in kinds.values()}
    stored = types.pop() if len(types) == 1 and types <= set(STORED) else np.dtype(np.float64)
    if missing and stored.kind != "f":
        stored = np.dtype(np.float64)
    pieces = _pieces(path, file, list(kinds), target_name, stored, missing)
    return Source(target_name, n * len(kinds) * stored.itemsize, pieces, names=list(kinds), missing=missing)


def _pieces(
    path: Path, file: Any, attributes: list[str], target: str, stored: np.dtype[Any], missing: bool
) -> Iterator[tuple[np.ndarray, "pd.Series[Any] | None"]]:
    import pyarrow as pa

    done = 0
    try:
        for batch in file.iter_batches(rows_per_piece(len(attributes)), columns=[*attributes, *filter(None, [target])]):
            X = np.empty((batch.num_rows, len(attributes)), dtype=stored)
            for i, name in enumerate(attributes):
                column = batch.column(name)
                if column.null_count and not missing:
                    row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
                    raise EmptyCellError(f"{path}: data row {done + row + 1}, column {name!r}: empty")
                if column.null_count:
                    column = column.cast(pa.float64())  # truth values would become objects
                X[:, i] = column.to_numpy(zero_copy_only=False)
            place = first_not_finite(X, np.isnan(X) if missing else None)
            if place is not None:
                where = f"data row {done + place[0] + 1}, column {attributes[place[1]]!r}"
                raise not_finite(f"{path}: {where}", X[place])
            yield X, batch.column(target).to_pandas() if target else None
            done += len(X)
    except pa.ArrowException as error:
        raise DataError(f"{path} cannot be read: {one_line(error)}") from error
