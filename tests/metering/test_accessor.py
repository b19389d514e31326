"""The accessor counts every reveal, and no reveal exceeds the budget."""

import numpy as np
import pytest

from budgetreg.common.errors import BudgetExceeded
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table

X = np.arange(24, dtype=np.uint8).reshape(4, 6)
ORDERS = np.array([[3, 0, 1], [2, 1, 0]])
ALL = np.ones((2, 2), dtype=bool)


def accessor(budget=3, checkpoints=(1, 3), shift=None):
    return Accessor(Table(X, np.arange(4.0), 0.5, shift), ORDERS, 2, budget, checkpoints)


def test_values_are_those_of_the_named_examples():
    a = accessor(shift=np.full(6, 1.0))
    a.open(0, 2)
    attributes = np.array([[[5], [0]], [[1], [2]]])
    expected = X[[[3, 0], [2, 1]], attributes[..., 0]] * 0.5 - 1.0
    np.testing.assert_array_equal(a.reveal_block(attributes)[..., 0], expected)
    attributes_of_replicas = np.array([[[4, 0], [3, 2]]])
    expected = X[[[0, 0], [1, 1]], attributes_of_replicas[0]] * 0.5 - 1.0
    np.testing.assert_array_equal(a.reveal(np.array([1, 1]), attributes_of_replicas, ALL)[0], expected)
    np.testing.assert_array_equal(a.targets(), [[3, 0], [2, 1]])


def test_repeated_draws_are_charged_again():
    a = accessor()
    a.open(0, 1)
    a.reveal_block(np.zeros((2, 1, 2), dtype=int))
    a.open(1, 3)
    a.reveal_block(np.zeros((2, 2, 1), dtype=int))
    a.reveal(np.array([0, 1]), np.zeros((2, 2, 2), dtype=int), np.array([[True, False], [True, True]]))
    a.pay(np.ones((2, 2, 2), dtype=int) * np.array([0, 1])[None, :, None] * np.array([1, 0])[:, None, None])
    bill = a.bill()
    np.testing.assert_array_equal(bill.at[1], [[2, 2], [2, 2]])
    np.testing.assert_array_equal(bill.total, [[2 + 2 + 2 + 1, 2 + 2 + 1], [2 + 2 + 2, 2 + 2 + 2]])
    np.testing.assert_array_equal(bill.at[3], bill.total)
    assert bill.most.max() == 3


def test_replicas_that_do_not_pay_get_zeros():
    a = accessor()
    a.open(0, 1)
    paid = np.array([[False, True], [True, True]])
    values = a.reveal(np.array([0, 0]), np.full((1, 2, 2), 5), paid)
    np.testing.assert_array_equal(values[0], np.where(paid, (X[[3, 2], 5] * 0.5)[:, None], 0))


@pytest.mark.parametrize("way", ["block", "example", "pay", "rows"])
def test_overspend_is_refused(way):
    a = accessor()
    if way == "rows":
        with pytest.raises(BudgetExceeded, match="would cost 6 attributes; the budget is 3"):
            a.rows(0, 1)
        return
    a.open(0, 1)
    a.reveal_block(np.zeros((2, 1, 2), dtype=int))
    with pytest.raises(BudgetExceeded, match="would cost 4 attributes; the budget is 3"):
        if way == "block":
            a.reveal_block(np.zeros((2, 1, 2), dtype=int))
        elif way == "example":
            a.reveal(np.array([0, 0]), np.zeros((2, 2, 2), dtype=int), ALL)
        else:
            a.pay(np.full((2, 1, 2), 2))
    assert a.bill().most.max() == 2


def test_one_replica_over_its_budget_is_refused():
    a = accessor(budget=1)
    a.open(0, 1)
    a.pay(np.array([[[1, 0]], [[0, 0]]]))
    alone = np.array([[True, False], [False, False]])  # the other replicas' savings do not help it
    with pytest.raises(BudgetExceeded):
        a.reveal(np.array([0, 0]), np.zeros((1, 2, 2), dtype=int), alone)


def test_a_stream_that_has_ended_gets_zeros_and_pays_nothing():
    a = Accessor(Table(X, np.arange(4.0)), ORDERS, 2, 4, (1, 3), lengths=np.array([3, 1]))
    a.open(0, 3)
    there = np.array([[1, 1, 1], [1, 0, 0]])
    np.testing.assert_array_equal(a.reveal_block(np.full((2, 3, 1), 5))[..., 0], X[ORDERS, 5] * there)
    values = a.reveal(np.array([1, 1]), np.full((1, 2, 2), 5), ALL)
    np.testing.assert_array_equal(values[0], [[5, 5], [0, 0]])
    some = a.reveal_some(2, np.full((2, 2, 1), 5), np.ones((2, 2, 1), dtype=bool))
    np.testing.assert_array_equal(some[..., 0], [[11, 11], [0, 0]])
    a.pay(np.ones((2, 3, 2), dtype=int))
    bill = a.bill()
    np.testing.assert_array_equal(bill.at[1], [[2, 2], [2, 2]])
    np.testing.assert_array_equal(bill.total, [[8, 8], [2, 2]])


def test_full_rows_cost_d_each():
    a = accessor(budget=6)
    rows, y = a.rows(0, 2)
    np.testing.assert_array_equal(rows, X[ORDERS[:, :2]] * 0.5)
    np.testing.assert_array_equal(y, ORDERS[:, :2])
    assert (a.bill().total == 12).all()


def test_examples_are_opened_in_order_and_once():
    a = accessor()
    a.open(0, 2)
    for start, stop in [(1, 3), (0, 1), (2, 2), (2, 4)]:
        with pytest.raises(ValueError, match="do not follow"):
            a.open(start, stop)


def test_attributes_of_a_block_that_are_not_drawn_are_free_and_come_out_as_0():
    stored = np.where(np.arange(6) < 4, X, np.nan)
    a = Accessor(Table(stored, np.zeros(4)), ORDERS, 2, 2, (3,))
    a.open(0, 3)
    attributes = np.tile([0, 5, 3], (2, 3, 1))
    drawn = np.tile([True, False, True], (2, 3, 1))
    drawn[1, 2] = False
    values = a.reveal_block(attributes, drawn)
    np.testing.assert_array_equal(values[0], [[18, 0, 21], [0, 0, 3], [6, 0, 9]])
    np.testing.assert_array_equal(values[1, 2], [0, 0, 0])
    np.testing.assert_array_equal(a.bill().total, [[6, 6], [4, 4]])
    assert (a.bill().most == 2).all()
    b = Accessor(Table(stored, np.zeros(4)), ORDERS, 2, 1, (3,))
    b.open(0, 3)
    with pytest.raises(BudgetExceeded):
        b.reveal_block(attributes, drawn)
