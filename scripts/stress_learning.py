"""Trials of `stress.py` on learning: estimators with all containers of tables, and tables of any scale."""

import datetime
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from stress_trials import Kind, TrialResult, alike, forked

from budgetreg.data.dataset import LARGEST
from budgetreg.estimators import ESTIMATORS

# Estimators learn from tables in any container as from arrays, or refuse them

_N, _D = 24, 4
_DATES = (datetime.date(2020, 1, 1), np.datetime64(3, "D"), pd.NaT)
_WORDS = ("1", "a", "", b"1")
_DOCUMENTED = ("ValueError: ", "TypeError: ", "ObservationError: ")
Way = Callable[[Any, Any, np.ndarray], Any]
Container = Callable[[np.ndarray, np.random.Generator], Any]


def _masked(X: np.ndarray, rng: np.random.Generator) -> Any:
    hidden = np.where(np.isnan(X), rng.choice([777.0, 0.0, 1e200, np.inf]), X)
    return np.ma.masked_array(hidden, mask=np.isnan(X))


def _objects(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    cells = X.astype(object)
    for row, column in np.argwhere(np.isnan(X)):
        cells[row, column] = (None, pd.NA, np.nan)[rng.integers(3)]
    return cells


def _lists(X: np.ndarray, rng: np.random.Generator) -> Any:
    missing = (None, np.ma.masked, np.nan)
    return [[missing[rng.integers(3)] if np.isnan(x) else x for x in row] for row in X]


def _duplicates(X: np.ndarray, rng: np.random.Generator) -> Any:
    rows, columns = (np.concatenate([part, part]) for part in np.nonzero(X))
    order = rng.permutation(rows.size)  # each cell is stored as two halves
    matrix = coo_array((X[rows, columns][order] / 2, (rows[order], columns[order])), shape=X.shape)
    compressed = matrix.copy().tocsr()
    compressed.data[:] = 0
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(X)))])
    by_row = order[np.argsort(rows[order], kind="stable")]
    return type(compressed)((X[rows, columns][by_row] / 2, columns[by_row], starts), shape=X.shape)


