"""Parquet files, which pyarrow reads; no other format needs it.

An index of pandas is no attribute: `pandas.read_parquet` gives it back as an index. Messages count rows from 1.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from budgetreg.data.formats import chunks
from budgetreg.errors import DataError, quoted

_INDEX = "__index_level_"  # how the name of a column begins that pandas wrote for an index


def open_parquet(
    path: Path, target: str | None, missing: bool = False, drop: Sequence[str] = ()
) -> chunks.ChunkedTable:
    """Open a Parquet file: read its schema now and its rows on demand.

    Parameters
    ----------
    path : Path
        The file; attributes are numbers or booleans.
    target : str or None
        Column of the target, or index; None: the last column with a name; `NO_TARGET`: none.
    missing : bool
        Whether attributes may be missing: null or NaN.
    drop : sequence of str
        Columns that are left out, see `chunks.dropped`; they may hold anything.

    Raises
    ------
    DataError
        If the file is no such table, columns cannot be left out, or pyarrow is not installed.
    """
    file, index = opened(path)
    import pyarrow as pa

    names, n = file.schema_arrow.names, file.metadata.num_rows
    index = [name for name in index if name != target]
    columns = [name for name in names if name not in index]
    if target is None:
        target = next((name for name in reversed(columns) if name and not name.startswith(_INDEX)), None)
    target_name = chunks.target_of(columns, target, path)
    kinds = dict(zip(chunks.renamed(names), file.schema_arrow.types, strict=True))
    target_kind = kinds.pop(target_name, None)
    if target_kind is not None and pa.types.is_nested(target_kind):
        raise DataError(f"{path}: target {quoted(target_name)} holds {target_kind}; numbers or text are needed")
    others = list(kinds)
    dropped = chunks.dropped([*drop, *index], others, len(others), target_name, path)
    for name in dropped.values():
        del kinds[name]
    is_number = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    for name, kind in kinds.items():
        if not any(holds(kind) for holds in is_number):
            raise DataError(f"{path}: column {quoted(name)} holds {kind}; numbers are needed{chunks.ONE_HOT}")
    types = {np.dtype(kind.to_pandas_dtype()) for kind in kinds.values()}
    admitted = {dtype for dtype in chunks.STORED if dtype.kind == "f" or not missing}
    stored = types.pop() if len(types) == 1 and types <= admitted else np.dtype(np.float64)
    size, rows = (
        n * len(kinds) * stored.itemsize,
        _chunks(path, file, others, list(kinds), target_name, stored, missing),
    )
    left_out = [name for name in index if name not in drop]
    note = f"{path.name}: {chunks.shown(list(map(quoted, left_out)))}, an index of pandas, is no attribute"
    return chunks.ChunkedTable(
        path,
        target_name,
        size,
        rows,
        names=list(kinds),
        notes=(f"{note}; reset_index() before saving makes it one",) if left_out else (),
        missing=missing,
        d=len(kinds) + len(dropped),
        dropped=dropped,
    )


def opened(path: Path) -> tuple[Any, list[str]]:
    """Return a Parquet file, whose schema alone was read, and its columns that are an index of pandas.

    Raises
    ------
    DataError
        If it is no such file, or pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise DataError(f"{path}: Parquet files need pyarrow: pip install '.[parquet]' in a clone") from error
    try:
        file = pq.ParquetFile(path)
        schema = file.schema_arrow
    except (pa.ArrowException, ValueError) as error:
        raise DataError(f"{path} is not a Parquet file: {chunks.one_line(error)}") from error
    try:
        index = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
        return file, [name for name in schema.names if isinstance(index, list) and name in index]
    except (KeyError, TypeError, ValueError):  # what other programs wrote, or damaged
        return file, []


def _chunks(
    path: Path,
    file: Any,
    others: list[str],
    attributes: list[str],
    target: str,
    stored: np.dtype[Any],
    missing: bool,
) -> chunks.Chunks:
    import pyarrow as pa

    chunks.refuse_unnamed(path, file.schema_arrow.names, others, attributes)
    for name in filter(lambda name: name.startswith(_INDEX), [*attributes, target]):
        raise DataError(
            f"{path}: column {quoted(name)} is an index of pandas: save it with to_parquet(..., index=False), or leave "
            f"it out with dataset.drop=[{name}]"
        )
    done = 0
    with chunks.damage_reported(path, pa.ArrowException):
        columns = [*attributes, *filter(None, [target])]
        for batch in file.iter_batches(chunks.rows_per_read(len(attributes)), columns=columns, use_threads=False):
            X = np.empty((batch.num_rows, len(attributes)), dtype=stored)
            for i, name in enumerate(attributes):
                column = batch.column(name)
                if column.null_count and not missing:
                    row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
                    raise chunks.EmptyCellError(f"{chunks.cell(path, chunks.data_row(done + row), name)}: empty")
                if column.null_count or pa.types.is_decimal(column.type):  # would become objects
                    column = column.cast(pa.float64(), safe=False)
                X[:, i] = column.to_numpy(zero_copy_only=False)
            chunks.check_finite(path, X, missing, done, attributes)
            y = batch.column(target).to_pandas() if target else None
            yield from chunks.divided(X, y, chunks.rows_per_chunk(len(attributes)))
            done += len(X)
