"""Projections onto balls, and the state of AER, each step of which is projected, however large."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from budgetreg.algorithms.cesa_bianchi_2010 import Pegasos
from budgetreg.algorithms.engine import SparsePoints, rounds
from budgetreg.algorithms.vectors import project_l1, project_l2

values = st.floats(-100, 100, allow_subnormal=False).map(lambda x: round(x, 3))
vectors = arrays(float, array_shapes(min_dims=1, max_dims=3, max_side=6), elements=values)
radii = st.floats(0.01, 50)
balls = pytest.mark.parametrize(("project", "order"), [(project_l1, 1), (project_l2, 2)])


def norm(v, order):
    return np.linalg.norm(v, ord=order, axis=-1)


@balls
@given(v=vectors, radius=radii)
def test_projections_are_in_the_ball_and_satisfy_the_optimality_condition(project, order, v, radius):
    """w is the projection iff ``<v - w, z - w> <= 0`` on the whole ball; the largest ``<v - w, z>`` is a dual norm."""
    w = project(v, radius)
    rounding = 1e-14 * norm(v, order)  # that of thresholds scales with v
    assert w.shape == v.shape and (norm(w, order) <= radius * (1 + 1e-12) + rounding).all()
    furthest = radius * norm(v - w, np.inf if order == 1 else 2)
    assert (furthest - ((v - w) * w).sum(axis=-1) <= 1e-9 * (1 + norm(v, 2) ** 2)).all()


@balls
def test_each_vector_has_its_own_radius(project, order):
    v = np.random.default_rng(0).normal(size=(4, 3, 7))
    radius = np.geomspace(0.1, 10, 12).reshape(4, 3)
    w = project(v, radius)
    for i, j in np.ndindex(4, 3):
        np.testing.assert_array_equal(w[i, j], project(v[i, j], radius[i, j]))


# The state of AER


def step(state, x, residual, t):
    """Take step t of the only stream with the gradient residual * x."""
    nonzero = np.flatnonzero(x)
    zeros = np.zeros(nonzero.size, dtype=int)
    points = SparsePoints(zeros, zeros, nonzero, x[nonzero])
    state.active.add(points)
    for one in rounds(points, t - 1, t - 1, t, np.array([t - 1]), state.layout):
        state.step(one, np.array([[residual]]))


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
