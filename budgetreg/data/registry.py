"""The kinds of data: what each declares, and how a section of the configuration becomes a data set."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from budgetreg.common.errors import ConfigError
from budgetreg.common.files import at_home
from budgetreg.config import catalogue
from budgetreg.config.options import FRACTION, NAME, NOTHING, Option, Options, checked, identity_of, one_of, options_of
from budgetreg.data.attributes import BUNDLED, EQUAL, PILOT, RANGES, REVEALED, UNIT, Prices, listed_prices, with_lists
from budgetreg.data.dataset import Dataset

DOMAINS = ("2-ball", "inf-ball")
"""Sets that may be known to contain all attribute vectors: balls of radius 1, with targets of at most 1 in size.

The first is a subset of the second.
"""

RANDOM, OFFICIAL, ALL = "random", "official", "all"
"""The splits: a random test part, the data's own test part, and no test part."""


class ExampleSource(Protocol):
    """Stored examples, which are the same for every seed and repetition."""

    def load(self) -> Dataset:
        """Read or map the examples.

        Raises
        ------
        DataError
            If they are missing or unusable.
        """

    def __hash__(self) -> int:
        """Equal sources have equal hashes, as what was read is cached by source."""


@runtime_checkable
class Distribution(Protocol):
    """A distribution, from which each repetition draws examples of its own.

    Subspace learning needs no test examples where the second moment of the distribution is known.
    """

    def draw(self, seed: int, repetition: int) -> Dataset:
        """Draw target and examples, training part first; they depend on the two numbers alone."""

    def __hash__(self) -> int:
        """Equal distributions have equal hashes, as what was drawn is cached by distribution."""


Source = ExampleSource | Distribution


@dataclass(frozen=True, eq=False, kw_only=True)
class DatasetKind:
    """The declaration of a kind of data.

    Attributes
    ----------
    name : str
        The value of ``dataset.kind``.
    parse : callable
        Turns the options into a source; raises a `ConfigError` or `DataError` if that is impossible.
    options : mapping of str to Option
        The keys below ``dataset`` that only this kind has.
    splits : tuple of str
        The splits into training and test part that it offers; where there is a test part, it can be learned from, too.
    centers : tuple of str
        The ways in which its attributes may be centred.
    tested : bool
        Whether there is a test part; if not, the second moment of the distribution is known.
    own_data : bool
        Whether these are a user's own data, of which only paid values are known.
    domain : str
        One of `DOMAINS`, which contains all attribute vectors that are not centred; empty if none is known to.
    paths : tuple of str
        The options that are paths; relative paths are resolved in the folder of the command.
    prices : callable
        Maps the options to the price list that comes with the data, or to None.
    unlabelled : callable
        Maps a source to the same source without a default target.
    """

    name: str
    parse: Callable[[Mapping[str, Any]], Source]
    options: Options
    splits: tuple[str, ...] = (RANDOM, OFFICIAL)
    centers: tuple[str, ...] = ("none", "revealed", "full")
    tested: bool = True
    own_data: bool = False
    domain: str = ""
    paths: tuple[str, ...] = ()
    prices: Callable[[Mapping[str, Any]], Path | None] = lambda options: None
    unlabelled: Callable[[Source], Source] = lambda source: source

    @classmethod
    def of(cls, name: str, source: type, **properties: Any) -> "DatasetKind":
        """Declare a kind whose options are the fields of a frozen dataclass, which is its source.

        Parameters
        ----------
        name : str
            The value of ``dataset.kind``.
        source : type
            The dataclass; its fields are made with `budgetreg.config.options.option`.
        **properties
            The other attributes of `DatasetKind`.
        """
        options = options_of(source)

        def parse(values: Mapping[str, Any]) -> Source:
            checked(dict(values), options, "dataset")
            return source(**values)

        return cls(name=name, parse=parse, options=options, **properties)

    def lies_in(self, domain: str) -> bool:
        """Whether a domain contains all attribute vectors that are not centred."""
        return bool(self.domain) and DOMAINS.index(self.domain) <= DOMAINS.index(domain)

    def all_options(self) -> Options:
        """Return the keys below ``dataset``, first those that all kinds have."""
        return {
            "name": Option("the data set's name"),
            "kind": Option("the kind of data"),
            "center": Option(
                "the centring", one_of(*self.centers) | NOTHING, default="none", null_for_own_data="revealed"
            ),
            "split": Option("the split into training and test part", one_of(*self.splits, *[ALL] * self.tested)),
            "test_fraction": Option("the test part", FRACTION if self.tested else NOTHING),
            "costs": Option("the price list", NAME | NOTHING, default=None),
            "unit": Option("the unit of prices", NAME | NOTHING, default=None, inert=True),
            **self.options,
        }

    def identity(self, section: Mapping[str, Any]) -> dict[str, Any]:
        """Return the part of a checked section ``dataset`` that results depend on."""
        random = self.tested and section["split"] == RANDOM
        return identity_of(self.all_options(), section, () if random else ("test_fraction",))


@lru_cache(maxsize=1)
def kinds() -> Mapping[str, DatasetKind]:
    """Return all kinds of data by name: those of this package, then those that other packages declare.

    Raises
    ------
    ConfigError
        If the declaration of another package cannot be loaded.
    """
    modules = catalogue.modules("budgetreg.data")
    ours: list[DatasetKind] = [kind for module in modules for kind in getattr(module, "KINDS", ())]
    return catalogue.declared(
        ours,
        catalogue.DATASETS,
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
        Data in memory, which replace those that the options name; None on the command line. Their prices are `costs`.
    """

    name: str
    kind: str
    center: str
    split: str
    test_fraction: float
    options: Mapping[str, Any]
    costs: str | Prices | None = None
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
    return with_lists(data, config.options, config.costs, propose=config.own_data and not config.given)


def _read(config: DatasetConfig, seed: int, repetition: int, targets: bool) -> Dataset:
    kind = kinds()[config.kind]
    source = kind.parse(config.options)
    if not targets:
        source = kind.unlabelled(source)
    return _drawn(source, seed, repetition) if isinstance(source, Distribution) else _loaded(source)


def located(config: DatasetConfig) -> DatasetConfig:
    """Return a configuration with absolute paths, for a process that runs in another folder."""
    paths = {
        key: str(at_home(str(config.options[key])).absolute())
        for key in kinds()[config.kind].paths
        if config.options[key] is not None
    }
    costs = config.costs
    if isinstance(costs, str) and costs not in (BUNDLED, EQUAL):
        costs = str(at_home(costs).absolute())
    return replace(config, options={**config.options, **paths}, costs=costs)


def prices_of(config: DatasetConfig, data: Dataset) -> Prices | None:
    """Return the prices of a data set's attributes; None if there are none.

    Raises
    ------
    ConfigError
        If the price list that comes with the data is asked for, and there is none.
    DataError
        If the list cannot be used, see `budgetreg.data.attributes.prices_in`.
    """
    costs = config.costs
    if costs is None or isinstance(costs, Prices):
        return costs
    path = kinds()[config.kind].prices(config.options) if costs == BUNDLED else costs
    if path is None:
        raise ConfigError(f"dataset.costs={BUNDLED}: no price list comes with {data.name}; give a CSV file, or {EQUAL}")
    return listed_prices(data, path, config.unit or UNIT)


@lru_cache(maxsize=4)
def _loaded(source: ExampleSource) -> Dataset:
    return source.load()


@lru_cache(maxsize=2)
def _drawn(source: Distribution, seed: int, repetition: int) -> Dataset:
    return source.draw(seed, repetition)
