"""The choices of tuning: best values at the end of their grid, and grids that grew."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from budgetreg.protocol.plan import Plan, listed, of_unknown_scale

_HEADS = {
    "widened": "grids grew because the best value was the largest or smallest tried",
    "edges": "some best values are the largest or smallest tried",
    "left_out": of_unknown_scale("if you know their ranges, give dataset.ranges=FILE"),
}
_ENDS = {"low": "smallest", "high": "largest"}


@dataclass(frozen=True)
class Choices:
    """The choices of tuning in one run.

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
    left_out : mapping of str to int
        In how many of them an attribute was left out, by its name.
    """

    algo: str
    repetitions: int
    edges: Mapping[str, int]
    widened: Mapping[str, int]
    left_out: Mapping[str, int] = field(default_factory=dict)


def choices_of(plan: Plan, results: Sequence[Mapping[str, Any]]) -> Choices:
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
    left_out: Counter[str] = Counter()
    for result in results:
        last, before = (set(words.split()) for words in (result["run"]["edge"], result.get("edge_before", "")))
        edges.update(_described(plan, edge) for edge in last)
        edges.update(_described(plan, edge, " before the last checkpoint") for edge in before - last)
        widened.update(result.get("widened", "").split())
        left_out.update(result.get("left_out", ()))
    return Choices(plan.config.algo.name, len(results), dict(edges), dict(widened), dict(left_out))


def remarks(runs: Iterable[Choices]) -> list[str]:
    """Return what the user should know about the choices of some runs: at most a line of each kind."""
    by_learner = sorted(runs, key=lambda run: run.algo)
    lines = []
    for kind, head in _HEADS.items():
        learners = []
        for algo, group in groupby(by_learner, key=lambda run: run.algo):
            same = list(group)
            counts: Counter[str] = sum((Counter(getattr(run, kind)) for run in same), Counter())
            hits = listed([f"{what} in {count}" for what, count in sorted(counts.items())])
            if hits:
                learners.append(f"{algo}: {hits} of {sum(run.repetitions for run in same)} repetitions")
        if learners:
            lines.append(f"{head}: {'; '.join(learners)}")
    return lines


def _described(plan: Plan, edge: str, when: str = "") -> str:
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
