"""The data set that all layers above work with."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from budgetreg.data.groups import Groups
from budgetreg.data.values import Values
from budgetreg.errors import ConfigError, quoted

LARGEST = 1e30
"""Largest absolute value of an attribute that is admitted; 1/LARGEST is the smallest, apart from 0.

Losses are squares of products of weights, attributes and targets, and spreads over repetitions square them again.
Doubles reach from 2.2e-308 to 1.8e308: the square of a product of two such values is 1e120 or 1e-120, and that squared
1e240 or 1e-240, which leaves a factor of 1e68 for sums over examples and attributes and for divisions by k/d.
"""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Examples with all their attributes, of which an accessor reveals some.

    The arrays are made read-only. A memory-mapped ``X`` loses the mapping when it is pickled: load the data set in the
    worker instead of sending it there.

    Parameters
    ----------
    name : str
        Name in the column ``dataset`` and in the keys of random streams.
    X : ndarray of shape (n, d), int8, uint8, float32 or float64; or Values
        Stored values, an array being C-contiguous and possibly memory-mapped. An attribute's value is
        ``X * scale - shift``. Not checked for finiteness here, because that would read a large mapped file in full.
    y : ndarray of shape (n,), float64
        Targets; all 0 if there are none, and NaN where one is not known yet.
    scale : float or ndarray of shape (d,)
        Value of one stored unit.
    n_train : int or None
        Official split: rows ``[0, n_train)`` train, the others test. None if there is no official split; n (no test
        rows) only where the second moment is known.
    two_valued : bool
        Whether every target is -1 or +1, so that an error rate makes sense.
    notes : tuple of str
        Remarks for the user.
    digest : str
        Digest of the content; optional for an array, whose digest is computed on demand.
    second_moment : ndarray of shape (d, d), float64, or None
        ``E x x'`` of the distribution of the examples, if it is known, in squared units of the attributes.
    unpredictable : str
        The reason why no regressor could predict the targets; empty if one could.
    names : tuple of str
        Names of the attributes; empty if they have none.
    target : str
        Name of the target in the file; empty if it has none.
    label_names : tuple of str
        The values of a two-valued target in the file, which are -1 and +1, in this order; empty if they are -1 and +1
        there, too.
    shift : ndarray of shape (d,), or None
        Centre of the attributes that is known without looking at them; None: 0.
    available : ndarray of bool, shape (n, d), or None
        Which cells have a value; the others are 0 in ``X``. None if all have one.
    dropped : tuple of (int, str)
        Columns of the file that are no attributes: positions, ascending, among all columns but the target, and names,
        empty if they have none.
    groups : Groups or None
        Attributes that are bought together; None if each is bought alone.
    ordered : bool
        Whether learners see the examples in the order of the rows, and not in a random one.
    first : int or None
        The index of the first column of a LIBSVM file, 0 or 1; None for other data, whose columns count from 1.

    Raises
    ------
    ValueError
        If the parts do not fit together.
    """

    name: str
    X: np.ndarray | Values
    y: np.ndarray
    scale: float | np.ndarray
    n_train: int | None
    two_valued: bool
    notes: tuple[str, ...] = ()
    digest: str = ""
    second_moment: np.ndarray | None = None
    unpredictable: str = ""
    names: tuple[str, ...] = ()
    target: str = ""
    label_names: tuple[str, ...] = ()
    shift: np.ndarray | None = None
    available: np.ndarray | None = None
    dropped: tuple[tuple[int, str], ...] = ()
    groups: Groups | None = None
    ordered: bool = False
    first: int | None = None

    def __post_init__(self) -> None:
        """Check shapes, types and targets, and make the arrays read-only."""
        if len(self.X.shape) != 2 or self.y.shape != self.X.shape[:1] or 0 in self.X.shape:
            raise ValueError(f"X has shape {self.X.shape} and y {self.y.shape}; (n, d) and (n,) are needed")
        if isinstance(self.X, np.ndarray):
            if self.X.dtype not in (np.int8, np.uint8, np.float32, np.float64) or not self.X.flags.c_contiguous:
                raise ValueError(f"X must be C-contiguous int8, uint8, float32 or float64, not {self.X.dtype}")
        elif not self.digest:
            raise ValueError("values that are no array need a digest")
        if self.y.dtype != np.float64 or np.isinf(self.y).any():
            raise ValueError("y must be float64 without infinities")
        if not (np.isfinite(self.scale) & (np.asarray(self.scale) > 0)).all():
            raise ValueError(f"scale must be positive, not {self.scale}")
        if np.shape(self.scale) not in ((), self.X.shape[1:]):
            raise ValueError(f"scale has shape {np.shape(self.scale)}; one number, or one for each attribute is needed")
        if self.shift is not None and (self.shift.shape != self.X.shape[1:] or not np.isfinite(self.shift).all()):
            raise ValueError(f"shift must be a finite number for each attribute, not {self.shift}")
        most = len(self.y) - (self.second_moment is None)
        if self.n_train is not None and not 0 < self.n_train <= most:
            raise ValueError(f"n_train must leave rows on both sides of {len(self.y)}, not {self.n_train}")
        if len(self.names) not in (0, self.X.shape[1]):
            raise ValueError(f"{len(self.names)} names for {self.X.shape[1]} attributes")
        mask, C = self.available, self.second_moment
        if mask is not None and (mask.dtype != bool or mask.shape != self.X.shape):
            raise ValueError(f"available has shape {mask.shape}; bool of shape {self.X.shape} is needed")
        if self.two_valued and not np.isin(self.y, (-1.0, 1.0)).all():
            raise ValueError("two_valued targets must be -1 or +1")
        if C is not None and C.shape != (self.X.shape[1],) * 2:
            raise ValueError(f"second_moment has shape {C.shape}; (d, d) is needed")
        for array in (self.X, self.y, mask, C):
            if isinstance(array, np.ndarray):
                array.setflags(write=False)

    @property
    def n_purchases(self) -> int:
        """Number of purchases in a full row: attributes, or groups that are bought together."""
        return self.X.shape[1] if self.groups is None else int(self.groups.leads.sum())

    @property
    def labels(self) -> tuple[str, ...]:
        """The values of a two-valued target in the file, that of -1 and that of +1; empty for other targets."""
        return (self.label_names or ("-1", "1")) if self.two_valued else ()

    @cached_property
    def complete(self) -> np.ndarray:
        """The rows without missing values, bool of shape (n,)."""
        return np.ones(len(self.y), dtype=bool) if self.available is None else np.asarray(self.available.all(axis=1))

    def label(self, attribute: int) -> str:
        """Return how messages call an attribute: its name, or its number in the file."""
        return label(attribute, self.names, self.dropped, self.first)

    def fingerprint(self) -> str:
        """Return a short digest of the content, which detects a changed file."""
        if self.digest or not isinstance(self.X, np.ndarray):
            return self.digest
        content = hashlib.blake2b(digest_size=8)
        for array in (self.X, self.y, *([] if self.available is None else [self.available])):
            content.update(array.data)
        return content.hexdigest()


