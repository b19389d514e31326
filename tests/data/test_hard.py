"""The hard distributions: their laws, and that the regressors said to be best are, by enumeration and closed form."""

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from budgetreg.data import load
from budgetreg.data.hard import HiddenBasis, OneGoodFeature, ThreeBits
from budgetreg.errors import ConfigError
from budgetreg.protocol.configuration import DatasetConfig

SIZES = {"n": 4000, "n_test": 100}
LAWS: dict[str, dict[str, Any]] = {
    "one_good_feature": {"d": 4, "p": 0.3},
    "three_bits": {},
    "hidden_basis": {"d": 9, "eps": 0.5},
    "sphere": {"d": 6, "noise": 0.05},
}


def config(kind, **changes):
    options = SIZES | LAWS[kind] | changes
    return DatasetConfig(kind, kind, center="none", split="official", test_fraction=0.1, options=options)


def one_good_feature(law, w_star):
    """Every (x, y) with its probability."""
    (good,) = np.flatnonzero(w_star)
    for x in product([-1.0, 1.0], repeat=law.d):
        for side in (-1, 1):
            yield np.array(x), side * x[good], 0.5**law.d * (0.5 + side * law.p)


def three_bits(law, w_star):
    for x in product([-1.0, 1.0], repeat=3):
        yield np.array(x), sum(x) / 3, 1 / 8


def hidden_basis(law, w_star):
    hidden = np.flatnonzero(w_star)
    for i in hidden:
        yield np.sign(w_star[i]) * np.eye(law.d)[i], 1.0, 1 / hidden.size


ENUMERATED = [
    (OneGoodFeature(4, 0.3, 10, 1), one_good_feature, np.inf),
    (ThreeBits(10, 1), three_bits, np.inf),
    (HiddenBasis(9, 0.5, 10, 1), hidden_basis, 1.0),
    (HiddenBasis(9, 0.35, 10, 1), hidden_basis, 1.0),  # 1/.35^2 = 8.2: eight attributes
]


@pytest.mark.parametrize(("law", "outcomes", "radius"), ENUMERATED)
def test_best_regressor_and_its_risk(law, outcomes, radius):
    """Against a solver on the exact risk, in the ball where there is one."""
    best = law.best(0, 3)
    X, y, p = (np.array(column) for column in zip(*outcomes(law, best), strict=True))
    assert p.sum() == pytest.approx(1)

    def risk(w):
        return p @ np.square(X @ w - y)

    assert risk(best) == pytest.approx(law.best_risk, abs=1e-15)
    assert np.linalg.norm(best) <= radius + 1e-12
    inside = [] if radius == np.inf else [{"type": "ineq", "fun": lambda w: radius**2 - w @ w}]
    found = minimize(risk, np.full(law.d, 0.1), method="SLSQP", constraints=inside, options={"ftol": 1e-14})
    assert found.fun == pytest.approx(law.best_risk, abs=1e-6)
    np.testing.assert_allclose(found.x, best, atol=1e-3)


@pytest.mark.parametrize(("law", "outcomes", "radius"), ENUMERATED)
def test_draws_follow_the_law(law, outcomes, radius):
    law = type(law)(**{**law.__dict__, "n": 20_000})
    data = law.draw(1, 2)
    seen: dict[tuple[float, ...], int] = {}
    for row in np.column_stack([data.X[: law.n], data.y[: law.n]]).round(9):
        seen[tuple(row)] = seen.get(tuple(row), 0) + 1
    expected = {tuple(np.round([*x, y], 9)): p for x, y, p in outcomes(law, law.best(1, 2))}
    assert set(seen) == set(expected)
    for outcome, p in expected.items():
        assert abs(seen[outcome] / law.n - p) < 5 * np.sqrt(p * (1 - p) / law.n)


def test_two_bits_at_test_time_err_by_a_ninth():
    """Theorem 4: whichever two are seen, and however they are used, by exact conditional means."""
    X = np.array(list(product([-1.0, 1.0], repeat=3)))
    y = X.mean(axis=1)
    for pair in combinations(range(3), 2):
        known = {key: y[(X[:, pair] == key).all(axis=1)] for key in product([-1.0, 1.0], repeat=2)}
        assert np.mean([np.var(values) for values in known.values()]) == pytest.approx(1 / 9)


@pytest.mark.parametrize("kind", LAWS)
def test_each_repetition_has_its_own_draw_and_more_examples_keep_the_earlier_ones(kind):
    data = load(config(kind), 3, 0)
    assert (len(data.y), data.n_train) == (4100, 4000)
    for other in (load(config(kind), 3, 1), load(config(kind), 4, 0)):
        assert other.X.tobytes() != data.X.tobytes()
    more = load(config(kind, n=4500), 3, 0)
    np.testing.assert_array_equal(np.delete(more.X, np.s_[4000:4500], axis=0), data.X)
    np.testing.assert_array_equal(np.delete(more.y, np.s_[4000:4500]), data.y)
    assert data.two_valued == (kind == "one_good_feature")


def test_targets_are_drawn_too():
    assert {int(OneGoodFeature(5, 0.1, 1, 1).best(0, r).argmax()) for r in range(60)} == set(range(5))
    hidden = [tuple(np.sign(HiddenBasis(4, 0.7, 1, 1).best(0, r))) for r in range(300)]
    assert len(set(hidden)) == 6 * 4  # two of four attributes, two signs each


def test_sphere_is_within_the_range_of_the_theorems():
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
def test_impossible_options_are_named(kind, change):
    with pytest.raises(ConfigError, match=f"dataset.{next(iter(change))}") as caught:
        load(config(kind, **change), 0, 0)
    assert "\n" not in str(caught.value)
