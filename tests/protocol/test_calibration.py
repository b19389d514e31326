"""Probabilities of two labels agree with discriminant analysis on normal classes, and with frequencies on real data."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from budgetreg.data.registry import load
from budgetreg.metering.table import Table
from budgetreg.protocol.calibration import calibrated, explained_by_cells, explained_by_folds, probability
from budgetreg.protocol.repetitions import run_repetitions
from budgetreg.protocol.split import split_data
from tests.plans import planned

MEANS = np.array([[0.0, 0.0, 0.0], [1.0, 0.5, -0.8]])
MIXING = np.array([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.2, -0.3, 0.7]])


def classes(n: int, share: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two normal classes with one covariance matrix."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < share, 1.0, -1.0)
    return MEANS[(y > 0).astype(int)] + rng.normal(size=(n, 3)) @ MIXING.T, y


@pytest.mark.parametrize("share", [0.5, 0.8, 0.07])
def test_least_squares_gives_the_probabilities_of_discriminant_analysis(share: float) -> None:
    X, y = classes(4000, share)
    A = np.column_stack([np.ones(len(y)), X])
    scores = A @ np.linalg.lstsq(A, y, rcond=None)[0]
    p = float((y > 0).mean())
    explained = float(scores.var() / y.var())
    analysis = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    np.testing.assert_allclose(probability(scores, p, explained), analysis.predict_proba(X)[:, 1], atol=2e-3)


def test_the_posterior_is_that_of_two_normal_distributions() -> None:
    """Bayes' rule, written out for the means and the variance that the module derives."""
    p, R2, s = 0.3, 0.6, np.linspace(-2, 2, 9)
    m1, m0, v = 2 * p - 1 + 2 * (1 - p) * R2, 2 * p - 1 - 2 * p * R2, 4 * p * (1 - p) * R2 * (1 - R2)
    assert p * m1 + (1 - p) * m0 == pytest.approx(2 * p - 1)
    one, zero = (share * np.exp(-np.square(s - m) / (2 * v)) for share, m in ((p, m1), (1 - p, m0)))
    np.testing.assert_allclose(probability(s, p, R2), one / (one + zero), rtol=1e-12)


def test_probabilities_stay_between_0_and_1() -> None:
    far = probability(np.array([-1e9, -2.0, 0.0, 2.0, 1e9]), 0.5, 0.9)
    assert ((far >= 0) & (far <= 1)).all()
    assert (np.diff(far) >= 0).all()
    assert far[2] == 0.5
    assert probability(np.array([-9.0, 9.0]), 0.2, 0.0).tolist() == [0.2, 0.2]  # nothing was learned


def test_what_is_explained_is_kept_possible() -> None:
    y = np.array([1.0, 1.0, -1.0, 1.0])
    assert calibrated(y, 1.7, 20)["explained"] == 1 - 1 / 20
    assert calibrated(y, -0.3, 20)["explained"] == 0
    assert calibrated(y, 0.4, 20) == {"share": 0.75, "explained": 0.4}
    assert calibrated(np.ones(5), 0.4, 20) == {}
    assert explained_by_folds(np.array([0.2, 0.4]), np.array([-1.0, 1.0])) == pytest.approx(0.7)


def test_single_cells_show_what_is_explained() -> None:
    """From two of three attributes of each example, and a few full rows; what was not seen may be anything."""
    X, y = classes(3000, 0.4)
    A = np.column_stack([np.ones(len(y)), X])
    b, *w = np.linalg.lstsq(A, y, rcond=None)[0]
    scores = A @ np.array([b, *w])
    rng = np.random.default_rng(1)
    seen = np.argsort(rng.random(X.shape), axis=1) < 2
    rows = np.arange(40)
    seen[rows] = True
    cells = np.flatnonzero(seen & (np.arange(len(y)) >= 40)[:, None])
    shown = np.where(seen, X, np.nan)
    model = {"w": np.array(w), "c": np.array([5.0, -3.0, 0.0])}
    table = Table(shown, y, scale=np.array([2.0, 1.0, 3.0]), shift=np.ones(3))
    true = scores.var() / y.var()
    estimate = explained_by_cells(table, model, rows, cells, float(y.var()))
    assert 0.85 * true < estimate < true  # a standard error below
    assert explained_by_cells(table, model, rows[:0], cells[:1], float(y.var())) == 0
    masked = replace(table, X=np.nan_to_num(shown, nan=1e9), available=seen)
    everything = np.arange(X.size)
    assert explained_by_cells(masked, model, rows, everything[40 * 3 :], float(y.var())) == pytest.approx(estimate)


