"""Distributions that examples are drawn from, for each seed and repetition.

- Noisy linear targets: correlated or heavy-tailed attributes (`Gaussian`), and attributes on the sphere (`Sphere`).
- `PowerLaw`, the synthetic data of Kukliansky and Shamir: attributes of very unequal weight, and a linear target.
- Distributions of lower bounds: `OneGoodFeature`, `ThreeBits` and `HiddenBasis`, whose best regressors are known. Risks
  are mean squared errors, without a factor 1/2.
- Distributions of lower bounds of subspace learning: `BiasedCoins`, `Hadamard`, `TwoLines` and `Spike`. Their second
  moments ``C = E x x'`` are known, and so the excess loss of a subspace is too, without a test part. They have no
  targets.

References
----------
Cesa-Bianchi, Shalev-Shwartz and Shamir (2010), "Efficient learning with partially observed attributes", Theorems 3
and 4. Hazan and Koren (2012), "Linear regression with limited observation", Appendix B.2. Gonen, Rosenbaum, Eldar and
Shalev-Shwartz (2016), "Subspace learning with partial information", Figure 1, Theorems 4, 5 and 12. Kukliansky and
Shamir (2015), "Attribute efficient linear regression with distribution-dependent sampling", Section 5.1.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from budgetreg.common.errors import ConfigError
from budgetreg.common.streams import generator
from budgetreg.config.options import (
    FLAG,
    FRACTION,
    NOT_NEGATIVE,
    NOTHING,
    NUMBER,
    ONE,
    ZERO,
    Requirement,
    one_of,
    option,
    whole,
)
from budgetreg.data.cache import cache_root, ensure_array
from budgetreg.data.dataset import Coins, Dataset, Dense, Values, row_blocks, short_digest
from budgetreg.data.registry import OFFICIAL, DatasetKind

_CORRELATION = Requirement("a number above -1 and below 1", lambda value: NUMBER.accepts(value) and -1 < value < 1)
_NOISE = Requirement("a number of at least 0 and below 1", lambda value: NUMBER.accepts(value) and 0 <= value < 1)
_ADVANTAGE = Requirement("a number above 0 and at most 0.5", lambda value: NUMBER.accepts(value) and 0 < value <= 0.5)
_SHARE = Requirement("a number above 0 and at most 1", lambda value: NUMBER.accepts(value) and 0 < value <= 1)
_EXPONENT = Requirement("a number of at most 0", lambda value: NUMBER.accepts(value) and value <= 0)
_FIRST_TEST_ROW = 1 << 40
"""Test rows are this far down the endless table, so that more training examples change none of them."""
_MOST_UNCACHED = 1 << 28
"""Largest table, in values, whose targets are computed for each draw, which takes seconds, and not cached."""
_LAYOUT_VERSION = 2  # of the cached targets; part of their address


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

    def covariance(self, seed: int, repetition: int) -> np.ndarray | None:
        """Return the covariance of attributes and, last, target of a draw if they are normal with mean 0, else None."""
        return None

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


@dataclass(frozen=True)
class Gaussian(KeyedDistribution):
    """Attributes with common factors, correlated neighbours, both or neither, and a noisy linear target.

    Attributes and target have mean 0 and variance 1. With loadings l, common factors f and unique parts u,

        x_i = (<l_i, f> + u_i) / sqrt(1 + |l_i|^2),    u_1 = e_1,    u_i = rho u_{i-1} + sqrt(1 - rho^2) e_i,

    where f and e are independent, all of variance 1. Without factors and with ``rho = 0`` attributes are independent.

    Parameters
    ----------
    d : int
        Number of attributes.
    n, n_test : int
        Numbers of training and of test examples.
    rho : float
        Correlation of the unique parts of neighbouring attributes, above -1 and below 1.
    n_factors : int
        Number of common factors, at least 0; loadings are drawn from N(0, 1).
    tails : int or None
        Degrees of freedom, at least 3, of the distribution of f and e, Student's t scaled to variance 1; None: N(0, 1).
    support : int or None
        Number of attributes with a weight other than 0, at most d; None: all of them.
    noise : float
        Share of the target's variance that no attribute explains, at least 0 and below 1: the least mean squared error.
    least_weight : float
        How far the absolute weights, those other than 0, stay away from 0: 0 for weights from N(0, 1), 1 for weights
        that differ only in their signs, and between these ``least_weight + (1 - least_weight) |z|``, z from N(0, 1).
    """

    d: int = count("attributes")
    n: int = count("training examples")
    n_test: int = count("test examples")
    rho: float = option("the correlation of neighbouring attributes", _CORRELATION)
    n_factors: int = option("the number of common factors", whole(0))
    tails: int | None = option("the degrees of freedom", whole(3) | NOTHING)  # so that Student's t has a variance
    support: int | None = option("the number of attributes with a weight", whole(1) | NOTHING)
    noise: float = option("the share of noise in the target's variance", _NOISE)
    least_weight: float = option("the least absolute weight", FRACTION | ZERO | ONE, default=0)
    key = "gaussian"

    def __post_init__(self) -> None:
        """Refuse a support of more attributes than there are."""
        if self.support is not None and self.support > self.d:
            raise ConfigError(f"dataset.support must be at most dataset.d = {self.d}, not {self.support}")

    @property
    def name(self) -> str:
        """Name of the distribution, with the options that are not 0."""
        chosen = {"rho": self.rho, "factors": self.n_factors, "t": self.tails, "support": self.support}
        least = {"least": self.least_weight} if self.least_weight else {}
        named = {"d": self.d, **{key: value for key, value in chosen.items() if value}, "noise": self.noise, **least}
        return "_".join(["gaussian", *(f"{key}{short(value)}" for key, value in named.items())])

    def loadings(self, seed: int, repetition: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the factors by which common factors and unique parts are multiplied, (n_factors, d) and (d,)."""
        loadings = self.streams(seed, repetition)("loadings").standard_normal((self.n_factors, self.d))
        unique = 1 / np.sqrt(1 + np.square(loadings).sum(axis=0))
        return loadings * unique, unique

    def target(self, seed: int, repetition: int) -> np.ndarray:
        """Return the regressor ``w*`` of a draw, shape (d,): random weights, scaled to explain all but the noise."""
        rng = self.streams(seed, repetition)("target")
        z = rng.standard_normal(self.d)
        w = np.copysign(self.least_weight + (1 - self.least_weight) * np.abs(z), z)
        if self.support is not None:
            w[rng.permutation(self.d)[self.support :]] = 0
        return w * np.sqrt((1 - self.noise) / self._explained(w, *self.loadings(seed, repetition)))

    def draw(self, seed: int, repetition: int) -> Dataset:
        """Draw loadings, ``w*`` and the examples, training part first, each from a stream of its own."""
        common, unique = self.loadings(seed, repetition)
        w = self.target(seed, repetition)

        def examples(streams: StreamFactory, n: int) -> Examples:
            """Draw a part; sums are added up term by term, in the same order on any machine."""
            shape, rng = (n, self.n_factors + self.d), streams()
            if self.tails is None:
                innovations = rng.standard_normal(shape)
            else:
                innovations = rng.standard_t(self.tails, shape) * np.sqrt(1 - 2 / self.tails)
            factors, X = innovations[:, : self.n_factors], np.ascontiguousarray(innovations[:, self.n_factors :])
            for i in range(1, self.d):
                X[:, i] = self.rho * X[:, i - 1] + np.sqrt(1 - self.rho**2) * X[:, i]
            X *= unique
            for factor, loading in zip(factors.T, common, strict=True):
                X += np.outer(factor, loading)
            y = np.sqrt(self.noise) * streams("noise").standard_normal(n)
            for i, weight in enumerate(w):
                y += weight * X[:, i]
            return X, y

        return self.draw_parts(seed, repetition, examples)

    def covariance(self, seed: int, repetition: int) -> np.ndarray | None:
        """Return the covariance of attributes and target, (d + 1, d + 1); None for heavy tails."""
        if self.tails is not None:
            return None
        common, unique = self.loadings(seed, repetition)
        apart = np.abs(np.subtract.outer(np.arange(self.d), np.arange(self.d)))
        Sigma = common.T @ common + float(self.rho) ** apart * np.outer(unique, unique)
        sigma = Sigma @ self.target(seed, repetition)
        return np.block([[Sigma, sigma[:, None]], [sigma, np.ones(1)]])

    def _explained(self, w: np.ndarray, common: np.ndarray, unique: np.ndarray) -> float:
        """Return the variance of ``<w, x>``: the sum of the squared coefficients of f and e in it."""
        by_factors = np.square((common * w).sum(axis=1)).sum()
        v = unique * w
        # e_i is in u_i, u_{i+1}, ...: it counts for g_i = v_i + rho g_{i+1} of them, the first one in full.
        g = [float(v[-1])]
        for value in v[-2::-1]:
            g.append(float(value) + self.rho * g[-1])
        by_unique = (1 - self.rho**2) * np.square(g).sum() + self.rho**2 * g[-1] ** 2
        return float(by_factors + by_unique)


