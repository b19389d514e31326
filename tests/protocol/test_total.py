"""A total: every learner ends at the same spending, whatever its k, or chooses k within it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from budgetreg.algorithms.factors import posterior
from budgetreg.algorithms.factors.posterior import plan_by_posterior
from budgetreg.algorithms.registry import members
from budgetreg.api import run
from budgetreg.common.errors import ConfigError
from budgetreg.data.dataset import Groups
from budgetreg.data.registry import load
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.protocol import passes
from budgetreg.protocol.passes import Progress
from budgetreg.protocol.plan import Plan
from budgetreg.protocol.repetitions import Result, run_repetitions
from budgetreg.protocol.split import parts_of
from budgetreg.revealed.collection import Collected
from budgetreg.revealed.purchases import Purse, purchases
from budgetreg.runs.runner import execute
from budgetreg.runs.series import budgets_of, read, read_series
from tests.commands import Call
from tests.plans import configured, journaled, planned
from tests.refusals import refusal
from tests.tiers import slow_but

OWN = ["dataset=diabetes", "tuning=fixed", "tuning.B=60", "tuning.eta=0.01", "repetitions=1", "checkpoints=3"]


@pytest.mark.parametrize("algo", ["aerr", "ddaelr", "baseline", "ridge", "online_lasso"])
@pytest.mark.parametrize("k", slow_but([4], [2, 4, 10]))
def test_every_learner_spends_the_total_but_for_less_than_one_example(algo, k):
    plan = planned(*OWN, f"algo={algo}", f"k={k}", "total=700")
    (result,) = run_repetitions(plan, [0], lambda done: None)
    spent = result["run"]["attributes_total"]
    # The first step of some learners is cheaper, as w is 0.
    assert 700 - plan.per_example - k < spent <= 700
    assert spent <= plan.attributes_final <= 700
    assert result["curve"][-1]["examples"] == plan.pilot + (700 - plan.pilot * plan.d) // plan.per_example


def test_a_learner_that_has_seen_all_examples_ends_earlier_with_a_note():
    few = planned(*OWN, "algo=aerr", "k=2", "total=3000")
    assert few.checkpoints[-1] == few.n_train
    assert few.attributes_final == few.pilot * 10 + 2 * (few.n_train - few.pilot) < 3000
    assert any(f"total=3000: aerr ends at {few.attributes_final} attributes" in note for note in few.notes)
    rows = planned(*OWN, "algo=ridge", "k=2", "total=3000")
    assert rows.checkpoints[-1] == 300
    assert not any("ends at" in note for note in rows.notes)
    everything = planned(*OWN, "algo=ridge", "k=2", "total=1000000")
    assert everything.attributes_final == 10 * everything.n_train


def test_the_pilot_is_a_share_of_the_total():
    plans = [planned(*OWN, "algo=aerr", f"k={k}", "total=700") for k in (2, 4, 8)]
    assert {plan.pilot for plan in plans} == {7}
    assert "70 of 700 attributes in all" in " ".join(plans[0].notes)


def test_shares_of_the_axis_are_shares_of_the_total():
    plan = planned(*OWN, "algo=aerr", "k=4", "total=700", "pilot=0", "dataset.scale=none", "checkpoints=[0.5,1.0]")
    assert plan.checkpoints == (87, 175)


def test_a_total_changes_the_identity():
    without, given, other = (
        planned(*OWN, "k=4", *more).config.identity() for more in ([], ["total=700"], ["total=701"])
    )
    assert "total" not in without
    assert given["total"] == 700
    assert given != other
    assert planned(*OWN, "k=4", "total=null").config.identity() == without


def test_only_totals_that_draws_spend_in_money_have_another_identity():
    def marked(*keys):
        return "money_limit" in planned("dataset=diabetes", "k=4", *keys).config.identity()

    assert marked("total=4000", "dataset.costs=bundled")
    assert not marked("total=4000", "dataset.costs=bundled", "algo=ridge")
    assert not marked("total=4000", "dataset.costs=equal")
    assert not marked("total=4000")
    assert not marked("dataset.costs=bundled")


EUR = ["dataset.costs=bundled", "dataset.unit=EUR"]


@pytest.mark.parametrize("k", slow_but([4], [2, 4, 8]))
@pytest.mark.parametrize("algo", slow_but(["aelr", "ddaelr"], ["aelr", "baseline", "aer", "ddaelr"]))
def test_with_prices_the_total_is_money_and_no_run_pays_more(algo, k):
    """The attributes that weights and moments favour, and their prices, are not known beforehand."""
    plan = planned(*OWN, *EUR, f"algo={algo}", f"k={k}", "total=4000", "pilot=5", "tuning.lambda=1")
    results = journaled(plan, [0, 1])
    for result in results:
        assert 4000 - k * 18 < result["run"]["cost_total"] <= 4000  # 18 is the highest price
        ends = [point["examples"] for point in result["curve"]]
        assert len(ends) == 3
        assert plan.pilot < ends[0] < ends[1] < ends[2] < plan.n_train
        assert result["curve"][-1]["attributes"] == result["run"]["attributes_total"] <= plan.attributes_final
    if k == 4:
        assert journaled(plan, [1]) == results[1:]


def test_values_that_are_not_paid_for_change_nothing(tmp_path):
    """Draws for later examples show where the money ends; their values must not matter."""
    X = np.random.default_rng(0).normal(size=(120, 4))
    y = X @ [1.0, 2, 0, 3]
    prices = tmp_path / "prices.csv"
    prices.write_text("attribute,cost\nx0,1\nx1,9\nx2,2\nx3,30\n")
    own = ["dataset=file", f"dataset.path={tmp_path / 'own.csv'}", f"dataset.costs={prices}", "dataset.scale=none"]

    def learned():
        pd.DataFrame(X, columns=[f"x{i}" for i in range(4)]).assign(y=y).to_csv(tmp_path / "own.csv", index=False)
        plan = planned(*OWN[1:4], *own, "algo=ddaerr", "k=2", "total=700", "pilot=5", "checkpoints=2")
        return plan, *journaled(plan)

    plan, result = learned()
    order = parts_of(plan.config, load(plan.config.dataset, 0, 0), plan.n_test, plan.pilot, 0).order
    unpaid = order[result["curve"][-1]["examples"] - plan.pilot :]
    assert unpaid.size > 20
    X[unpaid] = 1e3
    assert learned()[1] == result
    X[order[0]] = 1e3
    assert learned()[1] != result


@pytest.mark.usefixtures("short_chains")
@pytest.mark.parametrize("algo", slow_but(["aemr"], ["aeml", "aemr"]))
def test_a_rehearsal_changes_no_number_and_its_plans_are_made_once(own_prices, algo, monkeypatch):
    words, planning, examples = [*own_prices, f"algo={algo}", "pilot=5", "repetitions=1"], plan_by_posterior, []

    def counted(collected, *args, **options):
        examples.append(collected.examples)
        return planning(collected, *args, **options)

    monkeypatch.setattr(posterior, "plan_by_posterior", counted)
    (within,) = journaled(planned(*words, "total=350", "checkpoints=4"))
    assert sorted(set(examples)) == examples
    assert 350 - 26 < within["run"]["cost_total"] <= 350
    ends = [point["examples"] for point in within["curve"]]
    assert len(set(ends)) == 4
    (alone,) = journaled(planned(*words, f"checkpoints={ends}"))
    assert alone["curve"] == within["curve"]


def test_cheap_draws_see_more_examples_than_were_expected(tmp_path):
    """The price that is expected of a draw assumes that all attributes matter; only the cheap ones do."""
    X = np.random.default_rng(0).normal(size=(600, 8))
    table = pd.DataFrame(X, columns=[f"x{i}" for i in range(1, 9)])
    table.assign(y=X[:, :4].sum(axis=1)).to_csv(tmp_path / "own.csv", index=False)
    prices = "\n".join(["attribute,cost", *(f"x{i},{1 if i < 5 else 30}" for i in range(1, 9))])
    (tmp_path / "prices.csv").write_text(prices)
    keys = ["dataset=file", f"dataset.path={tmp_path / 'own.csv'}", f"dataset.costs={tmp_path / 'prices.csv'}"]
    plan = planned(*keys, "dataset.target=y", "algo=fixed_subset", "k=3", "total=2500", "pilot=10", "checkpoints=1")
    (result,) = run_repetitions(plan, [0], lambda done: None)
    assert result["curve"][-1]["examples"] > 2 * plan.checkpoints[-1]
    assert result["run"]["cost_total"] <= 2500
    whole = result["curve"][-1]["examples"] == plan.n_train
    assert whole or result["run"]["cost_total"] > 2490


@pytest.fixture
def own_prices(tmp_path: Path) -> list[str]:
    """Keys of a table of 200 rows, four draws of which cost 26 at most."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 12)) + 0.5 * rng.normal(size=(200, 12))
    table = pd.DataFrame(X, columns=[f"c{i}" for i in range(12)])
    table.assign(y=X[:, 0] + X[:, 9] + 0.3 * rng.normal(size=200)).to_csv(tmp_path / "own.csv", index=False)
    prices = enumerate([1, 1, 2, 2, 3, 3, 5, 5, 8, 8, 0.1, 0.3])
    (tmp_path / "prices.csv").write_text("\n".join(["attribute,cost", *(f"c{i},{price}" for i, price in prices)]))
    return ["dataset=file", f"dataset.path={tmp_path / 'own.csv'}", f"dataset.costs={tmp_path / 'prices.csv'}", "k=4"]


