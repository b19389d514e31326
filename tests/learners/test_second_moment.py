"""POPCA and its variants: the listing, and the gain of importance sampling."""

import numpy as np
import pytest
from budgetreg.algorithms.popca import SecondMomentLearner, moment_estimates, popca

from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.revealed import designs

GUIDED = {"phase_one": 0.3, "mix": 0.2}


def table(m, d, seed=0, seen=0.5):
    rng = np.random.default_rng(seed)
    return Table(rng.normal(size=(m, d)) * (rng.random((m, d)) < seen), np.zeros(m))


def estimate(data, k, update, orders=None, checkpoints=None, seeds=None, **options):
    """Return {checkpoint: C (F, d, d)} and the accessor."""
    orders = np.arange(len(data.y))[None] if orders is None else orders
    checkpoints = [orders.shape[1]] if checkpoints is None else checkpoints
    accessor = Accessor(data, orders, 1, None, checkpoints)
    rngs = [np.random.default_rng([7, f]) for f in (range(len(orders)) if seeds is None else seeds)]
    learner = SecondMomentLearner(name=update, n_components=1, update=update, **options)
    outputs = moment_estimates(learner, accessor, checkpoints, rngs, k)
    return dict(outputs), accessor


@pytest.mark.parametrize("seen", [0.15, 1.0])
@pytest.mark.parametrize("replacement", [False, True])
def test_core_equals_listing(replacement, seen):
    """Over several blocks: ``x^x^'/pi_2 + (1/pi_1 - 1/pi_2) diag(x^x^')``, example by example."""
    m, d, k = 300, 30, 4
    data = table(m, d, seen=seen)
    outputs, accessor = estimate(data, k, "active", checkpoints=[7, m], replacement=replacement)
    rng = np.random.default_rng([7, 0])
    design = designs.with_replacement(d, k) if replacement else designs.uniform_subset(d, k)
    drawn = np.concatenate([design.draw(rng).attributes for _ in range(2)])
    pi_1, pi_2 = k / d, k * (k - 1) / (d * (d - 1))
    if replacement:
        pi_1, pi_2 = 1 - (1 - 1 / d) ** k, 1 - 2 * (1 - 1 / d) ** k + (1 - 2 / d) ** k
    X = data.rows(np.arange(m))
    for checkpoint in (7, m):
        expected = popca(X[:checkpoint], drawn[:checkpoint], pi_1, pi_2)
        np.testing.assert_allclose(outputs[checkpoint][0], expected, atol=1e-10)
        assert (outputs[checkpoint] == outputs[checkpoint].transpose(0, 2, 1)).all()
    assert accessor.bill().total.tolist() == [[m * k]]


def test_zeros_and_full_rows():
    data = table(20, 6)
    X = data.rows(np.arange(20))
    np.testing.assert_allclose(estimate(data, 2, "full")[0][20][0], X.T @ X / 20, atol=1e-12)
    C = estimate(data, 3, "zero_filled")[0][20][0]
    drawn = designs.uniform_subset(6, 3).draw(np.random.default_rng([7, 0])).attributes[:20]
    X = np.where((drawn[:, :, None] == np.arange(6)).any(axis=1), X, 0.0)
    np.testing.assert_allclose(C, X.T @ X / 20, atol=1e-12)


def test_importance_sampling_has_less_error():
    d, m, k = 20, 4000, 3
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, d)) * np.where(np.arange(d) < 4, 1.0, 0.05)
    data, C = Table(X, np.zeros(m)), X.T @ X / m
    errors = {}
    for update, options in (("active", {}), ("importance", GUIDED)):
        outputs, accessor = estimate(data, k, update, np.tile(np.arange(m), (10, 1)), **options)
        errors[update] = np.square(outputs[m] - C).sum(axis=(1, 2)).mean()
        assert (accessor.bill().most == k).all()
    assert errors["importance"] < 0.2 * errors["active"]


def test_few_examples_are_enough():
    for m in (1, 2, 3):
        outputs, accessor = estimate(table(m, 5), 2, "importance", checkpoints=[m], **GUIDED)
        assert np.isfinite(outputs[m]).all()
        assert accessor.bill().total.tolist() == [[2 * m]]
