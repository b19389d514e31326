from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from budgetreg.common.errors import DataError
from budgetreg.data.dataset import Groups
from budgetreg.study.model import JointModel
from budgetreg.study.orders import next_cells

pytestmark = pytest.mark.usefixtures("short_chains")

D = 5
NOISE = 0.5


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


HOLES = st.sets(st.integers(0, D - 1), max_size=D).map(lambda known: tuple(sorted(known)))
PRICES = st.lists(st.sampled_from([0.0, 0.1, 1.0, 2.5]), min_size=D, max_size=D).map(np.array)
PARTITIONS = st.sampled_from([None, Groups((0, 0, 2, 3, 4)), Groups((0, 1, 0, 3, 3)), Groups((0, 1, 1, 1, 1))])


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), HOLES, PRICES, PARTITIONS, st.sampled_from([0.0, 0.2, 3.0, np.inf]))
@example(3, (), np.array([0.1, 0, 0, 0.1, 0.1]), Groups((0, 0, 2, 3, 4)), 0.0)  # a free attribute that adds little
def test_each_step_is_the_best_one_that_can_be_afforded(
    seed: int, known: tuple[int, ...], prices: np.ndarray, groups: Groups | None, spend: float
) -> None:
    model, left = model_of(seed), spend
    nothing = 1e-9 * model.w @ model.covariance @ model.w
    heads = np.arange(D) if groups is None else groups.head_of
    order = next_cells(model, row(known)[None], prices, groups, spend)[0]
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
    order = next_cells(model, row(known)[None], np.ones(D))[0]
    missing = [j for j in range(D) if j not in known]
    for orders in permutations(missing):
        for bought in range(1, len(missing) + 1):
            assert order[bought - 1].after <= deviation(model, known + orders[:bought]) * (1 + 1e-9)


@pytest.mark.parametrize("spend", [1.0, 2.0])
def test_one_step_is_the_best_subset_and_two_are_nearly(spend: float) -> None:
    model = model_of(3)
    best = min(deviation(model, subset) for subset in combinations(range(D), int(spend)))
    reached = next_cells(model, row(())[None], np.ones(D), spend=spend)[0][-1].after
    assert best * (1 - 1e-9) <= reached <= best * (1 if spend == 1 else 1.2) + 1e-9


def test_spend_holds_for_each_example_and_to_the_cent() -> None:
    model = model_of(1, independent=True)
    X = np.stack([row(()), row((0,)), row((0, 1, 2, 3, 4)), row(())])
    orders = next_cells(model, X, np.full(D, 0.1), spend=0.3)
    assert [len(order) for order in orders] == [3, 3, 0, 3]
    assert orders[0] == orders[3]


def test_what_the_known_attributes_determine_is_not_measured() -> None:
    model = model_of(2)
    model.covariance[4] = model.covariance[3]
    model.covariance[:, 4] = model.covariance[:, 3]
    model.w[:3] = 0.0
    model.w[3:] = 1.0
    (order,) = next_cells(model, row((0, 1))[None], np.ones(D))
    assert sum(3 in step.attributes or 4 in step.attributes for step in order) == 1


def test_a_group_of_similar_attributes_counts_for_what_it_brings_together() -> None:
    model = model_of(0, independent=True)
    model.covariance[:] = np.eye(D)
    model.covariance[:3, :3] += 0.99 * (1 - np.eye(3))
    model.w[:] = 1.0, 1.0, -1.9, 0.5, 0.0
    (order,) = next_cells(model, row(())[None], np.ones(D), Groups((0, 0, 0, 3, 4)))
    assert [step.attributes for step in order] == [(3,), (0, 1, 2)]


def test_an_attribute_without_variance_changes_nothing() -> None:
    model = model_of(0)
    model.covariance[0] = model.covariance[:, 0] = 0.0
    known, unknown = next_cells(model, np.stack([row((0,)), row(())]), np.ones(D))
    assert known == unknown
    assert len(known) == D - 1


def test_wrong_shapes_are_named() -> None:
    with pytest.raises(DataError, match="the examples must have the 5 attributes of the model"):
        next_cells(model_of(0), np.zeros((2, 4)), np.ones(D))
    with pytest.raises(DataError, match="give each of the 5 attributes a price of at least 0"):
        next_cells(model_of(0), np.zeros((2, D)), np.array([1, 1, -1, 1, 1.0]))
