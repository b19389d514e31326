"""Claims and savings, on curves made up so that the answer is known."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from budgetreg.analysis.bootstrap import FEWEST, basic, of_largest, of_share, weights
from budgetreg.analysis.claims import judge, parse
from budgetreg.analysis.comparisons import Means
from budgetreg.analysis.findings import MONEY_COLUMNS, SAVING_COLUMNS, savings_csv
from budgetreg.analysis.savings import savings
from budgetreg.errors import ConfigError
from budgetreg.results.series import Series

EXAMPLES = np.array([10, 20, 50, 100, 200, 500, 1000])
REPETITIONS = 20


def series(
    algo: str,
    curve: Callable[[np.ndarray], np.ndarray],
    *,
    noise: float = 0.01,
    k: int = 4,
    shared: int = 1,
    repetitions: int = REPETITIONS,
    core: str = "partial",
    examples: np.ndarray = EXAMPLES,
    **keys: Any,
) -> Series:
    """A learner whose error is a curve, plus noise that is the same for all learners of a repetition, plus its own."""
    rows = []
    for repetition in range(repetitions):
        split = np.random.default_rng(repetition).normal() * shared
        own = np.random.default_rng([repetition, *algo.encode()]).normal(size=examples.size) * noise
        for m, value in zip(examples, curve(examples.astype(float)) + split + own, strict=True):
            rows.append((repetition, m, k * m, value, value))
    points = pd.DataFrame(rows, columns=["repetition", "examples", "attributes", "test_relative", "error"])
    config = {"algo": {"core": core}, **keys}
    return Series("toy", algo, k, "", algo, points, pd.DataFrame(), config, 16, Path(), 1000)


def verdict(claim: dict[str, Any], *curves: Series, **rest: Any) -> str:
    return judge(parse({"id": "one", "says": "so", **claim}), curves, rest.get("published", {})).verdict


def falling(level: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda m: level + 10 / m


BELOW = {"kind": "below", "a": "a", "b": "b"}


def test_paired_differences_decide_what_spread_would_hide() -> None:
    a, b = series("a", falling(0.4)), series("b", falling(0.5))
    assert a.points["test_relative"].std() > 0.5  # five times the difference
    assert verdict(BELOW, a, b) == "holds"
    assert verdict({**BELOW, "a": "b", "b": "a"}, a, b) == "fails"
    assert verdict(BELOW, a, series("b", falling(0.4))) == "undecided"


def test_a_lies_below_b_only_from_where_they_have_crossed() -> None:
    a, b = series("a", lambda m: 1 - m / 500), series("b", lambda m: 0.9 + 0 * m)
    assert verdict(BELOW, a, b) == "fails"
    assert verdict({**BELOW, "from": 400}, a, b) == "holds"  # 100 examples of 4 attributes


def test_curves_are_compared_where_both_are_and_nowhere_else() -> None:
    """The first begins earlier, where it is lower, and ends earlier, before the second rises."""
    a = series("a", lambda m: np.where(m <= 10, 0.1, 0.5), examples=EXAMPLES[:-2])
    b = series("b", lambda m: np.where(m > 250, 0.9, 0.4), examples=EXAMPLES[1:])
    assert verdict(BELOW, a, b) == "fails"
    assert verdict({**BELOW, "a": "b", "b": "a"}, a, b) == "holds"
    assert verdict(BELOW, a, series("b", falling(0.6), examples=EXAMPLES[-1:])) == "undecided"


def test_who_buys_more_is_asked_at_any_spending() -> None:
    """The first has ended when the second begins: until then that is worth 1, and then the first stays what it was."""
    more = {**BELOW, "kind": "buys_more"}
    a = series("a", lambda m: np.where(m <= 10, 1.1, 0.5), examples=EXAMPLES[:4], shared=0)
    b = series("b", lambda m: 0.6 + 0 * m, examples=EXAMPLES[4:], shared=0)
    assert verdict(BELOW, a, b) == "undecided"
    assert verdict(more, a, b) == "fails"  # for 10 examples, without anything to beat but 1
    assert verdict({**more, "from": 80}, a, b) == "holds"
    assert verdict({**more, "a": "b", "b": "a"}, a, b) == "fails"
    better = series("b", lambda m: np.where(m == 1000, 0.4, 0.6), examples=EXAMPLES[4:], shared=0)
    assert verdict({**more, "from": 80}, a, better) == "fails"
    worse = series("b", lambda m: 0.4 + m / 400, examples=EXAMPLES[:2], shared=0)  # which ends at .45
    assert verdict({**more, "from": 160}, a, worse) == "fails"
    with pytest.raises(ConfigError, match="known of test_relative"):
        verdict({**more, "measure": "error"}, a, b)


def test_curves_are_compared_between_their_checkpoints() -> None:
    """The second begins at 50 examples, midway (in logarithms) along the first one's fall from 20 to 125."""
    a = series("a", lambda m: np.where(m <= 20, 0.9, 0.1), examples=np.array([20, 125, 1000]))
    b = series("b", lambda m: 0.4 + 0 * m, examples=np.array([50, 1000]))
    assert judge(parse({"id": "one", "says": "so", **BELOW}), [a, b], {}).estimate.value == pytest.approx(0.1, abs=0.02)


