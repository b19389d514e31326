"""Distributions over few directions, from lower bounds of subspace learning, drawn anew for each seed and repetition.

Their second moments ``C = E x x'`` are known, and so the excess loss of a subspace is too, without a test part. They
have no targets.

References
----------
Gonen, Rosenbaum, Eldar and Shalev-Shwartz (2016), "Subspace learning with partial information", Figure 1,
Theorems 4, 5 and 12.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from budgetreg.data.dataset import Dataset, required, whole_number
from budgetreg.data.kind import known_law
from budgetreg.errors import ConfigError
from budgetreg.streams import Identity, generator


@dataclass(frozen=True)
class BiasedCoins:
    """Pairs of orthonormal directions, and for each pair a biased coin that says which of the two is the likelier.

    An example picks one of the coins, flips it, and is one of its two directions, with a fair sign: ``u_i`` with
    probability ``(1 + b_i alpha)/2``, else ``u_{i+c}``, i = 1..c. The signs b are drawn with the law. The best
    subspace of c dimensions takes the likelier direction of each pair, and who is to find it must find nearly all b:
    with full rows this takes of the order of ``c/eps^2`` examples (Theorem 5).

    Parameters
    ----------
    basis : {"coins", "hadamard", "two_lines"}
        The directions. ``coins``: ``u_i = (e_i + e_{i+c})/sqrt(2)`` and ``u_{i+c} = (-e_i + e_{i+c})/sqrt(2)``, which
        only an example that shows both attributes can tell apart: it takes ``(d/r)^2`` times as many (Theorem 4).
        ``hadamard``: the first 2 c columns of Sylvester's matrix divided by ``sqrt(d)``, whose entries are all
        equally large. ``two_lines``: those of ``coins`` where d = 2, of which one attribute says nothing (Figure 1).
    d : int
        Number of attributes.
    n_coins : int
        Number c of coins, at most d/2.
    alpha : float
        Bias, above 0 and at most 1.
    n : int
        Number of training examples.
    """

    basis: str
    d: int
    n_coins: int
    alpha: float
    n: int
    n_test = 0

    @property
    def name(self) -> str:
        """Name of the law."""
        if self.basis == "two_lines":
            return "two_lines"
        return f"{self.basis}_d{self.d}_c{self.n_coins}_alpha{self.alpha!r}"

    @property
    def scale(self) -> float:
        """Size of the entries of directions that are not 0."""
        return (self.d if self.basis == "hadamard" else 2) ** -0.5

    def directions(self) -> np.ndarray:
        """Return the directions in rows, divided by `scale`: -1, 0 and 1, int8 of shape (2 c, d), u_1 first."""
        c = self.n_coins
        if self.basis == "hadamard":
            common = np.bitwise_count(np.arange(2 * c)[:, None] & np.arange(self.d))
            return 1 - 2 * (common % 2).astype(np.int8)
        U = np.zeros((2 * c, self.d), dtype=np.int8)
        i = np.arange(c)
        U[i, i] = U[i, i + c] = U[i + c, i + c] = 1
        U[i + c, i] = -1
        return U

    def signs(self, seed: int, repetition: int) -> np.ndarray:
        """Return the signs b of the coins' biases in a draw, shape (c,)."""
        return generator(*_identity(self, seed, repetition), "target").choice([-1.0, 1.0], size=self.n_coins)

    def second_moment(self, seed: int, repetition: int) -> np.ndarray:
        """Return ``C`` of a draw, shape (d, d)."""
        bias = self.alpha * self.signs(seed, repetition)
        chances = np.concatenate([1 + bias, 1 - bias]) / (2 * self.n_coins)
        U = self.scale * self.directions()
        return (U.T * chances) @ U

    def draw(self, seed: int, repetition: int) -> Dataset:
        """Draw the coins and the examples."""
        uniforms = generator(*_identity(self, seed, repetition), "train").random((self.n, 3))
        coin = (uniforms[:, 0] * self.n_coins).astype(np.intp)
        heads = uniforms[:, 1] < (1 + self.alpha * self.signs(seed, repetition)[coin]) / 2
        X = self.directions()[coin + self.n_coins * ~heads]
        X *= np.where(uniforms[:, 2] < 0.5, -1, 1).astype(np.int8)[:, None]
        return _known(self, X, self.scale, self.second_moment(seed, repetition))


