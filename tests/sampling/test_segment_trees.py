"""Sampling from trees agrees with plain inversion; rounds align the steps of streams."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from budgetreg.algorithms.engine import rounds, sparse_points
from budgetreg.algorithms.regressors import FAN, Inverter, Layout, Minima, PrefixSums

WEIGHT = st.sampled_from([0.0, 0.0, 1e-12, 0.25, 1.0, 3.5, 1e6])


def trees(w):
    """Return trees with the weights w (F, d, G), all nodes computed at once, and their inverter."""
    F, d, G = w.shape
    layout = Layout(d)
    state = layout.pad(w)
    built, streams = PrefixSums(F, G, layout), np.arange(F)
    nodes = layout.nodes(np.arange(len(state)))
    built.update(state[layout.leaves(nodes, streams)], nodes, streams)
    return built, state


def draw(built, u):
    invert = Inverter(*built.total.shape, built.layout, len(u))
    return invert(u[:, :, None] * built.total, built.root, built.before)


@given(data=st.data(), d=st.one_of(st.integers(1, 40), st.sampled_from([64, 257, 784, 2100])), n=st.integers(1, 4))
def test_inverter_is_the_inverse_distribution_function(data, d, n):
    places = data.draw(st.lists(st.tuples(st.integers(0, 1), st.integers(0, d - 1), st.integers(0, 2)), max_size=30))
    w = np.zeros((2, d, 3))
    for place in places:
        w[place] = data.draw(WEIGHT)
    u = np.random.default_rng(d).random((n, 2))
    built, _ = trees(w)
    np.testing.assert_allclose(built.total, w.sum(axis=1), rtol=1e-13)
    drawn = draw(built, u)
    for i, f, g in np.ndindex(n, 2, 3):
        total = w[f, :, g].sum()
        j = drawn[i, f, g]
        assert 0 <= j < d
        if total:
            assert w[f, j, g] > 0
            low, high = w[f, :j, g].sum(), w[f, : j + 1, g].sum()
            assert low - 1e-9 * total <= u[i, f] * total <= high + 1e-9 * total


@given(data=st.data(), d=st.sampled_from([5, 40, 300, 2500]))
def test_trees_depend_only_on_their_final_weights(data, d):
    """Changes in any order, of one setting or of all, give the same trees as the final weights."""
    F, G = 2, 3
    built, state = trees(np.zeros((F, d, G)))
    layout = built.layout
    for _ in range(data.draw(st.integers(1, 4))):
        f, g = data.draw(st.integers(0, F - 1)), data.draw(st.one_of(st.none(), st.integers(0, G - 1)))
        rows = np.unique(data.draw(st.lists(st.integers(0, d - 1), min_size=1, max_size=5))) + f * layout.padded
        new = data.draw(arrays(float, (rows.size, G), elements=WEIGHT))
        if g is None:
            state[rows] = new
            nodes, streams = layout.nodes(rows), np.array([f])
            built.update(state[layout.leaves(nodes, streams)], nodes, streams)
            continue
        for row, value in zip(rows, new[:, g], strict=True):
            state[row, g] = value
            nodes, streams = layout.nodes(np.array([row])), np.array([f])
            leaves = layout.leaves(nodes, streams)
            built.update(state[leaves, [g]], nodes, streams, np.array([g]))
    fresh, _ = trees(layout.unpad(state))
    np.testing.assert_array_equal(built.total, fresh.total)
    u = np.random.default_rng(0).random((8, F))
    np.testing.assert_array_equal(draw(built, u), draw(fresh, u))


@given(data=st.data(), d=st.sampled_from([5, 40, 300, 2500]))
def test_minima_find_every_key_up_to_a_bound(data, d):
    F, G = 2, 2
    layout = Layout(d)
    keys = np.full((F, layout.padded, G), np.inf)
    for _ in range(data.draw(st.integers(0, 12))):
        place = data.draw(st.tuples(st.integers(0, F - 1), st.integers(0, d - 1), st.integers(0, G - 1)))
        keys[place] = data.draw(st.sampled_from([0.5, 1.0, 2.0]))
    rows = keys.reshape(-1, G)
    least, streams = Minima(F, G, layout), np.arange(F)
    nodes = layout.nodes(np.arange(len(rows)))
    least.update(rows[layout.leaves(nodes, streams)], nodes, streams)
    np.testing.assert_array_equal(least.least, keys.min(axis=1))
    stream, setting = (part.ravel() for part in np.indices((F, G)))
    bound = np.array([1.0, 0.2, 3.0, 0.5])
    some = keys.min(axis=1)[stream, setting] <= bound
    stream, setting, bound = stream[some], setting[some], bound[some]
    replica, node = least.reaching(stream, setting, bound)
    width = FAN if layout.levels else layout.padded
    expected = {
        (k, row // width)
        for k in range(stream.size)
        for row in np.flatnonzero(rows[:, setting[k]] <= bound[k])
        if row // layout.padded == stream[k]
    }
    assert sorted(zip(replica.tolist(), node.tolist(), strict=True)) == sorted(expected)


@given(
    data=st.data(),
    shape=st.tuples(st.integers(1, 4), st.integers(1, 9), st.integers(1, 4)),
    d=st.sampled_from([1, 3, 12, 50]),
)
def test_rounds_take_every_effective_step_once_and_in_order(data, shape, d):
    layout = Layout(d)
    attributes = data.draw(arrays(int, shape, elements=st.integers(0, d - 1)))
    table = data.draw(arrays(float, (*shape[:2], d), elements=st.sampled_from([0.0, 0.0, 1.0, 2.5])))
    values = np.take_along_axis(table, attributes, axis=2)
    F, T, _ = shape
    start, cut = 100, 100 + data.draw(st.integers(0, T))
    points = sparse_points(attributes, values)
    expected = np.zeros((F, T, d))
    np.add.at(expected, (np.arange(F)[:, None, None], np.arange(T)[:, None], attributes), values)

    summed, last = np.zeros((F, T, d)), np.full(F, start)
    for first, end in [(start, cut), (cut, start + T)]:
        held = np.maximum(last, first)
        for steps in rounds(points, start, first, end, held, layout):
            assert (steps.step >= last).all()
            assert (steps.step[steps.live] > last[steps.live]).all()
            assert set(steps.stream) == set(np.flatnonzero(steps.live))
            stream, attribute = np.divmod(steps.row, layout.padded)
            np.testing.assert_array_equal(steps.stream, stream)
            assert (np.diff(steps.row) > 0).all()
            np.testing.assert_array_equal(steps.streams, np.unique(steps.stream))
            for level, nodes in enumerate(steps.nodes, start=1):
                np.testing.assert_array_equal(nodes, np.unique(steps.row // FAN**level))
            summed[stream, steps.step[stream] - 1 - start, attribute] += steps.value
            last = steps.step
        assert (last <= max(end, start)).all() or (last == held).all()
        last = np.maximum(last, end)
    np.testing.assert_allclose(summed, expected)
