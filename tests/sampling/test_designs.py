"""Sampling designs: how probable attributes and pairs of them are, against counting all outcomes."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budgetreg.sampling import designs
from budgetreg.sampling.draws import BLOCK, subset
from budgetreg.sampling.inclusion_probabilities import joint_inclusion, working_probabilities


def pairs_of(outcomes, probability, d):
    """Return how probable it is that i and j are both among the attributes of an outcome, (d, d)."""
    seen = np.array([np.isin(np.arange(d), own) for own in outcomes], dtype=float)
    return np.einsum("n,ni,nj->ij", probability, seen, seen)


def poisson_law(p, r):
    """Return all subsets of size r, and their probabilities by the definition."""
    subsets = list(combinations(range(len(p)), r))
    weights = np.array([np.where(np.isin(np.arange(len(p)), own), p, 1 - p).prod() for own in subsets])
    return subsets, weights / weights.sum()


@pytest.mark.parametrize(("d", "r"), [(2, 2), (5, 2), (5, 4)])
def test_probabilities_are_those_of_all_outcomes(d, r):
    subsets = list(combinations(range(d), r))
    alike = np.full(len(subsets), 1 / len(subsets))
    np.testing.assert_allclose(designs.uniform_subset(d, r).probability, pairs_of(subsets, alike, d), rtol=1e-12)
    sequences = list(product(range(d), repeat=r))
    alike = np.full(len(sequences), 1 / len(sequences))
    np.testing.assert_allclose(designs.with_replacement(d, r).probability, pairs_of(sequences, alike, d), rtol=1e-12)
    subsets = [own for size in range(d + 1) for own in combinations(range(d), size)]
    law = [(r / d) ** len(own) * (1 - r / d) ** (d - len(own)) for own in subsets]
    np.testing.assert_allclose(designs.bernoulli(d, r).probability, pairs_of(subsets, law, d), rtol=1e-12)


@given(st.lists(st.floats(0, 1e3), min_size=2, max_size=7), st.data())
@settings(max_examples=40, deadline=None)
def test_inclusion_in_a_conditional_poisson_sample(weights, data):
    r = data.draw(st.integers(2, len(weights)))
    p = working_probabilities(np.array(weights), r, 0.01)
    expected = pairs_of(*poisson_law(p, r), len(p))
    np.testing.assert_allclose(joint_inclusion(p, r), expected, rtol=1e-8)


def test_inclusion_of_many_attributes_adds_up():
    weights = np.random.default_rng(0).random(501) ** 3
    for r in (2, 60, 500):
        probability = joint_inclusion(working_probabilities(weights, r, 0.01), r)
        np.testing.assert_allclose(np.diagonal(probability).sum(), r, rtol=1e-9)
        np.testing.assert_allclose(probability.sum(axis=1), r * np.diagonal(probability), rtol=1e-7)


@pytest.mark.parametrize("p", [[0.9, 0.1, 0.3, 0.5, 0.2], [1 - 1e-6, 1 - 1e-6, 0.5, 1e-3, 0.45]])
def test_conditional_poisson_draws_have_their_law(p):
    """500 blocks against the definition, within 5 standard errors."""
    design, rng, n = designs.conditional_poisson(np.array(p), 3), np.random.default_rng(1), 500
    drawn = np.concatenate([design.draw(rng).attributes for _ in range(n)])
    assert (np.diff(drawn, axis=1) > 0).all()
    for own, probability in zip(*poisson_law(np.array(p), 3), strict=True):
        count = (drawn == own).all(axis=1).sum()
        error = np.sqrt(n * BLOCK * probability * (1 - probability))
        assert abs(count - n * BLOCK * probability) <= 5 * error + 5


def test_extreme_weights_never_leave_the_sample_short():
    p = np.where(np.arange(300) < 150, 1 - 1e-6, 1e-6)
    for r in (148, 150, 152):
        drawn = designs.conditional_poisson(p, r).draw(np.random.default_rng(0)).attributes
        assert drawn.shape == (BLOCK, r)
        assert (np.diff(drawn, axis=1) > 0).all() and drawn.max() < 300


def test_subsets_are_those_of_the_draws():
    for d, r in ((6, 6), (50, 3), (784, 57)):
        found = designs.uniform_subset(d, r).draw(np.random.default_rng(2)).attributes
        np.testing.assert_array_equal(found, subset(np.random.default_rng(2), d, r))


def test_repeated_draws_and_absent_ones_are_marked():
    rng = np.random.default_rng(3)
    attributes, drawn, repeated = designs.with_replacement(3, 4).draw(rng)
    assert drawn is None
    distinct = [len(set(own)) for own in attributes.tolist()]
    np.testing.assert_array_equal((~repeated).sum(axis=1), distinct)
    assert all(len(set(own[~again])) == (~again).sum() for own, again in zip(attributes, repeated, strict=True))
    attributes, drawn, repeated = designs.bernoulli(40, 4).draw(rng)
    assert repeated is None
    assert all(len(set(own[seen])) == seen.sum() for own, seen in zip(attributes, drawn, strict=True))
    assert abs(drawn.sum() / BLOCK - 4) < 5 * np.sqrt(4 * 0.9 / BLOCK)
