"""Distributions: draws agree with enumerations of the papers' constructions, and with closed forms."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import hadamard
from scipy.optimize import minimize
from scipy.stats import norm, t

from budgetreg.algorithms.eigenspaces import leading
from budgetreg.algorithms.tasks import compare_with_best, second_moment
from budgetreg.common.errors import ConfigError
from budgetreg.data.dataset import Dataset
from budgetreg.data.distributions import (
    BiasedCoins,
    Gaussian,
    Hadamard,
    HiddenBasis,
    OneGoodFeature,
    Spike,
    ThreeBits,
    TwoLines,
)
from budgetreg.data.registry import DatasetKind, kinds, load
from budgetreg.metering.table import Table
from budgetreg.protocol.configuration import DatasetConfig
from tests.data.written import values

GAUSSIAN: dict[str, Any] = {
    **{"d": 6, "rho": 0, "n_factors": 0, "tails": None, "support": None, "noise": 0.2, "least_weight": 0}
}
POWER_LAW: dict[str, Any] = {"d": 20, "alpha": -1, "norm": "l2", "implicit": False, "radius": 1}
OPTIONS: dict[str, dict[str, Any]] = {
    "coins": {"d": 7, "n_coins": 3, "alpha": 0.4},
    "hadamard": {"d": 8, "n_coins": 3, "alpha": 0.4},
    "spike": {"d": 5, "p": 0.2},
    "two_lines": {},
    "one_good_feature": {"d": 4, "p": 0.3},
    "three_bits": {},
    "hidden_basis": {"d": 9, "eps": 0.5},
    "sphere": {"d": 6, "noise": 0.05},
    "gaussian": GAUSSIAN,
    "power_law": POWER_LAW,
}
GAUSSIANS: list[dict[str, Any]] = [
    {},
    {"rho": 0.8},
    {"rho": -0.5, "tails": 5},
    {"n_factors": 2, "noise": 0},
    {"n_factors": 3, "rho": 0.6, "support": 2},
    {"tails": 3, "support": 1, "d": 1},
    {"support": 3, "least_weight": 0.5},
]


def config(kind: str, **changes: Any) -> DatasetConfig:
    tested = kinds()[kind].tested
    sizes = {"n": 4000, "n_test": 100} if tested else {"n": 4000}
    fraction: Any = 0.1 if tested else None
    options = sizes | OPTIONS[kind] | changes
    return DatasetConfig(kind, kind, center="none", split="official", test_fraction=fraction, options=options)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [*((kind, {}) for kind in OPTIONS), *(("gaussian", g) for g in GAUSSIANS), ("power_law", {"implicit": True})],
)
def test_draws_differ_and_more_examples_keep_the_earlier_ones(kind: str, changes: dict[str, Any]) -> None:
    data, tested = load(config(kind, **changes), 3, 0), kinds()[kind].tested
    assert (len(data.y), data.n_train) == (4000 + 100 * tested, 4000)
    assert np.array_equal(values(load(config(kind, **changes), 3, 0)), values(data))
    others = [load(config(kind, **changes), 3, 1), load(config(kind, **changes), 4, 0)]
    for other in others:
        assert values(other).tobytes() != values(data).tobytes()
    more = load(config(kind, n=4500, **({"n_test": 130} if tested else {}), **changes), 3, 0)
    kept = np.r_[:4000, 4500 : 4500 + 100 * tested]
    np.testing.assert_array_equal(values(more)[kept], values(data))
    assert len({each.fingerprint() for each in (data, more, *others)}) == 4
    np.testing.assert_array_equal(more.y[kept], data.y)
    assert data.two_valued == (kind == "one_good_feature")
    assert tested or values(data).itemsize == 1


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("coins", {"n_coins": 4}),
        *(("coins", {"alpha": alpha}) for alpha in (0, 1.5)),
        ("hadamard", {"d": 12}),
        ("hadamard", {"n_coins": 5}),
        *(("spike", {"p": p}) for p in (0.0, True)),
        ("two_lines", {"n": None}),
        *(("one_good_feature", {"p": p}) for p in (0, 0.6, "much")),
        *(("hidden_basis", {"eps": eps}) for eps in (0.2, float("nan"), True)),
        *(("sphere", {"noise": noise}) for noise in (-1, float("inf"))),
        *(("gaussian", {"rho": rho}) for rho in (1, -1, float("nan"), None, True)),
        *(("gaussian", {"tails": tails}) for tails in (0, 2, 3.5)),
        *(("gaussian", {"support": support}) for support in (0, 7)),
        *(("gaussian", {"noise": noise}) for noise in (1, -0.1, "much")),
        ("gaussian", {"n_factors": -1}),
        *(("power_law", {key: value}) for key in ("d", "n", "n_test") for value in (0, 2.5, True, None)),
        *(("power_law", {"alpha": alpha}) for alpha in (1, float("nan"), float("-inf"), "steep", None)),
        *(("power_law", {"radius": radius}) for radius in (0, 1.5, None)),
        ("power_law", {"norm": "l1"}),
        ("power_law", {"implicit": "yes"}),
    ],
)
def test_messages_name_impossible_options(kind: str, change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"dataset.{next(iter(change))}.* must be") as caught:
        load(config(kind, **change), 0, 0)
    assert "\n" not in str(caught.value)


def test_a_kind_has_the_fields_of_its_dataclass_as_options() -> None:
    kind = DatasetKind.of("spike", Spike, domain="2-ball")
    assert kind.parse({"d": 3, "p": 0.5, "n": 4}) == Spike(3, 0.5, 4)
    assert (list(kind.options), kind.domain) == (["d", "p", "n"], "2-ball")
    with pytest.raises(ConfigError, match=r"^dataset\.colour"):
        kind.parse({"d": 3, "p": 0.5, "n": 4, "colour": "red"})


Outcomes = Iterator[tuple[tuple[float, ...], float]]
"""Every example, its target last, with its probability."""


def pairs_of(distribution: BiasedCoins) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the pairs (u_i, u_{i+c}) of Theorem 4, or those of columns of Sylvester's matrix."""
    e, c = np.eye(distribution.d), distribution.n_coins
    if isinstance(distribution, Hadamard):
        H = hadamard(distribution.d) / np.sqrt(distribution.d)
        return [(H[:, i], H[:, i + c]) for i in range(c)]
    return [((e[i] + e[i + c]) / np.sqrt(2), (-e[i] + e[i + c]) / np.sqrt(2)) for i in range(c)]


