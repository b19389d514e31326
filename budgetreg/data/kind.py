"""What a kind of data declares of itself: its options, and what its examples are known to be."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from budgetreg.config.options import Option, Options, identity_of
from budgetreg.config.requirements import FRACTION, NAME, NOTHING, one_of
from budgetreg.data.dataset import Dataset

DOMAINS = ("2-ball", "inf-ball")
"""Where attributes may be known to lie: of unit radius, with targets of at most 1; the one is in the other."""

RANDOM, OFFICIAL = "random", "official"


@runtime_checkable
class ExampleSource(Protocol):
    """Data that are there, the same for every seed and repetition."""

    def load(self) -> Dataset:
        """Read or map them.

        Raises
        ------
        DataError
            If they are missing or unusable.
        """

    def __hash__(self) -> int:
        """Equal ones are one, as what was read is remembered."""


@runtime_checkable
class Synthetic(Protocol):
    """A law that examples are drawn from: d attributes, n training and n_test test examples.

    Where its second moment is known, subspaces need no test examples: n_test may be 0.
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
        """Draw target and examples, training part first, which only the two numbers decide."""

    def __hash__(self) -> int:
        """Equal laws are one, as drawing is remembered."""


Source = ExampleSource | Synthetic


@dataclass(frozen=True, eq=False, kw_only=True)
class DatasetKind:
    """A kind of data, as it declares itself.

    Attributes
    ----------
    name : str
        The value of ``dataset.kind``.
    parse : callable
        From the options to what is loaded or drawn; raises a `ConfigError` or `DataError` if that is impossible.
    options : mapping of str to Option
        Its own keys below ``dataset``.
    splits : tuple of str
        The splits into training and test part that it offers.
    centers : tuple of str
        How its attributes may be centred.
    tested : bool
        Whether there is a test part; if not, the second moment of the law is known.
    own : bool
        Whether these are somebody's own data, of which nothing is known beforehand but what was paid for.
    domain : str
        Where attributes that are not centred surely lie, one of `DOMAINS`; empty if that is not known.
    paths : tuple of str
        Those of its options that are paths: relative ones mean something in the folder of the command alone.
    prices : callable
        From the options to the price list that comes with the data; None if none does.
    unlabelled : callable
        From a source to that whose targets nobody asks for.
    """

    name: str
    parse: Callable[[Mapping[str, Any]], Source]
    options: Options
    splits: tuple[str, ...] = (RANDOM, OFFICIAL)
    centers: tuple[str, ...] = ("none", "revealed", "full")
    tested: bool = True
    own: bool = False
    domain: str = ""
    paths: tuple[str, ...] = ()
    prices: Callable[[Mapping[str, Any]], Path | None] = lambda options: None
    unlabelled: Callable[[Source], Source] = lambda source: source

    def lies_in(self, domain: str) -> bool:
        """Whether attributes that are not centred surely lie in a domain."""
        return bool(self.domain) and DOMAINS.index(self.domain) <= DOMAINS.index(domain)

    def all_options(self) -> Options:
        """Return the keys below ``dataset``, those of all kinds first."""
        return {
            "name": Option("the data set's name"),
            "kind": Option("the kind of data"),
            "center": Option("the centring", one_of(*self.centers) | NOTHING, default="none", own="revealed"),
            "split": Option("the split into training and test part", one_of(*self.splits)),
            "test_fraction": Option("the test part", FRACTION if self.tested else NOTHING),
            "costs": Option("the price list", NAME | NOTHING, default=None),
            "unit": Option("the unit of prices", NAME | NOTHING, default=None, inert=True),
            **self.options,
        }

    def identity(self, section: Mapping[str, Any]) -> dict[str, Any]:
        """Return what of a checked section ``dataset`` decides a result."""
        random = self.tested and section["split"] == RANDOM
        return identity_of(self.all_options(), section, () if random else ("test_fraction",))


def known_law(name: str, parse: Callable[[Mapping[str, Any]], Source], *options: str) -> DatasetKind:
    """Declare data in the unit ball whose second moment is known: all examples train, and nothing needs full rows."""
    return DatasetKind(
        name=name,
        parse=parse,
        options={key: Option(key) for key in options},
        splits=(OFFICIAL,),
        centers=("none",),
        tested=False,
        domain="2-ball",
    )
