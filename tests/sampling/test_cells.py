"""Which cells to buy next: the criterion against simulation and enumeration, and what no choice may violate."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import sqrtm

from budgetreg.revealed.purchases import Beliefs, Choice, Criterion, Draws, Limit, Offer, choose


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
    criterion = Criterion(Beliefs(S, w, noise))
    found = criterion.information(criterion.explained(sets))
    np.testing.assert_allclose(found / variance * np.outer(scale, scale), expected, rtol=0.05, atol=0.05)


def test_uncertain_weights_and_covariances_leave_more_variance() -> None:
    """Weights are drawn from their posterior, and residuals are simulated given each draw."""
    rng = np.random.default_rng(1)
    root, spread = rng.standard_normal((4, 4)), 0.3 * rng.standard_normal((4, 4))
    criterion = Criterion(Beliefs(root @ root.T, np.array([1.0, -0.5, 0.0, 2.0]), 0.7))
    A, uncertainty = np.array([0, 2]), spread @ spread.T
    S, n = criterion.S, 400_000
    x = rng.multivariate_normal(np.zeros(4), S, n)
    w = criterion.w + rng.standard_normal((n, 4)) @ spread.T
    m = x[:, A] @ np.linalg.solve(S[np.ix_(A, A)], S[A])
    left = np.square(((x - m) * w).sum(axis=1)).mean()
    for inflation in (1.0, 1.5):
        found = criterion.information(criterion.explained(A[None]), uncertainty, np.array([inflation]))
        expected = m.T @ m / n / (criterion.noise + inflation * left)
        np.testing.assert_allclose(found, expected, rtol=0.05, atol=0.01)


def test_squares_of_weights_are_those_of_the_posterior() -> None:
    criterion, sets = Criterion(factor_beliefs(4, 0.5, 0.3)), np.array([[0, 1, 2]])
    root = np.real(sqrtm(criterion.S))
    prior = np.linalg.inv(root) * np.trace(criterion.S @ root) / (criterion.w @ criterion.S @ criterion.w)
    np.testing.assert_allclose(criterion.squares(), criterion.w**2 + np.diag(np.linalg.inv(prior)))
    criterion.correct(sets, 50)
    prior = np.linalg.inv(root) * np.trace(criterion.S @ root) / (criterion.w @ criterion.S @ criterion.w)
    explained = criterion.explained(sets)
    after = prior + 50 * criterion.information(explained)
    np.testing.assert_allclose(criterion.squares(), criterion.w**2 + np.diag(np.linalg.inv(after)))
    once = np.linalg.inv(prior + 50 * criterion.information(explained, np.linalg.inv(after), 1.2))
    expected = criterion.error(50 * criterion.information(explained, once, 1.2))
    assert criterion.expected(sets, 50, np.array([1.2])) == pytest.approx(expected)


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
    estimated = true.error(n * true.information(true.explained(sets)))
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


def test_noise_speaks_against_deep_examples_unless_it_may_be_the_error_of_the_regressor() -> None:
    """Without examples there is no error to subtract from the noise."""
    d, depths = 8, []
    for examples in (0, 20):
        seen = np.zeros((900, d), dtype=bool)
        seen[:examples, :2] = True
        offer, spend = single_units(900, d, seen), 180 - 2 * examples
        depths.append(choose(offer, factor_beliefs(d, 0.9, 3.0), np.ones(d), spend, np.random.default_rng(3)).depth)
    assert depths[0] < depths[1]


def listed_units(offer: Offer) -> np.ndarray:
    """Return the attributes with a price that any example offers."""
    return np.array([i for i, price in enumerate(offer.prices) if price and offer.open[:, i].any()])


def listed_table(
    offer: Offer, log_p: np.ndarray, sure: np.ndarray, share: float, depth: int, money: float, seed: int
) -> np.ndarray:
    """Return what a purchase at the price of 1 leaves known, by loops: example by example, deeper once all are deep.

    A share of the examples gets the attributes with the largest of `sure`, and others are drawn by ``log p``.
    """
    rng, seen, drawn = np.random.default_rng(seed), offer.seen.copy(), listed_units(offer)
    begun = offer.seen[:, offer.prices > 0].any(axis=1)
    examples = [*np.flatnonzero(begun), *np.flatnonzero(~begun)]
    while money >= 1 and (offer.open & ~seen)[:, drawn].any():
        bought = 0
        short = [t for t in examples if seen[t, drawn].sum() < depth]
        short = short[: np.searchsorted(np.cumsum([depth - seen[t, drawn].sum() for t in short]), money, "right") + 1]
        keys = log_p + rng.gumbel(size=(len(short), drawn.size))
        if share:
            keys[rng.random(len(short)) < share] = sure
        for t, key in zip(short, keys, strict=True):
            left = [i for i in drawn[np.argsort(-key)] if not seen[t, i]]
            for i in left[: min(depth - seen[t, drawn].sum(), int(money))]:
                seen[t, i] = True
                money, bought = money - 1, bought + 1
        depth += not bought
    return seen


def listed_error(criterion: Criterion, offer: Offer, seen: np.ndarray) -> float:
    """Return the expected error by loops over the examples that stand for all, and over pairs of attributes."""
    shown = seen | (offer.prices == 0)
    shown = shown[shown[:, offer.prices > 0].any(axis=1)]
    ordered = sorted(shown, key=lambda row: row.sum())
    n, d = shown.shape
    some = [ordered[t] for t in np.unique(np.linspace(0, n - 1, 64).round().astype(int))]
    doubts, sets = [], []
    for row in some:
        A, rest = np.flatnonzero(row), np.flatnonzero(~row)
        pairs = [1 / (1 + (shown[:, i] & shown[:, j]).sum()) for i in A for j in rest]
        doubts.append(1 + 0.5 * len(A) * np.mean(pairs) if pairs else 1.0)
        sets.append([*A, *[d] * len(rest)])
    return criterion.expected(np.array(sets), n, np.array(doubts))


def listed_design(
    offer: Offer, beliefs: Beliefs, weights: np.ndarray, spend: float, seed: int
) -> dict[tuple[int, Draws], float]:
    """Return the expected errors of the designs that are compared: of depths, and of ways to draw."""
    seed, drawn = int(np.random.default_rng(seed).integers(2**63)), listed_units(offer)
    criterion, before = Criterion(beliefs), sorted(offer.seen[offer.seen.any(axis=1)], key=lambda row: row.sum())
    if before:
        some = [before[t] for t in np.unique(np.linspace(0, len(before) - 1, 64).round().astype(int))]
        criterion.correct(np.array([np.flatnonzero(row) for row in some]), len(before))
    parts = criterion.squares()[drawn]
    order = {
        draws: np.log(0.9 * of / of.sum() + 0.1 / drawn.size)
        for draws, of in ((Draws.WEIGHTED, weights[drawn]), (Draws.EXPLAINING, parts))
    }
    top = min(drawn.size, round((offer.seen[:, drawn].sum() + spend) / (1.5 * drawn.size)))
    steps = int(np.ceil(2 * np.log2(top / 2)))
    depths, errors = sorted({round(2 * (top / 2) ** (i / steps)) for i in range(steps + 1)}), {}
    for depth in reversed(depths):
        for draws in Draws:
            log_p, share = order.get(draws, order[Draws.WEIGHTED]), {Draws.MIXED: 0.5, Draws.FIXED: 1.0}.get(draws, 0.0)
            seen = listed_table(offer, log_p, np.log(parts), share, depth, spend, seed)
            errors[depth, draws] = listed_error(criterion, offer, seen)
        if (seen[:, drawn].sum(axis=1) >= depth).all():
            break
    return errors


@pytest.mark.parametrize(
    ("shown", "noise", "n"),
    [("nothing", 10, 300), ("free", 10, 300), ("of all", 100, 300), ("of some", 100, 300), ("nothing", 10, 90)],
)
def test_design_is_that_of_a_listing(shown: str, noise: float, n: int) -> None:
    d, spend = 12, 400
    w = np.random.default_rng(0).standard_normal(d) * np.where(np.arange(d) % 3, 0.1, 1.0)  # no two explain the same
    seen = np.zeros((n, d), dtype=bool)
    seen[: {"of all": n, "of some": 40}.get(shown, 0), 4:7] = True
    offer = replace(single_units(n, d, seen), prices=np.where((np.arange(d) < 2) & (shown == "free"), 0.0, 1.0))
    beliefs, weights = Beliefs(0.2 * np.eye(d) + 0.8 * np.kron(np.eye(3), np.ones((4, 4))), w, noise), np.abs(w) + 0.05
    for seed in range(3):
        choice = choose(offer, beliefs, weights, spend, np.random.default_rng(seed))
        errors = listed_design(offer, beliefs, weights, spend, seed)
        depths = sorted({depth for depth, _ in errors})
        assert len(choice.alternatives) == len(depths)
        for depth, found in zip(depths, choice.alternatives, strict=True):
            assert found.errors == pytest.approx({draws: errors[depth, draws] for draws in Draws}, rel=1e-5)
        least = min(errors, key=lambda design: errors[design] * (1 if design[1] is Draws.WEIGHTED else 1.02))
        assert choice.draws is least[1]
        assert choice.depth == least[0] if least[0] > depths[0] else choice.depth >= least[0]


def test_a_part_of_a_large_table_stands_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    n, d = 12_000, 10
    rng = np.random.default_rng(0)
    seen = rng.random((n, d)) < 0.1 * (np.arange(n) < 3000)[:, None]
    offer, beliefs = single_units(n, d, seen), factor_beliefs(d, 0.8, 0.5)
    found = [choose(offer, beliefs, np.ones(d), 12_000, np.random.default_rng(1))]
    monkeypatch.setattr("budgetreg.revealed.purchases._TRIED", n)
    found.append(choose(offer, beliefs, np.ones(d), 12_000, np.random.default_rng(1)))
    of_part, of_all = ({each.depth: each for each in choice.alternatives} for choice in found)
    assert of_part.keys() == of_all.keys()
    for depth, each in of_part.items():
        assert each.examples == pytest.approx(of_all[depth].examples, rel=0.05)
        assert each.errors == pytest.approx(of_all[depth].errors, rel=0.05)
    assert [len(choice.cells) for choice in found] == [12_000, 12_000]


def test_useful_attributes_are_bought_for_all_where_the_others_cost_much() -> None:
    d, useful = 20, np.arange(20) < 3
    seen = np.zeros((3000, d), dtype=bool)
    seen[:10] = True
    offer = replace(single_units(3000, d, seen), prices=np.where(useful, 1.0, 100.0))
    beliefs = Beliefs(np.eye(d), useful.astype(float), 0.06)
    choice = choose(offer, beliefs, np.where(useful, 1.0, 0.3), 300, np.random.default_rng(1))
    assert (choice.draws, choice.depth) == (Draws.FIXED, 3)
    assert set(choice.cells[:, 1]) == {0, 1, 2}
    assert len(choice.cells) == 300
    errors = {each.depth: each.errors for each in choice.alternatives}
    assert errors[3][Draws.FIXED] < 0.98 * min(min(of[Draws.WEIGHTED], of[Draws.EXPLAINING]) for of in errors.values())


def test_little_is_bought_of_a_large_table_of_which_little_is_known() -> None:
    seen = np.zeros((20_000, 20), dtype=bool)
    seen[-30:] = True
    offer, beliefs = single_units(20_000, 20, seen), factor_beliefs(20, 0.8, 0.5)
    for spend in (1, 3, 100):
        choice = choose(offer, beliefs, np.ones(20), spend, np.random.default_rng(1))
        assert len(choice.cells) == spend
        assert len({error for each in choice.alternatives for error in each.errors.values()}) > 1


def test_no_depth_is_compared_twice() -> None:
    """Where the money buys all, smaller depths are filled up, too."""
    choice = choose(single_units(40, 8), factor_beliefs(8, 0.9, 0.3), np.ones(8), 320, np.random.default_rng(3))
    assert (len(choice.cells), [each.depth for each in choice.alternatives]) == (320, [8])


def test_complete_rows_win_no_ties() -> None:
    """They are chosen where their error is expected to be the least, by however little."""
    offer, depths = single_units(900, 8), set()
    for noise in (0.02, 0.3, 3.0):
        choice = choose(offer, factor_beliefs(8, 0.9, noise), np.ones(8), 300, np.random.default_rng(3))
        errors = {each.depth: each.errors[Draws.WEIGHTED] for each in choice.alternatives}
        assert choice.depth == min(errors, key=lambda depth: errors[depth])
        depths.add(choice.depth)
    assert len(depths) > 1
    assert 8 in depths


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
