"""Learning from arrays in memory: what `budgetreg fit` does with a table in a file, with the same numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from budgetreg.algorithms.registry import read, section
from budgetreg.common.errors import ConfigError
from budgetreg.config import catalogue
from budgetreg.config.options import EVERY
from budgetreg.data.attributes import in_groups, priced, unit
from budgetreg.data.dataset import Dataset, Groups, Values, row_blocks
from budgetreg.data.registry import ALL
from budgetreg.metering.table import JointMoments
from budgetreg.protocol.configuration import Config, assembled
from budgetreg.protocol.passes import Progress
from budgetreg.protocol.plan import Plan, make_plan
from budgetreg.protocol.repetitions import Evaluation, Result, outcomes, widening

NAME = "table"
"""Name of the data, which is in the keys of random streams: a file ``table.csv`` has the same numbers."""


@dataclass(frozen=True)
class Learned:
    """The model that was learned from all rows, and its bill.

    Attributes
    ----------
    model : mapping of str to ndarray
        ``w`` (d,), ``b`` () and ``c`` (d,) of ``b + <w, x - c>``; or ``V`` (d, n), ``c`` and ``scale`` (d,) of a
        subspace. In units of the table.
    moments : JointMoments or None
        Mean and covariance of attributes and target, in units of the table; None if the learner models none.
    run : mapping of str to Any
        The row of ``runs.csv``: the bill, and the parameters.
    left_out : tuple of int
        Attributes that are left out, as the values seen do not show their scale.
    visible : ndarray of int or None
        The attributes that predictions see, ascending; None for all.
    """

    model: Mapping[str, np.ndarray]
    moments: JointMoments | None
    run: Mapping[str, Any]
    left_out: tuple[int, ...] = ()
    visible: np.ndarray | None = None


@dataclass(frozen=True)
class FitOptions:
    """What a learner does with a table, as values; None has the meaning of null on the command line.

    Attributes
    ----------
    algo : str
        The learner.
    k : int, "auto" or None
        Attributes seen of each example. None: all that are present, so that nothing is drawn.
    seed : int
    options : mapping of str to Any
        Options of the learner; those that are not given are those of its file.
    constants : mapping of str to float, or None
        The constants of a learner that has any. None: cross-validation chooses them.
    grid : mapping of str to sequence of float
        Values that cross-validation tries; those that are not given are those of the learner's file.
    folds : int
        Of the cross-validation.
    center, scale, intercept, pilot, predict_k, total
        As for ``budgetreg fit``.
    costs : tuple of (float or None), or None
        The price of each attribute; None where another attribute of its group states it.
    groups : Groups or None
        Attributes that are bought together.
    """

    algo: str
    k: int | str | None = None
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[str, float] | None = None
    grid: Mapping[str, Sequence[float]] = field(default_factory=dict)
    folds: int = 10
    center: str | None = None
    scale: str | None = None
    intercept: str | None = None
    pilot: int | str | None = None
    predict_k: int | None = None
    total: int | None = None
    costs: tuple[float | None, ...] | None = None
    groups: Groups | None = None


def learn_table(
    choices: FitOptions,
    X: np.ndarray | Values,
    y: np.ndarray | None,
    names: Sequence[str] = (),
    ordered: bool = False,
) -> Learned:
    """Learn once from all rows, as ``budgetreg fit`` does with these choices and a file ``table.csv``.

    Parameters
    ----------
    choices : FitOptions
    X : ndarray of float64, shape (n, d), or Values
        NaN marks a cell without a value; only arrays have such cells.
    y : ndarray of float64, shape (n,), or None
        Targets; NaN marks an unknown one. None for subspaces.
    names : sequence of str, optional
        Names of the attributes.
    ordered : bool
        Whether the examples are seen in the order of the rows, the first ones as the pilot, and up to the last one even
        if there is a pilot. By default the order is random, and what a pilot costs is saved at the end.

    Raises
    ------
    ConfigError
        If a choice is impossible, or does not fit the data.
    DataError
        If nothing can be learned from the data.
    """
    config = _configuration(choices)
    data = _dataset(X, y, str(config.dataset.options["scale"]), names)
    if choices.groups:
        data = in_groups(data, choices.groups)
    prices = None
    if choices.costs is not None:
        prices = priced(names or list(map(str, range(1, X.shape[1] + 1))), choices.costs, data.groups)
    if ordered:
        config, data = replace(config, checkpoints=(X.shape[0],)), replace(data, ordered=True)
    config = replace(config, dataset=replace(config.dataset, given=data, costs=prices))
    if config.ends_with_money and getattr(X, "on_demand", False):
        raise ConfigError(
            f"total={config.total}: a rehearsal finds where this money ends, and would observe values beyond it: leave "
            "out total or costs, or give an array of values"
        )
    plan = make_plan(config)
    learned: list[Evaluation] = []

    def run(plan: Plan, repetitions: Sequence[int], progress: Progress) -> list[Result]:
        (outcome,) = outcomes(plan, repetitions, progress)
        learned.append(outcome.last)
        return [outcome.report()]

    with _threads().limit(limits=1):  # as in a run: more threads change last bits, and wait for busy processors
        (result,) = widening(run, plan, [0], lambda done: None, config.tuning.widen)
    without = learned[-1].left_out
    left_out = () if without is None else tuple(np.flatnonzero(without).tolist())
    return Learned(result["model"], learned[-1].moments(), result["run"], left_out, learned[-1].visible)


def _configuration(choices: FitOptions) -> Config:
    """Return the configuration of ``budgetreg fit`` for a table in memory."""
    learner = _file("algo", choices.algo)
    known, k, options, pilot = read(learner), choices.k, dict(choices.options), choices.pilot
    if k is None:
        k, undrawn = EVERY, known.options_without_draws if known else {}
        pilot = 0 if undrawn and pilot is None else pilot
        options = options if choices.groups else {**undrawn, **options}  # groups are drawn, though all of them are
    tuning = _file("tuning", "cv" if choices.constants is None else "fixed")
    given = {"path": f"{NAME}.csv", "missing": "unavailable", "split": ALL, "center": choices.center}
    return assembled(
        {
            "experiment": "",
            "protocol": None,
            "algo": {**learner, **options, "grid": {**learner["grid"], **choices.grid}},
            "dataset": {**_file("dataset", "file"), **given, "scale": choices.scale},
            "tuning": {**tuning, "folds": choices.folds, **(choices.constants or {})},
            "backend": dict(_file("backend", "sequential")),
            "k": k,
            "intercept": choices.intercept,
            "pilot": pilot,
            "total": choices.total,
            "predict_k": choices.predict_k,
            "repetitions": 1,
            "seed": choices.seed,
            "checkpoints": 1,
            "n_jobs": 1,
            "out": ".",
        }
    )


@cache
def _file(group: str, option: str) -> Mapping[str, Any]:
    """Return what a configuration file sets; do not change it."""
    return section(option) if group == "algo" else catalogue.content(group, option)


@cache
def _threads() -> ThreadpoolController:
    """Return what limits threads; to find the libraries takes as long as a small fit."""
    import scipy.linalg  # noqa: F401 - so that its library is among them

    return ThreadpoolController()


def _dataset(X: np.ndarray | Values, y: np.ndarray | None, scale: str, names: Sequence[str]) -> Dataset:
    """Return arrays as the data that a file with the same values would be."""
    available, largest = None, np.ones(X.shape[1])
    if isinstance(X, np.ndarray):
        missing = np.isnan(X)
        X = np.where(missing, 0.0, X)
        available = ~missing if missing.any() else None
        largest = np.abs(X).max(axis=0)
    elif scale == "max_abs":
        largest = np.zeros(X.shape[1])
        for rows in row_blocks(np.arange(X.shape[0]), X.shape[1]):
            largest = np.maximum(largest, np.abs(X.rows(rows)).max(axis=0))
    return Dataset(
        NAME,
        X,
        np.zeros(X.shape[0]) if y is None else np.array(y, dtype=np.float64),
        unit(scale, largest)[0],
        None,
        False,
        digest="in memory",
        names=tuple(names),
        available=available,
    )
