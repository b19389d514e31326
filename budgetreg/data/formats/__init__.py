"""File formats, by how a file's name ends."""

from collections.abc import Callable, Mapping
from pathlib import Path

from budgetreg.data.formats.arrays import open_folder, open_npz
from budgetreg.data.formats.delimited import open_csv
from budgetreg.data.formats.libsvm import open_libsvm
from budgetreg.data.formats.parquet import open_parquet
from budgetreg.data.formats.source import COMPRESSIONS, Source, SparseRows

__all__ = ["FORMATS", "Source", "SparseRows", "opener", "suffix"]

Opener = Callable[..., Source]
"""Is given a path, the target and, optionally, whether attributes may be missing."""

FORMATS: Mapping[str, Opener] = {
    ".csv": open_csv,
    ".tsv": open_csv,
    ".npz": open_npz,
    ".parquet": open_parquet,
    ".libsvm": open_libsvm,
    ".svm": open_libsvm,
    ".svmlight": open_libsvm,
}
_TEXT = (open_csv, open_libsvm)  # which may be compressed


def opener(path: Path) -> Opener | None:
    """Return what opens a file, or a folder of arrays; None if its name tells no format."""
    return open_folder if path.is_dir() else FORMATS.get(Path(suffix(path).lower()).stem)


def suffix(path: Path) -> str:
    """Return the ending of a file's name that tells its format, with that of a compression if the format is text."""
    inner = Path(path.stem).suffix
    if path.suffix.lower() in COMPRESSIONS and FORMATS.get(inner.lower()) in _TEXT:
        return inner + path.suffix
    return path.suffix
