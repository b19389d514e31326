"""What a run predicts for the rows of another table."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from budgetreg.data.dataset import Dataset, positions
from budgetreg.data.formats.chunks import NO_TARGET, data_row, reading, shown
from budgetreg.data.tabular import FORMATS, opener, parse_file
from budgetreg.data.values import as_values, row_blocks
from budgetreg.errors import ConfigError, DataError
from budgetreg.files.paths import regular
from budgetreg.results.manifest import run_manifest
from budgetreg.results.models import Arrays, read_regressors


def predict(folder: Path, path: Path, repetition: int | None = None) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return what a run predicts for the rows of a table, with its error if the table has targets.

    Parameters
    ----------
    folder : Path
        The folder of a run.
    path : Path
        A table, of any format of ``dataset=file``. Columns are matched by name if both tables have names, and by their
        order otherwise. A column with the name of the target is not an attribute. Columns that the run did not learn
        from may be there, with any content if they have names; so may those that ``dataset.drop`` left out.
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
    target, names, d = _target(path, str(learned.get("target", "")))
    dropped = run_manifest(folder).get("dropped", ())
    left_out = _left_out(learned, names, d, dropped, path)
    data = parse_file({"path": str(path), "target": target, "scale": "none", "drop": left_out}).load()
    columns = _columns(learned, data, dropped, path)
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


def _target(path: Path, named: str) -> tuple[str | None, Sequence[str], int]:
    """Return the target to pass to `parse_file`, `NO_TARGET` if the table has none, and names and number of columns."""
    unnamed = _columns_of(path, NO_TARGET) or ((), 0)
    for target in (named,) if unnamed[0] else filter(lambda name: name != NO_TARGET, (named, None)):
        columns = _columns_of(path, target)
        if columns is not None:
            return target, *columns
    return NO_TARGET, *unnamed


def _columns_of(path: Path, target: str | None) -> tuple[Sequence[str], int] | None:
    """Return names and number of a table's columns but the target; None if it has no such target."""
    open_table = opener(path)
    assert open_table is not None
    try:
        table = open_table(path, target)
    except (DataError, OSError):
        return None
    return table.names, table.d


def _names(learned: Arrays) -> list[str]:
    return learned["names"].tolist() if "names" in learned else []


def _left_out(
    learned: Arrays, names: Sequence[str], d: int, dropped: Sequence[tuple[int, str]], path: Path
) -> list[str | int]:
    """Return the columns of a table that the run did not learn from, as ``dataset.drop`` names them.

    Without names in both tables these are the columns that the run left out, if the table has them.
    """
    needed = _names(learned)
    if names and needed:
        there = set(names)
        missing = [name for name in needed if name not in there]
        if missing:
            raise DataError(f"{path}: there is no column {shown(list(map(repr, missing)))}, which the run learned from")
        return sorted(there - set(needed))
    has_them = d == learned["w"].shape[1] + len(dropped)
    return [at + 1 for at, _ in dropped] if has_them else []


def _columns(learned: Arrays, data: Dataset, dropped: Sequence[tuple[int, str]], path: Path) -> np.ndarray:
    """Return the columns of a table that are the attributes, in the order in which the run learned them."""
    needed, d = _names(learned), learned["w"].shape[1]
    if data.names and needed:
        place = {name: column for column, name in enumerate(data.names)}
        return np.array([place[name] for name in needed])
    if data.X.shape[1] == d + len(dropped):  # how many columns a sparse table has is known once it is read
        return np.array(positions(d, dropped))
    if data.X.shape[1] != d:
        raise DataError(
            f"{path} has {data.X.shape[1]} attributes and the run learned from {d}: without names in both tables, "
            "their columns must be the same in the same order"
        )
    return np.arange(d)


def _errors(data: Dataset, values: np.ndarray, labelled: bool) -> tuple[str, ...]:
    if labelled != data.two_valued:
        targets = "two labels" if data.two_valued else "targets other than two labels"
        return (f"the table has {targets} but the run learned {'' if labelled else 'no '}labels: no error is computed",)
    error = f"mean squared error {np.square(values - data.y).mean():.6g} on {len(values)} rows"
    return (f"{error}, error rate {(np.sign(values) != data.y).mean():.4g}" if labelled else error,)
