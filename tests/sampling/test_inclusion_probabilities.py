"""Working probabilities and regression weights: their formulas, and how often attributes are seen."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgetreg.common.streams import BLOCK
from budgetreg.revealed import designs
from budgetreg.revealed.designs import joint_inclusion, regression_weights, working_probabilities


def test_half_of_the_weight_is_by_spread_and_half_by_the_regressor():
    spread, w = np.array([1.0, 4.0, 0.0, 2.0]), np.array([-3.0, 0.5, 9.0, 0.0])
    a, b = spread**0.7, np.array([3.0, 2.0, 0.0, 0.0])
    np.testing.assert_allclose(regression_weights(spread, w), (a / a.sum() + b / b.sum()) / 2)
    np.testing.assert_allclose(regression_weights(spread, 0 * w), a / a.sum() / 2)
    assert not regression_weights(np.zeros(3), np.ones(3)).any()


@given(st.lists(st.floats(0, 1e3), min_size=2, max_size=9), st.floats(1e-3, 1e3))
def test_regression_weights_do_not_depend_on_the_unit_of_the_target(spread, unit):
    spread = np.array(spread)
    w = np.linspace(-1, 2, spread.size)
    weights = regression_weights(spread, w)
    np.testing.assert_allclose(regression_weights(spread, unit * w), weights, rtol=1e-9, atol=1e-12)
    assert (weights >= 0).all() and weights.sum() <= 1 + 1e-9


@pytest.mark.parametrize(("d", "r"), [(9, 2), (9, 4), (30, 5)])
def test_pairs_are_seen_as_often_as_joint_inclusion_predicts(d, r):
    """The frequencies in 100 blocks are within 5 standard errors, and single ones near the working probabilities."""
    p = working_probabilities(np.random.default_rng(d).random(d) ** 3, r, 0.1)
    draw, rng, n = designs.fixed_size(p, r), np.random.default_rng(0), 100 * BLOCK
    seen = np.zeros((n, d))
    np.put_along_axis(seen, np.concatenate([draw(rng).attributes for _ in range(100)]), 1.0, axis=1)
    assert (seen.sum(axis=1) == r).all()
    expected = joint_inclusion(p, r)
    assert (np.abs(seen.T @ seen / n - expected) <= 5 * np.sqrt(expected * (1 - expected) / n) + 1e-9).all()
    assert np.abs(np.diagonal(expected) - p).max() <= 0.1


def test_all_attributes_are_nearly_certain_if_all_are_drawn() -> None:
    weights = np.array([1.0, *[0.8132702402002724] * 6])  # rounding makes six times a sixth of these exceed 1
    np.testing.assert_allclose(working_probabilities(weights, 7, 0.1), np.ones(7), atol=1e-5)
