"""What learners that keep what they see are tried on; and handfuls of examples, on which they should do no harm."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from budgetreg.revealed.entries import Entries


def shuffled(F, m):
    return np.stack([np.random.default_rng([1, f]).permutation(m) for f in range(F)])


def line(m, d, noise=0.5, seed=0):
    rng = np.random.default_rng([seed, d])
    X = rng.normal(size=(m, d)) @ rng.normal(size=(d, d)) / np.sqrt(d)
    return X, X @ rng.normal(size=d) + noise * rng.normal(size=m)


def revealed(X, y, k, rng, p=None):
    """Return entries of one stream, k attributes of each example, in equal shares or those of p."""
    d = X.shape[1]
    S = np.stack([rng.choice(d, k, replace=False, p=p) for _ in X])
    entries = Entries(d + 1)
    entries.add(S[None], np.take_along_axis(X, S, axis=1)[None], y[None])
    return entries.blocks(), S


LAWS = {
    "gauss": lambda rng, m, d: rng.normal(size=(m, d)),
    "t3": lambda rng, m, d: rng.standard_t(3, (m, d)),
    "binary": lambda rng, m, d: np.where(rng.random((m, d)) < rng.uniform(0.1, 0.9, d), 1.0, 0.0),
    "collinear": lambda rng, m, d: rng.normal(size=(m, 1)) + 0.1 * rng.normal(size=(m, d)),
    "power law": lambda rng, m, d: rng.normal(size=(m, d)) / np.arange(1, d + 1),
    "rare": lambda rng, m, d: rng.normal(size=(m, d)) * (rng.random((m, d)) < 0.1),
    "lognormal": lambda rng, m, d: rng.lognormal(size=(m, d)),
}
HEAVY = ("rare", "lognormal")
"""Laws of which a few values may miss all that matters: more problems are tried."""

_STREAMS, _TEST = 4, 500

_SHAPES = [(20, 8, 6, 0), (6, 3, 5, 0), (10, 4, 10, 2), (12, 6, 12, 3), (8, 2, 30, 10), (16, 5, 50, 0)]
handfuls = pytest.mark.parametrize(
    ("law", "d", "k", "m", "N"), [pytest.param(law, *shape, id=f"{law}-{shape}") for law in LAWS for shape in _SHAPES]
)
"""k attributes of m examples are seen, and all d of N others."""


def errors(law: str, d: int, m: int, N: int, fitted: Callable) -> Iterator[float]:
    """Yield the learner's mean squared error on each problem, relative to that of the mean of the targets it saw.

    The noise of the targets is as large as what attributes tell. ``fitted(X, y, orders, pilot)`` returns regressors
    (F, d) and intercepts (F,).
    """
    for seed in range(6 if law in HEAVY else 1):
        rng = np.random.default_rng([d, len(law), seed])
        X = LAWS[law](rng, m + N + _TEST, d)
        y = X @ rng.normal(size=d)
        y = 3 + y / y.std() + rng.normal(size=len(y))
        orders = shuffled(_STREAMS, m + N)
        w, b = fitted(X, y, orders[:, N:], orders[:, :N])
        X, test = X[m + N :], y[m + N :, None]
        yield np.square(test - X @ w.T - b).mean() / np.square(test - y[orders].mean(axis=1)).mean()


TABLES = {"diabetes": load_diabetes, "breast cancer": load_breast_cancer, "wine": load_wine}
table_handfuls = pytest.mark.parametrize(
    ("table", "m", "N"), [(table, *shape) for table in TABLES for shape in [(5, 0), (4, 3), (12, 3), (30, 5)]]
)


def table_error(table: str, m: int, N: int, fitted: Callable) -> float:
    """Return what `errors` yields, for a table with its own target, columns in units of their standard deviations."""
    X, y = TABLES[table](return_X_y=True)
    X = X / X.std(axis=0)
    orders = shuffled(2 * _STREAMS, len(y))
    seen, test = orders[:, : m + N], orders[:, m + N :]
    w, b = fitted(X, y, seen[:, N:], seen[:, :N])
    predicted = np.einsum("ftd,fd->ft", X[test], w) + b[:, None]
    return np.square(y[test] - predicted).mean() / np.square(y[test] - y[seen].mean(axis=1)[:, None]).mean()
