"""The bill of a study is a ledger: charges stay, invoices and refunds change them, and the log sums to the bill."""

import itertools
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from math import fsum
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import budgetreg
from budgetreg.common.errors import ConfigError, DataError
from budgetreg.common.files import digest
from tests.tiers import slow_but

pytestmark = pytest.mark.usefixtures("short_chains")

COSTS = {"age": 0, "ecg": 10, "iron": 20, "zinc": 20}
GROUPS = {"iron": "blood", "zinc": "blood"}
EARLIER = Path(__file__).with_name("earlier.sql")


@pytest.fixture
def study(tmp_path: Path) -> budgetreg.Study:
    return budgetreg.Study.create(
        tmp_path / "trial.db", examples=["p1", "p2", "p3"], targets=[1.0, 2.0, 3.0], costs=COSTS, groups=GROUPS
    )


@pytest.fixture
def everything(study: budgetreg.Study) -> budgetreg.Study:
    """A study that has ordered all its cells."""
    study.ask(spend=1000)
    return study


def told(study: budgetreg.Study, *lines: tuple[Any, ...], **how: bool) -> float:
    """Tell lines of example, attribute, value and perhaps cost; return the bill, which is that of the log."""
    rows = [line if len(line) == 4 else (*line, None) for line in lines]
    study.tell(pd.DataFrame(rows, columns=["example", "attribute", "value", "cost"]), **how)  # type: ignore[arg-type]
    return billed(study)


def billed(study: budgetreg.Study) -> float:
    """Return the bill, which is the sum of the log, of the attributes and of the orders."""
    bill = study.bill()
    assert bill.total == fsum(study.log()["cost"].dropna()) == study.state().spent
    assert fsum(bill.by_order["cost"]) == fsum(bill.by_attribute["cost"]) == pytest.approx(bill.total)
    return bill.total


def test_what_was_paid_stays_paid(everything: budgetreg.Study) -> None:
    assert told(everything, ("p1", "ecg", 3), ("p1", "iron", 4)) == 30
    assert told(everything, ("p1", "ecg", "unavailable"), replace=True) == 30
    assert everything.bill().by_attribute["unavailable"].tolist() == [0, 1, 0, 0]
    assert told(everything, ("p1", "ecg", 5), replace=True) == 30  # it is not charged again
    assert everything.exclude(examples=["p1"]) == 2
    assert billed(everything) == 30


def test_a_refund_is_asked_for(everything: budgetreg.Study) -> None:
    told(everything, ("p1", "ecg", 3), ("p1", "iron", 4), ("p1", "zinc", 4))
    assert told(everything, ("p1", "ecg", "unavailable"), replace=True) == 30
    for _ in range(2):  # repeating it changes nothing
        assert told(everything, ("p1", "ecg", "unavailable"), refund=True) == 20
    assert told(everything, ("p1", "zinc", "unavailable"), replace=True, refund=True) == 20  # iron was measured
    assert told(everything, ("p1", "iron", "unavailable"), replace=True, refund=True) == 0
    assert everything.log()["cost"].dropna().tolist() == [10, 20, 0, -10, -20]
    assert told(everything, ("p1", "iron", 4), replace=True) == 20


def test_a_failed_test_can_be_invoiced(everything: budgetreg.Study) -> None:
    assert told(everything, ("p1", "ecg", "unavailable", 10), ("p2", "ecg", "unavailable", 0)) == 0
    assert told(everything, ("p3", "ecg", "unavailable", 4)) == 4  # not what was asked for: it is from an invoice
    for _ in range(2):
        assert told(everything, ("p1", "ecg", "unavailable", 10), invoiced=True) == 14
    with pytest.raises(DataError, match="'ecg' of example 'p2' costs 3 by this line, but it was not charged: invoiced"):
        told(everything, ("p2", "ecg", "unavailable", 3))
    assert told(everything, ("p3", "ecg", "unavailable", 4), refund=True) == 10
    with pytest.raises(ConfigError, match="choose one"):
        told(everything, ("p1", "ecg", "unavailable"), invoiced=True, refund=True)


