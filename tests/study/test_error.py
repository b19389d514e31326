"""Estimates of the error without complete rows, their intervals, and forecasts for more money."""

from dataclasses import replace
from io import StringIO
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import budgetreg
from budgetreg.common.errors import DataError
from budgetreg.figures.tables import estimates_table
from budgetreg.study import error as module
from budgetreg.study.error import (
    ErrorEstimate,
    Estimates,
    Interval,
    Part,
    combined,
    corrected,
    error_ratios,
    estimate_error,
    forecast,
    losses,
    unbiased,
)
from budgetreg.study.model import JointModel

D, K = 6, 3


def truth(seed: int, n: int, factors: int = 2, noise: float = 0.3) -> tuple[JointModel, np.ndarray, np.ndarray]:
    """Normal attributes with common factors, the model that they follow, and examples of it."""
    rng = np.random.default_rng(seed)
    loadings, w = rng.standard_normal((factors, D)), rng.standard_normal(D)
    S, mean = loadings.T @ loadings + np.eye(D), rng.standard_normal(D)
    X = mean + rng.standard_normal((n, factors)) @ loadings + rng.standard_normal((n, D))
    y = X @ w + 2 + np.sqrt(noise) * rng.standard_normal(n)
    return JointModel(mean, S, w, 2.0, noise, S @ w), X, y


def holes(X: np.ndarray, seed: int, k: int = K) -> np.ndarray:
    rank = np.random.default_rng(seed).random(X.shape).argsort(axis=1).argsort(axis=1)
    return np.where(rank < k, X, np.nan)


def other_model(seed: int) -> JointModel:
    model, _, _ = truth(seed, 1)
    return model


def test_the_moment_estimate_is_unbiased_over_all_subsets() -> None:
    _, X, y = truth(0, 7)
    wrong = other_model(1)
    subsets = list(combinations(range(D), K))
    rows = np.full((len(subsets), *X.shape), np.nan)
    for values, subset in zip(rows, subsets, strict=True):
        values[:, subset] = X[:, subset]
    parts = [Part(wrong, rows.reshape(-1, D)[i::2], np.tile(y, len(subsets))[i::2]) for i in (0, 1)]
    assert unbiased(parts).mean() == pytest.approx(np.square(y - wrong.b - X @ wrong.w).mean(), rel=1e-9)


def test_of_complete_rows_all_losses_are_the_loss() -> None:
    _, X, y = truth(0, 7)
    wrong = other_model(1)
    loss = losses(Part(wrong, X, y))
    for estimate in (loss.bought, loss.given, unbiased([Part(wrong, X, y)])):
        np.testing.assert_allclose(estimate, np.square(y - wrong.b - X @ wrong.w), rtol=1e-6, atol=1e-9)
    assert not loss.unseen.any()


def test_under_the_right_model_the_losses_are_right_on_average() -> None:
    model, X, y = truth(2, 4000)
    loss = losses(Part(model, holes(X, 0), y))
    assert loss.given.mean() == pytest.approx(model.noise, rel=0.05)
    assert loss.bought.mean() > 2 * model.noise


def test_products_correct_a_common_factor_that_is_not_there() -> None:
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((800, D)), np.ones(D)
    y = X @ w + rng.standard_normal(800)
    spurious = np.eye(D) + 0.4 * (1 - np.eye(D))
    model = JointModel(np.zeros(D), spurious, w, 0.0, 13.0, w)  # of a target with variance 7
    (part,) = corrected([Part(model, holes(X, 1), y)])
    off_diagonal = ~np.eye(D, dtype=bool)
    assert abs(part.model.covariance[off_diagonal]).mean() < 0.15  # from 0.4
    np.testing.assert_allclose(np.diagonal(part.model.covariance), 1.0)


def test_products_confirm_the_right_model() -> None:
    model, X, y = truth(3, 2000)
    (part,) = corrected([Part(model, holes(X, 1), y)])
    np.testing.assert_allclose(part.model.covariance, model.covariance, atol=0.12 * model.covariance.max())


