from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import budgetreg
from budgetreg.data.dataset import Groups
from budgetreg.figures.tables import estimates_table
from budgetreg.study.error import ErrorEstimate, Interval, LearningCurve
from budgetreg.study.forecast import Estimates, _bought, _order, forecast
from budgetreg.study.model import JointModel

D, N = 5, 60
NOW = Interval(0.5, 0.4, 0.625)
MODEL = JointModel(np.zeros(D), np.eye(D) + 0.3, np.ones(D), 0.0, 4.0)
PRICES = np.array([1.0, 2.0, 0.5, 0.0, 3.0])
GROUPS = Groups((0, 1, 0, 3, 4))


def table(k: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    return np.where(rng.random((N, D)).argsort(axis=1) < k, X, np.nan), rng.standard_normal(N)


def bought(spending: float, groups: Groups | None = None, per_example: int | None = None) -> np.ndarray:
    known = ~np.isnan(table()[0])
    order = _order(known, PRICES, groups, per_example, np.random.default_rng(1))
    return _bought(known, order, PRICES, groups, spending) & ~known


@pytest.mark.parametrize("spending", [0.0, 0.4, 7.5, 60.0, 1e6])
def test_no_more_is_spent(spending: float) -> None:
    added = bought(spending)
    assert (added @ PRICES).sum() <= spending
    if spending < 100:
        assert (added @ PRICES).sum() > spending - PRICES.max()
    assert added[:, 3].sum() == np.isnan(table()[0][:, 3]).sum()


def test_groups_are_bought_whole_and_examples_have_a_limit() -> None:
    known = ~np.isnan(table()[0])
    added = bought(1e6, GROUPS)
    assert (known | added).all()
    some = bought(25.0, GROUPS)
    assert ((some | known)[some[:, 0] | some[:, 2]][:, [0, 2]]).all()
    heads = some[:, 0] | some[:, 2], some[:, 1], some[:, 4]
    assert sum(head.sum() * price for head, price in zip(heads, (1.0, 2.0, 3.0), strict=True)) <= 25.0
    limited = bought(1e6, None, 3)
    assert ((known | limited).sum(axis=1) == 3).all()


def test_examples_with_least_come_first() -> None:
    known = np.zeros((10, D), dtype=bool)
    known[:5, :3] = True
    order = _order(known, np.ones(D), None, None, np.random.default_rng(0))
    assert (order[:15, 0] >= 5).all()
    assert (np.bincount(order[:15, 0])[5:] == 3).all()


def test_more_money_never_makes_the_forecast_worse() -> None:
    values, targets = table()
    targets *= 3
    nothing, *later = forecast(MODEL, values, targets, NOW, [0.0, 20.0, 80.0, 1e4], np.ones(D))
    assert nothing.estimate == pytest.approx(NOW.estimate)
    assert nothing.high / nothing.low == pytest.approx(NOW.high / NOW.low, rel=0.2)
    estimates = [interval.estimate for interval in later]
    assert estimates == sorted(estimates, reverse=True)
    assert estimates[-1] < NOW.estimate
    assert all(interval.low < interval.estimate < interval.high for interval in later)


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_what_is_excluded_is_not_bought(groups: Groups | None) -> None:
    values, targets = table()
    excluded = np.zeros(values.shape, dtype=bool)
    excluded[:, [2, 4]] = excluded[::3] = True

    def ends(excluded: np.ndarray) -> tuple[float, float]:
        before, after = forecast(
            MODEL, values, targets * 3, NOW, [0.0, 1e4], np.ones(D), groups=groups, excluded=excluded
        )
        return before.estimate, after.estimate

    nothing = ends(np.ones_like(excluded))
    assert nothing[0] == nothing[1] == pytest.approx(NOW.estimate)
    assert ends(np.zeros_like(excluded))[1] < ends(excluded)[1] < NOW.estimate


def test_the_curve_goes_through_the_error_now_and_has_a_floor() -> None:
    values, _ = table()
    known = ~np.isnan(values)
    curve = LearningCurve(MODEL, known, 10.0)
    half, now, twice, ever = curve.ratios([0.5, 1.0, 2.0, 1e9])
    assert now == pytest.approx(1.0)
    assert half > now > twice > ever > 0.25
    assert half < 2.0
    whole = curve.ratios([np.ones_like(known)])[0]
    assert now > whole > ever


def test_ten_times_as_many_examples_count_ten_times() -> None:
    known = ~np.isnan(table()[0])
    curve = LearningCurve(MODEL, known, 10.0)
    tiled, times = curve.ratios([np.tile(known, (10, 1)), 10.0])
    assert tiled == pytest.approx(times, rel=0.02)
    assert times < 0.9


def test_an_error_of_the_estimate_is_not_magnified() -> None:
    """The forecast is proportional to the error now, as that is only estimated."""
    values, targets = table()
    low, high = (
        forecast(MODEL, values, targets * 3, Interval.around(error, 0.1), [80.0], np.ones(D))[0].estimate
        for error in (0.4, 0.8)
    )
    assert high == pytest.approx(2 * low)


def test_nothing_known_is_no_ground_for_a_forecast() -> None:
    values = np.full((N, D), np.nan)
    assert forecast(MODEL, values, np.arange(float(N)), NOW, [5.0, 10.0], np.ones(D)) == [NOW, NOW]


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
    study.tell(
        pd.DataFrame(paid, columns=["example", "attribute", "value"]).query("attribute != 'b' or example > 'p4'")
    )
    lost = study.table().set_index("example")["b"].isna()
    without_b = [name for name in lost.index[lost] if name != "p0"]
    study.tell(pd.DataFrame([(without_b[0], "b", "unavailable")], columns=["example", "attribute", "value"]))
    study.exclude(examples=without_b[1:2])
    left = 2 * (len(without_b) - 2) + 5 * (n - 2)  # b, and d of the panels; p0 has no target
    assert [spending for spending, _ in study.estimates().further] == [study.bill().total / 2, left]
    most, more = study.forecast([left, 10 * left])
    assert most == more
    rest = X.loc[list(y), columns].reset_index(names="example").melt("example", var_name="attribute")
    study.tell(rest[~rest["example"].isin(without_b[:2])])
    assert [spending for spending, _ in study.estimates().further] == [5]  # d of the example without b


def test_a_table_of_few_judged_examples_says_so() -> None:
    interval = Interval.around(0.5, 0.1)
    for judged, said in ((49, True), (50, False)):
        out = StringIO()
        estimates = Estimates(1.0, ErrorEstimate(interval, interval, judged), [])
        Console(file=out, width=80).print(estimates_table(estimates, "EUR"))
        assert (f"Only {judged} examples could be judged." in out.getvalue()) == said
