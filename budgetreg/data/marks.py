"""What the first bytes of a file say that it is, whatever its name says."""

import re
import zipfile
from pathlib import Path

from budgetreg.common.errors import DataError
from budgetreg.data.formats import COMPRESSIONS

_MARKS = (  # first bytes, what they begin, and the ending of its name, if it can be read
    (rb"PAR1\x15", "a Parquet file", ".parquet"),
    (rb"PK\x03\x04", "an NPZ file", ".npz"),
    (rb"\x1f\x8b", "a file compressed with gzip", ".gz"),
    (rb"BZh[1-9]1AY&SY", "a file compressed with bzip2", ".bz2"),
    (rb"\xfd7zXZ\0", "a file compressed with xz", ".xz"),
    (rb"SQLite format 3\0", "an SQLite database", ""),
    (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Excel workbook", ""),
    (rb"\x93NUMPY", "a single array of NumPy, and X and y are needed", ""),
)
_LONGEST = 16


def refuse_disguised(path: Path, ending: str, *, is_text: bool) -> None:
    """Refuse a file whose first bytes are those of another format than its name says.

    Parameters
    ----------
    path : Path
        A regular file.
    ending : str
        The ending of its name, with that of a compression, in small letters.
    is_text : bool
        Whether files with this ending are text, which may be compressed.

    Raises
    ------
    DataError
        With the name that it should have, or what to save it as.
    OSError
        If it cannot be read.
    """
    with path.open("rb") as file:
        beginning = file.read(_LONGEST)
    what, fitting = next(((what, fitting) for mark, what, fitting in _MARKS if re.match(mark, beginning)), ("", ending))
    if fitting == ".npz" != ending and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
        if not any(name.endswith(".npy") for name in names):
            what, fitting = "an Excel workbook" if "xl/workbook.xml" in names else "a ZIP archive", ""
    if not fitting or not ending.endswith(fitting):
        packed = fitting in COMPRESSIONS
        base = path.name if packed and is_text else path.name.removesuffix(path.suffix)
        advice = f"name it {base}{fitting}" if fitting else "save the table as CSV"
        raise DataError(f"{path} looks like {what}: {'unpack it first' if packed and base != path.name else advice}")
