"""A repetition: its streams, folds and winners, the same numbers in any company, and its model."""

import json
from math import log, sqrt

import numpy as np
import pytest

from budgetreg.algorithms.cesa_bianchi_2010 import pegasos_regularisation
from budgetreg.algorithms.tasks import RegressorJudge, mean_loss
from budgetreg.common.streams import generator
from budgetreg.data.registry import load
from budgetreg.metering.table import Origin, Table
from budgetreg.protocol.plan import Plan
from budgetreg.protocol.repetitions import run_repetitions
from budgetreg.protocol.split import folds
from budgetreg.protocol.tuning import on_edge, winners
from tests.plans import journaled, planned
from tests.tiers import quick_but


def test_streams_are_keyed_by_identity():
    first = generator("order", 0, "mnist_3v5", 1).random(4)
    np.testing.assert_array_equal(generator("order", 0, "mnist_3v5", 1).random(4), first)
    others = [
        ("order", 0, "mnist_3v5", 2),
        ("order", 1, "mnist_3v5", 1),
        ("folds", 0, "mnist_3v5", 1),
        ("order", 0, "a"),
    ]
    # Parts are separated, so that no two identities give the same text.
    others += [("order", 0, "mnist_3v5,1"), ("order", "0", "mnist_3v5", 1)]
    assert len({generator(*identity).random() for identity in others} | {first[0]}) == 7


