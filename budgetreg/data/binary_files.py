"""Tables in binary files: Parquet files, and arrays as NumPy saves them.

Parquet files are read by pyarrow, which no other format needs. An index of pandas is no attribute there:
`pandas.read_parquet` gives it back as an index. Messages count rows from 1.

Arrays ``X`` and ``y`` are in one NPZ file, or in a folder as ``X.npy`` and ``y.npy``. ``X.npy`` in a folder is mapped
and never copied, unless values may be missing. A header is trusted only if the file has the size that it gives:
otherwise a few damaged bytes could ask for more memory than there is.
"""

import json
import math
import warnings
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from budgetreg.common.errors import DataError, nearest, quoted
from budgetreg.data import tables
from budgetreg.data.tables import IN_MEMORY

DAMAGE = (ValueError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error)
"""What reading a damaged array may raise, apart from the errors of a disk."""

_INDEX = "__index_level_"  # how the name of a column begins that pandas wrote for an index
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # those of `np.savez` and `np.savez_compressed`
_READABLE_FLAGS = 0x80E  # how it was deflated, sizes after the content, names in UTF-8: not encrypted, for example
_MOST_SHRUNK = 1032  # Deflated content is smaller by at most this factor.
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


class HoldsObjects(ValueError):  # noqa: N818 - the name describes the array
    """An array holds objects of Python, which are never read."""


