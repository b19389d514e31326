"""``model.npz``: what a run has learned, and what it predicts for the rows of another table."""

import base64
import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from budgetreg.algorithms.conditional import conditional_means
from budgetreg.common.errors import ConfigError, DataError, quoted
from budgetreg.common.files import Damaged, content_of_regular, files_below, regular
from budgetreg.common.notices import say
from budgetreg.data.attributes import UNIT
from budgetreg.data.dataset import Dataset, as_values, row_blocks
from budgetreg.data.file import FORMATS, opener, parse_file
from budgetreg.data.formats import DAMAGE, first_index, open_libsvm, read_npz
from budgetreg.data.registry import ALL
from budgetreg.data.tables import NO_TARGET, Request, data_row, one_line, reading, shown
from budgetreg.protocol.calibration import probability
from budgetreg.runs.journal import Entry, read_journal
from budgetreg.runs.manifest import read_tables, run_manifest
from budgetreg.runs.tables import MANIFEST, MODEL, MODEL_ARRAYS, MODELS, PREDICTION_COLUMNS, as_csv

if TYPE_CHECKING:
    from budgetreg.runs.series import Results


_FOR_PROBABILITIES = {"share", "explained"}
_BYTES = "float64"  # little-endian in base64, which keeps every bit in less space than digits
_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the earliest time of a ZIP file, so that equal models have equal bytes
_MOST_RUNS = 9

Arrays = Mapping[str, np.ndarray]


def model_npz(
    models: Mapping[int, Arrays],
    names: Sequence[str],
    target: str,
    labels: Sequence[str] = (),
    indices: Sequence[int] = (),
    left_out: Sequence[int] = (),
    comment: bytes = b"",
) -> bytes:
    """Return the content of the file, with equal bytes for equal models.

    Parameters
    ----------
    models : mapping
        What was learned, by number of the repetition; at least one.
    names : sequence of str
        Names of the attributes; empty if they have none.
    target : str
        Name of the target; empty if it has none.
    labels : sequence of str
        The two labels that are predicted, -1 and +1 in this order; empty for other targets.
    indices, left_out : sequence of int
        The indices of the attributes in a LIBSVM file, and of its columns that were left out; empty for other data.
    comment : bytes
        What the file ends in: a mark of the command that wrote it.
    """
    numbers = sorted(models)
    learned = [models[number] for number in numbers]
    # Earlier versions kept nothing for probabilities, and a run may have gone on from there.
    common = [name for name in learned[0] if all(name in model for model in learned)]
    arrays = {name: np.stack([model[name] for model in learned]) for name in common}
    arrays["repetitions"] = np.array(numbers)
    of_data = {"names": names, "target": target, "labels": labels, "indices": indices, "left_out": left_out}
    arrays |= {name: np.array(words) for name, words in of_data.items() if len(words)}
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.comment = comment
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy", _LONG_AGO), "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
    return content.getvalue()


def read_models(folder: Path) -> dict[int, dict[str, np.ndarray]]:
    """Return what a run has learned, by number of the repetition; for a killed run, what it had learned by then.

    Raises
    ------
    DataError
        If a file is damaged.
    """
    manifest = run_manifest(folder)
    arrays = _arrays(folder, manifest)
    if not arrays:
        return journaled_models(folder, manifest["data"]["d"])
    numbers = arrays.pop("repetitions").tolist()
    learned = {name: array for name, array in arrays.items() if name not in MODEL_ARRAYS}
    return {number: {name: array[at] for name, array in learned.items()} for at, number in enumerate(numbers)}


def journaled_models(folder: Path, d: int) -> dict[int, dict[str, np.ndarray]]:
    """Return what a run has learned by now, by number of the repetition.

    Entries that are no model of ``d`` attributes are left out, as if they were damaged.
    """
    models = ((entry, _model_of(entry, d)) for entry in read_journal(folder / MODELS))
    return {entry["repetition"]: model for entry, model in models if model is not None}


def packed(model: Arrays) -> dict[str, Any]:
    """Return arrays of floats as a journal holds them; an array of zeros takes no space."""
    arrays = {name: np.asarray(array, dtype="<f8") for name, array in model.items()}
    return {
        name: {
            "shape": list(array.shape),
            **({_BYTES: base64.b64encode(array.tobytes()).decode()} if array.any() else {}),
        }
        for name, array in arrays.items()
    }


