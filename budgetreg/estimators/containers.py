"""Tables as callers give them, whose cells must be numbers: arrays, masked ones, frames, sparse matrices and lists.

Or a function that measures values while they are learned from, see `Observed`.
"""

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from budgetreg.common.errors import described, nearest, quoted
from budgetreg.data.dataset import LARGEST, label, size_fault

_TEXT = "holds text, and numbers are needed: convert it, for example with astype(float)"
_DATES = "holds dates, and numbers are needed: give the days since a date, for example"
_DURATIONS = "holds durations, and numbers are needed: give their seconds, for example"
_COMPLEX = "holds complex values: Complex data not supported, give real numbers"  # words that scikit-learn tests for
_NUMBERS = "biuf"  # kinds of NumPy's types
_REFUSED_KINDS = {"c": _COMPLEX, "M": _DATES, "m": _DURATIONS, "S": _TEXT, "T": _TEXT, "U": _TEXT}
_REFUSED_CLASSES: Sequence[tuple[Any, str]] = (
    ((str, bytes), _TEXT),
    ((complex, np.complexfloating), _COMPLEX),
    ((datetime.timedelta, np.timedelta64), _DURATIONS),
    ((datetime.date, datetime.time, np.datetime64), _DATES),
)


def plain(given: Any, name: str) -> Any:
    """Return a table or a column of numbers with NaN in place of cells that are masked, or that pandas calls missing.

    scikit-learn would learn from masked values, and from the number of days of dates. What it reads correctly is
    returned as it is.

    Parameters
    ----------
    given : array-like or sparse matrix
        Frames keep the names of their columns.
    name : str
        What messages call it.

    Raises
    ------
    ValueError
        If cells hold text, dates, durations or complex numbers, or two columns have the same name.
    TypeError
        If cells hold other objects that are no numbers.
    """
    if issparse(given):
        _refuse_kind(given.dtype, name)
        return given
    if hasattr(given, "iloc"):
        return _plain_series(given, name) if given.ndim == 1 else _plain_frame(given, name)
    columns = getattr(given, "iter_columns", getattr(given, "itercolumns", None))  # of Polars, of PyArrow
    for column in columns() if columns else ():
        plain(np.asarray(column), name)  # beside other columns, NumPy makes numbers of dates
    given = _without_masks(given, name) if isinstance(given, list | tuple) else given
    values = np.asanyarray(given)
    _refuse_kind(values.dtype, name)
    missing, cells = np.ma.getmask(values), np.ma.getdata(values)
    if cells.dtype.kind == "O":
        missing = missing | _missing_objects(cells, name)
    return np.where(missing, np.nan, cells) if np.any(missing) else given


def _without_masks(part: Any, name: str) -> Any:
    """Return lists of numbers and arrays with NaN for what is masked: NumPy would make 0 of it."""
    if isinstance(part, list | tuple):
        return [_without_masks(each, name) for each in part]
    return plain(part, name) if isinstance(part, np.ma.MaskedArray) else part


def _plain_series(series: Any, name: str) -> Any:
    """Return a column of a frame as an array."""
    if isinstance(series.dtype, np.dtype):
        return plain(series.to_numpy(), name)
    _refuse_kind(series.dtype, name)  # types of pandas' own have kinds, too
    if series.dtype.kind in _NUMBERS:
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    return plain(series.to_numpy(dtype=object), name)


def _plain_frame(frame: Any, name: str) -> Any:
    """Return a frame of numbers: the same one, unless NumPy reads some of its columns as other values."""
    types = list(frame.dtypes)
    for repeated in frame.columns[frame.columns.duplicated()]:
        raise ValueError(f"{name}: two columns are named {quoted(str(repeated))}: rename one")
    if all(isinstance(kind, np.dtype) and kind.kind in _NUMBERS for kind in types):
        return frame
    if all(getattr(kind, "fill_value", None) == 0 for kind in types):  # as a sparse matrix it is smaller
        return frame
    columns = [
        np.asarray(_plain_series(frame.iloc[:, at], f"{name}: column {label(at, list(map(str, frame.columns)), ())}"))
        for at in range(len(types))
    ]
    values = np.column_stack([column.astype(np.float64) for column in columns])
    return type(frame)(values, index=frame.index, columns=frame.columns)


