"""``dataset.scale`` and ``dataset.ranges``, of tables whose attributes are in units of their own.

What a pilot says of them is known in a run alone, and ranges are put on any table that was loaded: here, such
attributes stay as they are.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from budgetreg.config.options import Option, Options
from budgetreg.config.requirements import NAME, NOTHING, one_of
from budgetreg.errors import ConfigError

PILOT, RANGES = "pilot", "ranges"
_SCALES = ("max_abs", "none", PILOT, RANGES)
SCALING: Options = {
    "scale": Option("the scale of the attributes", one_of(*_SCALES) | NOTHING, default="max_abs", own=PILOT),
    "ranges": Option("the list of ranges", NAME | NOTHING, default=None),
}
"""Scale null is that of the ranges if there are any; else the pilot's standard deviations for learners of regressors,
and the largest values for others."""
_MAX_ABS_NOTE = (
    "each attribute was divided by its largest absolute value over the whole table, which is outside the "
    "attribute budget (dataset.scale=none leaves the values as they are)"
)


def with_ranges(section: Mapping[str, Any]) -> dict[str, Any]:
    """Return a section ``dataset`` whose scale is that of its ranges, if it has any.

    Raises
    ------
    ConfigError
        If another scale is asked for beside them, or theirs without them.
    """
    ranges, scale = section.get("ranges"), section.get("scale")
    if ranges is None and scale == RANGES:
        raise ConfigError(f"dataset.scale={RANGES}: dataset.ranges=FILE is needed, with columns attribute,low,high")
    if ranges is None:
        return dict(section)
    if scale not in (None, RANGES):
        raise ConfigError(f"dataset.ranges tell the scale, too: leave dataset.scale={scale} or dataset.ranges out")
    return {**section, "scale": RANGES}


def unit(scale: str, largest: np.ndarray) -> tuple[float | np.ndarray, tuple[str, ...]]:
    """Return the value of one stored unit of each attribute, and what the user should be told of it.

    Parameters
    ----------
    scale : {"max_abs", "none", "pilot", "ranges"}
        Whether each attribute is divided by its largest absolute value.
    largest : ndarray of shape (d,)
        These values; an attribute of zeros stays as it is.
    """
    if scale != "max_abs":
        return 1.0, ()
    return 1 / np.where(largest == 0, 1.0, np.maximum(largest, np.finfo(float).tiny)), (_MAX_ABS_NOTE,)