def directions(distribution: Any, seed: int, repetition: int) -> Outcomes:
    """By the steps of the proof of Theorem 5."""
    if isinstance(distribution, Spike):
        yield (0,) * (distribution.d + 1), 1 - distribution.p
        yield (*np.eye(distribution.d)[distribution.spike(seed, repetition)], 0), distribution.p
        return
    for (first, second), b in zip(pairs_of(distribution), distribution.signs(seed, repetition), strict=True):
        chance = (1 + b * distribution.alpha) / 2
        for u, p in ((first, chance), (second, 1 - chance)):
            yield from (((*(sign * u), 0), p / distribution.n_coins / 2) for sign in (-1, 1) if p)


def one_good_feature(distribution: Any, seed: int, repetition: int) -> Outcomes:
    (good,) = np.flatnonzero(distribution.best(seed, repetition))
    for x in product([-1.0, 1.0], repeat=distribution.d):
        for side in (-1, 1):
            yield (*x, side * x[good]), 0.5**distribution.d * (0.5 + side * distribution.p)


def three_bits(distribution: Any, seed: int, repetition: int) -> Outcomes:
    for x in product([-1.0, 1.0], repeat=3):
        yield (*x, sum(x) / 3), 1 / 8


def hidden_basis(distribution: Any, seed: int, repetition: int) -> Outcomes:
    w = distribution.best(seed, repetition)
    for i in np.flatnonzero(w):
        yield (*(np.sign(w[i]) * np.eye(distribution.d)[i]), 1.0), 1 / np.count_nonzero(w)


