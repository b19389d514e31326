"""Centring by running means of revealed attributes: equal to a listing, and the same in any batch."""

import numpy as np
import pytest

from budgetreg.algorithms.cesa_bianchi_2010 import aer
from budgetreg.algorithms.engine import DATA_POINT_SAMPLERS
from budgetreg.algorithms.hazan_koren_2012.aerr_aelr import aelr, aerr
from budgetreg.algorithms.learner import SideInformation
from budgetreg.common.errors import BudgetExceeded
from budgetreg.common.streams import generator
from budgetreg.data.registry import load
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.protocol import repetitions as protocol
from budgetreg.protocol.split import folds
from budgetreg.protocol.tuning import winners
from tests.learners.test_partial import SCALE, draws, problem
from tests.plans import journaled, planned

BLOCK = 256


def running_means(X, attributes):
    """Return for each example the means of what was drawn for earlier blocks, example by example."""
    means, total, count = np.zeros(X.shape), np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for t, (x, drawn) in enumerate(zip(X, attributes, strict=True)):
        means[t] = means[t - 1] if t % BLOCK else [s / n if n else 0.0 for s, n in zip(total, count, strict=True)]
        for i in drawn:
            total[i] += x[i]
            count[i] += 1
    return means


def _shifts(accessor, examples):
    return np.stack([origin.shift for origin in accessor.origins(examples)])


def fitted(plan, accessor, settings, checkpoints, rngs):
    given = SideInformation(plan.config.k, plan.budget_split)
    return plan.config.algo.fit(accessor, settings, checkpoints, rngs, given)


def test_each_kind_of_reveal_subtracts_the_means_of_earlier_blocks():
    X = np.random.default_rng(0).random((5, 3))
    accessor = Accessor(Table(X, np.zeros(5), 2.0), np.array([[4, 0, 1], [2, 3, 0]]), 2, 4, [3], centre_attributes=True)
    everyone = np.ones((2, 2), dtype=bool)
    accessor.open(0, 2)
    first = np.array([[[0, 0], [1, 0]], [[2, 1], [2, 1]]])
    np.testing.assert_array_equal(accessor.reveal_block(first)[0, 1], 2 * X[0, [1, 0]])
    accessor.reveal(np.array([0, 0]), np.full((1, 2, 2), 2), everyone)
    np.testing.assert_array_equal(_shifts(accessor, 2), np.zeros((2, 3)))
    accessor.open(2, 3)
    first = [2 * (2 * X[4, 0] + X[0, 0]) / 3, 2 * X[0, 1], 0.0]
    two = [0.0, X[2, 1] + X[3, 1], X[2, 2] + X[3, 2]]
    np.testing.assert_allclose(_shifts(accessor, 3), [first, two], rtol=1e-15)
    expected = 2 * X[[1, 0]] - [first, two]
    attributes = np.array([[[0, 1], [2, 0]]])
    np.testing.assert_allclose(accessor.reveal_block(np.array([[[2]], [[1]]]))[:, 0, 0], expected[[0, 1], [2, 1]])
    np.testing.assert_allclose(
        accessor.reveal(np.array([0, 0]), attributes, everyone)[0], expected[[[0], [1]], attributes[0]]
    )
    some = accessor.reveal_some(0, attributes.transpose(1, 2, 0), np.array([[[True], [False]], [[True], [True]]]))
    np.testing.assert_allclose(some[..., 0], expected[[[0], [1]], attributes[0]] * [[1, 0], [1, 1]])
    with pytest.raises(BudgetExceeded):
        accessor.reveal_block(np.zeros((2, 1, 2), dtype=int))
    np.testing.assert_array_equal(accessor.bill().total, [[8, 7], [8, 8]])


def test_full_rows_are_centred_in_blocks_however_many_are_read_at_once():
    X = np.random.default_rng(1).random((600, 4))
    orders = np.stack([np.random.default_rng(f).permutation(600) for f in range(2)])
    accessor = Accessor(Table(X, np.zeros(600)), orders, 1, 4, [600], centre_attributes=True)
    rows = np.concatenate([accessor.rows(0, 2 * BLOCK)[0], accessor.rows(2 * BLOCK, 600)[0]], axis=1)
    for f, order in enumerate(orders):
        means = running_means(X[order], np.tile(np.arange(4), (600, 1)))
        np.testing.assert_allclose(rows[f], X[order] - means, rtol=0, atol=1e-14)
        np.testing.assert_allclose(_shifts(accessor, 600)[f], means[-1], rtol=1e-13)
    assert not (rows[:, 0] - X[orders[:, 0]]).any()


