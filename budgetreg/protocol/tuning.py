"""Choosing parameters by cross-validation: folds, and the winner of a grid."""

from collections.abc import Mapping

import numpy as np


def folds(order: np.ndarray, n_folds: int, rng: np.random.Generator) -> tuple[np.ndarray, list[np.ndarray]]:
    """Cut a training part into folds.

    Parameters
    ----------
    order : ndarray of int, shape (m,)
        Training rows in the order in which they are presented; folds keep it.
    n_folds : int
        Number of folds F.
    rng : numpy.random.Generator
        Decides which rows each fold holds out.

    Returns
    -------
    training : ndarray of int, shape (F, m')
        Training rows of each fold; all have as many as the fold that holds out most.
    held_out : list of F ndarrays of int
        Held-out rows of each fold.
    """
    fold = rng.permutation(order.size) % n_folds
    length = order.size - -(-order.size // n_folds)
    training = np.stack([order[fold != f][:length] for f in range(n_folds)])
    return training, [order[fold == f] for f in range(n_folds)]


def winners(losses: np.ndarray) -> np.ndarray:
    """Return the best setting for each choice.

    Parameters
    ----------
    losses : ndarray of float, shape (C, F, G)
        Held-out loss for C choices, on F folds, of G settings.

    Returns
    -------
    ndarray of int, shape (C,)
    """
    mean = losses.mean(axis=1)
    return np.where(np.isnan(mean), np.inf, mean).argmin(axis=1)


def on_edge(settings: Mapping[str, tuple[float, ...]], winner: int) -> str:
    """Return which parameters of a setting are on the edge of the grid, such as ``"B:high eta:low"``.

    Parameters
    ----------
    settings : mapping of str to tuple of float
        The grid, one entry per setting. The grid of a step size may depend on ``B``, if there is one: its edge is that
        among settings with the same ``B``.
    winner : int
        The setting.
    """
    edges = []
    radii = settings.get("B", ())
    for name, values in settings.items():
        independent = name == "B" or not radii
        peers = [value for g, value in enumerate(values) if independent or radii[g] == radii[winner]]
        low, high = min(peers), max(peers)
        if low < high and values[winner] in (low, high):
            edges.append(f"{name}:{'low' if values[winner] == low else 'high'}")
    return " ".join(edges)
