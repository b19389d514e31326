"""The ranking of candidates and its uncertainty, on synthetic curves with a known answer."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from interval_coverage import misses
from scipy.stats import t as student

from budgetreg.analysis.comparisons import ranked
from budgetreg.analysis.intervals import FEWEST, RESAMPLES, weights
from budgetreg.runs.series import by_checkpoint
from tests.analysis.test_claims import REPETITIONS, falling, series


def test_candidates_are_ranked_at_their_last_checkpoints():
    long = series("long", falling(0.5), noise=0)  # .51 at 1000 examples
    short = series("short", falling(0.2), noise=0, examples=np.array([10, 20]))  # .7 at 20
    first, second = ranked([short, long], "test_relative")
    assert [candidate.series.algo for candidate in (first, second)] == ["long", "short"]
    assert (second.examples, second.attributes) == (20, 80)
    assert second.behind.value == pytest.approx(0.7 - 0.51)
    assert (first.behind.value, first.best_in, second.best_in) == (0, 1, 0)


def test_differences_are_between_the_same_repetitions():
    """Repetitions differ 100 times as much as learners."""
    candidates = ranked([series(name, falling(level)) for name, level in (("a", 0.5), ("b", 0.53))], "test_relative")
    best, worse = candidates
    assert best.error.high - best.error.low > 0.5
    assert worse.is_worse
    assert worse.behind.low < 0.03 < worse.behind.high < 0.05


def test_a_difference_within_the_noise_is_not_worse():
    best, other = ranked([series(name, falling(0.5), noise=0.1) for name in "ab"], "test_relative")
    assert not other.is_worse
    assert 0 < other.best_in <= best.best_in < 1
    assert best.best_in + other.best_in == pytest.approx(1)


def test_the_share_of_first_places_is_that_of_the_resampled_means():
    """The mean over all repetitions is not one of them: it would count the winner once more."""
    candidates = ranked([series(name, falling(0.5), noise=0.1) for name in "abc"], "test_relative")
    last = [curve.series.points.query("examples == 1000")["test_relative"].to_numpy() for curve in candidates]
    resampled = np.stack(last) @ weights(REPETITIONS)[1:].T
    wins = np.bincount(resampled.argmin(axis=0), minlength=3)
    assert (wins > 0).sum() > 1
    assert [candidate.best_in * RESAMPLES for candidate in candidates] == pytest.approx(wins, abs=1e-6)


def test_ties_share_the_first_place():
    candidates = ranked([series(name, falling(0.5), noise=0) for name in "abcd"], "test_relative")
    assert [candidate.best_in for candidate in candidates] == [pytest.approx(0.25)] * 4
    assert not any(candidate.is_worse for candidate in candidates)


def with_errors(algo, errors):
    """Return a series that ends at some errors, one for each repetition."""
    points = pd.DataFrame({"repetition": range(len(errors)), "examples": 10, "attributes": 40, "test_relative": errors})
    return replace(series(algo, falling(0.5), repetitions=1), points=points)


def test_an_outlier_does_not_hide_that_a_learner_is_worse():
    """In nine of ten repetitions the other one is as good; t for the differences would end below 0."""
    good = 0.7 + 0.01 * np.arange(10)
    _, other = ranked([with_errors("best", good), with_errors("other", [*good[:9], 140.0])], "test_relative")
    assert other.error.value == pytest.approx(14.7, abs=0.1)
    assert other.is_worse
    assert other.error.low > 1.2
    assert other.behind.low > 1


def test_intervals_have_a_closed_form():
    a, b = np.array([0.2, 0.3, 0.4, 0.3, 0.5]), np.array([0.4, 0.3, 0.6, 0.5, 0.6])
    best, other = ranked([with_errors("a", a), with_errors("b", b)], "test_relative")
    half_width = student.ppf(0.95, 4) * np.std(b / b.mean() - a / a.mean(), ddof=1) / np.sqrt(5)
    ratio = b.mean() / a.mean() * np.exp([-half_width, half_width])
    assert (other.behind.low, other.behind.high) == pytest.approx(tuple(a.mean() * (ratio - 1)))
    half_width = student.ppf(0.95, 4) * np.std(a / a.mean(), ddof=1) / np.sqrt(5)
    assert (best.error.low, best.error.high) == pytest.approx(tuple(a.mean() * np.exp([-half_width, half_width])))
    assert np.log(ratio).mean() == pytest.approx(np.log(b.mean() / a.mean()))


def test_errors_of_zero_have_intervals_too():
    best, other = ranked([with_errors("a", np.zeros(6)), with_errors("b", np.full(6, 0.1))], "test_relative")
    assert (best.error.low, best.error.high) == (0, 0)
    assert other.is_worse
    assert other.behind.low == pytest.approx(0.1)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["normal, 0.3", "lognormal, 0.3", "lognormal, 1", "t3, 0.3"])
def test_ends_miss_the_truth_as_often_as_is_documented(case):
    for ratio in (1.0, 1.5):
        for missed in misses(case, ratio, experiments=1000)["printed"]:
            assert missed < (0.12 if case == "lognormal, 1" else 0.075)


def test_measures_of_labels_are_means_at_the_same_point():
    with_labels, other = with_errors("a", [0.1, 0.3]), with_errors("b", [0.4, 0.5])
    with_labels.points["test_error_rate"] = [0.25, 0.75]
    with_labels.points["test_auc"] = [0.5, np.nan]
    first, second = ranked([with_labels, other], "test_relative")
    assert (first.measures, second.measures) == ({"test_error_rate": 0.5}, {})


def test_few_repetitions_give_no_interval():
    few = [series(name, falling(level), repetitions=FEWEST - 1) for name, level in (("a", 0.1), ("b", 0.9))]
    best, other = ranked(few, "test_relative")
    assert best.series.algo == "a"
    assert np.isnan([best.best_in, best.error.low, other.behind.low]).all()
    assert not other.is_worse


def test_repetitions_that_end_at_different_numbers_of_examples_are_compared_at_their_ends():
    curve = series("a", falling(0.5))
    moved = replace(
        curve, points=curve.points.assign(examples=curve.points["examples"] + 3 * curve.points["repetition"])
    )
    expected, found = (ranked([each], "test_relative")[0] for each in (curve, moved))
    assert found.error == expected.error
    n = curve.repetitions
    assert found.examples == expected.examples + round(3 * (n - 1) / 2 + 1e-9)
    means = [by_checkpoint(each.points).groupby("examples")["test_relative"].mean() for each in (curve, moved)]
    assert means[1].tolist() == means[0].tolist()
