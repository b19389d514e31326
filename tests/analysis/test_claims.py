"""Claims and savings, on synthetic curves with a known answer."""

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from budgetreg.analysis.claims import ClaimResult, grid_of, judge, parse, parse_all
from budgetreg.analysis.comparisons import MONEY_COLUMNS, SAVING_COLUMNS, Incomparable, Means, savings, savings_csv
from budgetreg.analysis.intervals import FEWEST, basic, of_largest, of_share, weights
from budgetreg.common.errors import ConfigError
from budgetreg.runs.series import Series

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
    """Return a learner whose error is a curve plus noise: common to all learners of a repetition, and separate."""
    rows = []
    for repetition in range(repetitions):
        split = np.random.default_rng(repetition).normal() * shared
        separate = np.random.default_rng([repetition, *algo.encode()]).normal(size=examples.size) * noise
        for m, value in zip(examples, curve(examples.astype(float)) + split + separate, strict=True):
            rows.append((repetition, m, k * m, value, value))
    points = pd.DataFrame(rows, columns=["repetition", "examples", "attributes", "test_relative", "error"])
    config = {"algo": {"core": core}, **keys}
    return Series("toy", algo, k, "", algo, points, pd.DataFrame(), config, 16, Path(), 1000)


def judged(claim: dict[str, Any], *curves: Series, published: Any = None) -> ClaimResult:
    return judge(parse({"id": "one", "says": "so", **claim}), curves, published or {})


def verdict(claim: dict[str, Any], *curves: Series, published: Any = None) -> str:
    return judged(claim, *curves, published=published).verdict


