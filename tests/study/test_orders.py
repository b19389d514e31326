"""Recommended orders: units, limits over all orders, and the sentence with the reason.

And what to measure next of a new example, compared with the textbook's formula.
"""

from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import budgetreg
from budgetreg.common.errors import ConfigError
from budgetreg.common.notices import Notice
from budgetreg.revealed.purchases import Choice, Draws
from budgetreg.study.model import JointModel
from budgetreg.study.orders import Measurement, next_cells, recommend

pytestmark = pytest.mark.usefixtures("short_chains")


def model(d: int, correlation: float = 0.0, noise: float = 0.02, spread: float = 1e3) -> JointModel:
    """Attributes of very different units, each of which counts as much for the target as any other."""
    units = np.geomspace(1 / spread, spread, d)
    S = (correlation * np.ones((d, d)) + (1 - correlation) * np.eye(d)) * np.outer(units, units)
    return JointModel(np.zeros(d), S, 1 / units, 0.0, noise * d)


def recommended(
    n: int = 200,
    d: int = 8,
    *,
    of: JointModel | None = None,
    known: np.ndarray | None = None,
    ordered: np.ndarray | None = None,
    prices: np.ndarray | None = None,
    spend: float = 600.0,
    per_example: int | None = None,
) -> tuple[Choice, str]:
    seen = np.zeros((n, d), dtype=bool) if known is None else known
    cells = seen, ~seen, seen if ordered is None else ordered
    attributes = np.ones(d) if prices is None else prices, np.arange(d)
    everyone, rng = np.ones(n, dtype=bool), np.random.default_rng(0)
    return recommend(of, *cells, *attributes, everyone, spend, per_example, rng)


def order(*shape: int, **options: Any) -> Choice:
    return recommended(*shape, **options)[0]


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


def test_attributes_count_in_their_own_units() -> None:
    equal, unequal = (order(of=model(8, 0.9, 1.0, spread), known=half_known(), spend=150) for spread in (1.0, 1e3))
    np.testing.assert_array_equal(equal.cells, unequal.cells)


def test_attributes_are_drawn_by_what_varies_by_the_weights_and_by_their_squares() -> None:
    n, d = 4000, 8
    of = model(d)
    large = np.array([4.0, 2.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.0])
    of.w[:] *= large
    shown = np.bincount(order(n, d, of=of, per_example=1, spend=float(n)).cells[:, 1], minlength=d) / n
    residual = np.sqrt(1 - np.square(large) / (np.square(large).sum() + of.noise))
    parts = residual**0.7, large, np.square(large)
    expected = 0.9 * sum(part / part.sum() for part in parts) / 3 + 0.1 / d
    assert (np.abs(shown - expected) < 4 * np.sqrt(expected / n)).all()


@pytest.mark.parametrize("spend", [60.0, 600.0])
def test_an_attribute_that_costs_more_than_the_money_changes_no_plan(spend: float) -> None:
    without, beyond = order(d=7, spend=spend), order(d=8, prices=np.array([1.0] * 7 + [1e3]), spend=spend)
    np.testing.assert_array_equal(beyond.cells, without.cells)


@pytest.mark.parametrize(
    ("kwargs", "said"),
    [
        ({"spend": 60}, "so few known values reveal more"),
        ({"of": model(8, 0.95, 1.0), "known": pairs_known(20), "spend": 100}, "as more of fewer examples are not"),
        ({"of": model(8), "known": half_known()}, "complete rows, of"),
        ({"of": model(8), "known": half_known(), "per_example": 5}, "the most that one example may have"),
        ({"of": model(8, 0.95, 1.0), "known": half_known(40), "n": 40, "spend": 130}, "no more examples"),
        ({"spend": 0.5}, "nothing is ordered"),
        ({"d": 2, "spend": 40}, "complete rows, of 20 examples, as one attribute alone does not show"),
        ({"d": 2, "prices": np.array([1, 3]), "spend": 41}, "complete rows, of 10 of 11 examples, as one"),
        ({"d": 2, "prices": np.array([3, 4]), "spend": 5}, "as much of 1 example as the money pays for, as one"),
        ({"d": 3, "spend": 60}, "complete rows, of 20 examples, as the money pays for enough to see"),
        ({"known": half_known(), "prices": np.array([1.0] * 7 + [0]), "spend": 0}, "cells that cost nothing are all"),
        ({"of": model(8), "known": all_but_one(), "spend": 5}, "the one attribute that can be ordered, of each of 5"),
        (
            {"d": 3, "prices": np.array([1, 1, 900]), "spend": 40},
            "all 2 attributes that can be ordered, of 20 examples",
        ),
        (
            {"d": 3, "known": all_but_one(d=3) & (np.arange(3) == 2), "spend": 40},
            "complete rows, of 20 examples, as one",
        ),
        ({"d": 3, "known": pairs_known(30, d=3), "prices": np.array([1, 1, 0]), "spend": 4}, "complete rows, of 2 ex"),
    ],
)
def test_reason_says_what_decided(kwargs: dict, said: str) -> None:
    _, reason = recommended(**kwargs)
    assert said in reason
    assert "\n" not in reason
    assert len(reason) < 200


