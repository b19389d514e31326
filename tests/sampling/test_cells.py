"""Which cells to buy next: the criterion against simulation and enumeration, and what no choice may violate."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budgetreg.revealed.purchases import Beliefs, Choice, Criterion, Limit, Offer, choose


def factor_beliefs(d: int, loading: float, noise: float) -> Beliefs:
    """One common factor, on which the target depends; attributes have the variance 1."""
    S = loading**2 * np.ones((d, d)) + (1 - loading**2) * np.eye(d)
    return Beliefs(S, np.full(d, 1.0), noise * d)


def single_units(n: int, d: int, seen: np.ndarray | None = None, per_example: int | None = None) -> Offer:
    """All cells that are not seen are open, at a price of 1."""
    seen = np.zeros((n, d), dtype=bool) if seen is None else seen
    return Offer(seen, ~seen, np.arange(d), np.ones(d), np.full(n, d if per_example is None else per_example))


def test_information_is_that_of_simulated_examples() -> None:
    rng = np.random.default_rng(0)
    root = rng.standard_normal((4, 4))
    S, w, noise = root @ root.T, np.array([1.0, -0.5, 0.0, 2.0]), 0.7
    sets = np.array([[0, 2, 4], [3, 4, 4], [0, 1, 3]])
    scale = np.sqrt(np.diagonal(S))
    x = rng.standard_normal((200_000, 4)) @ root.T
    expected = np.zeros((4, 4))
    for row in sets:
        A = row[row < 4]
        B = S[:, A] @ np.linalg.inv(S[np.ix_(A, A)])
        V = S - B @ S[A]
        m = x[:, A] @ B.T
        # The observed precision of w: m m' over the variance of the target's residual, here itself simulated.
        y = x @ w + np.sqrt(noise) * rng.standard_normal(len(x))
        residual = np.square(y - m @ w).mean()
        assert residual == pytest.approx(noise + w @ V @ w, rel=0.02)
        expected += m.T @ m / len(x) / residual / len(sets)
    variance = w @ S @ w + noise  # attributes and target are measured in their standard deviations
    found = Criterion(Beliefs(S, w, noise)).information(sets)
    np.testing.assert_allclose(found / variance * np.outer(scale, scale), expected, rtol=0.05, atol=0.05)


def test_error_is_the_noise_plus_the_trace() -> None:
    criterion = Criterion(factor_beliefs(5, 0.6, 0.3))
    rng = np.random.default_rng(1)
    root = rng.standard_normal((5, 9))
    prior_only = criterion.error(np.zeros((5, 5)))
    assert prior_only == pytest.approx(1.0)  # the prior explains what w is believed to explain
    information = 1e9 * root @ root.T
    assert criterion.error(information) == pytest.approx(criterion.noise, rel=1e-6)
    more = [criterion.error(scale * root @ root.T) for scale in (0.1, 1.0, 10.0)]
    assert prior_only > more[0] > more[1] > more[2] > criterion.noise


@pytest.mark.parametrize("noise", [0.1, 0.4])
def test_noise_that_contains_the_error_of_the_regressor_is_corrected(noise: float) -> None:
    d, n, sets = 6, 60, np.array(list(combinations(range(6), 3)))
    true = Criterion(factor_beliefs(d, 0.6, noise))
    estimated = true.error(n * true.information(sets))
    assert estimated > 1.3 * true.noise
    short = true.w * np.sqrt((1 - estimated) / (1 - true.noise))
    found = Criterion(Beliefs(true.S, short, estimated))
    assert found.noise == pytest.approx(estimated)
    found.correct(sets, n)
    assert found.noise == pytest.approx(true.noise, rel=0.2)  # half a step of the grid
    np.testing.assert_allclose(found.w / np.linalg.norm(found.w), true.w / np.linalg.norm(true.w))
    assert found.w @ found.S @ found.w + found.noise == pytest.approx(1)


def test_noise_is_not_corrected_without_a_regressor() -> None:
    criterion = Criterion(Beliefs(np.eye(3), np.zeros(3), 2.0))
    criterion.correct(np.array([[0, 1]]), 9)
    assert (criterion.noise, criterion.w.any()) == (1.0, False)


def test_noise_speaks_against_complete_rows_unless_it_may_be_the_error_of_the_regressor() -> None:
    """Without examples there is no error to subtract from the noise."""
    d, limits = 8, []
    for examples in (0, 20):
        seen = np.zeros((900, d), dtype=bool)
        seen[:examples, :2] = True
        offer, spend = single_units(900, d, seen), 180 - 2 * examples
        limits.append(choose(offer, factor_beliefs(d, 0.9, 3.0), np.ones(d), spend, np.random.default_rng(3)).limit)
    assert limits == [Limit.SHARED, Limit.ALL]


@pytest.mark.parametrize(("loading", "noise"), [(0.9, 1.0), (0.0, 0.02), (0.5, 0.3)])
def test_depth_is_nearly_as_good_as_the_best_by_enumeration(loading: float, noise: float) -> None:
    d, spend, n = 6, 400, 1000
    beliefs = factor_beliefs(d, loading, noise)
    criterion = Criterion(beliefs)

    def error(k: int) -> float:
        return criterion.error(criterion.information(np.array(list(combinations(range(d), k)))) * spend / k)

    errors = {k: error(k) for k in range(2, d + 1)}
    choice = choose(single_units(n, d), beliefs, np.ones(d), spend, np.random.default_rng(2))
    assert errors[choice.depth] <= 1.03 * min(errors.values())


def listed_depth(offer: Offer, beliefs: Beliefs, weights: np.ndarray, spend: float, seed: int) -> int:
    """Return how deep examples are filled up, by loops over 32 examples and nested sets of what they would show."""
    rng, d = np.random.default_rng(seed), len(weights)
    drawn = [i for i in range(d) if offer.prices[i] and offer.open[:, i].any()]
    q = 0.9 * weights[drawn] / weights[drawn].sum() + 0.1 / len(drawn)
    units = offer.seen[:, drawn].sum() + spend
    top = min(len(drawn), round(units / (1.5 * len(drawn))))
    steps = int(np.ceil(3 * np.log2(top / 2)))
    tried = sorted({round(2 * (top / 2) ** (i / steps)) for i in range(steps + 1)})
    criterion, before = Criterion(beliefs), np.flatnonzero(offer.seen.any(axis=1))
    if before.size:
        some = before[np.linspace(0, before.size - 1, 32).round().astype(int)]
        criterion.correct(np.array([np.flatnonzero(offer.seen[t]) for t in some]), before.size)
    examples = rng.choice(len(offer.seen), 32)
    orders = np.argsort(-(np.log(q) + rng.gumbel(size=(32, len(drawn)))), axis=1)
    errors = {}
    for k in tried:
        n, information = 1 if k == len(drawn) else 32, []
        for t, order in zip(examples[:n], orders[:n], strict=True):
            shown = {i for i in range(d) if i not in drawn and (offer.seen[t, i] or not offer.prices[i])}
            information.append(criterion.information(np.array([[*shown, *(drawn[j] for j in order[:k])]])))
        errors[k] = criterion.error(np.mean(information, axis=0) * min(units / k, len(offer.seen)))
    tied = [k for k in tried if errors[k] <= 1.02 * min(errors.values())]
    return tied[-1] if tied[-1] == len(drawn) else round(np.sqrt(tied[0] * tied[-1]))


@pytest.mark.parametrize(
    ("shown", "noise", "n"),
    [("nothing", 10, 900), ("free", 10, 900), ("of all", 100, 900), ("of some", 100, 900), ("nothing", 10, 190)],
)
def test_depth_is_that_of_a_listing(shown: str, noise: float, n: int) -> None:
    """With noise, partial examples are best, and chance decides between two or three depths."""
    d, spend = 20, 900
    seen, w = np.zeros((n, d), dtype=bool), np.random.default_rng(0).standard_normal(d) * (np.arange(d) % 3 == 0)
    seen[: {"of all": n, "of some": 40}.get(shown, 0), 4:7] = True
    offer = replace(single_units(n, d, seen), prices=np.where((np.arange(d) < 2) & (shown == "free"), 0.0, 1.0))
    beliefs, weights = Beliefs(0.2 * np.eye(d) + 0.8 * np.kron(np.eye(5), np.ones((4, 4))), w, noise), np.abs(w) + 0.05
    chosen = [choose(offer, beliefs, weights, spend, np.random.default_rng(seed)).depth for seed in range(8)]
    assert chosen == [listed_depth(offer, beliefs, weights, spend, seed) for seed in range(8)]
    assert len(set(chosen)) > 1


def test_correlated_attributes_get_few_and_independent_ones_complete_rows() -> None:
    d, spend = 8, 1000
    shared = choose(single_units(900, d), factor_beliefs(d, 0.95, 1.0), np.ones(d), 150, np.random.default_rng(3))
    alone = choose(single_units(900, d), factor_beliefs(d, 0.0, 0.02), np.ones(d), spend, np.random.default_rng(3))
    assert shared.depth <= 4
    assert shared.limit is Limit.SHARED
    assert (alone.depth, alone.limit) == (d, Limit.ALL)
    assert len(np.unique(alone.cells[:, 0])) == spend // d


def test_few_values_are_spread_over_many_examples() -> None:
    choice = choose(single_units(900, 20), factor_beliefs(20, 0.0, 0.02), np.ones(20), 200, np.random.default_rng(4))
    assert (choice.depth, choice.limit) == (7, Limit.FEW_EXAMPLES)
    unknown = choose(single_units(900, 20), None, np.ones(20), 300, np.random.default_rng(4))
    assert (unknown.depth, unknown.limit) == (10, Limit.FEW_EXAMPLES)


def test_old_examples_are_filled_up_before_new_ones() -> None:
    seen = np.zeros((300, 5), dtype=bool)
    seen[200:, :2] = True
    choice = choose(single_units(300, 5, seen), factor_beliefs(5, 0.0, 0.02), np.ones(5), 320, np.random.default_rng(5))
    assert choice.depth == 5
    old = choice.cells[choice.cells[:, 0] >= 200]
    assert len(old) == 300  # three more of each
    assert len(choice.cells) == 320


def test_all_examples_are_used_and_then_more_of_each() -> None:
    choice = choose(single_units(60, 10), factor_beliefs(10, 0.99, 5.0), np.ones(10), 210, np.random.default_rng(6))
    counts = np.bincount(choice.cells[:, 0], minlength=60)
    assert choice.limit is Limit.EXAMPLES
    assert set(counts) <= {3, 4}
    assert counts.sum() == 210


def test_weights_and_prices_decide_what_is_drawn() -> None:
    d = 12
    offer = single_units(2000, d)
    first = np.arange(d) < d // 2

    def mean_counts(weights: np.ndarray, prices: np.ndarray, spend: float) -> tuple[float, float]:
        priced = Offer(offer.seen, offer.open, offer.units, prices, offer.limits)
        choice = choose(priced, None, weights, spend, np.random.default_rng(7))
        assert choice.depth == 2
        counts = np.bincount(choice.cells[:, 1], minlength=d)
        return counts[first].mean(), counts[~first].mean()

    by_weight = mean_counts(np.where(first, 1.0, 0.0), np.ones(d), 40)
    assert by_weight[0] > 5 * by_weight[1]
    by_price = mean_counts(np.ones(d), np.where(first, 1.0, 25.0), 300)
    assert by_price[0] > 1.2 * by_price[1]


def test_deep_known_columns_do_not_count() -> None:
    """Attributes that every example shows are no reason to buy complete rows of the others."""
    seen = np.zeros((400, 20), dtype=bool)
    seen[:, :10] = True
    choice = choose(
        single_units(400, 20, seen), factor_beliefs(20, 0.0, 0.02), np.ones(20), 90, np.random.default_rng(8)
    )
    assert (choice.depth, choice.limit) == (6, Limit.FEW_EXAMPLES)
    assert (choice.cells[:, 1] >= 10).all()


@st.composite
def purchases(draw: st.DrawFn) -> tuple[Offer, float, bool, int]:
    n, d = draw(st.integers(1, 12)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    names = np.array([draw(st.integers(0, d - 1)) for _ in range(d)])
    units = np.unique(names, return_inverse=True)[1]
    prices = np.array([draw(st.sampled_from([0.0, 0.1, 1.0, 2.5, 7.0])) for _ in range(units.max() + 1)])
    state = rng.integers(0, 3, (n, d))
    limits = rng.integers(0, d + 1, n)
    offer = Offer(state == 0, state == 1, units, prices, limits)
    spend = draw(st.sampled_from([0.0, 0.3, 1.0, 6.0, 20.0, 500.0]))
    return offer, spend, draw(st.booleans()), draw(st.integers(0, 99))


@settings(max_examples=40, deadline=None)
@given(purchases())
def test_no_choice_violates_what_was_asked(purchase: tuple[Offer, float, bool, int]) -> None:
    offer, spend, informed, seed = purchase
    d, u = len(offer.units), len(offer.prices)
    beliefs = factor_beliefs(d, 0.5, 0.3) if informed else None

    def chosen() -> Choice:
        return choose(offer, beliefs, np.ones(u), spend, np.random.default_rng(seed))

    choice = chosen()
    np.testing.assert_array_equal(choice.cells, chosen().cells)
    example, attribute = choice.cells.T
    bought = np.zeros(offer.open.shape, dtype=bool)
    bought[example, attribute] = True
    assert bought.sum() == len(choice.cells)
    assert (bought <= offer.open).all()
    units = offer.by_unit(bought)
    assert (bought == (units[:, offer.units] & offer.open)).all()  # what is open of a unit, or nothing
    assert (units[:, offer.prices > 0].sum(axis=1) <= offer.limits).all()
    cost = (units * offer.prices).sum()
    assert choice.cost == pytest.approx(cost)
    assert cost <= spend * (1 + 1e-9)
    left = offer.by_unit(offer.open) & ~units & (offer.prices > 0)
    left &= (offer.limits > units[:, offer.prices > 0].sum(axis=1))[:, None]
    assert not (left & (offer.prices <= (spend - cost) * (1 - 1e-9))).any()  # nothing is left that could be bought


@pytest.mark.parametrize(("seen", "others"), [([], True), ([2], True), ([2], False)])
def test_free_cells_come_with_examples_that_show_anything_else(seen: list[int], others: bool) -> None:
    """Also if no other example has a value of what they show."""
    offer = replace(single_units(50, 4), prices=np.array([0.0, 1.0, 1.0, 1.0]))
    offer.seen[seen, 1] = True
    offer.open[:, 1] = ~offer.seen[:, 1] & others
    offer.limits[seen] = 0
    example, attribute = choose(offer, None, np.ones(4), 8, np.random.default_rng(0)).cells.T
    assert np.count_nonzero(attribute) == 8
    assert set(example[attribute == 0]) == set(example[attribute > 0]) | set(seen) < set(range(50))


def test_cells_are_in_the_order_of_the_candidates() -> None:
    candidates = np.array([7, 3, 5])
    choice = choose(single_units(9, 2), None, np.ones(2), 6, np.random.default_rng(0), candidates=candidates)
    assert choice.cells.tolist() == [[7, 0], [7, 1], [3, 0], [3, 1], [5, 0], [5, 1]]


def test_where_nothing_has_a_price_everything_is_taken() -> None:
    choice = choose(replace(single_units(9, 3), prices=np.zeros(3)), None, np.ones(3), 0, np.random.default_rng(0))
    assert (len(choice.cells), choice.cost) == (27, 0)


def test_no_example_gets_more_than_its_limit_however_good_complete_rows_are() -> None:
    offer = single_units(900, 8, per_example=3)
    choice = choose(offer, factor_beliefs(8, 0.0, 0.02), np.ones(8), 1000, np.random.default_rng(0))
    assert (choice.depth, choice.limit) == (3, Limit.PER_EXAMPLE)


def test_what_only_a_later_example_offers_is_bought() -> None:
    """The first examples offer nothing that the money pays for."""
    seen = np.ones((30, 2), dtype=bool)
    seen[:, 1] = False
    seen[-1, 0] = False
    offer = Offer(seen, ~seen, np.arange(2), np.array([1.0, 9.0]), np.full(30, 2))
    choice = choose(offer, None, np.ones(2), 2.0, np.random.default_rng(9))
    assert choice.cells.tolist() == [[29, 0]]