def test_what_cells_explain_is_a_standard_error_less_than_their_covariances_do() -> None:
    """The standard error is the standard deviation over other examples."""
    w, covariances, errors = np.array([0.3, 0.1, -0.3]), [], []
    for seed in range(60):
        X, y = classes(300, 0.4, seed)
        seen = np.argsort(np.random.default_rng(seed).random(X.shape), axis=1) < 2
        pairs = [(X[seen[:, i], i], y[seen[:, i]]) for i in range(3)]
        covariance = w @ [np.cov(*pair, bias=True)[0, 1] for pair in pairs]
        model, cells = {"w": w, "c": np.zeros(3)}, np.flatnonzero(seen)
        errors.append(covariance - explained_by_cells(Table(X, y), model, np.arange(0), cells, 1.0))
        covariances.append(covariance)
    assert np.mean(errors) == pytest.approx(np.std(covariances), rel=0.25)


def test_what_cells_explain_depends_on_no_origin() -> None:
    """Neither of the targets, whose mean is far from 0 if one label is rare, nor of the attributes."""
    X, y = classes(200, 0.05)
    cells = np.flatnonzero(np.random.default_rng(0).random(X.shape) < 0.6)
    found = [
        explained_by_cells(Table(X + 3 * shift, y + shift), {"w": np.ones(3), "c": np.zeros(3)}, np.arange(9), cells, 1)
        for shift in (0.0, 5.0)
    ]
    assert found[0] == pytest.approx(found[1])


@pytest.mark.parametrize(
    "words",
    [
        "dataset=breast_cancer algo=ridge total=3000 tuning.folds=3 tuning.widen=0",
        pytest.param("dataset=breast_cancer algo=aemr total=1500", marks=pytest.mark.slow),
    ],
)
def test_probabilities_are_frequencies_on_real_data(words: str) -> None:
    """Test rows of some splits, in groups of like probability."""
    n = 4
    plan = planned(*words.split(), "k=4", "checkpoints=1", f"repetitions={n}")
    data = load(plan.config.dataset, 0, 0)
    P, is_one = [], []
    for number, result in enumerate(run_repetitions(plan, range(n), lambda done: None)):
        split, model = split_data(plan.config, plan.n_test, plan.pilot, number), result["model"]
        test = np.setdiff1d(np.arange(len(data.y)), np.concatenate([split.pilot, split.order]))
        scores = model["b"] + (np.asarray(data.X)[test] - model["c"]) @ model["w"]
        P.append(probability(scores, float(model["share"]), float(model["explained"])))
        is_one.append(data.y[test] > 0)
    p, y = np.concatenate(P), np.concatenate(is_one)
    base = -(y.mean() * math.log(y.mean()) + (1 - y.mean()) * math.log(1 - y.mean()))
    assert -np.log(np.where(y, p, 1 - p)).mean() < 0.45 * base
    for low, high in ((0, 0.2), (0.2, 0.8), (0.8, 1.01)):
        group = (p >= low) & (p < high)
        error = 3 * math.sqrt(max(p[group].mean() * (1 - p[group].mean()), 0.02) / group.sum())
        assert abs(p[group].mean() - y[group].mean()) < error + 0.1


def test_targets_of_other_values_have_no_probabilities(tmp_path: Path) -> None:
    plan = planned("dataset=diabetes", "algo=ridge", "total=600", "tuning=fixed", "tuning.B=50", "repetitions=1")
    (result,) = run_repetitions(plan, [0], lambda done: None)
    assert result["model"].keys() == {"w", "b", "c"}
