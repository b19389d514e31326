"""Imputation and ridge: against a listing and a scikit-learn pipeline, and its invariances."""

import numpy as np
import pytest
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from budgetreg.algorithms import imputation
from budgetreg.algorithms.imputation import RidgeRows, folds
from budgetreg.algorithms.learner import RunContext
from budgetreg.common.errors import ConfigError
from budgetreg.metering.table import WithIntercept
from budgetreg.testing.checks import Recorder
from tests.learners.problems import fit, shown
from tests.tiers import slow_but

BOTH = {"centred": True, "intercept": True}
AS_FITTED = {**BOTH, "rescale": False}


def examples(m, d, seed=0):
    rng = np.random.default_rng(seed)
    X = 3 + rng.normal(size=(m, d)) @ (np.eye(d) + 0.5 * rng.normal(size=(d, d)))
    return X, X @ np.linspace(-1, 1, d) + rng.normal(size=m) - 7


def hidden(X, k, seed=1):
    """Return rows of which all but k values are NaN."""
    rank = np.argsort(np.random.default_rng(seed).random(X.shape), axis=1)
    return np.where(rank < k, X, np.nan)


def fitted(X, y, k, checkpoints=None, **given):
    """Return {checkpoint: (W, b)} of one stream, and the log of what was revealed."""
    log, learner = Recorder(X.shape[1]), imputation.ImputationLearner(name="impute", impute="mean", rescale=False)
    outputs, _ = fit(learner, X, y, np.arange(len(X))[None], k, checkpoints, given={**BOTH, **given}, log=log)
    none = np.zeros((1, 1))
    return {t: W if isinstance(W, WithIntercept) else WithIntercept(W, none) for t, W in outputs.items()}, log


def listing(X, y, centred, intercept):
    """Return weights and the prediction at 0, computed by loops over rows."""
    n, d = X.shape
    seen = [j for j in range(d) if any(not np.isnan(x) for x in X[:, j])]
    mean = {j: np.mean([x for x in X[:, j] if not np.isnan(x)]) for j in seen}
    Z = np.array([[mean[j] if np.isnan(X[t, j]) else X[t, j] for j in seen] for t in range(n)])
    origin, r = np.array([mean[j] for j in seen]) if centred else np.zeros(len(seen)), y.mean() if intercept else 0.0
    Z, free = Z - origin, centred and intercept

    def ridge(rows, alpha):
        """Return w and the intercept, which is not shrunk, or 0 without one."""
        A = np.column_stack([Z[rows], np.full(len(rows), float(free))])
        w = np.linalg.lstsq(A.T @ A + np.diag([alpha] * len(seen) + [0]), A.T @ (y[rows] - r))[0]
        return w[:-1], w[-1]

    unit, chosen = sum(np.square(Z[:, j]).sum() for j in range(len(seen))) / len(seen), []
    for parts in folds(n):
        best, least = None, np.inf
        for e in np.linspace(4, -4, 17):
            error = 0.0
            for part in parts:
                others = np.flatnonzero(~part)
                w, c = ridge(others, 10**e * unit * len(others) / n)
                error += sum((y[t] - r - c - Z[t] @ w) ** 2 for t in np.flatnonzero(part))
            if error < least:
                best, least = ridge(range(n), 10**e * unit), error
        chosen.append(best)
    w = np.zeros(d)
    w[seen] = mean = np.mean([w for w, _ in chosen], axis=0)
    return w, r + np.mean([c for _, c in chosen]) - origin @ mean


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(
    ("m", "d", "k"), slow_but([(7, 8, 3), (25, 5, 2)], [(3, 7, 2), (7, 8, 3), (25, 5, 2), (25, 5, 5)])
)
def test_core_equals_listing(m, d, k, centred, intercept):
    X, y = examples(m, d)
    X[:, 1] = 2.0  # never changes
    outputs, log = fitted(X, y, k, centred=centred, intercept=intercept)
    rows = shown(X, log)
    assert (np.count_nonzero(~np.isnan(rows), axis=1) == k).all()
    w, b = listing(rows, y, centred, intercept)
    np.testing.assert_allclose(outputs[m].regressors[0, :, 0], w, rtol=1e-7, atol=1e-9)
    assert outputs[m].intercept[0, 0] == pytest.approx(b, rel=1e-7, abs=1e-8)


