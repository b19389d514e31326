"""Rounds: the alignment of the steps of many streams, so that they advance together.

A step whose drawn attributes are all zero has ``x~ = 0`` and changes no regressor, so it is skipped (but still paid
for). Streams skip different steps. The n-th round of a range of steps holds the n-th step of each stream that is not
skipped; streams without further steps idle. The arithmetic of a replica does not depend on the rounds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from budgetreg.algorithms.trees import FAN, Layout


@dataclass(frozen=True)
class SparsePoints:
    """Nonzero coordinates of the data point estimates of a block, sorted by (stream, position, attribute).

    Attributes
    ----------
    stream, position, attribute : ndarray of int, shape (N,)
        Indices of each coordinate; the position is that of the example in its block.
    value : ndarray of float, shape (N,)
        The coordinates of ``x~``, in which draws of the same attribute are summed.
    """

    stream: np.ndarray
    position: np.ndarray
    attribute: np.ndarray
    value: np.ndarray


@dataclass(frozen=True)
class Round:
    """One step of every stream that still has one.

    Attributes
    ----------
    live : ndarray of bool, shape (F,)
        Streams that take part.
    step : ndarray of int, shape (F,)
        The current step t = 1..m of each stream; that of an idle stream is its last one.
    stream, row : ndarray of int, shape (N,)
        Changed coordinates, sorted: the stream, and the row of (stream, attribute) in state arrays.
    value : ndarray of float, shape (N,) or (N, G)
        Values of these coordinates in ``x~``, or in gradients, which differ between the settings.
    stream_start : ndarray of int, shape (L,)
        Positions at which a new stream begins among them.
    nodes : tuple of ndarray of int
        The nodes of the sampler above them at each level, without repetition.
    """

    live: np.ndarray
    step: np.ndarray
    stream: np.ndarray
    row: np.ndarray
    value: np.ndarray
    stream_start: np.ndarray
    nodes: tuple[np.ndarray, ...]

    @property
    def streams(self) -> np.ndarray:
        """Streams with a changed coordinate, shape (L,)."""
        return self.stream[self.stream_start]

    @property
    def values(self) -> np.ndarray:
        """Coordinates for all settings, shape (N, 1), or for each, (N, G)."""
        return self.value.reshape(len(self.value), -1)


def sparse_points(attributes: np.ndarray, values: np.ndarray) -> SparsePoints:
    """Sum repeated draws of an attribute and drop zeros.

    Parameters
    ----------
    attributes : ndarray of int, shape (F, T, k_x)
        Attributes drawn for each example.
    values : ndarray of float, shape (F, T, k_x)
        Weighted values, ``x[i_r] / (k_x q[i_r])``.
    """
    _, n_examples, k_x = attributes.shape
    order = np.argsort(attributes, axis=-1, kind="stable")
    order += np.arange(0, attributes.size, k_x).reshape(*attributes.shape[:2], 1)
    attribute = attributes.reshape(-1).take(order.reshape(-1))
    first = np.ones(attributes.size, dtype=bool)
    np.not_equal(attribute[1:], attribute[:-1], out=first[1:])
    first[::k_x] = True
    starts = np.flatnonzero(first)
    value = np.add.reduceat(values.reshape(-1).take(order.reshape(-1)), starts)
    kept = value != 0
    starts, value = starts[kept], value[kept]
    stream, position = np.divmod(starts // k_x, n_examples)
    return SparsePoints(stream, position, attribute[starts], value)


def rounds(
    points: SparsePoints, start: int, first: int, last: int, previous: np.ndarray, layout: Layout
) -> Iterator[Round]:
    """Align the steps ``first < t <= last`` of all streams.

    Parameters
    ----------
    points : SparsePoints
        The data points of the block.
    start : int
        Number of examples before the block: the example at position p is step ``start + p + 1``.
    first, last : int
        The range of steps, within the block.
    previous : ndarray of int, shape (F,)
        Last step of each stream.
    layout : Layout
        The shape of the sampler's trees.

    Yields
    ------
    Round
    """
    step = points.position + start + 1
    inside = np.flatnonzero((step > first) & (step <= last))
    if not inside.size:
        return
    stream, step = points.stream[inside], step[inside]
    opens = _changes(stream) | _changes(step)
    heads = np.flatnonzero(opens)
    head_stream, head_step = stream[heads], step[heads]
    n_streams = previous.size
    counts = np.bincount(head_stream, minlength=n_streams)
    offsets = np.cumsum(counts) - counts
    head_round = np.arange(heads.size) - offsets[head_stream]
    n_rounds = int(counts.max())

    live = np.arange(n_rounds)[:, None] < counts
    steps = np.repeat(previous[None, :], n_rounds, axis=0)
    steps[head_round, head_stream] = head_step
    np.maximum.accumulate(steps, axis=0, out=steps)

    round_of = head_round[np.cumsum(opens) - 1]
    by_round = np.argsort(round_of, kind="stable")
    round_of, inside = round_of[by_round], inside[by_round]
    stream, value = points.stream[inside], points.value[inside]
    row = stream * layout.padded + points.attribute[inside]
    new_stream, new_round = _changes(stream), _changes(round_of)
    bounds = np.append(np.flatnonzero(new_round), inside.size)
    starts = _parts(np.flatnonzero(new_stream | new_round), bounds)
    node, nodes = row, []
    for _ in range(layout.levels):
        node = node // FAN
        opening = np.flatnonzero(_changes(node) | new_round)
        nodes.append([node[part] for part in _parts(opening, bounds)])
    for n, (begin, end) in enumerate(pairwise(bounds.tolist())):
        part = slice(begin, end)
        above = tuple(level[n] for level in nodes)
        yield Round(live[n], steps[n], stream[part], row[part], value[part], starts[n] - begin, above)


def _changes(values: np.ndarray) -> np.ndarray:
    """Return which values differ from the one before; the first one counts as different."""
    changes = np.ones(values.size, dtype=bool)
    np.not_equal(values[1:], values[:-1], out=changes[1:])
    return changes


def _parts(positions: np.ndarray, bounds: np.ndarray) -> list[np.ndarray]:
    """Split ascending positions at bounds, of which the first and the last enclose them."""
    cuts = np.searchsorted(positions, bounds).tolist()
    return [positions[begin:end] for begin, end in pairwise(cuts)]
