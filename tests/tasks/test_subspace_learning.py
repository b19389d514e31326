"""The losses of subspaces agree with their definitions, also where they are tiny."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import subspace_angles
from scipy.stats import ortho_group

from budgetreg.algorithms.eigenspaces import leading
from budgetreg.algorithms.tasks import compare_with_best, projection_losses, second_moment
from budgetreg.metering.table import Table


def _moment(rng, d):
    X = rng.standard_normal((3 * d, d)) * rng.random(d)
    return X.T @ X / len(X)


def _basis(rng, d, n):
    return np.ascontiguousarray(np.linalg.qr(rng.standard_normal((d, n)))[0])


def test_second_moment_is_the_mean_outer_product_of_scaled_and_shifted_rows():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (5000, 4)).astype(np.uint8)
    table = Table(X, np.zeros(len(X)), scale=1 / 255, shift=rng.random(4))
    index = rng.permutation(len(X))[:4500]  # more than one block of rows
    rows = X[index] / 255 - table.shift
    C = second_moment(table, index)
    np.testing.assert_allclose(C, np.mean(rows[:, :, None] * rows[:, None, :], axis=0), rtol=1e-12)
    np.testing.assert_array_equal(C, C.T)


@given(st.integers(0, 2**32 - 1), st.integers(2, 8), st.data())
def test_columns_agree_with_their_definitions(seed, d, data):
    n = data.draw(st.integers(1, d))
    rng = np.random.default_rng(seed)
    C, v = _moment(rng, d), _basis(rng, d, n)
    best = leading(C, n)
    columns = compare_with_best(C, v, best)
    loss = np.trace(C @ (np.eye(d) - v @ v.T))
    assert projection_losses(C, v[None])[0] == pytest.approx(loss, abs=1e-12)
    assert columns["relative_error"] == pytest.approx(loss / np.trace(C), abs=1e-12)
    assert columns["excess_loss"] == pytest.approx(np.trace((best @ best.T - v @ v.T) @ C), abs=1e-12)
    assert columns["excess_loss"] >= 0
    assert columns["principal_angle"] == pytest.approx(np.degrees(subspace_angles(v, best).max()), abs=1e-6)


@pytest.mark.parametrize("angle", [1e-3, 1e-6, 1e-9])
def test_tiny_excess_losses_are_accurate(angle):
    Q = ortho_group.rvs(6, random_state=3)
    C = (Q * [5.0, 4.0, 3.0, 2.0, 1.0, 0.5]) @ Q.T
    best = leading((C + C.T) / 2, 2)
    v = best @ np.diag([1, np.cos(angle)]) + np.outer(Q[:, 2], [0, np.sin(angle)])
    columns = compare_with_best((C + C.T) / 2, v, best)
    # The second direction, of eigenvalue 4, turns towards the third, of eigenvalue 3.
    assert columns["excess_loss"] == pytest.approx((4 - 3) * np.sin(angle) ** 2, rel=1e-5)
    assert columns["principal_angle"] == pytest.approx(np.degrees(angle), rel=1e-5)


def test_best_and_worst_subspace_have_the_extreme_losses():
    C = np.diag([2.0, 1.0, 0.0])
    best = leading(C, 1)
    assert compare_with_best(C, best, best) == {
        "excess_loss": 0,
        "relative_error": pytest.approx(1 / 3),
        "principal_angle": 0,
    }
    worst = np.array([[0.0], [0.0], [1.0]])
    assert compare_with_best(C, worst, best) == {"excess_loss": 2, "relative_error": 1, "principal_angle": 90}


def test_a_loss_has_the_same_bits_alone_and_with_others():
    rng = np.random.default_rng(5)
    C = _moment(rng, 40)
    V = np.stack([_basis(rng, 40, 6) for _ in range(5)])
    joint = projection_losses(C, V)
    separate = [projection_losses(C, V[g : g + 1])[0] for g in range(5)]
    np.testing.assert_array_equal(joint, separate)
    np.testing.assert_array_equal(joint, projection_losses(C, V.transpose(1, 2, 0).copy().transpose(2, 0, 1)))
