"""Problems for learners that store what they see, some of them with very few examples."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from budgetreg.algorithms.factors.likelihood import FactorModel, Penalty, RevealedEntries
from budgetreg.revealed.collection import Entries


def shuffled(F, m):
    """Return the orders (F, m) in which F streams read m examples."""
    return np.stack([np.random.default_rng([1, f]).permutation(m) for f in range(F)])


def line(m, d, noise=0.5, seed=0):
    """Return correlated attributes (m, d) and a linear target with noise."""
    rng = np.random.default_rng([seed, d])
    X = rng.normal(size=(m, d)) @ rng.normal(size=(d, d)) / np.sqrt(d)
    return X, X @ rng.normal(size=d) + noise * rng.normal(size=m)


def revealed(X, y, k, rng, p=None):
    """Return one stream's entries and attributes, k of each example, drawn uniformly or by p."""
    m, d = X.shape
    # The k smallest of exponential variables with the rates p are draws without replacement.
    S = np.argsort(rng.exponential(size=(m, d)) / (np.ones(d) if p is None else p), axis=1)[:, :k]
    entries = Entries(d + 1)
    entries.add(S[None], np.take_along_axis(X, S, axis=1)[None], y[None])
    return entries.blocks(), S


def likelihood(model: FactorModel, revealed: RevealedEntries, penalty: Penalty) -> float:
    """Return the penalised log-likelihood of a factor model, example by example."""
    C, total = model.second_moment, 0.0
    for attributes, values, _, _ in revealed.parts():
        for i, x in zip(attributes, values, strict=True):
            S = i[i < revealed.d]
            total += multivariate_normal(np.zeros(len(S)), C[np.ix_(S, S)]).logpdf(x[i < revealed.d])
    size = penalty.ridge * np.square(model.W).sum(axis=1) + penalty.pseudo * penalty.noise
    return total - 0.5 * (size / model.psi + penalty.pseudo * np.log(model.psi)).sum()


DISTRIBUTIONS = {
    "gauss": lambda rng, m, d: rng.normal(size=(m, d)),
    "t3": lambda rng, m, d: rng.standard_t(3, (m, d)),
    "binary": lambda rng, m, d: np.where(rng.random((m, d)) < rng.uniform(0.1, 0.9, d), 1.0, 0.0),
    "collinear": lambda rng, m, d: rng.normal(size=(m, 1)) + 0.1 * rng.normal(size=(m, d)),
    "power law": lambda rng, m, d: rng.normal(size=(m, d)) / np.arange(1, d + 1),
    "rare": lambda rng, m, d: rng.normal(size=(m, d)) * (rng.random((m, d)) < 0.1),
    "lognormal": lambda rng, m, d: rng.lognormal(size=(m, d)),
}
HEAVY = ("rare", "lognormal")
"""Distributions in which few values may miss everything relevant; more problems are tried."""

_QUICK = ("gauss", "binary")
"""Distributions that the quick tests try, too."""

_STREAMS, _TEST = 4, 500

_SHAPES = [(20, 8, 6, 0), (6, 3, 5, 0), (10, 4, 10, 2), (12, 6, 12, 3), (8, 2, 30, 10), (16, 5, 50, 0)]
handfuls = pytest.mark.parametrize(
    ("distribution", "d", "k", "m", "N"),
    [
        pytest.param(
            name, *shape, id=f"{name}-{shape}", marks=[pytest.mark.slow] if shape[0] > 6 or name not in _QUICK else []
        )
        for name in DISTRIBUTIONS
        for shape in (_SHAPES if name in ("gauss", *HEAVY) else _SHAPES[1::2])
    ],
)
"""Problems in which k attributes of m examples are seen, and all d of N others."""


def errors(distribution: str, d: int, m: int, N: int, fitted: Callable) -> Iterator[float]:
    """Yield the error on each problem, relative to that of predicting the mean of the seen targets.

    The noise has the variance that attributes explain. ``fitted(X, y, orders, pilot)`` returns regressors (F, d) and
    intercepts (F,).
    """
    for seed in range(6 if distribution in HEAVY else 1):
        rng = np.random.default_rng([d, len(distribution), seed])
        X = DISTRIBUTIONS[distribution](rng, m + N + _TEST, d)
        y = X @ rng.normal(size=d)
        y = 3 + y / y.std() + rng.normal(size=len(y))
        orders = shuffled(_STREAMS, m + N)
        w, b = fitted(X, y, orders[:, N:], orders[:, :N])
        X, test = X[m + N :], y[m + N :, None]
        yield np.square(test - X @ w.T - b).mean() / np.square(test - y[orders].mean(axis=1)).mean()


TABLES = {"diabetes": load_diabetes, "breast cancer": load_breast_cancer, "wine": load_wine}
_QUICK_TABLES = (("diabetes", 5, 0),)
table_handfuls = pytest.mark.parametrize(
    ("table", "m", "N"),
    [
        pytest.param(table, *shape, marks=[] if (table, *shape) in _QUICK_TABLES else [pytest.mark.slow])
        for table in TABLES
        for shape in [(5, 0), (4, 3), (12, 3), (30, 5)]
    ],
)


def table_error(table: str, m: int, N: int, fitted: Callable) -> float:
    """Return the relative error, as `errors` yields it, for a table with columns of unit variance."""
    X, y = TABLES[table](return_X_y=True)
    X = X / X.std(axis=0)
    orders = shuffled(2 * _STREAMS, len(y))
    seen, test = orders[:, : m + N], orders[:, m + N :]
    w, b = fitted(X, y, seen[:, N:], seen[:, :N])
    predicted = np.einsum("ftd,fd->ft", X[test], w) + b[:, None]
    return np.square(y[test] - predicted).mean() / np.square(y[test] - y[seen].mean(axis=1)[:, None]).mean()
