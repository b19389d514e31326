"""The commands ``run``, ``fit`` and ``study show`` as functions, and reading results back."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from budgetreg.common.errors import ConfigError, DataError, UnfinishedError
from budgetreg.common.files import at_home, digest, scratch_folder
from budgetreg.common.notices import say
from budgetreg.runs.tables import CURVE_FILES, MANIFEST

if TYPE_CHECKING:
    import pandas as pd

    from budgetreg.protocol.configuration import Config
    from budgetreg.protocol.plan import Plan
    from budgetreg.runs.runner import RunOutcome
    from budgetreg.runs.series import Results
    from budgetreg.study import Study

SET_BY_FIT = ("repetitions", "checkpoints", "dataset.split", "dataset.test_fraction")
"""Keys of `run` that `fit` sets itself."""


def run(choices: Mapping[str, Any], *, draw: bool = False) -> "Results":
    """Run one learner on one data set and return the results; finished repetitions are not computed again.

    Parameters
    ----------
    choices : mapping of str to Any
        The choices of ``budgetreg run``: groups with the names of their options, and dotted keys with
        values, such as ``{"algo": "aelr", "k": 4, "dataset.center": "full", "out": "runs/here"}``.
    draw : bool
        Whether to draw the learning curve into the folder.

    Returns
    -------
    Results

    Raises
    ------
    ConfigError
        If a choice is impossible, or does not fit the data; the message lists what is possible.
    DataError
        If the data are missing or unusable.
    UnfinishedError
        If repetitions have failed.
    KeyboardInterrupt
        Finished repetitions are kept; the same call resumes.
    """
    return _finished(plan(choices), draw=draw)


def fit(choices: Mapping[str, Any]) -> "Results":
    """Learn one model from all rows within the budget and return the bill; a finished fit is reused.

    No row is kept for a test, so no error is estimated. The model is ``model.npz`` in the folder of the results,
    which ``budgetreg predict`` applies.

    Parameters
    ----------
    choices : mapping of str to Any
        As for `run`, without repetitions, checkpoints and test part.

    Returns
    -------
    Results
        Its ``runs`` hold the bill; its ``curves`` hold no errors.

    Raises
    ------
    ConfigError, DataError, UnfinishedError, KeyboardInterrupt
        As `run` does.
    """
    return _finished(fit_plan(choices), draw=False)


def predict(folder: str | Path, table: "str | Path | pd.DataFrame", repetition: int | None = None) -> "pd.DataFrame":
    """Return what a run or a fit predicts for the rows of a table.

    Parameters
    ----------
    folder : path
        The folder of the results, or a file ``model.npz``.
    table : path or DataFrame
        A file such as ``dataset=file`` reads, or a frame. Columns are matched by name if both tables have names.
    repetition : int, optional
        The repetition whose regressor predicts; all of them by default, with the mean of their predictions.

    Returns
    -------
    DataFrame
        The columns that ``budgetreg predict`` prints, with the index of the frame.

    Raises
    ------
    ConfigError
        If the run learned a subspace, the run or the repetition is not finished, or the table is something else.
    DataError
        If there is no model, or the table is unusable or lacks a column.
    """
    import pandas as pd  # here, as it is slow to load

    from budgetreg.data.tables import is_number
    from budgetreg.runs import models

    if isinstance(table, str | PathLike):
        predictions = models.predict(at_home(folder), at_home(table), repetition)
    elif not isinstance(table, pd.DataFrame):
        raise ConfigError(f"table: must be a path or a pandas.DataFrame; got a {type(table).__name__}")
    else:
        if table.columns.nlevels > 1:
            raise DataError(f"the table: its columns have names of {table.columns.nlevels} levels: give each one name")
        if len(table.columns) and all(map(is_number, map(str, table.columns))):
            raise DataError(
                "the table: the names of its columns are only numbers, as a row of data may be: rename them, or add a "
                "column whose name is a word"
            )
        with scratch_folder() as scratch:  # read as a file is, with the same words for what is wrong
            path = scratch / f"{scratch.name}.csv"  # a name that no message has by accident

            def named(text: str) -> str:
                return text.replace(str(path), "the table").replace(path.name, "the table")

            table.to_csv(path, index=False)
            try:
                predictions = models.predict(at_home(folder), path, repetition)
            except DataError as error:
                raise DataError(named(str(error))) from error
            predictions = replace(predictions, notes=tuple(map(named, predictions.notes)))
    for line in predictions.notes:
        say(line)
    return pd.DataFrame(predictions.columns, index=table.index if isinstance(table, pd.DataFrame) else None)


def plan(choices: Mapping[str, Any]) -> "Plan":
    """Return what `run` would run, and what it would cost; parameters and exceptions are those of `run`."""
    return _planned(_valid(choices))


def fit_plan(choices: Mapping[str, Any]) -> "Plan":
    """Return what `fit` would run, and what it would cost; parameters and exceptions are those of `fit`."""
    from budgetreg.protocol.configuration import from_all_rows

    fixed = [key for key in SET_BY_FIT if key in choices]
    if fixed:
        raise ConfigError(f"{fixed[0]}: not for fit, which learns once from all rows; see budgetreg run")
    return _planned(from_all_rows(_valid(choices)))


def carry_out(plan: "Plan", *, draw: bool = True) -> "RunOutcome":
    """Run what is missing of a plan and draw its learning curve; see `budgetreg.runs.runner.execute`.

    The caller reports the choices of the tuning.
    """
    from budgetreg.runs.runner import execute

    return execute(plan, draw=_draw if draw else lambda folder: None)


def load(folder: str | Path) -> "Results":
    """Read the results of a run from its folder, or the merged results of a reproduction.

    Parameters
    ----------
    folder : path

    Returns
    -------
    Results

    Raises
    ------
    DataError
        If there are no results, or a file is damaged.
    """
    from budgetreg.runs.series import read

    return read(at_home(folder))


def draw_study(study: "Study", folder: str | Path | None = None) -> list[Path]:
    """Draw the estimated errors of a study, a forecast, and how much of each attribute was bought.

    Parameters
    ----------
    study : Study
    folder : path, optional
        The folder of the files; that of the study by default.

    Returns
    -------
    list of Path
        A picture, a PDF file and a caption, named as the study is.
    """
    from budgetreg.figures import plot
    from budgetreg.figures.specification import Drawing

    with suppress(DataError):  # with too few values there is no estimate, but the bill is drawn
        study.estimates()
    target = study.path.parent if folder is None else at_home(folder)
    return plot(study, target, study.path.stem, Drawing(kind="study"))


def _valid(choices: Mapping[str, Any]) -> "Config":
    from budgetreg.config.composition import Composer
    from budgetreg.protocol.configuration import validate

    choices = readable(choices)
    return validate(Composer()(choices), choices)


def readable(choices: Mapping[str, Any]) -> dict[str, Any]:
    """Return choices as the command reads them: paths as text, tuples as lists, numbers of numpy as those of Python.

    Raises
    ------
    ConfigError
        If they are no mapping, or hold a table or an array.
    """
    if not hasattr(choices, "items"):
        raise ConfigError(
            f"the choices are a {type(choices).__name__}, not a mapping of keys to values: write "
            'budgetreg.run({"algo": "aemr", "k": 4})'
        )
    for key, value in choices.items():
        shape = getattr(value, "shape", ())
        if shape:  # before it is printed into a message
            raise ConfigError(
                f"{key}: must be text, a number, a list or a mapping; got a {type(value).__name__} of "
                f"{' x '.join(map(str, shape))}: save a table, as by table.to_csv(PATH, index=False), and give its "
                "path as dataset.path"
            )
    return {key: _readable(value) for key, value in choices.items()}


def _readable(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return list(map(_readable, value))
    if isinstance(value, PathLike):
        return fspath(value)
    return value.item() if hasattr(value, "item") else value


def _planned(config: "Config") -> "Plan":
    from budgetreg.protocol.plan import make_plan

    return make_plan(replace(config, out=str(config.folder())))


def _finished(plan: "Plan", draw: bool) -> "Results":
    """Run what is missing of a plan, report the choices of its tuning, and return the results.

    Raises
    ------
    UnfinishedError
        If repetitions have failed.
    """
    from budgetreg.runs.runner import remarks

    outcome = carry_out(plan, draw=draw)
    for remark in remarks([outcome.choices]):
        say(remark)
    if outcome.failed:
        raise UnfinishedError(f"{outcome.failed} repetitions failed, see {outcome.folder}: the same call tries again")
    return load(outcome.folder)


def _draw(folder: Path) -> None:
    """Draw the run in a folder, unless its figure is current."""
    from budgetreg.figures import Receipt, plot_run

    receipt = Receipt(folder, digest((folder / MANIFEST).read_bytes()))
    if not receipt.holds(CURVE_FILES):
        plot_run(folder)
        receipt.write(CURVE_FILES)
