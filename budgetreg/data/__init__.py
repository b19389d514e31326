"""Data sets: from a configuration to arrays."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from budgetreg.data import directions, hard, mnist, power_law, sphere, tabular
from budgetreg.data.dataset import Dataset
from budgetreg.data.formats.source import NO_TARGET
from budgetreg.data.mnist import Mnist
from budgetreg.data.tabular import Digits, File
from budgetreg.errors import ConfigError

if TYPE_CHECKING:
    from budgetreg.protocol.configuration import DatasetConfig

__all__ = ["Dataset", "load"]


@runtime_checkable
class Synthetic(Protocol):
    """A law that examples are drawn from: d attributes, n training and n_test test examples.

    Where its second moment is known, subspaces need no test examples: n_test may be 0.
    """

    @property
    def d(self) -> int: ...

    @property
    def n(self) -> int: ...

    @property
    def n_test(self) -> int: ...

    def draw(self, seed: int, repetition: int) -> Dataset:
        """Draw target and examples, training part first, which only the two numbers decide."""

    def __hash__(self) -> int:
        """Equal laws are one, as drawing is remembered."""


_Source = Mnist | Digits | File | Synthetic
_PARSERS: Mapping[str, Callable[[Mapping[str, Any]], _Source]] = {
    "mnist": mnist.parse,
    "power_law": power_law.parse,
    "digits": tabular.parse_digits,
    "file": tabular.parse_file,
    "sphere": sphere.parse,
    "one_good_feature": hard.parse_one_good_feature,
    "three_bits": hard.parse_three_bits,
    "hidden_basis": hard.parse_hidden_basis,
    "coins": directions.parse_coins,
    "hadamard": directions.parse_hadamard,
    "spike": directions.parse_spike,
    "two_lines": directions.parse_two_lines,
}


def load(config: "DatasetConfig", seed: int, repetition: int, *, targets: bool = True) -> Dataset:
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
    source = _source(config)
    if isinstance(source, Synthetic):
        return _drawn(source, seed, repetition)
    if isinstance(source, File) and source.target is None and not targets:
        source = replace(source, target=NO_TARGET)
    return _loaded(source)


def _source(config: "DatasetConfig") -> _Source:
    if config.kind not in _PARSERS:
        raise ConfigError(f"dataset.kind must be one of {', '.join(_PARSERS)}, not {config.kind!r}")
    return _PARSERS[config.kind](config.options)


@lru_cache(maxsize=4)
def _loaded(source: Mnist | Digits | File) -> Dataset:
    return source.load()


@lru_cache(maxsize=2)
def _drawn(source: Synthetic, seed: int, repetition: int) -> Dataset:
    return source.draw(seed, repetition)
