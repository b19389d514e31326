"""Final runs that a total in money ends: they see as many examples as it pays for, given their draws.

What an example costs is known once its attributes are drawn, but learners are given the number of examples beforehand.
So a pass is rehearsed on more examples than are expected. The draws for an example depend on the examples before it
alone, so that what the rehearsal pays shows where the money ends. Nothing else of the rehearsal is used: values beyond
that end change nothing. Then the pass runs to that end, with the same draws. Learners that plan by the number of
examples may draw other attributes then. If they would pay more, they run again on fewer examples.
"""

from collections.abc import Callable, Sequence
from math import ceil

import numpy as np

from budgetreg.errors import ConfigError
from budgetreg.protocol.passes import PassResult
from budgetreg.protocol.plan import Plan

_MORE = 1.25
"""Examples of a first rehearsal, as a multiple of those that are expected."""

_ROUNDING = 1e-9  # of a sum of money, relative


def affordable(expenses: np.ndarray, amounts: np.ndarray, among: np.ndarray) -> tuple[int, ...]:
    """Return the numbers of examples that amounts of money pay for.

    Parameters
    ----------
    expenses : ndarray of float, shape (n, G)
        What each example costs.
    amounts : ndarray of float, shape (C,)
        Increasing.
    among : ndarray of int, shape (C,)
        The setting whose expenses each amount pays for.

    Returns
    -------
    tuple of C int
        Increasing, each at least 1. The last one is affordable if it is at least C; earlier ones are about.
    """
    spent = np.cumsum(expenses, axis=0)
    ends = [
        int(np.searchsorted(spent[:, g], amount * (1 + _ROUNDING), side="right"))
        for amount, g in zip(amounts, among, strict=True)
    ]
    for at in range(len(ends) - 2, -1, -1):
        ends[at] = min(ends[at], ends[at + 1] - 1)
    return tuple(max(end, at + 1) if at < len(ends) - 1 else end for at, end in enumerate(ends))


def run_within_total(
    plan: Plan, most: int, among: np.ndarray, run: Callable[[Sequence[int], bool], PassResult]
) -> PassResult:
    """Run a final pass for as many examples as the total pays for.

    Parameters
    ----------
    plan : Plan
        One that ends with money.
    most : int
        Examples of the pass, without the pilot's.
    among : ndarray of int, shape (C,)
        The setting, of those that run, that was chosen for each checkpoint.
    run : callable
        Given numbers of examples, runs the pass to the last of them; and whether this is a rehearsal, of which only
        expenses are used.

    Returns
    -------
    PassResult
        It has C checkpoints. They divide the money as those of the plan divide its examples.

    Raises
    ------
    ConfigError
        If the total does not pay for C examples, which only draws of unlimited number can cause.
    """
    planned = np.array(plan.checkpoints) - plan.lead
    amounts = plan.money * planned / planned[-1]
    n = min(most, ceil(_MORE * int(planned[-1])))
    while True:
        ends = affordable(_expenses(run((n,), True)), amounts, among)
        if ends[-1] < n or n == most:
            break
        n = min(most, 2 * n)
    while ends[-1] >= len(planned):
        result = run(ends, False)
        at_most = affordable(_expenses(result), amounts, among)
        if at_most[-1] == ends[-1]:
            return result
        ends = at_most
    raise ConfigError(
        f"{plan.total}: the draws of {plan.config.algo.name} leave money for {max(ends[-1], 0)} examples in one "
        f"repetition, fewer than the {len(planned)} checkpoints; use a larger total, or checkpoints=1"
    )


def _expenses(result: PassResult) -> np.ndarray:
    assert result.expenses is not None
    return result.expenses
