"""Grids that grow: where the best value lies on an edge of its grid, the values beyond are tried as well.

Each repetition decides by its own folds, so that its numbers depend neither on the others nor on an interruption.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from budgetreg.protocol.passes import Progress
from budgetreg.protocol.plan import Plan
from budgetreg.protocol.tuning import on_edge

Result = Mapping[str, Any]
Run = Callable[[Plan, Sequence[int], Progress], Sequence[Result]]


def widening(run: Run, plan: Plan, repetitions: Sequence[int], progress: Progress, times: int) -> list[dict[str, Any]]:
    """Run repetitions, and again, with a larger grid, those whose best value lies on an edge.

    The larger grid has in it what was tried before, with the same draws: its bill is that of all that was tried.

    Parameters
    ----------
    run : callable
        Runs some repetitions together and returns what `run_repetitions` does.
    plan, repetitions, progress
        As for `run_repetitions`.
    times : int
        How often a grid may grow.

    Returns
    -------
    list of dict
        Of each repetition the last result; if its grid grew, with the names of the parameters as ``widened``.
    """
    results = {
        number: dict(result)
        for number, result in zip(
            repetitions, run(plan, repetitions, _portion(progress, 0, 1 / (times + 1))), strict=True
        )
    }
    again: dict[str, list[int]] = {}
    for number, result in results.items():
        edge = _open_edge(plan, result)
        if edge and times:
            again.setdefault(edge, []).append(number)
    parts = [(edge, own, part) for edge, numbers in again.items() for own, part in _parts(plan.widened(edge), numbers)]
    for i, (edge, own, part) in enumerate(parts):
        begin, end = (1 - times / (times + 1) * (1 - (i + j) / len(parts)) for j in (0, 1))
        grown = {word.partition(":")[0] for word in edge.split()}
        found = widening(run, own, part, _portion(progress, begin, end), times - 1)
        for number, result in zip(part, found, strict=True):
            results[number] = {**result, "widened": " ".join(sorted({*grown, *result.get("widened", "").split()}))}
    return list(results.values())


def widest(plan: Plan) -> Plan:
    """Return the plan whose grid has grown as often as it may, with the most that tuning can then be charged."""
    tuning = plan.config.tuning
    words = (
        {word for g in range(plan.n_settings) for word in on_edge(plan.settings, g).split()} if plan.tuned else set()
    )
    ends = ("low", "high") if tuning.at == "each" else ("high",)  # at one checkpoint the best is on one of them
    names = [name for name in plan.config.algo.grid if f"{name}:high" in words]
    edge = " ".join(f"{name}:{end}" for name in names if _is_open(plan, name) for end in ends)
    for _ in range(tuning.widen if edge else 0):
        plan = plan.widened(edge)
    return plan


def _is_open(plan: Plan, name: str) -> bool:
    return plan.config.algo.in_grid(name).unlimited


def _open_edge(plan: Plan, result: Result) -> str:
    """Return the edges on which the best value for any checkpoint lies and beyond which there are others."""
    words = {*result["run"]["edge"].split(), *result["edge_before"].split()}
    return " ".join(sorted(word for word in words if _is_open(plan, word.partition(":")[0])))


def _parts(plan: Plan, repetitions: list[int]) -> list[tuple[Plan, list[int]]]:
    """Part repetitions of a plan so that memory suffices for each part."""
    n = plan.repetitions_at_once
    return [(plan, repetitions[first : first + n]) for first in range(0, len(repetitions), n)]


def _portion(progress: Progress, begin: float, end: float) -> Progress:
    return lambda done: progress(begin + done * (end - begin))
