"""Sweeps of recipes: which combinations of their values are left out."""

from collections.abc import Mapping
from typing import Any


def left_out(choice: Mapping[str, Any], omit: Any) -> bool:
    """Whether a recipe leaves out a combination of its sweep.

    Parameters
    ----------
    choice : mapping
        Keys of the sweep, with the values of this combination.
    omit : list of mapping
        The recipe leaves out a combination if it has, for all keys of one of these mappings, the value there or one of
        the values there.
    """

    def holds(key: str, values: Any) -> bool:
        return key in choice and choice[key] in (values if isinstance(values, list) else [values])

    return any(all(holds(key, values) for key, values in keys.items()) for keys in omit)