def falling(level: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda m: level + 10 / m


BELOW = {"kind": "below", "a": "a", "b": "b"}


def test_paired_differences_decide_despite_a_large_spread() -> None:
    a, b = series("a", falling(0.4)), series("b", falling(0.5))
    assert a.points["test_relative"].std() > 0.5  # five times the difference
    assert verdict(BELOW, a, b) == "holds"
    assert verdict({**BELOW, "a": "b", "b": "a"}, a, b) == "fails"
    assert verdict(BELOW, a, series("b", falling(0.4))) == "undecided"


def test_a_lies_below_b_only_from_where_they_have_crossed() -> None:
    a, b = series("a", lambda m: 1 - m / 500), series("b", lambda m: 0.9 + 0 * m)
    assert verdict(BELOW, a, b) == "fails"
    assert verdict({**BELOW, "from": 400}, a, b) == "holds"  # 100 examples of 4 attributes


def test_a_can_be_compared_with_a_multiple_of_b() -> None:
    a, b = (series(name, falling(level), shared=0) for name, level in (("a", 0.52), ("b", 0.5)))
    assert verdict(BELOW, a, b) == "fails"
    assert verdict({**BELOW, "times": 1.1}, a, b) == "holds"


def test_a_comparison_can_begin_after_a_multiple_of_d_over_k_examples_of_a() -> None:
    a, b = series("a", lambda m: 1 - m / 500), series("b", lambda m: 0.9 + 0 * m, k=16)
    assert verdict({**BELOW, "x": "examples", "from_examples": "10d/k"}, a, b) != "holds"  # from 50 on, as d / k is 4
    assert verdict({**BELOW, "x": "examples", "from_examples": "20d/k"}, a, b) == "holds"
    for x in ("attributes", "examples"):
        same = series("b", lambda m: 0.9 + 0 * m)
        assert verdict({**BELOW, "x": x, "from_examples": "12.5d/k"}, a, same) != "holds"
        assert verdict({**BELOW, "x": x, "from_examples": "12.6d/k"}, a, same) == "holds"
    twice = series("a", lambda m: 1 - m / 500, k=8)
    assert verdict({**BELOW, "from_examples": "20d/k"}, twice, b) != "holds"
    result = judged({**BELOW, "from_examples": "300d/k"}, a, b)
    assert (result.verdict, result.note) == ("undecided", "no checkpoint of a from 1200 examples on")


def test_below_compares_curves_only_where_both_exist() -> None:
    """The first curve begins earlier, with lower errors, and ends before the second one rises."""
    a = series("a", lambda m: np.where(m <= 10, 0.1, 0.5), examples=EXAMPLES[:-2])
    b = series("b", lambda m: np.where(m > 250, 0.9, 0.4), examples=EXAMPLES[1:])
    assert verdict(BELOW, a, b) == "fails"
    assert verdict({**BELOW, "a": "b", "b": "a"}, a, b) == "holds"
    assert verdict(BELOW, a, series("b", falling(0.6), examples=EXAMPLES[-1:])) == "undecided"


def test_below_at_any_spending_compares_curves_at_any_spending() -> None:
    """The first curve ends before the second begins. Until then, the second has error 1; the first keeps its last."""
    more = {**BELOW, "kind": "below_at_any_spending"}
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
    """The second curve begins at 50 examples, halfway (in logarithms) between two checkpoints of the first."""
    a = series("a", lambda m: np.where(m <= 20, 0.9, 0.1), examples=np.array([20, 125, 1000]))
    b = series("b", lambda m: 0.4 + 0 * m, examples=np.array([50, 1000]))
    assert judged(BELOW, a, b).estimate.value == pytest.approx(0.1, abs=0.02)


def test_a_curve_is_not_below_its_copy() -> None:
    a = series("a", falling(0.4))
    copy = Series(**{**vars(a), "algo": "b"})
    assert verdict(BELOW, a, copy) == "undecided"
    assert verdict({"kind": "ratio", "a": "a", "b": "b", "within": [None, 1]}, a, copy) == "undecided"


def test_few_repetitions_decide_nothing() -> None:
    few = [series(name, falling(level), repetitions=FEWEST - 1) for name, level in (("a", 0.1), ("b", 0.9))]
    assert verdict(BELOW, *few) == "undecided"


def test_a_missing_curve_is_named() -> None:
    result = judged(BELOW, series("a", falling(0.4)))
    assert (result.verdict, result.note, result.repetitions) == ("undecided", "no curve of algo=b", 0)


def test_a_ratio_may_subtract_a_common_error() -> None:
    curves = [series(name, falling(level), shared=0) for name, level in (("good", 0.4), ("mine", 0.55), ("poor", 0.8))]
    claim = {"kind": "ratio", "a": "mine", "b": "poor", "minus": "good"}  # 0.15 of 0.4
    assert verdict({**claim, "within": [0.3, 0.45]}, *curves) == "holds"
    assert verdict({**claim, "within": [None, 0.2]}, *curves) == "fails"
    assert verdict({"kind": "ratio", "a": "mine", "b": "poor", "within": [None, 0.8]}, *curves) == "holds"


def test_the_interval_of_a_ratio_is_positive() -> None:
    """One repetition of ten has nearly all of the error, so that mean and ratio are very uncertain."""
    a, b = series("a", falling(0.5), shared=0), series("b", falling(0.5), shared=0)
    a.points["test_relative"] *= np.where(a.points["repetition"] == 0, 20.0, 0.1)
    estimate = judged({"kind": "ratio", "a": "a", "b": "b", "within": [None, 0.5]}, a, b).estimate
    assert 0 < estimate.low < estimate.value < estimate.high


def test_a_slope_can_be_that_of_the_worst_curve() -> None:
    """Each curve is flat in another place, and the largest of them falls like m^(-1/2)."""
    steps = [
        series("a", lambda m, c=c: np.minimum(c, m**-0.5) * (m <= 1.5 * c**-2), noise=1e-6, shared=0, bias=c)
        for c in EXAMPLES**-0.5
    ]
    claim = {"kind": "slope", "a": "a", "x": "examples", "within": [-0.55, -0.45], "across": "worst"}
    assert verdict(claim, *steps) == "holds"
    assert verdict({**claim, "across": None}, *steps) == "undecided"  # several curves, and no word of how to merge them
    line = series("a", lambda m: 3 / m, noise=1e-6, shared=0)
    assert verdict({**claim, "across": None, "within": [-1.1, -0.9]}, line) == "holds"
    above = series("a", lambda m: 0.2 + 3 / m, noise=1e-6, shared=0)
    assert verdict({**claim, "across": None, "within": [-1.1, -0.9]}, above) == "fails"
    assert verdict({**claim, "across": None, "within": [-1.1, -0.9], "above": 0.2}, above) == "holds"


def test_near_compares_with_published_points_or_a_value() -> None:
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
    """The farthest point is certainly within the tolerance; a nearer one is very uncertain."""
    a = series("a", lambda m: 0.44 + 0 * m, shared=0, noise=1e-4, examples=EXAMPLES[:2])
    wild = np.random.default_rng(0).normal(size=REPETITIONS)
    a.points.loc[a.points["examples"] == 20, "test_relative"] = 0.435 + 0.04 * (wild - wild.mean()) / wild.std()
    published = {("a", "attributes"): (np.array([40.0, 80.0]), np.array([0.4, 0.4]))}
    near = {"kind": "near", "a": "a", "tolerance": 0.05}
    assert verdict({**near, "at": [40]}, a, published=published) == "holds"
    assert verdict(near, a, published=published) == "undecided"


def test_a_value_outside_few_repetitions_is_not_outside_their_spread() -> None:
    """If one repetition in twenty lies beyond a value, ten repetitions usually have none there."""
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
def test_monotone_judges_a_gap_over_a_variable(gaps: tuple[float, ...], expected: str) -> None:
    curves = [
        series(name, falling(level), dataset={"alpha": -alpha})
        for alpha, gap in enumerate(gaps)
        for name, level in (("a", 0.8), ("b", 0.8 - gap))
    ]
    claim = {"kind": "monotone", "a": "a", "b": "b", "over": "dataset.alpha", "direction": "decreasing"}
    assert verdict(claim, *curves) == expected


def test_monotone_compares_at_the_last_common_point() -> None:
    """The gap grows along each curve; the third curve ends early, with the widest gap of all at that point."""
    curves = [
        series(name, lambda m, s=sign * (1 + alpha): 1 + s * m / 1000, examples=examples, dataset={"alpha": alpha})
        for alpha, examples in enumerate([EXAMPLES, EXAMPLES, EXAMPLES[:4]])
        for name, sign in (("a", 0.1), ("b", -0.1))
    ]
    claim = {"kind": "monotone", "a": "a", "b": "b", "over": "dataset.alpha", "direction": "increasing"}
    assert judged(claim, *curves).estimate.value == pytest.approx(0.02, abs=0.01)  # at 100 examples


def test_an_exponent_leaves_out_curves_above_the_level() -> None:
    """A learner needs 2 (d/k)^2 examples; with the fewest attributes it never reaches the level."""
    curves = [series("a", lambda m, k=k: 2 * (16 / k) ** 2 / m, k=k, noise=1e-4, shared=0) for k in (8, 4, 2)] + [
        series("a", lambda m: 1 + 0 * m, k=1, noise=1e-4, shared=0)
    ]
    claim = {"kind": "exponent", "a": "a", "over": "d/k", "level": 0.35}
    assert verdict({**claim, "within": [1.8, 2.2]}, *curves) == "holds"
    assert verdict({**claim, "within": [0.8, 1.2]}, *curves) == "fails"
    assert verdict({**claim, "within": [1.8, 2.2], "level": 0.001}, *curves) == "undecided"
    assert judged({**claim, "within": [1.8, 2.2]}, *curves).note == "left out: d/k = 16"


@pytest.mark.parametrize(
    "claim",
    [{"kind": "ratio", "a": "a", "b": "b", "within": [0, 2]}, {"kind": "near", "a": "a", "value": 1, "tolerance": 9}],
)
@pytest.mark.parametrize("at", [1, 10**6])
def test_nothing_is_said_of_points_beyond_the_curves(claim: dict[str, Any], at: int) -> None:
    curves = [series("a", falling(0.5)), series("b", falling(0.9))]
    assert verdict(claim, *curves) == verdict({**claim, "at": 100}, *curves) == "holds"
    result = judged({**claim, "at": at}, *curves)
    assert (result.verdict, result.note[:24]) == ("undecided", "curves from 40 to 4,000,")


def test_a_claim_without_an_interval_says_why() -> None:
    curves = [series(name, falling(0.5), repetitions=FEWEST - 1) for name in "ab"]
    claim = {"kind": "ratio", "a": "a", "b": "b", "within": [0, 2]}
    assert judged(claim, *curves).note == "too few repetitions for an interval"
    for curve in curves:
        curve.points["error"] = np.nan
    result = judged({**claim, "measure": "error"}, *curves)
    assert (result.verdict, result.note) == ("undecided", "error is undefined")


def test_other_splits_are_not_compared_repetition_by_repetition() -> None:
    curves = [series(name, falling(0.5), seed=seed) for seed, name in enumerate("ab")]
    with pytest.raises(Incomparable, match="different random splits"):
        savings(curves, "error", level=0.6)


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ({"kind": "belw", "a": "a", "b": "b"}, "did you mean 'below'"),
        ({"kind": "below", "a": "a"}, "the other learner is missing"),
        ({**BELOW, "form": 3}, "did you mean 'from'"),
        ({**BELOW, "from_examples": 400}, "a multiple of d/k such as 2d/k"),
        ({"kind": "ratio", "a": "a", "b": "b", "within": [2, 1]}, "two increasing numbers"),
    ],
)
def test_a_mistake_in_a_claim_is_refused(claim: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse({"id": "one", "says": "so", **claim})


@pytest.mark.parametrize("repetitions", [5, 10, 40])
def test_intervals_cover_the_mean_at_their_level(repetitions: int) -> None:
    """The mean of a normal distribution lies beyond each end in about 5 of 100 cases."""
    draws = np.random.default_rng(0).normal(size=(1000, repetitions))
    resampled = weights(repetitions)
    ends = [basic(resampled @ draw, repetitions) for draw in draws]
    for misses in (np.mean([end.low > 0 for end in ends]), np.mean([end.high < 0 for end in ends])):
        assert 0.03 < misses < 0.075


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_the_interval_of_a_largest_mean_covers_the_largest_expectation(correlation: float) -> None:
    """Eight expectations are 0: the largest estimate lies above 0, but its interval seldom does."""
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
def test_the_interval_of_a_share_is_exact(count: int, n: int) -> None:
    share = of_share(count, n)
    at_least = 1 - binom.cdf(count - 1, n, share.low)
    assert at_least == pytest.approx(0.05) if count else share.low == 0
    assert binom.cdf(count, n, share.high) == pytest.approx(0.05) if count < n else share.high == 1


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=7), st.floats(0.01, 1))
def test_a_crossing_is_the_first_point_at_the_level(values: list[float], level: float) -> None:
    curve = Means(2.0 ** np.arange(len(values)), np.array([values]))
    (at,) = curve.crossing(level)
    if at == 0:
        assert values[0] < level
    elif np.isinf(at):
        assert min(values) > level
    else:
        assert curve.at(np.array([at]))[0, 0] == pytest.approx(level, abs=1e-9)
        assert all(value > level for x, value in zip(curve.x, values, strict=True) if x < at * (1 - 1e-9))


