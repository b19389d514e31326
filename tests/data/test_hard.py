"""The hard distributions: draws and best regressors agree with enumeration and closed forms."""

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from budgetreg.common.errors import ConfigError
from budgetreg.data.distributions import HiddenBasis, OneGoodFeature, ThreeBits
from budgetreg.data.registry import load
from budgetreg.protocol.configuration import DatasetConfig

SIZES = {"n": 4000, "n_test": 100}
OPTIONS: dict[str, dict[str, Any]] = {
    "one_good_feature": {"d": 4, "p": 0.3},
    "three_bits": {},
    "hidden_basis": {"d": 9, "eps": 0.5},
    "sphere": {"d": 6, "noise": 0.05},
}


def config(kind, **changes):
    options = SIZES | OPTIONS[kind] | changes
    return DatasetConfig(kind, kind, center="none", split="official", test_fraction=0.1, options=options)


def one_good_feature(distribution, w_star):
    """Yield every (x, y) with its probability."""
    (good,) = np.flatnonzero(w_star)
    for x in product([-1.0, 1.0], repeat=distribution.d):
        for side in (-1, 1):
            yield np.array(x), side * x[good], 0.5**distribution.d * (0.5 + side * distribution.p)


def three_bits(distribution, w_star):
    for x in product([-1.0, 1.0], repeat=3):
        yield np.array(x), sum(x) / 3, 1 / 8


def hidden_basis(distribution, w_star):
    hidden = np.flatnonzero(w_star)
    for i in hidden:
        yield np.sign(w_star[i]) * np.eye(distribution.d)[i], 1.0, 1 / hidden.size


def best_regressor(distribution, seed, repetition):
    return np.full(3, 1 / 3) if isinstance(distribution, ThreeBits) else distribution.best(seed, repetition)


# With the radius of the ball, and the risk of the best regressor in it.
ENUMERATED = [
    (OneGoodFeature(4, 0.3, 10, 1), one_good_feature, np.inf, 1 - 4 * 0.3**2),
    (ThreeBits(10, 1), three_bits, np.inf, 0.0),
    (HiddenBasis(9, 0.5, 10, 1), hidden_basis, 1.0, (1 - 0.5) ** 2),
    (HiddenBasis(9, 0.35, 10, 1), hidden_basis, 1.0, (1 - 8**-0.5) ** 2),  # 1/0.35^2 = 8.2: eight attributes
]


@pytest.mark.parametrize(("distribution", "outcomes", "radius", "best_risk"), ENUMERATED)
def test_best_regressor_and_its_risk_agree_with_a_solver(distribution, outcomes, radius, best_risk):
    """The solver minimises the exact risk, in the ball where there is one."""
    best = best_regressor(distribution, 0, 3)
    X, y, p = (np.array(column) for column in zip(*outcomes(distribution, best), strict=True))
    assert p.sum() == pytest.approx(1)

    def risk(w):
        return p @ np.square(X @ w - y)

    assert risk(best) == pytest.approx(best_risk, abs=1e-15)
    assert np.linalg.norm(best) <= radius + 1e-12
    inside = [] if radius == np.inf else [{"type": "ineq", "fun": lambda w: radius**2 - w @ w}]
    solution = minimize(risk, np.full(distribution.d, 0.1), method="SLSQP", constraints=inside, options={"ftol": 1e-14})
    assert solution.fun == pytest.approx(best_risk, abs=1e-6)
    np.testing.assert_allclose(solution.x, best, atol=1e-3)


@pytest.mark.parametrize(("distribution", "outcomes"), [case[:2] for case in ENUMERATED])
def test_draws_follow_the_distribution(distribution, outcomes):
    distribution = type(distribution)(**{**distribution.__dict__, "n": 20_000})
    data = distribution.draw(1, 2)
    seen: dict[tuple[float, ...], int] = {}
    for row in np.column_stack([data.X[: distribution.n], data.y[: distribution.n]]).round(9):
        seen[tuple(row)] = seen.get(tuple(row), 0) + 1
    expected = {
        tuple(np.round([*x, y], 9)): p for x, y, p in outcomes(distribution, best_regressor(distribution, 1, 2))
    }
    assert set(seen) == set(expected)
    for outcome, p in expected.items():
        assert abs(seen[outcome] / distribution.n - p) < 5 * np.sqrt(p * (1 - p) / distribution.n)


def test_two_bits_of_three_have_a_risk_of_a_ninth():
    """Theorem 4, by exact conditional means for each pair of bits."""
    X = np.array(list(product([-1.0, 1.0], repeat=3)))
    y = X.mean(axis=1)
    for pair in combinations(range(3), 2):
        known = {key: y[(X[:, pair] == key).all(axis=1)] for key in product([-1.0, 1.0], repeat=2)}
        assert np.mean([np.var(values) for values in known.values()]) == pytest.approx(1 / 9)


@pytest.mark.parametrize("kind", OPTIONS)
def test_repetitions_differ_and_more_examples_keep_the_earlier_ones(kind):
    data = load(config(kind), 3, 0)
    assert (len(data.y), data.n_train) == (4100, 4000)
    for other in (load(config(kind), 3, 1), load(config(kind), 4, 0)):
        assert other.X.tobytes() != data.X.tobytes()
    more = load(config(kind, n=4500), 3, 0)
    np.testing.assert_array_equal(np.delete(more.X, np.s_[4000:4500], axis=0), data.X)
    np.testing.assert_array_equal(np.delete(more.y, np.s_[4000:4500]), data.y)
    assert data.two_valued == (kind == "one_good_feature")


def test_each_draw_has_its_own_best_regressor():
    assert {int(OneGoodFeature(5, 0.1, 1, 1).best(0, r).argmax()) for r in range(60)} == set(range(5))
    hidden = [tuple(np.sign(HiddenBasis(4, 0.7, 1, 1).best(0, r))) for r in range(300)]
    assert len(set(hidden)) == 6 * 4  # two of four attributes, two signs each


def test_sphere_satisfies_the_assumptions_of_the_theorems():
    data = load(config("sphere", n=20_000, noise=0.5), 0, 0)
    np.testing.assert_allclose(np.linalg.norm(data.X, axis=1), 1)
    assert np.abs(data.X.mean(axis=0)).max() < 5 / np.sqrt(6 * 20_000)
    np.testing.assert_allclose(data.X.T @ data.X / len(data.X), np.eye(6) / 6, atol=0.01)
    assert np.abs(data.y).max() == 1
    quiet = load(config("sphere", noise=0.05), 0, 0)
    w, *_ = np.linalg.lstsq(quiet.X, quiet.y, rcond=None)
    assert np.linalg.norm(w) == pytest.approx(1, abs=0.02)
    assert np.std(quiet.X @ w - quiet.y) == pytest.approx(0.05, rel=0.1)


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("one_good_feature", {"p": 0}),
        ("one_good_feature", {"p": 0.6}),
        ("one_good_feature", {"p": "much"}),
        ("one_good_feature", {"d": 0}),
        ("three_bits", {"n_test": None}),
        ("hidden_basis", {"eps": 0.2}),
        ("hidden_basis", {"eps": float("nan")}),
        ("hidden_basis", {"eps": True}),
        ("sphere", {"noise": -1}),
        ("sphere", {"noise": float("inf")}),
    ],
)
def test_messages_name_impossible_options(kind, change):
    with pytest.raises(ConfigError, match=f"dataset.{next(iter(change))}") as caught:
        load(config(kind, **change), 0, 0)
    assert "\n" not in str(caught.value)
