"""POPCA and its variants: the listing, all outcomes of pooled phases, and independence of streams."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budgetreg.algorithms import gonen_2016
from budgetreg.algorithms.gonen_2016 import SecondMomentLearner
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.revealed import designs
from budgetreg.revealed.designs import joint_inclusion, working_probabilities

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
    outputs = gonen_2016.moment_estimates(learner, accessor, checkpoints, rngs, k)
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
        expected = gonen_2016.popca(X[:checkpoint], drawn[:checkpoint], pi_1, pi_2)
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


def test_pooled_phases_are_unbiased(monkeypatch):
    """Over all draws of both halves of the first phase, and of the second phase."""
    x, d, k = np.array([0.7, -1.1, 0.4, 0.2]), 4, 2
    subsets = list(combinations(range(d), k))
    uniform = designs.uniform_subset(d, k)
    # One stream per outcome: the streams of a call take their subsets in the order of the phases.
    outcomes = list(product(range(len(subsets)), repeat=3))
    second_phase = []

    class Drawn:
        def __init__(self, outcome):
            self.outcome = iter(outcome)

    def draw(rng):
        return designs.Draw(np.tile(subsets[next(rng.outcome)], (256, 1)))

    def conditional_poisson(p, r):
        weights = np.array([np.where(np.isin(np.arange(d), subset), p, 1 - p).prod() for subset in subsets])
        second_phase.append(weights / weights.sum())
        return designs.Design(draw, joint_inclusion(p, r))

    monkeypatch.setattr(designs, "uniform_subset", lambda d, r: designs.Design(draw, uniform.probability))
    monkeypatch.setattr(designs, "conditional_poisson", conditional_poisson)
    data = Table(np.tile(x, (3, 1)), np.zeros(3))
    accessor = Accessor(data, np.tile(np.arange(3), (len(outcomes), 1)), 1, k, [3])
    rngs = [Drawn(outcome) for outcome in outcomes]
    learner = SecondMomentLearner(
        name="test", n_components=1, update="importance", phase_one=0.7, mix=0.1, replacement=False
    )
    ((_, C),) = gonen_2016.moment_estimates(learner, accessor, [3], rngs, k)
    probability = (
        np.array([subset[outcome[2]] for subset, outcome in zip(second_phase, outcomes, strict=True)])
        / len(subsets) ** 2
    )
    assert probability.sum() == pytest.approx(1)
    assert len({subset.tobytes() for subset in second_phase}) > 1
    np.testing.assert_allclose(np.tensordot(probability, C, axes=1), np.outer(x, x), rtol=1e-10)


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


@given(st.lists(st.floats(0, 1e6) | st.just(0.0), min_size=2, max_size=12), st.data())
@settings(max_examples=100, deadline=None)
def test_working_probabilities(weights, data):
    r = data.draw(st.integers(2, len(weights)))
    weights = np.array(weights)
    p = working_probabilities(weights, r, 0.1)
    assert ((0.1 * r / len(weights) * (1 - 1e-9) <= p) & (p < 1)).all()
    assert p.sum() == pytest.approx(r, abs=1e-5 * r)
    assert (np.diff(p[np.argsort(weights)]) >= -1e-12).all()


def test_working_probabilities_are_proportional_and_capped():
    np.testing.assert_allclose(working_probabilities(np.array([1.0, 2, 3, 4]), 2, 1e-12), [0.2, 0.4, 0.6, 0.8])
    capped = working_probabilities(np.array([10.0, 1, 1, 2]), 2, 1e-12)
    np.testing.assert_allclose(capped, [1, 0.25, 0.25, 0.5], rtol=1e-5)
    np.testing.assert_allclose(working_probabilities(np.zeros(4), 2, 0.5), np.full(4, 0.5))
