"""Nested mappings, such as configurations: flattened, compared, and named by the keys in which they differ."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from budgetreg.common.errors import ConfigError
from budgetreg.config.options import TOP

Tree = dict[str, Any]

# Columns of curves.csv, and keys and groups that change no result.
_COLUMNS = {"algo.name", "dataset.name", "experiment", "k"}
_SILENT_KEYS = {"dataset.root", "dataset.unit", "hydra", *(key for key, option in TOP.items() if option.inert)}
_LONGEST_LIST = 4
# The folder of a file belongs to one machine; the name of the file identifies its data.
_FILES = ("dataset.path", "dataset.costs", "dataset.ranges")


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
    shared: Tree = {}
    for key, first in trees[0].items():
        values = [tree[key] for tree in trees if key in tree]
        if len(values) < len(trees):
            continue
        if all(isinstance(value, Mapping) for value in values):
            shared[key] = common(values)
        elif all(value == first for value in values):
            shared[key] = first
    return shared


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


def distinguishing_options(config: Mapping[str, Any]) -> Tree:
    """Return a flat configuration with only the keys that can distinguish runs of one learner on one data set."""
    return {
        key: value
        for key, value in flatten(config).items()
        if key not in _COLUMNS and not {key, key.partition(".")[0]} & _SILENT_KEYS
    }


def deciding_options(config: Mapping[str, Any]) -> Tree:
    """Return a flat configuration with all keys that decide a result."""
    flat = flatten(config)
    return {**{key: flat[key] for key in sorted(_COLUMNS & flat.keys())}, **distinguishing_options(config)}


def option_text(key: str, value: Any, in_full: bool = False) -> str:
    """Return the value of a key as text; of a file only the name, as its folder belongs to one machine."""
    return PurePath(str(value)).name if key in _FILES and value is not None else show(value, in_full)


def variants(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return for each configuration the keys, with values, that distinguish it from the others.

    Parameters
    ----------
    configs : sequence of mapping
        Nested configurations of runs that share learner, data set and budget.

    Returns
    -------
    list of str
        One text per configuration, such as ``"split=even seed=1"``. Two texts are equal only if no key
        that matters differs.
    """
    flats = [distinguishing_options(config) for config in configs]
    keys = sorted({key for flat in flats for key in flat})
    differing = [key for key in keys if any(flat.get(key) != flats[0].get(key) for flat in flats)]
    # If the choice of a group differs (tuning=cv, tuning=fixed), its inner keys follow from the choice.
    chosen = {key.removesuffix(".name") for key in differing if key.endswith(".name")}
    brief = [key for key in differing if key.endswith(".name") or key.partition(".")[0] not in chosen]
    texts = _texts(flats, brief)
    distinct = {tuple(repr(flat.get(key)) for key in differing) for flat in flats}
    return texts if len(set(texts)) == len(distinct) else _texts(flats, differing, in_full=True)


def show(value: Any, in_full: bool = False) -> str:
    """Return a value as text: numbers of four digits, and long lists by their ends, unless `in_full`."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, float):
        return repr(value) if in_full else f"{value:.4g}"
    if isinstance(value, list | tuple):
        if len(value) > _LONGEST_LIST and not in_full:
            return f"[{show(value[0])}..{show(value[-1])}, {len(value)} values]"
        return "[" + ",".join(show(item, in_full) for item in value) + "]"
    return str(value)


def number_ranges(numbers: Sequence[int]) -> str:
    """Return increasing numbers as text, with consecutive ones as a range.

    Examples
    --------
    >>> number_ranges([0, 3, 4, 5, 9])
    '0, 3-5, 9'
    """
    starts = [number for number in numbers if number - 1 not in set(numbers)]
    ends = [number for number in numbers if number + 1 not in set(numbers)]
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))


def _texts(flats: Sequence[Mapping[str, Any]], keys: Sequence[str], in_full: bool = False) -> list[str]:
    def text(key: str, value: Any) -> str:
        # Without the learner's group and ``.name``; "dataset.split" stays, as it is another split.
        name = key.removeprefix("algo.").removesuffix(".name")
        return f"{name}={option_text(key, value, in_full)}"

    return [" ".join(text(key, flat[key]) for key in keys if key in flat) for flat in flats]
