"""The linear target over correlated attributes: its moments agree with closed forms."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, t

from budgetreg.common.errors import ConfigError
from budgetreg.data.distributions import Gaussian
from budgetreg.data.registry import load
from budgetreg.protocol.configuration import DatasetConfig

OPTIONS: dict[str, Any] = {
    **{"d": 6, "n": 4000, "n_test": 100, "rho": 0, "n_factors": 0, "tails": None, "support": None, "noise": 0.2}
}
OPTIONS_TRIED: list[dict[str, Any]] = [
    {},
    {"rho": 0.8},
    {"rho": -0.5, "tails": 5},
    {"n_factors": 2, "noise": 0},
    {"n_factors": 3, "rho": 0.6, "support": 2},
    {"tails": 3, "support": 1, "d": 1},
    {"support": 3, "least_weight": 0.5},
]


def gaussian(**changes: Any) -> Gaussian:
    return Gaussian(**OPTIONS | changes)


def config(**changes: Any) -> DatasetConfig:
    options = OPTIONS | changes
    return DatasetConfig("gaussian", "gaussian", center="none", split="official", test_fraction=0.1, options=options)


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
@settings(max_examples=60)
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


def test_the_covariance_is_declared_of_normal_attributes_alone() -> None:
    assert gaussian(tails=5).covariance(1, 2) is None


@pytest.mark.parametrize("changes", OPTIONS_TRIED)
def test_draws_follow_the_distribution(changes: dict[str, Any]) -> None:
    """Second moments are within five standard errors, and the residual of w* is noise."""
    distribution = gaussian(n=100_000, **changes)
    data = distribution.draw(1, 2)
    n = distribution.n
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


@pytest.mark.parametrize("changes", OPTIONS_TRIED)
def test_repetitions_differ_and_more_examples_keep_the_earlier_ones(changes: dict[str, Any]) -> None:
    small = {"n": 40, "n_test": 10} | changes
    data = load(config(**small), 3, 0)
    for other in (load(config(**small), 3, 1), load(config(**small), 4, 0)):
        assert other.X.tobytes() != data.X.tobytes()
    more = load(config(**small | {"n": 55, "n_test": 13}), 3, 0)
    kept = np.r_[:40, 55:65]
    np.testing.assert_array_equal(more.X[kept], data.X)
    np.testing.assert_array_equal(more.y[kept], data.y)
    assert not np.isin(data.y[40:], data.y[:40]).any()


def test_the_name_identifies_the_distribution_and_0_has_one_name() -> None:
    assert gaussian(rho=-0.0, noise=0.0).name == gaussian(rho=0.0, noise=0).name == "gaussian_d6_noise0"
    whole = gaussian(rho=0.9, n_factors=2, tails=3, support=4, n=1)
    assert whole.name == "gaussian_d6_rho0.9_factors2_t3_support4_noise0.2"


@pytest.mark.parametrize(
    "change",
    [
        {"d": 0},
        {"d": 2.5},
        {"n": 0},
        {"n": None},
        {"n_test": 0},
        {"rho": 1},
        {"rho": -1},
        {"rho": float("nan")},
        {"rho": None},
        {"rho": True},
        {"n_factors": -1},
        {"n_factors": None},
        {"tails": 2},
        {"tails": 3.5},
        {"tails": 0},
        {"support": 7},
        {"support": 0},
        {"noise": 1},
        {"noise": -0.1},
        {"noise": "much"},
    ],
)
def test_messages_name_impossible_options(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"dataset.{next(iter(change))}.* must be") as caught:
        load(config(**change), 0, 0)
    assert "\n" not in str(caught.value)