@pytest.mark.parametrize("start", [0.05, np.nextafter(0.05, 0), np.nextafter(0.05, 1)])
def test_round_off_does_not_decide_whether_a_curve_starts_below_a_level(start: float) -> None:
    assert Means(np.array([2.0, 4.0]), np.array([[start, 0.01]])).crossing(0.05) == pytest.approx(2, rel=1e-12)


@pytest.fixture
def budgeted() -> Series:
    """Return a learner whose error is 8/attributes."""
    return series("mine", lambda m: 2 / m, shared=0, noise=1e-5)


@pytest.fixture
def full() -> Series:
    """Return one whose error is 40/attributes."""
    return series("full", lambda m: 10 / m, shared=0, noise=1e-5, core="exact")


def test_savings_compare_with_the_best_full_information_learner(budgeted: Series, full: Series) -> None:
    """The errors cross .1 at 80 and 400 attributes."""
    worse = series("worse", lambda m: 0.5 + 0 * m, shared=0, noise=1e-5, core="offline")
    at = {saving.label: saving for saving in savings([budgeted, full, worse], "error") if saving.error == 0.1}
    assert at["mine"].reference == "full"
    assert at["mine"].needed.value == pytest.approx(80, rel=0.05)
    assert at["mine"].factor.value == pytest.approx(5, rel=0.1)
    assert at["mine"].factor.low < at["mine"].factor.value < at["mine"].factor.high
    assert (at["full"].factor.value, at["full"].factor_is) == (1, "")
    assert (at["worse"].needed.value, at["worse"].needed_is) == (4000, "at least")
    assert at["worse"].factor_is == "at most"


