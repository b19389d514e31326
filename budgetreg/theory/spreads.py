"""What the sampling of the data point makes of the second moment of a gradient estimate."""

import numpy as np


def uniform_spread(d: int, k_x: int | None) -> float:
    """Return the spread of uniform draws; 1 with full information (k_x None)."""
    return 2 * d / k_x if k_x else 1.0


def ridge_spread(second_moments: np.ndarray, k_x: int, prices: np.ndarray | None = None) -> float:
    """Return the spread on the 2-ball of draws that are guided by known second moments, shape (d,), and prices."""
    if prices is None:
        return half_norm(second_moments) / k_x + 1
    H = float(np.sqrt(second_moments * prices).sum() * np.sqrt(second_moments / prices).sum())
    return H / k_x + 1


def lasso_spread(second_moments: np.ndarray, k_x: int) -> float:
    """Return the spread on the 1-ball of draws that are guided by known second moments, shape (d,)."""
    return float(np.sum(second_moments)) / k_x + 1


def half_norm(values: np.ndarray) -> float:
    """Return the 1/2-norm ``(sum_i sqrt(v_i))^2``."""
    return float(np.sqrt(values).sum()) ** 2