@pytest.mark.parametrize("cost", [12, "10.5", 0])
def test_the_price_on_the_invoice_is_charged(everything: budgetreg.Study, cost: Any) -> None:
    for _ in range(2):
        assert told(everything, ("p1", "ecg", 3, cost)) == float(cost)
    assert told(everything, ("p1", "ecg", 3, 10), ("p1", "ecg", 3)) == float(cost)  # the order says nothing new
    said = r"column 'cost': \S+ was charged for 'ecg' of example 'p1' already, and this is 9"
    with pytest.raises(DataError, match=said):
        told(everything, ("p1", "ecg", 3, 9))
    assert told(everything, ("p1", "ecg", 3, 9), replace=True) == 9
    assert told(everything, ("p1", "ecg", 3, 10), replace=True) == 10  # a mistaken invoice is corrected


def test_the_invoice_of_a_group_is_charged_once(everything: budgetreg.Study) -> None:
    assert told(everything, ("p1", "iron", 3, 22), ("p1", "zinc", 3, 0)) == 22
    assert told(everything, ("p2", "iron", 3, 11), ("p2", "zinc", 3, 11)) == 33
    assert told(everything, ("p3", "zinc", 3, 0)) == 53  # the order has the price at iron
    with pytest.raises(DataError, match="20 was charged for 'iron' of example 'p3' already, and this is 22"):
        told(everything, ("p3", "iron", 3, 22))
    assert told(everything, ("p3", "iron", 3, 22), replace=True) == 55
    assert told(everything, ("p3", "zinc", 4, 0), replace=True) == 55


def test_any_line_of_a_group_may_have_the_invoice(everything: budgetreg.Study) -> None:
    assert told(everything, ("p1", "iron", 3), ("p1", "zinc", 3, 25)) == 25
    assert told(everything, ("p2", "iron", 3, 0), ("p2", "zinc", 3, 25)) == 50


@pytest.mark.parametrize("replace", [False, True])
def test_the_rest_of_a_group_that_is_charged_costs_nothing_in_another_order(tmp_path: Path, replace: bool) -> None:
    study = budgetreg.Study.create(tmp_path / "rest.db", examples=["p1"], costs=COSTS, groups=GROUPS)
    study.ask(spend=1e6)
    paid = told(study, ("p1", "iron", 3))
    study.cancel(1)
    order = study.ask(spend=1e6).assign(value=4.0)
    assert order.set_index("attribute").loc["zinc", "cost"] == 0
    study.tell(order, replace=replace)
    assert billed(study) == paid + order["cost"].sum() == 30


@pytest.mark.parametrize("ordered", slow_but([True], [True, False]))
def test_the_bill_of_a_group_does_not_depend_on_how_its_invoice_is_split(tmp_path: Path, ordered: bool) -> None:
    """Two prices of a group are refused in one table; in two, one of them has to replace the other."""
    pairs = list(itertools.product([None, 0, 6, 20], repeat=2))
    examples = [f"{pair}{split}" for pair in pairs for split in range(4)]
    study = budgetreg.Study.create(tmp_path / "split.db", examples=examples, costs=COSTS, groups=GROUPS)
    if ordered:
        study.ask(spend=1e6)
    for pair in pairs:
        prices = {cost for cost in pair if cost}
        expected = None if len(prices) > 1 else max(prices, default=0 if pair[0] == 0 else 20)
        for split in range(4):
            rows = [(f"{pair}{split}", name, 3, cost) for name, cost in zip(("iron", "zinc"), pair, strict=True)]
            rows = rows[::-1] if split % 2 else rows
            before = study.bill().total
            try:
                for table in [rows] if split < 2 else [rows[:1], rows[1:]]:
                    study.tell(pd.DataFrame(table, columns=["example", "attribute", "value", "cost"]))
                assert study.bill().total - before == expected
            except DataError as error:
                said = "a group has one price: write it into one" if split < 2 else "already, and this is .*keeps the"
                assert re.search(said, str(error))
                assert expected is None or (split > 1 and bool({None, 0} & set(pair)))


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([("p1", "ecg", None, 12)], "costs 12 by this line, but it has no value yet"),
        (
            [("p1", "ecg", 1, 12), ("p1", "ecg", 1, 13)],
            "costs 13 by this line, but it has another cost in the same table",
        ),
        ([("p1", "ecg", 1, -1)], "-1 is below 0: refund=true gives back what was charged"),
    ],
)
def test_invoices_that_cannot_be_are_one_line(
    everything: budgetreg.Study, lines: list[tuple[Any, ...]], said: str
) -> None:
    with pytest.raises(DataError, match=re.escape(said)):
        told(everything, *lines)
    assert billed(everything) == 0


