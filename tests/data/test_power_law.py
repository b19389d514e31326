"""The synthetic data of Kukliansky & Shamir."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgetreg.data import dataset as data_values
from budgetreg.data import distributions as module
from budgetreg.data.dataset import Dataset, as_values
from budgetreg.data.distributions import PowerLaw
from budgetreg.data.registry import kinds
from tests.data.written import values

OPTIONS: dict[str, Any] = {"d": 20, "alpha": -1, "norm": "l2", "n": 4000, "n_test": 100, "implicit": False}


def draw(seed: int = 0, repetition: int = 0, **changes: Any) -> Dataset:
    return PowerLaw(**OPTIONS | changes).draw(seed, repetition)


@given(d=st.integers(1, 300), alpha=st.floats(-5, 0), norm=st.sampled_from(["l2", "linf"]))
def test_means_follow_the_power_law_and_have_norm_1(d: int, alpha: float, norm: str) -> None:
    u = PowerLaw(d, alpha, norm, 1, 1).means()
    assert np.allclose(u, u[0] * np.arange(1, d + 1) ** alpha)
    assert np.isclose(np.sqrt((u**2).sum()) if norm == "l2" else u.max(), 1)


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("implicit", [False, True])
def test_the_radius_scales_the_means_of_the_coins(norm: str, implicit: bool) -> None:
    whole, half = (PowerLaw(**OPTIONS | {"norm": norm, "radius": radius}) for radius in (1, 0.5))
    assert np.allclose(half.means(), whole.means() / 2)
    X = as_values(draw(norm=norm, implicit=implicit, radius=0.5).X).rows(np.arange(4000))
    assert np.abs(X.mean(axis=0) - half.means()).max() < 5 * 0.5 / np.sqrt(len(X))


def test_a_radius_of_1_changes_neither_data_nor_identity() -> None:
    kind, unnamed = kinds()["power_law"], {"name": "power_law", "kind": "power_law", **OPTIONS}
    assert np.array_equal(draw(radius=1.0).X, draw().X)
    assert kind.identity(kind_section(unnamed | {"radius": 1.0})) == kind.identity(kind_section(unnamed))
    assert kind.identity(kind_section(unnamed | {"radius": 0.5}))["radius"] == 0.5


def kind_section(options: dict[str, Any]) -> dict[str, Any]:
    return {"center": "none", "split": "official", "test_fraction": 0.1, **options}


@pytest.mark.parametrize(
    ("norm", "rho"),
    [
        ("l2", {0: 1, -0.5: 0.909, -1: 0.552, -2: 0.056}),
        ("linf", {0: 1, -0.5: 0.0866, -1: 0.0136, -2: 0.0033}),
    ],
)
def test_second_moments_have_the_published_ratios(norm: str, rho: dict[float, float]) -> None:
    """|E x^2|_{1/2} / (d |E x^2|_1) for ridge, |E x^2|_1 / (d |E x^2|_inf) for lasso, at d = 500."""
    for alpha, published in rho.items():
        u = PowerLaw(500, alpha, norm, 1, 1).means()
        ratio = np.sqrt(u).sum() ** 2 / (500 * u.sum()) if norm == "l2" else u.sum() / (500 * u.max())
        assert ratio == pytest.approx(published, rel=0.015)


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("implicit", [False, True])
def test_attributes_are_independent_coins_with_the_means(norm: str, implicit: bool) -> None:
    data = draw(norm=norm, implicit=implicit)
    u = PowerLaw(**OPTIONS | {"norm": norm}).means()
    X = as_values(data.X).rows(np.arange(4000))
    assert X.dtype == np.uint8
    assert set(np.unique(X)) <= {0, 1}
    assert np.abs(X.mean(axis=0) - u).max() < 5 * 0.5 / np.sqrt(len(X))
    assert np.abs(np.corrcoef(X[:, u < 1].T) - np.eye((u < 1).sum())).max() < 5 / np.sqrt(len(X))


@pytest.mark.parametrize(
    ("norm", "implicit", "weights"), [("l2", False, {-1, 1}), ("linf", False, {-1, 0, 1}), ("l2", True, {-1, 1})]
)
def test_targets_are_linear_with_drawn_weights(norm: str, implicit: bool, weights: set[int]) -> None:
    data = draw(norm=norm, implicit=implicit)
    X = values(data).astype(float)
    w, *_ = np.linalg.lstsq(X, data.y, rcond=None)
    assert np.array_equal(X @ np.round(w), data.y)
    assert set(np.round(w)) == weights
    assert (data.scale, data.n_train, len(data.y), data.two_valued) == (1, 4000, 4100, False)


def test_targets_of_large_implicit_tables_are_cached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    computed = draw(implicit=True)
    monkeypatch.setattr(module, "_MOST_UNCACHED", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert np.array_equal(draw(implicit=True).y, computed.y)
    (path,) = tmp_path.rglob("*.npy")
    assert np.array_equal(np.load(path), computed.y)
    path.write_bytes(path.read_bytes()[:-8])
    assert np.array_equal(draw(implicit=True).y, computed.y)


def test_lasso_weights_have_the_published_frequencies() -> None:
    data = draw(norm="linf", alpha=0, d=2000, n=1, n_test=1)
    assert np.array_equal(data.X, np.ones((2, 2000)))  # degenerate, and allowed
    # x = 1 with certainty, so that y = sum(w*) has mean 0 and variance 0.3 d.
    sums = [draw(repetition=r, norm="linf", alpha=0, d=2000, n=1, n_test=1).y[0] for r in range(200)]
    assert np.var(sums) == pytest.approx(0.3 * 2000, rel=0.4)
    assert abs(np.mean(sums)) < 5 * np.sqrt(600 / 200)


def test_weights_that_cancel_are_drawn_again() -> None:
    for repetition in range(30):  # for about every second pair of weights all targets would be 0
        assert draw(repetition=repetition, norm="linf", alpha=0, d=2, n=3, n_test=1).y.all()


def test_drawing_in_blocks_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = draw(n=100)
    monkeypatch.setattr(data_values, "BLOCK_ROWS", 7)
    blocks = draw(n=100)
    assert np.array_equal(whole.X, blocks.X)
    assert np.array_equal(whole.y, blocks.y)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"alpha": -1}, "power_law_l2_d20_alpha-1"),
        ({"alpha": -0.5}, "power_law_l2_d20_alpha-0.5"),
        ({"alpha": 0}, "power_law_l2_d20_alpha0"),
        ({"alpha": -0.0}, "power_law_l2_d20_alpha0"),
        ({"radius": 1.0}, "power_law_l2_d20_alpha-1"),
        ({"implicit": True}, "power_law_l2_d20_alpha-1_implicit"),
        ({"radius": 0.5}, "power_law_l2_d20_alpha-1_radius0.5"),
        ({"radius": 0.5, "implicit": True}, "power_law_l2_d20_alpha-1_radius0.5_implicit"),
    ],
)
def test_the_name_identifies_the_distribution(changes: dict[str, Any], name: str) -> None:
    assert draw(n=1, n_test=1, **changes).name == name