def test_a_curve_is_not_below_its_copy() -> None:
    a = series("a", falling(0.4))
    copy = Series(**{**vars(a), "algo": "b"})
    assert verdict(BELOW, a, copy) == "undecided"
    assert verdict({"kind": "ratio", "a": "a", "b": "b", "within": [None, 1]}, a, copy) == "undecided"


def test_few_repetitions_decide_nothing() -> None:
    few = [series(name, falling(level), repetitions=FEWEST - 1) for name, level in (("a", 0.1), ("b", 0.9))]
    assert verdict(BELOW, *few) == "undecided"


def test_what_is_missing_is_told() -> None:
    claim = parse({"id": "one", "says": "so", **BELOW})
    told = judge(claim, [series("a", falling(0.4))], {})
    assert (told.verdict, told.note, told.repetitions) == ("undecided", "no curve of algo=b", 0)


def test_the_share_of_a_gap() -> None:
    curves = [series(name, falling(level), shared=0) for name, level in (("good", 0.4), ("mine", 0.55), ("poor", 0.8))]
    claim = {"kind": "ratio", "a": "mine", "b": "poor", "minus": "good"}  # 0.15 of 0.4
    assert verdict({**claim, "within": [0.3, 0.45]}, *curves) == "holds"
    assert verdict({**claim, "within": [None, 0.2]}, *curves) == "fails"
    assert verdict({"kind": "ratio", "a": "mine", "b": "poor", "within": [None, 0.8]}, *curves) == "holds"


def test_no_end_of_a_ratio_s_interval_is_negative() -> None:
    """One repetition of ten has nearly all of the error: the mean, and so the ratio, is hardly known."""
    a, b = series("a", falling(0.5), shared=0), series("b", falling(0.5), shared=0)
    a.points["test_relative"] *= np.where(a.points["repetition"] == 0, 20.0, 0.1)
    claim = parse({"id": "one", "says": "so", "kind": "ratio", "a": "a", "b": "b", "within": [None, 0.5]})
    estimate = judge(claim, [a, b], {}).estimate
    assert 0 < estimate.low < estimate.value < estimate.high


def test_the_slope_of_the_worst_of_a_sweep() -> None:
    """Each curve is flat at its own place, and all of them together fall like m^(-1/2)."""
    steps = [
        series("a", lambda m, c=c: np.minimum(c, m**-0.5) * (m <= 1.5 * c**-2), noise=1e-6, shared=0, bias=c)
        for c in EXAMPLES**-0.5
    ]
    claim = {"kind": "slope", "a": "a", "x": "examples", "within": [-0.55, -0.45], "across": "worst"}
    assert verdict(claim, *steps) == "holds"
    assert verdict({**claim, "across": None}, *steps) == "undecided"  # several curves, and no word of how to merge them
    line = series("a", lambda m: 3 / m, noise=1e-6, shared=0)
    assert verdict({**claim, "across": None, "within": [-1.1, -0.9]}, line) == "holds"


