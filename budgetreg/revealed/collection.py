"""Collection and storage of what is revealed, for learners that store what they see, with draws planned from it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from budgetreg.metering.accessor import Accessor
from budgetreg.sampling.designs import Draw, fixed_size, working_probabilities
from budgetreg.sampling.draws import BLOCK, subset
from budgetreg.sampling.importance_weights import regression_weights

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_MIX = 0.1
"""Share of equal probabilities in the draws."""


class Block(NamedTuple):
    """Examples with equally many revealed values.

    Attributes
    ----------
    attributes : ndarray of int, shape (F, T, n)
        Column of each value: an attribute; d for the target, if any; the number of columns for a missing value.
    values : ndarray of float, shape (F, T, n)
        The values.
    """

    attributes: np.ndarray
    values: np.ndarray


class Entries:
    """Revealed values of F streams, in about ``F T (k + 1)`` numbers for T examples of each.

    Parameters
    ----------
    columns : int
        Number of attributes, plus 1 if targets are stored.

    Attributes
    ----------
    size : int
        Number of values of each stream.
    """

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.size = 0
        self._blocks: list[Block] = []

    def add(self, attributes: np.ndarray, values: np.ndarray, y: np.ndarray | None = None) -> None:
        """Add examples.

        Parameters
        ----------
        attributes : ndarray of int, shape (F, T, n)
            Distinct attributes of each example; `columns` for a missing value.
        values : ndarray of float, shape (F, T, n)
            Their values.
        y : ndarray of float, shape (F, T), optional
            Targets, which become one more column.
        """
        if y is not None:
            target = np.full((*y.shape, 1), self.columns - 1)
            attributes, values = np.append(attributes, target, axis=2), np.append(values, y[:, :, None], axis=2)
        self.size += values.shape[1] * values.shape[2]
        self._blocks.append(Block(attributes, values))

    def blocks(self) -> list[Block]:
        """Return all examples in order, consecutive ones with equally many values in one block."""
        alike = groupby(self._blocks, key=lambda block: block.values.shape[2])
        self._blocks = [
            Block(*(np.concatenate(arrays, axis=1) for arrays in zip(*blocks, strict=True))) for _, blocks in alike
        ]
        return self._blocks


def rows_by_column(attributes: np.ndarray, values: np.ndarray, columns: int) -> tuple["csr_array", "csr_array"]:
    """Return which columns were seen, as ones, and their values as sparse matrices (T, columns)."""
    from scipy.sparse import csr_array  # imported here because SciPy loads slowly

    starts = np.arange(0, values.size + 1, values.shape[1])
    shape = len(values), columns
    seen, known = (
        csr_array((entries.reshape(-1), attributes.reshape(-1), starts), shape)
        for entries in (np.ones(values.shape), values)
    )
    return seen, known


class AttributeDraws:
    """Draws of k of d attributes per example, in blocks that do not depend on checkpoints.

    The draws are uniform subsets until `plan` changes them.
    """

    def __init__(self, rng: np.random.Generator, d: int, k: int) -> None:
        self.k, self._rng = k, rng
        self._draw = lambda rng: Draw(subset(rng, d, k))
        self._block = np.empty((0, k), dtype=np.int64)

    def plan(self, p: np.ndarray) -> None:
        """Draw, from the next example on, with probabilities of about p (d,), see `fixed_size`."""
        self._draw = fixed_size(p, self.k)
        self._block = self._block[:0]

    def take(self, examples: int) -> np.ndarray:
        """Return the attributes (T, k) of the next examples."""
        while len(self._block) < examples:
            self._block = np.append(self._block, self._draw(self._rng).attributes, axis=0)
        taken, self._block = self._block[:examples], self._block[examples:]
        return taken


@dataclass(frozen=True)
class Collected:
    """Everything revealed up to a checkpoint, or up to a point at which draws may be planned.

    Attributes
    ----------
    examples : int
        Number of examples, without the pilot's.
    is_checkpoint : bool
        Whether the output is wanted.
    is_plan : bool
        Whether `plan` may be called.
    entries : Entries
        Everything revealed, the pilot first.
    phases : tuple of int
        Numbers of examples, with the pilot's, at which the draw probabilities changed; the last is that of all.
    draws : sequence of AttributeDraws
        One per stream.
    """

    examples: int
    is_checkpoint: bool
    is_plan: bool
    entries: Entries
    phases: tuple[int, ...]
    draws: Sequence[AttributeDraws]

    def plan(self, spread: np.ndarray, W: np.ndarray) -> None:
        """Change the draw probabilities, see `budgetreg.sampling.importance_weights.regression_weights`.

        Parameters
        ----------
        spread : ndarray of float, shape (F, d)
            Residual standard deviations of the attributes.
        W : ndarray of float, shape (F, d)
            Regressors.
        """
        for draws, s, w in zip(self.draws, spread, W, strict=True):
            draws.plan(working_probabilities(regression_weights(s, w), draws.k, _MIX))


def collect(
    accessor: Accessor, checkpoints: Sequence[int], rngs: Sequence[np.random.Generator], k: int
) -> Iterator[Collected]:
    """Draw k attributes of each example: uniform subsets at first, then by plans.

    The first plan is due after ``2 d / k`` examples, and further plans whenever their number has doubled.

    Parameters
    ----------
    accessor : Accessor
        F streams of examples, and their pilots.
    checkpoints : sequence of int
        Increasing.
    rngs : sequence of numpy.random.Generator
        One per stream.
    k : int
        Attributes seen of each example.
    """
    d, last = accessor.d, checkpoints[-1]
    entries, draws, changes = Entries(d + 1), [AttributeDraws(rng, d, k) for rng in rngs], []
    X, y = accessor.pilot()
    pilot = X.shape[1]
    if pilot:
        entries.add(np.broadcast_to(np.arange(d), X.shape), X, y)
        changes.append(pilot)
    first = -(-2 * d // k)
    plans = {first << doublings for doublings in range(last.bit_length()) if first << doublings < last}
    for start, stop in pairwise(sorted({*range(0, last, BLOCK), *checkpoints, *plans})):
        entries.add(*reveal(accessor, draws, start, stop, entries.columns), accessor.targets())
        if stop in checkpoints or stop in plans:
            yield Collected(stop, stop in checkpoints, stop in plans, entries, (*changes, pilot + stop), draws)
        if stop in plans:
            changes.append(pilot + stop)


def reveal(
    accessor: Accessor, draws: Sequence[AttributeDraws], start: int, stop: int, missing: int
) -> tuple[np.ndarray, np.ndarray]:
    """Open a block of examples; return the attributes drawn, or `missing` for missing values, and the values."""
    accessor.open(start, stop)
    attributes = np.stack([stream.take(stop - start) for stream in draws])
    values = accessor.reveal_block(attributes)
    if not accessor.complete:
        attributes = np.where(accessor.available(attributes), attributes, missing)
    return attributes, values
