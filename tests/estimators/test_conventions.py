"""The estimators follow scikit-learn's conventions."""

import inspect
import pickle
import re
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import budgetreg
from budgetreg.algorithms.factors import posterior
from budgetreg.config.catalogue import options
from budgetreg.estimators import AELR, AEML, ESTIMATORS, POPCA, FixedSubset, Ridge, RidgeCV
from tests.estimators.tables import small, table

MODELS = ("aeml", "aemr", "normal_ml")
"""Learners that model the attributes, so that rows to predict may have holes."""

HOLES = "it learns from rows with holes, but does not model the attributes: rows to predict or project are complete"


def expected(estimator: Any) -> dict[str, str]:
    """Return the checks that fail by design, with the reasons."""
    learns_from_holes = estimator.__sklearn_tags__().input_tags.allow_nan
    return {"check_estimators_pickle": HOLES} if learns_from_holes and estimator.algo not in MODELS else {}


@parametrize_with_checks([FixedSubset(k=2)], expected_failed_checks=expected)
def test_quick_learners_pass_the_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


SLOW = [
    *(small(name, k=2) for name in ("AELRCV", "AEML", "OnlineRidge", "AEFA", "MBEG", "Baseline")),
    *(small(name, k=2) for name in ("DebiasedSGD", "Hybrid", "TwoPhaseSparse")),
    # These go on with more examples.
    *(small(name, k=2, scale="none", pilot=0) for name in ("AERR", "SGDImpute", "ImputeRidge", "POPCA")),
    *(small(name, k=2, moments="pilot", pilot=2) for name in ("AELR", "DDAERR")),
    *(ESTIMATORS[name]() for name in ("CorrectedLasso", "CorrectedRidge", "CoCoLasso", "HMLasso", "NormalML")),
    *(ESTIMATORS["CorrectedRidge"](predict_k=2), AEML(n_factors=2), ESTIMATORS["AEMR"](n_factors=2)),
    *(Ridge(B=1.0), RidgeCV(folds=2), ESTIMATORS["ImputeRidge"]()),
]


@pytest.fixture
def short_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Average a tenth of the sweeps: conventions do not depend on accuracy, and thousands of fits take minutes."""
    for name in ("MOST_KEPT", "_MOST_AT_ONCE"):
        monkeypatch.setattr(posterior, name, getattr(posterior, name) // 10)


@pytest.mark.slow
@pytest.mark.usefixtures("short_chains")
@parametrize_with_checks(SLOW, expected_failed_checks=expected)
def test_other_learners_pass_them_too(estimator: Any, check: Any) -> None:
    check(estimator)


def test_every_learner_has_a_class_and_every_class_a_name() -> None:
    assert {cls.algo for cls in ESTIMATORS.values()} == set(options("algo"))
    for name, cls in ESTIMATORS.items():
        assert getattr(budgetreg.estimators, name) is cls
        assert (cls.__name__, cls.__module__) == (name, "budgetreg.estimators")
        assert set(inspect.signature(cls).parameters) == set(cls().get_params())
        for parameter in cls().get_params():
            assert f"\n{parameter} : " in str(cls.__doc__)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_docstrings_have_the_sections_of_scikit_learn_and_say_something(name: str) -> None:
    doc = str(ESTIMATORS[name].__doc__)
    headline = doc.splitlines()[0]
    sections = re.findall(r"(?m)^(.+)\n-+$", doc)
    published = re.search(r"\b20\d\d\b|MBEG|AdaOja", headline) is not None
    assert sections == ["Parameters", "Attributes", "See Also", *(["References"] if published else []), "Examples"]
    parameters = re.findall(r"(?m)^(\w+) : (.+), default=.*\n    (.+)$", doc)
    assert {parameter for parameter, *_ in parameters} == set(ESTIMATORS[name]().get_params())
    for parameter, kind, described in parameters:
        assert re.fullmatch(
            r"(\{('\w+'(, )?)+\}|array-like of shape \(d,\)|int|float|bool|dict|RandomState instance|None|, | or )+",
            kind,
        ), kind
        assert described.casefold() not in {f"the {parameter}.", f"{parameter}.", "the control variate."}
        assert not re.search(r"\bnull\b", described)


def test_it_can_be_copied_pickled_and_printed() -> None:
    X, y = table(30, 3)
    model = Ridge(B=2.0, random_state=1).fit(X, y)
    assert repr(model) == "Ridge(B=2.0, random_state=1)"
    assert clone(model).get_params() == model.get_params()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    with pytest.raises(TypeError, match="Ridge: no parameter 'b'; parameters: k, B"):
        Ridge(b=1.0)


@pytest.mark.slow
def test_it_works_in_a_pipeline_and_a_search() -> None:
    X, y = table(40, 3)
    search = GridSearchCV(make_pipeline(StandardScaler(), Ridge(B=1.0)), {"ridge__B": [0.01, 10.0]}, cv=2).fit(X, y)
    assert search.best_params_ == {"ridge__B": 10.0}
    assert search.best_estimator_.score(X, y) > 0.5


def test_weights_of_examples_are_refused() -> None:
    X, y = table(20, 3)
    with pytest.raises(TypeError, match="sample_weight"):
        Ridge(B=1.0).fit(X, y, sample_weight=np.ones(20))


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (AELR(B=1.0, eta=0.1), "AELR: k is needed"),
        (AELR(k=2, B=1.0), "AELR: eta must be given; AELRCV chooses it"),
        (AELR(k=9, B=1.0, eta=0.1), "AELR: k=9: the attribute budget must be at most d=3"),
        (AELR(k=2, B=1.0, eta=0.1, average="most"), "algo.average=most: the averaging of iterates must be one of"),
        (POPCA(k=2, n_components=7), "algo.n_components=7: must be below d=3"),
        (Ridge(B=-1.0), "tuning.B=-1.0: the radius must be a number above 0"),
        (Ridge(B=1.0, fit_intercept="no"), "Ridge: fit_intercept must be True or False, not 'no'"),
        (RidgeCV(grid={"B": 3.0}), "RidgeCV: grid must give a list of numbers for each constant, such as {'B'"),
        (RidgeCV(grid=np.array([1.0, 2.0])), "RidgeCV: grid must give a list of numbers for each constant"),
        (RidgeCV(grid={"B": np.array([[1.0, 2.0]])}), "RidgeCV: grid must give a list of numbers for each constant"),
    ],
)
def test_parameters_that_cannot_work_are_refused_in_one_line(estimator: Any, message: str) -> None:
    X, y = table(20, 3)
    with pytest.raises(ValueError, match=message) as refusal:
        estimator.fit(X, y)
    assert "\n" not in str(refusal.value)


def test_a_grid_may_be_an_array() -> None:
    X, y = table(40, 3)
    fits = [RidgeCV(grid={"B": values}, folds=3).fit(X, y) for values in ([0.01, 10.0], np.logspace(-2, 1, 2))]
    np.testing.assert_array_equal(*(fit.coef_ for fit in fits))


@pytest.mark.slow
def test_without_a_seed_each_fit_draws_anew() -> None:
    X, y = table(60, 4)
    fits = [AELR(k=2, B=1.0, eta=0.1, random_state=None).fit(X, y).coef_ for _ in range(2)]
    assert not np.array_equal(*fits)
    states = [AELR(k=2, B=1.0, eta=0.1, random_state=np.random.RandomState(1)).fit(X, y).coef_ for _ in range(2)]
    np.testing.assert_array_equal(*states)
