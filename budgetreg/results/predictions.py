"""What a run predicts for the rows of another table."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from budgetreg.data.dataset import Dataset
from budgetreg.data.formats.chunks import NO_TARGET, data_row, reading, shown
from budgetreg.data.tabular import FORMATS, opener, parse_file
from budgetreg.data.values import as_values, row_blocks
from budgetreg.errors import ConfigError, DataError
from budgetreg.files.paths import regular
from budgetreg.results.models import Arrays, read_regressors


def predict(folder: Path, path: Path, repetition: int | None = None) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return what a run predicts for the rows of a table, with its error if the table has targets.

    Parameters
    ----------
    folder : Path
        The folder of a run.
    path : Path
        A table, of any format of ``dataset=file``. Columns are matched by name if both tables have names, and by their
        order otherwise. A column with the name of the target is not an attribute.
    repetition : int, optional
        The repetition whose regressor predicts; all of them by default, with the mean of their predictions.

    Returns
    -------
    predictions : ndarray of float, shape (n,)
        Averaged over repetitions; of two labels the sign is the label.
    notes : tuple of str
        How the table was read, and the error if it has targets.

    Raises
    ------
    ConfigError
        If the run learned a subspace, the run or the repetition is not finished, or the format is not supported.
    DataError
        If there is no run or no model, a file is damaged, the table is missing or unusable, or its columns do not fit.
    """
    from budgetreg.results.reading import read  # here, as pandas is slow to load and a run that is written needs none

    learned = read_regressors(folder, repetition)
    with reading(path):
        if not path.is_dir():
            regular(path)
    if opener(path) is None:
        raise ConfigError(f"{path}: a table ends in {', '.join(FORMATS)} (text also compressed), or is a folder")
    labelled = bool(read(folder).curves["test_error_rate"].notna().any())
    target, names = _target(path, str(learned.get("target", "")))
    data = parse_file({"path": str(path), "target": target, "scale": "none"}).load()
    columns = _columns(learned, names, data.X.shape[1], path)
    values = np.empty(len(data.y))
    for rows in row_blocks(np.arange(len(data.y)), data.X.shape[1]):
        X = as_values(data.X).rows(rows).astype(np.float64)[:, columns]
        with np.errstate(over="ignore", invalid="ignore"):
            each = [b + (X - c) @ w for w, b, c in zip(learned["w"], learned["b"], learned["c"], strict=True)]
            values[rows] = np.mean(each, axis=0)
    if not np.isfinite(values).all():
        first = data_row(int(np.flatnonzero(~np.isfinite(values))[0]))
        raise DataError(
            f"{path}: {first}: the prediction of {folder} overflows; its model or the row is beyond all use"
        )
    return values, data.notes + (() if target == NO_TARGET else _errors(data, values, labelled))


def _target(path: Path, named: str) -> tuple[str | None, Sequence[str]]:
    """Return the target to pass to `parse_file`, `NO_TARGET` if the table has none, and the columns' names."""
    names = _attributes(path, NO_TARGET) or ()
    for target in (named,) if names else filter(lambda name: name != NO_TARGET, (named, None)):
        if _attributes(path, target) is not None:
            return target, _attributes(path, target) or ()
    return NO_TARGET, names


def _attributes(path: Path, target: str | None) -> Sequence[str] | None:
    """Return the names of a table's attributes; None if it has no such target."""
    open_table = opener(path)
    assert open_table is not None
    try:
        return open_table(path, target).names
    except (DataError, OSError):
        return None


def _columns(learned: Arrays, names: Sequence[str], d: int, path: Path) -> np.ndarray:
    """Return the columns of a table that are the attributes, in the order in which the run learned them."""
    learned_names = learned["names"].tolist() if "names" in learned else []
    if names and learned_names:
        place = {name: column for column, name in enumerate(names)}
        missing = [name for name in learned_names if name not in place]
        if missing:
            raise DataError(f"{path}: there is no column {shown(list(map(repr, missing)))}, which the run learned from")
        return np.array([place[name] for name in learned_names])
    if d != learned["w"].shape[1]:
        raise DataError(
            f"{path} has {d} attributes and the run learned from {learned['w'].shape[1]}: without names in both "
            "tables, their columns must be the same in the same order"
        )
    return np.arange(d)


def _errors(data: Dataset, values: np.ndarray, labelled: bool) -> tuple[str, ...]:
    if labelled != data.two_valued:
        targets = "two labels" if data.two_valued else "targets other than two labels"
        return (f"the table has {targets} but the run learned {'' if labelled else 'no '}labels: no error is computed",)
    error = f"mean squared error {np.square(values - data.y).mean():.6g} on {len(values)} rows"
    return (f"{error}, error rate {(np.sign(values) != data.y).mean():.4g}" if labelled else error,)
