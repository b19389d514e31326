"""Missing values: drawing one is free and returns 0, whatever is stored there."""

import numpy as np
import pytest

from budgetreg.common.errors import BudgetExceeded
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.ledger import Cells, RevealLog
from budgetreg.metering.table import Table, stack

D, M = 3, 4
MASK = np.array([[1, 1, 0], [0, 1, 1], [1, 1, 1], [0, 0, 0]], dtype=bool)
STORED = np.arange(12.0).reshape(M, D) + 1
POISONED = np.where(MASK, STORED, np.nan)


def accessor(X=POISONED, **more) -> Accessor:
    options = {"n_settings": 2, "budget": 3, "checkpoints": [M], **more}
    table = Table(X, np.arange(4.0), 2.0, np.ones(D), MASK, np.full((D, D), 0.5))
    made = Accessor(table, np.arange(M)[None], **options)
    made.open(0, M)
    return made


def test_missing_values_are_free_and_come_out_as_0():
    cells = Cells(M, D)
    a = accessor(log=RevealLog(cells, np.zeros(1, dtype=int), 0), itemised=True)
    drawn = np.ones((1, M, D), dtype=bool)
    drawn[0, 2, 0] = False
    attributes = np.broadcast_to(np.arange(D), (1, M, D))
    values = a.reveal_block(attributes, drawn)
    there = MASK & drawn[0]
    np.testing.assert_array_equal(values[0], np.where(there, 2 * STORED - 1, 0))
    np.testing.assert_array_equal(a.available(attributes)[0], MASK)
    bill = a.bill()
    assert bill.total.tolist() == [[there.sum()] * 2]
    assert bill.most.tolist() == [[2, 2]]
    np.testing.assert_array_equal(bill.reveals.until()[0, 0], there.sum(axis=0))
    np.testing.assert_array_equal(cells.by_attribute(np.arange(M)), there.sum(axis=0))


def test_each_replica_pays_for_the_values_that_it_draws():
    a = accessor()
    position, paid = np.array([1]), np.array([[True, False]])
    j = np.array([[[0, 1]], [[1, 1]], [[2, 2]]])  # (n, F, G)
    np.testing.assert_array_equal(a.reveal(position, j, paid)[:, 0, 0], [0, *(2 * STORED[1, 1:] - 1)])
    a.pay_for(np.array([0]), j, np.array([[True, True]]))
    some = a.reveal_some(3, np.array([[[0, 1], [1, 2]]]), np.ones((1, 2, 2), dtype=bool))
    assert not some.any()
    assert a.bill().total.tolist() == [[4, 2]]


def test_missing_values_do_not_count_against_the_budget():
    a = accessor(budget=2)
    a.reveal_block(np.array([[[0, 1, 2], [0, 1, 2], [0, 1, 1], [0, 1, 2]]])[:, :, :2])
    with pytest.raises(BudgetExceeded):
        a.reveal_block(np.zeros((1, M, 1), dtype=int))
    a.reveal(np.array([3]), np.zeros((9, 1, 2), dtype=int), np.ones((1, 2), dtype=bool))


def test_running_means_skip_missing_values():
    table = Table(POISONED, np.zeros(4), available=MASK)
    a = Accessor(table, np.arange(M)[None], 1, 3, centre_attributes=True)
    a.open(0, 3)
    everything = np.broadcast_to(np.arange(D), (1, 3, D))
    np.testing.assert_array_equal(a.reveal_block(everything)[0], np.where(MASK, STORED, 0)[:3])
    a.open(3, 4)
    (origin,) = a.origins(4)
    np.testing.assert_allclose(origin.shift, np.nanmean(POISONED[:3], axis=0))


def test_full_rows_need_a_complete_table():
    a = Accessor(Table(STORED, np.zeros(4), available=MASK), np.arange(M)[None], 1, 3)
    with pytest.raises(AssertionError):
        a.rows(0, 4)


def test_stacked_tables_keep_their_masks_and_shares():
    shares = [np.full((D, D), 0.25) + np.eye(D) / 2, np.full((D, D), 0.5)]
    first, second = (
        Table(STORED, np.zeros(4), available=mask, together=share)
        for mask, share in zip((MASK, ~MASK), shares, strict=True)
    )
    table, offsets = stack([first, second])
    a = Accessor(table, np.array([[0, 1], [5, 6]]), 1, None)
    a.open(0, 2)
    available = a.available(np.broadcast_to(np.arange(D), (2, 2, D)))
    np.testing.assert_array_equal(available, [MASK[:2], ~MASK[1:3]])
    np.testing.assert_array_equal(a.together(*np.ogrid[:2, :D, :D]), shares)
    np.testing.assert_array_equal(a.together(np.array([1, 0]), np.array([2, 1]), np.array([2, 1])), [0.5, 0.75])
    alone, _ = stack([first, first])
    assert alone is first
    assert offsets == [0, 4]


def test_shares_of_a_complete_table_are_1():
    a = Accessor(Table(STORED, np.zeros(4)), np.arange(M)[None], 1, None)
    a.open(0, M)
    assert a.complete
    assert a.available(np.zeros((1, M, 2), dtype=int)).all()
    assert a.together(*np.ogrid[:1, :D, :D]).tolist() == np.ones((1, D, D)).tolist()