def test_savings_compare_at_one_level_with_a_named_learner(budgeted: Series) -> None:
    other = series("other", lambda m: 10 / m, shared=0, noise=1e-5)
    mine, against = savings([budgeted, other], "error", 0.1, reference="other")
    assert [saving.error for saving in (mine, against)] == [0.1] * 2
    assert mine.needed.value == pytest.approx(80, rel=0.05)
    assert (mine.reference, against.factor.value) == ("other", 1)
    assert mine.factor.value == pytest.approx(5, rel=0.1)
    assert all(saving.reference == "" for saving in savings([budgeted, other], "error", 0.1))
    full = series("full", lambda m: 4 / m, shared=0, noise=1e-5, core="exact")
    references = {saving.reference for saving in savings([budgeted, other, full], "error", 0.1, reference="other")}
    assert references == {"full"}
    never = savings([budgeted, other], "error", 1e-9, reference="other")
    assert [saving.needed_is for saving in never] == ["at least"] * 2
    assert never[0].factor_is == "unknown"


def test_savings_in_money_have_their_columns(budgeted: Series, full: Series) -> None:
    """Errors of 8/attributes and 40/attributes cross .1 at 80 attributes of 30 EUR and at 400 of 2 EUR."""
    plain = [replace(learner, points=learner.points.copy()) for learner in (budgeted, full)]
    assert "cost" not in savings_csv([("a panel", plain)], "error").decode()
    for saving, price in ((budgeted, 30), (full, 2)):
        saving.points["cost"] = price * saving.points["attributes"]
    money = savings([budgeted, full], "error", x="cost")
    at = {saving.label: saving for saving in money if saving.error == 0.1}
    assert at["mine"].needed.value == pytest.approx(2400, rel=0.05)
    assert at["mine"].factor.value == pytest.approx(1 / 3, rel=0.1)
    for learner in (budgeted, full):
        learner.config["dataset"] = {"unit": "EUR"}
    result = savings_csv([("a panel", [budgeted, full]), ("another", plain)], "error")
    rows = list(csv.DictReader(result.decode().splitlines()))
    assert list(rows[0])[: len(SAVING_COLUMNS)] == list(SAVING_COLUMNS)
    by_panel = {(row["panel"], row["error"], row["learner"]): row for row in rows}
    mine = by_panel["a panel", "0.1", "mine"]
    assert float(mine["attributes"]) == pytest.approx(80, rel=0.05)
    assert (mine["unit"], float(mine["cost"]), mine["cost_reference"]) == ("EUR", pytest.approx(2400, rel=0.05), "full")
    assert float(mine["cost_factor"]) == pytest.approx(1 / 3, rel=0.1)
    assert float(mine["cost_low"]) <= float(mine["cost"]) <= float(mine["cost_high"])
    assert {by_panel["another", "0.1", "mine"][column] for column in MONEY_COLUMNS} == {""}


