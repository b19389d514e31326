"""Equally correlated attributes: for rho = 0 marginal moments suffice, for a larger rho they mislead."""

from dataclasses import dataclass

import numpy as np

from budgetreg.extend import FRACTION, NOT_NEGATIVE, ZERO, Dataset, DatasetKind, generator, option, whole


@dataclass(frozen=True)
class Equicorrelated:
    """``x_i = sqrt(1 - rho) g_i + sqrt(rho) g_0`` for standard normal g, and ``y = <w*, x> +`` noise, ``|w*|_2 = 1``.

    Any two attributes have the correlation rho; noise is a standard deviation.
    """

    d: int = option("the number of attributes", whole(1))
    rho: float = option("the correlation", ZERO | FRACTION, default=0)
    noise: float = option("the noise", NOT_NEGATIVE)
    n: int = option("the number of training examples", whole(1))
    n_test: int = option("the number of test examples", whole(1))

    def draw(self, seed: int, repetition: int) -> Dataset:
        """Draw w*, uniform on the unit sphere, and the examples; each part has its own random stream."""
        name = f"equicorrelated_d{self.d}_rho{float(self.rho)!r}_noise{float(self.noise)!r}"
        w, train, test = (
            generator("equicorrelated", seed, name, repetition, part).standard_normal((n, self.d + 2))
            for part, n in (("target", 1), ("train", self.n), ("test", self.n_test))
        )
        normals = np.concatenate([train, test])
        X = np.sqrt(1 - self.rho) * normals[:, 2:] + np.sqrt(self.rho) * normals[:, :1]
        y = np.vecdot(X, w[0, 2:] / np.linalg.norm(w[0, 2:])) + self.noise * normals[:, 1]
        return Dataset(name, X, y, scale=1.0, n_train=self.n, two_valued=False)


KIND = DatasetKind.of("equicorrelated", Equicorrelated)
