"""The ranking of candidates and its uncertainty, on synthetic curves with a known answer."""

import numpy as np
import pytest

from budgetreg.analysis.bootstrap import FEWEST, RESAMPLES, weights
from budgetreg.analysis.comparisons import ranked
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


def test_few_repetitions_give_no_interval():
    few = [series(name, falling(level), repetitions=FEWEST - 1) for name, level in (("a", 0.1), ("b", 0.9))]
    best, other = ranked(few, "test_relative")
    assert best.series.algo == "a"
    assert np.isnan([best.best_in, best.error.low, other.behind.low]).all()
    assert not other.is_worse


def test_a_longer_curve_is_compared_where_the_money_is_spent():
    expensive, cheap = (series(name, lambda m: 1 / np.log(m), noise=0, shared=0) for name in ("expensive", "cheap"))
    for learner, price in ((expensive, 10), (cheap, 0.5)):
        learner.points["cost"] = price * learner.points["attributes"]
    first, second = ranked([expensive, cheap], "test_relative", spent=3000)
    assert [candidate.series.algo for candidate in (first, second)] == ["cheap", "expensive"]
    assert (first.examples, first.attributes, first.cost) == (1000, 4000, 2000)  # all that it has
    assert second.cost == pytest.approx(3000)
    assert 50 < second.examples < 100  # 3000 lie between 4 * 50 * 10 and 4 * 100 * 10
    assert 1 / np.log(100) < second.error.value < 1 / np.log(50)
    assert second.behind.value == pytest.approx(second.error.value - 1 / np.log(1000))
    everything = {candidate.series.algo: candidate for candidate in ranked([expensive, cheap], "test_relative")}
    assert (everything["expensive"].cost, everything["expensive"].behind.value) == (40000, 0)