@pytest.mark.parametrize(("n", "n_folds"), [(10, 2), (23, 10), (10, 10)])
def test_folds_hold_out_everything_once_and_keep_the_order(n, n_folds):
    order = np.random.default_rng(0).permutation(n) + 100
    training, held_out = folds(order, n_folds, np.random.default_rng(1))
    assert training.shape == (n_folds, n - -(-n // n_folds))
    np.testing.assert_array_equal(np.sort(np.concatenate(held_out)), np.sort(order))
    place = {row: position for position, row in enumerate(order)}
    for rows, out in zip(training, held_out, strict=True):
        assert not set(rows) & set(out)
        assert (np.diff([place[row] for row in rows]) > 0).all()


def test_the_winner_has_the_least_mean_loss_over_folds():
    losses = np.array([[[3.0, 1.0, 2.0], [3.0, 2.0, 2.0]], [[1.0, np.nan, 2.0], [4.0, 0.0, 1.0]]])
    np.testing.assert_array_equal(winners(losses), [1, 2])


def test_edges_are_named():
    grid = {"B": (1.0, 2.0, 4.0) * 3, "eta": (0.4, 0.2, 0.1, 0.8, 0.4, 0.2, 1.6, 0.8, 0.4)}
    assert [on_edge(grid, winner) for winner in (0, 1, 4, 5, 8)] == [
        "B:low eta:low",
        "eta:low",
        "",
        "B:high",
        "B:high eta:high",
    ]
    assert on_edge({"B": (2.0,), "lambda": (1.0,)}, 0) == ""


def test_the_regularisation_of_pegasos_is_that_of_its_theorem():
    """The literal test has the other theorems' step sizes."""
    assert pegasos_regularisation(B=2.0, d=10, m=100, k=4) == pytest.approx(15 * sqrt(log(100) / 400))


def test_errors_of_regressors():
    X = np.array([[0, 2], [4, 0], [2, 2]], dtype=np.uint8)
    table = Table(X, np.array([1.0, -1.0, 1.0]), 0.5, np.array([0.5, 0.0]))
    index = np.array([0, 1, 2])
    rows = np.array([[-0.5, 1.0], [1.5, 0.0], [0.5, 1.0]])
    W = np.array([[1.0, 0.0, -1.0], [1.0, 0.0, 0.0]])
    expected = np.square(rows @ W - table.y[:, None]).mean(axis=0)
    np.testing.assert_allclose(mean_loss(table, index, W), expected, rtol=1e-15)
    errors = RegressorJudge(table, index, two_valued=True, delta=None).columns(W, 2, Origin())
    assert errors == {"test_mse": expected[2], "test_relative": expected[2], "test_error_rate": pytest.approx(1 / 3)}
    assert RegressorJudge(table, index, two_valued=True, delta=None).columns(W, 1, Origin())["test_error_rate"] == 1.0
    assert RegressorJudge(table, index, two_valued=False, delta=None).columns(W, 0, Origin())["test_error_rate"] is None
    json.dumps(errors)


SMALL = ["dataset.n=150", "dataset.n_test=30", "tuning.folds=3", "checkpoints=[7,60,150]", "tuning.at=each"]


CENTRED = (
    "dataset.center=revealed dataset.n=450 dataset.n_test=30 tuning.folds=3 checkpoints=[100,300,450] "
    "algo.grid={B:[1,3],eta:[1,10]}"
)
COINS = (
    "dataset=coins dataset.d=8 dataset.n=300 algo.n_components=1 k=4 tuning.folds=3 checkpoints=[7,300] tuning.at=each"
)
PILOT = "dataset=diabetes tuning.folds=3 k=4 checkpoints=4 algo.grid={B:[1,3],eta:[1,10]}"
WIDE = f"dataset=power_law dataset.d=40 {' '.join(SMALL)}"
ANY = {
    "eg": f"algo=aelr k=4 {WIDE}",
    "centred-once": f"algo=aerr k=6 algo.split=even dataset.center=full {WIDE}",
    "suffix": f"algo=aer k=4 {WIDE} dataset.d=9 algo.average=suffix dataset.split=random",
    "aesvr": f"algo=aesvr k=8 dataset=sphere {' '.join(SMALL)}",
    "stored": f"algo=aelr k=4 dataset=digits_3v5 dataset.center=full {' '.join(SMALL[2:])}",
    # One repetition sees no two values of an attribute that differ before its first plan, and the others do.
    "planned": f"algo=aemr k=3 {WIDE} dataset.d=9 dataset.n=40 checkpoints=[7,40]",
    "centred": f"algo=aelr k=4 dataset=power_law dataset.d=12 {CENTRED}",
    "centred-rows": f"algo=online_ridge k=6 dataset=power_law dataset.d=6 {CENTRED}",
    "centred-aesvr": f"algo=aesvr k=6 dataset=sphere algo.residual=plug_in {CENTRED}",
    "pilot": f"algo=aerr {PILOT}",
    "pilot-moments": f"algo=ddaelr {PILOT}",
    "pilot-rows": f"algo=online_ridge {PILOT}",
    "prices": f"algo=aerr {PILOT} dataset.costs=bundled",
    "subspace": f"algo=popca_passive {COINS}",
    "subspace-importance": f"algo=popca_importance {COINS}",
    "subspace-tuned": f"algo=mbeg_plus {COINS} algo.grid={{eta:[0.1,0.3,1]}}",
    "subspace-streamed": f"algo=oja {COINS} algo.grid={{eta:[0.01,0.1,1]}}",
}
SLOW = (
    *("centred-once", "centred-aesvr", "pilot", "pilot-moments", "pilot-rows", "prices", "subspace"),
    *("subspace-importance", "subspace-streamed", "stored", "suffix"),
)


@pytest.mark.usefixtures("short_chains")
@pytest.mark.parametrize("case", quick_but(SLOW, ANY))
def test_repetitions_have_the_same_numbers_together_and_alone(case):
    together, alone = (planned(*ANY[case].split(), f"backend.batch_size={size}") for size in (4096, 1))
    results = journaled(together, [2, 0, 1])
    assert [result["repetition"] for result in results] == [2, 0, 1]
    for result in results:
        assert journaled(alone, [result["repetition"]]) == [result]


def test_tuning_at_the_end_chooses_like_the_last_checkpoint():
    learner = ["algo=aerr", "k=6", "dataset=power_law", "dataset.d=40", *SMALL]
    each, once = (planned(*learner, f"tuning.at={at}") for at in ("each", "end"))
    (several,), (single,) = (run_repetitions(plan, [0], lambda done: None) for plan in (each, once))
    assert single["run"] == several["run"]
    assert single["curve"][-1] == several["curve"][-1]
    assert single["curve"] != several["curve"]


def test_edges_of_earlier_checkpoints_are_reported():
    """In a grid of two values every choice is on an edge; a single checkpoint has no earlier ones."""
    learner = ["algo=aerr", "k=6", "dataset=power_law", "dataset.d=40", "algo.grid={B:[4],eta:[0.1,10]}", *SMALL]
    each, last = (planned(*learner, *more) for more in ([], ["checkpoints=[150]"]))
    (several,), (single,) = (run_repetitions(plan, [0], lambda done: None) for plan in (each, last))
    assert set(several["edge_before"].split()) in ({"eta:high"}, {"eta:low"}, {"eta:high", "eta:low"})
    assert single["edge_before"] == ""


@pytest.mark.parametrize("average", ["all", "suffix"])
def test_final_runs_have_the_same_numbers_beside_the_folds_and_after_them(average, monkeypatch):
    """Bill and errors agree up to rounding: stopping at other checkpoints changes the last bits."""
    keys = ["algo=aerr", "k=6", f"algo.average={average}", "dataset=power_law", "dataset.d=40", *SMALL]
    plan = planned(*keys)
    assert plan.one_pass
    (beside,) = run_repetitions(plan, [0], lambda done: None)
    monkeypatch.setattr(Plan, "one_pass", False)
    (after,) = run_repetitions(plan, [0], lambda done: None)
    assert beside["run"] == after["run"]
    for first, second in zip(beside["curve"], after["curve"], strict=True):
        assert first.pop("test_error_rate") == second.pop("test_error_rate")
        assert first == pytest.approx(second, rel=1e-9)


def test_offline_learners_advance_all_folds_of_a_repetition_together():
    plan = planned("algo=ridge", "k=64", "backend.batch_size=1")
    assert (plan.streams_at_once, plan.repetitions_at_once) == (10, 1)


@pytest.mark.parametrize(("draws", "together"), [("planned", True), ("everything", False)])
def test_repetitions_that_see_all_that_is_there_advance_alone(draws: str, together: bool) -> None:
    """How many values their examples have differs, and what is stored of an example depends on the widest one."""
    plan = planned("algo=aemr", f"algo.draws={draws}", "k=9", "dataset=power_law", "dataset.d=9", *SMALL)
    assert (plan.repetitions_at_once > 1) is together


# The model of a repetition, in units of the stored columns, has the errors of its curve

OWN = "dataset=diabetes"
GRID = "algo.grid={B: [1, 3], eta: [1, 10]}"
BALL = "algo.grid={B: [1, 3]}"


def run(plan, repetition):
    (result,) = run_repetitions(plan, [repetition], lambda done: None)
    return result["curve"][-1], result["model"]


def rows_of_test(plan, repetition):
    data = load(plan.config.dataset, plan.config.seed, repetition, targets=plan.config.algo.predicts)
    order = generator("split", plan.config.seed, data.name, repetition).permutation(data.y.size)
    rows = np.sort(order[: plan.n_test])
    return np.asarray(data.X)[rows].astype(float), data.y[rows]


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param(["algo=aerr", GRID, OWN], marks=pytest.mark.slow),
        ["algo=aerr", GRID, OWN, "tuning.at=each", "dataset.scale=max_abs", "dataset.center=full"],
        ["algo=ddaelr", GRID, OWN, "intercept=none", "dataset.center=none"],
        pytest.param(["algo=aesvr", GRID, OWN], marks=pytest.mark.slow),
        ["algo=ridge", BALL, OWN],
        ["algo=baseline", BALL, OWN],
        pytest.param(["algo=aelr", GRID], marks=pytest.mark.slow),
        ["algo=aelr", GRID, "dataset.center=revealed"],
    ],
)
def test_a_model_has_the_error_of_the_last_checkpoint(keys):
    plan = planned("k=4", "tuning.folds=2", "checkpoints=2", *keys)
    point, model = run(plan, 1)
    X, y = rows_of_test(plan, 1)
    assert (model["w"].shape, model["b"].shape, model["c"].shape) == ((plan.d,), (), (plan.d,))
    residuals = model["b"] + (X - model["c"]) @ model["w"] - y
    assert np.square(residuals).mean() == pytest.approx(point["test_mse"], rel=1e-9)
    if not (plan.intercept or plan.centred or "dataset.center=full" in keys):
        assert not model["b"]
        assert not model["c"].any()


def test_a_subspace_has_the_error_of_the_last_checkpoint():
    plan = planned("k=4", "checkpoints=2", "algo=popca", "algo.n_components=2", OWN, "dataset.center=full")
    point, model = run(plan, 0)
    X = (rows_of_test(plan, 0)[0] - model["c"]) * model["scale"]
    V = model["V"]
    np.testing.assert_allclose(V.T @ V, np.eye(2), atol=1e-12)
    lost = np.square(X - X @ V @ V.T).sum() / np.square(X).sum()
    assert lost == pytest.approx(point["relative_error"], rel=1e-9)
