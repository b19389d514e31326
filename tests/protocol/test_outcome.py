"""The model of a repetition, in units of the stored columns, has the errors of its curve."""

import numpy as np
import pytest

from budgetreg.common.streams import generator
from budgetreg.data.registry import load
from budgetreg.protocol.repetitions import run_repetitions
from tests.plans import planned

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
        ["algo=aesvr", GRID, OWN],
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
