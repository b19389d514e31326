"""The stored examples: attribute values, scaled and centred, targets, and which values are missing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from budgetreg.data.dataset import Values, as_values


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
