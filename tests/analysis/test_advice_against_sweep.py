"""The comparison of an advice with a sweep: its verdicts on synthetic errors, and those that are committed."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from advice_against_sweep import CASES, ROOT, tried, verdict

from budgetreg.analysis.comparisons import ranked
from tests.analysis.test_advice import with_errors

SPLITS = 0.3 + 0.01 * np.arange(10)


def candidates(**errors):
    """Return choices ranked by their errors, such as ``a4=0.3``: learner a with k = 4."""
    series = [replace(with_errors(name[0], SPLITS + error), k=int(name[1:])) for name, error in errors.items()]
    return ranked(series, "test_relative")


@pytest.mark.parametrize(
    ("advice", "sweep", "undecided", "expected"),
    [
        ({"a4": 0, "b4": 0.1}, {"a4": 0, "b4": 0.1}, "no", "holds"),
        ({"a4": 0, "b4": 0.1}, {"a4": 0.01, "b4": 0}, "no", "holds"),
        ({"a4": 0, "b4": 0.1}, {"a4": 0.03, "b4": 0}, "no", "fails"),
        ({"a4": 0, "b4": 0}, {"a4": 0.03, "b4": 0}, "yes", "holds"),
        ({"a4": 0, "b4": 0}, {"a4": 0.03, "b4": 0.01, "a3": 0}, "not tried", "fails"),
        ({"a4": 0, "b4": 0}, {"a4": 0.01, "b4": 0.01, "a3": 0}, "not tried", "holds"),
    ],
)
def test_an_advice_is_right_if_it_is_close_or_did_not_decide(advice, sweep, undecided, expected):
    row = verdict(candidates(**advice), candidates(**sweep))
    assert (row["undecided"], row["verdict"]) == (undecided, expected)
    assert row["recommended"] == "a k=4"
    assert float(row["gap"]) == pytest.approx(sweep["a4"] - min(sweep.values()), abs=1e-4)
    assert float(row["gap_low"]) <= float(row["gap"]) <= float(row["gap_high"])


def test_a_sweep_tries_every_k_or_twelve_that_include_those_of_advise():
    assert tried(10) == list(range(1, 11))
    for d in (13, 20, 30, 64):
        powers = {2**i for i in range(1, 10) if 2**i < d}
        assert {1, d} | powers <= set(tried(d))
        assert len(tried(d)) <= 12
        assert max(tried(d)) == d


def test_committed_advice_is_right():
    """The acceptance: within 0.02 of the best choice of the sweep, or reported as undecided."""
    with (ROOT / "results" / "advice_against_sweep.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["table"] for row in rows} == set(CASES)
    for row in rows:
        assert row["verdict"] == "holds", row
        assert float(row["gap"]) <= 0.02 or row["undecided"] == "yes"
