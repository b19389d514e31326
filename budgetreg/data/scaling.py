"""``dataset.scale`` of tables whose attributes are in units of their own."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from budgetreg.data.dataset import required
from budgetreg.errors import ConfigError

_SCALES = ("max_abs", "none")
_MAX_ABS_NOTE = (
    "each attribute was divided by its largest absolute value over the whole table, which is outside the "
    "attribute budget (dataset.scale=none leaves the values as they are)"
)


def parse_scale(options: Mapping[str, Any]) -> str:
    """Read ``dataset.scale``: ``max_abs`` or ``none``.

    Raises
    ------
    ConfigError
        If it is anything else.
    """
    scale: str = required(options, "scale")
    if scale not in _SCALES:
        raise ConfigError(f"dataset.scale must be one of {', '.join(_SCALES)}, not {scale!r}")
    return scale


def unit(scale: str, largest: np.ndarray) -> tuple[float | np.ndarray, tuple[str, ...]]:
    """Return the value of one stored unit of each attribute, and what the user should be told of it.

    Parameters
    ----------
    scale : {"max_abs", "none"}
        Whether each attribute is divided by its largest absolute value.
    largest : ndarray of shape (d,)
        These values; an attribute of zeros stays as it is.
    """
    if scale == "none":
        return 1.0, ()
    return 1 / np.where(largest == 0, 1.0, np.maximum(largest, np.finfo(float).tiny)), (_MAX_ABS_NOTE,)
