"""Predictions from few attributes, and probabilities of two labels."""

import csv
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from budgetreg.algorithms.tasks import RegressorJudge
from budgetreg.cli.app import main
from budgetreg.data.registry import load
from budgetreg.estimators import ESTIMATORS
from budgetreg.metering.table import JointMoments, Origin, Table
from budgetreg.protocol.prediction import (
    calibrated,
    explained_by_cells,
    explained_by_folds,
    narrowed,
    probability,
    spread,
)
from budgetreg.protocol.repetitions import run_repetitions
from budgetreg.protocol.split import split_data
from budgetreg.runs.models import read_models
from tests.commands import Call
from tests.plans import planned

# A budget at prediction: who chooses the attributes, what is masked, what stays the same

pytestmark = pytest.mark.usefixtures("undrawn")


def run(tmp_path: Path, *words: str, name: str = "out") -> tuple[list[dict[str, str]], list[dict[str, str]], Path]:
    out = tmp_path / name
    fixed = ["repetitions=2", "checkpoints=2", "dataset=wine", "k=4", "tuning.folds=3", f"out={out}"]
    assert main(["run", *fixed, *words]) == 0
    curves, runs = (list(csv.DictReader((out / each).read_text().splitlines())) for each in ("curves.csv", "runs.csv"))
    return curves, runs, out


MEAN = ("intercept=mean", "dataset.center=revealed")


@pytest.mark.parametrize(
    "algo",
    [
        "aerr",
        "corrected_ridge",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("lasso", "normal_ml", "impute_ridge")),
    ],
)
def test_predictions_see_few_attributes(algo: str, tmp_path: Path) -> None:
    curves, runs, out = run(tmp_path, f"algo={algo}", "predict_k=3", *MEAN)
    assert {row["predicted_from"] for row in curves} == {"3"}
    assert {row["predicted_from"] for row in runs} == {"3"}
    for model in read_models(out).values():
        assert np.count_nonzero(model["w"]) <= 3
    assert all(float(row["test_relative"]) < 1.5 for row in curves[1::2])


@pytest.mark.slow
def test_learning_stays_the_same(tmp_path: Path) -> None:
    """What is drawn, paid and chosen does not depend on it; d attributes or more give the same errors."""
    words = ("algo=aerr", *MEAN)
    every, few, plain = (
        run(tmp_path, *words, *more, name=name)
        for name, more in (("13", ["predict_k=13"]), ("2", ["predict_k=2"]), ("all", []))
    )
    assert "predicted_from" not in plain[0][0]
    assert "predicted_from" not in plain[1][0]
    for name in ("attributes", "examples"):
        assert [row[name] for row in few[0]] == [row[name] for row in plain[0]]
    for name in ("p_B", "p_eta", "cells_run", "attributes_tuning"):
        assert [row[name] for row in few[1]] == [row[name] for row in plain[1]]
    for ours, theirs in zip(every[0], plain[0], strict=True):
        assert float(ours["test_mse"]) == pytest.approx(float(theirs["test_mse"]))
    assert [row["test_mse"] for row in few[0]] != [row["test_mse"] for row in plain[0]]


def test_with_prices_a_prediction_has_its_own_bill(tmp_path: Path) -> None:
    _, runs, _ = run(tmp_path, "algo=impute_ridge", "predict_k=2", "dataset.costs=equal")
    assert {row["predicted_cost"] for row in runs} == {"2.0"}
    _, priced, _ = run(tmp_path, "algo=impute_ridge", "dataset.costs=equal", name="all")
    assert "predicted_cost" not in priced[0]
    assert [row["cost_total"] for row in runs] == [row["cost_total"] for row in priced]


def test_learners_of_subspaces_refuse_it(call: Call) -> None:
    assert "predict_k=3: popca learns a subspace and predicts nothing" in call("run algo=popca predict_k=3 k=4", 2).err


def test_the_judge_masks_what_is_not_visible() -> None:
    """Values outside the visible attributes change no error, whatever the regressor weighs."""
    rng = np.random.default_rng(0)
    X, y, W = rng.normal(size=(20, 4)), rng.normal(size=20), rng.normal(size=(4, 1))
    visible, hidden = np.array([1, 3]), X.copy()
    hidden[:, [0, 2]] = np.nan
    columns = [
        RegressorJudge(Table(values, y), np.arange(20), False, None).columns(W, 0, Origin(None, 0.5), visible)
        for values in (X, hidden)
    ]
    assert columns[0] == columns[1]
    assert columns[0]["test_mse"] == pytest.approx(np.square(X[:, visible] @ W[visible, 0] + 0.5 - y).mean())


