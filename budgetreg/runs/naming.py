"""Naming runs by the configuration keys in which they differ."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from budgetreg.config.nested import Tree, flatten
from budgetreg.config.sections import TOP

# Columns of curves.csv, and keys and groups that change no result.
_COLUMNS = {"algo.name", "dataset.name", "experiment", "k"}
_SILENT_KEYS = {"dataset.root", "dataset.unit", "hydra", *(key for key, option in TOP.items() if option.inert)}
_LONGEST_LIST = 4
# The folder of a file belongs to one machine; the name of the file identifies its data.
_FILES = ("dataset.path", "dataset.costs", "dataset.ranges")


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
        return str(value).lower() if value is not None else "none"
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