def label(attribute: int, names: Sequence[str], dropped: Sequence[tuple[int, str]], first: int | None = None) -> str:
    """Return how messages call an attribute; see `Dataset` for names, dropped columns and the first index."""
    if names:
        return quoted(names[attribute])
    at = positions(attribute + 1, dropped)[attribute]
    return f"number {at + 1}" if first is None else f"index {at + first}"


def size_fault(largest: float) -> str:
    """Return why a column with this largest absolute value cannot be computed with; empty if it can, or all are 0."""
    if not largest or 1 / LARGEST <= largest <= LARGEST:
        return ""
    return (
        f"its largest absolute value is {largest:.3g}, and only {1 / LARGEST:g} to {LARGEST:g} can be computed with: "
        "write it in another unit (multiply it by a power of ten)"
    )


def positions(d: int, dropped: Sequence[tuple[int, str]]) -> list[int]:
    """Return the positions of d attributes among all columns but the target, given those that are no attributes.

    Examples
    --------
    >>> positions(3, [(0, "id"), (2, "date")])
    [1, 3, 4]
    """
    taken = [at for at, _ in dropped]
    return np.delete(np.arange(d + len(taken)), [at for at in taken if at < d + len(taken)]).tolist()[:d]


def short_digest(value: object) -> str:
    """Return a digest of 16 hexadecimal digits of a value, by its `repr`."""
    return hashlib.blake2b(repr(value).encode(), digest_size=8).hexdigest()


def required(options: Mapping[str, Any], key: str) -> Any:
    """Return ``options[key]``.

    Raises
    ------
    ConfigError
        If it is missing or null.
    """
    value = options.get(key)
    if value is None:
        raise ConfigError(f"dataset.{key} is not set")
    return value
