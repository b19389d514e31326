"""Imputation and ridge: against a listing and a scikit-learn pipeline, and its invariances."""

import numpy as np
import pytest
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline

from budgetreg import checks
from budgetreg.checks.subject import Recorder
from budgetreg.cli.app import main
from budgetreg.learners import imputation
from budgetreg.learners.signature import SideInformation
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.tasks import WithIntercept
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


def fitted(X, y, orders, k, checkpoints=None, pilot=None, available=None, seeds=None, **options):
    """Return {checkpoint: (W, b)} of streams (F, m), and the log of what was revealed."""
    checkpoints = checkpoints or [orders.shape[1]]
    log = Recorder(X.shape[1])
    accessor = Accessor(Table(X, y, available=available), orders, 1, k, checkpoints, pilot=pilot, log=log)
    rngs = [np.random.default_rng([3, f]) for f in (range(len(orders)) if seeds is None else seeds)]
    options = {"impute": "mean", "rescale": False, **BOTH, **options}
    chosen = {name: options.pop(name) for name in ("impute", "rescale")}
    learner = imputation.ImputationLearner(name="impute", **chosen)
    outputs = learner.fit(accessor, {}, checkpoints, rngs, SideInformation(k, **options))
    with_intercepts = {
        t: output if isinstance(output, WithIntercept) else WithIntercept(output, np.zeros((1, 1)))
        for t, output in outputs
    }
    return with_intercepts, log


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

    best, least = None, np.inf
    for e in np.linspace(-4, 4, 17):
        alpha = 10**e * sum(np.square(Z[:, j]).sum() for j in range(len(seen))) / len(seen)
        error = 0.0
        for t in range(n):
            w, c = ridge([s for s in range(n) if s != t], alpha)
            error += (y[t] - r - c - Z[t] @ w) ** 2
        if error < least:
            best, least = ridge(range(n), alpha), error
    w = np.zeros(d)
    w[seen] = best[0]
    return w, r + best[1] - origin @ best[0]


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("m", "d", "k"), [(3, 7, 2), (7, 8, 3), (25, 5, 2), (25, 5, 5)])
def test_core_equals_listing(m, d, k, centred, intercept):
    X, y = examples(m, d)
    X[:, 1] = 2.0  # never changes
    outputs, log = fitted(X, y, np.arange(m)[None], k, centred=centred, intercept=intercept)
    shown = np.full(X.shape, np.nan)
    shown[log.seen()] = X[log.seen()]
    assert (np.count_nonzero(~np.isnan(shown), axis=1) == k).all()
    w, b = listing(shown, y, centred, intercept)
    np.testing.assert_allclose(outputs[m].regressors[0, :, 0], w, rtol=1e-7, atol=1e-9)
    assert outputs[m].intercept[0, 0] == pytest.approx(b, rel=1e-7, abs=1e-8)


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
    alphas = np.geomspace(1e-4, 1e4, 17) * np.square(filled).sum() / 6
    other = make_pipeline(imputer, RidgeCV(alphas)).fit(X, y)
    full = examples(20, 6, 5)[0]
    np.testing.assert_allclose(b + full @ w, other.predict(full), rtol=1e-8)


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
        outputs, log = fitted(X, y, np.arange(5)[None], 2, [1, 5], centred=centred)
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
    other = RidgeCV(np.geomspace(1e-4, 1e4, 17) * np.square(X - X.mean(axis=0)).sum() / 5).fit(X - X.mean(axis=0), y)
    np.testing.assert_allclose(w, other.coef_, rtol=1e-10)


def test_results_of_other_imputations_do_not_depend_on_rescaling():
    """So results from before there was a choice stay current where nothing changed."""

    def identity(**options):
        learner = imputation.ImputationLearner(name="impute", **options)
        return learner.identity({"impute": learner.impute, "rescale": learner.rescale})

    before = {"name": "impute", "core": "imputation", "version": 1}
    assert identity(impute="mean", rescale=False) == {**before, "impute": "mean"}
    assert identity(impute="mean", rescale=True) == {**before, "impute": "mean", "rescale": True}
    assert identity(impute="iterative", rescale=True) == {**before, "impute": "iterative"}


@pytest.mark.parametrize(
    ("impute", "rescale"), [("mean", True), pytest.param("iterative", True, marks=pytest.mark.slow)]
)
def test_streams_do_not_depend_on_others_or_on_checkpoints(impute, rescale):
    """Over several blocks, one of full rows, with missing values."""
    X, y = examples(300, 6)
    available = np.random.default_rng(2).random(X.shape) < 0.8
    available[:10] = True
    orders = np.stack([10 + np.random.default_rng([1, f]).permutation(290) for f in range(3)])

    def run(streams, checkpoints):
        pilot = np.tile(np.arange(10), (len(streams), 1))
        options = {"pilot": pilot, "available": available, "seeds": streams, "impute": impute, "rescale": rescale}
        return fitted(X, y, orders[streams], 3, checkpoints, **options)

    together, _ = run([0, 1, 2], [5, 280])
    for f in range(3):
        (alone, log) = run([f], [280])
        for part, other in zip(alone[280], together[280], strict=True):
            assert part[0].tobytes() == other[f].tobytes()
        rows, attributes = log.seen()
        assert available[rows, attributes].all()
    shown = np.full(X.shape, np.nan)
    shown[:10], shown[rows, attributes] = X[:10], X[rows, attributes]
    order = np.append(np.arange(10), orders[2][:280])
    w, b = imputation.regressor(shown[order], y[order], impute=impute, rescale=rescale, **BOTH)
    np.testing.assert_array_equal(alone[280].regressors[0, :, 0], w)
    assert alone[280].intercept[0, 0] == b


@pytest.mark.parametrize(
    "check", slow_but(("full at k=d", "unobserved"), ["full at k=d", "same bytes", "unobserved", "origin", "small k"])
)
def test_iterative_imputation_passes_the_checks(check):
    """Except for checks of hundreds of imputations, which `budgetreg check` runs."""
    (iterative,) = (variant for variant in checks.examined("impute_ridge").variants() if "iterative" in variant.changes)
    verdict = checks.run_check(iterative, check)
    assert verdict.passed, verdict.reason


def test_iterative_imputation_of_many_attributes_is_refused(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = "run algo=impute_ridge k=4 dataset=gaussian tuning=honest --dry-run"
    assert main([*line.split(), "algo.impute=iterative", "dataset.d=101"]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert "algo.impute=iterative: at most 100 attributes, as 101 would take too long; use mean" in said
    assert main([*line.split(), "dataset.d=101"]) == 0
    assert main([*line.split(), "algo.impute=iterative", "dataset.d=100"]) == 0