def test_published_curves_and_values() -> None:
    published = {("a", "attributes"): (4.0 * EXAMPLES, falling(0.45)(EXAMPLES.astype(float)))}
    a = series("a", falling(0.4), shared=0)
    near = {"kind": "near", "a": "a"}
    assert verdict({**near, "tolerance": 0.1}, a, published=published) == "holds"
    assert verdict({**near, "tolerance": 0.02}, a, published=published) == "fails"
    assert verdict({**near, "tolerance": 0.02}, a) == "undecided"
    assert verdict({**near, "value": 0.41, "tolerance": 0.02}, a) == "holds"  # at the end
    assert verdict({**near, "value": 0.5, "at": 400, "tolerance": 0.02}, a) == "holds"
    wide = series("a", falling(0.4), shared=1)
    assert verdict({"kind": "inside", "a": "a"}, wide, published=published) == "holds"
    narrow = series("a", falling(0.4), shared=0, repetitions=100)
    assert verdict({"kind": "inside", "a": "a"}, narrow, published=published) == "fails"


def test_every_published_point_decides() -> None:
    """One point is farthest off, and well known to be within the tolerance; another is nearer, and hardly known."""
    a = series("a", lambda m: 0.44 + 0 * m, shared=0, noise=1e-4, examples=EXAMPLES[:2])
    wild = np.random.default_rng(0).normal(size=REPETITIONS)
    a.points.loc[a.points["examples"] == 20, "test_relative"] = 0.435 + 0.04 * (wild - wild.mean()) / wild.std()
    published = {("a", "attributes"): (np.array([40.0, 80.0]), np.array([0.4, 0.4]))}
    near = {"kind": "near", "a": "a", "tolerance": 0.05}
    assert verdict({**near, "at": [40]}, a, published=published) == "holds"
    assert verdict(near, a, published=published) == "undecided"


def test_a_value_outside_few_repetitions_is_not_outside_their_spread() -> None:
    """Where one in twenty lies beyond, ten repetitions have none there more often than not."""
    published = {("a", "attributes"): (np.array([4000.0]), np.array([-9.0]))}
    few, many = (series("a", falling(0.4), repetitions=n) for n in (10, 100))
    inside = {"kind": "inside", "a": "a"}
    assert verdict(inside, few, published=published) == "undecided"
    assert verdict(inside, many, published=published) == "fails"


def test_standard_deviations_are_compared() -> None:
    steady, wild = series("a", falling(0.4), noise=0.01, shared=0), series("b", falling(0.4), noise=0.1, shared=0)
    claim = {"kind": "spread", "a": "a", "b": "b"}
    assert verdict({**claim, "within": [0.05, 0.2]}, steady, wild) == "holds"
    assert verdict({**claim, "within": [1, None]}, steady, wild) == "fails"


@pytest.mark.parametrize(("gaps", "expected"), [((0.1, 0.2, 0.4), "holds"), ((0.1, 0.4, 0.2), "fails")])
def test_a_gap_that_grows(gaps: tuple[float, ...], expected: str) -> None:
    curves = [
        series(name, falling(level), dataset={"alpha": -alpha})
        for alpha, gap in enumerate(gaps)
        for name, level in (("a", 0.8), ("b", 0.8 - gap))
    ]
    claim = {"kind": "monotone", "a": "a", "b": "b", "over": "dataset.alpha", "direction": "decreasing"}
    assert verdict(claim, *curves) == expected


def test_gaps_are_compared_where_all_curves_have_come() -> None:
    """A gap grows along each curve; the third stops early, and has the widest gap of all by then."""
    curves = [
        series(name, lambda m, s=sign * (1 + alpha): 1 + s * m / 1000, examples=examples, dataset={"alpha": alpha})
        for alpha, examples in enumerate([EXAMPLES, EXAMPLES, EXAMPLES[:4]])
        for name, sign in (("a", 0.1), ("b", -0.1))
    ]
    claim = {"kind": "monotone", "a": "a", "b": "b", "over": "dataset.alpha", "direction": "increasing"}
    judgement = judge(parse({"id": "one", "says": "so", **claim}), curves, {})
    assert judgement.estimate.value == pytest.approx(0.02, abs=0.01)  # at 100 examples


