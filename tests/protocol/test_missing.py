"""Runs on tables with missing values: refusals, bills, tests on incomplete rows, and nothing unrevealed is used."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from budgetreg.common.errors import ConfigError, DataError
from budgetreg.data import registry as data_room
from budgetreg.data.dataset import Dataset
from budgetreg.data.registry import load
from budgetreg.metering.accessor import Accessor
from budgetreg.protocol import passes
from budgetreg.protocol import plan as planning
from budgetreg.protocol import repetitions as protocol
from budgetreg.protocol import split as splitting
from budgetreg.protocol.split import completed, second_moments, shares, split_data, table_of
from budgetreg.runs.manifest import identity_of
from tests.plans import journaled, planned
from tests.protocol.test_cells import Watcher, counted_right, literally
from tests.refusals import refusal
from tests.tiers import slow_but

N, D = 120, 6
RNG = np.random.default_rng(5)
X = RNG.normal(3, 2, (N, D)) * np.arange(1, D + 1)
Y = X @ np.linspace(-1, 1, D) + RNG.normal(size=N)
GAPS = RNG.random((N, D)) < 0.12
GAPS[:, 3] |= GAPS[:, 2]  # as if one device measured both
KEYS = ["dataset=file", "dataset.missing=unavailable", "k=4", "tuning.folds=3", "tuning.widen=0", "repetitions=2"]
KEYS += ["checkpoints=3"]
STEPS, RADII = "algo.grid={B: [1, 3], eta: [1, 10]}", "algo.grid={B: [0.3, 1, 3]}"
ONE_STEP = "algo.grid={B: [1], eta: [0.1]}"
REGRESSORS = {
    "baseline": RADII,
    "naive": RADII,
    "aer": "algo.grid={B: [1, 3], lambda: [0.1, 1]}",
    "aerr": STEPS,
    "ddaelr": STEPS,
    "ddaelr_two_phase": "algo.grid={B: [1, 3], eta: [1], eta_two: [1, 10]}",
}
SUBSPACES = {"popca": "k=4", "popca_passive": "k=4", "popca_importance": "k=4", "mbeg_plus": "algo.grid={eta: [1, 10]}"}
KINDS = ("aerr", "ddaelr_two_phase", "popca", "mbeg_plus")
"""One learner of each way to draw; others treat missing values as one of them does."""


def written(folder: Path, X: np.ndarray, gaps: np.ndarray) -> str:
    frame = pd.DataFrame(np.where(gaps, np.nan, X), columns=list("abcdef")).assign(y=Y)
    frame.to_csv(folder / "table.csv", index=False)
    return f"dataset.path={folder / 'table.csv'}"


@pytest.fixture
def path(tmp_path):
    return written(tmp_path, X, GAPS)


def run(plan, repetitions=(0, 1)):
    return journaled(plan, repetitions)


def of(path: str, algo: str, *more: str):
    options = [REGRESSORS[algo]] if algo in REGRESSORS else [SUBSPACES[algo], "algo.n_components=2", "dataset.target=y"]
    return planned(*KEYS, path, f"algo={algo}", *options, *more)


@pytest.mark.parametrize("algo", slow_but(KINDS, [*REGRESSORS, *SUBSPACES]))
def test_reveals_of_available_cells_are_paid_and_others_are_free(path, monkeypatch, algo):
    plan = of(path, algo)
    there = ~GAPS
    bills: list[tuple[np.ndarray, ...]] = []

    class Watcher(Accessor):
        def reveal_block(self, attributes, drawn=None):
            shown = super().reveal_block(attributes, drawn)
            place = np.broadcast_arrays(self._rows[:, :, None] % N, attributes)
            assert not shown[~there[place[0], place[1]]].any()
            return shown

        def bill(self):
            bill = super().bill()
            bills.append((bill.most, bill.total))
            return bill

    monkeypatch.setattr(passes, "Accessor", Watcher)
    for result in run(plan):
        row = result["run"]
        if plan.budget:
            assert row["attributes_max"] <= 4
            assert row["attributes_total"] <= plan.attributes_final
            assert row["attributes_tuning"] <= plan.attributes_tuning
        # Drawing a missing value is free; a repeated draw is charged again.
        assert 0 < row["attributes_mean"] < 4
        assert row["cells_run"] <= row["attributes_total"]
        assert row["cells_run"] + row["cells_tuning"] <= there.sum()
        assert result["curve"][-1]["attributes"] == row["attributes_total"]
    assert bills


@pytest.mark.parametrize("algo", slow_but(KINDS, [*REGRESSORS, *SUBSPACES]))
def test_what_is_stored_in_missing_cells_changes_nothing(path, monkeypatch, algo):
    plan = of(path, algo)
    expected = run(plan)
    data = load(plan.config.dataset, 0, 0, targets=plan.config.algo.predicts)
    poisoned = np.where(GAPS, np.nan, np.asarray(data.X))

    for module in (planning, splitting):
        monkeypatch.setattr(module, "load", lambda *args, **more: replace(data, X=poisoned))
    assert repr(run(plan)) == repr(expected)
    assert "nan" not in repr([result["curve"] for result in expected])


@pytest.mark.parametrize("algo", slow_but(["aerr"], ["baseline", "aerr", "mbeg_plus"]))
@pytest.mark.parametrize("more", [[], ["pilot=0", "dataset.scale=max_abs", "dataset.center=full"]])
def test_no_repetition_depends_on_another(path, algo, more):
    plan = of(path, algo, *(["pilot=0"] if algo == "mbeg_plus" else more))
    assert repr(run(plan, [1])) == repr(run(plan)[1:])


def test_the_pilot_and_held_out_rows_are_complete_and_all_test_rows_count(path, monkeypatch):
    plan = of(path, "aerr", "pilot=7")
    held_out, splits = [], []
    task = type(plan.config.algo.task)
    usual = task.held_out

    def watched(self, table, rows):
        held_out.append(rows)
        return usual(self, table, rows)

    monkeypatch.setattr(task, "held_out", watched)
    split_data = protocol.split_data

    def watched_split(*arguments):
        splits.append(split_data(*arguments))
        return splits[-1]

    monkeypatch.setattr(protocol, "split_data", watched_split)
    results = run(plan)
    assert len(held_out) == 2 * 3
    complete = ~GAPS.any(axis=1)
    assert all(complete[rows].all() for rows in held_out)
    for split, result in zip(splits, results, strict=True):
        used = {*split.pilot, *split.order}
        np.testing.assert_array_equal(split.judge.table.y, [Y[row] for row in range(N) if row not in used])
        assert complete[split.pilot].all()
        assert len(split.pilot) == 7
        assert not set(split.pilot) & set(split.order)
        assert len(split.order) == plan.n_train - 7
        assert result["run"]["rows_full"] == 7 + complete[split.order].sum()
        mask = (~GAPS[split.order]).astype(float)
        np.testing.assert_allclose(split.table.together, mask.T @ mask / len(mask), rtol=1e-12)


def test_the_pilot_does_not_change_the_distribution_of_the_order(path):
    """After the pilot, complete rows are as frequent at the beginning of the order as at its end."""
    plan = of(path, "aerr", "pilot=20")
    first, last = np.zeros(2), np.zeros(2)
    for repetition in range(60):
        split = split_data(plan.config, plan.n_test, plan.pilot, repetition)
        whole = split.data.complete[split.order]
        half = len(whole) // 2
        first += [whole[:half].sum(), half]
        last += [whole[half:].sum(), len(whole) - half]
    p = (first[0] + last[0]) / (first[1] + last[1])
    error = np.sqrt(p * (1 - p) * (1 / first[1] + 1 / last[1]))
    assert abs(first[0] / first[1] - last[0] / last[1]) < 4 * error


def holes(X: np.ndarray, y: np.ndarray, gaps: np.ndarray) -> Dataset:
    return Dataset("t", np.where(gaps, 0, X), y, 1.0, None, False, available=~gaps, digest="t")


@pytest.mark.parametrize("d", [8, 12])
def test_draws_for_missing_values_have_their_distribution_given_the_rest_of_the_row(monkeypatch, d):
    """Means and variances are those of regressions on the other attributes and the target, in units of the table."""
    monkeypatch.setattr(splitting, "_TOGETHER", 10)  # of 12 attributes, the correlations of 6 are used together
    rng = np.random.default_rng(0)
    n, train = 6000, np.arange(4000)
    X = rng.normal(size=(n, 2)) @ rng.normal(size=(2, d)) + rng.normal(size=(n, d))
    X = X * np.arange(1, d + 1) + 5
    y = X[:, 0] - X[:, 1] + rng.normal(size=n)
    gaps = np.zeros((n, d), dtype=bool)
    gaps[4000:, 1] = True
    test = np.arange(4000, n)
    drawn = completed(holes(X, y, gaps), train, test, 0, 0)
    np.testing.assert_array_equal(np.delete(drawn, 1, axis=1), np.delete(X[test], 1, axis=1))
    group = np.arange(d) if d == 8 else np.arange(6)
    known = np.column_stack([X[:, group[group != 1]], y, np.ones(n)])
    slopes = np.linalg.lstsq(known[train], X[train, 1], rcond=None)[0]
    residuals, noise = drawn[:, 1] - known[test] @ slopes, X[train, 1] - known[train] @ slopes
    assert abs(residuals.mean()) < 4 * noise.std() / np.sqrt(2000)
    assert residuals.std() == pytest.approx(noise.std(), rel=0.06)
    other = completed(holes(X, y, gaps), train, test, 0, 1)
    assert not np.array_equal(other, drawn)


@pytest.mark.parametrize(("share", "tolerance"), slow_but([(0.1, 0.05)], [(0.024, 0.02), (0.1, 0.05)]))
def test_errors_of_incomplete_rows_are_on_average_those_of_the_complete_rows(share, tolerance):
    n, d, ratios = 4000, 20, []
    train, test = np.arange(2000), np.arange(2000, n)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 3)) @ rng.normal(size=(3, d)) + rng.normal(size=(n, d))
        y = X @ rng.normal(size=d) + 2 * rng.normal(size=n)
        gaps = rng.random((n, d)) < share
        drawn = completed(holes(X, y, gaps), train, test, 0, 0)
        for seen in (50, 2000):
            w = np.linalg.lstsq(X[:seen], y[:seen], rcond=None)[0]
            error, truth, by_means = (
                np.square(y[test] - part @ w).mean() for part in (drawn, X[test], np.where(gaps, 0, X)[test])
            )
            ratios.append((error / truth, by_means / truth))
    mean, mean_by_means = np.mean(ratios, axis=0)
    assert mean == pytest.approx(1, abs=tolerance)
    assert mean_by_means > 1 + 3 * tolerance


@pytest.mark.usefixtures("short_chains")
def test_a_table_without_a_complete_row_is_tested_on(tmp_path):
    gaps = GAPS.copy()
    gaps[np.arange(N), np.arange(N) % D] = True
    plan = planned(*KEYS, written(tmp_path, X, gaps), "algo=aeml", "checkpoints=1")
    assert plan.pilot == 0
    (result,) = run(plan, [0])
    assert result["curve"][-1]["test_relative"] < 0.5
    none = np.where(np.arange(D) == 2, True, gaps)  # an attribute without any value
    (result,) = run(planned(*KEYS, written(tmp_path, X, none), "algo=aeml", "checkpoints=1"), [0])
    assert "nan" not in repr(result["curve"])


def test_means_and_moments_skip_missing_values(path):
    data = load(of(path, "aerr").config.dataset, 0, 0)
    train = np.arange(10, 90)
    known = np.where(GAPS, np.nan, X)[train]
    table = table_of("full", data, train)
    np.testing.assert_allclose(table.shift, np.nanmean(known, axis=0))
    np.testing.assert_allclose(second_moments(table, train), np.nanvar(known, axis=0))


# Other lists of attributes: ranges instead of a pilot, and prices.

FIXED = {"B": 30, "eta": 0.01, "eta_two": 0.02, "lambda": 1}  # because the units of grids differ
LOW, HIGH = X.min(axis=0), X.max(axis=0) + 1
COSTS = (1.0, 2.0, 2.0, 5.0, 10.0, 0.5)


def listed(folder: Path, **columns: object) -> str:
    """Write a list of attributes, and return its path."""
    path = folder / f"{'-'.join(columns)}.csv"
    pd.DataFrame({"attribute": list("abcdef"), **columns}).to_csv(path, index=False)
    return str(path)


@pytest.fixture
def ranges(tmp_path):
    return f"dataset.ranges={listed(tmp_path, low=LOW, high=HIGH)}"


@pytest.fixture
def prices(tmp_path):
    return [f"dataset.costs={listed(tmp_path, cost=COSTS)}", "dataset.unit=EUR"]


@pytest.mark.parametrize("algo", slow_but(("aerr", "popca"), [*REGRESSORS, "popca", "mbeg_plus"]))
def test_a_run_in_ranges_equals_that_on_a_table_scaled_by_hand(path, ranges, tmp_path, algo):
    (tmp_path / "by_hand").mkdir()
    by_hand = written(tmp_path / "by_hand", (X - (LOW + HIGH) / 2) / ((HIGH - LOW) / 2), GAPS)
    pilot = "pilot=6" if algo.startswith("ddaelr") else "pilot=0"
    fixed = [word for word in KEYS if not word.startswith("tuning.")] + ["tuning=fixed", f"algo={algo}", pilot]
    # After centring, a single example is 0 but for rounding.
    fixed += [f"tuning.{name}={value}" for name, value in FIXED.items()] + ["checkpoints=[10,108]"]
    fixed += ["algo.n_components=2", "dataset.target=y"] if algo in SUBSPACES else []
    ranged, scaled = planned(*fixed, path, ranges), planned(*fixed, by_hand, "dataset.scale=none")
    for result, wanted in zip(run(ranged), run(scaled), strict=True):
        for point, same in zip(result["curve"], wanted["curve"], strict=True):
            assert point["attributes"] == same["attributes"]
            errors = [[value for value in columns.values() if value is not None] for columns in (point, same)]
            np.testing.assert_allclose(*errors, rtol=1e-6)


def test_ranges_replace_a_pilot_when_too_few_rows_are_complete(tmp_path, ranges):
    gaps = GAPS.copy()
    gaps[np.arange(N), np.arange(N) % D] = True
    gaps[np.arange(N) % 40 == 0] = False
    path = written(tmp_path, X, gaps)
    message = refused(ConfigError, path, "algo=aerr")
    assert "pilot=1: too few rows for dataset.scale=revealed; use at least 2, or" in message
    assert message.endswith(" (pilot=auto takes at most half of the complete rows, about 2 here)")
    plan = of(path, "aerr", ranges, ONE_STEP, "dataset.test_fraction=0.5")
    assert plan.pilot == 0
    assert not any("pilot" in note for note in plan.notes)
    (result,) = run(plan, [0])
    assert result["run"]["cells_run"] <= np.count_nonzero(~gaps)


class Seeing(Watcher):
    """Notes no pair without a value."""

    def note(self, f, g, position, attribute):
        if not GAPS[self.order[f, self.begin + position] % N, attribute]:
            super().note(f, g, position, attribute)


@pytest.mark.parametrize("algo", slow_but(KINDS, REGRESSORS))
def test_missing_values_cost_no_money(path, prices, monkeypatch, algo):
    plan = of(path, algo, *prices)
    row, of_tuning, of_run = literally(plan, 1, monkeypatch, Seeing)
    counted_right(plan, row, of_tuning, of_run)
    assert not any(GAPS[cell] for cell in of_tuning | of_run)
    split = split_data(plan.config, plan.n_test, plan.pilot, 1)
    assert (
        row["rows_full"]
        == split.data.complete[split.pilot].sum() + split.data.complete[split.order].sum()
        < plan.n_train
    )
    (result,) = run(plan, [1])
    for point, reveals in zip(result["curve"], result["reveals"], strict=True):
        assert sum(reveals) == point["attributes"]
        assert point["cost"] == pytest.approx(np.dot(reveals, COSTS), rel=1e-13)
    assert result["run"]["cost_total"] == result["curve"][-1]["cost"]
    assert min(COSTS) * row["attributes_tuning"] <= row["cost_tuning"] <= max(COSTS) * row["attributes_tuning"]


@pytest.mark.parametrize(("algo", "least"), [("aerr", 0.84), ("baseline", 0.88), ("impute_ridge", 0.97)])
def test_a_total_is_spent_although_values_are_missing(path, algo, least):
    """Learners that leave values out replace their draws; others see more examples, and keep a larger reserve."""
    grid = {"aerr": [ONE_STEP], "baseline": ["algo.grid={B: [1]}"]}.get(algo, [])
    plan = planned(*KEYS, path, f"algo={algo}", *grid, "k=2", "pilot=2", "total=180")
    assert plan.checkpoints[-1] < plan.n_train
    assert any("12 of 180 attributes in all" in note for note in plan.notes)  # more cannot be drawn than is paid
    paid = [result["run"]["attributes_total"] for result in run(plan, range(12))]
    assert max(paid) <= 180
    assert np.mean(paid) >= least * 180
    planned_without = 2 + (180 - 12) // 2
    assert (plan.checkpoints[-1] > planned_without) == (algo != "impute_ridge")


def test_money_is_spent_although_expensive_values_are_missing(prices, tmp_path):
    gaps = GAPS.copy()
    gaps[np.arange(N) % 3 > 0, 4] = True  # the most expensive attribute
    plan = of(written(tmp_path, X, gaps), "aerr", *prices, ONE_STEP, "k=3", "pilot=2", "total=600")
    assert plan.checkpoints[-1] < plan.n_train
    results = run(plan, range(6))
    assert np.mean([result["run"]["cost_total"] for result in results]) == pytest.approx(600, rel=0.1)
    # What draws cost decides where a run ends, so that the plan keeps no reserve.
    ends = [result["curve"][-1]["examples"] for result in results]
    assert np.mean(ends) == pytest.approx(plan.checkpoints[-1], rel=0.05)


def test_missing_values_change_the_identity_of_what_they_change(path, tmp_path):
    (tmp_path / "whole").mkdir()
    whole = written(tmp_path / "whole", X, np.zeros_like(GAPS))
    stored = ["algo=impute_ridge", "k=3"]
    for words, marked in (
        ([path, *stored], True),
        ([path, "algo=aerr", ONE_STEP], False),
        ([path, "algo=aerr", ONE_STEP, "total=220"], True),
        ([whole, *stored, "total=220"], False),
    ):
        data = identity_of(planned(*KEYS, *words))["data"]
        assert ("gaps" in data) == marked
        assert ("tested" in data) == (path in words)  # earlier runs were tested on complete rows only


@pytest.mark.parametrize("algo", slow_but(["impute_ridge", "sgd_impute"], ["impute_ridge", "sgd_impute", "aefa"]))
def test_other_attributes_are_drawn_for_missing_ones(path, monkeypatch, algo):
    options = {"sgd_impute": [ONE_STEP], "aefa": ["algo.n_components=2", "dataset.target=y", "pilot=0"]}.get(algo, [])
    plan = planned(*KEYS, path, f"algo={algo}", *options)
    shown = []

    class Watcher(Accessor):
        def reveal_block(self, attributes, drawn=None):
            there = ~GAPS[self._rows[:, :, None] % N, attributes]
            shown.append((there.sum(axis=2), (~GAPS[self._rows % N]).sum(axis=2)))
            assert all(len(set(example)) == 4 for example in attributes.reshape(-1, 4).tolist())
            return super().reveal_block(attributes, drawn)

    monkeypatch.setattr(passes, "Accessor", Watcher)
    together = run(plan)
    for values, available in shown:
        np.testing.assert_array_equal(values, np.minimum(available, 4))
    assert any((available < 4).any() for _, available in shown)
    assert repr(run(plan, [1])) == repr(together[1:])
    once = run(planning.make_plan(replace(plan.config, checkpoints=1)), [1])
    assert once[0]["curve"][-1] == together[1]["curve"][-1]


def test_tuning_sees_complete_rows_in_full(path, prices):
    complete = int((~GAPS.any(axis=1)).mean() * 108)
    few, many = (of(path, "aerr", *prices, "axis=paid", f"total={total}", "pilot=3") for total in (300, 1200))
    note_text = f"the complete rows of its held-out folds, {complete * sum(COSTS):,.10g} EUR, but the total pays for"
    assert complete * sum(COSTS) < 1200 < 108 * sum(COSTS)
    assert any(note_text in note for note in few.notes)
    assert not any("axis=paid" in note for note in many.notes)


def refused(error: type[Exception], *keys: str) -> str:
    return refusal(error, planned, *KEYS, *keys)


@pytest.mark.parametrize("algo", ["ridge", "online_lasso", "aesvr", "aerr", "pca", "zero_filled_pca", "oja"])
def test_learners_that_need_every_value_are_refused_with_alternatives(path, algo):
    """AERR needs them for its control variates."""
    more = ["algo.control_variate=mean"] if algo == "aerr" else []
    subspace = algo in ("pca", "zero_filled_pca", "oja")
    more += ["pilot=0", "algo.n_components=2", "dataset.target=y"] if subspace else []
    what, _, able = refused(ConfigError, path, f"algo={algo}", *more).rpartition(": ")
    assert f": {algo} needs every value; learners" in what
    assert set(SUBSPACES if subspace else REGRESSORS) <= {*able.split(", ")}
    assert ("popca" in able) == ("baseline" not in able) == subspace


def test_attributes_never_seen_together_are_refused(tmp_path):
    gaps = GAPS.copy()
    gaps[::2, 1], gaps[1::2, 4] = True, True
    message = refused(DataError, written(tmp_path, X, gaps), "algo=aerr")
    assert f"attributes 'b' and 'e' never both have a value in {N} training examples" in message
    gaps[:, 4] = True
    assert "attribute 'e' never has a value in" in refused(DataError, written(tmp_path, X, gaps), "algo=aerr")


def test_shares_need_each_pair_in_the_training_part(path):
    data = load(of(path, "aerr").config.dataset, 0, 0)
    apart = np.flatnonzero(GAPS[:, 2])
    with pytest.raises(DataError, match="attribute 'c' never has a value in"):
        shares(data, apart)


def test_too_few_complete_rows_are_refused(tmp_path):
    few = np.ones((N, D), dtype=bool)
    few[:, :3] = GAPS[:, :3]
    few[np.arange(N) % 3 == 0, 3:] = False
    few[np.arange(N) % 40 == 0] = False
    few[~few.any(axis=1)] |= np.eye(D, dtype=bool)[0]
    few[[1, 4, 7]] = False
    path = written(tmp_path, X, few)
    for keys, said in [
        (
            ("pilot=0", "dataset.scale=none"),
            r"(fold \d+) of repetition (\d+) of table has no complete row",
        ),
        (("pilot=5",), r"(pilot)=5: repetition (\d+) of table has only \d complete training rows"),
    ]:
        words = *KEYS[:-2], path, "algo=baseline", RADII, *keys, "checkpoints=3"
        message = refusal(DataError, planned, *words, "repetitions=12")  # which sees all that are asked for
        number = int(re.search(said, message)[2])
        if number:
            with pytest.raises(DataError, match=re.escape(message)):
                run(planned(*words, f"repetitions={number}"), [number])
    assert "pilot=1: too few rows" in refused(ConfigError, path, "algo=aerr", ONE_STEP)
    assert planned(*KEYS[:-2], path, "algo=aeml", "checkpoints=3", "repetitions=1", "seed=2").pilot == 1


def test_a_plan_notes_missing_values_only_if_there_are_any(tmp_path, path):
    notes = " ".join(of(path, "aerr").notes)
    assert f"{GAPS.mean():.1%} of all cells have no value" in notes
    assert notes.count("missing completely at random, which is assumed") == 1
    assert f"({np.count_nonzero(~GAPS.any(axis=1))} of {N})" in notes
    whole = written(tmp_path, X, np.zeros_like(GAPS))
    keys = [*KEYS[2:], "dataset=file", whole, "algo=aerr", STEPS]
    said, unsaid = planned(*keys, "dataset.missing=unavailable"), planned(*keys)
    assert said.notes == unsaid.notes
    assert repr(run(said)) == repr(run(unsaid))
    assert "missing" not in unsaid.config.identity()["dataset"]
    assert said.config.identity()["dataset"]["missing"] == "unavailable"
    planned(*keys[:-2], "dataset.missing=unavailable", "algo=ridge")  # no value is missing
    assert data_room.load(said.config.dataset, 0, 0).available is None


def test_an_attribute_without_any_value_is_named(tmp_path):
    gaps = GAPS.copy()
    gaps[:, 1] = True
    keys = [*KEYS[2:], "dataset=file", written(tmp_path, X, gaps), "algo=aemr", "dataset.missing=unavailable"]
    assert any(note.startswith("no row has a value of") for note in planned(*keys, "pilot=0").notes)


def test_unknown_treatments_of_missing_values_are_refused(path):
    message = refused(ConfigError, path, "algo=aerr", "dataset.missing=impute")
    assert "refuse" in message
    assert "unavailable" in message
