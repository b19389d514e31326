"""What estimators learn: the numbers of the command, within the budget, from values that are there or observed."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_info

from budgetreg import api
from budgetreg.estimators import (
    AELR,
    AELRCV,
    AEML,
    AEMR,
    ESTIMATORS,
    PCA,
    POPCA,
    FixedSubset,
    ObservationError,
    Ridge,
    SGDImpute,
)
from budgetreg.runs.models import predict, read_models
from tests.estimators.tables import Observed, small, table, written
from tests.tiers import slow_but

N, D = 40, 5
COSTS = [1, 2, 4, 5, 3]
ONE_FREE = [1, 2, 0, 5, 3]
PANEL = ["", "panel", "", "panel", ""]
STEPS = {"k": 3, "B": 1.0, "eta": 0.1}
FIXED = {"k": 3, "tuning": "fixed", "tuning.B": 1.0, "tuning.eta": 0.1}
FACTORS = {"n_factors": 1}
CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "constants given": (AELR(**STEPS, random_state=3), {**FIXED, "seed": 3}),
    "no intercept": (
        AELR(**STEPS, fit_intercept=False, center="none", scale="max_abs", split="even"),
        {**FIXED, "intercept": "none", "dataset.center": "none", "dataset.scale": "max_abs", "algo.split": "even"},
    ),
    "moments given": (
        ESTIMATORS["DDAERR"](**STEPS, moments="given", scale="max_abs", pilot=0),
        {**FIXED, "algo.moments": "given", "dataset.scale": "max_abs", "pilot": 0},
    ),
    "budget on average": (
        ESTIMATORS["AESVR"](**{**STEPS, "k": 4}, eps=2.0, delta=0.5, random_state=5),
        {**FIXED, "k": 4, "algo.eps": 2.0, "algo.delta": 0.5, "seed": 5},
    ),
    "tuned, within money": (
        AELRCV(k=3, folds=2, grid={"B": [1.0], "eta": [4, 16]}, total=150, costs=COSTS),
        {"k": 3, "tuning.folds": 2, "algo.grid.B": [1.0], "algo.grid.eta": [4, 16], "total": 150},
    ),
    "a total": (AELR(**STEPS, total=80), {**FIXED, "total": 80}),
    "a total in money": (AELR(**STEPS, total=150, costs=COSTS), {**FIXED, "total": 150}),
    "groups and a free attribute": (
        SGDImpute(**STEPS, costs=[1, 2, 0, 2, np.nan], groups=["", "panel", "", None, "panel"]),
        FIXED,
    ),
    "groups of complete rows": (Ridge(B=1.0, groups=PANEL, total=60), {**FIXED, "k": "all", "total": 60}),
    "k is chosen, within money": (
        AEMR(k="auto", total=150, costs=[1, 2, 1, np.nan, 3], groups=PANEL, **FACTORS),
        {"k": "auto", "total": 150},
    ),
    "groups with holes": (
        AEML(k=2, costs=[1, 2, 0, 2, 3], groups=PANEL, total=90, predict_k=2, **FACTORS),
        {"k": 2, "total": 90, "predict_k": 2},
    ),
    "all groups that are present": (AEML(groups=PANEL, **FACTORS), {"k": "all", "pilot": 0}),
    "all that is present, within money": (
        AEML(costs=ONE_FREE, total=90, **FACTORS),
        {"k": D, "pilot": 0, "algo.draws": "everything", "total": 90},
    ),
    "all that is present": (
        AEMR(random_state=5, **FACTORS),
        {"k": D, "pilot": 0, "algo.draws": "everything", "seed": 5},
    ),
    "regression of the target": (AEMR(k=3, prices="ignored", **FACTORS), {"k": 3, "algo.prices": "ignored"}),
    "the same attributes": (FixedSubset(k=2), {"k": 2}),
}
WITH_HOLES = ("groups with holes", *(case for case in CASES if case.startswith("all")))
QUICK = ("constants given", "a total in money", "groups and a free attribute")


def lists(folder: Path, costs: Any, groups: Any) -> dict[str, str]:
    """Write what an estimator knows of the attributes, as the command reads it."""
    if not (costs or groups):
        return {}
    columns = {name: cells for name, cells in (("cost", costs), ("group", groups)) if cells}
    frame = pd.DataFrame({"attribute": [f"x{j}" for j in range(D)], **columns})
    (frame if costs else frame[frame["group"] != ""]).to_csv(folder / "list.csv", index=False)
    return {"dataset.costs" if costs else "dataset.groups": str(folder / "list.csv")}


@pytest.mark.parametrize("case", slow_but(QUICK, CASES))
def test_numbers_and_bill_are_those_of_the_command(case: str, tmp_path: Path) -> None:
    estimator, choices = CASES[case]
    X, y = table(N, D, 0.7 if case in WITH_HOLES else 1.0)
    new = table(10, D, seed=1)[0]
    model = clone(estimator).fit(X, y)
    given = model.get_params()
    choices = {**choices, **({"algo.n_factors": 1} if "n_factors" in given else {})}
    path, out = written(tmp_path / "table.csv", X, y), tmp_path / "out"
    data = {"algo": model.algo, "dataset": "file", "dataset.path": str(path), "dataset.missing": "unavailable"}
    key = lists(tmp_path, given["costs"], given.get("groups"))
    runs = api.fit({**data, **key, **choices, "out": str(out)}).runs
    (learned,) = read_models(out).values()
    np.testing.assert_array_equal(model.coef_, learned["w"])
    assert model.intercept_ == learned["b"] - learned["w"] @ learned["c"]
    np.testing.assert_array_equal(
        model.predict(new), predict(out, written(tmp_path / "new.csv", new)).columns["prediction"]
    )
    assert model.attributes_seen_ == runs["attributes_total"][0]
    assert model.cost_ == (runs["cost_total"][0] if given["costs"] else None)
    if model.tuned:
        assert model.best_params_ == {name: runs[f"p_{name}"][0] for name in ("B", "eta")}
        assert model.attributes_tuning_ == runs["attributes_tuning"][0]
        assert model.cost_tuning_ == runs["cost_tuning"][0] > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_learner_sees_what_it_pays_for_and_no_other_value(name: str) -> None:
    """An observed table has the numbers of a table, and each cell is asked for once, at most k of an example."""
    X, y = table(40, 6, seed=2)
    estimator, observe = small(name, scale="none"), Observed(X)
    if estimator.tuned:
        with pytest.raises(ValueError, match="cross-validation needs full rows"):
            estimator.fit(observe, y=y, n_features=6)
        return
    estimator.fit(observe, y=y, n_features=6)
    learned = estimator.coef_ if hasattr(estimator, "coef_") else estimator.components_
    again = small(name, scale="none").fit(X, y)
    np.testing.assert_array_equal(learned, again.coef_ if hasattr(again, "coef_") else again.components_)
    assert len(set(observe.cells)) == len(observe.cells) <= estimator.attributes_seen_ == again.attributes_seen_
    # Of some learners the budget holds on average.
    assert estimator.attributes_seen_ <= 4 * 40 * 1.1


def test_observing_asks_for_k_attributes_of_each_example() -> None:
    X, y = table(30, 5)
    observe, given = Observed(X), {"k": 2, "B": 1.0, "eta": 0.1, "pilot": 3}
    model = SGDImpute(**given).fit(observe, y=y, n_features=5)
    np.testing.assert_array_equal(model.coef_, SGDImpute(**given).fit(X, y).coef_)
    bills = sorted(Counter(example for example, _ in observe.cells).values())
    # Learning ends where 30 examples of 2 attributes would, as the command does.
    assert bills == [2] * 22 + [5] * 3
    assert model.attributes_seen_ == 22 * 2 + 3 * 5


def test_learning_uses_one_thread_as_a_run_does() -> None:
    X, y = table(30, 5)
    threads: set[int] = set()

    def observe(example: int, attributes: np.ndarray) -> np.ndarray:
        threads.update(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return np.asarray(X[example, attributes])

    SGDImpute(k=2, B=1.0, eta=0.1, pilot=3).fit(observe, y=y, n_features=5)
    assert threads <= {1}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (OSError("the lab is\nclosed"), "observe raised OSError: the lab is closed"),
        ([1.0], r"observe returned shape \(1,\) for 2 attributes"),
        ([1.0, np.nan], "observe returned nan for attribute [0-4]"),
        ([1.0, "x"], "observe returned no numbers"),
        ([1.0, 2j], "observe returned no numbers"),
        (None, "observe returned"),
    ],
)
def test_a_failed_observation_names_the_example_and_changes_nothing(answer: Any, message: str) -> None:
    X, y = table(30, 5)
    calls: list[int] = []

    def observe(example: int, attributes: np.ndarray) -> Any:
        calls.append(example)
        if len(calls) == 12:
            if isinstance(answer, Exception):
                raise answer
            return answer
        return X[example, attributes]

    arguments = {"k": 2, "B": 1.0, "eta": 0.1, "pilot": 0, "scale": "none"}
    model = SGDImpute(**arguments).fit(X[::-1], y)
    before = model.coef_.copy()
    with pytest.raises(ObservationError, match=message) as failure:
        model.fit(observe, y=y, n_features=5)
    error = failure.value
    assert str(error).startswith(f"example {calls[-1]}: ")
    assert error.example == calls[-1]
    np.testing.assert_array_equal(model.coef_, before)
    seen = ~np.isnan(error.values)
    np.testing.assert_array_equal(error.values[seen], X[seen])
    assert sorted(np.flatnonzero(seen.any(axis=1))) == sorted(calls[:-1])
    # The values paid for are not asked for again, and the result is that of an uninterrupted fit.
    before_failure = len(calls)
    model.fit(observe, y=y, n_features=5, known=error.values)
    assert len(calls) - before_failure == 30 - 11
    np.testing.assert_array_equal(model.coef_, SGDImpute(**arguments).fit(X, y).coef_)


def test_what_earlier_calls_returned_is_kept_and_nothing_of_the_failed_one() -> None:
    """AELR asks twice about an example: for the data point, and for its inner product with the regressor."""
    X, y = table(30, 5)
    returned: set[tuple[int, int]] = set()

    def observe(example: int, attributes: np.ndarray) -> np.ndarray:
        if any((example, j) in returned for j in range(5)) and len(returned) > 60:
            raise OSError("closed")
        returned.update((example, j) for j in attributes.tolist())
        return X[example, attributes]

    with pytest.raises(ObservationError) as failure:
        AELR(k=4, B=1.0, eta=0.1, pilot=0, scale="none").fit(observe, y=y, n_features=5)
    assert set(zip(*(part.tolist() for part in np.nonzero(~np.isnan(failure.value.values))), strict=True)) == returned


@pytest.mark.parametrize(
    ("estimator", "arguments", "message"),
    [
        (Ridge(B=1.0, scale="max_abs"), {"n_features": 5}, "scale='max_abs' needs all values"),
        (Ridge(B=1.0, center="full"), {"n_features": 5}, "center='full' needs all values"),
        (Ridge(B=1.0), {}, "y and n_features are needed with a callable"),
        (Ridge(B=1.0), {"n_features": 5, "known": np.zeros((2, 2))}, r"known has shape \(2, 2\)"),
    ],
)
def test_observing_is_refused_where_all_values_are_needed(estimator: Any, arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        estimator.fit(lambda example, attributes: np.zeros(len(attributes)), y=np.arange(9.0), **arguments)


@pytest.mark.parametrize("centring", [{}, {"center": "none", "fit_intercept": False}])
@pytest.mark.parametrize("learner", [AEML, AEMR])
def test_incomplete_rows_are_predicted_by_the_factor_model(
    learner: Any, centring: dict[str, Any], short_chains: None
) -> None:
    X, y = table(40, 3, 0.7)
    model = learner(n_factors=1, **centring).fit(X, y)
    assert not centring or model.intercept_ == 0
    new = np.array([[1.0, np.nan, 2.0], [np.nan] * 3, [4.0, 5.0, 6.0]])
    predictions, deviations = model.predict(new, return_std=True)
    S, w = model.covariance_, model.coef_
    present = np.array([0, 2])
    gain = S[1, present] @ np.linalg.inv(S[np.ix_(present, present)])
    expected = model.mean_[1] + gain @ (new[0, present] - model.mean_[present])
    assert predictions[0] == pytest.approx(model.intercept_ + w @ [1.0, expected, 2.0])
    assert deviations[0] ** 2 == pytest.approx(w[1] ** 2 * (S[1, 1] - gain @ S[present, 1]) + model.noise_variance_)
    assert predictions[1] == pytest.approx(model.intercept_ + w @ model.mean_)
    assert deviations[1] ** 2 == pytest.approx(w @ S @ w + model.noise_variance_)
    assert deviations[2] == pytest.approx(np.sqrt(model.noise_variance_))
    np.testing.assert_array_equal(predictions, model.predict(new))


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["revealed", "max_abs", "pilot"])
def test_the_model_is_in_units_of_the_table(scale: str) -> None:
    """Whatever is subtracted from attributes and what they are divided by while learning."""
    X, y = table(80, 3)
    model = AEML(k=2, n_factors=1, pilot=6, scale=scale).fit(X * 100, y)
    np.testing.assert_allclose(model.mean_, 100 * X.mean(axis=0), atol=100)
    np.testing.assert_allclose(np.sqrt(np.diag(model.covariance_)), 100 * X.std(axis=0), rtol=0.3)


def test_learners_without_a_model_of_the_attributes_need_complete_rows() -> None:
    X, y = table(30, 3)
    model = Ridge(B=1.0).fit(X, y)
    with pytest.raises(ValueError, match="contains NaN"):
        model.predict(np.array([[1.0, np.nan, 2.0]]))
    with pytest.raises(ValueError, match="Ridge does not model the attributes: use AEML"):
        model.predict(X, return_std=True)


def test_subspaces_have_components_and_coordinates() -> None:
    """With all attributes seen the subspace is that of the leading eigenvectors of the second moment."""
    X, _ = table(50, 4)
    model = PCA(n_components=2, scale="none").fit(X)
    C = X.T @ X
    leading = np.linalg.eigh(C)[1][:, -2:]
    np.testing.assert_allclose(model.components_.T @ model.components_, leading @ leading.T, atol=1e-10)
    projected = model.inverse_transform(model.transform(X))
    np.testing.assert_allclose(projected, X @ leading @ leading.T, atol=1e-9)
    assert POPCA(k=2, n_components=1).fit(X).transform(X).shape == (50, 1)
    assert POPCA(k=2, n_components=1).fit(X).attributes_seen_ == 100


def test_coordinates_become_examples_in_units_of_the_table() -> None:
    X = np.outer(np.arange(1.0, 9.0), [1.0, 20.0, 300.0])
    model = PCA(n_components=1).fit(X)  # which divides attributes by their largest values
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X)


def test_tuning_has_a_bill_of_its_own() -> None:
    X, y = table(20, 4)
    given = {"k": 2, "pilot": 0, "scale": "none"}
    tuned = AELRCV(**given, folds=2, grid={"B": [1.0], "eta": [1.0, 2.0]}).fit(X, y)
    assert tuned.attributes_seen_ == AELR(**given, **tuned.best_params_).fit(X, y).attributes_seen_ <= 40
    assert tuned.attributes_tuning_ > 0


@pytest.mark.slow
def test_a_table_that_is_all_constants_is_learned() -> None:
    """The mean of the targets is predicted, with their standard deviation."""
    X, y = np.ones((20, 3)), np.arange(20.0)
    predictions, deviations = AEML(n_factors=1).fit(X, y).predict(X, return_std=True)
    np.testing.assert_allclose(predictions, y.mean(), atol=1.0)
    np.testing.assert_allclose(deviations, y.std(), rtol=0.2)


@pytest.mark.parametrize("value", [0.1, 37.07, -1.0])
def test_equal_targets_have_no_weights_and_no_constants_to_choose(value: float) -> None:
    X = np.random.default_rng(0).normal(size=(5, 8))
    model = Ridge(B=1.0).fit(X, np.full(5, value))
    np.testing.assert_array_equal(model.coef_, np.zeros(8))
    np.testing.assert_allclose(model.predict(X), value)
    with pytest.raises(ValueError, match="AELRCV: all targets are equal"):
        AELRCV(k=3).fit(np.tile(X, (8, 1)), np.full(40, value))
