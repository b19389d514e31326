"""``model.npz``: what a run has learned, for predictions of other examples."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from budgetreg.errors import ConfigError, DataError
from budgetreg.protocol.outcome import unpacked
from budgetreg.results.journal import read_journal
from budgetreg.results.manifest import read_tables, run_manifest
from budgetreg.results.schema import MODEL, MODEL_ARRAYS, MODELS

_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the earliest time of a ZIP file, so that equal models have equal bytes


@dataclass(frozen=True)
class Regressors:
    """Regressors of one run, ``b + <w, x - c>`` each.

    Attributes
    ----------
    w : ndarray of float, shape (R, d)
        Weights of the attributes as they are stored.
    b : ndarray of float, shape (R,)
        Predictions at c.
    c : ndarray of float, shape (R, d)
        Centre of the attributes.
    names : tuple of str
        Names of the attributes; empty if they have none.
    target : str
        Name of the target; empty if it has none.
    """

    w: np.ndarray
    b: np.ndarray
    c: np.ndarray
    names: tuple[str, ...]
    target: str

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the mean prediction of the regressors for examples of shape (n, d)."""
        each = [b + (X - c) @ w for w, b, c in zip(self.w, self.b, self.c, strict=True)]
        return np.mean(each, axis=0)


def model_npz(models: Mapping[int, Mapping[str, Any]], names: Sequence[str], target: str) -> bytes:
    """Return the content of the file, with equal bytes for equal models.

    Parameters
    ----------
    models : mapping
        What was learned, packed as by `protocol.outcome.packed`, by number of the repetition; at least one.
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


def read_regressors(folder: Path, repetition: int | None = None) -> Regressors:
    """Return the regressors that a run has learned.

    Parameters
    ----------
    folder : Path
        The folder of a run.
    repetition : int, optional
        The number of one repetition; all of them by default.

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
    if repetition is not None and repetition not in numbers:
        raise ConfigError(f"repetition={repetition}: {folder} has finished {_shown(numbers)}")
    chosen = slice(None) if repetition is None else [numbers.index(repetition)]
    return Regressors(
        **{name: arrays[name][chosen] for name in ("w", "b", "c")},
        names=tuple(arrays["names"].tolist()) if "names" in arrays else (),
        target=str(arrays["target"]) if "target" in arrays else "",
    )


def _arrays(folder: Path) -> dict[str, np.ndarray]:
    """Return the arrays of the model in a folder; none if there is no model."""
    content = read_tables(folder, (MODEL,)).get(MODEL)
    if content is None:
        return {}
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return dict(file)


def _shown(numbers: Sequence[int]) -> str:
    first, last = numbers[0], numbers[-1]
    return f"{first} to {last}" if len(numbers) == last - first + 1 else ", ".join(map(str, numbers))
