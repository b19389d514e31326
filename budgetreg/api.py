"""What the command ``run`` does, to be called: from choices to results; and results read back."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from budgetreg.errors import UnfinishedError
from budgetreg.notices import say

if TYPE_CHECKING:
    from budgetreg.execution.runner import RunOutcome
    from budgetreg.protocol.plan import Plan
    from budgetreg.results.reading import Results


def run(choices: Mapping[str, Any], *, draw: bool = False) -> "Results":
    """Run one learner on one data set, or what is missing of it, and return what it left in its folder.

    Parameters
    ----------
    choices : mapping of str to Any
        What follows ``budgetreg run`` on the command line: groups with the names of their options, and dotted keys with
        values, as in ``{"algo": "aelr", "k": 4, "dataset.center": "full", "out": "runs/here"}``.
    draw : bool
        Whether the learning curve is drawn in the folder, too.

    Returns
    -------
    Results

    Raises
    ------
    ConfigError
        If something cannot be chosen, or does not fit the data; the message says what is possible.
    DataError
        If the data are missing or unusable.
    UnfinishedError
        If repetitions have failed.
    KeyboardInterrupt
        What is finished is kept; the same call resumes.
    """
    from budgetreg.execution.choices import remarks

    outcome = carry_out(plan(choices), draw=draw)
    for remark in remarks(filter(None, [outcome.choices])):
        say(remark)
    if outcome.failed:
        raise UnfinishedError(f"{outcome.failed} repetitions failed, see {outcome.folder}: the same call tries again")
    return load(outcome.folder)


def plan(choices: Mapping[str, Any]) -> "Plan":
    """Return what `run` would run, and its attribute bill; the parameters and exceptions are those of `run`."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from budgetreg.config.composition import composed
    from budgetreg.config.hydra_errors import as_config_error
    from budgetreg.protocol.configuration import validate
    from budgetreg.protocol.plan import make_plan

    try:
        config = composed(choices)
    except (HydraException, OmegaConfBaseException) as error:
        raise as_config_error(error, [f"{key}={value}" for key, value in choices.items()]) from error
    valid = validate(config, choices)
    return make_plan(replace(valid, out=str(valid.folder())))


def carry_out(plan: "Plan", *, draw: bool = True) -> "RunOutcome":
    """Run what is missing of a plan and draw its learning curve; see `budgetreg.execution.runner.execute`.

    What its tuning came to is left for the caller to tell.
    """
    from budgetreg.execution.runner import execute

    return execute(plan, draw=_draw if draw else lambda folder: None)


def load(folder: str | Path) -> "Results":
    """Read what a run left in its folder, or a reproduction in that of its merged results.

    Parameters
    ----------
    folder : path

    Returns
    -------
    Results

    Raises
    ------
    DataError
        If there is nothing to read, or a file is damaged.
    """
    from budgetreg.results.reading import read

    return read(Path(folder).expanduser())


def _draw(folder: Path) -> None:
    from budgetreg.figures.curves import plot_run  # here, as matplotlib is slow to load

    plot_run(folder)