@dataclass(frozen=True)
class Spike:
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

    d: int
    p: float
    n: int
    n_test = 0

    @property
    def name(self) -> str:
        """Name of the law."""
        return f"spike_d{self.d}_p{self.p!r}"

    def spike(self, seed: int, repetition: int) -> int:
        """Return the attribute that matters in a draw."""
        return int(generator(*_identity(self, seed, repetition), "target").integers(self.d))

    def second_moment(self, seed: int, repetition: int) -> np.ndarray:
        """Return ``C = p e_s e_s'`` of a draw, shape (d, d)."""
        C = np.zeros((self.d, self.d))
        s = self.spike(seed, repetition)
        C[s, s] = self.p
        return C

    def draw(self, seed: int, repetition: int) -> Dataset:
        """Draw the attribute and the examples."""
        X = np.zeros((self.n, self.d), dtype=np.uint8)
        X[:, self.spike(seed, repetition)] = (
            generator(*_identity(self, seed, repetition), "train").random(self.n) < self.p
        )
        return _known(self, X, 1.0, self.second_moment(seed, repetition))


def parse_coins(options: Mapping[str, Any]) -> BiasedCoins:
    """Read ``dataset.d``, ``n_coins``, ``alpha`` and ``n``.

    Raises
    ------
    ConfigError
        If one of them is impossible.
    """
    d, n_coins, n = (whole_number(options, key) for key in ("d", "n_coins", "n"))
    if 2 * n_coins > d:
        raise ConfigError(f"dataset.n_coins must be at most d/2 = {d // 2}, not {n_coins}")
    return BiasedCoins("coins", d, n_coins, _share(options, "alpha"), n)


def parse_hadamard(options: Mapping[str, Any]) -> BiasedCoins:
    """Read the options of `parse_coins`, where d must be a power of 2.

    Raises
    ------
    ConfigError
        If one of them is impossible.
    """
    law = parse_coins(options)
    if law.d.bit_count() != 1:
        raise ConfigError(f"dataset.d must be a power of 2, not {law.d}: as large are Sylvester's Hadamard matrices")
    return BiasedCoins("hadamard", law.d, law.n_coins, law.alpha, law.n)


def parse_two_lines(options: Mapping[str, Any]) -> BiasedCoins:
    """Read ``dataset.n``; the one coin falls always on the same side.

    Raises
    ------
    ConfigError
        If it is impossible.
    """
    return BiasedCoins("two_lines", 2, 1, 1.0, whole_number(options, "n"))


def parse_spike(options: Mapping[str, Any]) -> Spike:
    """Read ``dataset.d``, ``p`` and ``n``.

    Raises
    ------
    ConfigError
        If one of them is impossible.
    """
    return Spike(whole_number(options, "d"), _share(options, "p"), whole_number(options, "n"))


def _share(options: Mapping[str, Any], key: str) -> float:
    value = required(options, key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise ConfigError(f"dataset.{key} must be a number above 0 and at most 1, not {value!r}")
    return float(value)


def _identity(law: BiasedCoins | Spike, seed: int, repetition: int) -> tuple[Identity, ...]:
    return "directions", seed, law.name, repetition


def _known(law: BiasedCoins | Spike, X: np.ndarray, scale: float, C: np.ndarray) -> Dataset:
    return Dataset(law.name, X, np.zeros(law.n), scale, law.n, two_valued=False, second_moment=C)


KINDS = (
    known_law("coins", parse_coins, "d", "n_coins", "alpha", "n"),
    known_law("hadamard", parse_hadamard, "d", "n_coins", "alpha", "n"),
    known_law("spike", parse_spike, "d", "p", "n"),
    known_law("two_lines", parse_two_lines, "n"),
)
