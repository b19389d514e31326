"""Results of orders: which lines are accepted, and what they cost."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import budgetreg
from budgetreg.errors import ConfigError, DataError

pytestmark = pytest.mark.usefixtures("short_chains")

COSTS = {"age": 0.5, "ecg": 10, "iron": 20, "zinc": 20}
GROUPS = {"iron": "blood", "zinc": "blood"}


@pytest.fixture
def study(tmp_path: Path) -> budgetreg.Study:
    examples = pd.DataFrame({"age": [31.0, np.nan, np.nan]}, index=["p1", "p2", "p3"])
    return budgetreg.Study.create(
        tmp_path / "trial.db", examples=examples, targets=[1.0, 2.0, 3.0], costs=COSTS, groups=GROUPS, unit="EUR"
    )


def line(**changes: Any) -> pd.DataFrame:
    return pd.DataFrame([{"order": None, "example": "p1", "attribute": "ecg", "value": 1.0, **changes}])


@pytest.mark.parametrize("order", [0, -1, 1.5, 3, "abc", "1a", float("inf")])
def test_only_orders_of_the_study_are_accepted(study: budgetreg.Study, order: object) -> None:
    study.ask(spend=1000)
    with pytest.raises(DataError, match=r"data row 1, column 'order': the study has no order .*leave its order empty"):
        study.tell(line(order=order))
    assert study.bill().total == 0


def test_an_order_contains_the_values_told_for_it(study: budgetreg.Study, tmp_path: Path) -> None:
    first = study.ask(spend=10.5)
    second = study.ask(spend=1000)
    wrong = second.assign(order=1, value=1.0)
    with pytest.raises(DataError, match=r"column 'order': order 1 does not contain 'e?\w+' of example 'p\d': correct"):
        study.tell(wrong)
    assert study.bill().total == 0
    study.cancel(2)
    told = study.tell(second.assign(value=1.0))  # they were sent before the order was cancelled
    assert told.unordered == len(second)
    first.assign(order="NA", value=2.0).to_csv(tmp_path / "first.csv", index=False)
    assert study.tell(tmp_path / "first.csv").values == len(first)


@pytest.mark.parametrize("cost", [-10, "ten", "10,0", float("inf")])
@pytest.mark.parametrize("ordered", [True, False])
def test_a_cost_that_is_no_amount_is_refused(study: budgetreg.Study, cost: object, ordered: bool) -> None:
    if ordered:
        study.ask(spend=1000)
    with pytest.raises(DataError, match=r"data row 1, column 'cost': "):
        study.tell(line(order=1 if ordered else None, cost=cost))
    assert study.bill().total == 0


@pytest.mark.parametrize("cost", [10, "10.0", None, "", "NA", 10 * (1 + 1e-12)])
def test_the_cost_of_the_order_is_accepted(study: budgetreg.Study, cost: object) -> None:
    assert study.tell(line(cost=cost)).cost == 10


def test_a_value_of_a_group_costs_its_price_once(study: budgetreg.Study) -> None:
    for example, attribute, cost in (("p1", "zinc", 20), ("p1", "iron", 20), ("p2", "iron", 20), ("p2", "zinc", 0)):
        study.tell(line(example=example, attribute=attribute, cost=cost))
    assert study.bill().total == 40
    study.tell(line(example="p3", attribute="iron", cost=0), free=True)
    assert study.bill().total == 40


def test_a_group_that_is_partly_delivered_is_on_the_bill_once(study: budgetreg.Study) -> None:
    study.ask(spend=1000)
    study.tell(line(attribute="zinc"))
    bill = study.bill()
    assert bill.total == 20
    assert bill.on_order == 3 * 10 + 2 * 20 + 2 * 0.5  # the rest of the panel is paid for


def test_a_free_value_that_is_replaced_stays_free(study: budgetreg.Study) -> None:
    study.tell(line(), free=True)
    for attribute in ("age", "ecg"):
        assert study.tell(line(attribute=attribute, value=7.0), replace=True).replaced == 1
    assert study.bill().total == 0


def test_an_order_is_repeated_only_with_all_its_limits(study: budgetreg.Study) -> None:
    order = study.ask(spend=30, per_example=2, seed=3, order=1)
    for limits in ({"per_example": 2}, {"per_example": 1, "seed": 3}, {"seed": 3}, {"per_example": 2, "seed": 4}):
        with pytest.raises(ConfigError, match="was asked for with 'spend=30 per_example=2 seed=3'"):
            study.ask(spend=30, order=1, **limits)
    pd.testing.assert_frame_equal(study.ask(spend=30, per_example=2, seed=3, order=1), order)


@pytest.mark.parametrize(
    ("spend", "lines"), [(1.0, 10), (np.nextafter(1.0, 0), 9), (0.8, 8), (np.nextafter(0.8, 0), 7)]
)
def test_ten_times_a_tenth_is_one(tmp_path: Path, spend: float, lines: int) -> None:
    """Sums are exact: added one after the other, ten times 0.1 is less than 1."""
    with budgetreg.Study.create(
        tmp_path / "tenths.db", examples=["p1"], costs={f"a{at}": 0.1 for at in range(12)}
    ) as study:
        assert len(study.ask(spend=spend)) == lines


@pytest.mark.parametrize("number", [0, -1, 1.5, "abc", "1", True])
def test_numbers_of_orders_are_whole(study: budgetreg.Study, number: Any) -> None:
    study.ask(spend=10)
    for call in (lambda: study.ask(spend=10, order=number), lambda: study.cancel(number), lambda: study.order(number)):
        with pytest.raises(ConfigError, match=f"order={number}: must be a whole number of at least 1"):
            call()
    assert study.cancel(np.int64(1)) == 1  # type: ignore[arg-type]