def test_the_exponent_leaves_out_what_never_gets_there() -> None:
    """A learner that needs 2 (d/k)^2 examples; with the fewest attributes it never gets there."""
    curves = [series("a", lambda m, k=k: 2 * (16 / k) ** 2 / m, k=k, noise=1e-4, shared=0) for k in (8, 4, 2)] + [
        series("a", lambda m: 1 + 0 * m, k=1, noise=1e-4, shared=0)
    ]
    claim = {"kind": "exponent", "a": "a", "over": "d/k", "level": 0.35}
    assert verdict({**claim, "within": [1.8, 2.2]}, *curves) == "holds"
    assert verdict({**claim, "within": [0.8, 1.2]}, *curves) == "fails"
    assert verdict({**claim, "within": [1.8, 2.2], "level": 0.001}, *curves) == "undecided"
    told = judge(parse({"id": "one", "says": "so", **claim, "within": [1.8, 2.2]}), curves, {})
    assert told.note == "left out: d/k = 16"


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ({"kind": "belw", "a": "a", "b": "b"}, "did you mean 'below'"),
        ({"kind": "below", "a": "a"}, "the other learner is missing"),
        ({**BELOW, "form": 3}, "did you mean 'from'"),
        ({"kind": "ratio", "a": "a", "b": "b", "within": [2, 1]}, "two increasing numbers"),
    ],
)
def test_mistakes_in_a_claim(claim: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse({"id": "one", "says": "so", **claim})


@pytest.mark.parametrize("repetitions", [5, 10, 40])
def test_intervals_hold_what_they_promise(repetitions: int) -> None:
    """The mean of normal numbers lies beyond each end in about 5 of 100 cases."""
    draws = np.random.default_rng(0).normal(size=(1000, repetitions))
    resampled = weights(repetitions)
    ends = [basic(resampled @ draw, repetitions) for draw in draws]
    for misses in (np.mean([end.low > 0 for end in ends]), np.mean([end.high < 0 for end in ends])):
        assert 0.03 < misses < 0.075


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_the_largest_of_many_is_not_taken_for_more_than_it_is(correlation: float) -> None:
    """Eight means are estimated, all of them 0: the largest of the estimates lies above, its interval seldom does."""
    repetitions, means = 20, 8
    random = np.random.default_rng(1)
    noise = random.normal(size=(500, repetitions, means)) * np.sqrt(1 - correlation)
    noise += random.normal(size=(500, repetitions, 1)) * np.sqrt(correlation)
    resampled = weights(repetitions)
    ends = [of_largest(resampled @ draws, repetitions) for draws in noise]
    assert np.mean([end.value for end in ends]) > 0.1
    assert np.mean([end.low > 0 for end in ends]) < 0.09
    assert np.mean([end.high < 0 for end in ends]) < 0.05


@pytest.mark.parametrize(("count", "n"), [(0, 10), (3, 10), (50, 50), (1, 100)])
def test_ends_of_a_share_are_where_the_count_is_that_rare(count: int, n: int) -> None:
    own = of_share(count, n)
    at_least = 1 - binom.cdf(count - 1, n, own.low)
    assert at_least == pytest.approx(0.05) if count else own.low == 0
    assert binom.cdf(count, n, own.high) == pytest.approx(0.05) if count < n else own.high == 1


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=7), st.floats(0.01, 1))
def test_a_crossing_is_the_first_point_at_the_level(values: list[float], level: float) -> None:
    curve = Means(2.0 ** np.arange(len(values)), np.array([values]))
    (at,) = curve.crossing(level)
    if at == 0:
        assert values[0] <= level
    elif np.isinf(at):
        assert min(values) > level
    else:
        assert curve.at(np.array([at]))[0, 0] == pytest.approx(level, abs=1e-9)
        assert all(value > level for x, value in zip(curve.x, values, strict=True) if x < at * (1 - 1e-9))


