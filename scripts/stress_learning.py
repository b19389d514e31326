"""Trials of `stress.py` on learning: estimators with all containers of tables, and tables of any scale."""

import datetime
import tempfile
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from stress_trials import DATA, Kind, Trial, alike

from budgetreg.data.dataset import LARGEST
from budgetreg.estimators import ESTIMATORS

# Estimators learn from tables in any container as from arrays, or refuse them

_N, _D = 24, 4
Way = Callable[[Any, Any, np.ndarray], Any]
Container = Callable[[np.ndarray, Trial], Any]


def _masked(X: np.ndarray, trial: Trial) -> Any:
    return np.ma.masked_array(np.where(np.isnan(X), trial.pick((777.0, 0.0, 1e200, np.inf)), X), mask=np.isnan(X))


def _objects(X: np.ndarray, trial: Trial) -> np.ndarray:
    cells = X.astype(object)
    for row, column in np.argwhere(np.isnan(X)):
        cells[row, column] = trial.pick((None, pd.NA, np.nan))
    return cells


def _lists(X: np.ndarray, trial: Trial) -> Any:
    return [[trial.pick((None, np.ma.masked, np.nan)) if np.isnan(x) else x for x in row] for row in X]


def _duplicates(X: np.ndarray, trial: Trial) -> Any:
    """Return a sparse array that stores each cell as two halves, the last column first; an array if values miss."""
    if not np.isfinite(X).all():
        return X
    halves = csr_array(X[:, ::-1] / 2)
    columns = np.repeat(X.shape[1] - 1 - halves.indices, 2)
    return csr_array((np.repeat(halves.data, 2), columns, 2 * halves.indptr), shape=X.shape)


def _read_only(X: np.ndarray, trial: Trial) -> np.ndarray:
    with tempfile.TemporaryFile() as file:
        mapped = np.memmap(file, trial.pick(("<f8", ">f8")), "w+", shape=X.shape, order=trial.pick(("C", "F")))
        mapped[:] = X
    mapped.flags.writeable = False
    return mapped


def _strided(X: np.ndarray, trial: Trial) -> np.ndarray:
    wide = np.full((2 * X.shape[0], 3 * X.shape[1]), 1e200)
    wide[::-2, ::3] = X
    return wide[::-2, ::3]


def _cell(value: Callable[[Trial], Any], kind: Any = object) -> Container:
    """Return an array with an odd cell."""

    def contain(X: np.ndarray, trial: Trial) -> np.ndarray:
        cells = X.astype(kind)
        cells[trial.rng.integers(len(X)), trial.rng.integers(X.shape[1])] = value(trial)
        return cells

    return contain


def _column(values: Any) -> Container:
    """Return a frame with an odd column."""

    def contain(X: np.ndarray, trial: Trial) -> pd.DataFrame:
        frame = pd.DataFrame(X, columns=list("abcd"))
        frame.isetitem(int(trial.rng.integers(X.shape[1])), values)
        return frame

    return contain


_DATES, _WORDS = (datetime.date(2020, 1, 1), np.datetime64(3, "D"), pd.NaT), ("1", "a", "", b"1")
_SAME: Mapping[str, Container] = {
    "masked": _masked,
    "masked rows": lambda X, trial: list(_masked(X, trial)),
    "objects": _objects,
    "lists": _lists,
    "frame of objects": lambda X, trial: pd.DataFrame(_objects(X, trial)),
    "nullable frame": lambda X, trial: pd.DataFrame(X).astype("Float64"),
    "categories": lambda X, trial: pd.DataFrame(X).astype("category"),
    "sparse frame": lambda X, trial: pd.DataFrame(X).astype(pd.SparseDtype(float, trial.pick((0.0, np.nan, 1.0)))),
    "sparse with duplicates": _duplicates,
    "read-only": _read_only,
    "every third column": _strided,
}
"""What has to give the numbers and the bill of the array."""

