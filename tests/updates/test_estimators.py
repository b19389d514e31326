"""Gradient estimators by exact enumeration for small d: unbiased, with the second moments of the formulas."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from budgetreg.algorithms.cesa_bianchi_2010 import Pegasos
from budgetreg.algorithms.engine import SparsePoints, rounds, sparse_points
from budgetreg.algorithms.hazan_koren_2012.gradients import EG, OGD
from budgetreg.algorithms.vectors import project_l1

D = 5
X = np.array([0.0, 0.3, -0.8, 1.0, 0.4])
POINT = np.array([0.9, -0.2, 0.0, 0.5, -1.3])


def data_points(attributes):
    """Return ``x~`` for each of the given draws, shape (n, d)."""
    attributes = np.array(list(attributes))
    points = sparse_points(attributes[None], X[attributes][None] * (D / attributes.shape[1]))
    estimates = np.zeros((len(attributes), D))
    estimates[points.position, points.attribute] = points.value
    return estimates


@pytest.mark.parametrize("k_x", [1, 2, 3])
def test_uniform_draws_estimate_the_data_point_without_bias(k_x):
    estimates = data_points(product(range(D), repeat=k_x))
    np.testing.assert_allclose(estimates.mean(axis=0), X, atol=1e-12)
    second = (D + k_x - 1) / k_x * (X @ X)
    np.testing.assert_allclose(np.square(estimates).sum(axis=1).mean(), second, rtol=1e-12)


@pytest.mark.parametrize("k_x", [1, 2, 3, 5])
def test_subset_draws_estimate_the_data_point_without_bias(k_x):
    estimates = data_points(combinations(range(D), k_x))
    np.testing.assert_allclose(estimates.mean(axis=0), X, atol=1e-12)
    np.testing.assert_allclose(np.square(estimates).sum(axis=1).mean(), D / k_x * (X @ X), rtol=1e-12)


def step(state, x, residual, t):
    """Take step t of the only stream with the gradient residual * x."""
    nonzero = np.flatnonzero(x)
    zeros = np.zeros(nonzero.size, dtype=int)
    points = SparsePoints(zeros, zeros, nonzero, x[nonzero])
    state.active.add(points)
    for one in rounds(points, t - 1, t - 1, t, np.array([t - 1]), state.layout):
        state.step(one, np.array([[residual]]))


def state_at(update, parameter):
    """Return a state after one step on all coordinates, and its regressor."""
    state, one = update(1, D, 1, {"B": np.array([1.7]), parameter: np.array([0.8])}), np.ones(1, dtype=int)
    state.project_and_accumulate(one)
    step(state, POINT, -1.0, 1)
    state.project_and_accumulate(one * 2)
    return state, state.iterate()[0, :, 0]


@pytest.mark.parametrize(("update", "parameter"), [(OGD, "eta"), (EG, "eta"), (Pegasos, "lambda")])
def test_draws_estimate_the_inner_product_without_bias(update, parameter):
    state, w = state_at(update, parameter)
    assert np.count_nonzero(w) >= 2
    p = np.square(w) if update is OGD else np.abs(w)
    p /= p.sum()
    edges = np.concatenate([[0.0], np.cumsum(p)])
    middles = (edges[:-1] + edges[1:])[p > 0] / 2
    drawn = [state.draw(np.array([[u]])) for u in middles]
    j, coefficient = (np.array(part).ravel() for part in zip(*drawn, strict=True))
    np.testing.assert_array_equal(j, np.flatnonzero(p))
    estimates, p = coefficient * X[j], p[p > 0]
    np.testing.assert_allclose(p @ estimates, w @ X, atol=1e-12)
    second = (w @ w) * np.square(X[w != 0]).sum()
    if update is not OGD:
        second = np.abs(w).sum() * (np.abs(w) @ np.square(X))
    np.testing.assert_allclose(p @ np.square(estimates), second, rtol=1e-12)


@pytest.mark.parametrize(("update", "parameter"), [(OGD, "eta"), (EG, "eta"), (Pegasos, "lambda")])
def test_a_zero_regressor_has_no_draws(update, parameter):
    state = update(2, D, 1, {"B": np.ones(3), parameter: np.ones(3)})
    state.project_and_accumulate(np.ones(2, dtype=int))
    assert not state.nonzero.any()
    assert not state.iterate().any()


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(arrays(float, 7, elements=st.sampled_from([0.0, 0.25, -1.0, 2.0, 1e-9])), min_size=1, max_size=6),
    B=st.sampled_from([0.1, 1.0, 30.0]),
)
def test_pegasos_stores_the_projection_of_each_step(steps, B):
    """``U = t w`` equals the Euclidean projection onto the ball of radius ``t B``, computed by sorting."""
    state, U = (
        Pegasos(1, 7, 1, {"B": np.array([B]), "lambda": np.array([2.0])}),
        np.zeros(7),
    )
    for t, g in enumerate(steps, start=1):
        state.project_and_accumulate(np.array([t]))
        step(state, g, 1.0, t)
        U = project_l1(U - g, t * B)
    state.project_and_accumulate(state.held + 1)
    np.testing.assert_allclose(state.iterate()[0, :, 0], U / len(steps), rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [1e3, 1e10, 1e17, 1e29])
def test_pegasos_stores_the_projection_of_very_large_steps(size):
    """All weight goes to the largest coordinates of each step, equally if there are several."""
    state, now = Pegasos(1, 4, 1, {"B": np.array([3.0]), "lambda": np.array([2.0])}), np.ones(1, dtype=int)
    state.project_and_accumulate(now)
    for g, expected in (
        ([0.0, -1.0, 0.5, 0.9], [0.0, 3.0, 0.0, 0.0]),
        ([1.0, 0.0, 0.0, -1.0], [-1.5, 0.0, 0.0, 1.5]),
        ([0.3, 0.2, 1.0, 0.0], [0.0, 0.0, -3.0, 0.0]),
    ):
        step(state, np.array(g), size, now[0])
        state.project_and_accumulate(now + 1)
        now = now + 1
        np.testing.assert_allclose(state.iterate()[0, :, 0], expected, rtol=0, atol=1e-6 + 10 / size)
