"""Choosing parameters by cross-validation: folds, the winner of a grid, and grids that grow.

If the best value is on an edge of its grid, values beyond the edge are tried as well. Each repetition decides by its
own folds, so that its numbers depend neither on the others nor on an interruption.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from budgetreg.protocol.passes import Progress
from budgetreg.protocol.plan import Plan

Result = Mapping[str, Any]
Run = Callable[[Plan, Sequence[int], Progress], Sequence[Result]]


def folds(order: np.ndarray, n_folds: int, rng: np.random.Generator) -> tuple[np.ndarray, list[np.ndarray]]:
    """Cut a training part into folds.

    Parameters
    ----------
    order : ndarray of int, shape (m,)
        Training rows in the order in which they are presented; folds keep it.
    n_folds : int
        Number of folds F.
    rng : numpy.random.Generator
        Decides which rows each fold holds out.

    Returns
    -------
    training : ndarray of int, shape (F, m')
        Training rows of each fold; all have as many as the fold that holds out most.
    held_out : list of F ndarrays of int
        Held-out rows of each fold.
    """
    fold = rng.permutation(order.size) % n_folds
    length = order.size - -(-order.size // n_folds)
    training = np.stack([order[fold != f][:length] for f in range(n_folds)])
    return training, [order[fold == f] for f in range(n_folds)]


def winners(losses: np.ndarray) -> np.ndarray:
    """Return the best setting for each choice.

    Parameters
    ----------
    losses : ndarray of float, shape (C, F, G)
        Held-out loss for C choices, on F folds, of G settings.

    Returns
    -------
    ndarray of int, shape (C,)
    """
    mean = losses.mean(axis=1)
    return np.where(np.isnan(mean), np.inf, mean).argmin(axis=1)


def on_edge(settings: Mapping[str, tuple[float, ...]], winner: int) -> str:
    """Return which parameters of a setting are on the edge of the grid, such as ``"B:high eta:low"``.

    Parameters
    ----------
    settings : mapping of str to tuple of float
        The grid, one entry per setting. The grid of a step size may depend on ``B``, if there is one: its edge is that
        among settings with the same ``B``.
    winner : int
        The setting.
    """
    edges = []
    radii = settings.get("B", ())
    for name, values in settings.items():
        independent = name == "B" or not radii
        peers = [value for g, value in enumerate(values) if independent or radii[g] == radii[winner]]
        low, high = min(peers), max(peers)
        if low < high and values[winner] in (low, high):
            edges.append(f"{name}:{'low' if values[winner] == low else 'high'}")
    return " ".join(edges)


def widening(run: Run, plan: Plan, repetitions: Sequence[int], progress: Progress, times: int) -> list[dict[str, Any]]:
    """Run repetitions, and rerun those on a larger grid whose best value is on an edge.

    The larger grid contains what was tried before, with the same draws: its bill is that of everything tried.

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
        The last result of each repetition; if its grid grew, with the names of the parameters as ``widened``.
    """
    first = run(plan, repetitions, _portion(progress, 0, 1 / (times + 1)))
    results = {number: dict(result) for number, result in zip(repetitions, first, strict=True)}
    again: dict[str, list[int]] = {}
    for number, result in results.items():
        edge = _open_edge(plan, result)
        if edge and times:
            again.setdefault(edge, []).append(number)
    parts = []
    for edge, numbers in again.items():
        larger = plan.widened(edge)
        n = larger.repetitions_at_once
        parts += [(edge, larger, numbers[begin : begin + n]) for begin in range(0, len(numbers), n)]
    for i, (edge, larger, part) in enumerate(parts):
        begin, end = (1 - times / (times + 1) * (1 - (i + j) / len(parts)) for j in (0, 1))
        grown = {word.partition(":")[0] for word in edge.split()}
        second = widening(run, larger, part, _portion(progress, begin, end), times - 1)
        for number, result in zip(part, second, strict=True):
            results[number] = {**result, "widened": " ".join(sorted({*grown, *result.get("widened", "").split()}))}
    return list(results.values())


def widest(plan: Plan) -> Plan:
    """Return the plan whose grid has grown as often as it may, and whose tuning is charged most."""
    tuning, edges = plan.config.tuning, [on_edge(plan.settings, g) for g in range(plan.n_settings) if plan.tuned]
    ends = ("low", "high") if tuning.at == "each" else ("high",)  # at one checkpoint the best is on one of them
    names = [name for name in plan.config.algo.grid if any(f"{name}:high" in edge.split() for edge in edges)]
    edge = " ".join(f"{name}:{end}" for name in names if plan.config.algo.in_grid(name).unlimited for end in ends)
    for _ in range(tuning.widen if edge else 0):
        plan = plan.widened(edge)
    return plan


def _open_edge(plan: Plan, result: Result) -> str:
    """Return the edges with the best value for any checkpoint that have values beyond them."""
    words = {*result["run"]["edge"].split(), *result["edge_before"].split()}
    return " ".join(sorted(word for word in words if plan.config.algo.in_grid(word.partition(":")[0]).unlimited))


def _portion(progress: Progress, begin: float, end: float) -> Progress:
    return lambda done: progress(begin + done * (end - begin))
