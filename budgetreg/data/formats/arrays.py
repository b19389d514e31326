"""Arrays ``X`` and ``y`` as NumPy saves them: in one NPZ file, or in a folder as ``X.npy`` and ``y.npy``.

``X.npy`` in a folder is mapped and never copied, unless values may be missing.
"""

import math
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from budgetreg.data.formats import chunks
from budgetreg.data.formats.chunks import IN_MEMORY
from budgetreg.data.npz import DAMAGE, Header, HoldsObjects, members, read_array, read_header
from budgetreg.errors import DataError, nearest


def open_arrays(path: Path, target: str | None, missing: bool = False, drop: Sequence[str] = ()) -> chunks.ChunkedTable:
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
        with chunks.damage_reported(path, *DAMAGE):
            folder = zipfile.Path(path)
            sizes = {name: info.file_size for name, info in members(folder.root).items()}
        chunks.check_expansion(path, path.stat().st_size, max(sizes.values(), default=0))
    name = "y" if target is None else target
    for wanted in filter(None, ("X", name)):
        if wanted not in sizes:
            raise DataError(f"{path}: no array {wanted!r}{nearest(wanted, sizes)}; arrays: {chunks.shown(list(sizes))}")
    with chunks.damage_reported(path, *DAMAGE):
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
    dropped = chunks.dropped(drop, (), shape[1], name, path)
    size = math.prod(shape) * dtype.itemsize
    if fortran and size > IN_MEMORY:
        raise DataError(f"{path}: X is in Fortran order and too large for memory: save np.ascontiguousarray(X)")
    mapped = None
    if path.is_dir() and not fortran and _stored(dtype) == dtype and not missing and not dropped:
        with chunks.damage_reported(path / "X.npy", ValueError):
            mapped = np.load(path / "X.npy", mmap_mode="r")
    rows = _chunks(path, folder, name, sizes, missing, list(dropped))
    return chunks.ChunkedTable(path, name, size, rows, mapped, missing=missing, d=shape[1], dropped=dropped)


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
    return dtype if dtype in chunks.STORED and dtype.isnative else np.dtype(np.float64)


def _converted(array: np.ndarray) -> np.ndarray:
    """Return numbers as they are stored; what is too large for that becomes infinite, and is reported as such."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=_stored(array.dtype))


def _chunks(
    path: Path, folder: Path | zipfile.Path, name: str, sizes: Mapping[str, int], missing: bool, dropped: list[int]
) -> chunks.Chunks:
    import pandas as pd  # here, because it is slow to import and other kinds of data do without

    targets = None
    with chunks.damage_reported(path, *DAMAGE):
        if name:
            with (folder / f"{name}.npy").open("rb") as file:
                y = read_array(file, sizes[name])
            targets = pd.Series(y.astype(str) if y.dtype.kind in "SU" else _converted(y))
        with (folder / "X.npy").open("rb") as file:
            (n, d), fortran, dtype = read_header(file, sizes["X"])
            numbers = np.delete(np.arange(1, d + 1), dropped).tolist()
            step = n if fortran else chunks.rows_per_chunk(d)
            for start in range(0, n, step):
                r = min(step, n - start)
                content = file.read(r * d * dtype.itemsize)
                X = np.frombuffer(content, dtype).reshape((r, d), order="F" if fortran else "C")
                X = _converted(np.delete(X, dropped, axis=1) if dropped else X)
                chunks.check_finite(path, X, missing, start, numbers)
                yield X, None if targets is None else targets[start : start + r]
            file.read(1)  # past the end, where a ZIP file's checksum is compared
