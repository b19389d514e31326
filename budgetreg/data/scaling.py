"""``dataset.scale`` of tables whose attributes are in units of their own.

What a pilot says of them is known in a run alone: here, such attributes stay as they are.
"""

import numpy as np

from budgetreg.config.options import Option
from budgetreg.config.requirements import NOTHING, one_of

PILOT = "pilot"
_SCALES = ("max_abs", "none", PILOT)
SCALE = Option("the scale of the attributes", one_of(*_SCALES) | NOTHING, default="max_abs", own=PILOT)
"""Null is the pilot's standard deviations for learners of regressors, and the largest values for others."""
_MAX_ABS_NOTE = (
    "each attribute was divided by its largest absolute value over the whole table, which is outside the "
    "attribute budget (dataset.scale=none leaves the values as they are)"
)


def unit(scale: str, largest: np.ndarray) -> tuple[float | np.ndarray, tuple[str, ...]]:
    """Return the value of one stored unit of each attribute, and what the user should be told of it.

    Parameters
    ----------
    scale : {"max_abs", "none", "pilot"}
        Whether each attribute is divided by its largest absolute value.
    largest : ndarray of shape (d,)
        These values; an attribute of zeros stays as it is.
    """
    if scale != "max_abs":
        return 1.0, ()
    return 1 / np.where(largest == 0, 1.0, np.maximum(largest, np.finfo(float).tiny)), (_MAX_ABS_NOTE,)
