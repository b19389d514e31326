"""Runs of learners of subspaces: plans and refusals, tests, repetitions, bounds."""

from dataclasses import replace
from math import log, sqrt
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from budgetreg.algorithms.tasks import SubspaceLearning
from budgetreg.common.errors import ConfigError, DataError
from budgetreg.data.dataset import Dataset
from budgetreg.figures.curves import bounds
from budgetreg.metering.table import Origin, Table
from budgetreg.runs.series import Series
from tests.plans import journaled, planned

COINS = ("dataset=coins", "dataset.d=8", "dataset.n=300", "algo.n_components=1", "k=4", "tuning.folds=3")


def coins(algo, *words):
    return planned(f"algo={algo}", *COINS, *words)


def test_learners_without_parameters_are_not_tuned():
    plan = coins("popca")
    assert (plan.settings, plan.n_settings, plan.tuned, plan.attributes_tuning) == ({}, 1, False, 0)
    assert (plan.n_train, plan.n_test, plan.per_example, plan.budget) == (300, 0, 4, 4)
    assert (coins("popca_passive").per_example, coins("popca_passive").budget) == (4, None)
    assert (coins("pca").per_example, coins("pca").checkpoints[-1]) == (8, 150)
    assert coins("oja", "k=2").tuned


def test_memory_of_a_replica_grows_with_the_square_of_the_attributes():
    plan = coins("popca")
    assert plan.streams_at_once == plan.config.backend.batch_size
    some, few, least = (replace(plan, d=d).streams_at_once for d in (784, 2 * 784, 10**5))
    assert 1 < some < 40 and some == 4 * few + some % 4
    assert least == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        *((f"algo={algo} k=1", "at least 2") for algo in ("popca", "popca_importance", "zero_filled_pca", "mbeg")),
        ("algo=mbeg k=3", "even budget"),
        ("algo=popca algo.n_components=8", "must be below d=8"),
        ("algo=popca dataset=power_law dataset.center=revealed", "must all have the same centre"),
        ("algo=grouse algo.n_components=4", "algo.n_components=4"),
        ("algo=petrels algo.n_components=4", "algo.n_components=4"),
        ("algo=oja tuning=theory", "no theorem"),
    ],
)
def test_impossible_budgets_and_dimensions_are_refused(words, said):
    with pytest.raises(ConfigError, match=said) as caught:
        planned(*COINS, *words.split())
    assert "\n" not in str(caught.value)


def test_any_budget_is_enough_without_pairs():
    assert coins("popca_passive", "k=1", "checkpoints=1").checkpoints
    assert coins("pca", "k=1", "checkpoints=1").checkpoints


def test_subspaces_need_no_targets_and_regressors_do():
    assert coins("popca").config.algo.task == SubspaceLearning(1)
    with pytest.raises(ConfigError, match=r"all targets of .* are 0: aelr has nothing to predict"):
        planned("algo=aelr", *COINS[:3])


def test_grid_of_mbeg_is_in_units_of_its_theorem():
    plan = coins("mbeg")
    unit = sqrt(4 * log(8) / (2 * 300 * (8 + 4)))
    np.testing.assert_allclose(plan.settings["eta"], unit * np.array(plan.config.algo.grid["eta"]))
    assert any("outside its theory" in note for note in plan.notes)
    for other in (coins("oja"), coins("mbeg", "algo.alpha=0.3")):
        assert not any("theory" in note for note in other.notes)


@pytest.mark.parametrize("algo", ["popca_passive", "mbeg_plus"])
def test_errors_are_shares_of_what_can_be_lost(algo):
    (result,) = journaled(coins(algo, "checkpoints=[300]", "tuning.at=each"))
    (last,) = result["curve"]
    assert 0 < last["excess_loss"] < last["relative_error"] <= 1
    assert last["attributes"] <= 1.1 * 1200


def test_errors_are_distances_from_the_subspace():
    """Compare with distances of test examples from the subspace, and with a known distribution."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 6)) * np.arange(1, 7)
    y, shift = np.zeros(50), rng.normal(size=6)
    data, table, index = Dataset("made up", X, y, 1.0, 20, False), Table(X, y, 1.0, shift), np.arange(20, 50)
    judge = SubspaceLearning(2).test(data, table, index)
    V = np.stack([np.linalg.qr(rng.normal(size=(6, 2)))[0] for _ in range(3)])
    rows = X[index] - shift
    distances = np.array([np.square(rows - rows @ v @ v.T).sum(axis=1).mean() for v in V])
    np.testing.assert_allclose(judge.losses(V, Origin()), distances, rtol=1e-10)
    best = np.linalg.eigvalsh(rows.T @ rows / 30)[:4].sum()
    columns = judge.columns(V, 1, Origin())
    assert columns["relative_error"] == pytest.approx(distances[1] / np.square(rows).sum(axis=1).mean())
    assert columns["excess_loss"] == pytest.approx(distances[1] - best)
    known = replace(data, second_moment=np.diag([3.0, 2, 1, 0, 0, 0]))
    known_losses = SubspaceLearning(2).test(known, table, index).columns(np.eye(6)[None, :, 1:3], 0, Origin())
    assert (known_losses["excess_loss"], known_losses["relative_error"]) == (pytest.approx(2), pytest.approx(0.5))
    with pytest.raises(DataError, match="all attributes in the test part"):
        SubspaceLearning(2).test(data, Table(np.zeros((50, 6)), y), index)


def series(algo, k=2, kind="coins", **config):
    section = {"core": "second_moment", "update": "active", "n_components": 1, "replacement": False, **config}
    nested = {"algo": section, "dataset": {"kind": kind, "center": "none"}}
    return Series("coins", algo, k, "", algo, pd.DataFrame(), pd.DataFrame(), nested, 16, Path(), 1000)


def test_bounds_of_theorems_on_excess_losses():
    curve = pd.DataFrame({"examples": [100, 10**6], "excess_loss": [0.1, 0.01]})
    shown = [
        series("popca"),
        series("popca_passive", update="passive"),
        series("pca", update="full"),
        series("popca_importance", update="importance"),
        series("mnist", kind="mnist"),
        series("mbeg", core="mbeg", update="pairs", alpha="theory", output="decompose"),
        series("top", core="mbeg", update="pairs", alpha="theory", output="top"),
    ]
    curves = [(learner, curve) for learner in shown]
    lines, remark = bounds(curves, "excess_loss")
    assert set(lines) == {"popca", "popca_passive", "pca", "mbeg"}
    np.testing.assert_allclose(lines["popca"], sqrt(16 * 15 / 2) / np.array([10, 1000]))
    np.testing.assert_allclose(lines["popca_passive"], 8 / np.array([10, 1000]))
    np.testing.assert_allclose(lines["pca"], 1 / np.array([10, 1000]))
    # 2 d^4 r log(d) / (d + r) = 4.0e4 examples or more are needed: before that, the theorem promises nothing.
    np.testing.assert_allclose(lines["mbeg"], [np.nan, sqrt(8 * 18 / 2 * log(16)) / 1000])
    assert "Theorem 7" in remark
    assert bounds(curves, "principal_angle") == ({}, "")
