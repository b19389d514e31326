"""Prices: the bill in money is the sum over what was revealed, and prices change nothing else."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from budgetreg.common.errors import ConfigError
from budgetreg.protocol.plan import make_plan
from budgetreg.protocol.repetitions import run_repetitions
from budgetreg.runs.tables import RUN_COLUMNS
from tests.plans import journaled, planned
from tests.refusals import refusal
from tests.tiers import quick_but

GRID = "algo.grid={B: [1, 3], eta: [1, 10]}"
OWN = ["dataset=diabetes", "tuning.folds=3", "k=4", "checkpoints=4", "pilot=8"]
BALLS = "algo.grid={B: [1, 3]}"


def run(*keys, repetitions=(0,)):
    plan = planned(*OWN, *keys)
    return plan, journaled(plan, repetitions)


@pytest.mark.parametrize(
    ("algo", "grid"),
    [
        ("aerr", GRID),
        pytest.param("aelr", GRID, marks=pytest.mark.slow),
        pytest.param("aer", "algo.grid={B: [1, 3], lambda: [1, 10]}", marks=pytest.mark.slow),
        pytest.param("ddaerr_two_phase", "algo.grid={B: [1], eta: [1, 10], eta_two: [1]}", marks=pytest.mark.slow),
        ("aesvr", "algo.grid={B: [1], eta: [0.1, 1]}"),
        ("baseline", BALLS),
        ("ridge", BALLS),
        pytest.param("online_ridge", GRID, marks=pytest.mark.slow),
        ("naive", "algo.grid={}"),
    ],
)
def test_money_is_the_sum_of_the_prices_of_what_was_revealed(algo, grid):
    plan, ((result),) = run(f"algo={algo}", grid, "dataset.costs=bundled")
    costs = plan.prices.costs
    for point, reveals in zip(result["curve"], result["reveals"], strict=True):
        assert sum(reveals) == point["attributes"]
        assert point["cost"] == pytest.approx(sum(n * c for n, c in zip(reveals, costs, strict=True)), rel=1e-13)
    assert result["run"]["cost_total"] == result["curve"][-1]["cost"]
    tuning = result["run"]["attributes_tuning"]
    assert min(costs) * tuning <= result["run"]["cost_tuning"] <= max(costs) * tuning
    assert (result["run"]["cost_tuning"] > 0) == plan.tuned
    if plan.per_example == plan.d:
        assert result["curve"][-1]["cost"] == result["curve"][-1]["examples"] * sum(costs)


@pytest.mark.parametrize(("algo", "k"), [("aemr", 2), ("impute_ridge", 10), ("fixed_subset", 4), ("ridge", 4)])
def test_the_most_examples_are_those_of_the_cheapest_attributes(algo, k):
    """An example shows k attributes, and none of them twice."""
    keys = ["algo.grid={B: [1]}"] if algo == "ridge" else []
    plan = planned(
        *OWN[:1], f"algo={algo}", f"k={k}", "total=900", "checkpoints=1", "pilot=2", "dataset.costs=bundled", *keys
    )
    costs, pilot = sorted(plan.prices.costs), plan.pilot_before_learning
    least = sum(costs) if algo == "ridge" else sum(costs[:k])
    assert plan.most_examples == pilot + int((900 - pilot * sum(costs)) / least)


@pytest.mark.parametrize(
    ("algo", "grid"), quick_but([("aelr", GRID)], [("ddaerr", GRID), ("aelr", GRID), ("ridge", BALLS)])
)
def test_ignored_prices_change_only_the_cost(algo, grid):
    ignored = [] if algo == "ridge" else ["algo.prices=ignored"]
    _, with_prices = run(f"algo={algo}", grid, "dataset.costs=bundled", *ignored)
    _, without = run(f"algo={algo}", grid)
    for priced, plain in zip(with_prices, without, strict=True):
        costs = {column for column in RUN_COLUMNS if column.startswith("cost")}
        assert priced["run"].keys() - plain["run"].keys() == costs
        assert {**priced["run"], **plain["run"]} == priced["run"]
        for point, with_cost in zip(plain["curve"], priced["curve"], strict=True):
            assert {**point, "cost": with_cost["cost"]} == with_cost
        assert priced.keys() - plain.keys() == {"reveals"}


def test_price_aware_draws_cost_less_for_as_many_attributes():
    (_, aware), (_, ignoring) = (
        run("algo=ddaerr", GRID, "dataset.costs=bundled", f"algo.prices={prices}") for prices in ("aware", "ignored")
    )
    last = [result[0]["curve"][-1] for result in (aware, ignoring)]
    assert last[0]["attributes"] == pytest.approx(last[1]["attributes"], abs=10)
    assert last[0]["cost"] < 0.8 * last[1]["cost"]


def test_prices_decide_the_results_of_price_aware_learners():
    def identity(*keys):
        return planned(*OWN, *keys).config.identity()

    assert identity("algo=ddaerr", "algo.prices=ignored") == identity("algo=ddaerr")
    assert identity("algo=ddaerr", "dataset.unit=EUR") == identity("algo=ddaerr")
    priced = identity("algo=ddaerr", "dataset.costs=bundled")
    assert priced != identity("algo=ddaerr")
    assert identity("algo=ddaerr", "dataset.costs=bundled", "algo.prices=ignored") != priced
    # Prices guide no draw of AERR, and of DDAELR only those for the inner product.
    for algo, *more in (("aerr",), ("ddaelr", "algo.inner_product=weight")):
        aware, ignoring = (
            identity(f"algo={algo}", *more, "dataset.costs=bundled", f"algo.prices={prices}")
            for prices in ("aware", "ignored")
        )
        assert aware == ignoring


def test_the_step_size_of_theory_accounts_for_price_aware_draws(tmp_path: Path):
    flat = pd.DataFrame({"attribute": range(1, 11), "cost": 3.0})
    flat.to_csv(tmp_path / "flat.csv", index=False)
    etas = [
        planned(*OWN, "algo=ddaerr", "tuning=theory", "tuning.B=1", *more).settings["eta"][0]
        for more in ([], [f"dataset.costs={tmp_path / 'flat.csv'}"], ["dataset.costs=bundled"])
    ]
    assert etas[1] == pytest.approx(etas[0], rel=1e-12)
    plan = planned(*OWN, "dataset.costs=bundled")
    c = np.array(plan.prices.costs)
    H = np.sqrt(c).sum() * np.sqrt(1 / c).sum()  # second moments are 1 in units of the pilot's spread
    m, k_x = plan.checkpoints[-1] - 8, 2
    assert etas[2] == pytest.approx(1 / np.sqrt(m * (H / k_x + 1)), rel=1e-12)


def test_a_plan_keeps_the_price_list_that_it_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    prices = pd.DataFrame({"attribute": range(1, 11), "cost": 3.0})
    prices.to_csv(tmp_path / "prices.csv", index=False)
    monkeypatch.chdir(tmp_path)
    plan = planned(*OWN, "dataset.costs=prices.csv")
    assert plan.prices.costs == (3.0,) * 10
    assert plan.located().config.dataset.costs == str(tmp_path / "prices.csv")
    for word in ("equal", "bundled"):
        assert planned(*OWN, f"dataset.costs={word}").located().config.dataset.costs == word
    assert make_plan(planned(*OWN).config).prices is None


# Free attributes.

FREE = [1, 4]
COSTS = [0.0 if i in FREE else float(i + 1) for i in range(10)]


@pytest.fixture
def free(tmp_path: Path) -> str:
    pd.DataFrame({"attribute": range(1, 11), "cost": COSTS}).to_csv(tmp_path / "free.csv", index=False)
    return f"dataset.costs={tmp_path / 'free.csv'}"


@pytest.mark.parametrize(
    ("algo", "more"),
    [
        ("impute_ridge", []),
        ("sgd_impute", ["algo.grid={B: [1, 3], eta: [0.1]}"]),
        pytest.param("aeml", ["checkpoints=[30]", "algo.n_factors=2"], marks=pytest.mark.slow),
        pytest.param("aefa", ["pilot=0", "algo.n_components=2", "checkpoints=[30]"], marks=pytest.mark.slow),
        ("ridge", [BALLS]),
        ("online_ridge", [GRID]),
    ],
)
def test_free_attributes_are_seen_of_every_example_and_are_on_no_bill(free, algo, more):
    plan, results = run(f"algo={algo}", free, *more, repetitions=(0, 1))
    full = plan.per_example == 8
    for result in results:
        for point, reveals in zip(result["curve"], result["reveals"], strict=True):
            examples, steps = point["examples"], point["examples"] - plan.pilot_before_learning
            assert [reveals[i] for i in FREE] == [examples] * 2
            assert point["attributes"] == sum(reveals) - 2 * examples
            assert point["attributes"] == 8 * plan.pilot_before_learning + (8 if full else 4) * steps
            assert point["cost"] == pytest.approx(np.dot(reveals, COSTS), rel=1e-13)
        row = result["run"]
        assert row["attributes_max"] == (8 if full else 4)
        assert row["cells_run"] <= row["attributes_total"] <= plan.attributes_final
        assert row["cells_run"] + row["cells_tuning"] <= 8 * plan.n_train
    _, alone = run(f"algo={algo}", free, *more, repetitions=(1,))
    assert alone == results[1:]
    assert any(note.startswith("free attributes are seen for every example") for note in plan.notes)


def test_at_most_the_attributes_with_a_price_are_drawn(free):
    plan, (result,) = run("algo=impute_ridge", "k=10", free, "checkpoints=[20]")
    assert plan.per_example == result["run"]["attributes_max"] == 8
    assert plan.attributes_final == result["run"]["attributes_total"] == 160
    assert set(result["reveals"][0]) == {20}


def test_a_full_row_costs_the_sum_of_the_prices(free):
    rows = planned(*OWN[:1], "algo=ridge", free, "k=4", "total=4800", "pilot=0", "dataset.scale=none")
    assert rows.payment.row == sum(COSTS) == 48
    assert rows.checkpoints[-1] == 100
    assert rows.attributes_final == 800


def test_learners_that_see_nothing_beside_their_k_refuse_free_attributes(free):
    for algo, able in (("ddaerr", "aemr"), ("baseline", "impute_ridge"), ("popca", "aefa")):
        more = ["algo.n_components=2"] if algo == "popca" else []
        message = refusal(ConfigError, planned, "dataset=diabetes", "k=4", f"algo={algo}", *more, "pilot=0", free)
        assert f"the price of sex, s1 is 0, and {algo} cannot use more than its k attributes" in message
        assert able in message.partition("use one of")[2]


# Plans that depend on prices.


@pytest.mark.slow
@pytest.mark.parametrize("algo", ["aeml", "aemr"])
def test_plans_draw_expensive_attributes_less_often(algo):
    """As the total is money, price-aware plans see more examples for it, and spend no more than it."""
    words = [f"algo={algo}", "algo.n_factors=2", "dataset.costs=bundled", "total=2500", "checkpoints=1"]
    aware, ignored = (
        planned(*OWN[:1], "k=4", "pilot=5", *words, f"algo.prices={word}") for word in ("aware", "ignored")
    )
    paid = [run_repetitions(plan, range(2), lambda done: None) for plan in (aware, ignored)]
    for result in (*paid[0], *paid[1]):
        assert 2500 - 4 * 18 < result["run"]["cost_total"] <= 2500  # 18 is the highest price
    examples = [sum(result["curve"][-1]["examples"] for result in results) for results in paid]
    assert examples[0] > 1.05 * examples[1]
    reveals = [np.sum([result["reveals"][-1] for result in results], axis=0) for results in paid]
    means = [counts @ aware.prices.costs / counts.sum() for counts in reveals]
    assert means[0] < 0.95 * means[1]


def test_prices_decide_the_results_of_planned_draws_only_if_they_differ():
    def identity(*keys):
        return planned("dataset=diabetes", "k=4", "algo=aemr", *keys).config.identity()

    plain, priced = identity(), identity("dataset.costs=bundled")
    assert "prices" not in plain["algo"]
    assert priced["algo"]["prices"] == "aware"
    assert plain == identity("algo.prices=ignored")
    # Runs that were recorded before plans were price-aware ignored prices.
    assert "prices" not in identity("dataset.costs=bundled", "algo.prices=ignored")["algo"]
    assert "prices" not in identity("dataset.costs=equal")["algo"]


@pytest.mark.slow
def test_equal_prices_change_no_plan():
    words = ["algo=aeml", "algo.n_factors=2", "checkpoints=[30]"]
    (_, (priced,)), (_, (plain,)) = (run(*words, *more) for more in (["dataset.costs=equal"], []))
    assert priced["model"] == plain["model"]
