"""Nested mappings: what several have in common, what one has besides, and the two put together again."""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

Tree = dict[str, Any]


def common(trees: Sequence[Mapping[str, Any]]) -> Tree:
    """Return the keys that all have with equal values; at least one tree is needed."""
    return reduce(_shared, trees[1:], dict(trees[0]))


def diff(tree: Mapping[str, Any], base: Mapping[str, Any]) -> Tree:
    """Return what `merge` has to add to `base`, whose keys the tree all has, to make the tree."""
    rest: Tree = {}
    for key, value in tree.items():
        if isinstance(value, Mapping) and isinstance(base.get(key), Mapping):
            inner = diff(value, base[key])
            if inner:
                rest[key] = inner
        elif key not in base or base[key] != value:
            rest[key] = value
    return rest


def merge(base: Mapping[str, Any], rest: Mapping[str, Any]) -> Tree:
    """Return a tree with the keys of both, those of `rest` where they differ."""
    whole = dict(base)
    for key, value in rest.items():
        inner = whole.get(key)
        whole[key] = merge(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
    return whole


def ordered(tree: Mapping[str, Any]) -> Tree:
    """Return a tree with its keys in alphabetical order, on every level."""
    return {key: ordered(tree[key]) if isinstance(tree[key], Mapping) else tree[key] for key in sorted(tree)}


def _shared(one: Mapping[str, Any], other: Mapping[str, Any]) -> Tree:
    both: Tree = {}
    for key in one.keys() & other.keys():
        if isinstance(one[key], Mapping) and isinstance(other[key], Mapping):
            both[key] = _shared(one[key], other[key])
        elif one[key] == other[key]:
            both[key] = one[key]
    return both
