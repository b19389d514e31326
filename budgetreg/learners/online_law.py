"""What the laws of online learners have in common, for the checks: see `budgetreg.enumeration.gradients`."""

import numpy as np

from budgetreg.enumeration.steps import Step

COUNTERPARTS = {"ogd": "online_ridge", "eg": "online_lasso"}
"""By update, the learner whose gradients are exact."""


def sizes(update: str, w: np.ndarray) -> np.ndarray:
    """Return what plain draws for the inner product are in proportion to: ``w^2`` on the 2-ball, else ``|w|``."""
    return np.square(w) if update == "ogd" else np.abs(w)


def guided(update: str, moments: np.ndarray) -> np.ndarray:
    """Return what guided draws for the data point are in proportion to, given second moments (d,).

    Their square roots on the 2-ball, themselves on the 1-ball: Kukliansky & Shamir 2015, Equation 2.
    """
    return np.sqrt(moments) if update == "ogd" else moments


def share(weights: np.ndarray) -> np.ndarray:
    """Return probabilities in proportion to weights, both (d,)."""
    return np.asarray(weights / weights.sum())


def data_points(step: Step, n: int, k_x: int) -> np.ndarray:
    """Return the attributes drawn for the data points of the first n examples, shape (n, k_x)."""
    return np.stack([seen[:k_x] for seen in step.earlier[:n]])
