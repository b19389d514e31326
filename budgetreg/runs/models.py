"""``model.npz``: what a run has learned, and what it predicts for the rows of another table."""

import base64
import io
import zipfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from budgetreg.algorithms.conditional import conditional_means
from budgetreg.common.errors import ConfigError, DataError, nearest, quoted
from budgetreg.common.files import Damaged, content_of_regular, regular
from budgetreg.common.notices import plural, say
from budgetreg.config.nested import Tree, number_ranges
from budgetreg.data.attributes import UNIT
from budgetreg.data.dataset import Dataset, as_values, positions, row_blocks
from budgetreg.data.file import CODING, FORMATS, opener, parse_file
from budgetreg.data.formats import DAMAGE, first_index, open_libsvm, read_npz
from budgetreg.data.registry import ALL
from budgetreg.data.tables import NO_TARGET, ChunkedTable, Request, data_row, one_line, reading, shown
from budgetreg.protocol.prediction import explained_of_rows, probability
from budgetreg.runs.journal import read_journal
from budgetreg.runs.manifest import read_tables, run_manifest
from budgetreg.runs.tables import MODEL, MODEL_ARRAYS, MODELS, PREDICTION_COLUMNS, as_csv

if TYPE_CHECKING:
    from budgetreg.runs.series import Results


_BYTES = "float64"  # little-endian in base64, which keeps every bit in less space than digits
_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the earliest time of a ZIP file, so that equal models have equal bytes

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
    arrays = {name: np.stack([model[name] for model in learned]) for name in learned[0]}
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
    arrays = _of_run(folder)
    if not arrays:
        return journaled_models(folder)
    numbers = arrays.pop("repetitions").tolist()
    learned = {name: array for name, array in arrays.items() if name not in MODEL_ARRAYS}
    return {number: {name: array[at] for name, array in learned.items()} for at, number in enumerate(numbers)}


