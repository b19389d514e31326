"""Rounds: how the steps of many streams are lined up so that they advance together.

A step whose drawn attributes are all zero has ``x~ = 0`` and changes no regressor, so it is passed over (and still
paid for).  Streams pass over different steps; the n-th round of a stretch holds the n-th step of each stream that
does something, and a stream that has run out idles.  A replica's arithmetic is the same however rounds are formed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Touched:
    """Nonzero coordinates of the data point estimates of a block, sorted by (stream, position, attribute).

    Attributes
    ----------
    stream, position, attribute : ndarray of int, shape (N,)
        Where each coordinate is; the position is that of the example in its block.
    value : ndarray of float, shape (N,)
        Coordinate of ``x~``; draws of the same attribute are added up.
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
        The step t = 1..m each stream is at; an idle stream stays at the last step it took.
    stream, attribute : ndarray of int, shape (N,)
        Coordinates touched, sorted by stream, then attribute.
    value : ndarray of float, shape (N,)
        Their coordinates of ``x~``.
    block_start : ndarray of int, shape (K,)
        Where a new (stream, block of attributes) begins among the coordinates.
    stream_start : ndarray of int, shape (L,)
        Where a new stream begins among them.
    """

    live: np.ndarray
    step: np.ndarray
    stream: np.ndarray
    attribute: np.ndarray
    value: np.ndarray
    block_start: np.ndarray
    stream_start: np.ndarray


def touched(attributes: np.ndarray, values: np.ndarray) -> Touched:
    """Add up repeated draws of an attribute and drop zeros.

    Parameters
    ----------
    attributes : ndarray of int, shape (F, T, k_x)
        Attributes drawn for each example.
    values : ndarray of float, shape (F, T, k_x)
        Weighted values, ``x[i_r] / (k_x q[i_r])``.
    """
    _, n_examples, k_x = attributes.shape
    order = np.argsort(attributes, axis=-1, kind="stable")
    attribute = np.take_along_axis(attributes, order, axis=-1)
    first = np.ones(attributes.shape, dtype=bool)
    np.not_equal(attribute[..., 1:], attribute[..., :-1], out=first[..., 1:])
    starts = np.flatnonzero(first)
    value = np.add.reduceat(np.take_along_axis(values, order, axis=-1).ravel(), starts)
    kept = value != 0
    starts, value = starts[kept], value[kept]
    stream, position = np.divmod(starts // k_x, n_examples)
    return Touched(stream, position, attribute.ravel()[starts], value)


def rounds(points: Touched, start: int, first: int, last: int, previous: np.ndarray, width: int) -> Iterator[Round]:
    """Line up the steps ``first < t <= last`` of all streams.

    Parameters
    ----------
    points : Touched
        The block's data points.
    start : int
        Number of examples before the block: the example at position p is step ``start + p + 1``.
    first, last : int
        The stretch; within the block.
    previous : ndarray of int, shape (F,)
        Last step each stream has taken.
    width : int
        Attributes per block of the sampler.

    Yields
    ------
    Round
    """
    step = points.position + start + 1
    inside = np.flatnonzero((step > first) & (step <= last))
    if not inside.size:
        return
    stream, step = points.stream[inside], step[inside]
    opens = np.ones(inside.size, dtype=bool)
    opens[1:] = (stream[1:] != stream[:-1]) | (step[1:] != step[:-1])
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
    stream, attribute, value = points.stream[inside], points.attribute[inside], points.value[inside]
    block = attribute // width
    new_stream, new_block = np.ones(inside.size, dtype=bool), np.ones(inside.size, dtype=bool)
    new_stream[1:] = (stream[1:] != stream[:-1]) | (round_of[1:] != round_of[:-1])
    new_block[1:] = new_stream[1:] | (block[1:] != block[:-1])
    every_round = np.arange(n_rounds)
    ends = np.searchsorted(round_of, every_round, side="right")
    begins = np.searchsorted(round_of, every_round)
    block_starts, stream_starts = (_split(np.flatnonzero(new), begins, ends) for new in (new_block, new_stream))
    for n, (begin, end) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True)):
        part = slice(begin, end)
        yield Round(live[n], steps[n], stream[part], attribute[part], value[part], block_starts[n], stream_starts[n])


def _split(marks: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> list[np.ndarray]:
    """Cut sorted positions at the rounds' bounds and count each part from its round's begin."""
    cuts = np.searchsorted(marks, ends)[:-1]
    return [part - begin for part, begin in zip(np.split(marks, cuts), begins, strict=True)]