def _refuse_kind(dtype: Any, name: str) -> None:
    if why := _REFUSED_KINDS.get(getattr(dtype, "kind", "")):
        raise ValueError(f"{name} {why}")


def _missing_objects(cells: np.ndarray, name: str) -> np.ndarray:
    """Return which objects stand for a missing value."""
    classes = set(map(type, cells.flat))
    for refused, why in _REFUSED_CLASSES:
        if any(issubclass(cls, refused) for cls in classes):
            raise ValueError(f"{name} {why}")
    holes = {cls for cls in classes if cls.__name__ == "NAType" or issubclass(cls, np.ma.core.MaskedConstant)}
    for cls in classes - holes - {type(None)}:
        if not hasattr(cls, "__float__"):
            # Python's own words, which scikit-learn tests for
            raise TypeError(f"{name}: float() argument must be a string or a real number, not '{cls.__name__}'")
    return np.array([type(cell) in holes for cell in cells.flat], dtype=bool).reshape(cells.shape)


def checked(estimator: BaseEstimator, X: Any, *, dense: bool = False, **options: Any) -> Any:
    """Return a table as scikit-learn checks it, an array or CSR, without values too large to compute with.

    Parameters
    ----------
    estimator : BaseEstimator
        It keeps the names of the columns, or compares them.
    X : array-like or sparse matrix of shape (n, d)
        The table.
    dense : bool
        Whether an array is returned in any case.
    **options
        Those of `sklearn.utils.validation.validate_data`.

    Raises
    ------
    TypeError
        If a cell holds an object that is no number.
    ValueError
        If the table cannot be used.
    """
    X = validate_data(estimator, plain(X, "X"), accept_sparse="csr", dtype=np.float64, order="C", **options)
    if issparse(X):
        X = X.copy()
        X.sum_duplicates()
    refuse_sizes(X, "X", getattr(estimator, "feature_names_in_", ()), small=False)
    return X.toarray() if dense and issparse(X) else X


def each_of(given: Any, name: str, names: Sequence[str], d: int) -> list[Any]:
    """Return what is given of each of d attributes, None where nothing is.

    Parameters
    ----------
    given : mapping, Series or sequence
        By the attribute's name, or in the order of the attributes.
    name : str
        What messages call it.
    names : sequence of str
        Names of the attributes; empty if they have none.
    d : int
        Number of attributes.

    Raises
    ------
    ValueError
        If there is another number of entries, or one has the name of no attribute.
    """
    if isinstance(given, Mapping) or (hasattr(given, "iloc") and given.ndim == 1):
        if not names:
            raise ValueError(f"{name}: X has no names of attributes: give a list of {d} entries in their order")
        by_name = dict(given.items())
        unknown = next((key for key in by_name if key not in names), None)
        if unknown is not None:
            raise ValueError(f"{name}: X has no attribute {quoted(str(unknown))}{nearest(str(unknown), names)}")
        return [by_name.get(key) for key in names]
    if np.shape(given) != (d,):
        raise ValueError(f"{name} has shape {np.shape(given)}: ({d},) is needed, one entry for each attribute of X")
    return list(given)


def refuse_sizes(X: Any, name: str, names: Sequence[str] = (), *, small: bool = True) -> None:
    """Refuse a table with a column whose largest value is too large to compute with, or too small.

    Parameters
    ----------
    X : ndarray or sparse matrix, shape (n, d)
        NaN in place of missing values.
    name : str
        What messages call it.
    names : sequence of str, optional
        Names of its columns.
    small : bool
        Whether to refuse small values, too: their squares are 0, which matters to learning alone.

    Raises
    ------
    ValueError
        If there is such a column.
    """
    largest = largest_of(X)
    top, least = int(largest.argmax()), int(np.where(largest, largest, np.inf).argmin())
    for at, size in ((top, max(largest[top], 1.0)), (least, largest[least] if small else 1.0)):
        if why := size_fault(float(size)):
            raise ValueError(f"{name}: attribute {label(at, names, ())}: {why}")


