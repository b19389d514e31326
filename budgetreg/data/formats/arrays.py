"""Arrays ``X`` and ``y`` as NumPy saves them: in one NPZ file, or in a folder as ``X.npy`` and ``y.npy``.

``X.npy`` in a folder is mapped and never copied, unless values may be missing.
"""

import math
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np

from budgetreg.data.formats import chunks
from budgetreg.data.formats.chunks import IN_MEMORY
from budgetreg.errors import DataError, nearest

_DAMAGE = (ValueError, EOFError, zipfile.BadZipFile, zlib.error)


def open_arrays(path: Path, target: str | None, missing: bool = False) -> chunks.ChunkedTable:
    """Open a folder or an NPZ file with arrays ``X`` of shape (n, d) and ``y`` of shape (n,).

    Parameters
    ----------
    path : Path
        The folder or file.
    target : str or None
        Array of the targets; None: ``y``; `NO_TARGET`: none.
    missing : bool
        Whether attributes may be missing: NaN.

    Raises
    ------
    DataError
        If it has no such arrays.
    """
    if not path.is_dir() and not zipfile.is_zipfile(path):
        raise DataError(f"{path} is {'empty' if path.stat().st_size == 0 else 'not an NPZ file of numpy.savez'}")
    if path.is_dir():
        folder: Path | zipfile.Path = path
        names = sorted(file.stem for file in path.glob("*.npy") if file.is_file())
    else:
        folder = zipfile.Path(path)
        names = [name.removesuffix(".npy") for name in folder.root.namelist()]
    name = "y" if target is None else target
    for wanted in filter(None, ("X", name)):
        if wanted not in names:
            raise DataError(f"{path}: no array {wanted!r}{nearest(wanted, names)}; arrays: {chunks.shown(names)}")
    with chunks.damage_reported(path, *_DAMAGE):
        with (folder / "X.npy").open("rb") as file:
            shape, fortran, dtype = _header(file)
        y_shape, y_dtype = shape[:1], np.dtype(float)
        if name:
            with (folder / f"{name}.npy").open("rb") as file:
                y_shape, _, y_dtype = _header(file)
    if len(shape) != 2 or y_shape != shape[:1]:
        raise DataError(f"{path}: X has shape {shape} and {name} {y_shape}; (n, d) and (n,) are needed")
    if shape[0] == 0 or shape[1] < 2:
        raise DataError(f"{path}: X has shape {shape}; at least one row and two attributes are needed")
    if dtype.kind not in "buif" or y_dtype.kind not in "buifSU":
        raise DataError(f"{path}: X holds {dtype} and {name} {y_dtype}; numbers (or text in {name}) are needed")
    size = math.prod(shape) * dtype.itemsize
    if fortran and size > IN_MEMORY:
        raise DataError(f"{path}: X is in Fortran order and too large for memory: save np.ascontiguousarray(X)")
    mapped = None
    if path.is_dir() and not fortran and _stored(dtype) == dtype and not missing:
        with chunks.damage_reported(path / "X.npy", ValueError):
            mapped = np.load(path / "X.npy", mmap_mode="r")
    return chunks.ChunkedTable(path, name, size, _chunks(path, folder, name, missing), mapped, missing=missing)


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return an array's shape, whether it is in Fortran order, and its type."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read(file)


def _stored(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype if dtype in chunks.STORED and dtype.isnative else np.dtype(np.float64)


def _chunks(path: Path, folder: Path | zipfile.Path, name: str, missing: bool) -> chunks.Chunks:
    import pandas as pd  # here, because it is slow to import and other kinds of data do without

    targets = None
    with chunks.damage_reported(path, *_DAMAGE):
        if name:
            with (folder / f"{name}.npy").open("rb") as file:
                y = np.lib.format.read_array(file, allow_pickle=False)
            targets = pd.Series(y.astype(str) if y.dtype.kind == "S" else y)
        with (folder / "X.npy").open("rb") as file:
            (n, d), fortran, dtype = _header(file)
            step = n if fortran else chunks.rows_per_chunk(d)
            for start in range(0, n, step):
                r = min(step, n - start)
                content = file.read(r * d * dtype.itemsize)
                X = np.frombuffer(content, dtype).reshape((r, d), order="F" if fortran else "C")
                X = np.ascontiguousarray(X, dtype=_stored(dtype))
                chunks.check_finite(path, X, missing, start)
                yield X, None if targets is None else targets[start : start + r]
            file.read(1)  # past the end, where a ZIP file's checksum is compared