def test_what_is_ordered_has_the_least_error_of_what_was_compared() -> None:
    found = order(of=model(8, 0.95, 1.0), known=pairs_known(20), spend=100)
    errors = {each.depth: each.errors[Draws.WEIGHTED] for each in found.alternatives}
    assert list(errors) == [2, 3, 4, 6, 8]
    assert errors[found.depth] == min(errors.values()) < max(errors.values())
    assert np.bincount(found.cells[:, 0]).max() == found.depth
    (ordered,) = (each for each in found.alternatives if each.depth == found.depth)
    assert abs(ordered.examples - len(np.unique(found.cells[:, 0]))) <= 1
    assert order(spend=100).alternatives == ()


def test_a_fixed_subset_is_said_to_be_one() -> None:
    useful, n = np.arange(20) < 3, 900
    of = JointModel(np.zeros(20), np.eye(20), useful.astype(float), 0.0, 0.5)
    known = np.zeros((n, 20), dtype=bool)
    known[:5] = True
    choice, reason = recommended(n, 20, of=of, known=known, prices=np.where(useful, 1.0, 5.0), spend=100)
    assert choice.draws is Draws.FIXED
    assert reason == (
        "up to 3 of 20 attributes each of 34 examples, about the same ones, as others are expected to be worth clearly "
        "less"
    )
    assert set(choice.cells[:, 1]) == {0, 1, 2}


def test_limit_per_example_holds_over_all_orders() -> None:
    known = half_known()
    first = order(of=model(8), known=known, per_example=4, spend=150)
    pending = np.zeros_like(known)
    pending[tuple(first.cells.T)] = True
    second = order(of=model(8), known=known | pending, per_example=4, spend=2000)
    pending[tuple(second.cells.T)] = True
    np.testing.assert_array_equal((known | pending).sum(axis=1), 4)
    # Cells that were known beforehand need not count.
    more = order(of=model(8), known=known, per_example=4, spend=2000, ordered=np.zeros_like(known))
    np.testing.assert_array_equal(np.bincount(more.cells[:, 0]), 4)


D = 5
NOISE = 0.5
EQUAL = np.ones(D)


def model_of(seed: int, independent: bool = False) -> JointModel:
    rng = np.random.default_rng(seed)
    A = np.eye(D) if independent else rng.standard_normal((D, D))
    scale = np.exp(3 * rng.standard_normal(D))
    covariance = A @ A.T * np.outer(scale, scale)
    return JointModel(np.zeros(D), covariance, rng.standard_normal(D) / scale, 0.0, NOISE)


def deviation(model: JointModel, known: tuple[int, ...]) -> float:
    """By the textbook's formula for the covariance of the missing attributes given the known ones."""
    K, U = list(known), [j for j in range(D) if j not in known]
    S, w = model.covariance, model.w[U]
    V = S[np.ix_(U, U)] - S[np.ix_(U, K)] @ np.linalg.solve(S[np.ix_(K, K)], S[np.ix_(K, U)])
    return float(np.sqrt(w @ V @ w + model.noise))


def row(known: tuple[int, ...]) -> np.ndarray:
    x = np.full(D, np.nan)
    x[list(known)] = 1.0
    return x


def measured(
    model: JointModel,
    *rows: np.ndarray,
    prices: np.ndarray = EQUAL,
    heads: tuple[int, ...] = (0, 1, 2, 3, 4),
    spend: float = np.inf,
) -> list[list[Measurement]]:
    return next_cells(model, np.stack(rows), prices, np.array(heads), np.zeros(D, dtype=bool), spend)


