"""Choosing parameters: the settings that a run tries, the winner, and the edges beyond which a grid grows."""

from collections.abc import Mapping, Sized
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np

from budgetreg.algorithms.learner import Learner, RunContext
from budgetreg.config.options import RADIUS
from budgetreg.data.dataset import Dataset
from budgetreg.protocol.configuration import Config
from budgetreg.protocol.spending import Spending
from budgetreg.protocol.split import second_moments, table_of


def run_context(spending: Spending, data: Dataset) -> RunContext:
    """Return the quantities that the theorems' step sizes need."""
    config, prices = spending.config, spending.prices
    intercept = config.intercept == "mean"
    return RunContext(
        k=spending.k,
        d=spending.d,
        m=spending.checkpoints[-1] - spending.pilot_before_learning,
        budget_split=spending.budget_split,
        largest=float(np.abs(data.y - (data.y.mean() if intercept else 0.0)).max()),
        unit=float(data.y.std()) if intercept else 1.0,
        moments=cache(lambda: _moments(config, data)),
        prices=np.array(prices.costs) if prices and config.algo.cost_aware else None,
    )


def _moments(config: Config, data: Dataset) -> np.ndarray:
    """Return second moments, in which units of grids are expressed: over all examples unless the scale implies them.

    They are 1 for attributes scaled by a pilot. Attributes scaled by ranges are taken to be uniform on [-1, 1].
    """
    if config.dataset.scaled_by_pilot or config.dataset.scaled_by_ranges:
        return np.full(data.X.shape[1], 1.0 if config.dataset.scaled_by_pilot else 1 / 3)
    everything = np.arange(data.y.size)
    return second_moments(table_of(config.dataset.center, data, everything), everything)


def lay_out(config: Config, run: RunContext) -> dict[str, tuple[float, ...]]:
    """Return the settings: every radius, if there is one, with all other parameters, in absolute values.

    Parameters
    ----------
    config : Config
        The learner, its grid in units of what theory prescribes, and how parameters are chosen.
    run : RunContext
        The quantities that the theorems' step sizes need.

    Returns
    -------
    dict of str to tuple of float
        The value of each parameter in each setting; empty for learners without parameters.

    Raises
    ------
    ConfigError
        If theory's parameters are asked for, and no theorem has them.
    """
    algo, tuning = config.algo, config.tuning
    names = [name for name in algo.grid if name != RADIUS]
    radii: tuple[float | None, ...] = (None,)
    if RADIUS in tuning.values:
        radii = (tuning.values[RADIUS],)
    elif RADIUS in algo.grid:
        radii = tuple(B * run.unit for B in algo.grid[RADIUS])
    tried, in_units = algo.grid, [name for name in names if not algo.in_grid(name).absolute]
    if tuning.name == "fixed":
        tried, in_units = {name: (tuning.values[name],) for name in names}, []
    elif tuning.name == "theory":
        tried, in_units = dict.fromkeys(names, (1.0,)), names
    units = {B: algo.theory(run, B) if in_units else {} for B in radii}
    rows = [
        (B, *(v * units[B][name] if name in in_units else v for name, v in zip(names, values, strict=True)))
        for values in product(*(tried[name] for name in names))
        for B in radii
    ]
    columns = dict(zip((RADIUS, *names), zip(*rows, strict=True), strict=True))
    return {name: values for name, values in columns.items() if name in algo.grid}


def widened(algo: Learner, edge: str) -> Learner:
    """Return a learner whose grid has two more values beyond some of its ends, with the ratio of the last two values.

    Parameters
    ----------
    algo : Learner
    edge : str
        Which ends, as `on_edge` names them: ``"B:high eta:low"``.
    """
    grid = dict(algo.grid)
    for name, end in (word.split(":") for word in edge.split()):
        outward = 1 if end == "high" else -1
        values = grid[name][::outward]
        ratio = values[-1] / values[-2]
        grid[name] = (*values, values[-1] * ratio, values[-1] * ratio**2)[::outward]
    return replace(algo, grid=grid)


def count(settings: Mapping[str, Sized]) -> int:
    """Return the number of settings; 1 for a learner without parameters."""
    return len(next(iter(settings.values()))) if settings else 1


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