def journaled_models(folder: Path) -> dict[int, dict[str, np.ndarray]]:
    """Return what a run has learned by now, by number of the repetition."""
    return {entry["repetition"]: unpacked(entry["result"]) for entry in read_journal(folder / MODELS)}


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
    """Return the regressors that a run has learned, see `REGRESSOR_ARRAYS`: of all repetitions or of one.

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
    arrays = _of_run(folder)
    if not arrays:
        why = "the command that made it writes it again" if done else "nothing is finished"
        raise DataError(f"{folder} holds no {MODEL}: {why}")
    if "w" not in arrays:
        raise ConfigError(f"{folder}: {manifest['algo']} learned a subspace, which makes no predictions")
    numbers = arrays["repetitions"].tolist()
    if repetition is None:
        return arrays
    if repetition not in numbers:
        which = "repetition" if len(numbers) == 1 else "repetitions"
        raise ConfigError(f"repetition={repetition}: {folder} has the {which} {number_ranges(numbers)}")
    kept = [name for name in arrays if name not in MODEL_ARRAYS]
    return arrays | {name: arrays[name][[numbers.index(repetition)]] for name in kept}


def read_regressor_file(path: Path) -> Arrays:
    """Return the regressor in a file ``model.npz`` that stands alone, see `REGRESSOR_ARRAYS`.

    Raises
    ------
    ConfigError
        If it holds a subspace.
    DataError
        If the file cannot be read, or is no model.
    """
    with reading(path):
        content = content_of_regular(path)
    try:
        arrays = read_npz(io.BytesIO(content))[1]
        if "V" in arrays:
            raise ConfigError(f"{path} holds a subspace, which makes no predictions")
        shapes = [arrays[name].shape for name in "wbc" if name in arrays]
        if len(shapes) < 3 or shapes[0] != shapes[2] or shapes[0][:1] != shapes[1]:
            raise ValueError("it needs weights w and a centre c of shape (R, d), and intercepts b of shape (R,)")
    except DAMAGE as error:
        raise Damaged(f"{path} is not a model, or damaged: {one_line(error)}") from error
    return arrays


def _of_run(folder: Path) -> dict[str, np.ndarray]:
    """Return the arrays of the model in a folder; none if there is no model."""
    content = read_tables(folder, (MODEL,)).get(MODEL)
    try:
        return {} if content is None else read_npz(io.BytesIO(content))[1]
    except DAMAGE as error:  # a manifest may hold no digests
        raise Damaged(
            f"{MODEL} of {folder} is damaged: {one_line(error)}; the command that made it writes it again"
        ) from error


@dataclass(frozen=True)
class Predictions:
    """Predictions for the rows of a table.

    Attributes
    ----------
    columns : mapping of str to list
        Those of `budgetreg.runs.tables.PREDICTION_COLUMNS` that are known, with a value for each row.
    notes : tuple of str
        Which models predict and what they paid for, how the table was read, and the error if it has targets.
    """

    columns: Mapping[str, list[Any]]
    notes: tuple[str, ...]

    def as_csv(self, before: Mapping[str, Sequence[object]]) -> bytes:
        """Return the columns as a CSV file, after some others."""
        columns = {**before, **self.columns}
        return as_csv(columns, (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)))


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
        ``dataset.drop`` left out. With ``predict_k``, columns without a weight need not be there if they have names,
        and may have missing values.
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
    if alone and repetition is not None:
        raise ConfigError(f"repetition={repetition}: {folder} holds one model")
    learned = read_regressor_file(folder) if alone else read_regressors(folder, repetition)
    with reading(path):
        if not path.is_dir():
            regular(path)
    if opener(path) is None:
        raise ConfigError(f"{path}: a table ends in {', '.join(FORMATS)} (text also compressed), or is a folder")
    results = None if alone else read(folder)
    manifest = {} if results is None else results.manifest
    try:
        data, columns, by_place = _table_for(learned, manifest, path, folder)
    except DataError:
        fewer = _of_weights(learned, manifest, path)
        if fewer is None:
            raise
        learned, manifest = fewer
        data, columns, by_place = _table_for(learned, manifest, path, folder)
    values, probabilities = _applied(learned, data, columns)
    if not np.isfinite(values).all():
        first = data_row(int(np.flatnonzero(~np.isfinite(values))[0]))
        raise DataError(
            f"{path}: {first}: the prediction of {folder} overflows: its model or this row has values "
            "that are too large"
        )
    label = None if probabilities is None else learned["labels"][(probabilities > 0.5).astype(int)]
    notes = [] if results is None else [_models_used(results, repetition)]
    # A model of numbers takes two values for numbers, too, see `_as_numbers`.
    notes += [note for note in data.notes if "labels" in learned or not note.startswith(CODING)]
    if by_place:
        notes.append(
            f"{path.name}: its {columns.size} columns are taken for those that {folder} learned from, as names are "
            "missing"
        )
    if probabilities is not None:
        second = quoted(str(learned["labels"][1]))
        notes.append(f"probability: of {second}, by Bayes' rule if predictions are normal given the label")
    if data.target != NO_TARGET and not np.isnan(data.y).all():
        # Those of ranges and of groups follow that of the table.
        learned_from = str(manifest.get("data", {}).get("fingerprint"))
        known = f"{learned_from}-".startswith(f"{data.fingerprint()}-")
        notes.append(_error(data, values, label, learned, path, known))
    columns_of_rows = zip(PREDICTION_COLUMNS, (values, probabilities, label), strict=True)
    known_columns = {name: column.tolist() for name, column in columns_of_rows if column is not None}
    return Predictions(known_columns, tuple(notes))


def _of_weights(learned: Arrays, manifest: Tree, path: Path) -> tuple[Arrays, Tree] | None:
    """Return a model and a manifest as if the attributes without a weight had been left out.

    None if there are no such attributes, the run had no ``predict_k``, or the columns of the table are not known.
    """
    seen, dropped = learned["w"].any(axis=0), manifest.get("dropped", ())
    limited = manifest.get("config", {}).get("predict_k") is not None
    if not limited or not seen.any() or seen.all() or opener(path) is open_libsvm:
        return None
    _, names, d = _target(path, str(learned.get("target", "")))
    if not (names and _names(learned, names)) and d != seen.size + len(dropped):
        return None
    places = positions(seen.size, dropped)
    unseen = [(places[i], "") for i in np.flatnonzero(~seen).tolist()]
    by_attribute = {name: learned[name][..., seen] for name in ("w", "c", "names") if name in learned}
    return {**learned, **by_attribute}, {**manifest, "dropped": sorted([*map(tuple, dropped), *unseen])}


def _applied(learned: Arrays, data: Dataset, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the means over the models of predictions, and of probabilities if the target has two labels."""
    values = np.empty(len(data.y))
    probabilities = np.empty(len(data.y)) if "labels" in learned else None
    for rows in row_blocks(np.arange(len(data.y)), data.X.shape[1]):
        X = as_values(data.X).rows(rows).astype(np.float64)[:, columns]
        whole, explained = [X] * len(learned["w"]), list(learned.get("explained", ()))
        if data.available is not None:
            X[~data.available[rows][:, columns]] = np.nan
            whole = [conditional_means(m, C, X) for m, C in zip(learned["mean"], learned["covariance"], strict=True)]
            given = zip(explained, learned["covariance"], learned["w"], strict=False)
            explained = [explained_of_rows(share, C, w, X) for share, C, w in given]
        with np.errstate(over="ignore", invalid="ignore"):
            each = [b + (X - c) @ w for X, w, b, c in zip(whole, *(learned[name] for name in "wbc"), strict=True)]
            values[rows] = np.mean(each, axis=0)
            if probabilities is not None:
                each = list(map(probability, each, learned["share"].tolist(), explained))
                probabilities[rows] = np.mean(each, axis=0)
    return values, probabilities


def _models_used(results: "Results", repetition: int | None) -> str:
    """Return which models predict, and what was paid for them."""
    from budgetreg.runs.series import run_paid

    paid, money = run_paid(results, repetition)
    asked, dataset = results.manifest["repetitions"], results.manifest["config"].get("dataset", {})
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


