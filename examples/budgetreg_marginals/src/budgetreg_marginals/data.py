"""Attributes of which any two are equally correlated: at rho = 0 marginal moments tell all, beyond it they mislead."""

from dataclasses import dataclass

import numpy as np

from budgetreg.config.options import Option
from budgetreg.config.requirements import FRACTION, NOT_NEGATIVE, ZERO, whole
from budgetreg.data import Dataset, DatasetKind
from budgetreg.streams import generator


@dataclass(frozen=True)
class Equicorrelated:
    """``x_i = sqrt(1 - rho) g_i + sqrt(rho) g_0`` for standard normal g, and ``y = <w*, x> +`` noise, ``|w*|_2 = 1``.

    Parameters
    ----------
    d : int
        Number of attributes.
    rho : float
        Correlation of any two of them, at least 0 and below 1.
    noise : float
        Standard deviation of the noise.
    n, n_test : int
        Numbers of training and of test examples.
    """

    d: int
    rho: float
    noise: float
    n: int
    n_test: int

    def draw(self, seed: int, repetition: int) -> Dataset:
        """Draw w*, uniform on the unit sphere, and the examples; each part has a stream of its own."""
        name = f"equicorrelated_d{self.d}_rho{float(self.rho)!r}_noise{float(self.noise)!r}"
        w, train, test = (
            generator("equicorrelated", seed, name, repetition, part).standard_normal((n, self.d + 2))
            for part, n in (("target", 1), ("train", self.n), ("test", self.n_test))
        )
        normals = np.concatenate([train, test])
        X = np.sqrt(1 - self.rho) * normals[:, 2:] + np.sqrt(self.rho) * normals[:, :1]
        y = np.vecdot(X, w[0, 2:] / np.linalg.norm(w[0, 2:])) + self.noise * normals[:, 1]
        return Dataset(name, X, y, scale=1.0, n_train=self.n, two_valued=False)


KIND = DatasetKind(
    name="equicorrelated",
    parse=lambda options: Equicorrelated(**options),
    options={
        "d": Option("the number of attributes", whole(1)),
        "rho": Option("the correlation", ZERO | FRACTION, default=0),
        "noise": Option("the noise", NOT_NEGATIVE),
        "n": Option("the number of training examples", whole(1)),
        "n_test": Option("the number of test examples", whole(1)),
    },
)