@dataclass(frozen=True)
class Sphere(KeyedDistribution):
    """Attributes uniform on the unit sphere, ``y = <w*, x> +`` Gaussian noise, ``|w*|_2 = 1``, clipped to ``|y| <= 1``.

    All assumptions of the ridge theorems hold.

    Parameters
    ----------
    d : int
        Number of attributes.
    noise : float
        Standard deviation of the noise, at least 0.
    n, n_test : int
        Numbers of training and of test examples.
    """

    d: int = count("attributes")
    noise: float = option("the standard deviation of the noise", NOT_NEGATIVE)
    n: int = count("training examples")
    n_test: int = count("test examples")
    key = "sphere"

    @property
    def name(self) -> str:
        """Name of the distribution."""
        return f"sphere_d{self.d}_noise{float(self.noise)!r}"

    def target(self, seed: int, repetition: int) -> np.ndarray:
        """Return the regressor ``w*`` of a draw, uniform on the unit sphere, shape (d,)."""
        return _directions(self.streams(seed, repetition)("target").standard_normal((1, self.d)))[0]

    def draw(self, seed: int, repetition: int) -> Dataset:
        """Draw ``w*`` and the examples, training part first."""
        w = self.target(seed, repetition)

        def examples(streams: StreamFactory, n: int) -> Examples:
            normals = streams().standard_normal((n, self.d + 1))
            X = _directions(normals[:, :-1])
            return X, np.clip(np.vecdot(X, w) + self.noise * normals[:, -1], -1, 1)

        return self.draw_parts(seed, repetition, examples)


