"""The pilot: full rows that are bought first and charged; all side information comes from them."""

import numpy as np
import pytest

from budgetreg.common.errors import ConfigError
from budgetreg.data.dataset import Dataset
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table, stack
from budgetreg.protocol import repetitions as protocol
from budgetreg.protocol.split import pilot_moments, spreads, table_of
from tests.plans import journaled, planned
from tests.refusals import refusal

OWN = ["dataset=diabetes", "tuning.folds=3", "k=4", "repetitions=2", "checkpoints=4"]
GRID = "algo.grid={B: [1, 3], eta: [1, 10]}"


@pytest.mark.parametrize(("algo", "grid"), [("aerr", GRID), ("ddaelr", GRID), ("ridge", "algo.grid={B: [1, 3]}")])
def test_the_curve_begins_at_the_cost_of_the_pilot_and_ends_at_the_same_bill(algo, grid):
    plan = planned(*OWN, f"algo={algo}", grid, "pilot=8", "algo.split=2" if algo != "ridge" else "k=4")
    results = journaled(plan)
    total = results[0]["run"]["attributes_total"]
    assert total <= 4 * plan.n_train
    assert total > 4 * plan.n_train - 10
    for point in results[0]["curve"]:
        after = point["examples"] - 8
        # The first step of learners on a budget costs what the data point does, as w is 0.
        assert point["attributes"] == 80 + (after * 10 if algo == "ridge" else after * 4 - 2)
        assert after > 0


def test_budgeted_learners_skip_the_pilot_and_others_begin_with_it(monkeypatch):
    passes = {}

    def advance(plan, table, together, *rest):
        passes[plan.config.algo.name] = together
        raise InterruptedError

    monkeypatch.setattr(protocol, "advance", advance)
    for algo, grid in (("aerr", GRID), ("ridge", "algo.grid={B: [1, 3]}")):
        with pytest.raises(InterruptedError):
            journaled(planned(*OWN, f"algo={algo}", grid, "pilot=8"))
    pilot = passes["aerr"][0].pilot
    assert len(set(pilot)) == 8
    for fold in passes["aerr"]:
        np.testing.assert_array_equal(fold.pilot, pilot)
        assert not set(fold.order) & set(pilot)
    for fold in passes["ridge"]:
        assert fold.pilot.size == 0
        np.testing.assert_array_equal(fold.order[:8], pilot)


def test_only_the_pilot_is_read_before_the_pass():
    rng = np.random.default_rng(0)
    X = np.full((30, 3), np.nan)
    pilot = np.array([4, 17, 9, 2])
    X[pilot] = rng.normal(5, 2, (4, 3))
    data = Dataset("poisoned", X, rng.normal(size=30), 0.5, None, False)
    table = table_of("revealed", data, np.arange(25), pilot, scaled=True)
    rows = table.rows(pilot)
    np.testing.assert_allclose(rows.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(rows.std(axis=0, ddof=1), 1, rtol=1e-12)
    np.testing.assert_allclose(pilot_moments(table, pilot), (3 + 3 / 4) / 5)
    np.testing.assert_array_equal(table_of("none", data, np.arange(25), pilot).rows(pilot), 0.5 * X[pilot])


def test_spreads_of_constant_attributes():
    X = np.array([[1.0, 3.0, 0.0, 10.0], [2.0, 3.0, 0.0, 50.0], [3.0, 3.0, 0.0, 30.0]])
    np.testing.assert_allclose(spreads(X), [1, 3, 10.5, 20])
    np.testing.assert_array_equal(spreads(np.zeros((2, 3))), 1)


def test_running_means_continue_from_the_pilot():
    rng = np.random.default_rng(1)
    X, y = rng.normal(3, 1, (300, 2)), rng.normal(7, 1, 300)
    pilot = np.array([[290, 291, 292]])
    centred = {"centre_attributes": True, "centre_targets": True}
    accessor = Accessor(Table(X, y), np.arange(280)[None], 1, 1, pilot=pilot, **centred)
    for rows, expected in zip(accessor.pilot(), (X[pilot], y[pilot]), strict=True):
        np.testing.assert_array_equal(rows, expected)
    accessor.open(0, 256)
    first = X[pilot[0]].mean(axis=0)
    np.testing.assert_allclose(accessor.reveal_block(np.zeros((1, 256, 1), dtype=int))[0, :, 0], X[:256, 0] - first[0])
    assert accessor.targets()[0, 0] == pytest.approx(y[0] - y[290:293].mean())
    accessor.open(256, 280)
    (origin,) = accessor.origins(280)
    np.testing.assert_allclose(origin.shift, [np.append(X[:256, 0], X[290:293, 0]).mean(), first[1]])
    assert origin.intercept == pytest.approx(np.append(y[:280], y[290:293]).mean())


def test_stacked_tables_keep_their_scales():
    X = np.arange(12.0).reshape(4, 3)
    tables = [Table(X, np.zeros(4), scale, -scale) for scale in (np.array([1.0, 2, 3]), np.array([4.0, 5, 6]))]
    table, offsets = stack(tables)
    rows = np.array([3, 0])
    for each, offset in zip(tables, offsets, strict=True):
        np.testing.assert_array_equal(table.rows(rows + offset), each.rows(rows))
        np.testing.assert_array_equal(
            table.entries(rows + offset, np.array([2, 1])), each.entries(rows, np.array([2, 1]))
        )


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            ["pilot=1"],
            "pilot=1: too few rows for dataset.scale=revealed; use at least 2, or dataset.scale=max_abs or none, or",
        ),
        (["pilot=0", "dataset.scale=none", "algo=ddaerr"], "pilot=0: too few rows for algo.moments=pilot"),
        (["pilot=160"], "pilot=160: 160 full rows of 10 attributes cost as much as k=4 for 398 examples, or more"),
        (["checkpoints=[8,50]", "pilot=8"], "checkpoints=[8, 50]: the first 8 examples are the pilot"),
        (
            ["algo=popca", "algo.n_components=2", "pilot=3"],
            "pilot=3: popca learns a subspace and has no pilot; use pilot=0",
        ),
    ],
)
def test_impossible_pilots_are_refused(keys, said):
    assert said in refusal(ConfigError, planned, "dataset=diabetes", "k=4", *keys)


def test_an_automatic_pilot_costs_up_to_a_tenth_of_all_attributes():
    plan = planned("dataset=diabetes", "k=4")
    assert plan.pilot == 15
    note = "a pilot of 15 full rows is bought first, 150 of 1,590 attributes in all"
    assert plan.notes[-1] == f"{note}: scale, centre and moments come from it"
    storing = planned("dataset=diabetes", "k=4", "algo=aemr")
    assert storing.notes[-1] == f"{note}: scale and centre come from all values seen"
    assert planned("dataset=breast_cancer", "k=4").pilot == 6
    assert planned("k=4").pilot == 0