def test_what_is_free_has_no_invoice(study: budgetreg.Study) -> None:
    with pytest.raises(DataError, match="costs 12 by this line, but it is free: leave the cost empty"):
        told(study, ("p1", "ecg", 1, 12), free=True)
    assert told(study, ("p1", "ecg", 1, 10), ("p2", "ecg", 1, 0), free=True) == 0


def test_prices_change_from_now_on(everything: budgetreg.Study) -> None:
    told(everything, ("p1", "ecg", 1))
    everything.cancel(1)
    second = everything.ask(spend=30)
    assert everything.add(costs={"ecg": 15, "iron": 25})["prices"] == 2
    assert everything.bill().on_order == second["cost"].sum()
    cells = list(zip(second["example"], second["attribute"], strict=True))
    assert told(everything, *((*cell, 1) for cell in cells)) == 10 + second["cost"].sum()  # as it was asked for
    others = {(f"p{at}", name) for at in (1, 2, 3) for name in ("ecg", "iron")} - {*cells, ("p1", "ecg")}
    before = billed(everything)
    expected = sum(15 if name == "ecg" else 25 for _, name in others)
    assert told(everything, *((*cell, 1, None) for cell in others)) == before + expected
    assert not any(everything.add(costs={"ecg": 15}).values())
    log = everything.log()
    changes = log[log["event"] == "price"][["attribute", "old", "new"]]
    assert changes.to_numpy().tolist() == [["ecg", 10, 15], ["iron", 20, 25]]


def test_a_price_list_adds_attributes(study: budgetreg.Study, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("attribute,cost,group\ntsh,7,thyroid\nft4,,thyroid\nbmi,0,\n")
    added = study.add(pd.DataFrame({"example": ["p1"], "bmi": [21.5]}), costs=tmp_path / "new.csv")
    assert (added["attributes"], added["values"]) == (3, 1)
    order = study.ask(spend=1000)
    assert order["cost"].sum() == 3 * (10 + 20 + 7)
    assert order[order["attribute"].isin(["tsh", "ft4"])]["cost"].tolist() == 3 * [7, 0]
    assert told(study, ("p2", "ft4", 1)) == 7
    assert told(study, ("p2", "tsh", 1)) == 7


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            "egc,3,",
            "'egc' is no attribute of the study (did you mean 'ecg'?); if it is new, list the price of the other",
        ),
        ("ecg,3,\necg,3,", "line 3, column 'attribute': 'ecg' is there already: line 2"),
        ("tsh,,", "no price for 'tsh': each new attribute needs one"),
        ("ecg,cheap,", "line 2, column 'cost': 'cheap' is not a number"),
        ("ecg,-3,", "line 2, column 'cost': -3 is below 0"),
        ("ecg,0,\niron,0,", "every price would be 0, so there would be nothing to buy"),
        ("iron,3,\nzinc,4,", "'zinc' is in a group with the price 3: a group has one price"),
        ("iron,3,panel\necg,3,panel", "its group 'panel' would change"),
        ("tsh,3,blood\niron,3,blood", "its group 'blood' would change"),
        ("iron,3,blood\ntsh,3,blood", "its group 'blood' would change"),
    ],
)
def test_impossible_price_lists_change_nothing(study: budgetreg.Study, tmp_path: Path, rows: str, said: str) -> None:
    before = study.path.read_bytes()
    (tmp_path / "new.csv").write_text(f"attribute,cost,group\n{rows}\n")
    with pytest.raises(DataError, match=re.escape(said)):
        study.add(costs=tmp_path / "new.csv")
    assert study.path.read_bytes() == before


