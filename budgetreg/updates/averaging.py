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


def marks(checkpoints: Sequence[int], average: str) -> tuple[int, ...]:
    """Return the step counts at which an averager must observe the learner.

    Parameters
    ----------
    checkpoints : sequence of int
        Numbers of examples, each at least 1.
    average : {'all', 'suffix', 'last'}
        The averaging rule.

    Returns
    -------
    tuple of int
        Sorted, without repetition; contains every checkpoint.

    Raises
    ------
    ValueError
        If the rule is unknown or a checkpoint is below 1.
    """
    if average not in AVERAGES:
        raise ValueError(f"average must be one of {', '.join(AVERAGES)}, not {average!r}")
    if any(checkpoint < 1 for checkpoint in checkpoints):
        raise ValueError("a checkpoint is a number of examples, at least 1")
    halves = {checkpoint // 2 for checkpoint in checkpoints} if average == "suffix" else set()
    return tuple(sorted(halves.union(checkpoints) - {0}))


class Averager:
    """Turns running sums of iterates into the outputs at the checkpoints.

    Parameters
    ----------
    checkpoints : sequence of int
        Numbers of examples at which there is an output.
    average : {'all', 'suffix', 'last'}
        The averaging rule.

    Attributes
    ----------
    marks : tuple of int
        The steps at which `observe` must be called, in this order.

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
        self.marks = marks(checkpoints, average)
        self._average = average
        self._waiting = sorted(set(checkpoints))
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
        half = mark // 2
        done = bool(self._waiting) and self._waiting[0] == mark
        output = None
        if done:
            self._waiting.pop(0)
            if self._average == "last":
                output = np.array(iterate())
            elif self._average == "suffix" and half:
                output = (running_sum() - self._sums[half]) / (mark - half)
            else:
                output = running_sum() / mark
        if self._average == "suffix":
            needed = {checkpoint // 2 for checkpoint in self._waiting}
            self._sums = {step: total for step, total in self._sums.items() if step in needed}
            if mark in needed:
                self._sums[mark] = np.array(running_sum())
        return None if output is None else (mark, output)
