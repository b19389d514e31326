"""Two-level sampling against plain inversion, and the rounds that line up steps."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from budgetreg.draws import BLOCK, subset, uniform
from budgetreg.rounds import rounds, touched
from budgetreg.sampling import Weights

WEIGHT = st.sampled_from([0.0, 0.0, 1e-12, 0.25, 1.0, 3.5, 1e6])


@settings(max_examples=60, deadline=None)
@given(data=st.data(), d=st.integers(1, 40), n=st.integers(1, 4))
def test_invert_is_the_inverse_distribution_function(data, d, n):
    w = data.draw(arrays(float, (2, d, 3), elements=WEIGHT))
    u = np.random.default_rng(d).random((2, n))
    weights = Weights(2, 3, d)
    weights.rebuild_all(w)
    drawn = weights.layout.invert(weights.layout.prefix(weights.sums), u, weights.blocks)
    for f, g, i in np.ndindex(2, 3, n):
        total = w[f, :, g].sum()
        j = drawn[f, g, i]
        assert 0 <= j < d
        if total:
            assert w[f, j, g] > 0
            low, high = w[f, :j, g].sum(), w[f, : j + 1, g].sum()
            assert low - 1e-9 * total <= u[f, i] * total <= high + 1e-9 * total


def test_frequencies_follow_the_weights():
    rng = np.random.default_rng(0)
    w = rng.random((1, 11, 1)) * (rng.random((1, 11, 1)) > 0.3)
    weights = Weights(1, 1, 11)
    weights.rebuild_all(w)
    u = (np.arange(20_000)[None, :] + 0.5) / 20_000
    drawn = weights.layout.invert(weights.layout.prefix(weights.sums), u, weights.blocks)
    np.testing.assert_allclose(np.bincount(drawn.ravel(), minlength=11) / 20_000, w[0, :, 0] / w.sum(), atol=1e-4)


def test_uniform_draws_are_uniform_and_subsets_have_no_repetition():
    rng = np.random.default_rng(1)
    for d, k in [(5, 5), (7, 3), (6, 1)]:
        chosen = np.concatenate([subset(rng, d, k) for _ in range(80)])
        assert chosen.shape == (80 * BLOCK, k)
        assert all(len(set(row)) == k for row in chosen[:BLOCK])
        share = np.bincount(chosen.ravel(), minlength=d) / len(chosen)
        np.testing.assert_allclose(share, k / d, atol=0.02)
    drawn = np.concatenate([uniform(rng, 6, 2) for _ in range(80)])
    np.testing.assert_allclose(np.bincount(drawn[:, 0] * 6 + drawn[:, 1]) / len(drawn), 1 / 36, atol=0.01)


def test_every_subset_is_equally_likely():
    rng = np.random.default_rng(2)
    chosen = np.sort(np.concatenate([subset(rng, 5, 2) for _ in range(100)]), axis=1)
    counts = np.bincount(chosen[:, 0] * 5 + chosen[:, 1])
    np.testing.assert_allclose(counts[counts > 0] / len(chosen), 1 / 10, atol=0.01)
    assert (counts > 0).sum() == 10


@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    shape=st.tuples(st.integers(1, 4), st.integers(1, 9), st.integers(1, 4)),
    d=st.integers(1, 12),
    width=st.integers(1, 4),
)
def test_rounds_take_every_step_that_does_something_once_and_in_order(data, shape, d, width):
    attributes = data.draw(arrays(int, shape, elements=st.integers(0, d - 1)))
    table = data.draw(arrays(float, (*shape[:2], d), elements=st.sampled_from([0.0, 0.0, 1.0, 2.5])))
    values = np.take_along_axis(table, attributes, axis=2)
    F, T, _ = shape
    start, cut = 100, 100 + data.draw(st.integers(0, T))
    points = touched(attributes, values)
    expected = np.zeros((F, T, d))
    np.add.at(expected, (np.arange(F)[:, None, None], np.arange(T)[:, None], attributes), values)

    found, last = np.zeros((F, T, d)), np.full(F, start)
    for first, end in [(start, cut), (cut, start + T)]:
        held = np.maximum(last, first)
        for one in rounds(points, start, first, end, held, width):
            assert (one.step >= last).all()
            assert (one.step[one.live] > last[one.live]).all()
            assert set(one.stream) == set(np.flatnonzero(one.live))
            key = one.stream * d + one.attribute
            assert (np.diff(key) > 0).all()
            block = one.stream * d + one.attribute // width
            np.testing.assert_array_equal(one.block_start, np.unique(block, return_index=True)[1])
            np.testing.assert_array_equal(one.stream_start, np.unique(one.stream, return_index=True)[1])
            found[one.stream, one.step[one.stream] - 1 - start, one.attribute] += one.value
            last = one.step
        assert (last <= max(end, start)).all() or (last == held).all()
        last = np.maximum(last, end)
    np.testing.assert_allclose(found, expected)