def test_an_interval_beyond_the_curve_has_no_end(budgeted: Series, full: Series) -> None:
    """The mean falls to .5, but half of the repetitions do not: the upper end is unknown."""
    falling = 10 / budgeted.points["examples"] ** 0.5 / 3
    budgeted.points["error"] = np.where(budgeted.points["repetition"] % 2, 0.9, falling)
    at = {saving.label: saving for saving in savings([budgeted, full], "error") if saving.error == 0.5}
    needed, factor = at["mine"].needed, at["mine"].factor
    assert np.isfinite([needed.value, needed.low, factor.high]).all()
    assert np.isnan([needed.high, factor.low]).all()


def test_an_entry_with_rows_stands_for_a_claim_about_each_learner_and_place() -> None:
    entry = {
        "id": "{column}_below_{row}",
        "says": "on {column} data A errs less than {row}",
        "kind": "below",
        "a": "a",
        "rows": {"b": "B", "c": "C on full rows"},
        "columns": {"dataset.name": {"wine": "few", "digits": "many"}},
        "by_column": {"from": [10, 20]},
    }
    grid = grid_of(entry)
    assert grid.sentence == "on *data* data A errs less than *learner*"
    assert (grid.rows, grid.columns) == (("B", "C on full rows"), ("few", "many"))
    claims = parse_all([entry])
    assert [claim.id for claim in claims] == ["wine_below_b", "wine_below_c", "digits_below_b", "digits_below_c"]
    assert claims[3].says == "on many data A errs less than C on full rows"
    given = {key: claims[3].options[key] for key in ("a", "b", "where", "from")}
    assert given == {"a": "a", "b": "c", "where": {"dataset.name": "digits"}, "from": 20}


def test_a_grid_has_budgets_or_a_single_column() -> None:
    entry = {"id": "{row}_{column}", "says": "with {column} A errs less than {row}", "kind": "below", "a": "a"}
    grid = grid_of({**entry, "rows": {"b": "B"}, "columns": {"k": [4, 8]}})
    assert (grid.sentence, grid.columns) == ("with *k* A errs less than *learner*", ("k = 4", "k = 8"))
    assert [each["where"] for each in grid.entries.values()] == [{"k": 4}, {"k": 8}]
    both = grid_of({**entry, "where": {"seed": 1}, "rows": {"b": "B"}, "columns": {"k": [4]}})
    assert both.entries["B", "k = 4"]["where"] == {"seed": 1, "k": 4}
    single = grid_of({**entry, "where": {"k": 4}, "rows": {"b": "B", "c": "C"}})
    assert single.columns == ("",)
    assert single.entries["C", ""]["where"] == {"k": 4}
    assert grid_of(entry) is None


def test_mistakes_of_grids_are_named() -> None:
    entry = {"id": "{row}", "says": "better than {row}", "kind": "below", "a": "a"}
    with pytest.raises(ConfigError, match="rows"):
        parse_all([{**entry, "rows": ["b"]}])
    with pytest.raises(ConfigError, match="every claim needs an id of its own"):
        parse_all([{**entry, "id": "same", "rows": {"b": "B", "c": "C"}}])