def cross_validated(Z, y):
    """Return the strengths that are chosen for the same folds, by normal equations with an intercept."""
    tried = np.geomspace(1e4, 1e-4, 17) * np.square(Z).sum() / Z.shape[1]
    A, shrunk = np.column_stack([Z, np.ones(len(Z))]), np.diag([1.0] * Z.shape[1] + [0.0])

    def errors(part):
        rows, targets = A[~part], y[~part]
        matrices = rows.T @ rows + (tried * np.mean(~part))[:, None, None] * shrunk
        w = np.linalg.solve(matrices, np.tile(rows.T @ targets, (17, 1))[:, :, None])[:, :, 0]
        return np.square(y[part] - w @ A[part].T).sum(axis=1)

    return [tried[sum(map(errors, parts)).argmin()] for parts in folds(len(y))]


@pytest.mark.parametrize(
    ("impute", "imputer"), [("mean", SimpleImputer()), ("iterative", IterativeImputer(random_state=0))]
)
@pytest.mark.filterwarnings("ignore:.*IterativeImputer.*")
def test_predictions_equal_a_scikit_learn_pipeline(impute, imputer):
    """For attributes whose seen values have mean 0, where centring before imputation changes nothing."""
    X, y = examples(80, 6)
    X = hidden(X, 4)
    X -= np.nanmean(X, axis=0)
    w, b = imputation.regressor(X, y, impute=impute, **AS_FITTED)
    filled = imputer.fit_transform(X)
    full = examples(20, 6, 5)[0]
    others = [make_pipeline(imputer, Ridge(alpha)).fit(X, y) for alpha in cross_validated(filled, y)]
    np.testing.assert_allclose(b + full @ w, np.mean([other.predict(full) for other in others], axis=0), rtol=1e-8)


@pytest.mark.filterwarnings("ignore:.*IterativeImputer.*")
def test_the_target_is_a_further_column_of_the_imputer():
    X, y = examples(80, 6)
    X = hidden(X, 4)
    X -= np.nanmean(X, axis=0)
    w, _ = imputation.regressor(X, y, impute="iterative", with_target=True, **AS_FITTED)
    target = (y - y.mean()) / y.std()
    filled = IterativeImputer(random_state=0).fit_transform(np.column_stack([X, target]))[:, :6]
    others = [Ridge(alpha).fit(filled, y).coef_ for alpha in cross_validated(filled, y)]
    np.testing.assert_allclose(w, np.mean(others, axis=0), rtol=1e-8)
    without, _ = imputation.regressor(X, y, impute="iterative", **AS_FITTED)
    assert not np.allclose(w, without)
    thousand, _ = imputation.regressor(X, 1000 * y, impute="iterative", with_target=True, **AS_FITTED)
    np.testing.assert_allclose(thousand, 1000 * w, rtol=1e-8)


@pytest.mark.parametrize(("impute", "rescale"), [("mean", False), ("mean", True), ("iterative", True)])
def test_shifts_move_only_the_intercept_and_units_rescale(impute, rescale):
    X, y = examples(60, 5)
    X, a, options = hidden(X, 3), np.linspace(-30, 30, 5), {"impute": impute, "rescale": rescale, **BOTH}
    w, b = imputation.regressor(X, y, **options)
    moved, moved_intercept = imputation.regressor(X + a, y + 7, **options)
    np.testing.assert_allclose(moved, w, rtol=1e-6)
    assert moved_intercept == pytest.approx(b + 7 - w @ a, rel=1e-6)
    if impute == "mean":
        scaled, same = imputation.regressor(4 * X, y / 2, **options)
        np.testing.assert_array_equal(scaled, w / 8)
        assert same == b / 2


def test_unseen_attributes_and_a_single_example_give_zero():
    X, y = examples(5, 12)
    for centred in (True, False):  # a value seen once equals its mean
        outputs, log = fitted(X, y, 2, [1, 5], centred=centred)
        counts = np.bincount(log.seen()[1], minlength=12)
        assert {0, 1, 2} <= set(counts)
        assert not outputs[1].regressors.any() and outputs[1].intercept == y[0]
        np.testing.assert_array_equal(outputs[5].regressors[0, :, 0] != 0, counts > centred)
    w, b = imputation.regressor(X[:1], y[:1], impute="mean", rescale=True, centred=False, intercept=False)
    assert not w.any() and b == 0
    for impute in ("mean", "iterative"):
        w, b = imputation.regressor(np.full((4, 3), np.nan), y[:4], impute=impute, rescale=True, **BOTH)
        assert not w.any() and b == y[:4].mean()
    for constant in (0.0, 2.0):
        w, b = imputation.regressor(np.zeros((4, 3)), np.full(4, constant), impute="mean", rescale=True, **BOTH)
        assert not w.any() and b == constant
    apart = np.array([[1.0, np.nan], [2.0, np.nan], [np.nan, 3.0], [np.nan, 5.0]])  # no two values of one example
    assert np.isfinite(imputation.regressor(apart, y[:4], impute="mean", rescale=True, **BOTH)[0]).all()


