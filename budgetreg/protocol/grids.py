"""The settings among which a run chooses: its grid in absolute values, whose units are what theory prescribes."""

from collections.abc import Mapping, Sized
from dataclasses import replace
from itertools import product

from budgetreg.config.sections import RADIUS
from budgetreg.learners.declaration import Learner, RunContext
from budgetreg.protocol.configuration import Config


def lay_out(config: Config, run: RunContext) -> dict[str, tuple[float, ...]]:
    """Lay out the grid: every radius, of learners that have one, with all other parameters, in absolute values.

    Parameters
    ----------
    config : Config
        The learner, its grid in units of what theory prescribes, and how parameters are chosen.
    run : RunContext
        What theory asks about the run.

    Returns
    -------
    dict of str to tuple of float
        By parameter its value in each setting; empty for learners without parameters.

    Raises
    ------
    ConfigError
        If theory's parameters are asked for, and no theorem has them.
    """
    algo, tuning = config.algo, config.tuning
    names = [name for name in algo.grid if name != RADIUS]
    radii = _radii(config, run.unit)
    if tuning.name == "fixed" or not names:
        rows = [(B, *(tuning.values[name] for name in names)) for B in radii]
    elif tuning.name == "theory":
        prescribed = {B: algo.theory(run, B) for B in radii}
        rows = [(B, *(prescribed[B][name] for name in names)) for B in radii]
    else:
        units = {B: _units(algo, names, run, B) for B in radii}
        multiples = list(product(*(algo.grid[name] for name in names)))
        rows = [
            (B, *(v * units[B][name] for name, v in zip(names, values, strict=True)))
            for values in multiples
            for B in radii
        ]
    columns = dict(zip((RADIUS, *names), zip(*rows, strict=True), strict=True))
    return {name: values for name, values in columns.items() if name in algo.grid}


def widened(algo: Learner, edge: str) -> Learner:
    """Return a learner whose grid has two more values beyond some of its ends, each as far off as those there are.

    Parameters
    ----------
    algo : Learner
    edge : str
        Which ends, as `protocol.tuning.on_edge` tells them: ``"B:high eta:low"``.
    """
    grid = dict(algo.grid)
    for name, end in (word.split(":") for word in edge.split()):
        values = grid[name]
        if end == "low":
            ratio = values[0] / values[1]
            grid[name] = (values[0] * ratio**2, values[0] * ratio, *values)
        else:
            ratio = values[-1] / values[-2]
            grid[name] = (*values, values[-1] * ratio, values[-1] * ratio**2)
    return replace(algo, grid=grid)


def count(settings: Mapping[str, Sized]) -> int:
    """Return the number of settings; 1 of a learner without parameters."""
    return len(next(iter(settings.values()))) if settings else 1


def _radii(config: Config, unit: float) -> tuple[float | None, ...]:
    """Return the candidates for the radius, whose grid is in a unit; None alone if the learner has none."""
    if RADIUS not in config.algo.grid:
        return (None,)
    return (
        (config.tuning.values[RADIUS],)
        if RADIUS in config.tuning.values
        else tuple(B * unit for B in config.algo.grid[RADIUS])
    )


def _units(algo: Learner, names: list[str], run: RunContext, B: float | None) -> Mapping[str, float]:
    """Return by parameter what a multiple is multiplied by: 1 where the grid is absolute."""
    if all(algo.in_grid(name).absolute for name in names):
        return dict.fromkeys(names, 1.0)
    prescribed = algo.theory(run, B)
    return {name: 1.0 if algo.in_grid(name).absolute else prescribed[name] for name in names}
