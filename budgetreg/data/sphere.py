"""A noisy linear target on the unit sphere, where all assumptions of the ridge theorems hold."""

from dataclasses import dataclass

import numpy as np

from budgetreg.config.options import option
from budgetreg.config.requirements import NOT_NEGATIVE
from budgetreg.data.dataset import Dataset
from budgetreg.data.distribution import Examples, KeyedDistribution, StreamFactory, count
from budgetreg.data.kind import DatasetKind


@dataclass(frozen=True)
class Sphere(KeyedDistribution):
    """Attributes uniform on the unit sphere, ``y = <w*, x> +`` Gaussian noise, ``|w*|_2 = 1``, clipped to ``|y| <= 1``.

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


KINDS = (DatasetKind.of("sphere", Sphere, domain="2-ball"),)
