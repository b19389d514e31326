"""What the tuning of runs came to: which of the best values lie on an edge of their grid, and which grids grew."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from budgetreg.protocol.plan import Plan


@dataclass(frozen=True)
class Choices:
    """The choices of one run.

    Attributes
    ----------
    algo : str
        The learner.
    repetitions : int
        How many there are.
    edges : mapping of str to int
        By edge, and what to do about it, in how many of them the best value lies there.
    widened : mapping of str to int
        By parameter, in how many of them its grid grew.
    """

    algo: str
    repetitions: int
    edges: Mapping[str, int]
    widened: Mapping[str, int]


def choices_of(plan: "Plan", results: Sequence[Mapping[str, Any]]) -> Choices:
    """Return the choices of a run's repetitions.

    Parameters
    ----------
    plan : Plan
        What was run.
    results : sequence of mapping
        What `protocol.run_repetitions` returns of each.
    """
    edges: Counter[str] = Counter()
    widened: Counter[str] = Counter()
    for result in results:
        last, before = (set(told.split()) for told in (result["run"]["edge"], result.get("edge_before", "")))
        edges.update(f"{_edge(word)}{_advice(plan, word)}" for word in last)
        edges.update(f"{_edge(word)} before the last checkpoint{_advice(plan, word)}" for word in before - last)
        widened.update(result.get("widened", "").split())
    return Choices(plan.config.algo.name, len(results), dict(edges), dict(widened))


def remarks(runs: Iterable[Choices]) -> list[str]:
    """Return what the user should be told of the choices of some runs: a line about edges, and one about grids."""
    total: Counter[str] = Counter()
    edges: dict[str, Counter[str]] = {}
    widened: dict[str, Counter[str]] = {}
    for run in runs:
        total[run.algo] += run.repetitions
        edges.setdefault(run.algo, Counter()).update(run.edges)
        widened.setdefault(run.algo, Counter()).update(run.widened)
    return [
        f"{what}: {told}"
        for what, found in (
            ("grids grew, as the best value was on an edge", widened),
            ("the best value is on an edge of its grid", edges),
        )
        if (told := _told(found, total))
    ]


def _told(found: Mapping[str, Counter[str]], total: Mapping[str, int]) -> str:
    return "; ".join(
        f"{algo}: "
        + ", ".join(f"{what} in {hits}" for what, hits in sorted(own.items()))
        + f" of {total[algo]} repetitions"
        for algo, own in sorted(found.items())
        if own
    )


def _edge(word: str) -> str:
    return " ".join(word.split(":"))


def _advice(plan: "Plan", word: str) -> str:
    """Return what would be tried next, in the units of the grid; nothing of what cannot have other values."""
    name, end = word.split(":")
    algo = plan.config.algo
    if not algo.in_grid(name).unlimited:
        return ""
    if plan.config.tuning.widen:
        return f" (raise tuning.widen, which is {plan.config.tuning.widen})"
    edge, inner = algo.grid[name][:2] if end == "low" else algo.grid[name][:-3:-1]
    return f" (try {edge * edge / inner:.3g} in algo.grid.{name})"
