"""The synthetic data of Kukliansky & Shamir: attributes of very unequal weight, and a linear target.

The attributes are independent coins with means ``u_i = i^alpha``, scaled into the unit 2-ball or inf-ball, or into
a smaller one; as they are 0 or 1, ``E x_i^2 = u_i`` too, so that `alpha` sets how unequal the second moments are. The
target is ``y = <w*, x>``.

An implicit table has no array of the examples: each value is computed when it is looked at. Only the targets are
stored.

References
----------
Kukliansky and Shamir (2015), "Attribute efficient linear regression with distribution-dependent sampling",
Section 5.1.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from budgetreg.config.options import FLAG, FRACTION, NUMBER, ONE, Requirement, one_of, option
from budgetreg.data.cache import cache_root, ensure_array
from budgetreg.data.dataset import Dataset, short_digest
from budgetreg.data.kind import DatasetKind, KeyedDistribution, count, short
from budgetreg.data.values import Coins, Dense, Values, row_blocks

_EXPONENT = Requirement("a number of at most 0", lambda value: NUMBER.accepts(value) and value <= 0)
_FIRST_TEST_ROW = 1 << 40
"""Test rows are this far down the endless table, so that more training examples change none of them."""
_MOST_UNCACHED = 1 << 28
"""Largest table, in values, whose targets are computed for each draw, which takes seconds, and not cached."""
_LAYOUT_VERSION = 2  # of the cached targets; part of their address


@dataclass(frozen=True)
class PowerLaw(KeyedDistribution):
    """Independent coins with means that fall by a power law, and a linear target.

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
                y = np.array(ensure_array(_cache_folder() / f"{digest}.npy", lambda: _products(coins, w)))
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


def _cache_folder() -> Path:
    return cache_root() / f"power_law-{_LAYOUT_VERSION}"


KINDS = (DatasetKind.of("power_law", PowerLaw),)
