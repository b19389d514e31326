"""The itemised bill: as many reveals of each attribute as a literal count of what was asked for."""

import numpy as np
import pytest

from budgetreg.metering.accessor import Accessor, Streams
from budgetreg.metering.table import Table

X = np.arange(24, dtype=np.uint8).reshape(4, 6)
ORDERS = np.array([[3, 0, 1], [2, 1, 0]])
ALL = np.ones((2, 2), dtype=bool)


def accessor(lengths=None):
    return Accessor(Table(X, np.zeros(4)), Streams(ORDERS, lengths), 2, None, (1, 3), itemised=True)


def counted(f, g, reveals):
    return np.bincount(reveals[f][g], minlength=6)


def test_every_way_to_a_value_is_counted_where_its_example_lies():
    a = accessor()
    a.open(0, 2)
    a.reveal_block(np.array([[[5, 5], [0, 1]], [[1, 2], [3, 3]]]))
    a.reveal(np.array([1, 0]), np.array([[[4, 0], [3, 2]]]), np.array([[True, False], [True, True]]))
    a.open(2, 3)
    a.reveal_block(np.array([[[0, 1]], [[2, 3]]]), np.array([[[True, False]], [[True, True]]]))
    some = np.array([[[2, 2], [1, 4]], [[0, 0], [5, 1]]])
    a.reveal_some(0, some, np.array([[[True, True], [True, False]], [[False, True], [False, False]]]))
    a.pay_for(np.array([0, 0]), np.array([[[3, 3], [4, 5]]]), ALL)
    bill = a.bill()
    first = {0: {0: [5, 5], 1: [5, 5]}, 1: {0: [1, 2, 3], 1: [1, 2, 2]}}
    rest = {
        0: {0: [0, 1, 4, 0, 2, 2, 3], 1: [0, 1, 0, 1, 3]},
        1: {0: [3, 3, 2, 3, 0, 4], 1: [3, 3, 2, 3, 5]},
    }
    for f, g in np.ndindex(2, 2):
        np.testing.assert_array_equal(bill.reveals.until(1)[f, g], counted(f, g, first))
        np.testing.assert_array_equal(bill.reveals.total()[f, g], counted(f, g, first) + counted(f, g, rest))
    np.testing.assert_array_equal(bill.reveals.total().sum(axis=2), bill.total)
    np.testing.assert_array_equal(bill.reveals.until(3), bill.reveals.total())
    np.testing.assert_array_equal(bill.reveals.until(1).sum(axis=2), bill.at[1])


@pytest.mark.parametrize("way", ["rows", "distinct_rows"])
def test_full_rows(way):
    a = accessor()
    list(getattr(a, way)(0, 3))
    np.testing.assert_array_equal(a.bill().reveals.total(), 3)
    np.testing.assert_array_equal(a.bill().reveals.until(1), 1)


def test_streams_that_have_ended_are_not_counted():
    a = accessor(lengths=np.array([3, 1]))
    a.open(0, 3)
    a.reveal_block(np.full((2, 3, 1), 5))
    a.reveal(np.array([1, 1]), np.full((1, 2, 2), 4), ALL)
    a.pay_for(np.array([2, 2]), np.full((1, 2, 2), 3), ALL)
    total = a.bill().reveals.total()
    np.testing.assert_array_equal(total[0, 0], [0, 0, 0, 1, 1, 3])
    np.testing.assert_array_equal(total[1, 0], [0, 0, 0, 0, 0, 1])


def test_draws_without_a_name_cannot_be_itemised():
    a = accessor()
    a.open(0, 1)
    with pytest.raises(AssertionError):
        a.pay(np.ones((2, 1, 2), dtype=int))


def test_nothing_is_counted_unasked():
    a = Accessor(Table(X, np.zeros(4)), ORDERS, 2, None, (3,))
    a.open(0, 3)
    assert a.bill().reveals is None