def largest_of(X: Any) -> np.ndarray:
    """Return the largest absolute value (d,) of each column of an array or CSR; 0 for a column of NaN."""
    if issparse(X):
        largest = np.zeros(X.shape[1])
        np.maximum.at(largest, X.indices, np.nan_to_num(np.abs(X.data)))
        return largest
    return np.nan_to_num(np.fmax(np.fmax.reduce(X, axis=0), -np.fmin.reduce(X, axis=0)))


Observe = Callable[[int, np.ndarray], object]
"""``observe(example, attributes)`` returns the values of an example's attributes, in their order."""


class ObservationError(ValueError):
    """An example that could not be observed; the message names it.

    Attributes
    ----------
    example : int
        Its number.
    values : ndarray of float, shape (n, d)
        All values that earlier calls returned, NaN elsewhere: they can be passed to ``fit`` as ``known``.
    """

    def __init__(self, message: str, example: int, values: np.ndarray) -> None:
        super().__init__(message)
        self.example, self.values = example, values

    def __reduce__(self) -> tuple[object, ...]:
        """Keep all parts when it is pickled."""
        return type(self), (str(self), self.example, self.values)


class Observed:
    """Values that a function returns, each of which is asked for once; see `budgetreg.data.dataset.Values`.

    Parameters
    ----------
    observe : callable
        See `Observe`. It is called with distinct attributes in ascending order.
    values : ndarray of float, shape (n, d)
        Values known beforehand, NaN elsewhere. Observed values are written into it.
    """

    on_demand = True

    def __init__(self, observe: Observe, values: np.ndarray) -> None:
        self._observe, self.values = observe, values
        self.shape: tuple[int, int] = (values.shape[0], values.shape[1])

    def entries(self, rows: np.ndarray, attributes: np.ndarray) -> np.ndarray:
        """Return single values, observing those that are not known yet, example by example."""
        rows, attributes = np.broadcast_arrays(rows, attributes)
        unknown = np.isnan(self.values[rows, attributes])
        examples, first = np.unique(rows[unknown], return_index=True)
        for example in examples[np.argsort(first)].tolist():
            self._ask(example, np.unique(attributes[unknown & (rows == example)]))
        return np.asarray(self.values[rows, attributes])

    def rows(self, index: np.ndarray) -> np.ndarray:
        """Return full rows, observing what is not known yet."""
        return self.entries(index[..., None], np.arange(self.shape[1]))

    def _ask(self, example: int, attributes: np.ndarray) -> None:
        try:
            returned = self._observe(example, attributes.copy())
        except Exception as error:
            raise self._failed(example, f"observe raised {described(error)}") from error
        try:
            values = np.asarray(plain(returned, "the result"), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise self._failed(example, f"observe returned no numbers ({described(error)})") from error
        if values.shape != attributes.shape:
            raise self._failed(example, f"observe returned shape {values.shape} for {attributes.size} attributes")
        unusable = ~(np.abs(values) <= LARGEST)  # NaN, too
        if unusable.any():
            returned, attribute = f"{values[unusable][0]:.3g}", attributes[unusable][0]
            problem = f"observe returned {returned} for attribute {attribute}: numbers up to {LARGEST:g} are needed"
            raise self._failed(example, problem)
        self.values[example, attributes] = values

    def refuse_small(self) -> None:
        """Refuse an attribute whose values are all too small to compute with; call it when all are observed."""
        for attribute, largest in enumerate(largest_of(self.values).tolist()):
            if why := size_fault(largest):
                example = int(np.flatnonzero(np.nan_to_num(self.values[:, attribute]))[0])
                raise self._failed(example, f"attribute {attribute}: {why}")

    def _failed(self, example: int, problem: str) -> ObservationError:
        return ObservationError(f"example {example}: {problem}", example, self.values.copy())
