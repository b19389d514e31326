"""What the algorithms do with the vectors of an example: estimate, multiply, project and average them.

The estimates are those of the papers, for one example. All other operations have no bit that depends on the number of
replicas; products of matrices and `numpy.einsum` group their terms by the shapes of all arrays.

Iterates are numbered as in the papers: w_1 is the start and w_t the regressor before example t, so that the update on
example t produces w_{t+1}. After c examples the output of an average is

    all     mean of w_1 .. w_c
    suffix  mean of w_{floor(c/2)+1} .. w_c, the last half
    last    w_c
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

Steps = Iterator[tuple[np.ndarray, np.ndarray]]
"""For t = 1..m, the iterate ``w_t`` that meets example t, and the attributes drawn for that example, which are paid."""


def invert(weights: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Turn uniforms into attributes with probabilities in proportion to weights, none if all weights are 0."""
    if not weights.any():
        return np.empty(0, dtype=np.intp)
    cumulative = np.cumsum(weights)
    return np.minimum(np.searchsorted(cumulative, u * cumulative[-1], side="right"), weights.size - 1)


def data_point(x: np.ndarray, drawn: np.ndarray, q: np.ndarray | None = None) -> np.ndarray:
    """Estimate x, ``x~ = mean_r x[i_r] / q[i_r] e_{i_r}``, from attributes drawn from q, uniform by default."""
    d = x.size
    if q is None:
        return np.bincount(drawn, x[drawn], minlength=d) * (d / drawn.size)
    return np.bincount(drawn, x[drawn] / q[drawn], minlength=d) / drawn.size


def inner_product(w: np.ndarray, x: np.ndarray, weights: np.ndarray, j: np.ndarray) -> float:
    """Estimate ``<w, x>``, ``mean_s (w_j / p_j) x_j``, from attributes j drawn from p ~ weights; 0 without draws."""
    return float((w[j] * weights.sum() / weights[j] * x[j]).mean()) if j.size else 0.0


def project_l2(v: np.ndarray, radius: float | np.ndarray) -> np.ndarray:
    """Project onto the 2-ball, ``v radius / max(|v|_2, radius)``.

    Parameters
    ----------
    v : ndarray of float, shape (..., d)
        Vectors along the last axis.
    radius : float or ndarray, broadcastable to shape (...)
        Radii, positive.

    Returns
    -------
    ndarray of float, shape (..., d)
        The nearest points of the balls.
    """
    norm = np.sqrt(np.vecdot(v, v))
    return v * (radius / np.maximum(norm, radius))[..., None]


def inner_products(w: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return ``<w, x>`` along the last axis; no bit depends on the lengths of the other axes.

    Products of matrices and `numpy.einsum` group the terms by the shapes of all arrays, so that a replica's numbers
    would depend on how many others there are.

    Parameters
    ----------
    w, x : ndarray of float, shapes (..., d)
        Vectors, broadcast against each other, such as regressors (F, G, d) and examples (F, 1, d).

    Returns
    -------
    ndarray of float, shape (...)
    """
    return np.asarray(np.vecdot(w, x))


def sum_in_order(terms: np.ndarray) -> np.ndarray:
    """Return the sum over the first axis in a fixed order, which `numpy.sum` does not promise."""
    total = terms[0].copy()
    for term in terms[1:]:
        total += term
    return np.asarray(total)


def project_l1(v: np.ndarray, radius: float | np.ndarray) -> np.ndarray:
    """Project onto the 1-ball by soft thresholding.

    Duchi, Shalev-Shwartz, Singer & Chandra 2008, *Efficient projections onto the l1-ball for learning in high
    dimensions*, Fig. 1, by sorting.

    Parameters
    ----------
    v : ndarray of float, shape (..., d)
        Vectors along the last axis.
    radius : float or ndarray, broadcastable to shape (...)
        Radii, positive.

    Returns
    -------
    ndarray of float, shape (..., d)
        The nearest points of the balls; vectors inside their ball are returned as they are.
    """
    magnitude = np.abs(v)
    excess = np.sort(magnitude, axis=-1)[..., ::-1].cumsum(axis=-1) - np.expand_dims(radius, -1)
    # excess / rank grows while the rank-th largest magnitude exceeds it: its maximum is the threshold.
    threshold = (excess / np.arange(1, v.shape[-1] + 1)).max(axis=-1, keepdims=True)
    return np.copysign(np.maximum(magnitude - np.maximum(threshold, 0), 0), v)


AVERAGES = ("all", "suffix", "last")


class Averager:
    """Turns running sums of iterates into the outputs at the checkpoints.

    Parameters
    ----------
    checkpoints : sequence of int
        Numbers of examples at which there is an output, each at least 1.
    average : {'all', 'suffix', 'last'}
        The averaging rule.

    Attributes
    ----------
    marks : tuple of int
        The steps at which `observe` must be called, in this order; every checkpoint is one of them. A call at another
        step does nothing.

    Raises
    ------
    ValueError
        If the rule is unknown.

    Examples
    --------
    >>> averager = Averager([3], "suffix")
    >>> averager.marks
    (1, 3)
    >>> iterates = np.array([[0.0], [2.0], [4.0]])
    >>> for mark in averager.marks:
    ...     result = averager.observe(mark, lambda: iterates[:mark].sum(axis=0), lambda: iterates[mark - 1])
    >>> checkpoint, w = result
    >>> checkpoint, w.tolist()
    (3, [3.0])
    """

    def __init__(self, checkpoints: Sequence[int], average: str) -> None:
        if average not in AVERAGES:
            raise ValueError(f"average must be one of {', '.join(AVERAGES)}, not {average!r}")
        self._average, self._checkpoints = average, set(checkpoints)
        self._halves = {checkpoint // 2 for checkpoint in checkpoints} if average == "suffix" else set()
        self.marks = tuple(sorted(self._halves.union(checkpoints) - {0}))
        self._sums: dict[int, np.ndarray] = {}

    def observe(
        self, mark: int, running_sum: Callable[[], np.ndarray], iterate: Callable[[], np.ndarray]
    ) -> tuple[int, np.ndarray] | None:
        """Observe the learner at a step; both callables may return live buffers, which no output aliases.

        Parameters
        ----------
        mark : int
            The step: the next of `marks`, or one between them.
        running_sum : callable
            Returns w_1 + ... + w_mark; called only if the rule needs it.
        iterate : callable
            Returns w_mark; called only if the rule needs it.

        Returns
        -------
        tuple of (int, ndarray) or None
            The checkpoint and its output if `mark` is a checkpoint, else None.
        """
        half, output = mark // 2, None
        if mark in self._checkpoints:
            if self._average == "last":
                output = np.array(iterate())
            elif self._average == "suffix" and half:
                output = (running_sum() - self._sums[half]) / (mark - half)
            else:
                output = running_sum() / mark
        self._sums = {step: total for step, total in self._sums.items() if 2 * step >= mark}
        if mark in self._halves:
            self._sums[mark] = np.array(running_sum())
        return None if output is None else (mark, output)
