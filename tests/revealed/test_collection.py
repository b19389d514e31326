"""Draws are planned again as examples double, and what was drawn by each plan is known."""

import numpy as np
import pytest

from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.revealed.collection import collect


@pytest.mark.parametrize("pilot", [0, 7])
@pytest.mark.parametrize("free", [[], [1, 4]])
def test_phases_end_where_draws_were_planned(pilot: int, free: list[int]) -> None:
    """The pilot is a phase of its own, and its rows count as examples of all others."""
    rng, n, d, k = np.random.default_rng(0), 48, 6, 2
    rows = np.arange(n + pilot)[None]
    is_free = np.isin(np.arange(d), free)
    table = Table(rng.normal(size=(n + pilot, d)), rng.normal(size=n + pilot))
    accessor = Accessor(table, rows[:, pilot:], 1, k, [10, n], pilot=rows[:, :pilot], free=is_free)
    first = 2 * (d - len(free)) // k
    plans = [first * 2**i for i in range(6) if first * 2**i < n]
    found = []
    for each in collect(accessor, [10, n], [rng], k):
        found.append((each.examples, each.is_plan, each.is_checkpoint))
        before = [plan for plan in plans if plan < each.examples]
        assert each.phases == (*[pilot][:pilot], *(pilot + end for end in (*before, each.examples)))
        assert sum(block.values.shape[1] for block in each.entries.blocks()) == each.phases[-1]
    assert found == [(t, t in plans, t in (10, n)) for t in sorted({*plans, 10, n})]
