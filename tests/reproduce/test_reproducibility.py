"""Results compared with the same results computed again: what counts as the same, and how differences are reported."""

import math

import numpy as np
import pytest

from budgetreg.reproduce.verification import largest_difference
from budgetreg.runs.manifest import apart, provenance
from budgetreg.runs.tables import rows_of, tables_of
from tests.toy_runs import toy_entry, toy_plan


def rows(tmp_path, **changes):
    """Both tables of three repetitions; a change is written ``curves__test_mse="0.5"`` and made in the last row."""
    tables = {
        name: rows_of(content)
        for name, content in tables_of(toy_plan(tmp_path), [toy_entry(n) for n in range(3)]).items()
    }
    for key, value in changes.items():
        table, column = key.split("__")
        tables[f"{table}.csv"][-1][column] = value
    return tables


def test_equal_bytes_are_the_same_whatever_the_time_they_took(tmp_path):
    assert largest_difference(rows(tmp_path), rows(tmp_path, runs__seconds="9.5"), range(3)) is None


@pytest.mark.parametrize(
    ("changes", "column", "examples", "relative"),
    [
        ({"curves__test_relative": repr(0.5 * (1 + 2e-12))}, "test_relative", 30, 2e-12),
        ({"curves__test_relative": "0.25"}, "test_relative", 30, 0.5),
        ({"runs__p_eta": "0.2"}, "p_eta", None, 1 / 3),
        ({"curves__attributes": "122.0"}, "attributes", 30, 0.0),  # other bytes of the same number
        ({"runs__edge": "B:low"}, "edge", None, math.inf),
        ({"curves__test_mse": "nan"}, "test_mse", 30, math.inf),
        ({"curves__examples": "31"}, "examples", 30, math.inf),
        ({"curves__test_mse": repr(3 / 90 * (1 + 1e-12)), "runs__p_eta": "0.2"}, "p_eta", None, 1 / 3),  # the largest
    ],
)
def test_the_largest_difference_is_reported(tmp_path, changes, column, examples, relative):
    difference = largest_difference(rows(tmp_path), rows(tmp_path, **changes), range(3))
    assert (difference.column, difference.repetition, difference.examples) == (column, 2, examples)
    assert difference.relative == pytest.approx(relative, rel=1e-3)
    assert difference.within_promise == (relative <= 1e-9)


def test_only_repetitions_that_were_computed_again_are_compared(tmp_path):
    changed = rows(tmp_path, curves__test_mse="0.1")
    assert largest_difference(rows(tmp_path), changed, [0, 1]) is None
    assert largest_difference(rows(tmp_path), changed, [1, 2]) is not None


def test_columns_that_the_record_lacks_are_not_compared(tmp_path):
    recorded, again = rows(tmp_path), rows(tmp_path)
    for row in recorded["runs.csv"]:
        del row["cells_run"]
    for row in again["runs.csv"]:
        row["cells_run"] = "7"
    assert largest_difference(recorded, again, range(3)) is None
    assert largest_difference(again, recorded, range(3)).column == "cells_run"


def test_changes_of_versions_and_processor_are_listed():
    now = provenance()
    assert apart([now], now) == []
    then = {"versions": {**now["versions"], "numpy": "0.1"}, "git": now["git"], "processor": None}
    assert apart([then, now], now) == [f"numpy 0.1 -> {now['versions']['numpy']}", "no record of the processor"]
    elsewhere = {**now, "processor": {**now["processor"], "core": "Abacus"}}
    assert apart([elsewhere], now) == [f"core Abacus -> {now['processor']['core'] or 'none'}"]
    assert now["processor"]["machine"]


def test_a_difference_of_the_model_is_reported_unless_the_tables_differ_more(tmp_path):
    def difference_of(was, now, **changes):
        models = ({2: {"w": np.array(was)}}, {1: {"w": np.array([9.0])}, 2: {"w": np.array(now)}})
        return largest_difference(rows(tmp_path), rows(tmp_path, **changes), range(3), models)

    assert difference_of([1.0, 0.0], [1.0, 0.0]) is None
    difference = difference_of([4.0, 1.0, 0.0], [4.0, 1.0, 1e-3])
    assert (difference.column, difference.repetition, difference.examples, difference.in_model) == (
        "model.w",
        2,
        None,
        True,
    )
    assert difference.relative == pytest.approx(1e-3 / 4)
    assert difference_of([1.0], [1.0, 2.0]).relative == difference_of([1.0], [np.nan]).relative == math.inf
    assert difference_of([0.0], [-0.0]).relative == 0.0  # other bytes of the same number
    # Of two differences beyond the promise, the difference in the tables counts, as it has a checkpoint.
    assert difference_of([1.0], [2.0], curves__test_relative="0.4").column == "test_relative"
    assert difference_of([1.0], [2.0], curves__test_relative=repr(0.5 * (1 + 2e-12))).column == "model.w"
    assert difference_of([1.0], [1 + 1e-12], curves__test_relative="0.4").column == "test_relative"