def test_a_mistyped_column_of_groups_is_refused(study: budgetreg.Study, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("attribute,cost,Group\ntsh,7,thyroid\nft4,7,thyroid\n")
    said = "line 1: no column 'Group' is known; a price list has the columns attribute,cost, and no others but group"
    for call in (study.add, lambda costs: budgetreg.Study.create(tmp_path / "new.db", examples=["p1"], costs=costs)):
        with pytest.raises(DataError, match=said):
            call(costs=tmp_path / "new.csv")


def test_nothing_is_ordered_of_what_is_excluded(study: budgetreg.Study) -> None:
    told(study, ("p2", "ecg", 1), ("p2", "zinc", 1))
    pending = len(study.ask(spend=1000))
    released = study.exclude(examples=["p2"]) + study.exclude(attributes=["iron"])
    order = study.order(1)
    gone = order[(order["example"] == "p2") | (order["attribute"] == "iron")]
    assert released == len(gone) < pending
    before = study.path.read_bytes()
    assert study.exclude(examples=["p2"]) == 0
    assert study.path.read_bytes() == before
    with pytest.raises(ConfigError, match="every value is known, on order, unavailable or excluded"):
        study.ask(spend=1000)
    # What is in the mail is recorded and charged: zinc is of a group whose other value was excluded.
    assert told(study, ("p1", "zinc", 1), ("p1", "iron", 1)) == 10 + 20 + 20
    study.exclude(attributes=["iron"], undo=True)
    assert set(zip(*study.ask(spend=1000)[["example", "attribute"]].to_numpy().T, strict=True)) == {("p3", "iron")}
    study.exclude(examples=["p2"], refund=True)
    assert billed(study) == 20
    study.exclude(examples=["p2"], refund=True)
    assert billed(study) == 20


def test_an_attribute_that_cannot_join_a_group_is_said_to_be_alone(study: budgetreg.Study, tmp_path: Path) -> None:
    prices = tmp_path / "prices.csv"
    for name in ("ecg", "crp"):
        prices.write_text(f"attribute,cost,group\n{name},7,blood\n")
        with pytest.warns(match=f"groups of a study stay as they are: bought alone: '{name}'$") as caught:
            study.add(costs=prices)
        assert len(caught) == 1
    for row in ("iron,7,blood", "ecg,7,"):
        prices.write_text(f"attribute,cost,group\n{row}\n")
        study.add(costs=prices)  # a warning would be an error


def test_the_rest_of_a_group_on_order_costs_nothing_more(study: budgetreg.Study) -> None:
    """Unless the order that pays for it is cancelled: then it costs what that one would have paid."""
    study.ask(spend=1000)
    study.exclude(attributes=["zinc"])
    study.exclude(attributes=["zinc"], undo=True)
    rest = study.ask(spend=1000)
    assert set(rest["attribute"]) == {"zinc"}
    assert rest["cost"].tolist() == [0, 0, 0]
    bill = study.bill()
    assert bill.on_order == 3 * (10 + 20)
    study.cancel(1)
    assert study.bill().on_order == 3 * 20
    assert told(study, ("p1", "zinc", 1.0)) == 20
    assert study.bill().on_order == 2 * 20


def test_what_had_no_price_when_it_was_ordered_costs_nothing(study: budgetreg.Study) -> None:
    """Also if an earlier order, which was cancelled, had it at a price."""
    study.ask(spend=1000)
    study.cancel(1)
    study.add(costs={"age": 0, "ecg": 0, "iron": 20})
    order = study.ask(spend=20)
    assert order.set_index("attribute").loc["ecg", "cost"] == 0
    assert study.bill().on_order == order["cost"].sum() == 20
    study.add(costs={"ecg": 15})
    assert (
        told(study, *((name, what, 1) for name, what in zip(order["example"], order["attribute"], strict=True))) == 20
    )


def test_the_rest_of_a_group_is_charged_if_the_charge_that_paid_for_it_is_taken_back(study: budgetreg.Study) -> None:
    """Though nobody had ordered what was charged, and the price has changed since."""
    study.exclude(attributes=["ecg", "zinc"])
    assert told(study, ("p1", "iron", 1)) == 20
    study.exclude(attributes=["iron"])
    study.exclude(attributes=["zinc"], undo=True)
    order = study.ask(spend=20)
    assert dict(zip(order["example"], order["cost"], strict=True))["p1"] == 0
    study.add(costs={"iron": 70})
    assert told(study, ("p1", "iron", "unavailable"), replace=True, refund=True) == 0
    assert study.bill().on_order == 2 * 20
    assert told(study, ("p1", "zinc", 2)) == 20


def test_what_is_on_order_is_forecast_at_its_own_price(study: budgetreg.Study) -> None:
    study.ask(spend=1000)
    study.add(costs={"ecg": 500, "iron": 700})
    state = study.state()
    assert state.unpaid.sum() == study.bill().on_order == 3 * (10 + 20)
    study.cancel(1)
    assert study.state().unpaid.sum() == 3 * (500 + 700)


def test_an_invoice_of_a_known_value_needs_the_value(everything: budgetreg.Study) -> None:
    told(everything, ("p1", "ecg", 3))
    with pytest.raises(DataError, match=r"costs 12 by this line, but its value is empty here: repeat the value"):
        told(everything, ("p1", "ecg", None, 12), replace=True)
    assert told(everything, ("p1", "ecg", 3, 12), replace=True) == 12


def test_an_order_whose_values_were_released_is_not_given_out_again_as_if_it_stood(study: budgetreg.Study) -> None:
    first = study.ask(spend=1000, order=1)
    study.exclude(examples=["p1"])
    with pytest.warns(match=r"^order=1: 4 of its 12 values were released: they are not to be measured"):
        pd.testing.assert_frame_equal(study.ask(spend=1000, order=1), first)
    study.exclude(examples=["p2", "p3"])
    with pytest.raises(ConfigError, match=r"^order=1: all of its values were released; leave out order= for a new one"):
        study.ask(spend=1000, order=1)


def test_an_invoice_corrects_the_charge_where_it_stands(study: budgetreg.Study) -> None:
    assert told(study, ("p1", "iron", 1)) == 20  # which nobody ordered
    study.ask(spend=1000)
    assert told(study, ("p1", "zinc", 2, 0.5), replace=True) == 0.5
    costs = study.bill().by_order.set_index("order")["cost"]
    assert costs.to_dict() == {1: 0, 0: 0.5}


def test_text_is_one_name(study: budgetreg.Study) -> None:
    study.add(["p", "1"])
    study.exclude(examples="p1", attributes="ecg")
    state = study.state()
    assert np.array(state.examples)[state.withdrawn].tolist() == ["p1"]
    assert np.array(state.attributes)[state.discontinued].tolist() == ["ecg"]


def test_what_is_not_there_cannot_be_excluded(study: budgetreg.Study) -> None:
    with pytest.raises(ConfigError, match=r"attribute=egc: the study has no attribute 'egc' \(did you mean 'ecg'\?\)"):
        study.exclude(attributes=["egc"])
    with pytest.raises(ConfigError, match="choose one"):
        study.exclude(attributes=["ecg"], undo=True, refund=True)


def test_discontinued_tests_are_not_recommended_for_new_examples(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4)) + rng.normal(size=(30, 1))
    table = pd.DataFrame(X, columns=list(COSTS)).assign(y=X.sum(axis=1))
    study = budgetreg.Study.create(tmp_path / "trial.db", examples=table, targets="y", costs=COSTS, groups=GROUPS)
    new, model = pd.DataFrame({"age": [np.nan]}), study.fit()
    assert set(study.next(new, model=model)["attribute"]) == {"age", "ecg", "iron + zinc"}
    study.exclude(attributes=["iron", "ecg"])
    left = study.next(new, model=model)
    assert left["attribute"].tolist() == ["age", "zinc"]
    assert left["cost"].tolist() == [0, 20]
    assert (left["std_after"] < left["std_before"]).all()
    study.exclude(attributes=["zinc"])
    assert study.next(new, model=model)["attribute"].tolist() == ["age"]


