"""Recommended orders: limits over all orders, groups, targets that are missing, and the sentence with the reason."""

import numpy as np
import pytest

from budgetreg.data.dataset import Groups
from budgetreg.study.model import JointModel
from budgetreg.study.orders import Recommendation, recommend

pytestmark = pytest.mark.usefixtures("short_chains")


def model(d: int, correlation: float = 0.0, noise: float = 0.02, spread: float = 1e3) -> JointModel:
    """Attributes of very different units, each of which counts as much for the target as any other."""
    units = np.geomspace(1 / spread, spread, d)
    S = (correlation * np.ones((d, d)) + (1 - correlation) * np.eye(d)) * np.outer(units, units)
    return JointModel(np.zeros(d), S, 1 / units, 0.0, noise * d)


def order(
    n: int = 200,
    d: int = 8,
    *,
    of: JointModel | None = None,
    known: np.ndarray | None = None,
    blocked: np.ndarray | None = None,
    prices: np.ndarray | None = None,
    groups: Groups | None = None,
    spend: float = 600.0,
    per_example: int | None = None,
    seed: int = 0,
    has_target: np.ndarray | None = None,
    ordered: np.ndarray | None = None,
) -> Recommendation:
    nothing = np.zeros((n, d), dtype=bool)
    return recommend(
        of,
        nothing if known is None else known,
        nothing if blocked is None else blocked,
        np.ones(d) if prices is None else prices,
        groups,
        spend,
        per_example,
        np.random.default_rng(seed),
        np.ones(n, dtype=bool) if has_target is None else has_target,
        ordered=ordered,
    )


def all_but_one(n: int = 200, d: int = 8) -> np.ndarray:
    known = np.ones((n, d), dtype=bool)
    known[:, 0] = False
    return known


def half_known(n: int = 200, d: int = 8) -> np.ndarray:
    return pairs_known(n // 2, n, d)


def pairs_known(examples: int, n: int = 200, d: int = 8) -> np.ndarray:
    known = np.zeros((n, d), dtype=bool)
    known[:examples, :2] = True
    return known


def test_one_file_and_seed_give_one_order() -> None:
    first, again, other = (order(of=model(8, 0.9, 1.0), known=half_known(), spend=100, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.cells, again.cells)
    assert not np.array_equal(first.cells, other.cells)


def test_attributes_count_in_their_own_units() -> None:
    equal, unequal = (order(of=model(8, 0.9, 1.0, spread), known=half_known(), spend=150) for spread in (1.0, 1e3))
    np.testing.assert_array_equal(equal.cells, unequal.cells)


@pytest.mark.parametrize(
    ("kwargs", "said"),
    [
        ({"spend": 60}, "so few known values reveal more"),
        ({"of": model(8, 0.95, 1.0), "known": pairs_known(20), "spend": 100}, "as attributes are correlated"),
        ({"of": model(8), "known": half_known()}, "complete rows, of"),
        ({"of": model(8), "known": half_known(), "per_example": 5}, "the most that one example may have"),
        ({"of": model(8, 0.95, 1.0), "known": half_known(40), "n": 40, "spend": 120}, "no more examples"),
        ({"spend": 0.5}, "nothing is ordered"),
        ({"d": 2, "spend": 40}, "complete rows, of 20 examples, as one attribute alone does not show"),
        ({"d": 3, "spend": 60}, "complete rows, of 20 examples, as the money pays for enough to see"),
        ({"known": half_known(), "prices": np.array([1.0] * 7 + [0]), "spend": 0}, "cells that cost nothing are all"),
        ({"of": model(8), "known": all_but_one(), "spend": 5}, "the one attribute that is left to order, of each of 5"),
    ],
)
def test_reason_says_what_decided(kwargs: dict, said: str) -> None:
    reason = order(**kwargs).reason
    assert said in reason
    assert "\n" not in reason
    assert len(reason) < 200


def test_the_depth_that_is_ordered_is_among_the_best_that_were_compared() -> None:
    found = order(of=model(8, 0.95, 1.0), known=pairs_known(20), spend=100)
    errors = {each.depth: each.error for each in found.alternatives}
    assert list(errors) == [2, 3, 4, 5, 6, 8]
    depth = np.bincount(found.cells[:, 0]).max()
    assert errors[depth] <= 1.02 * min(errors.values()) < max(errors.values())
    assert all(each.examples == min(round(140 / each.depth), 200) for each in found.alternatives)
    assert order(spend=100).alternatives == ()


def test_limit_per_example_holds_over_all_orders() -> None:
    known = half_known()
    first = order(of=model(8), known=known, per_example=4, spend=150)
    pending = np.zeros_like(known)
    pending[tuple(first.cells.T)] = True
    second = order(of=model(8), known=known, blocked=pending, per_example=4, spend=2000)
    pending[tuple(second.cells.T)] = True
    np.testing.assert_array_equal((known | pending).sum(axis=1), 4)
    # Cells that were known beforehand need not count.
    more = order(of=model(8), known=known, per_example=4, spend=2000, ordered=np.zeros_like(known))
    np.testing.assert_array_equal(np.bincount(more.cells[:, 0]), 4)


def test_blocked_cells_are_not_ordered() -> None:
    blocked = np.random.default_rng(0).random((200, 8)) < 0.5
    cells = order(blocked=blocked, spend=5000).cells
    assert not blocked[tuple(cells.T)].any()
    assert len(cells) == (~blocked).sum()


def test_groups_are_ordered_as_a_whole_at_one_price() -> None:
    groups = Groups((0, 0, 0, 3, 4, 4))
    prices = np.array([5.0, 5.0, 5.0, 1.0, 2.0, 2.0])
    result = order(d=6, prices=prices, groups=groups, spend=301.0)
    ordered = np.zeros((200, 6), dtype=bool)
    ordered[tuple(result.cells.T)] = True
    assert (ordered == ordered[:, groups.head_of]).all()
    assert result.cost == (ordered[:, groups.leads] * prices[groups.leads]).sum()
    assert 300 <= result.cost <= 301


def test_free_cells_come_with_the_examples_of_an_order() -> None:
    prices = np.array([0.0, 1.0, 1.0, 1.0])
    result = order(d=4, prices=prices, spend=40)
    assert result.cost == 40
    priced, free = (result.cells[prices[result.cells[:, 1]] == price, 0] for price in (1.0, 0.0))
    assert set(priced) == set(free)
    all_free = order(d=4, prices=np.zeros(4), spend=0.0)
    assert (all_free.cost, len(all_free.cells)) == (0.0, 800)
    assert "cost nothing" in all_free.reason


def test_examples_without_a_target_wait_unless_no_target_is_known() -> None:
    has_target = np.arange(200) % 2 == 0
    cells = order(spend=5000, has_target=has_target).cells
    assert set(cells[:, 0]) == set(np.flatnonzero(has_target))
    assert len(order(spend=5000, has_target=np.zeros(200, dtype=bool)).cells) == 1600


def test_examples_begun_are_preferred() -> None:
    known = np.zeros((200, 8), dtype=bool)
    known[150:, 3] = True
    assert set(order(of=model(8), known=known, spend=100).cells[:, 0]) <= set(range(150, 200))