def test_the_moment_estimate_counts_for_more_the_less_it_varies() -> None:
    """A model with too much noise expects too large a loss, which precise moments correct."""
    model, X, y = truth(3, 12000)
    noisy = replace(model, noise=model.noise + float(np.var(y)))
    values, reference = holes(X, 1, 5), np.square(y - y.mean())
    shares = []
    for n in (300, 12000):
        part = Part(noisy, values[:n], y[:n])
        expected, moments = losses(corrected([part])[0]).given.mean(), unbiased([part]).mean()
        (ratio,) = error_ratios(noisy, ~np.isnan(values[:n]), float(np.var(y)), [0.8])
        error = combined([part], reference[:n], float(ratio)).complete.estimate
        shares.append((error * reference[:n].mean() - expected) / (moments - expected))
    few, many = shares
    assert 0 < few < many - 0.1
    assert many < 0.4


def test_inconsistent_covariances_explain_at_most_the_target() -> None:
    """Covariances that few examples have corrected may be almost singular where attributes and target are shared."""
    model, X, y = truth(3, 12000)
    loss = losses(corrected([Part(model, holes(X, 1, 5)[:60], y[:60])])[0])
    assert loss.given.mean() < np.var(y)


def test_intervals_are_bounded() -> None:
    wide = Interval.around(0.9, 2.0)
    assert 0 < wide.low < wide.estimate < wide.high == 1.2
    assert Interval.around(1.5, 0.1).estimate == 1.2
    assert Interval.around(0.4, 0.1).relative == pytest.approx(0.1)


