"""AEMR and AEML with very few examples err little more than predicting the mean of the seen targets does."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from budgetreg.algorithms.aemr import TargetRegressionLearner
from budgetreg.algorithms.factors import FactorRegression
from tests.learners.problems import regressors, shuffled

each_learner = pytest.mark.parametrize("kind", [FactorRegression, TargetRegressionLearner])
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
QUICK = ("gauss", "binary")
"""Distributions that the quick tests try, too."""
STREAMS, TEST = 4, 500
SHAPES = [(20, 8, 6, 0), (6, 3, 5, 0), (10, 4, 10, 2), (12, 6, 12, 3), (8, 2, 30, 10), (16, 5, 50, 0)]


def fitted(kind, X, y, seen, N, k):
    """Return regressors (F, d) and intercepts (F,) of streams that see all of N examples, and k values of others."""
    given = {"centred": True, "intercept": True}
    return regressors(kind, X, y, seen[:, N:], k, pilot=seen[:, :N], n_factors=20, **given)


@each_learner
@pytest.mark.parametrize(
    ("distribution", "d", "k", "m", "N"),
    [
        pytest.param(
            name, *shape, id=f"{name}-{shape}", marks=[pytest.mark.slow] if shape[0] > 6 or name not in QUICK else []
        )
        for name in DISTRIBUTIONS
        for shape in (SHAPES if name in ("gauss", *HEAVY) else SHAPES[1::2])
    ],
)
def test_few_examples_give_at_most_1_2_times_the_mean_error(kind, distribution, d, k, m, N, request):
    """k attributes of m examples are seen, and all d of N others. Noise has the variance that attributes explain."""
    few = {(6, 5, 0), (20, 6, 0), (10, 10, 2)}
    if kind is TargetRegressionLearner and distribution == "lognormal" and (d, m, N) in few:
        reason = "up to ten skewed examples do not show their tails: the error is 1.22 to 1.26 on one of six problems"
        request.applymarker(pytest.mark.xfail(reason=reason, raises=AssertionError, strict=True))
    errors = []
    for seed in range(6 if distribution in HEAVY else 1):
        rng = np.random.default_rng([d, len(distribution), seed])
        X = DISTRIBUTIONS[distribution](rng, m + N + TEST, d)
        y = X @ rng.normal(size=d)
        y = 3 + y / y.std() + rng.normal(size=len(y))
        seen = shuffled(STREAMS, m + N)
        w, b = fitted(kind, X, y, seen, N, k)
        X, test = X[m + N :], y[m + N :, None]
        errors.append(np.square(test - X @ w.T - b).mean() / np.square(test - y[seen].mean(axis=1)).mean())
    assert max(errors) <= 1.2


@each_learner
@pytest.mark.parametrize(
    ("load", "m", "N"),
    [
        pytest.param(load, *shape, marks=[] if (load, *shape) == (load_diabetes, 5, 0) else [pytest.mark.slow])
        for load in (load_diabetes, load_breast_cancer, load_wine)
        for shape in [(5, 0), (4, 3), (12, 3), (30, 5)]
    ],
)
def test_few_rows_of_tables_give_at_most_1_2_times_the_mean_error(kind, load, m, N):
    X, y = load(return_X_y=True)
    X = X / X.std(axis=0)
    orders = shuffled(2 * STREAMS, len(y))
    seen, test = orders[:, : m + N], orders[:, m + N :]
    w, b = fitted(kind, X, y, seen, N, 4)
    predicted = np.einsum("ftd,fd->ft", X[test], w) + b[:, None]
    error = np.square(y[test] - predicted).mean() / np.square(y[test] - y[seen].mean(axis=1)[:, None]).mean()
    assert error <= 1.2
