"""Price-aware draws agree with the numerical optimum of their objective, for d = 4."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import minimize

from budgetreg.algorithms.engine import data_point_weights, inner_product_weights
from budgetreg.revealed.designs import per_money, regression_weights

MOMENTS = np.array([[0.9, 0.05, 0.4, 0.002], [1.0, 1.0, 1.0, 1.0], [0.1, 0.7, 0.02, 0.3]])
PRICES = np.array([1.0, 7.0, 0.2, 3.0])
W = np.array([0.5, -2.0, 0.01, 1.0])


def share(weights: np.ndarray) -> np.ndarray:
    return np.asarray(weights / weights.sum())


def optimum(objective: Callable[[np.ndarray], float]) -> np.ndarray:
    """Minimise over probabilities, parametrised by a softmax, from several starts."""
    solutions = [
        minimize(lambda z: np.log(objective(share(np.exp(z - z.max())))), start, method="BFGS", options={"gtol": 1e-10})
        for start in np.random.default_rng(0).normal(size=(4, 4))
    ]
    z = min(solutions, key=lambda solution: solution.fun).x
    return share(np.exp(z - z.max()))


@pytest.mark.parametrize("a", MOMENTS)
def test_draws_for_the_data_point_are_optimal_on_the_2_ball(a: np.ndarray) -> None:
    best = optimum(lambda q: float((a / q).sum() * (q @ PRICES)))
    np.testing.assert_allclose(share(data_point_weights("ogd", a[None], PRICES)[0]), best, atol=1e-5)


@pytest.mark.parametrize("a", MOMENTS)
def test_draws_for_the_inner_product_are_optimal(a: np.ndarray) -> None:
    best = optimum(lambda p: float((W**2 * a / p).sum() * (p @ PRICES)))
    np.testing.assert_allclose(share(np.abs(W) * inner_product_weights(a[None], PRICES)[0]), best, atol=1e-5)


@pytest.mark.parametrize("a", MOMENTS)
def test_draws_for_the_data_point_on_the_1_ball_ignore_prices(a: np.ndarray) -> None:
    """The maximum has no gradient at its minimum, so that t is minimised with ``t >= a_i / q_i``."""
    start = np.append(np.full(4, 0.25), 4 * a.max())
    solution = minimize(
        lambda z: np.log(z[4]) + np.log(z[:4] @ PRICES),
        start,
        method="SLSQP",
        bounds=[(1e-6, 1)] * 4 + [(1e-6, None)],
        constraints=[
            {"type": "eq", "fun": lambda z: z[:4].sum() - 1},
            {"type": "ineq", "fun": lambda z: z[:4] * z[4] - a},
        ],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(share(data_point_weights("eg", a[None], PRICES)[0]), solution.x[:4], atol=1e-4)
    np.testing.assert_array_equal(data_point_weights("eg", a[None], PRICES), data_point_weights("eg", a[None], None))


@pytest.mark.parametrize("update", ["ogd", "eg"])
def test_equal_prices_change_nothing(update: str) -> None:
    for weights in (
        lambda c: data_point_weights(update, MOMENTS, c),
        lambda c: inner_product_weights(MOMENTS, c),
    ):
        np.testing.assert_array_equal(weights(np.ones(4)), weights(None))


@pytest.mark.parametrize("prices", [PRICES, np.array([1e-6, 1.0, 1e6, 1.0])])
@pytest.mark.parametrize(("a", "b"), [(MOMENTS[0], MOMENTS[0]), (MOMENTS[2], W**2 * MOMENTS[0])])
def test_draws_for_products_of_two_are_optimal_for_a_number_of_draws(a, b, prices) -> None:
    """Given what the optimum without prices is for these a and b, the prices divide it as they do the numerical one."""
    best = optimum(lambda q: float((a / q).sum() * (b / q).sum() * (q @ prices)))
    v = np.sqrt(a / (a / best).sum() + b / (b / best).sum())
    np.testing.assert_allclose(share(per_money(v, prices)), best, atol=1e-5)


def test_prices_of_one_kind_change_no_plan() -> None:
    s, w = np.sqrt(MOMENTS[0]), W
    plain = regression_weights(s, w)
    np.testing.assert_array_equal(per_money(plain, np.full(4, 3.0)), plain)
    np.testing.assert_array_equal(per_money(np.zeros(4), PRICES), np.zeros(4))
    ratios = per_money(plain, PRICES) / plain
    assert (np.diff(ratios[np.argsort(PRICES)]) < 0).all()
