"""k=auto: a learner chooses how many attributes of each example it sees, within a total that is never passed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from budgetreg.algorithms.registry import members
from budgetreg.api import run
from budgetreg.cli.app import main
from budgetreg.common.errors import ConfigError
from budgetreg.data.dataset import Groups
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.revealed.collection import Collected
from budgetreg.revealed.purchases import Purse, purchases
from budgetreg.runs.series import budgets_of, read, read_series
from tests.plans import configured, planned

RNG = np.random.default_rng(5)
X = RNG.normal(size=(60, 5)).round(3)
Y = (X @ [1.0, -1.0, 0.5, 0.0, 2.0] + 0.1 * RNG.normal(size=60)).round(3)
PRICES = "attribute,cost,group\na,4,panel\nb,4,panel\nc,0.7,\nd,0,\ne,2,\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    pd.DataFrame(X, columns=list("abcde")).assign(y=Y).to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "prices.csv").write_text(PRICES)
    return tmp_path / "table.csv"


def choices(table: Path, out: str, **more: Any) -> dict[str, Any]:
    common = {"dataset": "file", "dataset.path": str(table), "algo": "aeml", "k": "auto", "repetitions": 1}
    return {**common, "algo.n_factors": 2, "out": str(table.parent / out), **more}


@pytest.mark.usefixtures("short_chains")
def test_all_of_the_total_is_spent_and_no_more(table: Path) -> None:
    results = run(choices(table, "out", total=100, checkpoints=[0.3, 1.0], pilot=2))
    assert results.curves["attributes"].tolist() == [30, 100]
    assert results.curves["examples"].tolist() == [30, 100]  # the amounts
    assert results.curves["k"].tolist() == ["auto"] * 2
    (bill,) = results.runs.to_dict("records")
    assert bill["attributes_total"] == bill["cells_run"] == 100
    assert 2 <= bill["attributes_mean"] <= bill["attributes_max"] <= 5


@pytest.mark.usefixtures("short_chains")
def test_money_pays_for_groups_once_and_is_never_passed(table: Path) -> None:
    more = {"dataset.costs": str(table.parent / "prices.csv"), "dataset.missing": "unavailable", "total": 100}
    frame = pd.read_csv(table)
    frame.loc[::3, "e"] = np.nan
    frame.to_csv(table, index=False)
    results = run(choices(table, "out", **more, checkpoints=1, pilot=0))
    assert 100 - 4 < results.curves["cost"].item() <= 100
    reveals = pd.read_csv(table.parent / "out" / "reveals.csv", keep_default_na=False)
    last = reveals.set_index("attribute")["count"]
    assert results.curves["cost"].item() == pytest.approx(4 * last["a"] + 0.7 * last["c"] + 2 * last["e"])


@pytest.mark.slow
def test_bytes_depend_on_neither_workers_nor_companions(table: Path) -> None:
    more = {"total": 120, "checkpoints": 2, "algo": "aemr"}
    together = run(choices(table, "together", repetitions=3, n_jobs=2, **more)).folder
    alone = run(choices(table, "alone", repetitions=1, **more)).folder
    run(choices(table, "alone", repetitions=3, **more))
    for name in ("curves.csv", "model.npz"):
        assert (together / name).read_bytes() == (alone / name).read_bytes()


def collected(seen_by_learner: np.ndarray, total: int = 60, groups: Groups | None = None) -> tuple[Accessor, Collected]:
    """Buy cells of a table, planning by the moments of what was bought."""
    accessor = Accessor(
        Table(seen_by_learner, Y), np.arange(60)[None], 1, 5, (total,), checkpoints_are_amounts=True, groups=groups
    )
    purse = Purse(np.ones(5), 0.0)
    for each in purchases(accessor, (total,), [np.random.default_rng(0)], purse, price_aware=False):
        last = each
    return accessor, last


def test_values_that_were_not_bought_change_nothing() -> None:
    accessor, bought = collected(X)
    assert accessor.bill().total.item() == 60
    shown = np.zeros(X.shape, dtype=bool)
    values = dict.fromkeys(np.unique(X), 0)
    for block in bought.entries.blocks():
        for attributes, row in zip(block.attributes[0, :, :-1], block.values[0, :, :-1], strict=True):
            for attribute, value in zip(attributes, row, strict=True):
                assert value in values
                shown[np.flatnonzero(X[:, attribute] == value), attribute] = True
    assert shown.sum() >= 60
    _, again = collected(np.where(shown, X, 1e6))
    for block, other in zip(bought.entries.blocks(), again.entries.blocks(), strict=True):
        np.testing.assert_array_equal(block.values, other.values)


def test_groups_are_bought_as_a_whole() -> None:
    _, bought = collected(X, groups=Groups((0, 0, 2, 2, 4)))
    for block in bought.entries.blocks():
        for attributes in block.attributes[0, :, :-1].tolist():
            assert (0 in attributes) == (1 in attributes)
            assert (2 in attributes) == (3 in attributes)


def test_the_bill_is_noted_at_each_amount() -> None:
    accessor = Accessor(Table(X, Y), np.arange(60)[None], 1, 5, (30, 70), checkpoints_are_amounts=True, itemised=True)
    amounts = []
    for each in purchases(accessor, (30, 70), [np.random.default_rng(0)], Purse(np.ones(5), 0.0), price_aware=False):
        assert not each.is_for_draws  # the number of attributes is chosen, too
        if each.is_checkpoint:
            amounts.append(each.examples)
    bill = accessor.bill()
    assert amounts == [30, 70]
    assert {amount: charged.item() for amount, charged in bill.at.items()} == {30: 30, 70: 70}
    assert bill.reveals is not None
    assert [int(bill.reveals.until(amount).sum()) for amount in amounts] == [30, 70]


@pytest.mark.parametrize(
    ("pilot", "price", "total", "plans"),
    [(0, 1, 60, [10, 20]), (0, 1, 70, [10, 20, 40]), (2, 1, 70, [20, 40]), (0, 2, 140, [20, 40, 80])],
)
def test_choices_are_planned_at_doubled_amounts_while_enough_is_left(
    pilot: int, price: float, total: int, plans: list[int]
) -> None:
    """First after two values of each of five attributes, with the pilot; at least 40 % is left for the last round."""
    rows = np.arange(60)[None]
    accessor = Accessor(
        Table(X, Y), rows[:, pilot:], 1, 5, (total,), checkpoints_are_amounts=True, pilot=rows[:, :pilot]
    )
    purse = Purse(np.full(5, price), 5.0 * pilot * price)
    bought = list(purchases(accessor, (total,), [np.random.default_rng(0)], purse, price_aware=False))
    assert [each.examples for each in bought if each.is_plan] == plans
    assert [each.examples for each in bought if each.is_checkpoint] == [total]
    for each in bought:
        examples = sum(block.values.shape[1] for block in each.entries.blocks())
        assert each.phases == ((pilot, examples) if pilot else (examples,))


def test_learners_that_cannot_choose_are_refused_and_a_total_is_needed() -> None:
    able = members(lambda learner: learner.chooses_k)
    assert able == ["aeml", "aemr"]
    for words, said in {
        ("algo=aelr", "k=auto", "total=100"): "use one of aeml, aemr",
        ("algo=aemr", "algo.draws=everything", "k=auto", "total=100"): "cannot choose k with its options",
        ("algo=aemr", "k=auto"): "k=auto: needs total=T",
    }.items():
        with pytest.raises(ConfigError, match=said):
            configured(*words)
    with pytest.raises(ConfigError, match="needs a full row at least; give at least 64"):
        planned("algo=aemr", "k=auto", "total=63")
    with pytest.raises(ConfigError, match="less than a full row"):
        planned("algo=aemr", "k=auto", "total=640", "checkpoints=[0.05]")


@pytest.mark.slow
def test_it_is_read_and_drawn_beside_fixed_k(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for k in ("auto", 2, 4):
        run(choices(table, f"runs/k{k}", total=60, checkpoints=2, **{"k": k}))
    runs = table.parent / "runs"
    series = read_series([runs])
    assert budgets_of(series) == [2, 4, "auto"]
    assert [each.label for each in series] == ["aeml k=2", "aeml k=4", "aeml k=auto"]
    assert read(runs / "kauto").curves["k"].tolist() == ["auto"] * 2
    assert main(["plot", str(runs)]) == 0
    assert "k = auto" in (runs / "curves.txt").read_text()
    assert main(["status", str(runs)]) == 0
    assert "auto" in capsys.readouterr().out


def test_a_number_keeps_its_identity() -> None:
    four = configured("algo=aemr", "k=4", "total=200").identity()
    assert json.loads(json.dumps(four))["k"] == 4
    assert {key for key in four if key not in configured("algo=aemr", "k=4").identity()} == {"total"}