def unpacked(text: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the arrays that `packed` was given, bit by bit except for the sign of a zero in an array of zeros."""
    arrays = {}
    for name, array in text.items():
        arrays[name] = np.zeros(array["shape"])
        if _BYTES in array:
            arrays[name] = np.frombuffer(base64.b64decode(array[_BYTES]), "<f8").reshape(array["shape"])
    return arrays


def read_regressors(folder: Path, repetition: int | None = None) -> Arrays:
    """Return the regressors that a run has learned, as `schema.REGRESSOR_ARRAYS`, of all repetitions or of one.

    Raises
    ------
    ConfigError
        If the run learned a subspace, or the run or the repetition is not finished.
    DataError
        If there is no run or no model, or a file is damaged.
    """
    manifest = run_manifest(folder)
    done, asked = manifest["repetitions_done"], manifest["repetitions"]
    if repetition is None and done < asked:
        raise ConfigError(
            f"{folder} has finished {done} of {asked} repetitions: the command that made it computes the others, and "
            "repetition=N uses a finished one"
        )
    arrays = _arrays(folder, manifest)
    if not arrays:
        why = "the command that made it writes it again" if done else "nothing is finished"
        raise DataError(f"{folder} holds no {MODEL}: {why}")
    if "w" not in arrays:
        raise ConfigError(f"{folder}: {manifest['algo']} learned a subspace, which makes no predictions")
    numbers = arrays["repetitions"].tolist()
    if repetition is None:
        return arrays
    if repetition not in numbers:
        raise ConfigError(f"repetition={repetition}: {folder} has finished {_shown(numbers)}")
    kept = [name for name in arrays if name not in MODEL_ARRAYS]
    return arrays | {name: arrays[name][[numbers.index(repetition)]] for name in kept}


def read_regressor_file(path: Path) -> Arrays:
    """Return the regressor in a file ``model.npz`` that stands alone, as `schema.REGRESSOR_ARRAYS`.

    Raises
    ------
    DataError
        If the file cannot be read, or holds no regressor.
    """
    with reading(path):
        content = content_of_regular(path)
    try:
        arrays = _checked(content, None, None)
    except DAMAGE as error:
        raise Damaged(f"{path} is not a model, or damaged: {one_line(error)}") from error
    if "w" not in arrays:
        raise ConfigError(f"{path} holds a subspace, which makes no predictions")
    return arrays


def _arrays(folder: Path, manifest: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the arrays of the model in a folder; none if there is no model."""
    content = read_tables(folder, (MODEL,)).get(MODEL)
    if content is None:
        return {}
    try:
        done = manifest["repetitions_done"] if MODEL in manifest["tables"] else None
        return _checked(content, manifest["data"]["d"], done)
    except DAMAGE as error:
        raise Damaged(
            f"{MODEL} of {folder} is damaged: {one_line(error)}; the command that made it writes it again"
        ) from error


def _checked(content: bytes, d: int | None, done: int | None) -> dict[str, np.ndarray]:
    """Return the arrays of a model with d attributes and some repetitions, if these numbers are known.

    Raises
    ------
    DAMAGE
        If it is no such model.
    """
    _, arrays = read_npz(io.BytesIO(content))
    lead = arrays["repetitions"].shape if "repetitions" in arrays else ()
    if len(lead) != 1:
        raise ValueError("it holds no list of repetitions")
    if d is None:
        d = arrays["c"].shape[-1] if arrays.get("c", np.empty(())).ndim else 0
    wrong = _misfit({name: array.shape for name, array in arrays.items() if name not in MODEL_ARRAYS}, d, lead)
    if wrong:
        raise ValueError(wrong)
    if done not in (None, *lead):
        raise ValueError(f"it holds {lead[0]} repetitions, and {MANIFEST} counts {done}")
    return arrays


def _model_of(entry: Entry, d: int) -> dict[str, np.ndarray] | None:
    """Return the model in an entry of the journal; None if it is none of d attributes."""
    try:
        text = entry["result"]
        # Shapes first, as `unpacked` asks for as much memory as they say.
        fits = type(entry["repetition"]) is int and not _misfit({name: text[name]["shape"] for name in text}, d)
        return unpacked(text) if fits else None
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _misfit(shapes: Mapping[str, Sequence[int]], d: int, lead: Sequence[int] = ()) -> str:
    """Return what is wrong with the shapes of regressors or subspaces, after some first axes; empty if nothing is."""
    n = shapes["V"][-1] if shapes.get("V") else 0
    needed: dict[str, tuple[int, ...]] = {"w": (d,), "b": (), "c": (d,)}
    if _FOR_PROBABILITIES & shapes.keys():
        needed |= dict.fromkeys(sorted(_FOR_PROBABILITIES), ())
    if "covariance" in shapes:
        needed |= {"mean": (d,), "covariance": (d, d)}
    if "V" in shapes:
        needed = {"V": (d, n), "c": (d,), "scale": (d,)}
    if shapes.keys() != needed.keys():
        return f"it holds {', '.join(shapes)}, and {', '.join(needed)} are needed"
    for name, shape in needed.items():
        if tuple(shapes[name]) != (*lead, *shape):
            return f"{name} has shape {tuple(shapes[name])}, and {(*lead, *shape)} is needed"
    return f"V has {n} columns, and 1 to {d} are possible" if "V" in shapes and not 1 <= n <= d else ""


def _shown(numbers: Sequence[int]) -> str:
    first, last = numbers[0], numbers[-1]
    return f"{first} to {last}" if len(numbers) == last - first + 1 else ", ".join(map(str, numbers))


@dataclass(frozen=True)
class Predictions:
    """Predictions for the rows of a table; see `budgetreg.runs.tables.PREDICTION_COLUMNS`.

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

    def columns(self) -> dict[str, list[Any]]:
        """Return the columns that are known, by name."""
        columns = zip(PREDICTION_COLUMNS, (self.values, self.probability, self.label), strict=True)
        return {name: column.tolist() for name, column in columns if column is not None}

    def as_csv(self, before: Mapping[str, Sequence[object]]) -> str:
        """Return the columns as text, after some others."""
        known = {**before, **self.columns()}
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
    from budgetreg.runs.series import read  # here, as pandas is slow to load and a run that is written needs none

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
    config = {} if alone else run_manifest(folder)["config"].get("dataset", {})
    holes = {"missing": "unavailable"} if "covariance" in learned else {}
    options = {"path": str(path), "target": target, "scale": "none", "partial": True, **holes}
    options["missing_values"] = config.get("missing_values", ())
    by_place = opener(path) is not open_libsvm and not (names and _names(learned))
    if opener(path) is open_libsvm:
        data = parse_file({**options, **_by_index(learned, dropped, path, folder), "missing": None}).load()
        columns = np.arange(data.X.shape[1])
    else:
        data = parse_file({**options, "drop": _left_out(learned, names, d, dropped, path)}).load()
        columns = _columns(learned, data, dropped, path)
    values, probabilities = np.empty(len(data.y)), np.empty(len(data.y))
    calibrated = {"share", "explained", "labels"} <= learned.keys()
    for rows in row_blocks(np.arange(len(data.y)), data.X.shape[1]):
        X = as_values(data.X).rows(rows).astype(np.float64)[:, columns]
        whole = [X] * len(learned["w"])
        if data.available is not None:
            X[~data.available[rows][:, columns]] = np.nan
            whole = [conditional_means(m, C, X) for m, C in zip(learned["mean"], learned["covariance"], strict=True)]
        with np.errstate(over="ignore", invalid="ignore"):
            each = [b + (X - c) @ w for X, w, b, c in zip(whole, *(learned[name] for name in "wbc"), strict=True)]
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
    if dropped and by_place and d == learned["w"].shape[1]:
        notes.append(
            f"{path.name}: its {d} columns are taken for those that {folder} learned from, as names are missing"
        )
    if calibrated:
        second = quoted(str(learned["labels"][1]))
        notes.append(f"probability: of {second}, by Bayes' rule if predictions are normal given the label")
    elif labelled:
        notes.append(f"{folder} was written by an earlier version, without probabilities: the sign is the label")
    if target != NO_TARGET and not np.isnan(data.y).all():
        known = results is not None and results.manifest["data"]["fingerprint"] == data.fingerprint()
        notes.append(_error(data, predictions, labelled, learned, path, known))
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
    from budgetreg.runs.series import attributes_paid, money_paid

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


def _error(data: Dataset, predictions: Predictions, labelled: bool, learned: Arrays, path: Path, known: bool) -> str:
    """Return the error on the rows that have a target, and what is known of whether they were learned from."""
    y = data.y if labelled else _as_numbers(data)
    there = ~np.isnan(data.y)
    rows = f"{np.count_nonzero(there)} rows of {path}{'' if there.all() else ' that have a target'}"
    if labelled != data.two_valued and y is data.y:
        targets = "two labels" if data.two_valued else "targets other than two labels"
        return f"the table has {targets} but the run learned {'' if labelled else 'no '}labels: no error is computed"
    if labelled and "labels" in learned and list(data.labels) != learned["labels"].tolist():
        ours, theirs = (" and ".join(map(quoted, labels)) for labels in (learned["labels"].tolist(), data.labels))
        return f"the table has the labels {theirs} but the run learned {ours}: no error is computed"
    values, label = predictions.values, predictions.label
    errors = f"mean squared error {np.square(predictions.values - y)[there].mean():.6g}"
    if labelled:
        right = np.sign(values) == data.y if label is None else label == learned["labels"][(data.y > 0).astype(int)]
        errors += f", error rate {1 - right[there].mean():.4g}"
    if known:
        return f"{errors} on the {rows}, the table that was learned from: expect more on new rows"
    return f"{errors} on the {rows}; whether any of them was learned from is not known"


def _as_numbers(data: Dataset) -> np.ndarray:
    """Return the targets of a table for a run that learned numbers: two different ones are read as labels."""
    try:
        low, high = map(float, data.labels)
    except ValueError:  # no numbers, or no labels
        return data.y
    return np.where(np.isnan(data.y), np.nan, np.where(data.y > 0, high, low))


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
        table = open_table(Request(path, target))
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
