"""A noisy linear target over attributes that go together by common factors, from neighbour to neighbour, or not.

Attributes and target have mean 0 and variance 1. With loadings l, common factors f and own parts u,

    x_i = (<l_i, f> + u_i) / sqrt(1 + |l_i|^2),    u_1 = e_1,    u_i = rho u_{i-1} + sqrt(1 - rho^2) e_i,

where f and e are independent, all of variance 1. Without factors and with ``rho = 0`` the attributes are independent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from budgetreg.config.options import Option
from budgetreg.config.requirements import NOTHING, NUMBER, Requirement, whole
from budgetreg.data.dataset import Dataset
from budgetreg.data.kind import DatasetKind
from budgetreg.errors import ConfigError
from budgetreg.streams import Identity, generator

_LEAST_TAILS = 3
"""The fewest whole degrees of freedom with which Student's t has a variance."""


@dataclass(frozen=True)
class Gaussian:
    """Options of the law.

    Parameters
    ----------
    d : int
        Number of attributes.
    n, n_test : int
        Numbers of training and of test examples.
    rho : float
        Correlation of an attribute's own part with its neighbour's, above -1 and below 1.
    n_factors : int
        Number of common factors, at least 0; loadings are drawn from N(0, 1).
    tails : int or None
        Degrees of freedom, at least 3, of Student's t scaled to variance 1, the law of f and e; None: N(0, 1).
    support : int or None
        Attributes whose weight is not 0, at most d; None: all of them.
    noise : float
        Share of the target's variance that no attribute explains, at least 0 and below 1: the least mean squared error.
    """

    d: int
    n: int
    n_test: int
    rho: float
    n_factors: int
    tails: int | None
    support: int | None
    noise: float

    @property
    def name(self) -> str:
        """Name of the law; the numbers of examples are no part of it: more of them keep the earlier ones."""
        chosen = {"rho": self.rho, "factors": self.n_factors, "t": self.tails, "support": self.support}
        told = {"d": self.d, **{key: value for key, value in chosen.items() if value}, "noise": self.noise}
        return "_".join(["gaussian", *(f"{key}{_short(value)}" for key, value in told.items())])

    def loadings(self, seed: int, repetition: int) -> tuple[np.ndarray, np.ndarray]:
        """Return what the common factors and the own parts of a draw are multiplied by, (n_factors, d) and (d,)."""
        loadings = generator(*self._identity(seed, repetition), "loadings").standard_normal((self.n_factors, self.d))
        own = 1 / np.sqrt(1 + np.square(loadings).sum(axis=0))
        return loadings * own, own

    def target(self, seed: int, repetition: int) -> np.ndarray:
        """Return the regressor ``w*`` of a draw, shape (d,): normal weights, scaled to explain all but the noise."""
        rng = generator(*self._identity(seed, repetition), "target")
        w = rng.standard_normal(self.d)
        if self.support is not None:
            w[rng.permutation(self.d)[self.support :]] = 0
        return w * np.sqrt((1 - self.noise) / self._explained(w, *self.loadings(seed, repetition)))

    def draw(self, seed: int, repetition: int) -> Dataset:
        """Draw loadings, ``w*`` and the examples, training part first.

        Each of these has a stream of its own, so that more examples of one part change nothing else.
        """
        parts = [self._examples(seed, repetition, part, n) for part, n in (("train", self.n), ("test", self.n_test))]
        X, y = (np.concatenate(both) for both in zip(*parts, strict=True))
        return Dataset(self.name, X, y, scale=1.0, n_train=self.n, two_valued=False)

    def _examples(self, seed: int, repetition: int, part: str, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw X (n, d) and y (n,); sums are added up term by term, in the same order on any machine."""
        identity = self._identity(seed, repetition)
        common, own = self.loadings(seed, repetition)
        innovations = self._innovations(generator(*identity, part), (n, self.n_factors + self.d))
        factors, X = innovations[:, : self.n_factors], np.ascontiguousarray(innovations[:, self.n_factors :])
        for i in range(1, self.d):
            X[:, i] = self.rho * X[:, i - 1] + np.sqrt(1 - self.rho**2) * X[:, i]
        X *= own
        for factor, loading in zip(factors.T, common, strict=True):
            X += np.outer(factor, loading)
        y = np.sqrt(self.noise) * generator(*identity, part, "noise").standard_normal(n)
        for i, weight in enumerate(self.target(seed, repetition)):
            y += weight * X[:, i]
        return X, y

    def _innovations(self, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        if self.tails is None:
            return rng.standard_normal(shape)
        return rng.standard_t(self.tails, shape) * np.sqrt(1 - 2 / self.tails)

    def _explained(self, w: np.ndarray, common: np.ndarray, own: np.ndarray) -> float:
        """Return the variance of ``<w, x>``: what f and e are multiplied by in it, squared and added up."""
        by_factors = np.square((common * w).sum(axis=1)).sum()
        v = own * w
        # e_i is in u_i, u_{i+1}, ...: it counts for g_i = v_i + rho g_{i+1} of them, the first one in full.
        g = [float(v[-1])]
        for value in v[-2::-1]:
            g.append(float(value) + self.rho * g[-1])
        by_own = (1 - self.rho**2) * np.square(g).sum() + self.rho**2 * g[-1] ** 2
        return float(by_factors + by_own)

    def _identity(self, seed: int, repetition: int) -> tuple[Identity, ...]:
        return "gaussian", seed, self.name, repetition


def parse(options: Mapping[str, Any]) -> Gaussian:
    """Read the options, which are those of `Gaussian`.

    Raises
    ------
    ConfigError
        If one of them is impossible.
    """
    for key, must in _MUST.items():
        if not must.accepts(options.get(key)):
            raise ConfigError(f"dataset.{key} must be {must.phrase}, not {options.get(key)!r}")
    law = Gaussian(**{key: options[key] for key in _MUST})
    if law.support is not None and law.support > law.d:
        raise ConfigError(f"dataset.support must be at most dataset.d = {law.d}, not {law.support}")
    return law


def _short(number: float) -> str:
    return repr(float(number) + 0.0).removesuffix(".0")  # + 0.0 turns -0.0 into 0.0: one name for one law


_MUST = {
    "d": whole(1),
    "n": whole(1),
    "n_test": whole(1),
    "rho": Requirement("a number above -1 and below 1", lambda value: NUMBER.accepts(value) and -1 < value < 1),
    "n_factors": whole(0),
    "tails": whole(_LEAST_TAILS) | NOTHING,
    "support": whole(1) | NOTHING,
    "noise": Requirement("a number of at least 0 and below 1", lambda value: NUMBER.accepts(value) and 0 <= value < 1),
}

KINDS = (DatasetKind(name="gaussian", parse=parse, options={key: Option(key) for key in _MUST}),)