KNOWN = [
    BiasedCoins(7, 3, 0.4, 20_000),
    Hadamard(8, 3, 0.4, 20_000),
    Hadamard(4, 2, 1.0, 20_000),
    TwoLines(20_000),
    Spike(5, 0.2, 20_000),
]
# With the radius of the ball, and the risk of the best regressor in it.
HARD = [
    (OneGoodFeature(4, 0.3, 20_000, 1), one_good_feature, np.inf, 1 - 4 * 0.3**2),
    (ThreeBits(20_000, 1), three_bits, np.inf, 0.0),
    (HiddenBasis(9, 0.5, 20_000, 1), hidden_basis, 1.0, (1 - 0.5) ** 2),
    (HiddenBasis(9, 0.35, 20_000, 1), hidden_basis, 1.0, (1 - 8**-0.5) ** 2),  # 1/0.35^2 = 8.2: eight attributes
]


@pytest.mark.parametrize(
    ("distribution", "outcomes"),
    [*((known, directions) for known in KNOWN), *(hard[:2] for hard in HARD)],
    ids=lambda value: getattr(value, "name", ""),
)
def test_draws_follow_the_distribution(distribution: Any, outcomes: Any) -> None:
    data = distribution.draw(1, 2)
    seen: dict[tuple[float, ...], int] = {}
    for row in np.column_stack([data.X * data.scale, data.y])[: distribution.n].round(9) + 0.0:
        seen[tuple(row)] = seen.get(tuple(row), 0) + 1
    expected = {tuple(np.round(x, 9) + 0.0): p for x, p in outcomes(distribution, 1, 2)}
    assert set(seen) == set(expected)
    for outcome, p in expected.items():
        assert abs(seen[outcome] / distribution.n - p) < 5 * np.sqrt(p * (1 - p) / distribution.n)


@pytest.mark.parametrize(("distribution", "outcomes", "radius", "best_risk"), HARD)
def test_best_regressor_and_its_risk_agree_with_a_solver(
    distribution: Any, outcomes: Any, radius: float, best_risk: float
) -> None:
    """The solver minimises the exact risk, in the ball where there is one."""
    best = np.full(3, 1 / 3) if isinstance(distribution, ThreeBits) else distribution.best(0, 3)
    examples, p = (np.array(column) for column in zip(*outcomes(distribution, 0, 3), strict=True))
    X, y = examples[:, :-1], examples[:, -1]
    assert p.sum() == pytest.approx(1)

    def risk(w: np.ndarray) -> float:
        return float(p @ np.square(X @ w - y))

    assert risk(best) == pytest.approx(best_risk, abs=1e-15)
    assert np.linalg.norm(best) <= radius + 1e-12
    inside = [] if radius == np.inf else [{"type": "ineq", "fun": lambda w: radius**2 - w @ w}]
    solution = minimize(risk, np.full(distribution.d, 0.1), method="SLSQP", constraints=inside, options={"ftol": 1e-14})
    assert solution.fun == pytest.approx(best_risk, abs=1e-6)
    np.testing.assert_allclose(solution.x, best, atol=1e-3)


def test_two_bits_of_three_have_a_risk_of_a_ninth() -> None:
    """Theorem 4, by exact conditional means for each pair of bits."""
    X = np.array(list(product([-1.0, 1.0], repeat=3)))
    y = X.mean(axis=1)
    for pair in combinations(range(3), 2):
        known = {key: y[(X[:, pair] == key).all(axis=1)] for key in product([-1.0, 1.0], repeat=2)}
        assert np.mean([np.var(values) for values in known.values()]) == pytest.approx(1 / 9)


@pytest.mark.parametrize("distribution", KNOWN, ids=lambda distribution: distribution.name)
def test_the_second_moment_is_exact_and_that_of_draws_converges(distribution: Any) -> None:
    for repetition in range(4):
        C = sum(p * np.outer(x[:-1], x[:-1]) for x, p in directions(distribution, 1, repetition))
        np.testing.assert_allclose(distribution.second_moment(1, repetition), C, atol=1e-15)
    data = distribution.draw(1, 2)
    np.testing.assert_array_equal(data.second_moment, distribution.second_moment(1, 2))
    table = Table(data.X, data.y, data.scale)
    for n in (400, distribution.n):
        assert np.abs(second_moment(table, np.arange(n)) - data.second_moment).max() < 2 / np.sqrt(n)