def test_joint_moments_give_the_conditional_expectation() -> None:
    """The first attribute that forward selection takes explains most alone, and the rest is refitted."""
    root = np.random.default_rng(1).normal(size=(5, 5))
    mean, C = np.arange(5.0), root @ root.T
    origin = Origin(None, 0.0, lambda: JointMoments(mean, C))
    found = narrowed(np.ones((4, 1)), 0, origin, 1, lambda: pytest.fail("a model needs no spread"), intercept=True)
    best = int((C[:4, 4] ** 2 / C.diagonal()[:4]).argmax())
    assert found.attributes.tolist() == [best]
    np.testing.assert_allclose(found.outputs[best, 0], C[best, 4] / C[best, best])
    assert found.origin.intercept == pytest.approx(mean[4] - mean[best] * C[best, 4] / C[best, best])
    left_out = np.arange(4) == best
    other = narrowed(np.ones((4, 1)), 0, origin._replace(left_out=left_out), 4, lambda: None, intercept=True)
    assert other.attributes.tolist() == [i for i in range(4) if i != best]
    S = other.attributes
    np.testing.assert_allclose(other.outputs[S, 0], np.linalg.solve(C[np.ix_(S, S)], C[S, 4]))


def test_other_learners_keep_what_weighs_most_in_units_of_what_was_seen() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3)) * [1, 10, 0.1] + [5, 0, 0]
    mean, deviation, n = spread(Table(X, np.zeros(30)), np.array([0, 1, 2]), np.array([9, 12, 16, 19]))
    seen = {0: [0, 1, 2, 3, 4], 1: [0, 1, 2, 5, 6], 2: [0, 1, 2]}
    np.testing.assert_allclose(mean, [X[rows, i].mean() for i, rows in seen.items()])
    np.testing.assert_allclose(deviation, [X[rows, i].std() for i, rows in seen.items()])
    assert n == 13
    W = np.array([[1.0], [0.5], [2.0]])
    found = narrowed(W, 0, Origin(None, np.array([2.0])), 1, lambda: (mean, deviation, n), intercept=True)
    assert found.attributes.tolist() == [1]
    assert found.outputs[:, 0].tolist() == [0, 0.5, 0]
    assert found.origin.intercept == pytest.approx(2 + mean[0] + 2 * mean[2])
    shifted = narrowed(W, 0, Origin(mean, 2.0), 1, lambda: (mean, deviation, n), intercept=True)
    assert shifted.origin.intercept == 2


def test_a_learner_that_stores_values_is_refitted_on_what_it_keeps() -> None:
    """Two copies share the weight of one, which has all of it alone."""
    rng = np.random.default_rng(0)
    s = rng.normal(size=(200, 1))
    X = np.column_stack([s + 0.1 * rng.normal(size=(200, 2)), rng.normal(size=200)])
    model = ESTIMATORS["ImputeRidge"](k=3, predict_k=1).fit(X, s[:, 0])
    assert model.coef_.sum() == pytest.approx(1, abs=0.1)


@pytest.mark.usefixtures("short_chains")
def test_estimators_need_the_other_values_no_more() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6))
    y = X @ [0, 2.0, 0, 0, -1, 0.1] + 0.1 * rng.normal(size=80)
    for name in ("AEML", "ImputeRidge", "CorrectedLasso"):
        model = ESTIMATORS[name](k=5, predict_k=2).fit(X, y)
        assert model.support_.tolist() == [1, 4]
        assert np.count_nonzero(model.coef_) == 2
        hidden = X.copy()
        hidden[:, [0, 2, 3, 5]] = np.nan
        np.testing.assert_array_equal(model.predict(hidden), model.predict(X))
        assert model.score(X, y) > 0.9
    assert ESTIMATORS["ImputeRidge"](k=5).fit(X, y).support_.tolist() == list(range(6))
    with pytest.raises(ValueError, match="NaN"):
        ESTIMATORS["ImputeRidge"](k=5, predict_k=2).fit(X, y).predict(np.full((1, 6), np.nan))


# Probabilities agree with discriminant analysis on normal classes, and with frequencies on real data

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
    assert calibrated(np.ones(5), 0.4, 20) == {"share": 1, "explained": 0}
    assert explained_by_folds(np.array([0.5]), np.ones(5)) == 0
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
