"""Forward selection: attributes, or groups of them, chosen one by one, each the best beside those before."""

from collections.abc import Sequence

import numpy as np


def forward_selection(
    M: np.ndarray,
    c: np.ndarray,
    strength: float,
    k: int,
    candidates: Sequence[Sequence[int]],
    taken: Sequence[int] = (),
) -> list[int]:
    """Return k groups of attributes, each of which lowers the loss of ridge the most beside those before.

    The loss of a set of attributes is the least ``w'(M + strength diag M) w - 2 w'c`` over regressors w on them. So the
    units of attributes do not matter. A group g lowers it by ``r_g' A_gg^-1 r_g``, where ``A = M + strength diag M``
    and ``r = c``, from which the attributes before have been eliminated.

    Parameters
    ----------
    M : ndarray of float, shape (d, d)
        Second moments, positive semidefinite.
    c : ndarray of float, shape (d,)
        Products with the target.
    strength : float
        Above 0.
    k : int
        How many to choose, at most the number of candidates.
    candidates : sequence of sequence of int
        Disjoint groups of attributes to choose from, most of one; of equally good ones, the first is chosen.
    taken : sequence of int, optional
        Attributes that are in all sets.

    Returns
    -------
    list of int
        The attributes of these groups in the order in which they were chosen, without those taken.
    """
    size = np.diag(M)
    unit = np.where(size > 0, 1 / np.sqrt(np.where(size > 0, size, 1.0)), 0.0)
    A, r = M * np.outer(unit, unit) + strength * np.eye(len(c)), c * unit
    left, chosen = list(candidates), list[int]()
    for step in range(1 + k):
        group = taken
        if step:
            first = [group[0] for group in left]
            gains = np.square(r[first]) / A[first, first]
            for at, group in enumerate(left):
                if len(group) > 1:
                    gains[at] = r[group] @ np.linalg.solve(A[np.ix_(group, group)], r[group])
            group = left.pop(int(gains.argmax()))
            chosen += group
        for j in group:
            column = A[:, j] / A[j, j]
            r = r - column * r[j]
            A = A - np.outer(column, A[j])
    return chosen
