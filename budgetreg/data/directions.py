"""Distributions over few directions, from lower bounds of subspace learning, drawn for each seed and repetition.

Their second moments ``C = E x x'`` are known, and so the excess loss of a subspace is too, without a test part. They
have no targets.

References
----------
Gonen, Rosenbaum, Eldar and Shalev-Shwartz (2016), "Subspace learning with partial information", Figure 1,
Theorems 4, 5 and 12.
"""

from dataclasses import dataclass

import numpy as np

from budgetreg.config.options import NUMBER, Requirement, option
from budgetreg.data.dataset import Dataset
from budgetreg.data.kind import OFFICIAL, DatasetKind, KeyedDistribution, count
from budgetreg.errors import ConfigError

_SHARE = Requirement("a number above 0 and at most 1", lambda value: NUMBER.accepts(value) and 0 < value <= 1)


class KnownMoment(KeyedDistribution):
    """A distribution in the unit ball whose second moment is known, so that all examples train."""

    key = "directions"
    n_test = 0

    def with_moment(self, X: np.ndarray, scale: float, C: np.ndarray) -> Dataset:
        """Return the examples X of a draw with its second moment C."""
        return Dataset(self.name, X, np.zeros(self.n), scale, self.n, two_valued=False, second_moment=C)


class FlippedDirections(KnownMoment):
    """Pairs of orthonormal directions, and for each pair a biased coin that decides which of the two is more likely.

    An example picks one of the coins, flips it, and is one of its two directions, with a fair sign: ``u_i`` with
    probability ``(1 + b_i alpha)/2``, else ``u_{i+c}``, i = 1..c. The signs b are drawn with the distribution. The best
    subspace of c dimensions takes the more likely direction of each pair, and to find it one must find nearly all b:
    with full rows this takes of the order of ``c/eps^2`` examples (Theorem 5).

    Attributes
    ----------
    n_coins : int
        Number c of coins, at most d/2.
    alpha : float
        Bias, above 0 and at most 1.
    """

    n_coins: int
    alpha: float

    @property
    def scale(self) -> float:
        """Size of the entries of directions that are not 0."""
        return 2**-0.5

    def directions(self) -> np.ndarray:
        """Return the directions in rows, divided by `scale`: -1, 0 and 1, int8 of shape (2 c, d), u_1 first."""
        identity = np.eye(self.n_coins, dtype=np.int8)
        pairs = np.block([[identity, identity], [-identity, identity]])
        return np.pad(pairs, ((0, 0), (0, self.d - 2 * self.n_coins)))

    def signs(self, seed: int, repetition: int) -> np.ndarray:
        """Return the signs b of the coins' biases in a draw, shape (c,)."""
        return self.streams(seed, repetition)("target").choice([-1.0, 1.0], size=self.n_coins)

    def second_moment(self, seed: int, repetition: int) -> np.ndarray:
        """Return ``C`` of a draw, shape (d, d)."""
        bias = self.alpha * self.signs(seed, repetition)
        chances = np.concatenate([1 + bias, 1 - bias]) / (2 * self.n_coins)
        U = self.scale * self.directions()
        return (U.T * chances) @ U

    def draw(self, seed: int, repetition: int) -> Dataset:
        """Draw the coins and the examples."""
        uniforms = self.streams(seed, repetition)("train").random((self.n, 3))
        coin = (uniforms[:, 0] * self.n_coins).astype(np.intp)
        heads = uniforms[:, 1] < (1 + self.alpha * self.signs(seed, repetition)[coin]) / 2
        X = self.directions()[coin + self.n_coins * ~heads]
        X *= np.where(uniforms[:, 2] < 0.5, -1, 1).astype(np.int8)[:, None]
        return self.with_moment(X, self.scale, self.second_moment(seed, repetition))


