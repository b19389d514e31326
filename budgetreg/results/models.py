"""``model.npz``: what a run has learned, and what it predicts for other examples."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from budgetreg.data.dataset import Dataset
from budgetreg.data.formats.chunks import NO_TARGET, reading, shown
from budgetreg.data.tabular import FORMATS, opener, parse_file
from budgetreg.data.values import as_values, row_blocks
from budgetreg.errors import ConfigError, DataError
from budgetreg.files.paths import regular
from budgetreg.protocol.repetitions import unpacked
from budgetreg.results.journal import read_journal
from budgetreg.results.manifest import read_tables, run_manifest
from budgetreg.results.schema import MODEL, MODEL_ARRAYS, MODELS

_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the earliest time of a ZIP file, so that equal models have equal bytes
Arrays = Mapping[str, np.ndarray]


def model_npz(models: Mapping[int, Mapping[str, Any]], names: Sequence[str], target: str) -> bytes:
    """Return the content of the file, with equal bytes for equal models.

    Parameters
    ----------
    models : mapping
        What was learned, packed as by `protocol.repetitions.packed`, by number of the repetition; at least one.
    names : sequence of str
        Names of the attributes; empty if they have none.
    target : str
        Name of the target; empty if it has none.
    """
    numbers = sorted(models)
    learned = [unpacked(models[number]) for number in numbers]
    arrays = {name: np.stack([model[name] for model in learned]) for name in learned[0]}
    arrays["repetitions"] = np.array(numbers)
    arrays |= {name: np.array(words) for name, words in (("names", list(names)), ("target", target)) if words}
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
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
    arrays = _arrays(folder)
    if not arrays:
        return {entry["repetition"]: unpacked(entry["result"]) for entry in read_journal(folder / MODELS)}
    numbers = arrays.pop("repetitions").tolist()
    learned = {name: array for name, array in arrays.items() if name not in MODEL_ARRAYS}
    return {number: {name: array[at] for name, array in learned.items()} for at, number in enumerate(numbers)}


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
        each = [b + (X - c) @ w for w, b, c in zip(learned["w"], learned["b"], learned["c"], strict=True)]
        values[rows] = np.mean(each, axis=0)
    return values, data.notes + (() if target == NO_TARGET else _errors(data, values, labelled))


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
    arrays = _arrays(folder)
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
    return arrays | {name: arrays[name][[numbers.index(repetition)]] for name in ("w", "b", "c")}


def _arrays(folder: Path) -> dict[str, np.ndarray]:
    """Return the arrays of the model in a folder; none if there is no model."""
    content = read_tables(folder, (MODEL,)).get(MODEL)
    if content is None:
        return {}
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return dict(file)


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


def _shown(numbers: Sequence[int]) -> str:
    first, last = numbers[0], numbers[-1]
    return f"{first} to {last}" if len(numbers) == last - first + 1 else ", ".join(map(str, numbers))
