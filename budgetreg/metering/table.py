"""The stored examples, as learners and tests read them: values scaled and centred, targets, and gaps."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from budgetreg.data.values import Values, as_values


@dataclass(frozen=True)
class Table:
    """Attribute values and targets of a data set, as the accessor and the evaluation read them.

    Attributes
    ----------
    X : ndarray of shape (n, d), or Values
        Stored values: an array of numbers, possibly memory-mapped, or what `budgetreg.data.values` offers besides.
    y : ndarray of shape (n,)
        Targets.
    scale : float or ndarray of shape (d,) or (T, d)
        The value of an attribute is ``X * scale - shift``; with T scales, each T-th of the rows has its own.
    shift : ndarray of shape (d,) or (T, d), or None
        Subtracted from every example (centring), or from those of each T-th of the rows; None means 0.
    available : ndarray of bool, shape (n, d), or None
        Which cells have a value that can be bought, which is known beforehand; None if all have.
    together : ndarray of float, shape (d, d) or (T, d, d), or None
        The share of training examples that have both of two attributes, above 0; on the diagonal, that which have one.
    """

    X: np.ndarray | Values
    y: np.ndarray
    scale: float | np.ndarray = 1.0
    shift: np.ndarray | None = None
    available: np.ndarray | None = None
    together: np.ndarray | None = None
    _values: Values = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Find out how the values are read."""
        object.__setattr__(self, "_values", as_values(self.X))

    @property
    def d(self) -> int:
        """Number of attributes."""
        return self._values.shape[1]

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

    def shifted(self, shift: np.ndarray) -> "Table":
        """Return the same table with values less a shift (d,) than they are here."""
        return replace(self, shift=shift if self.shift is None else self.shift + shift)

    def stored_units(self) -> tuple[np.ndarray, np.ndarray]:
        """Return scale and origin c, shape (d,) both, by which values are ``(X - c) * scale``; of one table alone."""
        scale = np.array(np.broadcast_to(self.scale, (self.d,)), dtype=np.float64)
        return scale, np.zeros(self.d) if self.shift is None else self.shift / scale

    def _places(self, of_parts: np.ndarray, rows: np.ndarray, attributes: np.ndarray) -> np.ndarray:
        return attributes if of_parts.ndim == 1 else self.part(of_parts, rows) * self.d + attributes

    def _of_rows(self, of_parts: float | np.ndarray, index: np.ndarray) -> float | np.ndarray:
        if not isinstance(of_parts, np.ndarray) or of_parts.ndim == 1:
            return of_parts
        return of_parts[self.part(of_parts, index)]

    def part(self, of_parts: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return to which of T parts of the table, each with an entry in an array of T, rows belong."""
        return rows // (len(self.y) // len(of_parts))


def stack(tables: Sequence[Table]) -> tuple[Table, list[int]]:
    """Put tables of equal shape one above the other, to be read together.

    Parameters
    ----------
    tables : sequence of Table
        Several only if their values are arrays.

    Returns
    -------
    table : Table
        The only one there is, if they are all the same data.
    offsets : list of int
        Row number of each table's first row.
    """
    first = tables[0]
    if all(
        table.X is first.X
        and table.shift is first.shift
        and table.scale is first.scale
        and table.together is first.together
        for table in tables
    ):
        return first, [0] * len(tables)
    X = np.concatenate([np.asarray(table.X) for table in tables])
    y = np.concatenate([table.y for table in tables])
    shifts = [table.shift for table in tables if table.shift is not None]
    scale = first.scale
    if not all(np.array_equal(table.scale, scale) for table in tables):
        scale = np.stack([np.broadcast_to(table.scale, (first.d,)) for table in tables])
    masks = [table.available for table in tables if table.available is not None]
    shares = [table.together for table in tables if table.together is not None]
    return (
        Table(
            X,
            y,
            scale,
            np.stack(shifts) if shifts else None,
            np.concatenate(masks) if masks else None,
            np.stack(shares) if shares else None,
        ),
        [len(first.y) * i for i in range(len(tables))],
    )
