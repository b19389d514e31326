"""Data sets: from a section of the configuration to stored values; it knows nothing of learners and budgets."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from budgetreg.config import extensions
from budgetreg.data.dataset import Dataset
from budgetreg.data.kind import DatasetKind, ExampleSource, Synthetic
from budgetreg.data.prices import BUNDLED, EQUAL, UNIT, Prices, equal_prices, read_prices
from budgetreg.data.ranges import in_ranges, read_ranges
from budgetreg.data.scaling import PILOT, RANGES
from budgetreg.errors import ConfigError

__all__ = ["Dataset", "DatasetConfig", "Kind", "Prices", "kinds", "load", "located", "prices_of"]


@cache
def kinds() -> Mapping[str, DatasetKind]:
    """Return all kinds of data by name: ours, then those that other packages bring.

    Raises
    ------
    ConfigError
        If what another package brings cannot be loaded.
    """
    return extensions.declared(sys.modules[__name__], "KINDS", extensions.DATASETS, DatasetKind)


@dataclass(frozen=True)
class DatasetConfig:
    """A data set, as named in ``conf/dataset/<name>.yaml``; `options` are what is particular to its kind.

    `costs` is its price list and `unit` what that is in, if it has one.
    """

    name: str
    kind: str
    center: str
    split: str
    test_fraction: float
    options: Mapping[str, Any]
    costs: str | None = None
    unit: str | None = None

    @property
    def scaled_by_pilot(self) -> bool:
        """Whether attributes are divided by their standard deviations in the pilot."""
        return self.options.get("scale") == PILOT

    @property
    def scaled_by_ranges(self) -> bool:
        """Whether attributes are counted from the middles of the ranges that a user knows, in halves of them."""
        return self.options.get("scale") == RANGES


def load(config: DatasetConfig, seed: int, repetition: int, *, targets: bool = True) -> Dataset:
    """Return the data set of a configuration; calling it again is cheap.

    Parameters
    ----------
    config : DatasetConfig
        Kind and options.
    seed, repetition : int
        Identity of the draw of a synthetic data set (each repetition has its own); real data ignore them.
    targets : bool
        Whether a file's last column (or its array ``y``) is the target unless ``dataset.target`` names another; if
        not, all that is not named is an attribute.

    Raises
    ------
    ConfigError
        If an option is impossible.
    DataError
        If the data are missing or unusable.
    """
    if config.kind not in kinds():
        raise ConfigError(f"dataset.kind must be one of {', '.join(kinds())}, not {config.kind!r}")
    kind = kinds()[config.kind]
    source = kind.parse(config.options)
    if not targets:
        source = kind.unlabelled(source)
    data = _drawn(source, seed, repetition) if isinstance(source, Synthetic) else _loaded(source)
    if not config.scaled_by_ranges:
        return data
    return in_ranges(data, read_ranges(Path(config.options["ranges"]).expanduser(), data.names, data.X.shape[1]))


def located(config: DatasetConfig) -> DatasetConfig:
    """Return a configuration with absolute paths, which mean the same to a process that runs in another folder."""
    paths = {
        key: str(Path(str(config.options[key])).expanduser().absolute())
        for key in kinds()[config.kind].paths
        if config.options[key] is not None
    }
    costs = config.costs
    if costs not in (None, BUNDLED, EQUAL):
        costs = str(Path(str(costs)).expanduser().absolute())
    return replace(config, options={**config.options, **paths}, costs=costs)


def prices_of(config: DatasetConfig, data: Dataset) -> Prices | None:
    """Return what the attributes of a data set cost; None if nobody says it.

    Raises
    ------
    ConfigError
        If no price list comes with the data, and theirs is asked for.
    DataError
        If the list cannot be used, see `budgetreg.data.prices.read_prices`.
    """
    if config.costs is None:
        return None
    d, unit = data.X.shape[1], config.unit or UNIT
    if config.costs == EQUAL:
        return equal_prices(data.names, d, unit)
    path = kinds()[config.kind].prices(config.options) if config.costs == BUNDLED else Path(config.costs).expanduser()
    if path is None:
        raise ConfigError(f"dataset.costs={BUNDLED}: no price list comes with {data.name}; give a CSV file, or {EQUAL}")
    return read_prices(path, data.names, d, unit)


@lru_cache(maxsize=4)
def _loaded(source: ExampleSource) -> Dataset:
    return source.load()


@lru_cache(maxsize=2)
def _drawn(source: Synthetic, seed: int, repetition: int) -> Dataset:
    return source.draw(seed, repetition)
