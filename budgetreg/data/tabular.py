"""A user's table, in one file or a folder of arrays."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from budgetreg.config.options import Option
from budgetreg.config.requirements import one_of
from budgetreg.data.cache import cache_root, ensure
from budgetreg.data.dataset import Dataset, required
from budgetreg.data.formats import FORMATS, opener, source, suffix
from budgetreg.data.formats.source import COMPRESSIONS, NO_TARGET, EmptyCellError
from budgetreg.data.kind import RANDOM, DatasetKind, Source
from budgetreg.data.prepared import FACTS, Prepared, from_folder, in_memory, into_folder
from budgetreg.data.scaling import SCALING, unit
from budgetreg.data.seals import is_intact, unsealed
from budgetreg.errors import ConfigError, DataError

_LAYOUT_VERSION = 3  # of the cached arrays; part of their address
_TABLE = "table"  # the folder in that of the cache in which they lie
_MISSING = ("refuse", "unavailable")
_HINT = "dataset.missing=unavailable learns from such a table, as if these cells could not be bought"
_CONSTANT = "{}: all {} targets are {:g}, so that there is nothing to predict (dataset.target names another column)"


@dataclass(frozen=True)
class File:
    """A user's table.

    Parameters
    ----------
    path : str
        File of one of the `FORMATS`, or folder with ``X.npy`` and ``y.npy``.
    target : str or None
        Column (CSV, Parquet; None: the last) or array (NPZ, folder; None: ``y``) to predict; `NO_TARGET`: nothing is.
    scale : {"max_abs", "none", "pilot", "ranges"}
        Whether each attribute is divided by its largest absolute value.
    stamp : tuple of int
        Times of the last change and sizes, so that a changed file counts as another one.
    missing : {"refuse", "unavailable"}, or None
        What becomes of attributes without a value; None: they are refused, and nobody could choose otherwise.
    """

    path: str
    target: str | None
    scale: str
    stamp: tuple[int, ...]
    missing: str | None = None

    @property
    def name(self) -> str:
        """The file's name without what tells its format."""
        path = Path(self.path)
        return path.name.removesuffix(suffix(path))

    def load(self) -> Dataset:
        """Read the file, or map what was prepared from it before; there is no official split.

        Tables of more than `source.IN_MEMORY` bytes are converted once, into the cache. A target with exactly two
        values becomes -1 and +1 in their sorted order.

        Raises
        ------
        DataError
            If the file is missing, or does not hold finite numbers and one target.
        """
        table = self._prepared()
        scale, notes = unit(self.scale, table.largest)
        constant = (table.y == table.y[0]).all()
        return Dataset(
            self.name, table.X, table.y, scale, None, table.two_valued, table.notes + notes, table.digest,
            unpredictable=_CONSTANT.format(self.path, len(table.y), table.y[0]) if constant else "",
            names=table.names, target=table.target, available=table.available,
        )  # fmt: skip

    def _prepared(self) -> Prepared:
        path = Path(self.path)
        folder = self._cache_folder()
        mapped = path / "X.npy"
        table = from_folder(folder, mapped)
        if table is not None:
            return table
        open_table = opener(path)
        assert open_table is not None
        try:
            opened = open_table(path, self.target, self.missing == "unavailable")
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror or error}") from error
        try:
            if opened.size <= source.IN_MEMORY:
                return in_memory(opened, path)
            ensure(
                folder,
                lambda prepared: from_folder(prepared, mapped) is not None,
                lambda temporary: into_folder(opened, path, temporary, self._record()),
            )
        except EmptyCellError as error:
            raise DataError(f"{error} ({_HINT})" if self.missing else str(error)) from error
        table = from_folder(folder, mapped)
        assert table is not None
        return table

    def _record(self) -> dict[str, Any]:
        """Return what decides the folder of the cache, by which `unused_caches` finds its source again."""
        # The stamp is of what the user named, which is nothing where a learner needs no target.
        target = None if self.target == NO_TARGET else self.target
        return {"path": str(Path(self.path).resolve()), "target": target, "stamp": list(self.stamp)}

    def _cache_folder(self) -> Path:
        identity: tuple[Any, ...] = (_LAYOUT_VERSION, str(Path(self.path).resolve()), self.target, self.stamp)
        if self.missing == "unavailable":
            identity += (self.missing,)
        return cache_root() / f"file-{hashlib.sha256(repr(identity).encode()).hexdigest()[:16]}" / _TABLE


def parse_file(options: Mapping[str, Any]) -> File:
    """Read ``dataset.path``, ``target``, ``scale`` and ``missing``.

    Raises
    ------
    ConfigError
        If the path is not set, or the format is not supported.
    DataError
        If there is no such file.
    """
    path = Path(str(required(options, "path"))).expanduser()
    scale = required(options, "scale")
    target = options.get("target")
    target = None if target is None else str(target)
    if path.is_dir() and not (path / "X.npy").exists():
        raise DataError(f"{path} is a folder without X.npy (dataset.path)")
    if opener(path) is None:
        raise ConfigError(
            f"dataset.path must end in {', '.join(FORMATS)} (text also compressed: {', '.join(COMPRESSIONS)}), or be a "
            f"folder with X.npy and y.npy, not {path.name!r}"
        )
    try:
        return File(str(path), target, scale, _stamp(path, target), options.get("missing"))
    except OSError as error:
        raise DataError(f"cannot read {error.filename}: {error.strerror} (dataset.path)") from error


def unused_caches() -> dict[Path, str]:
    """Return the folders of the cache that are there and that no run maps, and why."""
    found = {folder: _why_unused(folder) for folder in sorted(cache_root().glob("file-*")) if folder.is_dir()}
    return {folder: why for folder, why in found.items() if why}


def _why_unused(folder: Path) -> str:
    """Return why a folder of the cache has no source any more; empty if it has one, or none is recorded."""
    facts = folder / _TABLE / FACTS
    if not facts.exists():
        return ""
    if not is_intact(facts):
        return "arrays of an earlier layout, or damaged"
    told = json.loads(unsealed(facts)).get("source")
    if told is None:
        return ""
    path = Path(told["path"])
    try:
        return "" if list(_stamp(path, told["target"])) == told["stamp"] else f"{path} has changed since"
    except OSError:
        return f"{path} is gone"


def _stamp(path: Path, target: str | None) -> tuple[int, ...]:
    """Return the times of the last change and the sizes of a file, or of the arrays of a folder."""
    files = [path]
    if path.is_dir():
        files = [path / "X.npy", path / f"{target or 'y'}.npy"]
        if not target and not files[1].exists():
            files.pop()  # only a regression learner misses it
    return tuple(number for file in files for number in (file.stat().st_mtime_ns, file.stat().st_size))


def _unlabelled(source: Source) -> Source:
    """Take all columns of a file for attributes, unless one is named as the target."""
    return replace(source, target=NO_TARGET) if isinstance(source, File) and source.target is None else source


KINDS = (
    DatasetKind(
        name="file",
        parse=parse_file,
        options={
            "path": Option("the path"),
            "target": Option("the target"),
            **SCALING,
            "missing": Option("what becomes of missing values", one_of(*_MISSING), default="refuse"),
        },
        splits=(RANDOM,),
        own=True,
        paths=("path", "ranges"),
        unlabelled=_unlabelled,
    ),
)
