"""A user's table, in one file or a folder of arrays."""

import hashlib
import os
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from budgetreg.config.composition import pasted
from budgetreg.config.options import WORD, Option, one_of
from budgetreg.data.attributes import LEFT_OUT, SCALING, unit
from budgetreg.data.cache import cache_root, ensure
from budgetreg.data.dataset import Dataset, positions, required
from budgetreg.data.formats import arrays, chunks, delimited, libsvm, parquet
from budgetreg.data.formats.chunks import NO_TARGET, reading, shown
from budgetreg.data.kind import RANDOM, DatasetKind, Source
from budgetreg.data.prepared import Prepared, from_folder, in_memory, into_folder
from budgetreg.errors import ConfigError, DataError
from budgetreg.files import at_home, regular

Opener = Callable[..., chunks.ChunkedTable]
"""Opens a path, given the target and, optionally, whether attributes may be missing and which columns are left out.

That of LIBSVM files also takes the first and the last index.
"""

FORMATS: Mapping[str, Opener] = {
    ".csv": delimited.open_csv,
    ".tsv": delimited.open_csv,
    ".npz": arrays.open_arrays,
    ".parquet": parquet.open_parquet,
    ".libsvm": libsvm.open_libsvm,
    ".svm": libsvm.open_libsvm,
    ".svmlight": libsvm.open_libsvm,
}
"""File formats, by the ending of a file's name."""

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
_LONGEST_MARK = 16
_TEXT = (delimited.open_csv, libsvm.open_libsvm)  # may be compressed
_LAYOUT_VERSION = 7  # of the cached arrays; part of their address
_TABLE = "table"  # the folder of the arrays in the folder of the cache
_HINT = "with dataset.missing=unavailable such cells are allowed, and cannot be bought"
_CONSTANT = "{}: all {} targets are {:g}: there is nothing to predict; dataset.target names another column"


def opener(path: Path) -> Opener | None:
    """Return the function that opens a file, or a folder of arrays; None if its name has no known ending."""
    return arrays.open_arrays if os.path.isdir(path) else FORMATS.get(Path(_suffix(path).lower()).stem)


def refuse_disguised(path: Path) -> None:
    """Refuse a file whose first bytes are those of another format than its name says.

    Raises
    ------
    DataError
        With the name that it should have, or what to save it as.
    OSError
        If it cannot be read.
    """
    regular(path)
    with path.open("rb") as file:
        beginning = file.read(_LONGEST_MARK)
    ending = _suffix(path).lower()
    what, fitting = next(((what, fitting) for mark, what, fitting in _MARKS if re.match(mark, beginning)), ("", ending))
    if fitting == ".npz" != ending and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
        if not any(name.endswith(".npy") for name in names):
            what, fitting = "an Excel workbook" if "xl/workbook.xml" in names else "a ZIP archive", ""
    if not fitting or not ending.endswith(fitting):
        packed = fitting in chunks.COMPRESSIONS
        base = path.name if packed and FORMATS.get(ending) in _TEXT else path.name.removesuffix(path.suffix)
        advice = f"name it {base}{fitting}" if fitting else "save the table as CSV"
        raise DataError(f"{path} looks like {what}: {'unpack it first' if packed and base != path.name else advice}")


def _suffix(path: Path) -> str:
    """Return the ending of a file's name for its format, with that of a compression if the format is text."""
    inner = Path(path.stem).suffix
    if path.suffix.lower() in chunks.COMPRESSIONS and FORMATS.get(inner.lower()) in _TEXT:
        return inner + path.suffix
    return path.suffix


