"""Distributions with a noisy linear target: correlated or heavy-tailed attributes, and attributes on the sphere."""

from dataclasses import dataclass

import numpy as np

from budgetreg.config.options import NOT_NEGATIVE, NOTHING, NUMBER, Requirement, option, whole
from budgetreg.data.dataset import Dataset
from budgetreg.data.kind import DatasetKind, Examples, KeyedDistribution, StreamFactory, count, short
from budgetreg.errors import ConfigError

_CORRELATION = Requirement("a number above -1 and below 1", lambda value: NUMBER.accepts(value) and -1 < value < 1)
_SHARE = Requirement("a number of at least 0 and below 1", lambda value: NUMBER.accepts(value) and 0 <= value < 1)


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
    """

    d: int = count("attributes")
    n: int = count("training examples")
    n_test: int = count("test examples")
    rho: float = option("the correlation of neighbouring attributes", _CORRELATION)
    n_factors: int = option("the number of common factors", whole(0))
    tails: int | None = option("the degrees of freedom", whole(3) | NOTHING)  # so that Student's t has a variance
    support: int | None = option("the number of attributes with a weight", whole(1) | NOTHING)
    noise: float = option("the share of noise in the target's variance", _SHARE)
    key = "gaussian"

    def __post_init__(self) -> None:
        """Refuse a support of more attributes than there are."""
        if self.support is not None and self.support > self.d:
            raise ConfigError(f"dataset.support must be at most dataset.d = {self.d}, not {self.support}")

    @property
    def name(self) -> str:
        """Name of the distribution, with the options that are not 0."""
        chosen = {"rho": self.rho, "factors": self.n_factors, "t": self.tails, "support": self.support}
        named = {"d": self.d, **{key: value for key, value in chosen.items() if value}, "noise": self.noise}
        return "_".join(["gaussian", *(f"{key}{short(value)}" for key, value in named.items())])

    def loadings(self, seed: int, repetition: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the factors by which common factors and unique parts are multiplied, (n_factors, d) and (d,)."""
        loadings = self.streams(seed, repetition)("loadings").standard_normal((self.n_factors, self.d))
        unique = 1 / np.sqrt(1 + np.square(loadings).sum(axis=0))
        return loadings * unique, unique

    def target(self, seed: int, repetition: int) -> np.ndarray:
        """Return the regressor ``w*`` of a draw, shape (d,): normal weights, scaled to explain all but the noise."""
        rng = self.streams(seed, repetition)("target")
        w = rng.standard_normal(self.d)
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


KINDS = (DatasetKind.of("gaussian", Gaussian), DatasetKind.of("sphere", Sphere, domain="2-ball"))
