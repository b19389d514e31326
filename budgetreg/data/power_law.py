"""The synthetic data of Kukliansky & Shamir: attributes of very unequal weight, and a linear target.

The attributes are independent coins with means ``u_i = i^alpha``, scaled into the unit 2-ball or inf-ball; as
they are 0 or 1, ``E x_i^2 = u_i`` too, so that `alpha` sets how unequal the second moments are. The target is
``y = <w*, x>``.

An implicit table has no array of the examples: each value is computed when it is looked at. Only the targets, for
which every value is looked at once, are kept.

References
----------
Kukliansky and Shamir (2015), "Attribute efficient linear regression with distribution-dependent sampling",
Section 5.1.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from budgetreg.config.options import Option
from budgetreg.data.cache import cache_root, ensure
from budgetreg.data.dataset import Dataset, required, whole_number
from budgetreg.data.kind import DatasetKind
from budgetreg.data.values import Coins, Values
from budgetreg.errors import ConfigError
from budgetreg.streams import generator

_NORMS = ("l2", "linf")
_DRAWS_PER_BLOCK = 1 << 20  # uniform doubles held at once, 8 MiB
_VALUES_PER_PRODUCT = 1 << 16  # so few that they stay in the processor's cache
_FIRST_TEST_ROW = 1 << 40
"""Test rows are this far down the endless table, so that more training examples change none of them."""
_MOST_UNCACHED = 1 << 28
"""Values that are computed anew for the targets rather than kept in the cache: some seconds' worth."""
_LAYOUT_VERSION = 2  # of the cached targets; part of their address


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
    implicit : bool
        Whether values are computed when they are looked at, instead of drawn into an array.
    """

    d: int
    alpha: float
    norm: str
    n: int
    n_test: int
    implicit: bool = False

    @property
    def name(self) -> str:
        """Name of the law; the numbers of examples are no part of it: more of them keep the earlier ones."""
        alpha = repr(self.alpha).removesuffix(".0")
        return f"power_law_{self.norm}_d{self.d}_alpha{alpha}{'_implicit' if self.implicit else ''}"

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
        w = self._target(generator(*identity, "target"), u)
        if self.implicit:
            numbers = np.concatenate([np.arange(self.n), _FIRST_TEST_ROW + np.arange(self.n_test)])
            coins = Coins(int(generator(*identity, "coins").integers(1 << 64, dtype=np.uint64)), u, numbers)
            digest = hashlib.blake2b(repr((*identity, self.n, self.n_test)).encode(), digest_size=8).hexdigest()
            y = _products(coins, w) if numbers.size * self.d <= _MOST_UNCACHED else _cached_products(coins, w, digest)
            return Dataset(self.name, coins, y, 1.0, self.n, two_valued=False, digest=digest)
        X = np.empty((self.n + self.n_test, self.d), dtype=np.uint8)
        _flip_coins(generator(*identity, "train"), u, X[: self.n])
        _flip_coins(generator(*identity, "test"), u, X[self.n :])
        # Sums of small whole numbers: exact in any order, hence the same bytes on any machine.
        y = np.concatenate([block @ w for block in _blocks(X)])
        return Dataset(self.name, X, y, scale=1.0, n_train=self.n, two_valued=False)

    def _target(self, rng: np.random.Generator, u: np.ndarray) -> np.ndarray:
        """Draw ``w*``; again if all its targets are 0, as of means of 1 whose weights cancel: nothing can be learnt."""
        while True:
            if self.norm == "l2":
                w = rng.choice([-1.0, 1.0], size=self.d)
            else:
                w = rng.choice([-1.0, 0.0, 1.0], size=self.d, p=[0.15, 0.7, 0.15])
            if (w @ u) ** 2 + w**2 @ (u * (1 - u)) > 0:  # E y^2
                return w


def parse(options: Mapping[str, Any]) -> PowerLaw:
    """Read ``dataset.d``, ``alpha``, ``norm``, ``n``, ``n_test`` and ``implicit``.

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
    implicit = required(options, "implicit")
    if not isinstance(implicit, bool):
        raise ConfigError(f"dataset.implicit must be true or false, not {implicit!r}")
    d, n, n_test = (whole_number(options, key) for key in ("d", "n", "n_test"))
    return PowerLaw(d, float(alpha) + 0.0, norm, n, n_test, implicit)  # + 0.0 turns -0.0 into 0.0: one name for one law


def _blocks(X: np.ndarray) -> list[np.ndarray]:
    rows = max(1, _DRAWS_PER_BLOCK // X.shape[1])
    return [X[start : start + rows] for start in range(0, len(X), rows)]


def _flip_coins(rng: np.random.Generator, u: np.ndarray, out: np.ndarray) -> None:
    for block in _blocks(out):
        block[...] = rng.random(block.shape) < u


def _products(X: Values, w: np.ndarray) -> np.ndarray:
    """Return ``<w, x>`` for every row; sums of small whole numbers, and so exact in any order."""
    y = np.empty(X.shape[0])
    step = max(1, _VALUES_PER_PRODUCT // w.size)
    for start in range(0, y.size, step):
        rows = np.arange(start, min(start + step, y.size))
        y[rows] = X.rows(rows) @ w
    return y


def unused_caches() -> dict[Path, str]:
    """Return the folders of the cache that are there and that no run maps, and why."""
    folders = map(_cache_folder, range(_LAYOUT_VERSION))
    return {folder: "targets of an earlier layout" for folder in folders if folder.is_dir()}


def _cache_folder(version: int) -> Path:
    return cache_root() / f"power_law-{version}"


def _cached_products(X: Values, w: np.ndarray, digest: str) -> np.ndarray:
    path = _cache_folder(_LAYOUT_VERSION) / f"{digest}.npy"

    def is_whole(path: Path) -> bool:
        try:
            return bool(np.load(path, mmap_mode="r").shape == X.shape[:1])
        except (OSError, ValueError, EOFError):  # missing, or cut short by a full disk
            return False

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:  # np.save would append .npy to a name
            np.save(file, _products(X, w))

    ensure(path, is_whole, write)
    y: np.ndarray = np.load(path)
    return y


KINDS = (
    DatasetKind(
        name="power_law",
        parse=parse,
        options={key: Option(key) for key in ("d", "alpha", "norm", "n", "n_test", "implicit")},
    ),
)