@pytest.mark.parametrize(
    ("algo", "listing", "names", "tolerance"),
    [
        ("aerr", aerr, {"B": 2.0, "eta": 0.2}, 1e-9),
        ("aelr", aelr, {"B": 2.0, "eta": 0.3}, 1e-12),
        ("aer", aer, {"B": 2.0, "lambda": 5.0}, 1e-9),
    ],
)
def test_learners_equal_their_listings_on_centred_examples(algo, listing, names, tolerance):
    plan = planned(f"algo={algo}", "k=4", "algo.average=last")
    X, y = problem(400, 13)
    orders = np.stack([np.random.default_rng(f).permutation(400) for f in (0, 1)])
    settings = {name: np.array([value]) for name, value in names.items()}
    sampler = DATA_POINT_SAMPLERS[plan.config.algo.data_point]
    checkpoints = [256, 257, 400]
    accessor = Accessor(Table(X, y, SCALE), orders, 1, plan.budget, checkpoints, centre_attributes=True)
    rngs = [generator("test", f) for f in (0, 1)]
    outputs = {
        checkpoint: (W, _shifts(accessor, checkpoint))
        for checkpoint, W in fitted(plan, accessor, settings, checkpoints, rngs)
    }
    for f, order in enumerate(orders):
        attributes, uniforms = draws(generator("test", f), *X.shape, sampler, *plan.budget_split)
        means = running_means(X[order] * SCALE, attributes)
        steps = listing(X[order] * SCALE - means, y[order], attributes, uniforms, *names.values())
        iterates = [w for w, _ in steps]
        for c, (W, shift) in outputs.items():
            np.testing.assert_allclose(W[f, :, 0], iterates[c - 1], rtol=0, atol=tolerance, err_msg=f"at {c}")
            np.testing.assert_allclose(shift[f], means[c - 1], rtol=0, atol=1e-14, err_msg=f"at {c}")


def test_unrevealed_values_change_neither_regressors_nor_means():
    plan = planned("algo=aerr", "k=3")
    X, y = problem(500, 40)
    settings, order = {"B": np.array([1.5]), "eta": np.array([0.1])}, np.arange(500)[None]
    bought = np.zeros(X.shape, dtype=bool)

    class Noting(Accessor):
        def reveal_block(self, attributes):
            bought[self._rows[:, :, None], attributes] = True
            return super().reveal_block(attributes)

        def reveal(self, position, attributes, paid):
            bought[self._rows[0, position], attributes[0, 0][paid[0]]] = True
            return super().reveal(position, attributes, paid)

    def run(values, kind):
        accessor = kind(Table(values, y, SCALE), order, 1, 3, [500], centre_attributes=True)
        (_, W), *_ = fitted(plan, accessor, settings, [500], [generator("test", 0)])
        return W, _shifts(accessor, 500)

    expected = run(X.astype(float), Noting)
    assert 0 < bought.mean() < 0.1
    for poisoned, clean in zip(run(np.where(bought, X, np.nan), Accessor), expected, strict=True):
        assert poisoned.tobytes() == clean.tobytes()
        assert np.isfinite(clean).all()


SMALL = ["dataset.center=revealed", "dataset.n=450", "dataset.n_test=30", "tuning.folds=3", "checkpoints=[100,300,450]"]
GRID = "algo.grid={B: [1, 3], eta: [1, 10]}"


@pytest.mark.parametrize(
    "learner",
    [
        ["algo=aelr", "k=4", "dataset=power_law", "dataset.d=12"],
        ["algo=online_ridge", "k=6", "dataset=power_law", "dataset.d=6"],
        pytest.param(["algo=aesvr", "k=6", "dataset=sphere", "algo.residual=plug_in"], marks=pytest.mark.slow),
    ],
)
def test_repetitions_have_the_same_numbers_together_and_alone(learner):
    together, alone = (planned(*learner, GRID, *SMALL, f"backend.batch_size={size}") for size in (4096, 1))
    results = journaled(together, [1, 0])
    assert results == [journaled(alone, [r])[0] for r in (1, 0)]


def test_errors_are_computed_on_rows_centred_like_those_learned_from(monkeypatch):
    """Test errors and held-out losses follow from the regressors and means of the learner."""
    plan = planned("algo=aerr", "k=5", "dataset=power_law", "dataset.d=8", GRID, *SMALL, "tuning.at=each")
    losses = []
    monkeypatch.setattr(protocol, "winners", lambda loss: losses.append(loss) or winners(loss))
    (result,) = protocol.run_repetitions(plan, [0], lambda done: None)
    data = load(plan.config.dataset, 0, 0)
    table = Table(data.X, data.y, data.scale)
    grid = {name: np.array(values) for name, values in plan.settings.items()}

    def errors(order, checkpoints, stage, rows):
        accessor = Accessor(table, order[None], 4, 5, checkpoints, centre_attributes=True)
        rngs = [generator("draws", 0, data.name, "aerr", 5, 0, stage)]
        for c, W in fitted(plan, accessor, grid, checkpoints, rngs):
            shift = _shifts(accessor, c)[0]
            assert shift.any() == (c > BLOCK)
            yield np.square((data.X[rows] * data.scale - shift) @ W[0] - data.y[rows, None]).mean(axis=0)

    order = generator("order", 0, data.name, 0).permutation(np.arange(450))
    training, held_out = folds(order, 3, generator("folds", 0, data.name, 0))
    for f, (in_fold, rows) in enumerate(zip(training, held_out, strict=True)):
        expected = list(errors(in_fold, [100, 300], f"fold {f}", rows))
        np.testing.assert_allclose(losses[0][:, f], expected, rtol=1e-12)
    expected = errors(order, [100, 300, 450], "final", np.arange(450, 480))
    chosen = winners(losses[0])
    for point, error, best in zip(result["curve"], expected, [*chosen, chosen[-1]], strict=True):
        assert point["test_mse"] == pytest.approx(error[best], rel=1e-12)
