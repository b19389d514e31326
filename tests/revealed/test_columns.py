"""Standardised columns of complete examples, and their moments."""

import numpy as np

from budgetreg.revealed.collection import Entries
from budgetreg.revealed.columns import StandardisedEntries


def standardised(*, hidden: bool = False) -> StandardisedEntries:
    """Return two streams of two blocks whose examples show all of three attributes, the second 7 and the third 0.

    If `hidden`, the first example of the second stream does not show the first.
    """
    rng, entries = np.random.default_rng(0), Entries(4)
    for T in (3, 5):
        attributes = np.argsort(rng.random((2, T, 3)), axis=2)
        values = np.where(attributes == 0, rng.normal(size=attributes.shape), np.where(attributes == 1, 7.0, 0.0))
        if hidden and T == 3:
            attributes[1, 0], values[1, 0] = [4, 1, 2], [0.0, 7.0, 0.0]
        entries.add(attributes, values, rng.normal(size=(2, T)))
    return StandardisedEntries(entries.blocks(), 3, centred=False, intercept=True)


def test_rows_are_complete_if_all_show_all_live_columns() -> None:
    """Column 2 is not live."""
    assert standardised().live.tolist() == [[True, True, False, True]] * 2
    assert standardised().complete.tolist() == [True, True]
    assert standardised(hidden=True).complete.tolist() == [True, False]


def test_equal_values_have_no_variance_although_their_mean_is_rounded() -> None:
    entries = Entries(3)
    values = np.full((1, 3, 2), -0.05)
    assert values.var() > 0
    entries.add(np.tile([0, 1], (1, 3, 1)), values, np.array([[1.0, 2.0, 4.0]]))
    columns = StandardisedEntries(entries.blocks(), 2, centred=False, intercept=False, zero_is_meaningful=False)
    assert columns.live.tolist() == [[False, False, True]]


def test_sample_moments_have_as_many_examples_more_as_columns_of_independent_values() -> None:
    """A column of equal values has the variance 1: its unit is the deviation to expect."""
    columns = standardised()
    moments, T = columns.sample_moments(np.arange(2)), 8
    assert not moments.first.any()
    for f in range(2):
        products = np.zeros((4, 4))
        for block in columns.blocks:
            for attributes, values in zip(block.attributes[f], block.values[f], strict=True):
                x = dict(zip(attributes.tolist(), values.tolist(), strict=True))
                for i in (0, 1, 3):
                    for j in (0, 1, 3):
                        products[i, j] += x[i] * x[j]
        expected = products / (T + 4)
        np.fill_diagonal(expected, np.diagonal(products) / T)
        expected[1, 1] = 1.0
        np.testing.assert_allclose(moments.second[f], expected, atol=1e-12)
        assert (np.linalg.eigvalsh(moments.second[f][np.ix_([0, 1, 3], [0, 1, 3])]) > 0).all()
