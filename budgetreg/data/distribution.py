"""What the distributions of this package share: a random stream for each part of a draw, and how parts are joined."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from budgetreg.config.options import option
from budgetreg.config.requirements import whole
from budgetreg.data.dataset import Dataset
from budgetreg.streams import generator

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
        """Draw training and test part, each from streams of its own, so that more examples of one keep the other.

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