def test_each_fold_is_judged_by_a_model_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    model, X, y = truth(4, 300, noise=10.0)
    values, fits = holes(X, 2), []
    values[:20] = np.nan
    y[20:30] = np.nan

    def recorded(values: np.ndarray, targets: np.ndarray, **_: object) -> JointModel:
        fits.append(values)
        return model

    monkeypatch.setattr(module, "learn", recorded)
    estimate, learned = estimate_error(values, y, seed=0)
    assert learned is model
    assert [len(fit) for fit in fits] == [300, *[300 - 270 // 5] * 5]
    relative = model.noise / np.nanvar(y)
    assert estimate.complete.low < relative < estimate.complete.high
    assert estimate.complete.estimate == pytest.approx(relative, rel=0.4)
    bought = np.nanmean(np.square(y - model.predict(values))[20:]) / np.nanvar(y)
    assert estimate.as_bought.estimate == pytest.approx(bought, rel=0.05)
    assert estimate_error(values, y, seed=0)[0] == estimate


def test_too_few_examples_are_reported() -> None:
    X = np.full((30, D), np.nan)
    X[:9, 0] = 1.0
    with pytest.raises(DataError, match="at least 10 examples with a target and a value are needed"):
        estimate_error(X, np.arange(30.0), seed=0)
    with pytest.raises(DataError, match="the targets of all examples with a value are equal"):
        estimate_error(np.ones((30, D)), np.ones(30), seed=0)


@pytest.mark.slow
def test_the_error_of_a_learned_model_is_in_its_interval() -> None:
    _, X, y = truth(5, 1200, noise=3.0)
    values = holes(X[:200], 3)
    estimate, model = estimate_error(values, y[:200], seed=0)
    true = np.square(y[200:] - model.predict(X[200:])).mean() / y.var()
    assert estimate.complete.low < true < estimate.complete.high


def test_plenty_of_examples_are_judged_by_fewer_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    model, X, y = truth(4, 1700, noise=3.0)
    fits: list[int] = []

    def recorded(values: np.ndarray, targets: np.ndarray, **_: object) -> JointModel:
        fits.append(len(values))
        return model

    monkeypatch.setattr(module, "learn", recorded)
    estimate, _ = estimate_error(holes(X, 2), y, seed=0)
    assert fits == [1700, *[1700 - 340] * 3]
    assert estimate.judged == 3 * 340
    assert estimate.complete.low < model.noise / y.var() < estimate.complete.high


N = 60
NOW = Interval(0.5, 0.4, 0.625)
EQUAL = JointModel(np.zeros(D), np.eye(D) + 0.3, np.ones(D), 0.0, 4.0)
PRICES, ONES = np.array([1.0, 2.0, 0.5, 0.0, 3.0, 1.0]), np.ones(D)
ALONE, GROUPS = np.arange(D), np.array([0, 1, 0, 3, 4, 5])


def few_known(k: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Return values of k of the attributes of each example, and targets."""
    rng = np.random.default_rng(0)
    return holes(rng.standard_normal((N, D)), 0, k), 3 * rng.standard_normal(N)


def forecasts(spendings: list[float], error: Interval = NOW, **changes: np.ndarray) -> list[Interval]:
    values, targets = few_known()
    options = {"prices": ONES, "heads": ALONE, "closed": np.zeros(values.shape, dtype=bool), **changes}
    return forecast(EQUAL, values, targets, error, spendings, seed=0, **options)


def bought(spending: float, heads: np.ndarray) -> np.ndarray:
    known = ~np.isnan(few_known()[0])
    prices = np.broadcast_to(PRICES, known.shape)
    order = module._order(known, prices, heads, np.random.default_rng(1))
    return module._bought(order, prices, heads, spending, known.shape) & ~known


@pytest.mark.parametrize("spending", [0.0, 7.5, 1e6])
def test_no_more_is_spent_and_groups_are_bought_whole(spending: float) -> None:
    missing = np.isnan(few_known()[0])
    for heads in (ALONE, GROUPS):
        added = bought(spending, heads)
        units = np.stack([added[:, heads == head].any(axis=1) for head in range(D)], axis=1)
        assert (added == (units[:, heads] & missing)).all()
        assert (units @ PRICES).sum() <= spending
        if spending < 100:
            assert (units @ PRICES).sum() > spending - PRICES.max()
        assert added[:, 3].sum() == missing[:, 3].sum()  # it is free


def test_examples_with_least_come_first() -> None:
    known = np.zeros((10, D), dtype=bool)
    known[:5, :3] = True
    order = module._order(known, np.broadcast_to(ONES, known.shape), ALONE, np.random.default_rng(0))
    assert (np.bincount(order[:15, 0], minlength=10) == [0] * 5 + [3] * 5).all()


def test_more_money_never_makes_the_forecast_worse() -> None:
    nothing, *later = forecasts([0.0, 20.0, 80.0, 1e4])
    assert nothing.estimate == pytest.approx(NOW.estimate)
    assert nothing.high / nothing.low == pytest.approx(NOW.high / NOW.low, rel=0.2)
    estimates = [interval.estimate for interval in later]
    assert estimates == sorted(estimates, reverse=True)
    assert estimates[-1] < NOW.estimate
    assert all(interval.low < interval.estimate < interval.high for interval in later)


@pytest.mark.parametrize("heads", [ALONE, GROUPS])
def test_what_is_excluded_is_not_bought(heads: np.ndarray) -> None:
    excluded = np.zeros((N, D), dtype=bool)
    excluded[:, [2, 4]] = excluded[::3] = True

    def ends(closed: np.ndarray) -> list[float]:
        return [each.estimate for each in forecasts([0.0, 1e4], heads=heads, closed=closed)]

    nothing = ends(np.ones_like(excluded))
    assert nothing[0] == nothing[1] == pytest.approx(NOW.estimate)
    assert ends(np.zeros_like(excluded))[1] < ends(excluded)[1] < NOW.estimate


def test_the_curve_goes_through_the_error_now_and_has_a_floor() -> None:
    known = ~np.isnan(few_known()[0])
    half, now, twice, ever = error_ratios(EQUAL, known, 10.0, [0.5, 1.0, 2.0, 1e9])
    assert now == pytest.approx(1.0)
    assert half > now > twice > ever > 0.25
    assert half < 2.0
    (whole,) = error_ratios(EQUAL, known, 10.0, [np.ones_like(known)])
    assert now > whole > ever


def test_ten_times_as_many_examples_count_ten_times() -> None:
    known = ~np.isnan(few_known()[0])
    tiled, times = error_ratios(EQUAL, known, 10.0, [np.tile(known, (10, 1)), 10.0])
    assert tiled == pytest.approx(times, rel=0.02)
    assert times < 0.9


def test_an_error_of_the_estimate_is_not_magnified() -> None:
    """The forecast is proportional to the error now, as that is only estimated."""
    low, high = (forecasts([80.0], Interval.around(error, 0.1))[0].estimate for error in (0.4, 0.8))
    assert high == pytest.approx(2 * low)


def test_nothing_known_is_no_ground_for_a_forecast() -> None:
    values = np.full((N, D), np.nan)
    open_cells = np.zeros(values.shape, dtype=bool)
    assert forecast(EQUAL, values, np.arange(float(N)), NOW, [5.0], ONES, ALONE, closed=open_cells, seed=0) == [NOW]


@pytest.mark.usefixtures("short_chains")
def test_a_study_forecasts_no_more_than_is_left_to_buy(tmp_path: Path) -> None:
    """Only examples with a target count. A panel has one price, and excluded or unavailable values cost nothing."""
    rng = np.random.default_rng(2)
    n, columns = 30, ["a", "b", "c", "d"]
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=columns, index=[f"p{i}" for i in range(n)])
    y = {name: float(value) for name, value in (X.sum(axis=1) + rng.normal(size=n)).items() if name != "p0"}
    study = budgetreg.Study.create(
        tmp_path / "trial.db",
        examples=list(X.index),
        targets=y,
        attributes=columns,
        costs={"a": 3, "b": 2, "c": 5, "d": 5},
        groups={"c": "panel", "d": "panel"},
    )
    paid = [(name, key, X.loc[name, key]) for name in X.index[1:] for key in columns[:3]]
    some = "(attribute != 'b' or example > 'p4') and (attribute != 'c' or example != 'p9')"
    study.tell(pd.DataFrame(paid, columns=["example", "attribute", "value"]).query(some))
    lost = study.table().set_index("example")["b"].isna()
    without_b = [name for name in lost.index[lost] if name != "p0"]
    study.tell(pd.DataFrame([(without_b[0], "b", "unavailable")], columns=["example", "attribute", "value"]))
    study.estimates()  # an exclusion changes what they say
    study.exclude(examples=without_b[1:2])
    left = 2 * (len(without_b) - 2) + 5  # b, and the panel of p9: d of the others is paid for, and p0 has no target
    assert [spending for spending, _ in study.estimates().further] == [left]
    most, more = study.forecast([left, 10 * left])
    assert most == more
    rest = X.loc[list(y), columns].reset_index(names="example").melt("example", var_name="attribute")
    study.tell(rest[~rest["example"].isin(["p9", *without_b[:2]])])
    assert [spending for spending, _ in study.estimates().further] == [5]


def test_a_table_of_few_judged_examples_says_so() -> None:
    interval = Interval.around(0.5, 0.1)
    for judged, said in ((49, True), (50, False)):
        out = StringIO()
        estimates = Estimates(1.0, ErrorEstimate(interval, interval, judged), [])
        Console(file=out, width=80).print(estimates_table(estimates, "EUR"))
        assert (f"Only {judged} examples could be judged." in out.getvalue()) == said


@pytest.mark.slow
def test_workers_change_no_estimate() -> None:
    _, X, y = truth(6, 40, noise=3.0)
    (estimate, model), (same, again) = (estimate_error(holes(X, 2), y, seed=0, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert same == estimate
    np.testing.assert_array_equal(again.w, model.w)