class Header(NamedTuple):
    """The shape of an array, whether it is in Fortran order, and its type."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]


def open_parquet(
    path: Path, target: str | None, missing: bool = False, drop: Sequence[str] = ()
) -> tables.ChunkedTable:
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
        Columns that are left out, see `tables.dropped`; they may hold anything.

    Raises
    ------
    DataError
        If the file is no such table, columns cannot be left out, or pyarrow is not installed.
    """
    file, index = _parquet(path)
    import pyarrow as pa

    names, n = file.schema_arrow.names, file.metadata.num_rows
    index = [name for name in index if name != target]
    columns = [name for name in names if name not in index]
    possible = [name for name in columns if name and not name.startswith(_INDEX)]
    if target is None and possible:
        target = tables.default_target(possible, path)
    target_name = tables.target_of(columns, target, path)
    kinds = dict(zip(tables.renamed(names), file.schema_arrow.types, strict=True))
    target_kind = kinds.pop(target_name, None)
    if target_kind is not None and pa.types.is_nested(target_kind):
        raise DataError(f"{path}: target {quoted(target_name)} holds {target_kind}; numbers or text are needed")
    others = list(kinds)
    dropped = tables.dropped([*drop, *index], others, len(others), target_name, path)
    for name in dropped.values():
        del kinds[name]
    types = set(map(_stored_as, kinds.values()))
    admitted = {dtype for dtype in tables.STORED if dtype.kind == "f" or not missing}
    stored = types.pop() if len(types) == 1 and types <= admitted else np.dtype(np.float64)
    size, rows = (
        n * len(kinds) * stored.itemsize,
        _parquet_chunks(path, file, others, list(kinds), target_name, stored, missing),
    )
    left_out = [name for name in index if name not in drop]
    note = f"{path.name}: {tables.shown(list(map(quoted, left_out)))}, an index of pandas, is no attribute"
    return tables.ChunkedTable(
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


def _stored_as(kind: Any) -> np.dtype:
    """Return numpy's type for a type of a column; that of objects if numpy has none, as for categories of text."""
    try:
        return np.dtype(kind.to_pandas_dtype())
    except NotImplementedError:
        return np.dtype(object)


def parquet_sheet(path: Path) -> tables.Sheet:
    """Return the cells of a Parquet file; those of an index of pandas have to be asked for by its name.

    Raises
    ------
    DataError
        If the file is damaged, or names of columns are missing or repeated.
    """
    file, index = _parquet(path)
    import pyarrow as pa

    with tables.damage_reported(path, pa.ArrowException, ValueError):
        table = file.read()
    names = list(map(tables.text_of, table.column_names))
    tables.refuse_bad_names(names, str(path))
    columns = {name: column.to_pylist() for name, column in zip(names, table.columns, strict=True)}
    return tables.Sheet(str(path), tuple(name for name in names if name not in index), columns, tables.data_row)


def open_arrays(path: Path, target: str | None, missing: bool = False, drop: Sequence[str] = ()) -> tables.ChunkedTable:
    """Open a folder or an NPZ file with arrays ``X`` of shape (n, d) and ``y`` of shape (n,).

    Parameters
    ----------
    path : Path
        The folder or file.
    target : str or None
        Array of the targets; None: ``y``; `NO_TARGET`: none.
    missing : bool
        Whether attributes may be missing: NaN.
    drop : sequence of str
        Columns of ``X`` that are left out, as numbers from 1.

    Raises
    ------
    DataError
        If it has no such arrays, or columns cannot be left out.
    """
    if not path.is_dir() and not zipfile.is_zipfile(path):
        raise DataError(f"{path} is {'empty' if path.stat().st_size == 0 else 'not an NPZ file of numpy.savez'}")
    if path.is_dir():
        folder: Path | zipfile.Path = path
        sizes = {file.stem: file.stat().st_size for file in sorted(path.glob("*.npy")) if file.is_file()}
    else:
        with tables.damage_reported(path, *DAMAGE):
            folder = zipfile.Path(path)
            sizes = {name: info.file_size for name, info in members(folder.root).items()}
        tables.check_expansion(path, path.stat().st_size, max(sizes.values(), default=0))
    name = "y" if target is None else target
    for wanted in filter(None, ("X", name)):
        if wanted not in sizes:
            raise DataError(f"{path}: no array {wanted!r}{nearest(wanted, sizes)}; arrays: {tables.shown(list(sizes))}")
    with tables.damage_reported(path, *DAMAGE):
        shape, fortran, dtype = _described(folder, "X", sizes)
        y_shape, y_dtype = shape[:1], np.dtype(float)
        if name:
            y_shape, _, y_dtype = _described(folder, name, sizes)
    if len(shape) != 2 or y_shape != shape[:1]:
        raise DataError(f"{path}: X has shape {shape} and {name} {y_shape}; (n, d) and (n,) are needed")
    if shape[0] == 0 or shape[1] < 2:
        raise DataError(f"{path}: X has shape {shape}; at least one row and two attributes are needed")
    if dtype.kind not in "buif" or y_dtype.kind not in "buifSU":
        raise DataError(f"{path}: X holds {dtype} and {name} {y_dtype}; numbers (or text in {name}) are needed")
    dropped = tables.dropped(drop, (), shape[1], name, path)
    size = math.prod(shape) * dtype.itemsize
    if fortran and size > IN_MEMORY:
        raise DataError(f"{path}: X is in Fortran order and too large for memory: save np.ascontiguousarray(X)")
    mapped = None
    if path.is_dir() and not fortran and _stored(dtype) == dtype and not missing and not dropped:
        with tables.damage_reported(path / "X.npy", ValueError):
            mapped = np.load(path / "X.npy", mmap_mode="r")
    rows = _array_chunks(path, folder, name, sizes, missing, list(dropped))
    return tables.ChunkedTable(path, name, size, rows, mapped, missing=missing, d=shape[1], dropped=dropped)


def _parquet(path: Path) -> tuple[Any, list[str]]:
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
        raise DataError(f"{path} is not a Parquet file: {tables.one_line(error)}") from error
    try:
        index = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
        return file, [name for name in schema.names if isinstance(index, list) and name in index]
    except (KeyError, TypeError, ValueError):  # what other programs wrote, or damaged
        return file, []


def _parquet_chunks(
    path: Path,
    file: Any,
    others: list[str],
    attributes: list[str],
    target: str,
    stored: np.dtype[Any],
    missing: bool,
) -> tables.Chunks:
    import pyarrow as pa

    tables.refuse_unnamed(path, file.schema_arrow.names, others, attributes)
    for name in filter(lambda name: name.startswith(_INDEX), [*attributes, target]):
        raise DataError(
            f"{path}: column {quoted(name)} is an index of pandas: save it with to_parquet(..., index=False), or leave "
            f"it out with dataset.drop=[{name}]"
        )
    is_number = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    for name in attributes:
        kind = file.schema_arrow.field(name).type
        if not any(holds(kind) for holds in is_number):
            raise DataError(f"{path}: column {quoted(name)} holds {kind}; numbers are needed{tables.ONE_HOT}")
    done = 0
    with tables.damage_reported(path, pa.ArrowException):
        columns = [*attributes, *filter(None, [target])]
        for batch in file.iter_batches(tables.rows_per_read(len(attributes)), columns=columns, use_threads=False):
            X = np.empty((batch.num_rows, len(attributes)), dtype=stored)
            for i, name in enumerate(attributes):
                column = batch.column(name)
                if column.null_count and not missing:
                    row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
                    raise tables.EmptyCellError(f"{tables.cell(path, tables.data_row(done + row), name)}: empty")
                if column.null_count or pa.types.is_decimal(column.type):  # would become objects
                    column = column.cast(pa.float64(), safe=False)
                X[:, i] = column.to_numpy(zero_copy_only=False)
            tables.check_finite(path, X, missing, done, attributes)
            y = batch.column(target).to_pandas() if target else None
            yield from tables.divided(X, y, tables.rows_per_chunk(len(attributes)))
            done += len(X)


def _described(folder: Path | zipfile.Path, name: str, sizes: Mapping[str, int]) -> Header:
    """Return the header of an array, which must fit to its size."""
    with (folder / f"{name}.npy").open("rb") as file:
        try:
            return read_header(file, sizes[name])
        except HoldsObjects as error:
            raise DataError(
                f"{str(folder).rstrip('/')}: {name} holds Python objects: save it as {name}.astype(float), or text as "
                f"{name}.astype(str)"
            ) from error


def _stored(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype if dtype in tables.STORED and dtype.isnative else np.dtype(np.float64)


def _converted(array: np.ndarray) -> np.ndarray:
    """Return numbers as they are stored; what is too large for that becomes infinite, and is reported as such."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=_stored(array.dtype))


def _array_chunks(
    path: Path, folder: Path | zipfile.Path, name: str, sizes: Mapping[str, int], missing: bool, dropped: list[int]
) -> tables.Chunks:
    import pandas as pd  # here, because it is slow to import and other kinds of data do without

    targets = None
    with tables.damage_reported(path, *DAMAGE):
        if name:
            with (folder / f"{name}.npy").open("rb") as file:
                y = read_array(file, sizes[name])
            targets = pd.Series(y.astype(str) if y.dtype.kind in "SU" else _converted(y))
        with (folder / "X.npy").open("rb") as file:
            (n, d), fortran, dtype = read_header(file, sizes["X"])
            numbers = np.delete(np.arange(1, d + 1), dropped).tolist()
            step = n if fortran else tables.rows_per_chunk(d)
            for start in range(0, n, step):
                r = min(step, n - start)
                content = file.read(r * d * dtype.itemsize)
                X = np.frombuffer(content, dtype).reshape((r, d), order="F" if fortran else "C")
                X = _converted(np.delete(X, dropped, axis=1) if dropped else X)
                tables.check_finite(path, X, missing, start, numbers)
                yield X, None if targets is None else targets[start : start + r]
            file.read(1)  # past the end, where a ZIP file's checksum is compared


def members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Return the files of an NPZ file by the names of their arrays, before any is read.

    Raises
    ------
    ValueError
        If two have the same name, or one is encrypted, compressed in another way than NumPy does, or larger than the
        archive can hold.
    """
    arrays: dict[str, zipfile.ZipInfo] = {}
    assert archive.fp is not None
    size = archive.fp.seek(0, 2)
    for info in archive.infolist():
        if not info.filename.endswith(".npy"):
            continue
        name = info.filename.removesuffix(".npy")
        if name in arrays:
            raise ValueError(f"two arrays are named {name!r}")
        if info.compress_type not in _METHODS or info.flag_bits & ~_READABLE_FLAGS:
            raise ValueError(f"the array {name!r} is encrypted, or compressed in another way than NumPy does")
        if info.compress_size > size or info.file_size > _MOST_SHRUNK * info.compress_size:
            raise ValueError(f"the array {name!r} has {info.file_size} bytes, more than fit into the file")
        arrays[name] = info
    return arrays


def read_header(file: IO[bytes], size: int) -> Header:
    """Return the header of an NPY file, and leave the file where the array begins.

    Parameters
    ----------
    file : file
        The file, at its beginning.
    size : int
        Its size in bytes.

    Raises
    ------
    ValueError
        If there is none, or its array holds objects or is not of that size.
    OSError
        If it cannot be read.
    """
    try:
        with warnings.catch_warnings(action="ignore"):
            header = Header(*_HEADERS[np.lib.format.read_magic(file)](file))
    except (OSError, *DAMAGE):
        raise
    except Exception as error:  # NumPy has Python's own parser read it, which has many
        raise ValueError(f"its header cannot be read: {error!r}") from error
    said = f"its header gives shape {header.shape} and type {header.dtype}"
    if header.dtype.hasobject:
        raise HoldsObjects(f"{said}, which are no numbers or text")
    if not header.dtype.itemsize or any(length < 0 for length in header.shape):
        raise ValueError(f"{said}, which are no numbers or text")
    if file.tell() + math.prod(header.shape) * header.dtype.itemsize != size:
        raise ValueError(f"{said}, but the file has {size} bytes")
    return header


def read_array(file: IO[bytes], size: int) -> np.ndarray:
    """Return the array of an NPY file of a given size, in memory that cannot be written.

    Raises
    ------
    ValueError, OSError
        As for `read_header`. Others of `DAMAGE` if the content is damaged.
    """
    shape, fortran, dtype = read_header(file, size)
    return np.ndarray(shape, dtype, file.read(), order="F" if fortran else "C")