def _read_only(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    with tempfile.TemporaryFile() as file:
        mapped = np.memmap(
            file, dtype=rng.choice(["<f8", ">f8"]), mode="w+", shape=X.shape, order=rng.choice(["C", "F"])
        )
        mapped[:] = X
    mapped.flags.writeable = False
    return mapped


def _strided(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    wide = np.full((2 * X.shape[0], 3 * X.shape[1]), 1e200)
    wide[::-2, ::3] = X
    return wide[::-2, ::3]


def _cell(X: np.ndarray, rng: np.random.Generator, value: Any, kind: Any = object) -> np.ndarray:
    cells = X.astype(kind)
    cells[rng.integers(len(X)), rng.integers(X.shape[1])] = value
    return cells


def _one_column(X: np.ndarray, rng: np.random.Generator, values: Any) -> pd.DataFrame:
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.isetitem(int(rng.integers(X.shape[1])), values)
    return frame


_SAME: Mapping[str, Container] = {
    "masked": _masked,
    "masked rows": lambda X, rng: list(_masked(X, rng)),
    "objects": _objects,
    "lists": _lists,
    "frame of objects": lambda X, rng: pd.DataFrame(_objects(X, rng)),
    "nullable frame": lambda X, rng: pd.DataFrame(X).astype("Float64"),
    "categories": lambda X, rng: pd.DataFrame(X).astype("category"),
    "sparse frame": lambda X, rng: pd.DataFrame(X).astype(pd.SparseDtype(float, rng.choice([0.0, np.nan, 1.0]))),
    "sparse with duplicates": lambda X, rng: _duplicates(X, rng) if np.isfinite(X).all() else X,
    "read-only": _read_only,
    "every third column": _strided,
}
"""What has to give the numbers and the bill of the array."""

_REFUSED: Mapping[str, Container] = {
    "dates": lambda X, rng: (1e3 * np.nan_to_num(X)).astype("M8[D]"),
    "column of dates": lambda X, rng: _one_column(X, rng, pd.date_range("2020-01-01", periods=len(X))),
    "durations": lambda X, rng: (1e3 * np.nan_to_num(X)).astype("m8[s]"),
    "column of durations": lambda X, rng: _one_column(X, rng, pd.to_timedelta(np.arange(len(X)), unit="s")),
    "date": lambda X, rng: _cell(X, rng, _DATES[rng.integers(3)]),
    "duration": lambda X, rng: _cell(X, rng, np.timedelta64(3, "s")),
    "text": lambda X, rng: X.astype(rng.choice(["U", "S", "T"])),
    "word": lambda X, rng: _cell(X, rng, _WORDS[rng.integers(4)]),
    "column of text": lambda X, rng: _one_column(X, rng, [str(x) for x in range(len(X))]),
    "complex": lambda X, rng: X.astype(complex),
    "complex cell": lambda X, rng: _cell(X, rng, np.complex128(1)),
    "matrix": lambda X, rng: np.asmatrix(X),
    "huge": lambda X, rng: _cell(X, rng, rng.choice([-1, 1]) * LARGEST * 10.0 ** rng.uniform(0.1, 270), float),
    "infinite": lambda X, rng: _cell(X, rng, rng.choice([-np.inf, np.inf]), float),
    "too long for a double": lambda X, rng: _cell(X, rng, np.longdouble("1e400"), np.longdouble),
}
"""What has to be refused in one line."""

_ESTIMATORS: Mapping[str, Mapping[str, Any]] = {
    "AELR": {"k": 3, "B": 1.0, "eta": 0.1, "pilot": 0},
    "AEML": {"n_factors": 1, "pilot": 0},
    "FixedSubset": {"k": 2, "pilot": 2},
    "ImputeRidge": {"k": 2, "pilot": 2},
    "OnlineRidge": {"B": 1.0, "eta": 0.1, "pilot": 0},
    "PCA": {"n_components": 1},
    "POPCA": {"k": 2, "n_components": 1},
    "Ridge": {"B": 1.0, "pilot": 0},
    "SGDImpute": {"k": 2, "B": 1.0, "eta": 0.1, "pilot": 0},
}


def _contain(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Give a table to a random estimator in all ways, as an array and in the container of the case, and compare."""
    case = result.trial.case
    X = np.round(4 * rng.normal(size=(_N, _D))) + rng.choice([0.0, 0.5])  # so that halves are exact
    y = X.sum(axis=1) + rng.normal(size=_N)
    name = str(rng.choice(list(_ESTIMATORS)))
    fresh = ESTIMATORS[name](**_ESTIMATORS[name], scale="none")
    fitted = clone(fresh).fit(X, y)
    for table in (X, np.where(rng.random(X.shape) < 0.2, np.nan, X)):
        container = {**_SAME, **_REFUSED}[case](table, rng)
        for way in _WAYS:
            expected, seen = (
                _answer(way, fitted if way is _applied else clone(fresh), it, y) for it in (table, container)
            )
            refused, words = isinstance(seen, str), f"{way.__name__}: {fresh}: {seen}, and {expected} for an array"
            if refused and not seen.startswith(_DOCUMENTED):
                result.note("tracebacks", words)
            elif refused and "\n" in seen and "NaN" not in seen:  # scikit-learn's advice about NaN has several lines
                result.note("untold", words)
            if case in _SAME:
                same = seen == expected or (refused and isinstance(expected, str))
            else:  # a function need not be asked for the cell
                same = refused or (way is _observed and seen == expected)
            if not same:
                result.note("wrong", words)


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


def _named(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Have a random subspace estimator give frames, alone or in a Pipeline: with a name for each coordinate."""
    kinds = [name for name, kind in ESTIMATORS.items() if hasattr(kind, "transform") and f"{name}CV" not in ESTIMATORS]
    name = str(rng.choice(kinds))
    estimator = ESTIMATORS[name]()
    sizes = {"k": 4, "n_components": 2, "pilot": 2}
    estimator.set_params(**{key: size for key, size in sizes.items() if key in estimator.get_params()})
    model: Any = make_pipeline(StandardScaler(), estimator) if rng.random() < 0.5 else estimator
    X = pd.DataFrame(rng.normal(size=(120, 6)), columns=list("abcdef")).sample(frac=1, random_state=1)
    with warnings.catch_warnings(action="ignore"):
        try:
            frame = model.set_output(transform="pandas").fit(X).transform(X)
            array = model.set_output(transform="default").transform(X)
        except Exception as error:
            result.note("tracebacks", f"{model}: {error!r}")
            return
    names = [f"{name.lower()}{at}" for at in range(2)]
    same = np.array_equal(frame.to_numpy(), array)
    if list(frame.columns) != names or list(model.get_feature_names_out()) != names or not same:
        result.note("wrong", f"{model}: {list(frame.columns)}")
    if not frame.index.equals(X.index):
        result.note("wrong", f"{model}: another index")


_WAYS: tuple[Way, ...] = (_fitted, _continued, _applied, _observed)


# Tables whose values do not show their scale: nearly constant, heaped, skewed, of any unit. Each trial draws a table
# with ordinary attributes and others of its case. Its mean error in ten random splits is compared with the mean's.

_LARGEST = 1.2
"""Mean error, relative to that of predicting the mean."""

_ROWS, _WIDTH, _WIDE = 126, 12, 310
_LEARNERS = ("aemr", "aeml", "impute_ridge", "impute_ridge algo.impute=iterative", "fixed_subset")

Column = Callable[[np.random.Generator], np.ndarray]


def _heap(rng: np.random.Generator, at: float, within: float) -> np.ndarray:
    """Return values near one value, of which 1 to 5 % are others."""
    others = rng.random(_ROWS) < rng.uniform(0.01, 0.05)
    return at + np.where(others, rng.normal(size=_ROWS), within * rng.normal(size=_ROWS))


def _lognormal(rng: np.random.Generator) -> np.ndarray:
    return np.exp(rng.uniform(2, 8) * rng.normal(size=_ROWS))


_VALUES: Mapping[str, Column] = {
    "rounding": lambda rng: _heap(rng, 0.0, 10.0 ** rng.uniform(-13, -6)),
    "nearly constant": lambda rng: _heap(rng, 1.0, 1e-9),
    "equal": lambda rng: _heap(rng, float(rng.integers(6)), 0.0),
    "skewed": _lognormal,
    "any unit": lambda rng: 10.0 ** rng.uniform(-19, 9) * rng.normal(size=_ROWS),
}


def _mixed(rng: np.random.Generator) -> np.ndarray:
    return list(_VALUES.values())[rng.integers(len(_VALUES))](rng)


_SPREADS: Mapping[str, Column] = {**_VALUES, "mixed": _mixed, "wide": _mixed}
"""By case, how to draw an attribute; the table of "wide" has many attributes, and learners see few values of each."""


def _learn(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Run a random learner on a table of the case."""
    wide = result.trial.case == "wide"
    width = _WIDE if wide else _WIDTH
    factors = rng.normal(size=(_ROWS, 2))
    X = factors @ rng.normal(size=(2, width)) + rng.normal(size=(_ROWS, width))
    y = factors @ [1, 0.6] + 0.5 * rng.normal(size=_ROWS)
    for at in rng.permutation(width)[: rng.integers(1, width - 2)]:
        X[:, at] = _SPREADS[result.trial.case](rng)
    np.savez(folder / "table.npz", X=X, y=y)
    # Iterative imputation refuses many attributes.
    learners = [name for name in _LEARNERS if not wide or "iterative" not in name]
    learner, k = learners[rng.integers(len(learners))], rng.choice([3, 4, _WIDTH])
    words = f"run dataset=file dataset.path=table.npz algo={learner} k={k} repetitions=10 checkpoints=1 out=out"
    answer = forked([*words.split(), "backend=sequential"], folder)
    result.judge(words, answer, (0,))
    if not result.faults:
        error = pd.read_csv(folder / "out" / "curves.csv")["test_relative"].mean()
        if not error <= _LARGEST:
            result.note("wrong", f"{words}: mean error {error:.3g}")
        elif "radii" in answer.err:
            result.note("untold", f"{words}: {answer.err[-2000:]}")


KINDS = {
    "estimator": Kind(
        *("estimators", 162, lambda place, count: alike((*_SAME, *_REFUSED, "frames of coordinates"))),
        {**dict.fromkeys((*_SAME, *_REFUSED), _contain), "frames of coordinates": _named},
    ),
    "spread": Kind("spreads", 42, lambda place, count: alike(_SPREADS), _learn),
}
