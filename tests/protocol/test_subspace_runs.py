"""Runs of learners of subspaces: plans and refusals, tests, repetitions, bounds."""

from dataclasses import replace
from math import log, sqrt
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hydra import compose, initialize_config_dir

from budgetreg.algorithms.tasks import SubspaceLearning
from budgetreg.common.errors import ConfigError, DataError
from budgetreg.config.catalogue import conf_dir
from budgetreg.data.dataset import Dataset
from budgetreg.figures.curves import bounds
from budgetreg.metering.table import Origin, Table
from budgetreg.protocol.configuration import validate
from budgetreg.protocol.plan import make_plan
from budgetreg.protocol.tuning import on_edge
from budgetreg.runs.series import Series
from tests import plans
from tests.plans import journaled
from tests.tiers import quick_but

COINS = ("dataset=coins", "dataset.d=8", "dataset.n=300", "algo.n_components=1", "k=4", "tuning.folds=3")


def configured(algo, *keys):
    return plans.configured(f"algo={algo}", *COINS, *keys)


def having(algo, **options):
    """Return a learner with other options."""
    return replace(algo, **options)


def refusal(config, **algo):
    with pytest.raises(ConfigError) as caught:
        make_plan(replace(config, algo=having(config.algo, **algo)))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_learners_without_parameters_are_not_tuned():
    plan = make_plan(configured("popca"))
    assert (plan.settings, plan.n_settings, plan.tuned, plan.attributes_tuning) == ({}, 1, False, 0)
    assert (plan.n_train, plan.n_test, plan.per_example, plan.budget) == (300, 0, 4, 4)
    passive = replace(plan.config, algo=having(plan.config.algo, update="passive"))
    assert (make_plan(passive).per_example, make_plan(passive).budget) == (4, None)
    full = make_plan(replace(plan.config, algo=having(plan.config.algo, update="full")))
    assert (full.per_example, full.checkpoints[-1]) == (8, 150)


def test_memory_of_a_replica_grows_with_the_square_of_the_attributes():
    plan = make_plan(configured("popca"))
    assert plan.streams_at_once == plan.config.backend.batch_size
    some, few, least = (replace(plan, d=d).streams_at_once for d in (784, 2 * 784, 10**5))
    assert 1 < some < 40 and some == 4 * few + some % 4
    assert least == 1


def test_impossible_budgets_and_dimensions_are_refused():
    popca = configured("popca")
    for update in ("active", "importance", "zero_filled"):
        assert "at least 2" in refusal(replace(popca, k=1), update=update)
    for update in ("passive", "full"):
        changed = replace(popca, k=1, algo=having(popca.algo, update=update))
        assert make_plan(replace(changed, checkpoints=1)).checkpoints
    assert "must be below d=8" in refusal(popca, n_components=8)
    assert "must all have the same centre" in refusal(replace(popca, dataset=replace(popca.dataset, center="revealed")))
    mbeg = configured("mbeg")
    assert "even budget" in refusal(replace(mbeg, k=3))
    assert "at least 2" in refusal(replace(mbeg, k=1))
    oja = configured("oja")
    assert make_plan(replace(oja, k=2)).tuned
    for update in ("grouse", "petrels"):
        assert "algo.n_components=4" in refusal(oja, update=update, n_components=4)
    assert "no theorem" in refusal(replace(oja, tuning=replace(oja.tuning, name="theory")))


def test_subspaces_need_no_targets_and_regressors_do():
    coins = configured("popca")
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        aelr = validate(compose("config", ["algo=aelr", *COINS[:3]]))
    with pytest.raises(ConfigError, match=r"all targets of .* are 0: aelr has nothing to predict"):
        make_plan(aelr)
    assert coins.algo.task == SubspaceLearning(1)


def test_grid_of_mbeg_is_in_units_of_its_theorem():
    plan = make_plan(configured("mbeg"))
    unit = sqrt(4 * log(8) / (2 * 300 * (8 + 4)))
    np.testing.assert_allclose(plan.settings["eta"], unit * np.array(plan.config.algo.grid["eta"]))
    assert any("outside its theory" in note for note in plan.notes)
    assert not any("theory" in note for note in make_plan(configured("oja")).notes)
    many = replace(plan.config, algo=having(plan.config.algo, alpha=0.3))
    assert not any("theory" in note for note in make_plan(many).notes)


def test_edges_of_grids_without_a_radius():
    grid = {"eta": (1.0, 2.0, 4.0)}
    assert [on_edge(grid, winner) for winner in range(3)] == ["eta:low", "", "eta:high"]
    assert on_edge({}, 0) == ""


@pytest.mark.parametrize(
    "algo", quick_but(("popca_passive", "mbeg_plus"), ["popca_importance", "popca_passive", "mbeg_plus", "oja"])
)
def test_repetitions_have_the_same_numbers_together_and_alone(algo):
    config = configured(algo, "checkpoints=[7,60,300]", "tuning.at=each")
    config = replace(config, algo=replace(config.algo, grid={name: v[:3] for name, v in config.algo.grid.items()}))
    plans = [make_plan(replace(config, backend=replace(config.backend, batch_size=size))) for size in (4096, 1)]
    together = journaled(plans[0], [2, 0])
    for result in together:
        assert journaled(plans[1], [result["repetition"]]) == [result]
        (last,) = (point for point in result["curve"] if point["examples"] == 300)
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
