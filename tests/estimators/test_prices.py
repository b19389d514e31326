"""Prices, groups and totals: what estimators buy with them, and what cannot be bought."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from budgetreg.estimators import AELR, AEML, AEMR, ESTIMATORS, POPCA, SGDImpute
from budgetreg.estimators.parameters import learner_of
from tests.estimators.tables import Observed, table

N, D = 40, 5
X, Y = table(N, D)
NAMES = [f"x{j}" for j in range(D)]
COSTS = [1, 2, 4, 5, 3]
ONE_FREE = [1, 2, 0, 5, 3]
PANEL = ["", "panel", "", "panel", ""]
STEPS = {"k": 3, "B": 1.0, "eta": 0.1}


def test_a_function_is_asked_for_groups_and_within_a_total() -> None:
    """And for free attributes of every example that is seen."""
    given, observe, free = {**STEPS, "k": 2, "pilot": 2, "groups": PANEL}, Observed(X), Observed(X)
    SGDImpute(**given, total=50).fit(observe, y=Y, n_features=D)
    panels = {example for example, j in observe.cells if j == 1}
    assert panels == {example for example, j in observe.cells if j == 3}
    assert len(observe.cells) - len(panels) <= 50
    model = SGDImpute(**given, costs=[1, 2, 0, 2, 3]).fit(free, y=Y, n_features=D)
    assert {example for example, j in free.cells if j == 2} == {example for example, _ in free.cells}
    assert model.cost_ == sum([1, 2, 0, 0, 3][j] for _, j in free.cells)


def test_choosing_k_a_function_is_asked_for_no_more_than_the_money_pays_for(short_chains: None) -> None:
    observe = Observed(X)
    model = AEML(k="auto", total=90, n_factors=1, costs=COSTS).fit(observe, y=Y, n_features=D)
    assert sum(COSTS[j] for _, j in observe.cells) == model.cost_ <= 90
    with pytest.raises(ValueError, match="AEML: total=90: a rehearsal finds where this money ends"):
        model.set_params(k=2).fit(observe, y=Y, n_features=D)


def test_examples_in_parts_have_the_bill_of_all_at_once_and_no_total() -> None:
    given = {**STEPS, "pilot": 2, "scale": "none", "costs": [1, 2, 0, np.nan, 3], "groups": PANEL}
    parts, whole = (SGDImpute(**given) for _ in range(2))
    whole.partial_fit(X, Y)
    parts.partial_fit(X[:15], Y[:15]).partial_fit(X[15:], Y[15:])
    np.testing.assert_array_equal(parts.coef_, whole.coef_)
    assert parts.cost_ == whole.cost_ > 0
    with pytest.raises(ValueError, match=r"SGDImpute\.partial_fit: other than at first: costs"):
        parts.set_params(costs=COSTS, groups=PANEL[:1] + [""] * 4).partial_fit(X, Y)
    with pytest.raises(AttributeError) as missing:
        SGDImpute(**given, total=90).partial_fit(X, Y)
    assert "a total ends a fit, and partial_fit learns from every example" in str(missing.value.__cause__)


def test_attributes_may_be_named() -> None:
    frame = pd.DataFrame(X, columns=NAMES)
    by_place = SGDImpute(**STEPS, costs=[1, 2, 4, 2, 3], groups=PANEL).fit(X, Y)
    costs = {"x4": 3, "x0": 1, "x1": 2, "x2": 4}
    for given in (costs, pd.Series(costs)):
        by_name = SGDImpute(**STEPS, costs=given, groups={"x3": 7, "x1": 7.0}).fit(frame, Y)
        np.testing.assert_array_equal(by_name.coef_, by_place.coef_)
        assert by_name.cost_ == by_place.cost_
    assert by_name.set_params(costs=None, groups=None).fit(frame, Y).cost_ is None


def test_parameters_are_those_that_a_learner_can_use() -> None:
    for cls in ESTIMATORS.values():
        known, learner = cls().get_params(), learner_of(cls.algo)
        assert {"costs", "total"} <= set(known)
        assert ("groups" in known) == learner.draws_groups
        assert ("'auto': the learner chooses" in str(cls.__doc__)) == learner.chooses_k
    with pytest.raises(TypeError, match="AELR: no parameter 'groups'"):
        AELR(groups=PANEL)


NAMED = pd.DataFrame(X, columns=NAMES)


@pytest.mark.parametrize(
    ("estimator", "values", "message"),
    [
        (AEMR(k="auto"), X, "AEMR: k=auto: needs total=T"),
        (AELR(**{**STEPS, "k": "auto"}, total=90), X, "AELR: k=auto: aelr cannot choose k .* use one of aeml, aemr"),
        (AEMR(k="auto", total=3), X, "AEMR: total=3: k=auto needs a full row"),
        (AELR(**STEPS, total=0), X, "total=0: the number of attributes, or the money"),
        (AELR(**STEPS, total=90.5), X, "total=90.5: the number of attributes, or the money"),
        (AELR(**STEPS, costs=ONE_FREE), X, "the price of .* is 0, and aelr cannot use more than its k"),
        (POPCA(k=2, n_components=1, costs=ONE_FREE), X, "the price of .* is 0, and popca cannot use more than its k"),
        (AEML(costs=[0] * D), X, "AEML: costs: every price is 0"),
        (AEML(costs=[1, -2, 3, 4, 5]), X, "AEML: costs: the price of attribute '2' is -2: it must be 0, or from 1e-30"),
        (AEML(costs=[1, np.inf, 3, 4, 5]), X, "AEML: costs: the price of attribute '2' is inf"),
        (AEML(costs=[1, np.nan, 3, 4, 5]), X, "AEML: costs: no price for '2'"),
        (AEML(costs=COSTS, groups=PANEL), X, "AEML: costs: the group of '4' has the price 2 already"),
        (AEML(costs=COSTS[1:]), X, r"costs has shape \(4,\): \(5,\) is needed"),
        (AEML(costs=list("abcde")), X, "costs holds text"),
        (AEML(costs=3), X, r"costs has shape \(\)"),
        (AEML(groups=PANEL[1:]), X, r"groups has shape \(4,\)"),
        (AEML(costs={"x0": 1}), X, "costs: X has no names of attributes: give a list of 5 entries"),
        (AEML(costs={"x0": 1}), NAMED, "AEML: costs: no price for 'x1', 'x2', 'x3', 'x4'"),
        (AEML(groups={"x0": "a", "x11": "a"}), NAMED, "groups: X has no attribute 'x11' .did you mean"),
        (AEML(k=D, groups=PANEL), X, "AEML: k=5: the attribute budget must be at most 4, as a group counts as one"),
    ],
)
def test_what_cannot_be_bought_is_refused_in_one_line(estimator: Any, values: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as refusal:
        estimator.fit(values, Y)
    assert "\n" not in str(refusal.value)
