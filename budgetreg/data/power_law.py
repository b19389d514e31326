"""The synthetic data of Kukliansky & Shamir: attributes of very unequal weight, and a linear target.

The attributes are independent coins with means ``u_i = i^alpha``, scaled into the unit 2-ball or inf-ball; as
they are 0 or 1, ``E x_i^2 = u_i`` too, so that `alpha` sets how unequal the second moments are. The target is
``y = <w*, x>``.

References
----------
Kukliansky and Shamir (2015), "Attribute efficient linear regression with distribution-dependent sampling",
Section 5.1.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from budgetreg.data.dataset import Dataset, required, whole_number
from budgetreg.errors import ConfigError
from budgetreg.streams import generator

_NORMS = ("l2", "linf")
_DRAWS_PER_BLOCK = 1 << 20  # uniform doubles held at once, 8 MiB


@dataclass(frozen=True)
class PowerLaw:
    """Options of the generator.

    Parameters
    ----------
    d : int
        Number of attributes.
    alpha : float
        Exponent, at most 0: the attributes' means fall as ``i^alpha``.
    norm : {"l2", "linf"}
        Ball the vector of means is scaled into; it decides the law of ``w*`` too.
    n, n_test : int
        Numbers of training and of test examples.
    """

    d: int
    alpha: float
    norm: str
    n: int
    n_test: int

    @property
    def name(self) -> str:
        """Name of the law; the numbers of examples are no part of it: more of them keep the earlier ones."""
        return f"power_law_{self.norm}_d{self.d}_alpha{repr(self.alpha).removesuffix('.0')}"

    def means(self) -> np.ndarray:
        """Return the means ``u`` of the attributes, shape (d,)."""
        u = np.arange(1, self.d + 1, dtype=np.float64) ** self.alpha
        return u / np.linalg.norm(u, 2 if self.norm == "l2" else np.inf)

    def draw(self, seed: int, repetition: int) -> Dataset:
        """Draw ``w*`` and the examples, training part first.

        Targets, training part and test part have streams of their own, so that asking for more examples of
        one part changes nothing else.
        """
        u = self.means()
        identity = ("power_law", seed, self.name, repetition)
        w = self._target(generator(*identity, "target"))
        X = np.empty((self.n + self.n_test, self.d), dtype=np.uint8)
        _flip_coins(generator(*identity, "train"), u, X[: self.n])
        _flip_coins(generator(*identity, "test"), u, X[self.n :])
        # Sums of small whole numbers: exact in any order, hence the same bytes on any machine.
        y = np.concatenate([block @ w for block in _blocks(X)])
        return Dataset(self.name, X, y, scale=1.0, n_train=self.n, two_valued=False)

    def _target(self, rng: np.random.Generator) -> np.ndarray:
        if self.norm == "l2":
            return rng.choice([-1.0, 1.0], size=self.d)
        return rng.choice([-1.0, 0.0, 1.0], size=self.d, p=[0.15, 0.7, 0.15])


def parse(options: Mapping[str, Any]) -> PowerLaw:
    """Read ``dataset.d``, ``alpha``, ``norm``, ``n`` and ``n_test``.

    Raises
    ------
    ConfigError
        If one of them is impossible.
    """
    alpha, norm = required(options, "alpha"), required(options, "norm")
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not -math.inf < alpha <= 0:
        raise ConfigError(f"dataset.alpha must be a finite number of at most 0, not {alpha!r}")
    if norm not in _NORMS:
        raise ConfigError(f"dataset.norm must be one of {', '.join(_NORMS)}, not {norm!r}")
    d, n, n_test = (whole_number(options, key) for key in ("d", "n", "n_test"))
    return PowerLaw(d, float(alpha) + 0.0, norm, n, n_test)  # + 0.0 turns -0.0 into 0.0: one name for one law


def _blocks(X: np.ndarray) -> list[np.ndarray]:
    rows = max(1, _DRAWS_PER_BLOCK // X.shape[1])
    return [X[start : start + rows] for start in range(0, len(X), rows)]


def _flip_coins(rng: np.random.Generator, u: np.ndarray, out: np.ndarray) -> None:
    for block in _blocks(out):
        block[...] = rng.random(block.shape) < u