def test_the_log_is_a_table_that_grows(everything: budgetreg.Study, tmp_path: Path) -> None:
    out = tmp_path / "log.csv"
    told(everything, ("p1", "ecg", 0.1, 10.25))
    everything.export(out, log=True)
    first = out.read_bytes()
    told(everything, ("p1", "ecg", "unavailable"), replace=True, refund=True)
    everything.export(out, log=True)
    assert out.read_bytes().startswith(first)
    log = pd.read_csv(out, keep_default_na=False)
    assert log.columns.tolist() == ["time", "event", "order", "example", "attribute", "old", "new", "cost"]
    assert log.drop(columns="time").to_numpy().tolist() == [
        ["ask", 1, "", "", "", "", ""],
        ["tell", 1, "p1", "ecg", "", "0.1", "10.25"],
        ["tell", 1, "p1", "ecg", "0.1", "unavailable", ""],
        ["refund", 1, "p1", "ecg", "", "", "-10.25"],
    ]
    assert log["time"].str.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ").all()
    for content in (b"", first[:-3] + b"9.5"):
        out.write_bytes(content)
        with pytest.raises(ConfigError, match=r"log.csv is there already, and would be replaced"):
            everything.export(out, log=True)
    with pytest.raises(ConfigError, match=r"must end in .csv, for a log"):
        everything.export(tmp_path / "log.npz", log=True)


