"""Nested mappings, such as configurations: flattened, compared, and reduced to what several have in common."""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from budgetreg.errors import ConfigError

Tree = dict[str, Any]


def flatten(tree: Mapping[str, Any]) -> Tree:
    """Return a nested mapping with dotted keys.

    Returns
    -------
    dict
        ``{"algo.split": "even", "seed": 0, ...}``; lists are values, not levels.
    """
    flat: Tree = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat |= {f"{key}.{rest}": leaf for rest, leaf in flatten(value).items()}
        else:
            flat[key] = value
    return flat


def put(tree: Tree, key: str, value: Any) -> None:
    """Set a dotted key of a nested mapping, with levels added where they are missing.

    Raises
    ------
    ConfigError
        If what is there is not a level.
    """
    *path, last = key.split(".")
    for step in path:
        tree = tree.setdefault(step, {})
        if not isinstance(tree, dict):
            raise ConfigError(f"{key}: no such key: {step} is not a section")
    tree[last] = value


def differing(then: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the dotted keys in which two nested mappings differ, with both values; None where a key is missing."""
    before, after = flatten(then), flatten(now)
    return {key: (before.get(key), after.get(key)) for key in {**before, **after} if before.get(key) != after.get(key)}


def common(trees: Sequence[Mapping[str, Any]]) -> Tree:
    """Return the keys that all mappings have with equal values; at least one mapping is needed."""
    return reduce(_shared, trees[1:], dict(trees[0]))


def diff(tree: Mapping[str, Any], base: Mapping[str, Any]) -> Tree:
    """Return what `merge` has to add to `base`, whose keys are all in the tree, to make the tree."""
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
    """Return a mapping with the keys of both, and with the values of `rest` where they differ."""
    whole = dict(base)
    for key, value in rest.items():
        inner = whole.get(key)
        whole[key] = merge(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
    return whole


def ordered(tree: Mapping[str, Any]) -> Tree:
    """Return a mapping with its keys in alphabetical order, on every level."""
    return {key: ordered(tree[key]) if isinstance(tree[key], Mapping) else tree[key] for key in sorted(tree)}


def _shared(left: Mapping[str, Any], right: Mapping[str, Any]) -> Tree:
    shared: Tree = {}
    for key in left.keys() & right.keys():
        if isinstance(left[key], Mapping) and isinstance(right[key], Mapping):
            shared[key] = _shared(left[key], right[key])
        elif left[key] == right[key]:
            shared[key] = left[key]
    return shared
