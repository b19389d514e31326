"""Attributes that are bought together, such as a panel of blood values or the dummies of a category."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from budgetreg.data.dataset import Dataset, short_digest


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
        """Which attributes are heads, bool of shape (d,)."""
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

    def are_whole(self, attributes: np.ndarray, drawn: np.ndarray | None) -> bool:
        """Return whether examples (..., n) show each group as a whole or not at all."""
        flat = attributes.reshape(-1, attributes.shape[-1])
        shown = np.zeros((len(flat), len(self.heads)), dtype=bool)
        row, column = np.nonzero(
            np.ones(flat.shape, bool) if drawn is None else np.broadcast_to(drawn, attributes.shape).reshape(flat.shape)
        )
        shown[row, flat[row, column]] = True
        return bool((shown == shown[:, self.head_of]).all())


@lru_cache(maxsize=4)
def in_groups(data: Dataset, groups: Groups) -> Dataset:
    """Return data whose attributes are bought in groups; a group of which a value is missing is missing as a whole.

    The fingerprint of the data includes the groups. Equal arguments give the same object, whose arrays repetitions
    share.
    """
    available = data.available
    if available is not None:
        available = available.copy()
        for head in np.flatnonzero(np.bincount(groups.head_of) > 1).tolist():
            members = groups.members[head]
            members = members[members < len(groups.heads)]
            available[:, members] = available[:, members].all(axis=1, keepdims=True)
    digest = f"{data.fingerprint()}-{short_digest(groups.heads)}"
    return replace(data, groups=groups, available=available, digest=digest)


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