def test_money_that_pays_for_more_examples_is_spent_unless_the_draws_would_become_too_expensive(own_prices):
    """The first tenth of the examples chooses the attributes of all others, which may be others in a longer run."""
    repetitions = [0, 3, 4, 5]
    own = [*own_prices, "algo=fixed_subset", "repetitions=6", "pilot=0"]
    plan = planned(*own, "total=500", "checkpoints=1")
    for repetition, result in zip(repetitions, run_repetitions(plan, repetitions, lambda done: None), strict=True):
        spent, examples = result["run"]["cost_total"], result["curve"][-1]["examples"]
        assert spent <= 500
        if spent <= 500 - 26:
            (longer,) = run_repetitions(planned(*own, f"checkpoints=[{examples + 1}]"), [repetition], lambda done: None)
            assert longer["run"]["cost_total"] > 500


@pytest.mark.usefixtures("short_chains")
@pytest.mark.parametrize("algo", slow_but(["aemr"], ["aeml", "aemr"]))
def test_repetitions_that_money_ends_at_different_examples_run_together(own_prices, algo):
    """Their outputs are those of each alone, and examples after the end of one cost it nothing."""
    plan = planned(*own_prices, f"algo={algo}", "total=300", "repetitions=3", "checkpoints=3")
    assert plan.repetitions_at_once >= 3
    together = journaled(plan, range(3))
    ends = [[point["examples"] for point in result["curve"]] for result in together]
    assert len({each[-1] for each in ends}) > 1
    assert len({tuple(each[:-1]) for each in ends}) == 1
    assert all(300 - 26 < result["run"]["cost_total"] <= 300 for result in together)
    assert together == [result for repetition in range(3) for result in journaled(plan, [repetition])]


