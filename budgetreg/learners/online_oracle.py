"""What the laws of online learners have in common, for the checks: see `budgetreg.enumeration.gradients`."""

import numpy as np

from budgetreg.enumeration.steps import Step, prices


def sizes(update: str, w: np.ndarray) -> np.ndarray:
    """Return what plain draws for the inner product are in proportion to: ``w^2`` on the 2-ball, else ``|w|``."""
    return np.square(w) if update == "ogd" else np.abs(w)


def guided(update: str, moments: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Return what guided draws for the data point are in proportion to, given second moments and costs, (d,) each.

    Their square roots over those of the costs on the 2-ball, themselves on the 1-ball: Kukliansky & Shamir 2015,
    Equation 2; for costs, `budgetreg.sampling.importance_weights`.
    """
    return np.sqrt(moments) / np.sqrt(costs) if update == "ogd" else moments


def costs(heeded: str, d: int) -> np.ndarray:
    """Return what attributes cost in an examination, shape (d,): 1 where a learner is told to ignore it."""
    return prices(d) if heeded == "aware" else np.ones(d)


def share(weights: np.ndarray) -> np.ndarray:
    """Return probabilities in proportion to weights, both (d,)."""
    return np.asarray(weights / weights.sum())


def data_points(step: Step, n: int, k_x: int) -> np.ndarray:
    """Return the attributes drawn for the data points of the first n examples, shape (n, k_x)."""
    return np.stack([seen[:k_x] for seen in step.earlier[:n]])