_REFUSED: Mapping[str, Container] = {
    "dates": lambda X, trial: (1e3 * np.nan_to_num(X)).astype("M8[D]"),
    "column of dates": _column(pd.date_range("2020-01-01", periods=_N)),
    "durations": lambda X, trial: (1e3 * np.nan_to_num(X)).astype("m8[s]"),
    "column of durations": _column(pd.to_timedelta(np.arange(_N), unit="s")),
    "date": _cell(lambda trial: trial.pick(_DATES)),
    "duration": _cell(lambda trial: np.timedelta64(3, "s")),
    "text": lambda X, trial: X.astype(trial.pick(("U", "S", "T"))),
    "word": _cell(lambda trial: trial.pick(_WORDS)),
    "column of text": _column([str(x) for x in range(_N)]),
    "complex": lambda X, trial: X.astype(complex),
    "complex cell": _cell(lambda trial: np.complex128(1)),
    "matrix": lambda X, trial: np.asmatrix(X),
    "huge": _cell(lambda trial: trial.pick((-1, 1)) * LARGEST * 10.0 ** trial.rng.uniform(0.1, 270), float),
    "infinite": _cell(lambda trial: trial.pick((-np.inf, np.inf)), float),
    "too long for a double": _cell(lambda trial: np.longdouble("1e400"), np.longdouble),
}
"""What has to be refused in one line."""


def _contain(trial: Trial) -> None:
    """Give a table to a random estimator in all ways, as an array and in the container of the case, and compare."""
    case, rng = trial.case, trial.rng
    X = np.round(4 * rng.normal(size=(_N, _D))) + trial.pick((0.0, 0.5))  # so that halves are exact
    y = X.sum(axis=1) + rng.normal(size=_N)
    name = trial.pick(list(DATA["estimator"]))
    fresh = ESTIMATORS[name](**DATA["estimator"][name], scale="none")
    fitted = clone(fresh).fit(X, y)
    for table in (X, np.where(rng.random(X.shape) < 0.2, np.nan, X)):
        container = {**_SAME, **_REFUSED}[case](table, trial)
        for way in _WAYS:
            expected, seen = (
                _answer(way, fitted if way is _applied else clone(fresh), it, y) for it in (table, container)
            )
            refused, words = isinstance(seen, str), f"{way.__name__}: {fresh}: {seen}, and {expected} for an array"
            if refused and not seen.startswith(("ValueError: ", "TypeError: ", "ObservationError: ")):
                trial.note("tracebacks", words)
            elif refused and "\n" in seen and "NaN" not in seen:  # scikit-learn's advice about NaN has several lines
                trial.note("untold", words)
            if case in _SAME:
                same = seen == expected or (refused and isinstance(expected, str))
            else:  # a function need not be asked for the cell
                same = refused or (way is _observed and seen == expected)
            if not same:
                trial.note("wrong", words)


