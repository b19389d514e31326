"""The distributions with known second moments agree with enumerations of the papers' constructions."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import hadamard

from budgetreg.algorithms.eigenspaces import leading
from budgetreg.algorithms.tasks import compare_with_best, second_moment
from budgetreg.common.errors import ConfigError
from budgetreg.data.dataset import Dataset
from budgetreg.data.distributions import BiasedCoins, Hadamard, Spike, TwoLines
from budgetreg.data.registry import load
from budgetreg.metering.table import Table
from budgetreg.protocol.configuration import DatasetConfig

OPTIONS = {
    "coins": {"d": 7, "n_coins": 3, "alpha": 0.4},
    "hadamard": {"d": 8, "n_coins": 3, "alpha": 0.4},
    "spike": {"d": 5, "p": 0.2},
    "two_lines": {},
}


def config(kind, **changes):
    options = {"n": 4000} | OPTIONS[kind] | changes
    return DatasetConfig(kind, kind, center="none", split="official", test_fraction=None, options=options)


def pairs_of(distribution):
    """Return the pairs (u_i, u_{i+c}) of Theorem 4, or those of columns of Sylvester's matrix."""
    e, c = np.eye(distribution.d), distribution.n_coins
    if isinstance(distribution, Hadamard):
        H = hadamard(distribution.d) / np.sqrt(distribution.d)
        return [(H[:, i], H[:, i + c]) for i in range(c)]
    return [((e[i] + e[i + c]) / np.sqrt(2), (-e[i] + e[i + c]) / np.sqrt(2)) for i in range(c)]


def outcomes(distribution, seed, repetition):
    """Return every example with its probability, by the steps of the proof of Theorem 5."""
    if isinstance(distribution, Spike):
        return [
            (np.zeros(distribution.d), 1 - distribution.p),
            (np.eye(distribution.d)[distribution.spike(seed, repetition)], distribution.p),
        ]
    examples = []
    for (first, second), b in zip(pairs_of(distribution), distribution.signs(seed, repetition), strict=True):
        chance = (1 + b * distribution.alpha) / 2
        for u, p in ((first, chance), (second, 1 - chance)):
            examples += [(sign * u, p / distribution.n_coins / 2) for sign in (-1, 1) if p]
    return examples


DISTRIBUTIONS = [
    BiasedCoins(7, 3, 0.4, 40_000),
    Hadamard(8, 3, 0.4, 40_000),
    Hadamard(4, 2, 1.0, 40_000),
    TwoLines(40_000),
    Spike(5, 0.2, 40_000),
]


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=lambda distribution: distribution.name)
def test_the_second_moment_is_exact(distribution):
    for repetition in range(4):
        C = sum(p * np.outer(x, x) for x, p in outcomes(distribution, 1, repetition))
        np.testing.assert_allclose(distribution.second_moment(1, repetition), C, atol=1e-15)
        np.testing.assert_array_equal(
            distribution.draw(1, repetition).second_moment, distribution.second_moment(1, repetition)
        )


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=lambda distribution: distribution.name)
def test_draws_follow_the_distribution_and_their_second_moment_converges(distribution):
    data = distribution.draw(1, 2)
    assert not data.y.any()
    seen: dict[tuple[float, ...], int] = {}
    for row in (data.X * data.scale).round(9) + 0.0:
        seen[tuple(row)] = seen.get(tuple(row), 0) + 1
    expected = {tuple(np.round(x, 9) + 0.0): p for x, p in outcomes(distribution, 1, 2)}
    assert set(seen) == set(expected)
    for outcome, p in expected.items():
        assert abs(seen[outcome] / distribution.n - p) < 5 * np.sqrt(p * (1 - p) / distribution.n)
    table = Table(data.X, data.y, data.scale)
    for n in (400, distribution.n):
        assert np.abs(second_moment(table, np.arange(n)) - data.second_moment).max() < 2 / np.sqrt(n)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS[:3], ids=lambda distribution: distribution.name)
def test_best_subspace_has_the_likelier_directions_and_each_error_costs_the_bias(distribution):
    C = distribution.second_moment(0, 1)
    best = leading(C, distribution.n_coins)
    both = [
        (u, v) if b > 0 else (v, u) for (u, v), b in zip(pairs_of(distribution), distribution.signs(0, 1), strict=True)
    ]
    right = np.stack([likelier for likelier, _ in both], axis=1)
    assert compare_with_best(C, right, best)["excess_loss"] == pytest.approx(0, abs=1e-15)
    right[:, 0] = both[0][1]
    assert compare_with_best(C, right, best)["excess_loss"] == pytest.approx(distribution.alpha / distribution.n_coins)


def test_each_attribute_of_two_lines_is_a_fair_sign():
    for repetition in range(4):
        X = replace(DISTRIBUTIONS[3], n=40_000).draw(0, repetition).X
        assert np.abs(X.mean(axis=0)).max() < 5 / np.sqrt(len(X))
        assert abs((X[:, 0] * X[:, 1]).mean()) == 1


def test_each_draw_has_its_own_parameters():
    assert {int(Spike(4, 0.1, 1).spike(0, r)) for r in range(60)} == set(range(4))
    assert len({tuple(DISTRIBUTIONS[0].signs(0, r)) for r in range(80)}) == 2**3
    assert {np.sign(load(config("two_lines"), 0, r).second_moment[0, 1]) for r in range(20)} == {-1, 1}


@pytest.mark.parametrize("kind", OPTIONS)
def test_repetitions_differ_and_more_examples_keep_the_earlier_ones(kind):
    data = load(config(kind), 3, 0)
    assert (len(data.X), data.n_train) == (4000, 4000)
    for other in (load(config(kind), 3, 1), load(config(kind), 4, 0)):
        assert other.X.tobytes() != data.X.tobytes()
    np.testing.assert_array_equal(load(config(kind, n=4500), 3, 0).X[:4000], data.X)
    assert data.X.itemsize == 1


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("coins", {"n_coins": 4}),
        ("coins", {"alpha": 0}),
        ("coins", {"alpha": 1.5}),
        ("hadamard", {"d": 12}),
        ("hadamard", {"n_coins": 5}),
        ("spike", {"p": 0.0}),
        ("spike", {"p": True}),
        ("spike", {"d": 0}),
        ("two_lines", {"n": None}),
    ],
)
def test_messages_name_impossible_options(kind, change):
    with pytest.raises(ConfigError, match=f"dataset.{next(iter(change))}") as caught:
        load(config(kind, **change), 0, 0)
    assert "\n" not in str(caught.value)


def test_all_examples_train_only_where_the_second_moment_is_known():
    X, y = np.ones((3, 2)), np.zeros(3)
    Dataset("a", X, y, 1.0, 3, two_valued=False, second_moment=np.ones((2, 2)))
    with pytest.raises(ValueError, match="n_train"):
        Dataset("a", X, y, 1.0, 3, two_valued=False)
    with pytest.raises(ValueError, match="second_moment"):
        Dataset("a", X, y, 1.0, 3, two_valued=False, second_moment=np.ones(2))
