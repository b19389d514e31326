"""The itemised bill equals a literal count of the attributes that were asked for."""

import numpy as np
import pytest

from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table

X = np.arange(24, dtype=np.uint8).reshape(4, 6)
ORDERS = np.array([[3, 0, 1], [2, 1, 0]])
ALL = np.ones((2, 2), dtype=bool)


def accessor(lengths=None):
    return Accessor(Table(X, np.zeros(4)), ORDERS, 2, None, (1, 3), lengths=lengths, itemised=True)


def counted(f, g, reveals):
    return np.bincount(reveals[f][g], minlength=6)


def test_every_reveal_is_counted_before_the_next_checkpoint():
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
        np.testing.assert_array_equal(bill.reveals.until()[f, g], counted(f, g, first) + counted(f, g, rest))
    np.testing.assert_array_equal(bill.reveals.until().sum(axis=2), bill.total)
    np.testing.assert_array_equal(bill.reveals.until(3), bill.reveals.until())
    np.testing.assert_array_equal(bill.reveals.until(1).sum(axis=2), bill.at[1])


@pytest.mark.parametrize("way", ["rows", "distinct_rows"])
def test_full_rows_count_each_attribute_once(way):
    a = accessor()
    list(getattr(a, way)(0, 3))
    np.testing.assert_array_equal(a.bill().reveals.until(), 3)
    np.testing.assert_array_equal(a.bill().reveals.until(1), 1)


def test_nothing_is_counted_after_the_end_of_a_stream():
    a = accessor(lengths=np.array([3, 1]))
    a.open(0, 3)
    a.reveal_block(np.full((2, 3, 1), 5))
    a.reveal(np.array([1, 1]), np.full((1, 2, 2), 4), ALL)
    a.pay_for(np.array([2, 2]), np.full((1, 2, 2), 3), ALL)
    total = a.bill().reveals.until()
    np.testing.assert_array_equal(total[0, 0], [0, 0, 0, 1, 1, 3])
    np.testing.assert_array_equal(total[1, 0], [0, 0, 0, 0, 0, 1])


def test_an_itemised_bill_needs_named_draws():
    a = accessor()
    a.open(0, 1)
    with pytest.raises(AssertionError):
        a.pay(np.ones((2, 1, 2), dtype=int))


def test_a_bill_is_itemised_only_on_request():
    a = Accessor(Table(X, np.zeros(4)), ORDERS, 2, None, (3,))
    a.open(0, 3)
    assert a.bill().reveals is None