def test_savings_against_the_best_full_information() -> None:
    """Errors of 40/attributes and 8/attributes cross .1 at 400 and 80 attributes."""
    own = series("mine", lambda m: 2 / m, shared=0, noise=1e-5)
    full = series("full", lambda m: 10 / m, shared=0, noise=1e-5, core="exact")
    worse = series("worse", lambda m: 0.5 + 0 * m, shared=0, noise=1e-5, core="offline")
    at = {one.label: one for one in savings([own, full, worse], "error") if one.error == 0.1}
    assert at["mine"].reference == "full"
    assert at["mine"].needed.value == pytest.approx(80, rel=0.05)
    assert at["mine"].factor.value == pytest.approx(5, rel=0.1)
    assert at["mine"].factor.low < at["mine"].factor.value < at["mine"].factor.high
    assert (at["full"].factor.value, at["full"].factor_is) == (1, "")
    assert (at["worse"].needed.value, at["worse"].needed_is) == (4000, "at least")
    assert at["worse"].factor_is == "at most"


def test_savings_at_one_level_against_the_one_that_is_named() -> None:
    own = series("mine", lambda m: 2 / m, shared=0, noise=1e-5)
    other = series("other", lambda m: 10 / m, shared=0, noise=1e-5)
    mine, against = savings([own, other], "error", 0.1, reference="other")
    assert [one.error for one in (mine, against)] == [0.1] * 2
    assert mine.needed.value == pytest.approx(80, rel=0.05)
    assert (mine.reference, against.factor.value) == ("other", 1)
    assert mine.factor.value == pytest.approx(5, rel=0.1)
    assert all(one.reference == "" for one in savings([own, other], "error", 0.1))
    full = series("full", lambda m: 4 / m, shared=0, noise=1e-5, core="exact")
    assert {one.reference for one in savings([own, other, full], "error", 0.1, reference="other")} == {"full"}
    never = savings([own, other], "error", 1e-9, reference="other")
    assert [one.needed_is for one in never] == ["at least"] * 2
    assert never[0].factor_is == "unknown"


def test_savings_in_money_and_in_a_table() -> None:
    """Errors of 8/attributes and 40/attributes cross .1 at 80 attributes of 30 EUR and at 400 of 2 EUR."""
    own = series("mine", lambda m: 2 / m, shared=0, noise=1e-5)
    full = series("full", lambda m: 10 / m, shared=0, noise=1e-5, core="exact")
    plain = savings([own, full], "error")
    assert "cost" not in savings_csv({"a panel": plain}, "error", {}).decode()
    for one, price in ((own, 30), (full, 2)):
        one.points["cost"] = price * one.points["attributes"]
    money = savings([own, full], "error", x="cost")
    at = {one.label: one for one in money if one.error == 0.1}
    assert at["mine"].needed.value == pytest.approx(2400, rel=0.05)
    assert at["mine"].factor.value == pytest.approx(1 / 3, rel=0.1)
    told = savings_csv({"a panel": plain, "another": plain}, "error", {"a panel": ("EUR", money)})
    rows = list(csv.DictReader(told.decode().splitlines()))
    assert list(rows[0])[: len(SAVING_COLUMNS)] == list(SAVING_COLUMNS)
    found = {(row["panel"], row["error"], row["learner"]): row for row in rows}
    mine = found["a panel", "0.1", "mine"]
    assert float(mine["attributes"]) == pytest.approx(80, rel=0.05)
    assert (mine["unit"], float(mine["cost"]), mine["cost_reference"]) == ("EUR", pytest.approx(2400, rel=0.05), "full")
    assert float(mine["cost_factor"]) == pytest.approx(1 / 3, rel=0.1)
    assert float(mine["cost_low"]) <= float(mine["cost"]) <= float(mine["cost_high"])
    assert {found["another", "0.1", "mine"][column] for column in MONEY_COLUMNS} == {""}


def test_an_interval_has_no_end_where_the_curve_has_none() -> None:
    """Half of the repetitions never fall to .5, though their mean does: nobody knows how many it may take."""
    own = series("mine", lambda m: 2 / m, shared=0, noise=1e-5)
    own.points["error"] = np.where(own.points["repetition"] % 2, 0.9, 10 / own.points["examples"] ** 0.5 / 3)
    full = series("full", lambda m: 10 / m, shared=0, noise=1e-5, core="exact")
    at = {one.label: one for one in savings([own, full], "error") if one.error == 0.5}
    assert np.isfinite(at["mine"].needed.value)
    assert np.isfinite(at["mine"].needed.low)
    assert np.isnan(at["mine"].needed.high)
    assert np.isnan(at["mine"].factor.low)
    assert np.isfinite(at["mine"].factor.high)
