import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.optimize import minimize

from budgetreg.algorithms.vectors import project_l1, project_l2

values = st.floats(-100, 100, allow_subnormal=False).map(lambda x: round(x, 3))
vectors = arrays(float, array_shapes(min_dims=1, max_dims=3, max_side=6), elements=values)
radii = st.floats(0.01, 50)
balls = pytest.mark.parametrize(("project", "order"), [(project_l1, 1), (project_l2, 2)])


def norm(v, order):
    return np.linalg.norm(v, ord=order, axis=-1)


@balls
@settings(max_examples=50, deadline=None)
@given(v=vectors, radius=radii)
def test_projection_is_feasible_and_idempotent(project, order, v, radius):
    w = project(v, radius)
    assert w.shape == v.shape
    assert (
        norm(w, order) <= radius * (1 + 1e-12) + 1e-14 * norm(v, order)
    ).all()  # the rounding error of thresholds scales with v
    np.testing.assert_allclose(project(w, radius), w, rtol=1e-9, atol=1e-12)


@balls
@settings(max_examples=50, deadline=None)
@given(v=vectors, radius=radii)
def test_points_of_the_ball_are_unchanged(project, order, v, radius):
    inside = norm(v, order) <= radius
    np.testing.assert_allclose(project(v, radius)[inside], v[inside], rtol=1e-12)


@balls
@settings(max_examples=50, deadline=None)
@given(u=vectors, radius=radii, data=st.data())
def test_projection_does_not_increase_distances(project, order, u, radius, data):
    v = data.draw(arrays(float, u.shape, elements=values))
    distance = norm(project(u, radius) - project(v, radius), 2)
    assert (distance <= norm(u - v, 2) * (1 + 1e-12) + 1e-12).all()


@balls
@settings(max_examples=50, deadline=None)
@given(v=vectors, radius=radii)
def test_projection_satisfies_the_optimality_condition(project, order, v, radius):
    # w is the projection iff <v - w, z - w> <= 0 on the whole ball; the largest <v - w, z> is a dual norm.
    w = project(v, radius)
    furthest = radius * norm(v - w, np.inf if order == 1 else 2)
    assert (furthest - ((v - w) * w).sum(axis=-1) <= 1e-9 * (1 + norm(v, 2) ** 2)).all()


@balls
def test_each_vector_has_its_own_radius(project, order):
    v = np.random.default_rng(0).normal(size=(4, 3, 7))
    radius = np.geomspace(0.1, 10, 12).reshape(4, 3)
    w = project(v, radius)
    for i, j in np.ndindex(4, 3):
        np.testing.assert_array_equal(w[i, j], project(v[i, j], radius[i, j]))


def test_l1_projection_agrees_with_a_general_solver():
    v = np.array([3.0, -2.0, 1.5, 0.2, 0.0])
    halves = minimize(
        lambda z: ((z[:5] - z[5:] - v) ** 2).sum(),
        np.zeros(10),
        method="SLSQP",
        bounds=[(0, None)] * 10,
        constraints={"type": "ineq", "fun": lambda z: 2 - z.sum()},
        options={"ftol": 1e-14},
    ).x
    np.testing.assert_allclose(project_l1(v, 2.0), halves[:5] - halves[5:], atol=1e-6)
    np.testing.assert_allclose(project_l1(v, 2.0), [1.5, -0.5, 0, 0, 0], atol=1e-15)


def test_l2_projection_rescales_longer_vectors():
    np.testing.assert_allclose(project_l2(np.array([3.0, -4.0]), 1.0), [0.6, -0.8])
