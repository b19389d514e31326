"""``dataset.scale`` and ``dataset.ranges``: how attributes of a table in its own units are scaled.

Ranges apply to any table that was loaded. The scale of a pilot is known during a run only: such attributes stay as they
are here.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from budgetreg.config.options import Option, Options
from budgetreg.config.requirements import NAME, NOTHING, one_of
from budgetreg.data.attribute_lists import Ranges
from budgetreg.data.dataset import Dataset
from budgetreg.errors import ConfigError

PILOT, RANGES = "pilot", "ranges"
_SCALES = ("max_abs", "none", PILOT, RANGES)
SCALING: Options = {
    "scale": Option("the scale of the attributes", one_of(*_SCALES) | NOTHING, default="max_abs", own=PILOT),
    "ranges": Option("the list of ranges", NAME | NOTHING, default=None),
}
"""A scale of null means that of the ranges if there are any; else the pilot's standard deviations for learners of
regressors, and the largest absolute values for others."""
_MAX_ABS_NOTE = (
    "each attribute was divided by its largest absolute value over the whole table, which is outside the "
    "attribute budget (dataset.scale=none leaves the values as they are)"
)


def with_ranges(section: Mapping[str, Any]) -> dict[str, Any]:
    """Return a section ``dataset`` whose scale is that of its ranges, if it has any.

    Raises
    ------
    ConfigError
        If there are ranges and another scale, or the scale of ranges without ranges.
    """
    ranges, scale = section.get("ranges"), section.get("scale")
    if ranges is None and scale == RANGES:
        raise ConfigError(f"dataset.scale={RANGES}: dataset.ranges=FILE is needed, with columns attribute,low,high")
    if ranges is None:
        return dict(section)
    if scale not in (None, RANGES):
        raise ConfigError(f"dataset.ranges sets the scale too: leave out dataset.scale={scale} or dataset.ranges")
    return {**section, "scale": RANGES}


def unit(scale: str, largest: np.ndarray) -> tuple[float | np.ndarray, tuple[str, ...]]:
    """Return the value of one stored unit of each attribute, and notes for the user.

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


@lru_cache(maxsize=4)
def in_ranges(data: Dataset, ranges: Ranges) -> Dataset:
    """Return data with attributes centred on the middles of ranges, in units of half a range.

    A stored value v becomes ``(v - middle) / (half of the range)``, which is between -1 and 1 within the range. The
    fingerprint of the data includes the ranges. Equal arguments give the same object, whose arrays repetitions share.
    """
    low, high = np.array(ranges.low), np.array(ranges.high)
    scale = 2 / (high - low)
    digest = f"{data.fingerprint()}-{ranges.digest()}"
    return replace(data, scale=scale, shift=(low / 2 + high / 2) * scale, digest=digest)
