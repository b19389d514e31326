"""Second moments of complete rows, estimated from rows of which only some values were seen."""

import numpy as np


def deviations(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of what was seen of each column, (p,), and the values (n, p) less it; 0 for unseen values.

    Parameters
    ----------
    X : ndarray of float, shape (n, p)
        NaN for unseen values; at least one value in each column.
    """
    means = np.nanmean(X, axis=0)
    return means, np.where(np.isnan(X), 0.0, X - means)


def covariance(Z: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Return an estimate of the covariance of the columns, positive semidefinite.

    A product is in the sum over the rows only where both values were seen. So the mean product of columns i and j is
    divided by the share of rows in which they were. Few rows may show a given pair, or none. So the share of each pair
    is taken to be ``c p_i p_j``, where p_i is the share of rows that show i, and c is such that all pairs together were
    seen as often as they were. Negative eigenvalues, which come from chance, become 0.

    Parameters
    ----------
    Z : ndarray of float, shape (n, p)
        What `deviations` returns: 0 for unseen values.
    seen : ndarray of bool, shape (n, p)
        Which values were seen, at least one in each column.

    Returns
    -------
    ndarray of float, shape (p, p)
    """
    products = Z.T @ Z / len(Z)
    if seen.all():
        return products
    shares, per_row = seen.mean(axis=0), seen.sum(axis=1)
    pairs, expected = (per_row * (per_row - 1)).mean(), shares.sum() ** 2 - np.square(shares).sum()
    together = np.outer(shares, shares) * (pairs / expected if pairs else 1.0)
    np.fill_diagonal(together, shares)
    values, vectors = np.linalg.eigh(products / together)
    return np.asarray((vectors * np.maximum(values, 0)) @ vectors.T)
