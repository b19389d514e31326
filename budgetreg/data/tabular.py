"""A user's table, in one file or a folder of arrays."""

import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from budgetreg.config.options import Option, one_of
from budgetreg.data.attributes import LEFT_OUT, SCALING, unit
from budgetreg.data.cache import cache_root, ensure
from budgetreg.data.dataset import Dataset, positions, required
from budgetreg.data.formats import arrays, chunks, delimited, libsvm, parquet
from budgetreg.data.formats.chunks import NO_TARGET, reading, shown
from budgetreg.data.kind import RANDOM, DatasetKind, Source
from budgetreg.data.prepared import Prepared, from_folder, in_memory, into_folder
from budgetreg.errors import ConfigError, DataError
from budgetreg.files.paths import at_home, regular

Opener = Callable[..., chunks.ChunkedTable]
"""Opens a path, given the target and, optionally, whether attributes may be missing and which columns are left out."""

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

_TEXT = (delimited.open_csv, libsvm.open_libsvm)  # may be compressed
_LAYOUT_VERSION = 6  # of the cached arrays; part of their address
_TABLE = "table"  # the folder of the arrays in the folder of the cache
_HINT = "with dataset.missing=unavailable such cells are allowed, and cannot be bought"
_PLAIN = re.compile(r"[A-Za-z_]\w{0,40}")  # names that a shell and Hydra's lists take as they are
_CONSTANT = "{}: all {} targets are {:g}: there is nothing to predict; dataset.target names another column"


def opener(path: Path) -> Opener | None:
    """Return the function that opens a file, or a folder of arrays; None if its name has no known ending."""
    return arrays.open_arrays if os.path.isdir(path) else FORMATS.get(Path(_suffix(path).lower()).stem)


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
    """

    path: str
    target: str | None
    scale: str
    stamp: tuple[int, ...]
    missing: str | None = None
    drop: tuple[str, ...] = ()

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
                table = open_table(path, self.target, self.missing == "unavailable", self.drop)
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
    """Read ``dataset.path``, ``target``, ``scale``, ``missing`` and ``drop``.

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
        return File(str(path), target, scale, _stamp(path, target), options.get("missing"), drop)


def _identifier_note(data: Dataset, suspects: Sequence[int]) -> tuple[str, ...]:
    """Return a note on attributes that look like identifiers; none if there are none."""
    if not suspects:
        return ()
    names, numbers = [data.label(at) for at in suspects], positions(data.X.shape[1], data.dropped)
    words = [data.names[at] if data.names and _usable(data.names[at]) else str(numbers[at] + 1) for at in suspects]
    looks = "attribute {} looks like an identifier" if len(names) == 1 else "attributes {} look like identifiers"
    them = "it" if len(names) == 1 else "them"
    return (f"{looks.format(shown(names))} of the rows: dataset.drop=[{','.join(words)}] leaves {them} out",)


def _usable(name: str) -> bool:
    return _PLAIN.fullmatch(name) is not None and name.lower() not in ("true", "false", "null", "nan", "inf")


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
            "path": Option("the path"),
            "target": Option("the target"),
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
