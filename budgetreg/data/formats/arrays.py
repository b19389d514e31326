"""Arrays ``X`` and ``y`` as NumPy saves them: in one NPZ file, or in a folder as ``X.npy`` and ``y.npy``.

``X.npy`` in a folder is mapped and never copied, unless values may be missing.
"""

import math
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np

from budgetreg.data.formats.chunks import (
    IN_MEMORY,
    STORED,
    ChunkedTable,
    check_finite,
    damage_reported,
    rows_per_chunk,
    shown,
)
from budgetreg.errors import DataError, nearest

if TYPE_CHECKING:
    import pandas as pd

_Open = Callable[[str], AbstractContextManager[BinaryIO]]  # opens the NPY file of an array, given its name


def open_npz(path: Path, target: str | None, missing: bool = False) -> ChunkedTable:
    """Open an NPZ file with arrays ``X`` of shape (n, d) and ``y`` of shape (n,).

    Parameters
    ----------
    path : Path
        The file.
    target : str or None
        Array of the targets; None: ``y``; `NO_TARGET`: none.
    missing : bool
        Whether attributes may be missing: NaN.

    Raises
    ------
    DataError
        If it has no such arrays.
    """
    if not zipfile.is_zipfile(path):
        raise DataError(f"{path} is {'empty' if path.stat().st_size == 0 else 'not an NPZ file of numpy.savez'}")
    with zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
    return _table(path, names, target, partial(_member, path), missing)


@contextmanager
def _member(path: Path, name: str) -> Iterator[BinaryIO]:
    with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as file:
        yield cast(BinaryIO, file)


def open_folder(path: Path, target: str | None, missing: bool = False) -> ChunkedTable:
    """Open a folder with ``X.npy`` and ``y.npy``; parameters as for `open_npz`.

    Raises
    ------
    DataError
        If it has no such arrays.
    """
    names = sorted(file.stem for file in path.glob("*.npy"))
    return _table(path, names, target, lambda name: (path / f"{name}.npy").open("rb"), missing)


@dataclass(frozen=True)
class _Header:
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def _table(path: Path, names: list[str], target: str | None, open_array: _Open, missing: bool) -> ChunkedTable:
    name = "y" if target is None else target
    for wanted in filter(None, ("X", name)):
        if wanted not in names:
            raise DataError(f"{path}: no array {wanted!r}{nearest(wanted, names)}; arrays: {shown(names)}")
    with damage_reported(path, *_DAMAGE):
        X = _header(open_array, "X")
        y = _header(open_array, name) if name else _Header(X.shape[:1], False, np.dtype(float))
    if len(X.shape) != 2 or y.shape != X.shape[:1]:
        raise DataError(f"{path}: X has shape {X.shape} and {name} {y.shape}; (n, d) and (n,) are needed")
    if X.shape[0] == 0 or X.shape[1] < 2:
        raise DataError(f"{path}: X has shape {X.shape}; at least one row and two attributes are needed")
    if X.dtype.kind not in "buif" or y.dtype.kind not in "buifSU":
        raise DataError(f"{path}: X holds {X.dtype} and {name} {y.dtype}; numbers (or text in {name}) are needed")
    in_order = not X.fortran
    if not in_order and X.nbytes > IN_MEMORY:
        raise DataError(f"{path}: X is in Fortran order and too large for memory: save np.ascontiguousarray(X)")
    mapped = None
    if path.is_dir() and in_order and X.dtype in STORED and X.dtype.isnative and not missing:
        with damage_reported(path / "X.npy", ValueError):
            mapped = np.load(path / "X.npy", mmap_mode="r")
    return ChunkedTable(name, X.nbytes, _chunks(path, X, name, open_array, missing), mapped, missing=missing)


_DAMAGE = (ValueError, EOFError, zipfile.BadZipFile, zlib.error)


def _header(open_array: _Open, name: str) -> _Header:
    with open_array(name) as file:
        return _read_header(file)


def _read_header(file: BinaryIO) -> _Header:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return _Header(*read(file))


def _chunks(
    path: Path, header: _Header, name: str, open_array: _Open, missing: bool
) -> Iterator[tuple[np.ndarray, "pd.Series[Any] | None"]]:
    import pandas as pd  # here, because it is slow to import and other kinds of data do without

    n, d = header.shape
    step = n if header.fortran else rows_per_chunk(d)
    targets = None
    with damage_reported(path, *_DAMAGE):
        if name:
            with open_array(name) as file:
                y = np.lib.format.read_array(file, allow_pickle=False)
            targets = pd.Series(y.astype(str) if y.dtype.kind == "S" else y)
        with open_array("X") as file:
            _read_header(file)
            for start in range(0, n, step):
                r = min(step, n - start)
                content = file.read(r * d * header.dtype.itemsize)
                X = np.frombuffer(content, header.dtype).reshape((r, d), order="F" if header.fortran else "C")
                stored = X.dtype if X.dtype in STORED and X.dtype.isnative else np.float64
                X = np.ascontiguousarray(X, dtype=stored)
                check_finite(path, X, missing, start)
                yield X, None if targets is None else targets[start : start + r]
            file.read(1)  # past the end, where a ZIP file's checksum is compared
