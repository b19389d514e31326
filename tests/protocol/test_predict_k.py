"""A budget at prediction: who chooses the attributes, what is masked, what is reported, and what stays the same."""

import csv
from pathlib import Path

import numpy as np
import pytest

from budgetreg.algorithms.tasks import RegressorJudge
from budgetreg.cli.app import main
from budgetreg.estimators import ESTIMATORS
from budgetreg.metering.table import JointMoments, Origin, Table
from budgetreg.protocol.prediction import narrowed, spread
from budgetreg.runs.models import read_models

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


def test_learners_of_subspaces_refuse_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "algo=popca", "predict_k=3", "k=4"]) == 2
    assert "predict_k=3: popca learns a subspace and predicts nothing" in capsys.readouterr().err


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