def _error(
    data: Dataset, values: np.ndarray, label: np.ndarray | None, learned: Arrays, path: Path, known: bool
) -> str:
    """Return the error on the rows that have a target, and what is known of whether they were learned from."""
    labelled = "labels" in learned
    y = data.y if labelled else _as_numbers(data)
    there = ~np.isnan(data.y)
    n = int(there.sum())
    having = "" if there.all() else " that has a target" if n == 1 else " that have a target"
    rows = f"{plural(n, 'row')} of {path}{having}"
    if labelled != data.two_valued and y is data.y:
        targets = "two labels" if data.two_valued else "no two labels"
        return f"the table has {targets} but the run learned {'' if labelled else 'no '}labels: no error is computed"
    if labelled and list(data.labels) != learned["labels"].tolist():
        ours, theirs = (" and ".join(map(quoted, labels)) for labels in (learned["labels"].tolist(), data.labels))
        return f"the table has the labels {theirs} but the run learned {ours}: no error is computed"
    errors = f"mean squared error {np.square(values - y)[there].mean():.6g}"
    if labelled:
        right = label == learned["labels"][(data.y > 0).astype(int)]
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


def _table_for(
    learned: Arrays, manifest: Mapping[str, Any], path: Path, folder: Path
) -> tuple[Dataset, np.ndarray, bool]:
    """Read a table for a model.

    Returns
    -------
    Dataset
        The table.
    ndarray of int
        The columns that are the attributes, in the order in which they were learned.
    bool
        Whether columns that the run left out are taken to be missing, although no names confirm it.
    """
    dropped = manifest.get("dropped", ())
    target, names, d = _target(path, str(learned.get("target", "")))
    options = {
        "path": str(path),
        "target": target,
        "scale": "none",
        "partial": True,
        "missing": "unavailable" if "covariance" in learned else None,
        "missing_values": manifest.get("config", {}).get("dataset", {}).get("missing_values", ()),
        "labels": learned["labels"].tolist() if "labels" in learned else (),
    }
    if opener(path) is open_libsvm:
        data = parse_file({**options, **_by_index(learned, dropped, path, folder), "missing": None}).load()
        return data, np.arange(data.X.shape[1]), False
    n_learned = learned["w"].shape[1]
    needed = _names(learned, names) if names else []  # if there are none, columns are matched by their places
    drop: list[str | int] = []
    if needed:
        drop += _not_learned(needed, names, path)
    elif d == n_learned + len(dropped):
        drop += [at + 1 for at, _ in dropped]
    try:
        data = parse_file({**options, "drop": drop}).load()
    except DataError as error:
        if not names or not target:
            raise
        try:  # predictions need no target
            data = parse_file({**options, "target": NO_TARGET, "drop": [*drop, target]}).load()
        except DataError:
            raise error from None
        data = replace(data, notes=(*data.notes, f"{error}: no error is computed"))
    if needed:
        place = {name: column for column, name in enumerate(data.names)}
        return data, np.array([place[name] for name in needed]), False
    if data.X.shape[1] != n_learned:
        raise DataError(
            f"{path} has {data.X.shape[1]} attributes and the run learned from {n_learned}: without names in both "
            "tables, their columns must be the same in the same order"
        )
    return data, np.arange(n_learned), bool(dropped) and d == n_learned


def _target(path: Path, named: str) -> tuple[str | None, Sequence[str], int]:
    """Return the target to pass to `parse_file`, `NO_TARGET` if the table has none, and names and number of columns."""
    whole = _opened(path, NO_TARGET)
    # A table without names has a target of another name, or of none.
    tried = [named] if whole is not None and whole.names else [named or None, None]
    for target in [*tried, NO_TARGET]:
        table = _opened(path, target)
        if table is not None:
            return target, table.names, table.d - len(table.dropped)
    return NO_TARGET, (), 0


def _opened(path: Path, target: str | None) -> ChunkedTable | None:
    """Return a table; None if it has no such target."""
    open_table = opener(path)
    assert open_table is not None
    try:
        return open_table(Request(path, target, partial=True))
    except (DataError, OSError):
        return None


def _names(learned: Arrays, there: Collection[str]) -> list[str]:
    """Return the names of the attributes; of a LIBSVM file these are the indices, for tables that have all of them."""
    if "names" in learned or "indices" not in learned:
        return learned["names"].tolist() if "names" in learned else []
    indices = list(map(str, learned["indices"].tolist()))
    return indices if set(indices) <= set(there) else []


def _by_index(
    learned: Arrays, dropped: Sequence[tuple[int, str]], path: Path, folder: Path
) -> dict[str, tuple[int, int] | list[int]]:
    """Return which indices of a LIBSVM file are columns, first and last, and which of these are left out.

    A model of a table of another format has none: its columns count from the first index of the file.
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


def _not_learned(needed: Sequence[str], names: Sequence[str], path: Path) -> list[str]:
    """Return the names of the columns of a table that the run did not learn from."""
    there = set(names)
    missing = [name for name in needed if name not in there]
    if missing:
        hint = nearest(missing[0], names)
        raise DataError(
            f"{path}: there is no column {shown(list(map(repr, missing)))}{hint}, which the run learned from"
        )
    return sorted(there - set(needed))