@pytest.mark.parametrize("centred", [True, False])
def test_the_factor_is_the_best_one_for_complete_rows(centred):
    """Also without an intercept and centring, where the means of attributes and targets count."""
    X, y = examples(6000, 8)
    y = y - y.mean() if centred else y
    shown, strengths = hidden(X[:3000], 4), np.array([10.0])
    means = np.nanmean(shown, axis=0)
    origin = means if centred else 0
    w = RidgeRows(np.where(np.isnan(shown), means, shown) - origin, y[:3000], free=False).solved(strengths)[0][:, 0]
    part = (X[3000:] - origin) @ w
    best = part @ y[3000:] / (part @ part)
    factor = imputation.full_row_scale(shown, y[:3000], strengths, centred=centred)
    assert factor == pytest.approx(best, abs=0.02) and best < 0.97


def test_a_regressor_of_noise_is_shortened():
    """Judged by the rows that it was fitted to, it would seem right."""
    factors = []
    for seed in range(20):
        X, y = np.random.default_rng(seed).normal(size=(40, 12)), np.random.default_rng([seed, 1]).normal(size=40)
        factors.append(imputation.full_row_scale(hidden(X, 4, seed), y, np.array([1.0]), centred=True))
    assert np.mean(factors) < 0.2


@pytest.mark.parametrize("n", [2, 4, 33, 499, 2000])
def test_each_row_is_held_out_once_in_each_repetition_and_few_rows_more_often(n):
    repetitions = list(folds(n))
    assert len(repetitions) == min(10, -(-500 // n))
    for parts in repetitions:
        assert (np.sum(parts, axis=0) == 1).all()
        assert {np.count_nonzero(part) for part in parts} <= {n // min(n, 5), -(-n // 5)}
    assert n < 30 or (repetitions[0][0] != repetitions[-1][0]).any() or n >= 500


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("n", [6, 40])
def test_ridge_without_some_rows_is_that_of_the_others(n, free):
    """By products for many rows, by rows for few."""
    X, y = examples(n, 12)
    alphas, left_out = np.array([0.1, 30.0]), np.arange(n) % 3 == 1
    W, b = RidgeRows(X, y, free).solved(alphas, left_out)
    for i, alpha in enumerate(alphas):
        other = Ridge(alpha, fit_intercept=free).fit(X[~left_out], y[~left_out])
        np.testing.assert_allclose(W[:, i], other.coef_, rtol=1e-6)
        assert b[i] == pytest.approx(other.intercept_, rel=1e-6)


def test_results_of_other_imputations_do_not_depend_on_rescaling():
    """So results from before there was a choice stay current where nothing changed."""

    def identity(**options):
        learner = imputation.ImputationLearner(name="impute", **options)
        return learner.identity({"impute": learner.impute, "rescale": learner.rescale})

    before = {"name": "impute", "core": "imputation", "version": 2}
    assert identity(impute="mean", rescale=False) == {**before, "impute": "mean"}
    assert identity(impute="mean", rescale=True) == {**before, "impute": "mean", "rescale": True}
    assert identity(impute="iterative", rescale=True) == {**before, "impute": "iterative"}


def test_iterative_imputation_of_many_attributes_is_refused():
    def notes(impute, d):
        learner = imputation.ImputationLearner(name="impute", impute=impute)
        return learner.notes(RunContext(4, d, 100, None, 1.0, 1.0, lambda: np.ones(d)), {})

    with pytest.raises(ConfigError, match=r"^algo\.impute=iterative: at most 100 attributes, as 101 .*; use mean$"):
        notes("iterative", 101)
    assert notes("mean", 101) == notes("iterative", 100) == ()


def sgd_listing(values, y, B, eta, *, centred, intercept, scaled):
    """Return (weights, prediction at 0) of the mean of all iterates, from rows (m, d) with NaN for unseen values."""
    m, d = values.shape
    w, total = np.zeros(d), np.zeros(d)

    def statistics(t):
        columns = [values[: t + 1, j][~np.isnan(values[: t + 1, j])] for j in range(d)]
        means = np.array([column.mean() if column.size else 0.0 for column in columns])
        units = np.ones(d)
        for j, column in enumerate(columns if scaled else ()):
            if column.size == 1:
                units[j] = abs(column[0])
            elif column.size:
                units[j] = column.std(ddof=1)
        return means, units

    for t in range(m):
        total += w
        means, units = statistics(t)
        x = (np.where(np.isnan(values[t]), means, values[t]) - means * centred) / units
        w = w - eta * (w @ x - (y[t] - (y[:t].mean() if t else y[t]) * intercept)) * x
        w *= min(1, B / np.linalg.norm(w)) if w.any() else 1
    means, units = statistics(m - 2)
    w = total / m / units
    return w, y.mean() * intercept - means @ w * centred


@pytest.mark.parametrize("given", [BOTH, {"centred": False, "intercept": True}, {"centred": True, "intercept": False}])
@pytest.mark.parametrize("scaled", [False, True])
def test_sgd_on_imputed_examples_follows_its_listing(given, scaled):
    X, y = examples(80, 5)
    X *= [1, 10, 0.1, 3, 1]
    learner, settings = imputation.ImputedGradientLearner(name="sgd"), {"B": [0.5, 4.0], "eta": [0.02, 0.005]}
    log, given = Recorder(5), {**given, "scaled": scaled}
    outputs = fit(learner, X, y, np.arange(80)[None], 3, settings=settings, given=given, log=log)[0][80]
    for g in range(2):
        w, b = sgd_listing(shown(X, log), y, settings["B"][g], settings["eta"][g], **given)
        np.testing.assert_allclose(outputs.regressors[0, :, g], w, rtol=1e-9)
        assert outputs.intercept[0, g] == pytest.approx(b, rel=1e-9, abs=1e-12)


def correlated(m, d=12, seed=0):
    """Return attributes that share one factor, and a target that depends on it, with noise."""
    rng = np.random.default_rng([seed, 4])
    X = 2 + rng.normal(size=(m, 1)) + 0.3 * rng.normal(size=(m, d))
    return X, X @ np.linspace(0.5, 1.5, d) + 3 * rng.normal(size=m)


@pytest.mark.parametrize("problem", [examples, correlated])
@pytest.mark.parametrize("centred", [True, False])
def test_a_rescaled_regressor_errs_nearly_least_among_its_multiples(problem, centred):
    """The error on complete rows, which it has not seen."""
    X, y = problem(4000, 12)
    full, target, y = X[1000:], y[1000:], y[:1000]
    options = {"impute": "mean", "centred": centred, "intercept": True}
    X, r = hidden(X[:1000], 4), y.mean()
    as_fitted, _ = imputation.regressor(X, y, rescale=False, **options)
    w, b = imputation.regressor(X, y, rescale=True, **options)
    part = (full - np.nanmean(X, axis=0) if centred else full) @ as_fitted
    errors = {s: np.square(target - r - s * part).mean() for s in np.linspace(0, 1, 101)}
    rescaled = np.square(target - b - full @ w).mean()
    assert rescaled < min(errors.values()) + 0.03 * errors[0.0]
    if centred:  # else the mean, which rows share, makes other directions hard to learn
        assert rescaled < 0.8 * errors[0.0]
        assert problem is examples or errors[1.0] > 3 * errors[0.0]


def test_with_every_value_seen_nothing_is_rescaled():
    X, y = examples(40, 5)
    w, _ = imputation.regressor(X, y, impute="mean", rescale=True, **BOTH)
    expected = np.mean([Ridge(alpha).fit(X, y).coef_ for alpha in cross_validated(X - X.mean(axis=0), y)], axis=0)
    np.testing.assert_allclose(w, expected, rtol=1e-10)


def test_the_strength_is_stable_where_there_are_about_as_many_rows_as_attributes():
    """Leave-one-out errors choose strengths here whose mean error is 2.3 times that of the best one."""
    errors, least = [], []
    for seed in range(8):
        rng = np.random.default_rng([seed, 5])
        X = rng.normal(size=(400, 20))
        y = X @ np.linspace(-0.3, 0.3, 20) + 0.7 * rng.normal(size=400)
        X, y, full, target = X[:22], y[:22], X[22:], y[22:]
        w, b = imputation.regressor(X, y, impute="mean", rescale=True, **BOTH)
        errors.append(np.square(target - b - full @ w).mean())
        fits = (Ridge(alpha).fit(X, y).predict(full) for alpha in np.geomspace(1e-2, 1e4, 19))
        least.append(min(np.square(target - prediction).mean() for prediction in fits))
    assert np.mean(errors) < 1.35 * np.mean(least)
