"""What a learner from outside this tool does with what a total pays for: scikit-learn's gradient boosting.

It learns from as many full rows as the total pays for, and from k random attributes of each of more rows, the others
being NaN. Repetitions have the splits of the runs, so that errors are compared in pairs. Nothing is tuned.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from budgetreg.analysis.comparisons import Candidate, ResampledCurves
from budgetreg.analysis.intervals import Estimate, difference, mean_error
from budgetreg.common.streams import generator
from budgetreg.config.options import EVERY
from budgetreg.data.dataset import Dataset, as_values
from budgetreg.data.registry import load
from budgetreg.protocol.plan import Plan
from budgetreg.protocol.split import completed, parts_of
from budgetreg.runs.manifest import PROMISED
from budgetreg.runs.series import Series
from budgetreg.runs.tables import COST

NAME = "boosting"
_MEASURE = "test_relative"
_ENDS = ("", "_low", "_high")  # of the columns of an estimate
_MOST = 10**7  # values of all repetitions, which take about a minute


def boosting(candidates: Sequence[Candidate], plan: Plan, measure: str) -> list[Candidate]:
    """Compare boosting on full rows, and on the k of the best candidate that sees few attributes, with the best.

    Parameters
    ----------
    candidates : sequence of Candidate
        The candidates, the best first.
    plan : Plan
        The plan of one of them.
    measure : str
        The column that is compared.

    Returns
    -------
    list of Candidate
        At most two, full rows first. None for images and simulated data, for other losses than the squared one, for
        much data, where predictions see few attributes, and where the total pays for less than two rows.
    """
    dataset, total = plan.config.dataset, plan.config.total
    assert total is not None
    if plan.config.predict_k is not None or measure != _MEASURE or not dataset.own_data:
        return []
    if plan.n_train * plan.d * plan.config.repetitions > _MOST:
        return []
    few = [int(each.series.k) for each in candidates if not each.series.of_all_attributes]
    price = plan.prices.row / plan.full_row if plan.prices else 1.0
    available = load(dataset, plan.config.seed, 0).available
    there = 1.0 if available is None else float(available.mean())  # what is missing costs nothing
    best, found = candidates[0], []
    for k in [plan.full_row, *few[:1]]:
        n = min(plan.n_train, int(total / (k * there * price)))
        if n > 1:
            found.append(_candidate(best.series, plan, k, n, float(round(k * n * there)), k * n * there * price))
    return found


def recorded(rows: Sequence[Mapping[str, str]], candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates from outside among the rows of ``advice.csv``, without learning anything.

    Parameters
    ----------
    rows : sequence of mapping
        The rows, as text.
    candidates : sequence of Candidate
        The other candidates, the best first.

    Returns
    -------
    list of Candidate
        Those that `boosting` returned. None if the other rows have other errors than the candidates: runs have changed
        since the file was written, so that its comparison with the best is of no use.

    Raises
    ------
    ValueError, KeyError
        If the file has other columns, or no numbers in them.
    """
    inside = [float(row["error"]) for row in rows if row["learner"] != NAME]
    errors = [each.error.value for each in candidates]
    if len(inside) != len(errors) or not np.allclose(inside, errors, rtol=PROMISED, atol=0):
        return []
    return [_recorded(row, candidates[0].series) for row in rows if row["learner"] == NAME]


def _recorded(row: Mapping[str, str], best: Series) -> Candidate:
    error, behind = (Estimate(*(_number(row[f"{name}{end}"]) for end in _ENDS)) for name in ("error", "worse_by"))
    series = _beside(best, best.d if row["k"] == EVERY else int(row["k"]))
    paid, cost = _number(row["attributes"]), _number(row.get(COST, ""))
    return Candidate(series, int(row["examples"]), paid, cost, error, behind, np.nan, outside=True)


def _number(text: str) -> float:
    return float(text) if text else np.nan  # such as the interval of few repetitions


def _beside(best: Series, k: int) -> Series:
    """Return a series from outside on the data of the best candidate, without points."""
    points, config = best.points.iloc[:0], {**best.config, "algo": {}}
    return replace(best, algo=NAME, label=NAME, k=k, points=points, runs=pd.DataFrame(), config=config)


def _candidate(best: Series, plan: Plan, k: int, n: int, paid: float, cost: float) -> Candidate:
    """Return boosting after n rows with k attributes each, compared with the best in the same repetitions."""
    repetitions = sorted(best.points["repetition"].unique().tolist())
    errors = np.array([_error(plan, repetition, k, n) for repetition in repetitions])
    least = ResampledCurves([best], _MEASURE, "attributes").rows(best).end
    spent = cost if plan.prices else np.nan
    error, behind = mean_error(errors), difference(errors, least)
    return Candidate(_beside(best, k), n, paid, spent, error, behind, np.nan, outside=True)


def _error(plan: Plan, repetition: int, k: int, n: int) -> float:
    """Return the test error of a repetition, relative to that of the constant that the runs compare with."""
    from sklearn.ensemble import HistGradientBoostingRegressor  # here, as it is slow to load

    config = plan.config
    data = load(config.dataset, config.seed, repetition)
    parts = parts_of(config, data, plan.n_test, plan.pilot, repetition)
    rows = np.concatenate([parts.pilot, parts.order])[:n]
    X = _values(data, rows)
    if k < plan.full_row:  # free attributes are seen beside the k
        priced = np.arange(plan.d) if plan.free is None else np.flatnonzero(~plan.free)
        heads = data.groups.head_of if data.groups else np.arange(plan.d)
        units = np.unique(heads[priced], return_inverse=True)[1]
        rng = generator(NAME, config.seed, data.name, repetition, k)
        ranks = rng.permuted(np.tile(np.arange(plan.full_row), (len(rows), 1)), axis=1)
        X[:, priced] = np.where(ranks[:, units] < k, X[:, priced], np.nan)
    X[:, np.isnan(X).all(axis=0)] = 0.0  # scikit-learn fails where an attribute has no value; a constant splits nothing
    with threadpool_limits(1):  # more threads take longer for so few rows
        model = HistGradientBoostingRegressor(random_state=0).fit(X, data.y[rows])
    y, tested = data.y[parts.test], _values(data, parts.test)
    if data.available is not None:
        tested = completed(data, parts.train, parts.test, config.seed, repetition)
    constant = data.y[parts.train].mean() if config.intercept == "mean" else 0.0
    squares = np.square(model.predict(tested) - y).mean()
    return float(squares / np.square(y - constant).mean())


def _values(data: Dataset, rows: np.ndarray) -> np.ndarray:
    """Return the attributes (n, d) of some rows, NaN where a value does not exist."""
    X = as_values(data.X).rows(rows).astype(np.float64)
    return X if data.available is None else np.where(data.available[rows], X, np.nan)
