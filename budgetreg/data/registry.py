"""The kinds of data, and how a section of the configuration becomes a data set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from budgetreg.config import extensions
from budgetreg.data.attributes import (
    BUNDLED,
    EQUAL,
    PILOT,
    RANGES,
    REVEALED,
    UNIT,
    Dropped,
    Prices,
    groups_of_prices,
    in_groups,
    in_ranges,
    read_groups,
    read_prices,
    read_ranges,
)
from budgetreg.data.dataset import Dataset
from budgetreg.data.groups import Groups
from budgetreg.data.kind import ALL, DatasetKind, Distribution, ExampleSource
from budgetreg.errors import ConfigError
from budgetreg.files import at_home

__all__ = ["Dataset", "DatasetConfig", "DatasetKind", "Prices", "kinds", "load", "located", "prices_of"]


@lru_cache(maxsize=1)
def kinds() -> Mapping[str, DatasetKind]:
    """Return all kinds of data by name: those of this package, then those that other packages declare.

    Raises
    ------
    ConfigError
        If the declaration of another package cannot be loaded.
    """
    modules = extensions.modules("budgetreg.data")
    ours: list[DatasetKind] = [kind for module in modules for kind in getattr(module, "KINDS", ())]
    return extensions.declared(
        ours,
        extensions.DATASETS,
        lambda brought: brought.name if isinstance(brought, DatasetKind) else None,
        "a DatasetKind",
    )


@dataclass(frozen=True)
class DatasetConfig:
    """A data set, as named in ``conf/dataset/<name>.yaml``.

    Attributes
    ----------
    name, kind, center, split, test_fraction, costs, unit
        The keys that all kinds of data have.
    options : mapping of str to Any
        The keys that only this kind has.
    given : Dataset or None
        Data in memory, which replace those that the options name; None on the command line.
    """

    name: str
    kind: str
    center: str
    split: str
    test_fraction: float
    options: Mapping[str, Any]
    costs: str | None = None
    unit: str | None = None
    given: Dataset | None = None

    @property
    def own_data(self) -> bool:
        """Whether the data are somebody's own, rather than those of a paper."""
        return kinds()[self.kind].own_data

    @property
    def untested(self) -> bool:
        """Whether all rows are learned from, so that none is left to test on."""
        return self.split == ALL

    @property
    def scaled_by_pilot(self) -> bool:
        """Whether attributes are divided by their standard deviations in the pilot, if there is one."""
        return self.options.get("scale") in (PILOT, REVEALED)

    @property
    def scaled_by_revealed(self) -> bool:
        """Whether learners that store what they see divide it by the standard deviations of all that they have seen."""
        return self.options.get("scale") == REVEALED

    @property
    def scaled_by_ranges(self) -> bool:
        """Whether attributes are centred on the middles of the user's ranges, in units of half a range."""
        return self.options.get("scale") == RANGES


def load(config: DatasetConfig, seed: int, repetition: int, *, targets: bool = True) -> Dataset:
    """Return the data set of a configuration; calling it again is cheap.

    Parameters
    ----------
    config : DatasetConfig
        Kind and options.
    seed, repetition : int
        Identity of the draw of synthetic data (each repetition has its own draw); stored data ignore them.
    targets : bool
        Whether a file's last column (or its array ``y``) is the target unless ``dataset.target`` names another; if
        False, all columns but a target that is named are attributes.

    Raises
    ------
    ConfigError
        If an option is impossible.
    DataError
        If the data are missing or unusable.
    """
    if config.kind not in kinds():
        raise ConfigError(f"dataset.kind must be one of {', '.join(kinds())}, not {config.kind!r}")
    data = config.given or _read(config, seed, repetition, targets)
    groups = _groups_of(config, data)
    if groups is not None:
        data = in_groups(data, groups)
    if not config.scaled_by_ranges:
        return data
    return in_ranges(data, read_ranges(at_home(config.options["ranges"]), *_columns(data)))


def _read(config: DatasetConfig, seed: int, repetition: int, targets: bool) -> Dataset:
    kind = kinds()[config.kind]
    source = kind.parse(config.options)
    if not targets:
        source = kind.unlabelled(source)
    return _drawn(source, seed, repetition) if isinstance(source, Distribution) else _loaded(source)


def _groups_of(config: DatasetConfig, data: Dataset) -> Groups | None:
    """Return the attributes that are bought together, by their own list or by the price list; None if there are none.

    Raises
    ------
    ConfigError
        If both lists have groups.
    DataError
        If a list cannot be used.
    """
    own, costs = config.options.get("groups"), config.costs
    groups = read_groups(at_home(own), *_columns(data)) if own else None
    if costs in (None, BUNDLED, EQUAL) or (own and groups is None):
        return groups
    listed = groups_of_prices(at_home(str(costs)), *_columns(data))
    if listed and groups:
        raise ConfigError(
            f"dataset.groups={own}: {costs} has groups already, in its column group; leave out one of them"
        )
    return listed or groups


def _columns(data: Dataset) -> tuple[Sequence[str], int, Dropped, int]:
    """Return what the lists need to know of the columns, see `read_prices`."""
    return data.names, data.X.shape[1], data.dropped, 1 if data.first is None else data.first


def located(config: DatasetConfig) -> DatasetConfig:
    """Return a configuration with absolute paths, for a process that runs in another folder."""
    paths = {
        key: str(at_home(str(config.options[key])).absolute())
        for key in kinds()[config.kind].paths
        if config.options[key] is not None
    }
    costs = config.costs
    if costs not in (None, BUNDLED, EQUAL):
        costs = str(at_home(str(costs)).absolute())
    return replace(config, options={**config.options, **paths}, costs=costs)


def prices_of(config: DatasetConfig, data: Dataset) -> Prices | None:
    """Return the prices of a data set's attributes; None if there are none.

    Raises
    ------
    ConfigError
        If the price list that comes with the data is asked for, and there is none.
    DataError
        If the list cannot be used, see `budgetreg.data.attributes.read_prices`.
    """
    path: Path | str | None = config.costs
    if path is None:
        return None
    if path == BUNDLED:
        path = kinds()[config.kind].prices(config.options)
        if path is None:
            raise ConfigError(
                f"dataset.costs={BUNDLED}: no price list comes with {data.name}; give a CSV file, or {EQUAL}"
            )
    names, d, dropped, first = _columns(data)
    return read_prices(path, names, d, config.unit or UNIT, dropped, data.groups, first)


@lru_cache(maxsize=4)
def _loaded(source: ExampleSource) -> Dataset:
    return source.load()


@lru_cache(maxsize=2)
def _drawn(source: Distribution, seed: int, repetition: int) -> Dataset:
    return source.draw(seed, repetition)
