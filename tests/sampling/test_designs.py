"""Sampling designs: inclusion probabilities agree with counting all outcomes, and price-aware draws with an optimum."""

from collections.abc import Callable
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from budgetreg.algorithms.engine import data_point_weights, inner_product_weights
from budgetreg.common.streams import BLOCK, subset
from budgetreg.revealed import designs
from budgetreg.revealed.designs import joint_inclusion, per_money, regression_weights, working_probabilities


def pairs_of(outcomes, probability, d):
    """Return the probability that i and j are both among the attributes of an outcome, (d, d)."""
    seen = np.array([np.isin(np.arange(d), outcome) for outcome in outcomes], dtype=float)
    return np.einsum("n,ni,nj->ij", probability, seen, seen)


def poisson_distribution(p, r):
    """Return all subsets of size r, and their probabilities by the definition."""
    subsets = list(combinations(range(len(p)), r))
    weights = np.array([np.where(np.isin(np.arange(len(p)), subset), p, 1 - p).prod() for subset in subsets])
    return subsets, weights / weights.sum()


@pytest.mark.parametrize(("d", "r"), [(2, 2), (5, 2), (5, 4)])
def test_probabilities_agree_with_enumeration(d, r):
    subsets = list(combinations(range(d), r))
    uniform = np.full(len(subsets), 1 / len(subsets))
    np.testing.assert_allclose(designs.uniform_subset(d, r).probability, pairs_of(subsets, uniform, d), rtol=1e-12)
    sequences = list(product(range(d), repeat=r))
    uniform = np.full(len(sequences), 1 / len(sequences))
    np.testing.assert_allclose(designs.with_replacement(d, r).probability, pairs_of(sequences, uniform, d), rtol=1e-12)
    subsets = [subset for size in range(d + 1) for subset in combinations(range(d), size)]
    probability = [(r / d) ** len(subset) * (1 - r / d) ** (d - len(subset)) for subset in subsets]
    np.testing.assert_allclose(designs.bernoulli(d, r).probability, pairs_of(subsets, probability, d), rtol=1e-12)


@given(st.lists(st.floats(0, 1e3), min_size=2, max_size=7), st.data())
def test_joint_inclusion_agrees_with_the_definition(weights, data):
    r = data.draw(st.integers(2, len(weights)))
    p = working_probabilities(np.array(weights), r, 0.01)
    expected = pairs_of(*poisson_distribution(p, r), len(p))
    np.testing.assert_allclose(joint_inclusion(p, r), expected, rtol=1e-8)


def test_joint_inclusion_of_many_attributes_sums_to_the_sample_size():
    weights = np.random.default_rng(0).random(501) ** 3
    for r in (2, 60, 500):
        probability = joint_inclusion(working_probabilities(weights, r, 0.01), r)
        np.testing.assert_allclose(np.diagonal(probability).sum(), r, rtol=1e-9)
        np.testing.assert_allclose(probability.sum(axis=1), r * np.diagonal(probability), rtol=1e-7)


@pytest.mark.parametrize("p", [[0.9, 0.1, 0.3, 0.5, 0.2], [1 - 1e-6, 1 - 1e-6, 0.5, 1e-3, 0.45]])
def test_conditional_poisson_draws_follow_the_definition(p):
    """The frequencies in 500 blocks are within 5 standard errors."""
    design, rng, n = designs.conditional_poisson(np.array(p), 3), np.random.default_rng(1), 500
    drawn = np.concatenate([design.draw(rng).attributes for _ in range(n)])
    assert (np.diff(drawn, axis=1) > 0).all()
    for sample, probability in zip(*poisson_distribution(np.array(p), 3), strict=True):
        count = (drawn == sample).all(axis=1).sum()
        error = np.sqrt(n * BLOCK * probability * (1 - probability))
        assert abs(count - n * BLOCK * probability) <= 5 * error + 5


def test_extreme_weights_give_samples_of_full_size():
    p = np.where(np.arange(300) < 150, 1 - 1e-6, 1e-6)
    for r in (148, 150, 152):
        drawn = designs.conditional_poisson(p, r).draw(np.random.default_rng(0)).attributes
        assert drawn.shape == (BLOCK, r)
        assert (np.diff(drawn, axis=1) > 0).all() and drawn.max() < 300


def floyd(candidates, d):
    """Return the subset of an example by Floyd's algorithm as it is printed."""
    chosen = []
    for candidate, last in zip(candidates, range(d - len(candidates), d), strict=True):
        chosen.append(last if candidate in chosen else candidate)
    return chosen


@pytest.mark.parametrize(("d", "r"), [(6, 6), (50, 3), (784, 57)])
def test_uniform_subsets_follow_floyds_algorithm(d, r):
    rng = np.random.default_rng(2)
    candidates = np.array([rng.integers(0, last + 1, size=BLOCK) for last in range(d - r, d)])
    expected = [floyd(column, d) for column in candidates.T]
    np.testing.assert_array_equal(designs.uniform_subset(d, r).draw(np.random.default_rng(2)).attributes, expected)
    np.testing.assert_array_equal(subset(np.random.default_rng(2), d, r), expected)


def test_repeated_and_absent_draws_are_marked():
    rng = np.random.default_rng(3)
    attributes, drawn, repeated = designs.with_replacement(3, 4).draw(rng)
    assert drawn is None
    distinct = [len(set(row)) for row in attributes.tolist()]
    np.testing.assert_array_equal((~repeated).sum(axis=1), distinct)
    assert all(len(set(row[~again])) == (~again).sum() for row, again in zip(attributes, repeated, strict=True))
    attributes, drawn, repeated = designs.bernoulli(40, 4).draw(rng)
    assert repeated is None
    assert all(len(set(row[seen])) == seen.sum() for row, seen in zip(attributes, drawn, strict=True))
    assert abs(drawn.sum() / BLOCK - 4) < 5 * np.sqrt(4 * 0.9 / BLOCK)


