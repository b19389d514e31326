"""Weight matrices between projections: eigenvalues in [0, 1] that sum to n, the convex hull of projections of rank n.

All operations on a weight matrix act on its eigenvalues alone: the projection onto the hull in the relative entropy of
matrices, ``tr(W log W - W log U - W + U)``, and the decomposition into projections of rank n.
"""

import numpy as np

LEFT_OVER = 1e-14
"""Sum of remaining eigenvalues at which a decomposition is complete; it is 0 in the listing, but for rounding."""


def project(theta: np.ndarray, n: int) -> np.ndarray:
    """Return log c of the projection ``min(1, c u)``, whose entries sum to n; exact, by sorting u.

    Sorted descending, the first j entries are capped at 1 and the others share ``n - j``, so that ``log c_j =
    log(n - j) - logsumexp(theta_{>j})``. The smallest j for which no entry beyond the first j would exceed 1 is the
    right one; for ``j = n - 1`` none ever does.

    Parameters
    ----------
    theta : ndarray of float, shape (..., d)
        ``log u`` of eigenvalues u, ascending along the last axis as `numpy.linalg.eigh` gives them.
    n : int
        The sum, from 1 to d.

    Returns
    -------
    ndarray of float, shape (...)
        The logarithms of the projection are ``min(0, theta + log c)``.

    References
    ----------
    M. K. Warmuth, D. Kuzmin. Randomized Online PCA Algorithms with Regret Bounds that are Logarithmic in the
    Dimension. JMLR 9, 2008, Section 4 (the projection by capping).
    """
    largest = theta[..., ::-1][..., :n]
    log_sum = np.logaddexp.accumulate(theta, axis=-1)[..., ::-1][..., :n]
    log_c = np.log(np.arange(n, 0, -1)) - log_sum
    j = (log_c + largest <= 0).argmax(axis=-1)
    return np.take_along_axis(log_c, j[..., None], axis=-1)[..., 0]


def decompose(eigenvalues: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a weight matrix, given by its eigenvalues, as a mean of at most d projections of rank n.

    Parameters
    ----------
    eigenvalues : ndarray of float, shape (d,)
        Numbers in [0, 1] that sum to n, both up to rounding.
    n : int
        The rank.

    Returns
    -------
    weights : ndarray of float, shape (K,)
        Positive, of sum 1; K is at most d.
    members : ndarray of int, shape (K, n)
        Positions of the eigenvalues 1 of each projection; the others are 0.

    References
    ----------
    A. Gonen, D. Rosenbaum, Y. C. Eldar, S. Shalev-Shwartz. Subspace Learning with Partial Information. JMLR 17, 2016,
    Algorithm 3, after Warmuth & Kuzmin 2008. The listing continues until nothing is left, which may never happen in
    floating point.
    """
    left = np.clip(eigenvalues, 0.0, 1.0)
    weights: list[float] = []
    members: list[np.ndarray] = []
    while len(weights) < len(left) and (total := left.sum()) > LEFT_OVER:
        order = np.argsort(-left, kind="stable")
        chosen, others = order[:n], order[n:]
        # The weight ends where a chosen one is used up, or where another one reaches its largest valid value.
        beta = min(left[chosen[-1]], total / n - left[others].max(initial=0.0))
        if beta <= 0:
            break
        left[chosen] -= beta
        weights.append(beta)
        members.append(chosen)
    return np.array(weights) / sum(weights), np.array(members)