@dataclass(frozen=True)
class BiasedCoins(FlippedDirections):
    """Directions ``u_i = (e_i + e_{i+c})/sqrt(2)`` and ``u_{i+c} = (-e_i + e_{i+c})/sqrt(2)``.

    Only examples that show both attributes distinguish the two directions of a pair: this takes ``(d/r)^2`` times
    as many examples as full rows (Theorem 4).

    Parameters
    ----------
    d : int
        Number of attributes.
    n_coins, alpha
        See `FlippedDirections`.
    n : int
        Number of training examples.
    """

    d: int = count("attributes")
    n_coins: int = count("coins")
    alpha: float = option("the bias of the coins", _SHARE)
    n: int = count("training examples")

    def __post_init__(self) -> None:
        """Refuse more directions than attributes."""
        if 2 * self.n_coins > self.d:
            raise ConfigError(f"dataset.n_coins must be at most d/2 = {self.d // 2}, not {self.n_coins}")

    @property
    def name(self) -> str:
        """Name of the distribution."""
        return f"coins_d{self.d}_c{self.n_coins}_alpha{float(self.alpha)!r}"


@dataclass(frozen=True)
class Hadamard(BiasedCoins):
    """The first 2 c columns of Sylvester's matrix divided by ``sqrt(d)``, whose entries are all equally large."""

    def __post_init__(self) -> None:
        """Refuse a d for which there is no such matrix."""
        super().__post_init__()
        if self.d.bit_count() != 1:
            raise ConfigError(f"dataset.d must be a power of 2, the size of a Sylvester matrix, not {self.d}")

    @property
    def name(self) -> str:
        """Name of the distribution."""
        return super().name.replace("coins", "hadamard")

    @property
    def scale(self) -> float:
        """Size of the entries of directions."""
        return self.d**-0.5

    def directions(self) -> np.ndarray:
        """Return the directions in rows, divided by `scale`: -1 and 1, int8 of shape (2 c, d), u_1 first."""
        common = np.bitwise_count(np.arange(2 * self.n_coins)[:, None] & np.arange(self.d))
        return 1 - 2 * (common % 2).astype(np.int8)


@dataclass(frozen=True)
class TwoLines(FlippedDirections):
    """The directions of `BiasedCoins` for d = 2: one attribute alone shows nothing (Figure 1).

    Parameters
    ----------
    n : int
        Number of training examples.
    """

    n: int = count("training examples")
    name = "two_lines"
    d = 2
    n_coins = 1
    alpha = 1.0


@dataclass(frozen=True)
class Spike(KnownMoment):
    """One attribute that is 1 in some examples; everything else is always 0.

    A learner must find the attribute, and nearly all values that it sees are 0 (Theorem 12).

    Parameters
    ----------
    d : int
        Number of attributes.
    p : float
        Probability that an example shows the spike, above 0 and at most 1.
    n : int
        Number of training examples.
    """

    d: int = count("attributes")
    p: float = option("the probability of the spike", _SHARE)
    n: int = count("training examples")

    @property
    def name(self) -> str:
        """Name of the distribution."""
        return f"spike_d{self.d}_p{float(self.p)!r}"

    def spike(self, seed: int, repetition: int) -> int:
        """Return the attribute that matters in a draw."""
        return int(self.streams(seed, repetition)("target").integers(self.d))

    def second_moment(self, seed: int, repetition: int) -> np.ndarray:
        """Return ``C = p e_s e_s'`` of a draw, shape (d, d)."""
        e = np.eye(self.d)[self.spike(seed, repetition)]
        return self.p * np.outer(e, e)

    def draw(self, seed: int, repetition: int) -> Dataset:
        """Draw the attribute and the examples."""
        X = np.zeros((self.n, self.d), dtype=np.uint8)
        X[:, self.spike(seed, repetition)] = self.streams(seed, repetition)("train").random(self.n) < self.p
        return self.with_moment(X, 1.0, self.second_moment(seed, repetition))


KINDS = tuple(
    DatasetKind.of(name, source, splits=(OFFICIAL,), centers=("none",), tested=False, domain="2-ball")
    for name, source in (("coins", BiasedCoins), ("hadamard", Hadamard), ("spike", Spike), ("two_lines", TwoLines))
)
