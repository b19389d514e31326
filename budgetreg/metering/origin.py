"""Where regressors count from: ``f(x) = intercept + <w, x - shift>``."""

from typing import NamedTuple

import numpy as np


class Origin(NamedTuple):
    """Origin of the regressors of a stream at a checkpoint."""

    shift: np.ndarray | None = None
    """What attributes are counted from, shape (d,); None: from what their table has for 0."""
    intercept: np.ndarray | float = 0.0
    """What is predicted there, for all settings or (G,) for each; in units of the target."""
