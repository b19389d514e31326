"""The averages of iterates that an online learner outputs.

The iterates are numbered as in the papers: w_1 is the start and w_t the regressor before example t, so that the update
on example t produces w_{t+1}. After c examples the output is

    all     mean of w_1 .. w_c
    suffix  mean of w_{floor(c/2)+1} .. w_c, the last half
    last    w_c
"""

from collections.abc import Callable, Sequence

import numpy as np

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
        The steps at which `observe` must be called, in this order; every checkpoint is one of them.

    Raises
    ------
    ValueError
        If the rule is unknown or a checkpoint is below 1.

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
        if any(checkpoint < 1 for checkpoint in checkpoints):
            raise ValueError("a checkpoint is a number of examples, at least 1")
        self._average, self._checkpoints = average, set(checkpoints)
        self._halves = {checkpoint // 2 for checkpoint in checkpoints} if average == "suffix" else set()
        self.marks = tuple(sorted(self._halves.union(checkpoints) - {0}))
        self._sums: dict[int, np.ndarray] = {}

    def observe(
        self, mark: int, running_sum: Callable[[], np.ndarray], iterate: Callable[[], np.ndarray]
    ) -> tuple[int, np.ndarray] | None:
        """Observe the learner at a mark; both callables may return live buffers, which no output aliases.

        Parameters
        ----------
        mark : int
            The next of `marks`.
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