def test_missing_draws_are_replaced_by_available_attributes_only():
    rng, d, r = np.random.default_rng(0), 7, 4
    drawn = np.sort(rng.permuted(np.tile(np.arange(d), (400, 1)), axis=1)[:, :r], axis=1)
    available = rng.random((400, d)) < rng.choice([0.1, 0.5, 1.0], (400, 1))
    p = np.linspace(0.2, 0.9, d)
    shown = designs.replaced(drawn, available, p, np.random.default_rng(1))
    there = np.take_along_axis(available, shown, axis=1)
    assert (np.diff(np.sort(shown, axis=1)) > 0).all()
    np.testing.assert_array_equal(there.sum(axis=1), np.minimum(available.sum(axis=1), r))
    was_there = np.take_along_axis(available, drawn, axis=1)
    np.testing.assert_array_equal(shown[was_there], drawn[was_there])
    rng = np.random.default_rng(1)
    parts = [designs.replaced(drawn[part], available[part], p, rng) for part in (slice(3), slice(3, 400))]
    np.testing.assert_array_equal(np.concatenate(parts), shown)


def test_attributes_of_probability_0_replace_nothing():
    available = np.tile([False, True, True], (300, 1))
    shown = designs.replaced(np.zeros((300, 1), dtype=int), available, np.array([0.5, 0, 0]), np.random.default_rng(0))
    assert not shown.any()  # what is missing stays
    shown = designs.replaced(
        np.zeros((300, 1), dtype=int), available, np.array([0.5, 0, 0.1]), np.random.default_rng(0)
    )
    assert (shown == 2).all()


def test_with_equal_probabilities_every_available_subset_is_equally_likely():
    available = np.array([1, 1, 0, 1, 1, 0], dtype=bool)
    drawn = subset(np.random.default_rng(0), 6, 2)
    drawn = np.concatenate([drawn] + [subset(np.random.default_rng(seed), 6, 2) for seed in range(1, 40)])
    everywhere = np.broadcast_to(available, (len(drawn), 6))
    shown = np.sort(designs.replaced(drawn, everywhere, np.full(6, 1 / 3), np.random.default_rng(1)), axis=1)
    _, counts = np.unique(shown, axis=0, return_counts=True)
    assert len(counts) == 6
    assert (np.abs(counts / len(drawn) - 1 / 6) < 5 * np.sqrt(5 / 36 / len(drawn))).all()


def test_likelier_attributes_replace_missing_ones_more_often():
    """The first of two replaces the missing one if ``u_1 o_1 / (1 - u_1) < u_2 o_2 / (1 - u_2)``, with odds o."""
    p, n = np.array([0.5, 0.8, 0.2]), 20000
    available = np.tile([False, True, True], (n, 1))
    shown = designs.replaced(np.zeros((n, 1), dtype=int), available, p, np.random.default_rng(0))[:, 0]
    ratio = (0.25 / 4.0) ** -1  # of the odds: P(X < a Y) for X, Y with the density 1 / (1 + x)^2
    expected = ratio / (ratio - 1) - ratio * np.log(ratio) / (ratio - 1) ** 2
    assert abs((shown == 1).mean() - expected) < 5 * np.sqrt(expected * (1 - expected) / n)


@given(st.lists(st.floats(0, 1e6) | st.just(0.0), min_size=2, max_size=12), st.data())
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


def test_the_weight_is_in_equal_parts_by_spread_by_the_regressor_and_by_its_second_moments():
    spread, w = np.array([1.0, 4.0, 0.0, 2.0]), np.array([-3.0, 0.5, 9.0, 0.0])
    a, b = spread**0.7, np.array([3.0, 2.0, 0.0, 0.0])
    np.testing.assert_allclose(regression_weights(spread, w), (a / a.sum() + b / b.sum()) / 2)
    np.testing.assert_allclose(regression_weights(spread, 0 * w), a / a.sum() / 2)
    parts = np.array([0.0, 0.0, 0.0, 5.0])
    np.testing.assert_allclose(
        regression_weights(spread, w, parts), (a / a.sum() + b / b.sum() + parts / parts.sum()) / 3
    )
    assert not regression_weights(np.zeros(3), np.ones(3)).any()


@given(st.lists(st.floats(0, 1e3), min_size=2, max_size=9), st.floats(1e-3, 1e3))
def test_regression_weights_do_not_depend_on_the_unit_of_the_target(spread, unit):
    spread = np.array(spread)
    w = np.linspace(-1, 2, spread.size)
    weights = regression_weights(spread, w)
    np.testing.assert_allclose(regression_weights(spread, unit * w), weights, rtol=1e-9, atol=1e-12)
    assert (weights >= 0).all() and weights.sum() <= 1 + 1e-9


def test_all_attributes_are_nearly_certain_if_all_are_drawn() -> None:
    weights = np.array([1.0, *[0.8132702402002724] * 6])  # rounding makes six times a sixth of these exceed 1
    np.testing.assert_allclose(working_probabilities(weights, 7, 0.1), np.ones(7), atol=1e-5)


# Price-aware draws agree with the numerical optimum of their objective, for d = 4


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
    for weights in (lambda c: data_point_weights(update, MOMENTS, c), lambda c: inner_product_weights(MOMENTS, c)):
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
