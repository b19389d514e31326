"""Declarations of kinds of data, and the protocols of sources that load or draw examples."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from budgetreg.config.options import (
    FRACTION,
    NAME,
    NOTHING,
    Option,
    Options,
    checked,
    identity_of,
    one_of,
    option,
    options_of,
    whole,
)
from budgetreg.data.dataset import Dataset
from budgetreg.streams import generator

DOMAINS = ("2-ball", "inf-ball")
"""Sets that may be known to contain all attribute vectors: balls of radius 1, with targets of at most 1 in size.

The first contains no vector that the second does not contain.
"""

RANDOM, OFFICIAL, ALL = "random", "official", "all"
"""The splits: a random test part, the data's own test part, and no test part."""


@runtime_checkable
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
    """A distribution that examples are drawn from: d attributes, n training and n_test test examples.

    Subspace learning needs no test examples (``n_test = 0``) where the second moment of the distribution is known.
    """

    @property
    def d(self) -> int:
        """Number of attributes."""

    @property
    def n(self) -> int:
        """Number of training examples."""

    @property
    def n_test(self) -> int:
        """Number of test examples."""

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
            "center": Option("the centring", one_of(*self.centers) | NOTHING, default="none", own="revealed"),
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


StreamFactory = Callable[..., np.random.Generator]
"""Returns the random generator of a part of a draw, such as ``"train"``."""

Examples = tuple[np.ndarray, np.ndarray]


def count(what: str) -> Any:
    """Declare a field of a frozen dataclass as an option: the number, at least 1, of something."""
    return option(f"the number of {what}", whole(1))


def short(number: float) -> str:
    """Return a number as it is written in names, where -0.0, 0.0 and 0 are the same."""
    return repr(float(number) + 0.0).removesuffix(".0")


class KeyedDistribution(ABC):
    """A distribution whose random streams are keyed by its name, the seed and the repetition.

    Attributes
    ----------
    key : str
        Begins the keys of its streams.
    d, n, n_test : int
        Numbers of attributes, of training examples and of test examples.
    """

    key: ClassVar[str]
    d: int
    n: int
    n_test: int

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the distribution; it leaves n and n_test out, as more examples keep the earlier ones."""

    def streams(self, seed: int, repetition: int) -> StreamFactory:
        """Return the random streams of a draw."""
        return partial(generator, self.key, seed, self.name, repetition)

    def draw_parts(
        self, seed: int, repetition: int, examples: Callable[[StreamFactory, int], Examples], two_valued: bool = False
    ) -> Dataset:
        """Draw training and test part from separate streams: more examples of one leave the other unchanged.

        Parameters
        ----------
        seed, repetition : int
            Identity of the draw.
        examples : callable
            ``examples(streams, n)``: X of shape (n, d) and y of shape (n,), drawn from the streams of a part.
        two_valued : bool
            Whether every target is -1 or +1.
        """
        streams = self.streams(seed, repetition)
        parts = [examples(partial(streams, part), n) for part, n in (("train", self.n), ("test", self.n_test))]
        X, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return Dataset(self.name, X, y, scale=1.0, n_train=self.n, two_valued=two_valued)
