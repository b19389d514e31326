"""What each plan drew is known; all values that are present are collected once, in rows of about their width."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budgetreg.estimators import AEMR
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.revealed.collection import collect, collect_everything
from tests.estimators.tables import table


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


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 9),
    share=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    pilot=st.integers(0, 2),
)
def test_each_present_value_is_in_one_block_with_its_target(seed: int, d: int, share: float, pilot: int) -> None:
    rng = np.random.default_rng(seed)
    n = 300  # more than one block of examples
    X, y, available = rng.standard_normal((n, d)), rng.standard_normal(n), rng.random((n, d)) < share
    available[:pilot] = True
    y[rng.random(n) < 0.2] = np.nan
    orders = np.stack([pilot + rng.permutation(n - pilot) for _ in range(2)])
    table = Table(X, y, available=available)
    accessor = Accessor(table, orders, 1, d, [100, n - pilot], pilot=np.tile(np.arange(pilot), (2, 1)))
    collected = list(collect_everything(accessor, [100, n - pilot]))
    assert [(part.examples, part.is_checkpoint, part.is_plan) for part in collected] == [
        (100, True, False),
        (n - pilot, True, False),
    ]
    for f in range(2):
        found = []
        for block in collected[-1].entries.blocks():
            for attributes, values in zip(block.attributes[f].tolist(), block.values[f].tolist(), strict=True):
                *cells, (target, value) = zip(attributes, values, strict=True)
                assert all(j != d for j, _ in cells)  # which would be one more target
                seen = sorted((j, x) for j, x in cells if j < d)
                found.append(repr((seen, value if target == d else np.nan)))
        rows = [*range(pilot), *orders[f].tolist()]
        present = [[(j, float(X[t, j])) for j in np.flatnonzero(available[t]).tolist()] for t in rows]
        assert sorted(found) == sorted(repr((cells, float(y[t]))) for cells, t in zip(present, rows, strict=True))
    assert accessor.bill().total.ravel().tolist() == [available[pilot:].sum()] * 2


def test_rows_are_no_wider_than_twice_what_they_hold() -> None:
    """So a table that is nearly empty costs little, however many attributes it has."""
    rng = np.random.default_rng(0)
    available = rng.random((500, 200)) < 0.02
    available[7] = True
    accessor = Accessor(Table(np.ones((500, 200)), np.ones(500), available=available), np.arange(500)[None], 1, None)
    (collected,) = collect_everything(accessor, [500])
    assert collected.entries.size < 3 * available.sum() + 2 * 500


def test_budgets_hold() -> None:
    accessor = Accessor(Table(np.ones((5, 3)), np.ones(5)), np.arange(5)[None], 1, 2)
    with pytest.raises(RuntimeError, match="would cost 3 attributes; the budget is 2"):
        list(collect_everything(accessor, [5]))


def test_of_complete_rows_it_is_what_draws_of_all_attributes_reveal() -> None:
    X, y = table(60, 4)
    everything, drawn = AEMR().fit(X, y), AEMR(k=4, pilot=0).fit(X, y)
    np.testing.assert_allclose(everything.coef_, drawn.coef_, rtol=1e-9)
    assert everything.attributes_seen_ == drawn.attributes_seen_ == X.size
