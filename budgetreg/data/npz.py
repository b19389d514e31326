"""Arrays in NPY and NPZ files from anywhere: a header is trusted only if the file has the size that it gives.

Otherwise a few damaged bytes could ask for more memory than there is.
"""

import math
import warnings
import zipfile
import zlib
from typing import IO, Any, NamedTuple

import numpy as np

DAMAGE = (ValueError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error)
"""What reading a damaged file may raise, apart from the errors of a disk."""

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