@pytest.mark.parametrize("distribution", KNOWN[:3], ids=lambda distribution: distribution.name)
def test_best_subspace_has_the_likelier_directions_and_each_error_costs_the_bias(distribution: Any) -> None:
    C = distribution.second_moment(0, 1)
    best = leading(C, distribution.n_coins)
    both = [
        (u, v) if b > 0 else (v, u) for (u, v), b in zip(pairs_of(distribution), distribution.signs(0, 1), strict=True)
    ]
    right = np.stack([likelier for likelier, _ in both], axis=1)
    assert compare_with_best(C, right, best)["excess_loss"] == pytest.approx(0, abs=1e-15)
    right[:, 0] = both[0][1]
    assert compare_with_best(C, right, best)["excess_loss"] == pytest.approx(distribution.alpha / distribution.n_coins)


def test_each_attribute_of_two_lines_is_a_fair_sign() -> None:
    for repetition in range(4):
        X = np.asarray(TwoLines(40_000).draw(0, repetition).X)
        assert np.abs(X.mean(axis=0)).max() < 5 / np.sqrt(len(X))
        assert abs((X[:, 0] * X[:, 1]).mean()) == 1


def test_each_draw_has_its_own_parameters() -> None:
    assert {int(Spike(4, 0.1, 1).spike(0, r)) for r in range(60)} == set(range(4))
    assert len({tuple(KNOWN[0].signs(0, r)) for r in range(80)}) == 2**3
    assert {np.sign(TwoLines(10).draw(0, r).second_moment[0, 1]) for r in range(20)} == {-1, 1}  # type: ignore[index]
    assert {int(OneGoodFeature(5, 0.1, 1, 1).best(0, r).argmax()) for r in range(60)} == set(range(5))
    hidden = [tuple(np.sign(HiddenBasis(4, 0.7, 1, 1).best(0, r))) for r in range(300)]
    assert len(set(hidden)) == 6 * 4  # two of four attributes, two signs each


def test_all_examples_train_only_where_the_second_moment_is_known() -> None:
    X, y = np.ones((3, 2)), np.zeros(3)
    Dataset("a", X, y, 1.0, 3, two_valued=False, second_moment=np.ones((2, 2)))
    with pytest.raises(ValueError, match="n_train"):
        Dataset("a", X, y, 1.0, 3, two_valued=False)
    with pytest.raises(ValueError, match="second_moment"):
        Dataset("a", X, y, 1.0, 3, two_valued=False, second_moment=np.ones(2))


def test_sphere_satisfies_the_assumptions_of_the_theorems() -> None:
    data = load(config("sphere", n=20_000, noise=0.5), 0, 0)
    np.testing.assert_allclose(np.linalg.norm(data.X, axis=1), 1)
    assert np.abs(data.X.mean(axis=0)).max() < 5 / np.sqrt(6 * 20_000)
    np.testing.assert_allclose(data.X.T @ data.X / len(data.X), np.eye(6) / 6, atol=0.01)
    assert np.abs(data.y).max() == 1
    quiet = load(config("sphere", noise=0.05), 0, 0)
    w, *_ = np.linalg.lstsq(quiet.X, quiet.y, rcond=None)
    assert np.linalg.norm(w) == pytest.approx(1, abs=0.02)
    assert np.std(quiet.X @ w - quiet.y) == pytest.approx(0.05, rel=0.1)


def gaussian(**changes: Any) -> Gaussian:
    return Gaussian(**{"n": 4000, "n_test": 100} | GAUSSIAN | changes)


def covariance(distribution: Gaussian, seed: int, repetition: int) -> np.ndarray:
    common, unique = distribution.loadings(seed, repetition)
    apart = np.abs(np.subtract.outer(np.arange(distribution.d), np.arange(distribution.d)))
    return common.T @ common + np.outer(unique, unique) * float(distribution.rho) ** apart


