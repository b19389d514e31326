"""A noisy linear target on the unit sphere: every assumption of the ridge theorems holds, and all attributes count."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from budgetreg.config.options import Option
from budgetreg.data.dataset import Dataset, required, whole_number
from budgetreg.data.kind import DatasetKind
from budgetreg.errors import ConfigError
from budgetreg.streams import generator


@dataclass(frozen=True)
class Sphere:
    """Attributes uniform on the unit sphere, ``y = <w*, x> +`` Gaussian noise, ``|w*|_2 = 1``, cut off at ``|y| = 1``.

    Parameters
    ----------
    d : int
        Number of attributes.
    noise : float
        Standard deviation of the noise, at least 0.
    n, n_test : int
        Numbers of training and of test examples.
    """

    d: int
    noise: float
    n: int
    n_test: int

    @property
    def name(self) -> str:
        """Name of the law."""
        return f"sphere_d{self.d}_noise{self.noise!r}"

    def target(self, seed: int, repetition: int) -> np.ndarray:
        """Return the regressor ``w*`` of a draw, uniform on the unit sphere, shape (d,)."""
        return _directions(generator("sphere", seed, self.name, repetition, "target").standard_normal((1, self.d)))[0]

    def draw(self, seed: int, repetition: int) -> Dataset:
        """Draw ``w*`` and the examples, training part first.

        Both parts have streams of their own, read example by example: more examples of one change nothing else.
        """
        w = self.target(seed, repetition)
        normals = np.concatenate(
            [
                generator("sphere", seed, self.name, repetition, part).standard_normal((n, self.d + 1))
                for part, n in (("train", self.n), ("test", self.n_test))
            ]
        )
        X = _directions(normals[:, :-1])
        y = np.clip(np.vecdot(X, w) + self.noise * normals[:, -1], -1, 1)
        return Dataset(self.name, X, y, scale=1.0, n_train=self.n, two_valued=False)


def parse(options: Mapping[str, Any]) -> Sphere:
    """Read ``dataset.d``, ``noise``, ``n`` and ``n_test``.

    Raises
    ------
    ConfigError
        If one of them is impossible.
    """
    noise = required(options, "noise")
    if isinstance(noise, bool) or not isinstance(noise, int | float) or not 0 <= noise < np.inf:
        raise ConfigError(f"dataset.noise must be a finite number of at least 0, not {noise!r}")
    d, n, n_test = (whole_number(options, key) for key in ("d", "n", "n_test"))
    return Sphere(d, float(noise), n, n_test)


def _directions(vectors: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


KINDS = (
    DatasetKind(
        name="sphere", parse=parse, options={key: Option(key) for key in ("d", "noise", "n", "n_test")}, domain="2-ball"
    ),
)
