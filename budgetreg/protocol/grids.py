"""The settings among which a run chooses: its grid in absolute values, whose units are what theory prescribes."""

from collections.abc import Callable, Mapping
from itertools import product

import numpy as np

from budgetreg.data import Dataset
from budgetreg.errors import ConfigError
from budgetreg.protocol.configuration import Config
from budgetreg.protocol.side_information import second_moments, table_of
from budgetreg.theory import (
    ddaelr_step,
    ddaelr_two_phase_step,
    ddaerr_step,
    ddaerr_two_phase_step,
    eg_step,
    first_phase,
    mbeg_step,
    ogd_step,
    pegasos_regularisation,
    svr_step,
)


def lay_out(config: Config, data: Dataset, *, m: int, k_x: int | None) -> dict[str, tuple[float, ...]]:
    """Lay out the grid: every radius, of learners that have one, with all other parameters, in absolute values.

    Parameters
    ----------
    config : Config
        The learner, its grid in units of what theory prescribes, and how parameters are chosen.
    data : Dataset
        Of the first repetition.
    m : int
        Training examples at the last checkpoint.
    k_x : int or None
        Draws for the data point; None for learners that draw none.

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
    if "B" not in algo.grid:
        return _settings_without_radius(config, data, m)
    radii = (tuning.values["B"],) if "B" in tuning.values else algo.grid["B"]
    names = [name for name in algo.grid if name != "B"]
    if tuning.name == "fixed" or not names:
        others = [tuning.values[name] for name in names]
        return dict(zip(algo.grid, zip(*((B, *others) for B in radii), strict=True), strict=True))
    theory = _theory(config, data, m, k_x)
    units = {B: theory(B) for B in radii}
    if tuning.name == "theory":
        rows = [(B, *(units[B][name] for name in names)) for B in radii]
    else:
        # lambda is no step size: it has a scale of its own, and its grid is absolute.
        multiples = product(*(algo.grid[name] for name in names), radii)
        rows = [
            (B, *(v if name == "lambda" else v * units[B][name] for name, v in zip(names, values, strict=True)))
            for *values, B in multiples
        ]
    return dict(zip(("B", *names), zip(*rows, strict=True), strict=True))


def _settings_without_radius(config: Config, data: Dataset, m: int) -> dict[str, tuple[float, ...]]:
    algo, tuning = config.algo, config.tuning
    units = dict.fromkeys(algo.grid, 1.0)
    if algo.core == "mbeg":
        units["eta"] = mbeg_step(config.k, data.X.shape[1], m)
    elif algo.grid and tuning.name == "theory":
        raise ConfigError(f"tuning=theory: no theorem says what {' and '.join(algo.grid)} of {algo.name} should be")
    if tuning.name == "fixed":
        return {name: (tuning.values[name],) for name in algo.grid}
    if tuning.name == "theory":
        return {name: (unit,) for name, unit in units.items()}
    rows = product(*([v * units[name] for v in values] for name, values in algo.grid.items()))
    return dict(zip(algo.grid, zip(*rows, strict=True), strict=True))


def count(settings: Mapping[str, tuple[float, ...]]) -> int:
    """Return the number of settings; 1 of a learner without parameters."""
    return len(next(iter(settings.values()))) if settings else 1


def _theory(config: Config, data: Dataset, m: int, k_x: int | None) -> Callable[[float], dict[str, float]]:
    """Return the function from a radius to the parameters that the learner's theorem prescribes for it."""
    algo, d = config.algo, data.X.shape[1]
    if algo.update == "pegasos":
        return lambda B: {"lambda": pegasos_regularisation(B, d, m, config.k)}
    if algo.core == "svr" and k_x:
        return lambda B: {"eta": svr_step(B, d, m, k_x)}

    def uniform_step(B: float, m: int) -> float:
        return eg_step(B, d, m, k_x) if algo.update == "eg" else ogd_step(d, m, k_x)

    if algo.core == "two_phase":
        assert algo.phase_one and k_x
        m_1 = first_phase(algo.phase_one, m)
        # Where the theorems make use of the estimates they cannot be had yet: what holds for any moments is taken.
        two_phase_step = ddaelr_two_phase_step if algo.update == "eg" else lambda B, *rest: ddaerr_two_phase_step(*rest)
        worst = np.ones(d)
        return lambda B: {"eta": uniform_step(B, m_1), "eta_two": two_phase_step(B, worst, 1.0, max(1, m - m_1), k_x)}
    if algo.data_point == "moment":
        assert k_x
        # Of the first repetition, all examples: a unit for the grid, and close enough for theory.
        moments = second_moments(table_of(config.dataset.center, data, np.arange(data.y.size)), np.arange(data.y.size))
        if algo.update == "eg":
            return lambda B: {"eta": ddaelr_step(B, moments, m, k_x)}
        return lambda B: {"eta": ddaerr_step(moments, m, k_x)}
    return lambda B: {"eta": uniform_step(B, m)}