@given(
    d=st.integers(1, 12),
    rho=st.floats(-0.99, 0.99),
    n_factors=st.integers(0, 4),
    noise=st.floats(0, 0.99),
    seed=st.integers(0, 99),
)
def test_attributes_and_target_have_variance_1_with_the_share_of_noise(
    d: int, rho: float, n_factors: int, noise: float, seed: int
) -> None:
    distribution = gaussian(d=d, rho=rho, n_factors=n_factors, noise=noise)
    C, w = covariance(distribution, seed, 1), distribution.target(seed, 1)
    np.testing.assert_allclose(C.diagonal(), 1)
    assert w @ C @ w == pytest.approx(1 - noise)
    joint = distribution.covariance(seed, 1)
    assert joint is not None
    np.testing.assert_allclose(joint, np.block([[C, (C @ w)[:, None]], [C @ w, np.ones(1)]]))
    assert replace(distribution, tails=5).covariance(seed, 1) is None


@pytest.mark.parametrize("changes", GAUSSIANS)
def test_gaussian_draws_follow_the_distribution(changes: dict[str, Any]) -> None:
    """Second moments are within five standard errors, and the residual of w* is noise."""
    n = 100_000
    distribution = gaussian(n=n, **changes)
    data = distribution.draw(1, 2)
    X, y, tolerance = data.X[:n], data.y[:n], 5 * (8 if distribution.tails else 2) / np.sqrt(n)
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=tolerance)
    np.testing.assert_allclose(X.T @ X / n, covariance(distribution, 1, 2), atol=tolerance)
    residual = y - X @ distribution.target(1, 2)
    assert np.square(residual).mean() == pytest.approx(distribution.noise, abs=tolerance)
    np.testing.assert_allclose(residual @ X / n, 0, atol=tolerance)
    assert np.square(y).mean() == pytest.approx(1, abs=tolerance)
    test_residual = data.y[n:] - data.X[n:] @ distribution.target(1, 2)
    assert distribution.noise == 0 or np.abs(test_residual - residual[:100]).min() > 1e-9
    assert (data.n_train, len(data.y), data.scale, data.two_valued) == (n, n + 100, 1.0, False)


def test_the_least_weight_keeps_those_that_count_away_from_0() -> None:
    """Their sizes are in proportion to ``least + (1 - least) |z|``, z from N(0, 1)."""
    least: dict[float, list[float]] = {share: [] for share in (0, 0.5, 1)}
    for share, ratios in least.items():
        for repetition in range(200):
            w = np.abs(gaussian(d=40, support=8, least_weight=share).target(1, repetition))
            assert np.count_nonzero(w) == 8
            ratios.append(w[w > 0].min() / w.max())
    assert np.median(least[0]) < 0.1
    assert min(least[0.5]) > 0.5 / (0.5 + 0.5 * 4)
    np.testing.assert_allclose(least[1], 1)


def test_tails_follow_students_t() -> None:
    """The fraction of values beyond four standard deviations agrees."""
    for tails, chance in ((None, norm.sf(4)), (3, t.sf(4 * np.sqrt(3), 3)), (8, t.sf(4 * np.sqrt(8 / 6), 8))):
        X = gaussian(tails=tails, n=50_000).draw(0, 0).X
        assert abs((np.abs(X) > 4).mean() - 2 * chance) < 5 * np.sqrt(2 * chance / X.size)


def test_a_sparse_target_has_random_supports_of_the_given_size() -> None:
    supports = {tuple(np.flatnonzero(gaussian(support=2).target(0, r))) for r in range(200)}
    assert {len(support) for support in supports} == {2}
    assert len(supports) == 15
    assert gaussian(support=6).target(0, 0).all() and gaussian().target(0, 0).all()


def test_the_name_identifies_the_distribution_and_0_has_one_name() -> None:
    assert gaussian(rho=-0.0, noise=0.0).name == gaussian(rho=0.0, noise=0).name == "gaussian_d6_noise0"
    whole = gaussian(rho=0.9, n_factors=2, tails=3, support=4, n=1)
    assert whole.name == "gaussian_d6_rho0.9_factors2_t3_support4_noise0.2"
