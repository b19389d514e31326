"""Distributions from the papers' lower bounds, drawn for each seed and repetition.

Their best regressors are known. Risks are mean squared errors, without a factor 1/2.

References
----------
Cesa-Bianchi, Shalev-Shwartz and Shamir (2010), "Efficient learning with partially observed attributes", Theorems 3
and 4. Hazan and Koren (2012), "Linear regression with limited observation", Appendix B.2.
"""

from dataclasses import dataclass

import numpy as np

from budgetreg.config.options import NUMBER, Requirement, option
from budgetreg.data.dataset import Dataset
from budgetreg.data.kind import DatasetKind, Examples, KeyedDistribution, StreamFactory, count
from budgetreg.errors import ConfigError

_ADVANTAGE = Requirement("a number above 0 and at most 0.5", lambda value: NUMBER.accepts(value) and 0 < value <= 0.5)


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


KINDS = (
    DatasetKind.of("one_good_feature", OneGoodFeature, domain="inf-ball"),
    DatasetKind.of("three_bits", ThreeBits, domain="inf-ball"),
    DatasetKind.of("hidden_basis", HiddenBasis, domain="2-ball"),
)
