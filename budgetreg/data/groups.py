"""Attributes that are bought together, such as a panel of blood values or the dummies of a category."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class Groups:
    """A partition of d attributes into groups, each of which is bought as a whole; most attributes may be alone.

    Attributes
    ----------
    heads : tuple of int
        The first attribute of each attribute's group: itself, if it is alone. A group is charged where its head is.
    """

    heads: tuple[int, ...]

    @cached_property
    def head_of(self) -> np.ndarray:
        """The heads as an array of int, shape (d,)."""
        return np.array(self.heads)

    @cached_property
    def leads(self) -> np.ndarray:
        """Attributes that are heads, bool of shape (d,)."""
        return self.head_of == np.arange(len(self.heads))

    @cached_property
    def members(self) -> np.ndarray:
        """The attributes of each head's group, ascending, shape (d, most); rows are filled up with d."""
        order = np.argsort(self.head_of, kind="stable")
        ordered = self.head_of[order]
        place = np.arange(order.size) - np.searchsorted(ordered, ordered)
        table = np.full((order.size, place.max() + 1), order.size)
        table[ordered, place] = order
        return table

    def width(self, heads: np.ndarray, k: int) -> int:
        """Return the most attributes that k of some groups have together."""
        sizes = np.bincount(self.head_of, minlength=len(self.heads))[heads]
        return int(np.sort(sizes)[len(sizes) - k :].sum())

    def expanded(self, heads: np.ndarray, width: int) -> np.ndarray:
        """Return the attributes (T, width) of some groups, given their heads (T, k); rows are filled up with d."""
        attributes = self.members[heads].reshape(len(heads), -1)
        order = np.argsort(attributes == len(self.heads), axis=1, kind="stable")
        return np.take_along_axis(attributes, order, axis=1)[:, :width]

    def together(self) -> list[np.ndarray]:
        """Return the attributes of each group of more than one."""
        several = np.flatnonzero(np.bincount(self.head_of) > 1)
        return [np.flatnonzero(self.head_of == head) for head in several]

    def are_whole(self, attributes: np.ndarray, drawn: np.ndarray | None) -> bool:
        """Return whether examples (..., n) show each group as a whole or not at all."""
        flat, mask = (
            array.reshape(-1, attributes.shape[-1])
            for array in (attributes, np.broadcast_to(True if drawn is None else drawn, attributes.shape))
        )
        shown = np.zeros((len(flat), len(self.heads)), dtype=bool)
        row, column = np.nonzero(mask)
        shown[row, flat[row, column]] = True
        return bool((shown == shown[:, self.head_of]).all())


def numbered(names: Sequence[str]) -> Groups | None:
    """Return groups from the name of each attribute's group, empty if it is alone; None if each is alone."""
    first: dict[str, int] = {}
    heads = tuple(first.setdefault(name, at) if name else at for at, name in enumerate(names))
    return Groups(heads) if heads != tuple(range(len(heads))) else None


def uncharged(free: np.ndarray | None, groups: Groups | None) -> np.ndarray | None:
    """Return which attributes are charged nothing, bool of shape (d,), as they are free or follow the head of a group.

    None if all are charged.
    """
    if groups is None:
        return free
    return ~groups.leads if free is None else free | ~groups.leads