HOLES = st.sets(st.integers(0, D - 1), max_size=D).map(lambda known: tuple(sorted(known)))
PRICES = st.lists(st.sampled_from([0.0, 0.1, 1.0, 2.5]), min_size=D, max_size=D).map(np.array)
PARTITIONS = st.sampled_from([(0, 1, 2, 3, 4), (0, 0, 2, 3, 4), (0, 1, 0, 3, 3), (0, 1, 1, 1, 1)])


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), HOLES, PRICES, PARTITIONS, st.sampled_from([0.0, 0.2, 3.0, np.inf]))
@example(3, (), np.array([0.1, 0, 0, 0.1, 0.1]), (0, 0, 2, 3, 4), 0.0)  # a free attribute that adds little
def test_each_step_is_the_best_one_that_can_be_afforded(
    seed: int, known: tuple[int, ...], prices: np.ndarray, heads: tuple[int, ...], spend: float
) -> None:
    model, left = model_of(seed), spend
    nothing = 1e-9 * model.w @ model.covariance @ model.w
    (order,) = measured(model, row(known), prices=prices, heads=heads, spend=spend)
    for step in [*order, None]:
        before = deviation(model, known)
        missing = sorted({int(heads[j]) for j in range(D) if j not in known})
        units = [(head, tuple(j for j in range(D) if heads[j] == head and j not in known)) for head in missing]
        gains = {
            unit: (before**2 - deviation(model, known + unit) ** 2, prices[head])
            for head, unit in units
            if prices[head] <= left + 1e-9
        }
        free = {unit: gain for unit, (gain, price) in gains.items() if price == 0 and gain > nothing}
        scores = free or {unit: gain / price for unit, (gain, price) in gains.items() if price > 0}
        best = max(scores.values(), default=0.0)
        if step is None:
            assert max((gain for gain, _ in gains.values()), default=0.0) <= 1.01 * nothing
            break
        assert scores[step.attributes] == pytest.approx(best, rel=1e-5)
        assert step.price == prices[heads[step.attributes[0]]]
        assert step.before == pytest.approx(before, rel=1e-6)
        known, left = known + step.attributes, left - step.price
        assert step.after == pytest.approx(deviation(model, known), rel=1e-6)
        assert left >= -1e-9


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10**6), HOLES)
def test_no_order_of_independent_attributes_is_better(seed: int, known: tuple[int, ...]) -> None:
    model = model_of(seed, independent=True)
    (order,) = measured(model, row(known))
    missing = [j for j in range(D) if j not in known]
    for orders in permutations(missing):
        for bought in range(1, len(missing) + 1):
            assert order[bought - 1].after <= deviation(model, known + orders[:bought]) * (1 + 1e-9)


@pytest.mark.parametrize("spend", [1.0, 2.0])
def test_one_step_is_the_best_subset_and_two_are_nearly(spend: float) -> None:
    model = model_of(3)
    best = min(deviation(model, subset) for subset in combinations(range(D), int(spend)))
    reached = measured(model, row(()), spend=spend)[0][-1].after
    assert best * (1 - 1e-9) <= reached <= best * (1 if spend == 1 else 1.2) + 1e-9


def test_spend_holds_for_each_example_and_to_the_cent() -> None:
    model = model_of(1, independent=True)
    rows = row(()), row((0,)), row((0, 1, 2, 3, 4)), row(())
    orders = measured(model, *rows, prices=np.full(D, 0.1), spend=0.3)
    assert [len(order) for order in orders] == [3, 3, 0, 3]
    assert orders[0] == orders[3]


def test_what_the_known_attributes_determine_is_not_measured() -> None:
    model = model_of(2)
    model.covariance[4] = model.covariance[3]
    model.covariance[:, 4] = model.covariance[:, 3]
    model.w[:3] = 0.0
    model.w[3:] = 1.0
    (order,) = measured(model, row((0, 1)))
    assert sum(3 in step.attributes or 4 in step.attributes for step in order) == 1


def test_a_group_of_similar_attributes_counts_for_what_it_brings_together() -> None:
    model = model_of(0, independent=True)
    model.covariance[:] = np.eye(D)
    model.covariance[:3, :3] += 0.99 * (1 - np.eye(3))
    model.w[:] = 1.0, 1.0, -1.9, 0.5, 0.0
    (order,) = measured(model, row(()), heads=(0, 0, 0, 3, 4))
    assert [step.attributes for step in order] == [(3,), (0, 1, 2)]


def test_an_attribute_without_variance_changes_nothing() -> None:
    model = model_of(0)
    model.covariance[0] = model.covariance[:, 0] = 0.0
    known, unknown = measured(model, row((0,)), row(()))
    assert known == unknown
    assert len(known) == D - 1