def as_schema_2(connection: sqlite3.Connection) -> bytes:
    connection.execute("PRAGMA user_version = 2")
    content = connection.serialize()
    return content + digest(content).encode()


def as_schema_1(connection: sqlite3.Connection) -> bytes:
    connection.execute("PRAGMA user_version = 1")
    content = bytearray(connection.serialize())
    content[18:20] = b"\2\2"
    return bytes(content)


@pytest.mark.parametrize("written", [as_schema_2, as_schema_1])
def test_studies_of_earlier_versions_keep_their_bill(
    tmp_path: Path, written: Callable[[sqlite3.Connection], bytes]
) -> None:
    """Version 0.1.0 wrote the study: it has replaced values, some of a group, unordered and free ones."""
    path = tmp_path / "trial.db"
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(EARLIER.read_text())
        connection.execute("PRAGMA application_id = 0x62677374")
        path.write_bytes(written(connection))
    before = path.read_bytes()
    study = budgetreg.Study(path)
    assert billed(study) == 117.4
    bill = study.bill()
    assert bill.on_order == 14.1
    assert bill.by_order[["order", "cost"]].to_numpy().tolist() == [[1, 68.8], [2, 20.3], [3, 8], [0, 20.3]]
    assert bill.by_attribute["cost"].round(9).tolist() == [0, 20.2, 81.2, 0, 16]
    assert bill.by_attribute["paid"].tolist() == [2, 2, 3, 4, 4]
    assert study.log()["time"].isna().all()
    ages, outcomes = [31, 44, None, 50, 61, None, 39, 47], [1, 2, 3, 1.5, 2.5, 2, 1, 3]
    table = pd.DataFrame({"patient": [f"p{at}" for at in range(1, 9)], "age": ages, "outcome": map(float, outcomes)})
    costs = {"age": 0, "ecg": 10.1, "iron": 20.3, "zinc": 20.3, "crp": 4}
    budgetreg.Study.create(
        path, examples=table, targets="outcome", id="patient", costs=costs, groups=GROUPS, unit="EUR"
    )  # the call that has made it
    assert path.read_bytes() == before
    told(study, ("p5", "iron", 2))  # its group is paid for
    assert billed(budgetreg.Study(path)) == 117.4
    assert told(study, ("p6", "crp", 2)) == 121.4
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)
    assert study.exclude(examples=["p1", "p2"], refund=True) == 1
    assert billed(study) == pytest.approx(121.4 - (10.1 + 4) - (20.3 + 4))
