"""Values that are measured while they are learned from."""

from collections.abc import Callable

import numpy as np

from budgetreg.data.dataset import LARGEST, size_fault
from budgetreg.errors import described
from budgetreg.estimators.containers import largest_of, plain

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
        if not np.isfinite(values).all():
            which = ", ".join(map(str, attributes[~np.isfinite(values)].tolist()))
            raise self._failed(example, f"observe returned no finite number for attribute {which}")
        too_large = np.abs(values) > LARGEST
        if too_large.any():
            which, largest = attributes[too_large][0], values[too_large][0]
            raise self._failed(
                example, f"observe returned {largest:.3g} for attribute {which}: the most is {LARGEST:g}"
            )
        self.values[example, attributes] = values

    def refuse_small(self) -> None:
        """Refuse an attribute whose values are all too small to compute with; call it when all are observed."""
        for attribute, largest in enumerate(largest_of(self.values).tolist()):
            if why := size_fault(largest):
                example = int(np.flatnonzero(np.nan_to_num(self.values[:, attribute]))[0])
                raise self._failed(example, f"attribute {attribute}: {why}")

    def _failed(self, example: int, problem: str) -> ObservationError:
        return ObservationError(f"example {example}: {problem}", example, self.values.copy())