@pytest.mark.usefixtures("short_chains")
@pytest.mark.parametrize("algo", ["aemr", "fixed_subset"])
def test_a_share_of_the_money_is_a_share_of_what_would_be_spent(own_prices, algo):
    own = [*own_prices, f"algo={algo}", "repetitions=2", "pilot=0"]
    plan = planned(*own, "total=400", "checkpoints=[0.25,0.5]")
    assert "left of a share of 0.5" in " ".join(plan.notes)
    for result in journaled(plan, [0, 1]):
        assert 200 - 26 < result["run"]["cost_total"] <= 200


@pytest.mark.usefixtures("short_chains")
def test_half_of_more_money_than_all_examples_cost_is_half_of_what_they_cost(own_prices):
    own = [*own_prices, "algo=aemr", "total=1000000", "repetitions=1", "pilot=0", "dataset.test_fraction=0.7"]
    spent = {}
    for share in (0.5, 1.0):
        (result,) = journaled(planned(*own, f"checkpoints=[{share}]"))
        spent[share] = result["run"]["cost_total"]
    assert spent[1.0] / 2 - 26 < spent[0.5] <= spent[1.0] / 2


def test_each_repetition_that_money_ends_is_kept_when_it_ends(own_prices, tmp_path):
    words = [*own_prices, "algo=fixed_subset", "total=300", "repetitions=3", "checkpoints=2", f"out={tmp_path / 'run'}"]
    plan = planned(*words)

    def interrupted(plan: Plan, repetitions: Sequence[int], progress: Progress) -> list[Result]:
        if 1 in repetitions:
            raise KeyboardInterrupt
        return run_repetitions(plan, repetitions, progress)

    with pytest.raises(KeyboardInterrupt):
        execute(plan, function=interrupted)
    whole = execute(plan)
    assert (whole.resumed, whole.finished) == (1, 3)


@pytest.mark.usefixtures("short_chains")
def test_progress_never_goes_back_while_money_asks_for_longer_runs(own_prices, monkeypatch):
    runs, steps, begun = [], [], passes.advance

    def counted(*args):
        runs.append(len(steps))
        return begun(*args)

    monkeypatch.setattr(passes, "advance", counted)
    plan = planned(*own_prices, "algo=fixed_subset", "total=500", "repetitions=4", "checkpoints=6", "pilot=0")
    run_repetitions(plan, [0], steps.append)
    assert len(runs) > 2
    assert steps[runs[-1]] > 0
    assert steps == sorted(steps)
    assert steps[runs[2] - 1] < steps[-1] <= 1


def test_full_rows_spend_the_money_but_for_less_than_one_row():
    for total, rows in ((7500, 100), (7499, 99), (75, 1)):
        plan = planned(*OWN, *EUR, "algo=ridge", f"total={total}", "pilot=0", "dataset.scale=none", "k=4")
        assert plan.checkpoints[-1] == rows  # of 75 EUR each
    everything = planned(*OWN, *EUR, "algo=ridge", "total=1000000", "k=4")
    assert everything.checkpoints[-1] == everything.n_train
    assert any(note.startswith("total=1000000 EUR: ridge ends at 3980 attributes") for note in everything.notes)


