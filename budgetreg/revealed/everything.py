"""Collection of all that is present: nothing is drawn, and nothing is planned."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from budgetreg.metering.accessor import Accessor
from budgetreg.revealed.collection import Collected, Entries
from budgetreg.streams import BLOCK


def collect_everything(accessor: Accessor, checkpoints: Sequence[int]) -> Iterator[Collected]:
    """Reveal all values that are present, and store examples with about equally many of them together.

    So memory and time are in proportion to the values that are present, not to the table.

    Parameters
    ----------
    accessor : Accessor
        F streams of examples, and their pilots.
    checkpoints : sequence of int
        Increasing.
    """
    d = accessor.d
    X, y = accessor.pilot()
    pilot = X.shape[1]
    by_width: dict[int, list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = {}
    for start, stop in pairwise(sorted({*range(0, checkpoints[-1], BLOCK), *checkpoints})):
        for part in _revealed(accessor, start, stop):
            by_width.setdefault(part[0].shape[2], []).append(part)
        if stop not in checkpoints:
            continue
        entries = Entries(d + 1)
        if pilot:
            entries.add(np.broadcast_to(np.arange(d), X.shape), X, y)
        for width in sorted(by_width):
            for part in by_width[width]:
                entries.add(*part)
        yield Collected(stop, True, False, entries, (*([pilot] if pilot else []), pilot + stop), [])


def _revealed(accessor: Accessor, start: int, stop: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield attributes, d + 1 for padding, with values and targets of examples whose rows are equally wide."""
    accessor.open(start, stop)
    d, shape = accessor.d, (accessor.n_streams, stop - start, accessor.d)
    there = accessor.available(np.broadcast_to(np.arange(d), shape))
    counts = there.sum(axis=2)
    attributes = np.argsort(~there, axis=2, kind="stable")[:, :, : max(1, counts.max())]
    present = np.take_along_axis(there, attributes, axis=2)
    values = accessor.reveal_block(attributes, None if present.all() else present)
    attributes = np.where(present, attributes, d + 1)
    # Each stream in the order of its numbers of values, so that all streams have rows of about the same width.
    order = np.argsort(counts, axis=1, kind="stable")
    stream = np.arange(len(order))[:, None]
    attributes, values, y = (array[stream, order] for array in (attributes, values, accessor.targets()))
    widest = np.maximum(counts[stream, order].max(axis=0), 1)
    widths = np.minimum(1 << np.ceil(np.log2(widest)).astype(int), d)
    for width in np.unique(widths):
        some = np.flatnonzero(widths == width)
        padding = ((0, 0), (0, 0), (0, max(0, width - attributes.shape[2])))
        yield (
            np.pad(attributes[:, some, :width], padding, constant_values=d + 1),
            np.pad(values[:, some, :width], padding),
            y[:, some],
        )