@pytest.mark.parametrize(
    ("equal", "tiny", "unordered"),
    [(43, 15, set()), (44, 15, {"constant"}), (43, 16, {"tiny"}), (44, 16, {"constant", "tiny"})],
)
def test_attributes_that_would_show_nothing_more_are_not_ordered(
    tmp_path: Path, equal: int, tiny: int, unordered: set[str]
) -> None:
    n, rng = 60, np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    examples = pd.DataFrame(X, columns=["a", "b", "c"]).assign(constant=5.0, tiny=1e-6 * rng.normal(size=n))
    for column, known in {"a": 40, "b": 40, "c": 40, "constant": equal, "tiny": tiny}.items():
        examples.loc[known:, column] = np.nan
    costs = {**dict.fromkeys("abc", 1), "constant": 2, "tiny": 2}
    study = budgetreg.Study.create(tmp_path / "s.db", examples=examples, targets=X.sum(axis=1), costs=costs)
    with pytest.warns(Notice) as notices:
        order = study.ask(spend=1000)
    assert set(order["attribute"]) == set(costs) - unordered
    said = [str(notice.message) for notice in notices if "not ordered" in str(notice.message)]
    assert len(said) == bool(unordered)
    assert all(name in said[0] for name in unordered)


def test_an_order_of_nothing_but_what_would_show_nothing_is_refused(tmp_path: Path) -> None:
    known = pd.DataFrame({"a": np.arange(60.0), "b": np.arange(60.0) ** 2 % 7, "constant": [5.0] * 50 + [np.nan] * 10})
    study = budgetreg.Study.create(tmp_path / "s.db", examples=known, targets=np.arange(60.0))
    with pytest.raises(ConfigError, match=r"nothing left to order: more values would show nothing of .*: 'constant'"):
        study.ask(spend=1000)


def test_an_order_says_what_comes_without_a_price_and_orders_it_of_no_example_without_a_target(tmp_path: Path) -> None:
    names = [f"p{i}" for i in range(8)]
    study = budgetreg.Study.create(
        tmp_path / "s.db",
        examples=pd.DataFrame({"b": [1.0, 4, 2, 2, 4, 1, 0, 1]}, index=names),
        targets=dict(zip(names[:6], [1.0, 2, 3, 4, 5, 6], strict=True)),
        costs={"a": 3, "b": 1, "c": 0},
    )
    order = study.propose(spend=3)
    assert [(attribute, cost) for _, _, attribute, cost in order.lines] == [("a", 3.0), *[("c", 0.0)] * 6]
    assert not {example for _, example, *_ in order.lines} & set(names[6:])
    assert order.reason == "the one attribute with a price, of each of 1 example; 6 values of no cost besides"
    with pytest.raises(ConfigError, match=r"left and has a price costs less than 3 .*; values that cost nothing are"):
        budgetreg.Study.create(
            tmp_path / "u.db", examples=pd.DataFrame(index=["p1"]), targets=[1.0], costs={"a": 0, "b": 3}
        ).ask(spend=2)


def test_nothing_is_ordered_in_a_study_without_examples(tmp_path: Path) -> None:
    study = budgetreg.Study.create(tmp_path / "s.db", examples=[], costs={"a": 1, "b": 2})
    with pytest.raises(ConfigError, match="there is nothing left to order: every value is known, on order or unavail"):
        study.ask(spend=3)


def test_what_has_no_price_does_not_count_for_the_limit_of_an_example(tmp_path: Path) -> None:
    study = budgetreg.Study.create(tmp_path / "s.db", examples=["p1", "p2", "p3"], costs={"a": 1, "b": 1})
    study.ask(spend=4)  # two complete rows
    study.add(costs={"d": 0})
    order = study.propose(spend=1, per_example=1)
    assert [attribute for _, _, attribute, _ in order.lines].count("d") == 3
    assert order.reason.endswith("3 values of no cost besides")


def test_a_forecast_ends_where_nothing_is_ordered_any_more(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    examples = pd.DataFrame(X, columns=["a", "b"]).assign(constant=5.0)
    examples.loc[50:, "constant"] = examples.loc[10:, "b"] = np.nan
    study = budgetreg.Study.create(
        tmp_path / "s.db", examples=examples, targets=X.sum(axis=1), costs={"a": 1, "b": 2, "constant": 3}
    )
    study.tell(pd.DataFrame({"example": list(map(str, range(11, 51))), "attribute": "b", "value": X[10:50, 1]}))
    assert [spending for spending, _ in study.estimates().further] == [20]