def test_price_aware_draws_buy_more():
    plans = {
        prices: planned(*OWN, *EUR, "algo=ddaerr", "k=4", "total=3000", f"algo.prices={prices}")
        for prices in ("aware", "ignored")
    }
    assert plans["aware"].checkpoints[-1] > 1.2 * plans["ignored"].checkpoints[-1]
    assert {plan.pilot for plan in plans.values()} <= {3, 4}  # a tenth of 3000 EUR, at 75 each


def test_prices_of_1_give_the_same_run_as_attributes():
    for algo in ("aerr", "ridge"):
        money, plain = (
            planned(*OWN, f"algo={algo}", "k=4", "total=700", *more) for more in (["dataset.costs=equal"], [])
        )
        assert money.checkpoints == plain.checkpoints
        assert money.pilot == plain.pilot


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (["total=600", "pilot=8"], "pilot=8: 8 full rows of 10 attributes cost as much as total=600 EUR, or more"),
        (
            ["total=610", "pilot=8"],
            "total=610 EUR: too little for one example of 4 attributes with aelr after a pilot of 8 full rows of 10; "
            "give at least 672",
        ),
        (
            ["total=74", "algo=ridge", "pilot=0", "dataset.scale=none"],
            "total=74 EUR: too little for one example of 10 attributes with ridge; give at least 75",
        ),
    ],
)
def test_totals_that_buy_nothing_are_refused(keys, said):
    assert said in refusal(ConfigError, planned, "dataset=diabetes", "k=4", *EUR, *keys)
    keys[0] = f"total={said.split()[-1]}" if "at least" in said else "total=9000"
    planned("dataset=diabetes", "k=4", *EUR, *keys)


def test_distinct_attributes_cost_at_most_the_most_expensive_of_them(own_prices):
    """The six most expensive of twelve cost 32, and all 38.4; six and twelve times the most expensive are 48 and 96."""
    for k, total in ((6, 32), (12, 39)):
        (result,) = journaled(planned(*own_prices, f"k={k}", "algo=impute_ridge", f"total={total}", "pilot=0"))
        assert 0 < result["run"]["cost_total"] <= total


def test_checkpoints_that_are_left_out_are_said(own_prices):
    plan = planned(*own_prices, "algo=impute_ridge", "checkpoints=[0.01,0.02,0.5,1]", "pilot=10")
    assert len(plan.checkpoints) == 2
    assert "2 of 4 checkpoints are left: others lie within the pilot" in " ".join(plan.notes)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (["total=0"], "total=0: the number of attributes, or the money, that every learner ends at must be"),
        (["total=80", "pilot=8"], "pilot=8: 8 full rows of 10 attributes cost as much as total=80, or more; use"),
        (["total=20", "algo=online_ridge"], "cost as much as total=20, or more; online_ridge needs them"),
        (
            ["total=82", "pilot=8"],
            "total=82: too little for one example of 4 attributes with aelr after a pilot of 8 full rows of 10",
        ),
        (
            ["total=9", "algo=ridge", "pilot=0", "dataset.scale=none"],
            "total=9: too little for one example of 10 attributes with ridge",
        ),
        (["total=700", "axis=examples"], "total=700: axis=examples ends all learners at the same number of examples"),
        (["total=700", "checkpoints=[20,30]"], "checkpoints=[20, 30]: these numbers of examples contradict total=700"),
    ],
)
def test_impossible_totals_are_refused(keys, said):
    assert said in refusal(ConfigError, planned, "dataset=diabetes", "k=4", *keys)


# k=auto: a learner chooses how many attributes of each example it sees, within a total that is never passed

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
        assert not each.plans_draws_alone  # the number of attributes is chosen, too
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
def test_it_is_read_and_drawn_beside_fixed_k(table: Path, call: Call) -> None:
    for k in ("auto", 2, 4):
        run(choices(table, f"runs/k{k}", total=60, checkpoints=2, **{"k": k}))
    runs = table.parent / "runs"
    series = read_series([runs])
    assert budgets_of(series) == [2, 4, "auto"]
    assert [each.label for each in series] == ["aeml k=2", "aeml k=4", "aeml k=auto"]
    assert read(runs / "kauto").curves["k"].tolist() == ["auto"] * 2
    (row,) = (line.split() for line in call(f"plot {runs}").out.splitlines() if " auto " in line)
    assert row[3] == "-"  # of examples
    assert "k = auto" in (runs / "curves.txt").read_text()
    assert "auto" in call(f"status {runs}").out
