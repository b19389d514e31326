"""What tuning chose in some runs: which best values lie at the end of their grid, and which grids grew."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from budgetreg.protocol.plan import Plan

_ENDS = {"low": "smallest", "high": "largest"}


@dataclass(frozen=True)
class Choices:
    """What tuning chose in one run.

    Attributes
    ----------
    algo : str
        The learner.
    repetitions : int
        Their number.
    edges : mapping of str to int
        In how many of them a best value lies at the end of its grid, by its description, which includes an advice.
    widened : mapping of str to int
        In how many of them a grid grew, by parameter.
    """

    algo: str
    repetitions: int
    edges: Mapping[str, int]
    widened: Mapping[str, int]


def choices_of(plan: "Plan", results: Sequence[Mapping[str, Any]]) -> Choices:
    """Return what tuning chose in a run.

    Parameters
    ----------
    plan : Plan
        What was run.
    results : sequence of mapping
        The results of its repetitions, as `protocol.repetitions.run_repetitions` returns them.
    """
    edges: Counter[str] = Counter()
    widened: Counter[str] = Counter()
    for result in results:
        last, before = (set(words.split()) for words in (result["run"]["edge"], result.get("edge_before", "")))
        edges.update(_described(plan, edge) for edge in last)
        edges.update(_described(plan, edge, " before the last checkpoint") for edge in before - last)
        widened.update(result.get("widened", "").split())
    return Choices(plan.config.algo.name, len(results), dict(edges), dict(widened))


def remarks(runs: Iterable[Choices]) -> list[str]:
    """Return what the user should know about the choices of some runs: at most a line on grids and one on edges."""
    repetitions: Counter[str] = Counter()
    edges: dict[str, Counter[str]] = {}
    widened: dict[str, Counter[str]] = {}
    for run in runs:
        repetitions[run.algo] += run.repetitions
        edges.setdefault(run.algo, Counter()).update(run.edges)
        widened.setdefault(run.algo, Counter()).update(run.widened)
    lines = {
        "grids grew because the best value was the largest or smallest tried": _listed(widened, repetitions),
        "some best values are the largest or smallest tried": _listed(edges, repetitions),
    }
    return [f"{head}: {text}" for head, text in lines.items() if text]


def _listed(counts: Mapping[str, Counter[str]], repetitions: Mapping[str, int]) -> str:
    return "; ".join(
        f"{algo}: {', '.join(f'{what} in {hits}' for what, hits in sorted(counter.items()))} of "
        f"{repetitions[algo]} repetitions"
        for algo, counter in sorted(counts.items())
        if counter
    )


def _described(plan: "Plan", edge: str, when: str = "") -> str:
    """Return an edge such as ``"B:high"`` in words, with what to try next if other values are possible."""
    name, end = edge.split(":")
    algo, widen = plan.config.algo, plan.config.tuning.widen
    description = f"{name} {_ENDS[end]}{when}"
    if not algo.in_grid(name).unlimited:
        return description
    if widen:
        return f"{description} (raise tuning.widen, which is {widen})"
    last, inner = algo.grid[name][:2] if end == "low" else algo.grid[name][:-3:-1]
    return f"{description} (try {last * last / inner:.3g} in algo.grid.{name})"
