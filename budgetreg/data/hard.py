"""Distributions from the papers' lower bounds, drawn anew for each seed and repetition.

Their best regressors are known. Risks are mean squared errors, without a factor 1/2.

References
----------
Cesa-Bianchi, Shalev-Shwartz and Shamir (2010), "Efficient learning with partially observed attributes", Theorems 3
and 4. Hazan and Koren (2012), "Linear regression with limited observation", Appendix B.2.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from budgetreg.config.options import Option
from budgetreg.data.dataset import Dataset, required, whole_number
from budgetreg.data.kind import DatasetKind
from budgetreg.errors import ConfigError
from budgetreg.streams import Identity, generator

Examples = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class OneGoodFeature:
    """Fair signs for attributes, and a label that one of them guesses: ``y = x_j`` with probability ``1/2 + p``.

    Cesa-Bianchi et al. 2010, Theorem 3: who learns a good regressor must find j, which takes of the order of d/k
    examples per unit of 1/p^2.

    Parameters
    ----------
    d : int
        Number of attributes.
    p : float
        Advantage of the good attribute over guessing, above 0 and at most 1/2.
    n, n_test : int
        Numbers of training and of test examples.
    """

    d: int
    p: float
    n: int
    n_test: int

    @property
    def name(self) -> str:
        """Name of the law."""
        return f"one_good_feature_d{self.d}_p{self.p!r}"

    @property
    def best_risk(self) -> float:
        """Risk of the best regressor, ``1 - 4 p^2``."""
        return 1 - 4 * self.p**2

    def best(self, seed: int, repetition: int) -> np.ndarray:
        """Return the best regressor ``2 p e_j`` of a draw, shape (d,)."""
        w = np.zeros(self.d)
        w[_target_stream(self.name, seed, repetition).integers(self.d)] = 2 * self.p
        return w

    def draw(self, seed: int, repetition: int) -> Dataset:
        """Draw j and the examples, training part first."""
        good = self.best(seed, repetition).argmax()

        def examples(rng: np.random.Generator, n: int) -> Examples:
            uniforms = rng.random((n, self.d + 1))
            X = np.where(uniforms[:, :-1] < 0.5, -1.0, 1.0)
            return X, np.where(uniforms[:, -1] < 0.5 + self.p, X[:, good], -X[:, good])

        return _both_parts(self, seed, repetition, examples, two_valued=True)


@dataclass(frozen=True)
class ThreeBits:
    """Three fair signs whose mean is the target.

    Cesa-Bianchi et al. 2010, Theorem 4: two attributes of each training example suffice to learn it without error,
    yet who sees two attributes of a test example errs by 1/9 at least.

    Parameters
    ----------
    n, n_test : int
        Numbers of training and of test examples.
    """

    n: int
    n_test: int
    name = "three_bits"
    d = 3
    best_risk = 0.0

    def best(self, seed: int, repetition: int) -> np.ndarray:
        """Return the best regressor, (1/3, 1/3, 1/3) in every draw."""
        return np.full(3, 1 / 3)

    def draw(self, seed: int, repetition: int) -> Dataset:
        """Draw the examples, training part first."""

        def examples(rng: np.random.Generator, n: int) -> Examples:
            X = np.where(rng.random((n, 3)) < 0.5, -1.0, 1.0)
            return X, X.sum(axis=1) / 3

        return _both_parts(self, seed, repetition, examples, two_valued=False)


@dataclass(frozen=True)
class HiddenBasis:
    """A few random attributes with random signs; each example shows one of them, and the target is always 1.

    Hazan & Koren 2012, Theorem B.1: a good regressor must know most of these attributes, which takes of the order of
    d/eps^2 values, as nearly all that are seen are 0.

    Parameters
    ----------
    d : int
        Number of attributes.
    eps : float
        There are ``1/eps^2`` hidden attributes, rounded to a whole number; at most d.
    n, n_test : int
        Numbers of training and of test examples.
    """

    d: int
    eps: float
    n: int
    n_test: int

    @property
    def name(self) -> str:
        """Name of the law."""
        return f"hidden_basis_d{self.d}_eps{self.eps!r}"

    @property
    def n_hidden(self) -> int:
        """Number of hidden attributes."""
        return round(self.eps**-2)

    @property
    def best_risk(self) -> float:
        """Risk of the best regressor with ``|w|_2 <= 1``, ``(1 - eps)^2`` where ``1/eps^2`` is a whole number."""
        return (1 - self.n_hidden**-0.5) ** 2

    def best(self, seed: int, repetition: int) -> np.ndarray:
        """Return the best regressor of a draw with ``|w|_2 <= 1``, shape (d,): its signs over ``sqrt(n_hidden)``."""
        rng = _target_stream(self.name, seed, repetition)
        w = np.zeros(self.d)
        w[rng.permutation(self.d)[: self.n_hidden]] = rng.choice([-1.0, 1.0], size=self.n_hidden)
        return w / np.sqrt(self.n_hidden)

    def draw(self, seed: int, repetition: int) -> Dataset:
        """Draw the hidden attributes and the examples, training part first."""
        signs = np.sign(self.best(seed, repetition))
        hidden = np.flatnonzero(signs)

        def examples(rng: np.random.Generator, n: int) -> Examples:
            shown = hidden[rng.integers(hidden.size, size=n)]
            X = np.zeros((n, self.d))
            X[np.arange(n), shown] = signs[shown]
            return X, np.ones(n)

        return _both_parts(self, seed, repetition, examples, two_valued=False)


def parse_one_good_feature(options: Mapping[str, Any]) -> OneGoodFeature:
    """Read ``dataset.d``, ``p``, ``n`` and ``n_test``.

    Raises
    ------
    ConfigError
        If one of them is impossible.
    """
    p = _number(options, "p")
    if not 0 < p <= 0.5:
        raise ConfigError(f"dataset.p must be above 0 and at most 0.5, not {p!r}")
    d, n, n_test = (whole_number(options, key) for key in ("d", "n", "n_test"))
    return OneGoodFeature(d, p, n, n_test)


def parse_three_bits(options: Mapping[str, Any]) -> ThreeBits:
    """Read ``dataset.n`` and ``n_test``.

    Raises
    ------
    ConfigError
        If one of them is impossible.
    """
    return ThreeBits(whole_number(options, "n"), whole_number(options, "n_test"))


def parse_hidden_basis(options: Mapping[str, Any]) -> HiddenBasis:
    """Read ``dataset.d``, ``eps``, ``n`` and ``n_test``.

    Raises
    ------
    ConfigError
        If one of them is impossible.
    """
    eps = _number(options, "eps")
    d, n, n_test = (whole_number(options, key) for key in ("d", "n", "n_test"))
    if not (0 < eps <= 1 and round(eps**-2) <= d):
        raise ConfigError(f"dataset.eps must be between 1/sqrt(d) = {d**-0.5:.3g} and 1, not {eps!r}")
    return HiddenBasis(d, eps, n, n_test)


def _number(options: Mapping[str, Any], key: str) -> float:
    value = required(options, key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"dataset.{key} must be a number, not {value!r}")
    return float(value)


def _target_stream(name: str, seed: int, repetition: int) -> np.random.Generator:
    return generator(*_identity(name, seed, repetition), "target")


def _identity(name: str, seed: int, repetition: int) -> tuple[Identity, ...]:
    return "hard", seed, name, repetition


def _both_parts(
    law: OneGoodFeature | ThreeBits | HiddenBasis,
    seed: int,
    repetition: int,
    examples: Callable[[np.random.Generator, int], Examples],
    *,
    two_valued: bool,
) -> Dataset:
    """Draw each part from a stream of its own, row by row: more examples of one change nothing else."""
    identity = _identity(law.name, seed, repetition)
    train, test = (examples(generator(*identity, part), n) for part, n in (("train", law.n), ("test", law.n_test)))
    X, y = (np.concatenate(parts) for parts in zip(train, test, strict=True))
    return Dataset(law.name, X, y, scale=1.0, n_train=law.n, two_valued=two_valued)


KINDS = (
    DatasetKind(
        name="one_good_feature",
        parse=parse_one_good_feature,
        options={key: Option(key) for key in ("d", "p", "n", "n_test")},
        domain="inf-ball",
    ),
    DatasetKind(
        name="three_bits",
        parse=parse_three_bits,
        options={key: Option(key) for key in ("n", "n_test")},
        domain="inf-ball",
    ),
    DatasetKind(
        name="hidden_basis",
        parse=parse_hidden_basis,
        options={key: Option(key) for key in ("d", "eps", "n", "n_test")},
        domain="2-ball",
    ),
)
