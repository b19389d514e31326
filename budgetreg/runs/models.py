"""``model.npz``: what a run has learned."""

import base64
import io
import math
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np

from budgetreg.data.formats.chunks import one_line, reading
from budgetreg.data.npz import DAMAGE, Header, members, read_array, read_header
from budgetreg.errors import ConfigError, DataError
from budgetreg.files import Damaged, content_of_regular
from budgetreg.runs.journal import Entry, read_journal
from budgetreg.runs.manifest import read_tables, run_manifest
from budgetreg.runs.schema import MANIFEST, MODEL, MODEL_ARRAYS, MODELS

_FOR_PROBABILITIES = {"share", "explained"}
_BYTES = "float64"  # little-endian in base64, which keeps every bit in less space than digits
_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the earliest time of a ZIP file, so that equal models have equal bytes
Arrays = Mapping[str, np.ndarray]
_T = TypeVar("_T")


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
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = members(archive)
        headers = {name: _of(archive, info, read_header) for name, info in files.items()}
        if d is None and "c" in headers:
            d = headers["c"].shape[-1] if headers["c"].shape else 0
        _check_headers(headers, d or 0)
        arrays = {name: _of(archive, info, read_array) for name, info in files.items()}
        _check_values(arrays, done)
    return arrays


def _model_of(entry: Entry, d: int) -> dict[str, np.ndarray] | None:
    """Return the model in an entry of the journal; None if it is none of d attributes."""
    try:
        text = entry["result"]
        # Shapes first, as `unpacked` asks for as much memory as they say.
        if type(entry["repetition"]) is not int or _misfit({name: text[name]["shape"] for name in text}, d):
            return None
        arrays = unpacked(text)
        possible = all(np.isfinite(array).all() for array in arrays.values()) and _are_shares(arrays)
        return arrays if possible else None
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _are_shares(arrays: Arrays) -> bool:
    """Return whether what probabilities are computed from, if it is there, is possible."""
    if "share" not in arrays:
        return True
    share, explained = arrays["share"], arrays["explained"]
    return bool(((share > 0) & (share < 1) & (explained >= 0) & (explained < 1)).all())


def _misfit(shapes: Mapping[str, Sequence[int]], d: int, lead: Sequence[int] = ()) -> str:
    """Return what is wrong with the shapes of regressors or subspaces, after some first axes; empty if nothing is."""
    n = shapes["V"][-1] if shapes.get("V") else 0
    needed: dict[str, tuple[int, ...]] = {"w": (d,), "b": (), "c": (d,)}
    if _FOR_PROBABILITIES & shapes.keys():
        needed |= dict.fromkeys(sorted(_FOR_PROBABILITIES), ())
    if "V" in shapes:
        needed = {"V": (d, n), "c": (d,), "scale": (d,)}
    if shapes.keys() != needed.keys():
        return f"it holds {', '.join(shapes)}, and {', '.join(needed)} are needed"
    for name, shape in needed.items():
        if tuple(shapes[name]) != (*lead, *shape):
            return f"{name} has shape {tuple(shapes[name])}, and {(*lead, *shape)} is needed"
    return f"V has {n} columns, and 1 to {d} are possible" if "V" in shapes and not 1 <= n <= d else ""


def _of(archive: zipfile.ZipFile, info: zipfile.ZipInfo, read: Callable[[IO[bytes], int], _T]) -> _T:
    with archive.open(info) as file:
        return read(file, info.file_size)


def _check_headers(headers: Mapping[str, Header], d: int) -> None:
    """Raise a ValueError if arrays of these shapes and types are no model, before any of them takes memory."""
    shapes = {name: header.shape for name, header in headers.items()}
    lead = shapes.get("repetitions", ())
    if len(lead) != 1:
        raise ValueError("it holds no list of repetitions")
    wrong = _misfit({name: shape for name, shape in shapes.items() if name not in MODEL_ARRAYS}, d, lead)
    if wrong:
        raise ValueError(wrong)
    others = {
        "repetitions": ("i", lead),
        "names": ("U", (d,)),
        "target": ("U", ()),
        "labels": ("U", (2,)),
        "indices": ("i", (d,)),
        "left_out": ("i", (math.prod(shapes.get("left_out", ())),)),
    }
    for name, header in headers.items():
        if (header.dtype.kind, header.shape) != others.get(name, ("f", header.shape)):
            raise ValueError(f"{name} has shape {header.shape} and type {header.dtype}")


def _check_values(arrays: Arrays, done: int | None) -> None:
    """Raise a ValueError if the values of arrays are no model, or not of as many repetitions as were finished."""
    numbers, names = arrays["repetitions"].tolist(), arrays.get("names", np.empty(0)).tolist()
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name} holds numbers that are not finite")
    if len(set(names)) < len(names):
        raise ValueError("two attributes have the same name")
    columns = [*arrays.get("indices", np.empty(0)), *arrays.get("left_out", np.empty(0))]
    if (
        len(set(columns)) < len(columns)
        or min(columns, default=0) < 0
        or (np.diff(arrays.get("indices", [])) < 0).any()
    ):
        raise ValueError("the indices of its columns do not increase, or repeat")
    if "labels" in arrays and arrays["labels"][0] == arrays["labels"][1]:
        raise ValueError("the two labels are the same")
    if not _are_shares(arrays):
        raise ValueError("share and explained must be between 0 and 1")
    if len(set(numbers)) < len(numbers) or min(numbers, default=-1) < 0:
        raise ValueError("the numbers of repetitions are not 0 or more, each once")
    if done not in (None, len(numbers)):
        raise ValueError(f"it holds {len(numbers)} repetitions, and {MANIFEST} counts {done}")


def _shown(numbers: Sequence[int]) -> str:
    first, last = numbers[0], numbers[-1]
    return f"{first} to {last}" if len(numbers) == last - first + 1 else ", ".join(map(str, numbers))
