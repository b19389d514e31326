"""LIBSVM (SVMlight) files: a line ``target index:value index:value ...`` for each example; other values are 0.

The table stays sparse. Indices begin at 1, or at 0 if any index is 0. How many columns such a file has is an accident
of its rows. A table for ``predict`` is therefore read with the indices of the one that was learned from.
"""

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from budgetreg.data.formats import chunks
from budgetreg.errors import DataError, quoted

_BLOCK = 1 << 24  # bytes of text read at a time
_MOST = 10**8  # attributes; each needs some numbers in memory


def open_libsvm(
    path: Path,
    target: str | None,
    missing: bool = False,
    drop: Sequence[str] = (),
    indices: tuple[int, int] | None = None,
) -> chunks.ChunkedTable:
    """Open a LIBSVM file; its lines are read on demand.

    Parameters
    ----------
    path : Path
        The file, possibly compressed.
    target : None or `NO_TARGET`
        None: the number at the beginning of a line.
    missing : bool
        Must be False, as this format cannot express missing values.
    drop : sequence of str
        Columns that are left out, by their indices in the file.
    indices : (int, int), optional
        The first and the last index of a column, if they are known; others are refused when rows are read.

    Raises
    ------
    DataError
        If a target or a column is named, or attributes may be missing.
    """
    if missing:
        raise DataError(
            f"{path}: leave out dataset.missing=unavailable: values that a LIBSVM file leaves out are 0, never missing"
        )
    if target:
        raise DataError(f"{path}: leave out dataset.target={target}: lines of a LIBSVM file begin with the target")
    for word in drop:
        if not _is_index(word):
            raise DataError(f"{path}: dataset.drop: {quoted(word)} is not an index, by which LIBSVM files name columns")
    dropped = sorted(set(map(int, drop)))
    # An entry takes 12 bytes, and about half of that as text.
    size = 2 * chunks.size_of_text(path)
    rows = _chunks(path, target is None, np.array(dropped, dtype=np.int64), indices)
    name = "target" if target is None else target
    first = 0 if indices and indices[0] == 0 and 0 not in dropped else 1
    return chunks.ChunkedTable(path, name, size, rows, dropped=dict.fromkeys(dropped, ""), first=first)


def first_index(path: Path) -> int:
    """Return 0 if a row of a LIBSVM file has the index 0, else 1.

    Raises
    ------
    DataError
        If the file is damaged.
    """
    rows = _chunks(path, False, np.empty(0, dtype=np.int64), None)
    return min((int(X.indices.min(initial=1)) for X, _ in rows), default=1)


def _chunks(path: Path, targets: bool, dropped: np.ndarray, known: tuple[int, int] | None) -> chunks.Chunks:
    import pandas as pd  # here, because these are slow to import and other kinds of data do without
    from sklearn.datasets import load_svmlight_file

    lines, lowest, width = 0, *((1, 0) if known is None else (known[0], known[1] + 1))
    with chunks.damage_reported(path, UnicodeDecodeError), chunks.unpacked(path) as file:
        for block in _whole_lines(file):
            try:
                X, y = load_svmlight_file(io.BytesIO(block), n_features=width if known else None, zero_based=True)
            except (ValueError, OverflowError) as error:
                raise DataError(f"{path}: {_first_fault(block, lines, known) or error}") from error
            finite = np.isfinite(X.data).all() and np.isfinite(y).all()
            inside = X.shape[1] <= _MOST if known is None else X.indices.min(initial=lowest) >= lowest
            # The library reads numbers as Python does, which allows 1_0.
            fault = None if finite and inside and b"_" not in block else _first_fault(block, lines, known)
            if fault:
                raise DataError(f"{path}: {fault}")
            if dropped.size:
                lowest, width = min(lowest, X.indices.min(initial=1)), max(width, X.shape[1])
                X = _without(X, dropped)
            yield X, pd.Series(y) if targets else None
            lines += block.count(b"\n")
    unknown = dropped[(dropped < lowest) | (dropped >= width)]
    if unknown.size:
        last = max(width - 1, lowest)
        raise DataError(f"{path}: dataset.drop: no column has the index {unknown[0]}; there are {lowest} to {last}")
    if dropped.size:
        chunks.check_enough(path, width - lowest, dropped.size)


def _without(X: Any, dropped: np.ndarray) -> Any:
    """Return sparse rows without some columns; others move to the left, but none to index 0."""
    from scipy.sparse import csr_matrix

    kept, moving = ~np.isin(X.indices, dropped), dropped[dropped > 0]
    indices = X.indices[kept]
    starts = np.concatenate([[0], np.cumsum(kept)])[X.indptr].astype(X.indptr.dtype)
    shape = X.shape[0], X.shape[1] - np.count_nonzero(moving < X.shape[1])
    rows = csr_matrix((X.data[kept], indices - np.searchsorted(moving, indices), starts), shape=shape)
    rows.indptr = starts  # the constructor may choose another type, on which the digest depends
    return rows


def _whole_lines(file: BinaryIO) -> Iterator[bytes]:
    rest = b""
    while block := file.read(_BLOCK):
        whole, end, rest = (rest + block).rpartition(b"\n")
        if end:
            yield whole + end
    if rest:
        yield rest


def _first_fault(block: bytes, lines: int, known: tuple[int, int] | None) -> str | None:
    """Return what is wrong with the first bad line of a block, which begins after a number of lines."""
    for number, line in enumerate(block.split(b"\n"), start=lines + 1):
        fault = _fault([field.decode(errors="replace") for field in line.split(b"#")[0].split()], known)
        if fault is not None:
            return f"line {number}: {fault}"
    return None


def _fault(fields: list[str], known: tuple[int, int] | None) -> str | None:
    last = -1
    for position, field in enumerate(fields):
        index, colon, value = field.partition(":")
        if position == 0:
            index, value = "0", field
        elif index == "qid" and value.removeprefix("-").isdecimal():
            continue
        elif not colon or not (index.isascii() and index.isdigit()):
            return f"{quoted(field)} is not index:value"
        elif not _is_index(index):
            return f"index {quoted(index)} is too large: the largest possible is {_MOST}"
        elif int(index) <= last:
            return f"index {index} follows {last}: indices must increase"
        elif known is not None and not known[0] <= int(index) <= known[1]:
            why = ": write this file with indices from 1, too" if int(index) == 0 else ""
            return f"index {index} is not among {known[0]} to {known[1]}, the indices that were learned from{why}"
        else:
            last = int(index)
        if not chunks.is_number(value) or not np.isfinite(float(value)):
            return f"{'target ' if position == 0 else ''}{quoted(value)} is not a finite number"
    return None


def _is_index(text: str) -> bool:
    """Return whether text is a whole number that an index may be."""
    return text.isascii() and text.isdigit() and len(text.lstrip("0")) <= len(str(_MOST)) and int(text) <= _MOST
