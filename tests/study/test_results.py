"""Results of orders: which lines are accepted, and what they cost."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import budgetreg
from budgetreg.common.errors import ConfigError, DataError
from budgetreg.figures.tables import paid_in_all

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


@pytest.mark.parametrize("order", [0, 1.5, 3, "1a", float("inf")])
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


def test_late_results_of_a_cancelled_order_belong_to_it(study: budgetreg.Study) -> None:
    order = study.ask(spend=1000, per_example=2)
    study.cancel(1)
    assert study.tell(order).pending == 0
    study.tell(order.assign(value=1.0))
    rows = study.bill().by_order
    assert rows[["order", "paid", "cost"]].to_numpy().tolist() == [[1, len(order), order["cost"].sum()]]
    with pytest.raises(ConfigError, match="nothing that may be ordered is within these limits"):
        study.ask(spend=1000, per_example=2)


def test_what_was_charged_without_an_order_counts_for_the_limit_of_an_example(study: budgetreg.Study) -> None:
    study.tell(line(attribute="ecg"))
    study.tell(line(example="p2", attribute="ecg"), free=True)
    order = study.ask(spend=1000, per_example=1)
    assert "p1" not in set(order["example"])
    assert "p2" in set(order["example"])


@pytest.mark.parametrize("cost", ["10.0", None, "NA", 10 * (1 + 1e-12)])
def test_the_cost_of_the_order_is_accepted(study: budgetreg.Study, cost: object) -> None:
    assert study.tell(line(cost=cost)).cost == 10


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


@pytest.mark.parametrize(
    ("spend", "lines"), [(1.0, 10), (np.nextafter(1.0, 0), 9), (0.8, 8), (np.nextafter(0.8, 0), 7)]
)
def test_ten_times_a_tenth_is_one(tmp_path: Path, spend: float, lines: int) -> None:
    """Sums are exact: added one after the other, ten times 0.1 is less than 1."""
    with budgetreg.Study.create(
        tmp_path / "tenths.db", examples=["p1"], costs={f"a{at}": 0.1 for at in range(12)}
    ) as study:
        assert len(study.ask(spend=spend)) == lines


def test_large_sums_are_told_to_the_cent(tmp_path: Path) -> None:
    """Differences of large sums are exact, too."""
    costs = {"swab": 0.1, "pulse": 0.2, "weight": 0.3, "scan": 12345678.9}
    with budgetreg.Study.create(tmp_path / "large.db", examples=["p1"], costs=costs, unit="JPY") as study:
        results = pd.DataFrame({"example": "p1", "attribute": list(costs), "value": 1.0})
        assert study.tell(results[:3]).spent == 0.6
        assert study.tell(results[3:]).cost == 12345678.9
        assert paid_in_all(study.bill()) == "paid: 12,345,679.5 JPY"


def test_a_late_result_belongs_to_its_cancelled_order_also_if_others_are_free(study: budgetreg.Study) -> None:
    order = study.ask(spend=1000, per_example=2).assign(value=1.0)
    study.cancel(1)
    assert study.tell(order, free=True).cost == order["cost"].sum()


def test_free_results_are_free_also_if_they_failed(study: budgetreg.Study) -> None:
    assert study.tell(line(value="unavailable"), free=True, invoiced=True).cost == 0


def test_an_order_that_is_complete_cannot_be_cancelled(study: budgetreg.Study) -> None:
    order = study.ask(spend=10.5)
    study.tell(order.assign(value=1.0))
    assert study.cancel(1) == 0
    assert not study.bill().by_order["cancelled"].any()
    pd.testing.assert_frame_equal(study.ask(spend=10.5, order=1), order)


@pytest.mark.parametrize("number", [0, 1.5, "1", True])
def test_numbers_of_orders_are_whole(study: budgetreg.Study, number: Any) -> None:
    study.ask(spend=10)
    for call in (lambda: study.ask(spend=10, order=number), lambda: study.cancel(number), lambda: study.order(number)):
        with pytest.raises(ConfigError, match=f"order={number}: must be a whole number of at least 1"):
            call()
    assert study.cancel(np.int64(1)) == 1  # type: ignore[arg-type]


def test_results_are_a_table(study: budgetreg.Study) -> None:
    with pytest.raises(ConfigError, match=r"^the results: must be a path or a pandas.DataFrame; got a Series$"):
        study.tell(line()["value"])


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("high", "'high' is not a number"),
        (float("inf"), "inf is not a finite number"),
        (1e40, r"1e\+40 cannot be computed with"),
        (np.datetime64("2020-01-01"), "'2020-01-01' is not a number"),
        (10**400, "inf is not a finite number"),
        (-(10**400), "-inf is not a finite number"),
        (1 + 0j, "is not a number"),
    ],
)
@pytest.mark.parametrize("column", ["value", "cost"])
def test_what_is_no_number_of_use_is_refused(study: budgetreg.Study, column: str, cell: Any, said: str) -> None:
    cells = np.empty(1, dtype=object)
    cells[0] = cell  # as it is: pandas would read a date
    with pytest.raises(DataError, match=f"data row 1, column '{column}': .*{said}"):
        study.tell(line().assign(**{column: pd.Series(cells, dtype=object)}))
    assert study.bill().total == 0


@pytest.mark.filterwarnings("error")
def test_a_masked_value_is_pending(study: budgetreg.Study) -> None:
    order = study.ask(spend=60, order=1).astype({"value": object})
    order["value"] = [np.ma.masked, *[1.0] * (len(order) - 1)]
    assert study.tell(order).pending == 1


@pytest.mark.parametrize("name", ["COST", "Order"])
def test_columns_that_are_charged_by_must_have_their_names(study: budgetreg.Study, name: str) -> None:
    with pytest.raises(DataError, match=f"column '{name}' is not read: name it {name.lower()}, or drop it"):
        study.tell(line(**{name: 1}))
    assert study.tell(line(**{name: 1}), drop=[name]).values == 1


def test_free_values_keep_to_the_ranges_too(clinic: budgetreg.Study, tmp_path: Path) -> None:
    said = r"'iron': 30 is far outside the range of the attribute, 0 to 10: is the unit right\?"
    with pytest.raises(DataError, match=said):
        clinic.add(pd.DataFrame({"patient": ["007"], "iron": [30]}))
    with pytest.raises(DataError, match=said):
        budgetreg.Study.create(
            tmp_path / "other.db",
            examples=pd.DataFrame({"example": ["a", "b"], "iron": [1, 30], "ecg": [2, 1e9]}),
            ranges=tmp_path / "ranges.csv",
        )


@pytest.fixture
def clinic(tmp_path: Path) -> budgetreg.Study:
    """A study whose column of names is called patient, with names that look like numbers."""
    table = pd.DataFrame({"patient": ["007", "008", "012"], "ecg": [None, None, 3.0]})
    ranges = tmp_path / "ranges.csv"
    ranges.write_text("attribute,low,high\niron,0,10\n")
    return budgetreg.Study.create(
        tmp_path / "clinic.db", examples=table, id="patient", costs=COSTS, groups=GROUPS, ranges=ranges
    )


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "results.csv"
    path.write_text(text)
    return path


def test_a_table_with_a_column_for_each_attribute(clinic: budgetreg.Study, tmp_path: Path) -> None:
    clinic.ask(spend=40)
    wide = "patient;ecg;date;iron;zinc\n008;1,5;3 May;unavailable;\n007;;4 May;2,25;-3\n"
    for name in ("patient", "example"):
        told = clinic.tell(written(tmp_path, wide.replace("patient", name)), decimal=",", drop=["date"])
        assert told.values + told.unavailable + told.repeated == 4
    table = clinic.table().set_index("patient")
    assert table["ecg"].tolist()[1:] == [1.5, 3]
    assert table.loc["007", ["iron", "zinc"]].tolist() == [2.25, -3]
    assert clinic.bill().total == 10 + 20
    frame = pd.DataFrame({"patient": ["012"], "iron": [4.5], "order": [None]})
    assert clinic.tell(frame).values == 1


def test_only_what_is_on_order_is_pending_in_a_wide_table(clinic: budgetreg.Study) -> None:
    order = clinic.ask(spend=10)
    wide = pd.DataFrame({"patient": ["007", "008", "012"], **dict.fromkeys(COSTS)})
    assert clinic.tell(wide).pending == len(order)


def test_the_studys_own_column_of_names(clinic: budgetreg.Study, tmp_path: Path) -> None:
    assert clinic.tell(written(tmp_path, "patient,attribute,value\n007,ecg,1\n")).values == 1
    assert clinic.tell(written(tmp_path, "patient,example,attribute,value\nx,008,ecg,1\n")).values == 1


MISTAKES = [
    ("patient,ecg\n7,1\n", "line 2, column 'patient': the study has no example '7', but '007': spreadsheets"),
    ("patient,ecg\n0012,1\n", "the study has no example '0012', but '012': spreadsheets, and pandas without"),
    ("patient,egc,iron\n007,1,2\n", "line 1: the study has no attribute 'egc' (did you mean 'ecg'?): leave it out"),
    ("patient,ecg,cost\n007,1,2\n", "the study has no attribute 'cost': leave it out with drop=[cost]"),
    ("name,ecg\n007,1\n", "line 1: there is no column 'patient'; columns: name, ecg; results need the columns"),
    ("patient,ecg\n007,<0.5\n", "'<0.5' is a limit: write a number in its place, the same for all, such as 0.25"),
    (
        "patient,ecg\n007,1\n008,2\n007,3\n",
        "is 1 already, and this is 3: the same table has that value: line 2: leave out one of the two, or write",
    ),
    ("patient;ecg\n007;1,5\n", "'1,5' has a decimal comma: write numbers with a point, such as 1.5 (decimal=, reads"),
    (
        "patient;ecg;iron\n007;1e6;20.5\n",
        "line 2, column 'iron': 20.5 is far outside the range of the attribute, 0 to 10",
    ),
    ("patient,attribute,value\n009,ecg,1\n", "line 2, column 'patient': the study has no example '009'"),
    (
        "patient,attribute,value\n007,egc,1\n",
        "line 2, column 'attribute': the study has no attribute 'egc' (did you mean 'ecg'?)",
    ),
    ("patient,ecg,order\n007,1,3\n", "line 2, column 'order': the study has no order 3, none was asked for"),
]
WITH_DECIMAL_COMMAS = [
    ("patient;ecg\n007;>1,5\n", "'>1.5' is a limit: write a number in its place, the same for all, such as 1.5"),
    (
        "patient;ecg\n007;1.500\n",
        "'1.500' has a point: if it separates thousands, write 1500; if decimals, write 1,500",
    ),
    ("patient;ecg\n007;1.234,5\n", "'1.234,5' has points between thousands: write 1234,5"),
    ("patient;ecg\n007;high\n", "'high' is not a number (leave a pending value empty; unavailable"),
]


@pytest.mark.parametrize(
    ("text", "said", "how"),
    [
        *((*each, {}) for each in MISTAKES),
        *((*each, {"decimal": ","}) for each in WITH_DECIMAL_COMMAS),
        (
            "patient,ecg\n007,1\n",
            "there is no column 'ward'; columns: patient, ecg; drop names columns",
            {"drop": ["ward"]},
        ),
        ("patient,ecg\n007,1\n", "decimal=;: must be . or ,", {"decimal": ";"}),
    ],
)
def test_results_as_laboratories_have_them(
    clinic: budgetreg.Study, tmp_path: Path, text: str, said: str, how: dict[str, Any]
) -> None:
    """Each mistake is one line that says what to do, and nothing of the table is recorded."""
    before = clinic.path.read_bytes()
    with pytest.raises((ConfigError, DataError)) as error:
        clinic.tell(written(tmp_path, text), **how)
    assert said in str(error.value)
    assert clinic.path.read_bytes() == before


def test_a_column_that_is_left_out_is_as_if_it_were_not_there(clinic: budgetreg.Study) -> None:
    row = {"example": "012", "patient": "007", "order": 9, "attribute": "ecg", "value": 1.5, "cost": 99}
    told = clinic.tell(pd.DataFrame([row]), drop=["example", "order", "cost"])
    assert (told.values, told.cost) == (1, 10)
    assert clinic.table().set_index("patient").loc["007", "ecg"] == 1.5
    with pytest.raises(DataError, match="there is no column 'patient'; columns: iron; results need"):
        clinic.tell(pd.DataFrame({"patient": ["007"], "iron": [1.0]}), drop=["patient"])


def test_targets_and_names_can_be_left_out(tmp_path: Path) -> None:
    table = pd.DataFrame({"example": ["p1", "p2"], "y": [1.0, 2.0], "ecg": [3.0, None]})
    study = budgetreg.Study.create(
        tmp_path / "trial.db", examples=table, targets="y", costs=COSTS, drop=["example", "y"]
    )
    assert study.table()[["example", "y"]].to_numpy().tolist() == [["0", None], ["1", None]]
    added = study.add(pd.DataFrame({"example": ["1"], "y": [2.0], "ecg": [4.0]}), drop=["y"])
    assert (added["targets"], added["values"]) == (0, 1)


def test_semicolons_separate_where_commas_would_fit_too(tmp_path: Path) -> None:
    costs = {"sodium, serum": 2, "ecg": 3}
    study = budgetreg.Study.create(tmp_path / "trial.db", examples=["p1"], id="patient", costs=costs)
    told = study.tell(written(tmp_path, 'patient;"sodium, serum"\np1;140,5\n'), decimal=",")
    assert (told.values, study.table()["sodium, serum"].tolist()) == (1, [140.5])


LONG = "patient,attribute,value,comment\n007,ecg,1,ok\n"


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (LONG + '008,ecg,2,"haemolytic\n012,iron,3,\n', 3),
        (LONG + '008,ecg,2,"haemolytic\n012,iron,3,"ok"\n', 3),
        ('patient;attribute;value;comment\n\n007;ecg;1;"haemolytic\n008;ecg;2;\n', 2),
    ],
)
def test_a_quote_that_is_not_closed_hides_no_rows(
    clinic: budgetreg.Study, tmp_path: Path, text: str, rows: int
) -> None:
    with pytest.raises(DataError, match=r"line 3 cannot be read .*: close each quote that opens a field"):
        clinic.tell(written(tmp_path, text), drop=["comment"])
    closed = text.replace('"haemolytic', '"haemolytic" ').replace('"ok"', '"one, ""x"" ,\ntwo" ')
    assert clinic.tell(written(tmp_path, closed), drop=["comment"]).values == rows


def test_decimal_commas_and_costs_with_points(clinic: budgetreg.Study, tmp_path: Path) -> None:
    """An order has points in its costs; whoever fills it in may write commas."""
    order = clinic.ask(spend=1000)
    text = order.assign(value="1,5", cost=["0.5" if cost == 0.5 else f"{cost:g}" for cost in order["cost"]])
    text.to_csv(tmp_path / "order.csv", sep=";", index=False)
    assert clinic.tell(tmp_path / "order.csv", decimal=",").invoiced == 0
    assert clinic.bill().total == order["cost"].sum()


def test_an_order_with_three_decimals_in_its_costs_is_read(tmp_path: Path) -> None:
    study = budgetreg.Study.create(tmp_path / "trial.db", examples=["p1"], costs={"ecg": 2.125, "iron": 3.5})
    order = study.ask(spend=10)
    order.assign(value="1,5").to_csv(tmp_path / "order.csv", sep=";", index=False)
    assert study.tell(tmp_path / "order.csv", decimal=",").cost == 5.625


def test_names_that_lost_zeros_are_no_new_examples(clinic: budgetreg.Study) -> None:
    with pytest.raises(DataError, match="column 'patient': the study has no example '7', but '007'"):
        clinic.add(pd.DataFrame({"patient": [7, 13], "target": [1.0, 2.0]}))
    assert clinic.add(pd.DataFrame({"patient": [13], "target": [2.0]}))["examples"] == 1
