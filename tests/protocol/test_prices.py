"""Prices: the bill in money is the sum over what was revealed, and prices change nothing else."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from budgetreg.protocol.plan import make_plan
from budgetreg.protocol.repetitions import run_repetitions
from budgetreg.results.schema import RUN_COLUMNS
from tests.plans import planned

GRID = "algo.grid={B: [1, 3], eta: [1, 10]}"
OWN = ["dataset=diabetes", "tuning.folds=3", "k=4", "checkpoints=4", "pilot=8"]
BALLS = "algo.grid={B: [1, 3]}"


def run(*keys, repetitions=(0,)):
    plan = planned(*OWN, *keys)
    return plan, run_repetitions(plan, list(repetitions), lambda done: None)


@pytest.mark.parametrize(
    ("algo", "grid"),
    [
        ("aerr", GRID),
        ("aelr", GRID),
        ("aer", "algo.grid={B: [1, 3], lambda: [1, 10]}"),
        ("ddaerr_two_phase", "algo.grid={B: [1], eta: [1, 10], eta_two: [1]}"),
        ("aesvr", "algo.grid={B: [1], eta: [0.1, 1]}"),
        ("baseline", BALLS),
        ("ridge", BALLS),
        ("online_ridge", GRID),
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


@pytest.mark.parametrize(("algo", "grid"), [("ddaerr", GRID), ("aelr", GRID), ("ridge", BALLS)])
def test_ignored_prices_change_only_the_cost(algo, grid):
    ignored = [] if algo == "ridge" else ["algo.prices=ignored"]
    _, with_prices = run(f"algo={algo}", grid, "dataset.costs=bundled", *ignored)
    _, without = run(f"algo={algo}", grid)
    for priced, plain in zip(with_prices, without, strict=True):
        assert {column for column in RUN_COLUMNS if column.startswith("cost")} == priced["run"].keys() - plain[
            "run"
        ].keys()
        assert {**priced["run"], **plain["run"]} == priced["run"]
        assert [
            {**point, "cost": other["cost"]} for point, other in zip(plain["curve"], priced["curve"], strict=True)
        ] == (priced["curve"])
        assert priced.keys() - plain.keys() == {"reveals"}


def test_price_aware_draws_cost_less_for_as_many_attributes():
    (_, heeding), (_, ignoring) = (
        run("algo=ddaerr", GRID, "dataset.costs=bundled", f"algo.prices={prices}") for prices in ("aware", "ignored")
    )
    last = [result[0]["curve"][-1] for result in (heeding, ignoring)]
    assert last[0]["attributes"] == pytest.approx(last[1]["attributes"], abs=10)
    assert last[0]["cost"] < 0.8 * last[1]["cost"]


def test_priced_runs_have_the_same_numbers_in_any_batch():
    keys = ["algo=aerr", GRID, "dataset.costs=bundled"]
    _, together = run(*keys, repetitions=(0, 1))
    for repetition in (0, 1):
        _, alone = run(*keys, "backend.batch_size=2", repetitions=(repetition,))
        assert alone == [together[repetition]]


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
        heeding, ignoring = (
            identity(f"algo={algo}", *more, "dataset.costs=bundled", f"algo.prices={prices}")
            for prices in ("aware", "ignored")
        )
        assert heeding == ignoring


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