def _directions(vectors: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


@dataclass(frozen=True)
class PowerLaw(KeyedDistribution):
    """Independent coins with means that fall by a power law, and a linear target.

    The attributes have means ``u_i = i^alpha``, scaled into the unit 2-ball or inf-ball, or into a smaller one; as they
    are 0 or 1, ``E x_i^2 = u_i`` too, so that `alpha` sets how unequal the second moments are. The target is
    ``y = <w*, x>``. An implicit table has no array of the examples: each value is computed when it is looked at. Only
    the targets are stored.

    Parameters
    ----------
    d : int
        Number of attributes.
    alpha : float
        Exponent, at most 0: the attributes' means fall as ``i^alpha``.
    norm : {"l2", "linf"}
        Ball that the vector of means is scaled into; the distribution of ``w*`` depends on it too.
    n, n_test : int
        Numbers of training and of test examples.
    implicit : bool
        Whether values are computed when they are looked at, instead of drawn into an array.
    radius : float
        Radius of that ball, above 0 and at most 1.
    """

    d: int = count("attributes")
    alpha: float = option("the exponent", _EXPONENT)
    norm: str = option("the norm", one_of("l2", "linf"))
    n: int = count("training examples")
    n_test: int = count("test examples")
    implicit: bool = option("whether values are computed when they are looked at", FLAG)
    radius: float = option("the radius of the ball", FRACTION | ONE, default=1)
    key = "power_law"

    @property
    def name(self) -> str:
        """Name of the distribution."""
        radius = "" if self.radius == 1 else f"_radius{short(self.radius)}"
        return f"power_law_{self.norm}_d{self.d}_alpha{short(self.alpha)}{radius}{'_implicit' if self.implicit else ''}"

    def means(self) -> np.ndarray:
        """Return the means ``u`` of the attributes, shape (d,)."""
        u = np.arange(1, self.d + 1, dtype=np.float64) ** float(self.alpha)
        return self.radius * (u / np.linalg.norm(u, 2 if self.norm == "l2" else np.inf))

    def draw(self, seed: int, repetition: int) -> Dataset:
        """Draw ``w*`` and the examples, training part first.

        Targets, training part and test part have streams of their own, so that more examples of one part keep the
        other.
        """
        u, streams = self.means(), self.streams(seed, repetition)
        w = self._target(streams("target"), u)
        if self.implicit:
            numbers = np.concatenate([np.arange(self.n), _FIRST_TEST_ROW + np.arange(self.n_test)])
            coins = Coins(int(streams("coins").integers(1 << 64, dtype=np.uint64)), u, numbers)
            digest = short_digest((self.key, seed, self.name, repetition, self.n, self.n_test))
            if numbers.size * self.d <= _MOST_UNCACHED:
                y = _products(coins, w)
            else:
                path = cache_root() / f"power_law-{_LAYOUT_VERSION}" / f"{digest}.npy"
                y = np.array(ensure_array(path, lambda: _products(coins, w)))
            return Dataset(self.name, coins, y, 1.0, self.n, two_valued=False, digest=digest)
        X = np.empty((self.n + self.n_test, self.d), dtype=np.uint8)
        for part, rows in (("train", X[: self.n]), ("test", X[self.n :])):
            rng = streams(part)
            for block in row_blocks(np.arange(len(rows)), self.d):
                rows[block] = rng.random((block.size, self.d)) < u
        return Dataset(self.name, X, _products(Dense(X), w), scale=1.0, n_train=self.n, two_valued=False)

    def _target(self, rng: np.random.Generator, u: np.ndarray) -> np.ndarray:
        """Draw ``w*``, and repeat while all targets would be 0, as for means of 1 with weights that cancel."""
        while True:
            if self.norm == "l2":
                w = rng.choice([-1.0, 1.0], size=self.d)
            else:
                w = rng.choice([-1.0, 0.0, 1.0], size=self.d, p=[0.15, 0.7, 0.15])
            if (w @ u) ** 2 + w**2 @ (u * (1 - u)) > 0:  # E y^2
                return w


def _products(X: Values, w: np.ndarray) -> np.ndarray:
    """Return ``<w, x>`` for every row: sums of small whole numbers, exact in any order and on any machine."""
    return np.concatenate([X.rows(rows) @ w for rows in row_blocks(np.arange(X.shape[0]), w.size)])


@dataclass(frozen=True)
class OneGoodFeature(KeyedDistribution):
    """Fair signs as attributes, and a label that equals one of them with probability ``1/2 + p``.

    Cesa-Bianchi et al. 2010, Theorem 3: to learn a good regressor one must find this attribute j, which takes of the
    order of ``d / (k p^2)`` examples.

    Parameters
    ----------
    d : int
        Number of attributes.
    p : float
        Advantage of the good attribute over guessing, above 0 and at most 1/2.
    n, n_test : int
        Numbers of training and of test examples.
    """

    d: int = count("attributes")
    p: float = option("the advantage over guessing", _ADVANTAGE)
    n: int = count("training examples")
    n_test: int = count("test examples")
    key = "hard"

    @property
    def name(self) -> str:
        """Name of the distribution."""
        return f"one_good_feature_d{self.d}_p{self.p!r}"

    def best(self, seed: int, repetition: int) -> np.ndarray:
        """Return the best regressor ``2 p e_j`` of a draw, shape (d,); its risk is ``1 - 4 p^2``."""
        w = np.zeros(self.d)
        w[self.streams(seed, repetition)("target").integers(self.d)] = 2 * self.p
        return w

    def draw(self, seed: int, repetition: int) -> Dataset:
        """Draw j and the examples, training part first."""
        good = self.best(seed, repetition).argmax()

        def examples(streams: StreamFactory, n: int) -> Examples:
            uniforms = streams().random((n, self.d + 1))
            X = np.where(uniforms[:, :-1] < 0.5, -1.0, 1.0)
            return X, np.where(uniforms[:, -1] < 0.5 + self.p, X[:, good], -X[:, good])

        return self.draw_parts(seed, repetition, examples, two_valued=True)


@dataclass(frozen=True)
class ThreeBits(KeyedDistribution):
    """Three fair signs whose mean is the target.

    Cesa-Bianchi et al. 2010, Theorem 4: two attributes of each training example suffice to learn the target without
    error, but a prediction from two attributes of a test example has a risk of at least 1/9.

    Parameters
    ----------
    n, n_test : int
        Numbers of training and of test examples.
    """

    n: int = count("training examples")
    n_test: int = count("test examples")
    key = "hard"
    name = "three_bits"
    d = 3

    def draw(self, seed: int, repetition: int) -> Dataset:
        """Draw the examples, training part first."""

        def examples(streams: StreamFactory, n: int) -> Examples:
            X = np.where(streams().random((n, 3)) < 0.5, -1.0, 1.0)
            return X, X.sum(axis=1) / 3

        return self.draw_parts(seed, repetition, examples)


@dataclass(frozen=True)
class HiddenBasis(KeyedDistribution):
    """A few random attributes with random signs; each example shows one of them, and the target is always 1.

    Hazan & Koren 2012, Theorem B.1: a good regressor must know most of these attributes, which takes of the order of
    d/eps^2 values, as nearly all values seen are 0.

    Parameters
    ----------
    d : int
        Number of attributes.
    eps : float
        There are ``1/eps^2`` hidden attributes, rounded to a whole number; at most d.
    n, n_test : int
        Numbers of training and of test examples.
    """

    d: int = count("attributes")
    eps: float = option("1/sqrt of the number of hidden attributes", NUMBER)
    n: int = count("training examples")
    n_test: int = count("test examples")
    key = "hard"

    def __post_init__(self) -> None:
        """Refuse an eps with no hidden attribute, or with more than there are attributes."""
        if not (0 < self.eps <= 1 and round(self.eps**-2) <= self.d):
            raise ConfigError(f"dataset.eps must be between 1/sqrt(d) = {self.d**-0.5:.3g} and 1, not {self.eps!r}")

    @property
    def name(self) -> str:
        """Name of the distribution."""
        return f"hidden_basis_d{self.d}_eps{float(self.eps)!r}"

    def best(self, seed: int, repetition: int) -> np.ndarray:
        """Return the best regressor of a draw with ``|w|_2 <= 1``, shape (d,): n hidden signs over ``sqrt(n)``.

        Its risk is ``(1 - eps)^2`` if ``1/eps^2`` is a whole number.
        """
        rng, n = self.streams(seed, repetition)("target"), round(self.eps**-2)
        w = np.zeros(self.d)
        w[rng.permutation(self.d)[:n]] = rng.choice([-1.0, 1.0], size=n)
        return w / np.sqrt(n)

    def draw(self, seed: int, repetition: int) -> Dataset:
        """Draw the hidden attributes and the examples, training part first."""
        signs = np.sign(self.best(seed, repetition))
        hidden = np.flatnonzero(signs)

        def examples(streams: StreamFactory, n: int) -> Examples:
            shown = hidden[streams().integers(hidden.size, size=n)]
            X = np.zeros((n, self.d))
            X[np.arange(n), shown] = signs[shown]
            return X, np.ones(n)

        return self.draw_parts(seed, repetition, examples)


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


KINDS = (
    *(
        DatasetKind.of(name, source, splits=(OFFICIAL,), centers=("none",), tested=False, domain="2-ball")
        for name, source in (("coins", BiasedCoins), ("hadamard", Hadamard), ("spike", Spike), ("two_lines", TwoLines))
    ),
    DatasetKind.of("one_good_feature", OneGoodFeature, domain="inf-ball"),
    DatasetKind.of("three_bits", ThreeBits, domain="inf-ball"),
    DatasetKind.of("hidden_basis", HiddenBasis, domain="2-ball"),
    DatasetKind.of("gaussian", Gaussian),
    DatasetKind.of("sphere", Sphere, domain="2-ball"),
    DatasetKind.of("power_law", PowerLaw),
)