def _answer(way: Way, model: Any, table: Any, y: np.ndarray) -> Any:
    """Return what a model learned or answers, or what was raised."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return way(model, table, y)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _learned(model: Any) -> tuple[Any, ...]:
    """Return all numbers of a model, with its bill."""
    names = ("coef_", "intercept_", "components_", "covariance_")
    return model.attributes_seen_, *(np.asarray(getattr(model, name, None)).tobytes() for name in names)


def _fitted(model: Any, table: Any, y: np.ndarray) -> Any:
    return _learned(model.fit(table, y))


def _continued(model: Any, table: Any, y: np.ndarray) -> Any:
    return _learned(model.partial_fit(table, y)) if hasattr(model, "partial_fit") else "ValueError: no such method"


def _applied(model: Any, table: Any, y: np.ndarray) -> Any:
    return (model.predict if hasattr(model, "predict") else model.transform)(table).tobytes()


def _observed(model: Any, table: Any, y: np.ndarray) -> Any:
    """Fit to a function that returns cells as the container has them."""
    cells = table.toarray() if hasattr(table, "toarray") else table

    def observe(example: int, attributes: np.ndarray) -> Any:
        row = cells.iloc[example] if hasattr(cells, "iloc") else cells[example]
        if isinstance(row, list):
            return [row[at] for at in attributes]
        return row.iloc[attributes] if hasattr(row, "iloc") else row[attributes]

    return _learned(model.fit(observe, y=y, n_features=_D))


_WAYS: tuple[Way, ...] = (_fitted, _continued, _applied, _observed)


def _named(trial: Trial) -> None:
    """Have a random subspace estimator give frames, alone or in a Pipeline: with a name for each coordinate."""
    name = trial.pick(
        [name for name, kind in ESTIMATORS.items() if hasattr(kind, "transform") and f"{name}CV" not in ESTIMATORS]
    )
    estimator = ESTIMATORS[name]()
    sizes = {"k": 4, "n_components": 2, "pilot": 2}
    estimator.set_params(**{key: size for key, size in sizes.items() if key in estimator.get_params()})
    model: Any = make_pipeline(StandardScaler(), estimator) if trial.pick((True, False)) else estimator
    X = pd.DataFrame(trial.rng.normal(size=(120, 6)), columns=list("abcdef")).sample(frac=1, random_state=1)
    with warnings.catch_warnings(action="ignore"):
        frame = model.set_output(transform="pandas").fit(X).transform(X)
        array = model.set_output(transform="default").transform(X)
    names = [f"{name.lower()}{at}" for at in range(2)]
    right = list(frame.columns) == list(model.get_feature_names_out()) == names and frame.index.equals(X.index)
    trial.expect(right and np.array_equal(frame.to_numpy(), array), f"{model}: {list(frame.columns)} or another index")


# Tables whose values do not show their scale: nearly constant, heaped, skewed, of any unit. Each trial draws a table
# with ordinary attributes and others of its case. Its mean error in ten random splits is compared with the mean's.

_LARGEST = 1.2  # mean error, relative to that of predicting the mean
_ROWS, _WIDTH, _WIDE = 126, 12, 310


def _heap(rng: np.random.Generator, at: float, within: float) -> np.ndarray:
    """Return values near one value, of which 1 to 5 % are others."""
    others = rng.random(_ROWS) < rng.uniform(0.01, 0.05)
    return at + np.where(others, rng.normal(size=_ROWS), within * rng.normal(size=_ROWS))


_COLUMNS: Mapping[str, Callable[[np.random.Generator], np.ndarray]] = {
    "rounding": lambda rng: _heap(rng, 0.0, 10.0 ** rng.uniform(-13, -6)),
    "nearly constant": lambda rng: _heap(rng, 1.0, 1e-9),
    "equal": lambda rng: _heap(rng, float(rng.integers(6)), 0.0),
    "skewed": lambda rng: np.exp(rng.uniform(2, 8) * rng.normal(size=_ROWS)),
    "any unit": lambda rng: 10.0 ** rng.uniform(-19, 9) * rng.normal(size=_ROWS),
}
"""How to draw an attribute; "mixed" and "wide" have all kinds, "wide" so many that few values of each are seen."""


def _learn(trial: Trial) -> None:
    """Run a random learner on a table of the case."""
    rng, wide = trial.rng, trial.case == "wide"
    width = _WIDE if wide else _WIDTH
    factors = rng.normal(size=(_ROWS, 2))
    X = factors @ rng.normal(size=(2, width)) + rng.normal(size=(_ROWS, width))
    y = factors @ [1, 0.6] + 0.5 * rng.normal(size=_ROWS)
    for at in rng.permutation(width)[: rng.integers(1, width - 2)]:
        X[:, at] = _COLUMNS.get(trial.case, trial.pick(list(_COLUMNS.values())))(rng)
    np.savez(trial.folder / "table.npz", X=X, y=y)
    # Iterative imputation refuses many attributes.
    learners = [name for name in DATA["spread"]["learners"] if not wide or "iterative" not in name]
    line = DATA["spread"]["run"].format(algo=trial.pick(learners), k=trial.pick((3, 4, _WIDTH)))
    answer = trial.run(line, (0,))
    if not trial.faults:
        error = pd.read_csv(trial.folder / "out" / "curves.csv")["test_relative"].mean()
        trial.expect(error <= _LARGEST, f"{line}: mean error {error:.3g}")
        trial.expect("radii" not in answer.err, f"{line}: {answer.err[-2000:]}", "untold")


KINDS = {
    "estimator": Kind(
        *(162, lambda place, count: alike((*_SAME, *_REFUSED, "frames of coordinates"))),
        {**dict.fromkeys((*_SAME, *_REFUSED), _contain), "frames of coordinates": _named},
    ),
    "spread": Kind(42, lambda place, count: alike((*_COLUMNS, "mixed", "wide")), _learn),
}