@dataclass(frozen=True)
class File:
    """A user's table.

    Parameters
    ----------
    path : str
        File of one of the `FORMATS`, or folder with ``X.npy`` and ``y.npy``.
    target : str or None
        Column (CSV, Parquet; None: the last) or array (NPZ, folder; None: ``y``) to predict; `NO_TARGET`: none.
    scale : {"max_abs", "none", "pilot", "revealed", "ranges"}
        Whether each attribute is divided by its largest absolute value.
    stamp : tuple of int
        Times of the last change and sizes, so that a changed file is a different one.
    missing : {"refuse", "unavailable"}, or None
        How attributes without a value are handled; None: they are refused, and the message offers no choice.
    drop : tuple of str
        Columns that are no attributes, by name or number from 1; in LIBSVM files, by index.
    indices : (int, int) or None
        The first and the last index of a LIBSVM file's columns, if they are known from another file.
    """

    path: str
    target: str | None
    scale: str
    stamp: tuple[int, ...]
    missing: str | None = None
    drop: tuple[str, ...] = ()
    indices: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        """The file's name without the ending of its format; bytes of it that are no text are escaped."""
        path = Path(self.path)
        return path.name.removesuffix(_suffix(path)).encode(errors="backslashreplace").decode()

    def load(self) -> Dataset:
        """Read the file, or map what was prepared from it before; there is no official split.

        Tables of more than `chunks.IN_MEMORY` bytes are converted once, into the cache. A target with exactly two
        values becomes -1 and +1 in their sorted order.

        Raises
        ------
        DataError
            If the file is missing, or has other values than finite numbers and one target.
        """
        folder = self.cache_folder() / _TABLE
        data, largest, suspects = from_folder(folder) or self._read(folder)
        scale, notes = unit(self.scale, largest)
        notes += _identifier_note(data, suspects) if self.missing else ()
        constant = (data.y == data.y[0]).all()
        unpredictable = _CONSTANT.format(self.path, len(data.y), data.y[0]) if constant else ""
        return replace(data, name=self.name, scale=scale, notes=data.notes + notes, unpredictable=unpredictable)

    def cache_folder(self) -> Path:
        """Return the folder of the cache for this file, target and treatment of missing values."""
        identity = (_LAYOUT_VERSION, *self._source().values())
        return cache_root() / f"file-{hashlib.sha256(repr(identity).encode()).hexdigest()[:16]}"

    def _source(self) -> dict[str, Any]:
        """Return what identifies the prepared arrays; they do not depend on the scale."""
        source = {**asdict(self), "path": str(Path(self.path).resolve()), "missing": self.missing == "unavailable"}
        del source["scale"]
        return source

    def _read(self, folder: Path) -> Prepared:
        """Read the table, through a folder of the cache if it is too large for memory."""
        path = Path(self.path)
        open_table = opener(path)
        assert open_table is not None
        try:
            with reading(path):
                if not path.is_dir():
                    refuse_disguised(path)
                known = {"indices": self.indices} if self.indices else {}
                table = open_table(path, self.target, self.missing == "unavailable", self.drop, **known)
                if table.size <= chunks.IN_MEMORY:
                    return in_memory(table)
                ensure(
                    folder,
                    lambda folder: from_folder(folder) is not None,
                    lambda temporary: into_folder(table, temporary, self._source()),
                )
        except chunks.EmptyCellError as error:
            raise DataError(f"{error} ({_HINT})" if self.missing else str(error)) from error
        prepared = from_folder(folder)
        assert prepared is not None
        return prepared


def parse_file(options: Mapping[str, Any]) -> File:
    """Read ``dataset.path``, ``target``, ``scale``, ``missing`` and ``drop``, and ``indices``, if they are known.

    Raises
    ------
    ConfigError
        If the path is not set, or the format is not supported.
    DataError
        If there is no such file.
    """
    path = at_home(str(required(options, "path")))
    scale = required(options, "scale")
    target = options.get("target")
    target = None if target is None else str(target)
    if os.path.isdir(path) and not (path / "X.npy").exists():
        raise DataError(f"{path} is a folder without X.npy: save the attributes there, or name a file (dataset.path)")
    if opener(path) is None:
        raise ConfigError(
            f"dataset.path must end in {', '.join(FORMATS)} (text also compressed: {', '.join(chunks.COMPRESSIONS)}), "
            f"or be a folder with X.npy and y.npy, not {path.name!r}"
        )
    with reading(path, "dataset.path"):
        drop = tuple(map(str, options.get("drop", ())))
        stamp, missing = _stamp(path, target), options.get("missing")
        return File(str(path), target, scale, stamp, missing, drop, options.get("indices"))


def _identifier_note(data: Dataset, suspects: Sequence[int]) -> tuple[str, ...]:
    """Return a note on attributes that look like identifiers; none if there are none."""
    if not suspects:
        return ()
    names, numbers = [data.label(at) for at in suspects], positions(data.X.shape[1], data.dropped)
    words = [data.names[at] if data.names else str(numbers[at] + 1) for at in suspects]
    looks = "attribute {} looks like an identifier" if len(names) == 1 else "attributes {} look like identifiers"
    them = "it" if len(names) == 1 else "them"
    return (f"{looks.format(shown(names))} of the rows: {pasted('dataset.drop', words)} leaves {them} out",)


def _stamp(path: Path, target: str | None) -> tuple[int, ...]:
    """Return the times of the last change and the sizes of a file, or of the arrays in a folder.

    In a folder, `NO_TARGET` stands for the default target too, which need not exist.
    """
    files = [path]
    if path.is_dir():
        files = [path / "X.npy", path / f"{target or 'y'}.npy"]
        if not target and not files[1].exists():
            files.pop()  # only regression learners need it
    return tuple(number for status in map(regular, files) for number in (status.st_ctime_ns, status.st_size))


def _unlabelled(source: Source) -> Source:
    """Return a file without a target, unless the user named one."""
    return replace(source, target=NO_TARGET) if isinstance(source, File) and source.target is None else source


KINDS = (
    DatasetKind(
        name="file",
        parse=parse_file,
        options={
            "path": Option("the path", WORD),
            "target": Option("the target", WORD),
            **SCALING,
            "missing": Option("the treatment of missing values", one_of("refuse", "unavailable"), default="refuse"),
            **LEFT_OUT,
        },
        splits=(RANDOM,),
        own_data=True,
        paths=("path", "ranges", "groups"),
        unlabelled=_unlabelled,
    ),
)
