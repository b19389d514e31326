"""The stored examples, which values are missing, and centring at no cost by the means of revealed values."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from budgetreg.data.dataset import Values, as_values

HELD = 256
"""Most examples that are centred by the same means: the length of a block of learners that draw attributes."""


@dataclass(frozen=True)
class Table:
    """Attribute values and targets of a data set, as the accessor and the tests read them.

    A table may consist of T parts of equal length, one above the other, as `stack` makes it.

    Attributes
    ----------
    X : ndarray of shape (n, d), or Values
        Stored values: an array of numbers, possibly memory-mapped, or another kind of `budgetreg.data.dataset`.
    y : ndarray of shape (n,)
        Targets.
    scale : float or ndarray of shape (d,) or (T, d)
        An attribute has the value ``X * scale - shift``. An array (T, d) has one row for each part.
    shift : ndarray of shape (d,) or (T, d), or None
        What is subtracted from every example; None means 0.
    available : ndarray of bool, shape (n, d), or None
        Which cells have a value; None if all have. This is known before anything is bought.
    together : ndarray of float, shape (d, d) or (T, d, d), or None
        The share of training examples in which both of two attributes have a value, above 0. The diagonal holds the
        share in which one attribute has a value.
    """

    X: np.ndarray | Values
    y: np.ndarray
    scale: float | np.ndarray = 1.0
    shift: np.ndarray | None = None
    available: np.ndarray | None = None
    together: np.ndarray | None = None

    @cached_property
    def _values(self) -> Values:
        return as_values(self.X)

    @property
    def d(self) -> int:
        """Number of attributes."""
        return self._values.shape[1]

    @property
    def on_demand(self) -> bool:
        """Whether values are measured when they are asked for, so that only those may be that are paid for."""
        return bool(getattr(self._values, "on_demand", False))

    def entries(self, rows: np.ndarray, attributes: np.ndarray) -> np.ndarray:
        """Return single values as float64; the two arrays of int are broadcast against each other."""
        scale = self.scale
        if isinstance(scale, np.ndarray):
            scale = scale.take(self._places(scale, rows, attributes))
        values = np.multiply(self._values.entries(rows, attributes), scale, dtype=np.float64)
        return values if self.shift is None else values - self.shift.take(self._places(self.shift, rows, attributes))

    def rows(self, index: np.ndarray) -> np.ndarray:
        """Return full rows as float64, shape ``index.shape + (d,)``."""
        values = np.multiply(self._values.rows(index), self._of_rows(self.scale, index), dtype=np.float64)
        return values if self.shift is None else values - self._of_rows(self.shift, index)

    def units_of(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return scale and shift of the rows (F,), both of shape (F, d)."""
        shift = 0.0 if self.shift is None else self.shift
        shape = (*rows.shape, self.d)
        scale, shift = (np.broadcast_to(self._of_rows(part, rows), shape) for part in (self.scale, shift))
        return scale, shift

    def shifted(self, shift: np.ndarray) -> "Table":
        """Return the same table, from whose values a further shift (d,) is subtracted."""
        return replace(self, shift=shift if self.shift is None else self.shift + shift)

    def stored_units(self) -> tuple[np.ndarray, np.ndarray]:
        """Return scale and origin c, both of shape (d,), of values ``(X - c) * scale``; for one part only."""
        scale = np.array(np.broadcast_to(self.scale, (self.d,)), dtype=np.float64)
        return scale, np.zeros(self.d) if self.shift is None else self.shift / scale

    def part(self, per_part: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the part that each row belongs to, given an array with one entry for each of the T parts."""
        return rows // (len(self.y) // len(per_part))

    def _places(self, per_part: np.ndarray, rows: np.ndarray, attributes: np.ndarray) -> np.ndarray:
        return attributes if per_part.ndim == 1 else self.part(per_part, rows) * self.d + attributes

    def _of_rows(self, per_part: float | np.ndarray, index: np.ndarray) -> float | np.ndarray:
        if not isinstance(per_part, np.ndarray) or per_part.ndim == 1:
            return per_part
        return per_part[self.part(per_part, index)]


def stack(tables: Sequence[Table]) -> tuple[Table, list[int]]:
    """Put tables of equal shape one above the other, to be read together.

    Parameters
    ----------
    tables : sequence of Table
        If they differ, their values must be arrays.

    Returns
    -------
    table : Table
        The first one if all hold the same data.
    offsets : list of int
        Row number of each table's first row.
    """
    first, read = tables[0], ("X", "shift", "scale", "together")
    if all(getattr(table, name) is getattr(first, name) for table in tables for name in read):
        return first, [0] * len(tables)
    scale = first.scale
    if not all(np.array_equal(table.scale, scale) for table in tables):
        scale = np.stack([np.broadcast_to(table.scale, (first.d,)) for table in tables])
    shifts = [table.shift for table in tables if table.shift is not None]
    masks = [table.available for table in tables if table.available is not None]
    shares = [table.together for table in tables if table.together is not None]
    stacked = Table(
        np.concatenate([np.asarray(table.X) for table in tables]),
        np.concatenate([table.y for table in tables]),
        scale,
        np.stack(shifts) if shifts else None,
        np.concatenate(masks) if masks else None,
        np.stack(shares) if shares else None,
    )
    return stacked, [len(first.y) * i for i in range(len(tables))]


class JointMoments(NamedTuple):
    """Mean and covariance of the attributes and, last, the target."""

    mean: np.ndarray
    """Shape (d + 1,)."""
    covariance: np.ndarray
    """Shape (d + 1, d + 1)."""


class WithIntercept(NamedTuple):
    """Regressors of a learner that centres what it sees itself: ``f(x) = intercept + <w, x>``."""

    regressors: np.ndarray
    """Shape (F, d, G)."""
    intercept: np.ndarray
    """Shape (F, G), in units of the target."""
    moments: Callable[[int], JointMoments] | None = None
    """Returns what the learner knows of the attributes and the target of a stream; None if it models none."""
    left_out: np.ndarray | None = None
    """The attributes, bool of shape (F, d), whose scale the values seen do not show; None if there are none."""
    selection: Callable[[int], JointMoments] | None = None
    """Returns moments by which attributes for predictions are selected, of learners that model none; None for none."""


def with_others(outputs: "Outputs", streams: Sequence[int], n_streams: int) -> "Outputs":
    """Return outputs of some streams as those of all; the others have 0."""

    def spread(values: np.ndarray) -> np.ndarray:
        every = np.zeros((n_streams, *values.shape[1:]), values.dtype)
        every[list(streams)] = values
        return every

    if not isinstance(outputs, WithIntercept):
        return spread(outputs)
    at = {stream: i for i, stream in enumerate(streams)}
    moments, selection = (
        None if of is None else lambda f, of=of: of(at[f]) for of in (outputs.moments, outputs.selection)
    )
    left_out = None if outputs.left_out is None else spread(outputs.left_out)
    return WithIntercept(spread(outputs.regressors), spread(outputs.intercept), moments, left_out, selection)


Outputs = np.ndarray | WithIntercept
"""What a learner returns: regressors (F, d, G), or subspaces (F, G, d, n) as orthonormal columns."""


class Origin(NamedTuple):
    """The origin of a stream's regressors at a checkpoint: ``f(x) = intercept + <w, x - shift>``."""

    shift: np.ndarray | None = None
    """What is subtracted from the attributes, shape (d,); None for nothing."""
    intercept: np.ndarray | float = 0.0
    """What is predicted at the origin, one number or one for each setting (G,); in units of the target."""
    moments: Callable[[], JointMoments] | None = None
    """Returns what the learner knows of attributes as the accessor returns them; None if it models none."""
    left_out: np.ndarray | None = None
    """The attributes, bool of shape (d,), whose scale the values seen do not show; None if there are none."""
    selection: Callable[[], JointMoments] | None = None
    """Returns moments by which attributes for predictions are selected, of learners that model none; None for none."""
    seen: Callable[[int], tuple[np.ndarray, np.ndarray]] | None = None
    """Returns the rows and cells that a setting has seen, see `budgetreg.metering.ledger.RevealLog.seen`."""


def sums(attributes: np.ndarray, values: np.ndarray, d: int) -> np.ndarray:
    """Return the sums of values by attribute.

    Parameters
    ----------
    attributes : ndarray of int, shape (F, T, n)
        Attributes, below d.
    values : ndarray of float, shape (F, T, n)
        The value that belongs to each.
    d : int
        Number of attributes.

    Returns
    -------
    ndarray of float, shape (F, d)
        Values are added one after the other, so that a stream's sums depend on no other stream.
    """
    F = len(attributes)
    place = np.arange(F)[:, None, None] * d + attributes
    return np.bincount(place.reshape(-1), values.reshape(-1), F * d).reshape(F, d)


class TargetMeans:
    """Means of the targets of each of F streams, over the examples before each one; targets are free.

    The target of an example is not in the mean that is subtracted from it. Only the first example, which has none
    before it, is centred by its own target.

    Parameters
    ----------
    known : ndarray of float, shape (F, N)
        Targets of earlier examples.
    """

    def __init__(self, known: np.ndarray) -> None:
        self._sum, self._count = known.sum(axis=1), known.shape[1]
        self._start, self._means = 0, self._sum[:, None] / max(1, self._count)

    def open(self, start: int, y: np.ndarray) -> np.ndarray:
        """Add the targets (F, T) of a block whose first example has the number ``start``; return them centred."""
        sums = np.cumsum(np.hstack([self._sum[:, None], y]), axis=1)
        counts = self._count + np.arange(sums.shape[1])
        self._start, self._means = start, sums / np.maximum(counts, 1)
        self._sum, self._count = sums[:, -1], int(counts[-1])
        return y - np.where(counts[:-1] > 0, self._means[:, :-1], y)

    def at(self, examples: int) -> np.ndarray:
        """Return the means (F,) over a number of examples, the last of which is in the current block."""
        return self._means[:, examples - self._start]


class RunningMeans:
    """Means of the values that were revealed to each of F streams, which change only between blocks.

    An example is centred by the means over earlier blocks. What is drawn for it does not move its own origin, so that
    unbiased estimates stay unbiased. An attribute that was never revealed has mean 0.

    Parameters
    ----------
    n_streams, d : int
        Streams F and attributes d.
    known : iterable of ndarray of shape (F, d)
        Examples of each stream that were known before the pass.
    """

    def __init__(self, n_streams: int, d: int, known: Iterable[np.ndarray]) -> None:
        self._d = d
        self._sum, self._count = np.zeros((n_streams, d)), np.zeros((n_streams, d))
        for X in known:
            self._sum += X
            self._count += 1
        self._held: list[tuple[int, np.ndarray]] = []

    def open(self, start: int) -> None:
        """Begin a block at example ``start``, counted from 0, with the means over all that was revealed before."""
        self._held.clear()
        self._hold(start)

    def at(self, examples: int) -> np.ndarray:
        """Return the means (F, d) that centre the last one of a number of examples; it is in the current block."""
        return next(means for start, means in reversed(self._held) if start < examples)

    def centred(self, values: np.ndarray, streams: np.ndarray, attributes: np.ndarray) -> np.ndarray:
        """Return values minus the means of their attributes; streams and attributes are broadcast to the values."""
        _, means = self._held[-1]
        return values - means.take(streams * self._d + attributes)

    def add(self, values: np.ndarray, attributes: np.ndarray, drawn: np.ndarray | None = None) -> None:
        """Add values of single attributes, both of shape (F, T, n); those that are drawn, if not all are."""
        counted = np.ones(values.shape) if drawn is None else np.broadcast_to(drawn, values.shape)
        self._sum += sums(attributes, values if drawn is None else np.where(drawn, values, 0.0), self._d)
        self._count += sums(attributes, counted, self._d)

    def centre_rows(self, X: np.ndarray) -> None:
        """Centre the full rows of a block, (F, T, d), in place; add them to the means, `HELD` examples at a time."""
        start, _ = self._held[-1]
        for begin in range(0, X.shape[1], HELD):
            if begin:
                self._hold(start + begin)
            _, means = self._held[-1]
            part = X[:, begin : begin + HELD]
            sums = np.stack([rows.sum(axis=0) for rows in part])
            part -= means[:, None, :]
            self._sum += sums
            self._count += part.shape[1]

    def _hold(self, start: int) -> None:
        self._held.append((start, self._sum / np.maximum(self._count, 1)))
