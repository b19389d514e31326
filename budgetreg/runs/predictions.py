"""Predictions of a run for the rows of another table."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from budgetreg.data.attributes import UNIT
from budgetreg.data.dataset import Dataset, as_values, row_blocks
from budgetreg.data.file import FORMATS, opener, parse_file
from budgetreg.data.registry import ALL
from budgetreg.data.tables import NO_TARGET, data_row, reading, shown
from budgetreg.data.text_files import first_index, open_libsvm
from budgetreg.errors import ConfigError, DataError, quoted
from budgetreg.files import files_below, regular
from budgetreg.notices import say
from budgetreg.protocol.calibration import probability
from budgetreg.runs.bill import attributes_paid, money_paid
from budgetreg.runs.manifest import run_manifest
from budgetreg.runs.models import Arrays, read_regressor_file, read_regressors
from budgetreg.runs.schema import MANIFEST, PREDICTION_COLUMNS
from budgetreg.runs.tables import as_csv

if TYPE_CHECKING:
    from budgetreg.runs.reading import Results

_MOST_RUNS = 9


@dataclass(frozen=True)
class Predictions:
    """Predictions for the rows of a table; see `budgetreg.runs.schema.PREDICTION_COLUMNS`.

    Attributes
    ----------
    values : ndarray of float, shape (n,)
        Averaged over the models.
    probability : ndarray of float, shape (n,), or None
        That of the second label; None if the target is not two-valued, or the model of an earlier version.
    label : ndarray of str, shape (n,), or None
        The label whose probability is larger.
    notes : tuple of str
        Which models predict and what they paid for, how the table was read, and the error if it has targets.
    """

    values: np.ndarray
    probability: np.ndarray | None
    label: np.ndarray | None
    notes: tuple[str, ...]

    def as_csv(self) -> str:
        """Return the columns as text."""
        columns = zip(PREDICTION_COLUMNS, (self.values, self.probability, self.label), strict=True)
        known = {name: column.tolist() for name, column in columns if column is not None}
        return as_csv(known, (dict(zip(known, row, strict=True)) for row in zip(*known.values(), strict=True))).decode()


def predict(folder: Path, path: Path, repetition: int | None = None) -> Predictions:
    """Return what a run predicts for the rows of a table, with its error if the table has targets.

    Parameters
    ----------
    folder : Path
        The folder of a run; or a file with a model, such as ``budgetreg study export`` writes.
    path : Path
        A table, of any format of ``dataset=file``. Columns are matched by name if both tables have names, those of a
        LIBSVM file by index, and others by their order. A column with the name of the target is not an attribute.
        Columns that the run did not learn from may be there, with any content if they have names; so may those that
        ``dataset.drop`` left out.
    repetition : int, optional
        The repetition whose regressor predicts; all of them by default, with the mean of their predictions.

    Returns
    -------
    Predictions

    Raises
    ------
    ConfigError
        If the run learned a subspace, the run or the repetition is not finished, or the format is not supported.
    DataError
        If there is no run or no model, a file is damaged, the table is missing or unusable, or its columns do not fit.
    """
    from budgetreg.runs.reading import read  # here, as pandas is slow to load and a run that is written needs none

    with reading(folder):
        alone = folder.is_file()
    if not alone:
        _refuse_sweep(folder)
    elif repetition is not None:
        raise ConfigError(f"repetition={repetition}: {folder} holds one model")
    learned = read_regressor_file(folder) if alone else read_regressors(folder, repetition)
    with reading(path):
        if not path.is_dir():
            regular(path)
    if opener(path) is None:
        raise ConfigError(f"{path}: a table ends in {', '.join(FORMATS)} (text also compressed), or is a folder")
    results = None if alone else read(folder)
    labelled = "labels" in learned or (results is not None and bool(results.curves["test_error_rate"].notna().any()))
    target, names, d = _target(path, str(learned.get("target", "")))
    dropped = () if alone else run_manifest(folder).get("dropped", ())
    options = {"path": str(path), "target": target, "scale": "none"}
    if opener(path) is open_libsvm:
        data = parse_file({**options, **_by_index(learned, dropped, path, folder)}).load()
        columns = np.arange(data.X.shape[1])
    else:
        data = parse_file({**options, "drop": _left_out(learned, names, d, dropped, path)}).load()
        columns = _columns(learned, data, dropped, path)
    values, probabilities = np.empty(len(data.y)), np.empty(len(data.y))
    calibrated = {"share", "explained", "labels"} <= learned.keys()
    for rows in row_blocks(np.arange(len(data.y)), data.X.shape[1]):
        X = as_values(data.X).rows(rows).astype(np.float64)[:, columns]
        with np.errstate(over="ignore", invalid="ignore"):
            each = [b + (X - c) @ w for w, b, c in zip(learned["w"], learned["b"], learned["c"], strict=True)]
            values[rows] = np.mean(each, axis=0)
            if calibrated:
                each = list(map(probability, each, learned["share"].tolist(), learned["explained"].tolist()))
                probabilities[rows] = np.mean(each, axis=0)
    if not np.isfinite(values).all():
        first = data_row(int(np.flatnonzero(~np.isfinite(values))[0]))
        raise DataError(
            f"{path}: {first}: the prediction of {folder} overflows: its model or this row has values "
            "that are too large"
        )
    label = learned["labels"][(probabilities > 0.5).astype(int)] if calibrated else None
    predictions = Predictions(values, probabilities if calibrated else None, label, ())
    notes = [*([] if results is None else [_models_used(results, repetition)]), *data.notes]
    if calibrated:
        second = quoted(str(learned["labels"][1]))
        notes.append(f"probability: of {second}, by Bayes' rule if predictions are normal given the label")
    elif labelled:
        notes.append(f"{folder} was written by an earlier version, without probabilities: the sign is the label")
    if target != NO_TARGET:
        known = results is not None and results.manifest["data"]["fingerprint"] == data.fingerprint()
        notes.append(_error(data, predictions, labelled, learned, f"{len(values)} rows of {path}", known))
    return replace(predictions, notes=tuple(notes))


def _refuse_sweep(folder: Path) -> None:
    """Refuse a folder above runs, with their names.

    Raises
    ------
    DataError
    """
    below = [str(file.parent) for file in files_below(folder, MANIFEST)]
    if below and str(folder) not in below:
        more = f" and {len(below) - _MOST_RUNS} more (see budgetreg status)" if len(below) > _MOST_RUNS else ""
        raise DataError(f"{folder} holds no run itself; the runs below it: {', '.join(below[:_MOST_RUNS])}{more}")


def _models_used(results: "Results", repetition: int | None) -> str:
    """Return which models predict, and what was paid for them."""
    asked, paid = results.manifest["repetitions"], attributes_paid(results, repetition)
    money, dataset = money_paid(results, repetition), results.manifest["config"].get("dataset", {})
    bill = "what was paid is not recorded"
    if paid is not None:
        cost = f" ({money.total:,.6g} {dataset.get('unit') or UNIT})" if money else ""
        tuning = ", tuning included" if paid.total > paid.final else ""
        bill = f"{paid.total:,.0f} attributes were paid for{cost}{tuning}"
    if dataset.get("split") == ALL:
        return f"one model, learned once from all rows: {bill}"
    if repetition is not None:
        return f"the model of repetition {repetition}, one of {asked}: {bill}"
    if asked == 1:
        return f"the model of one split, as part of the rows was kept for a test: {bill}"
    return f"the mean of {asked} models, each bought on a split of its own: {bill} in all; `budgetreg fit` learns one"


def _error(data: Dataset, predictions: Predictions, labelled: bool, learned: Arrays, rows: str, known: bool) -> str:
    """Return the error on the rows of a table, and what is known of whether they were learned from."""
    y = data.y if labelled else _as_numbers(data)
    if labelled != data.two_valued and y is data.y:
        targets = "two labels" if data.two_valued else "targets other than two labels"
        return f"the table has {targets} but the run learned {'' if labelled else 'no '}labels: no error is computed"
    if labelled and "labels" in learned and list(data.labels) != learned["labels"].tolist():
        ours, theirs = (" and ".join(map(quoted, labels)) for labels in (learned["labels"].tolist(), data.labels))
        return f"the table has the labels {theirs} but the run learned {ours}: no error is computed"
    values, label = predictions.values, predictions.label
    errors = f"mean squared error {np.square(predictions.values - y).mean():.6g}"
    if labelled:
        right = np.sign(values) == data.y if label is None else label == learned["labels"][(data.y > 0).astype(int)]
        errors += f", error rate {1 - right.mean():.4g}"
    if known:
        return f"{errors} on the {rows}, the table that was learned from: expect more on new rows"
    return f"{errors} on the {rows}; whether any of them was learned from is not known"


def _as_numbers(data: Dataset) -> np.ndarray:
    """Return the targets of a table for a run that learned numbers: two different ones are read as labels."""
    try:
        low, high = map(float, data.labels)
    except ValueError:  # no numbers, or no labels
        return data.y
    return np.where(data.y > 0, high, low)


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
    return table.names, table.d - len(table.dropped)


def _names(learned: Arrays) -> list[str]:
    return learned["names"].tolist() if "names" in learned else []


def _by_index(
    learned: Arrays, dropped: Sequence[tuple[int, str]], path: Path, folder: Path
) -> dict[str, tuple[int, int] | list[int]]:
    """Return which indices of a LIBSVM file are columns, first and last, and which of these are left out.

    A model of another format, or of an earlier version, has none: its columns count from the first index of the file.
    """
    if "indices" in learned:
        left_out = learned["left_out"].tolist() if "left_out" in learned else []
        every = [*learned["indices"].tolist(), *left_out]
        return {"indices": (min(every), max(every)), "drop": left_out}
    with reading(path):
        first = first_index(path)
    say(f"{folder} keeps no indices of columns: those of {path} are taken to begin at {first}")
    return {
        "indices": (first, first + learned["w"].shape[1] + len(dropped) - 1),
        "drop": [first + at for at, _ in dropped],
    }


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
    if data.X.shape[1] != d:
        raise DataError(
            f"{path} has {data.X.shape[1]} attributes and the run learned from {d}: without names in both tables, "
            "their columns must be the same in the same order"
        )
    return np.arange(d)
