"""Estimates of a study's error and a forecast, which the file keeps for the figure."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from budgetreg.study.error import ErrorEstimate, Interval, estimate_error
from budgetreg.study.fitting import fitted
from budgetreg.study.forecast import forecast
from budgetreg.study.joint import JointModel
from budgetreg.study.state import State
from budgetreg.study.store import StudyFile

_FURTHER = (0.5, 1.0, 2.0)
"""For how many times the money that was spent there is a forecast."""


@dataclass(frozen=True)
class Estimates:
    """Estimates of the error of a study at a moment.

    Attributes
    ----------
    spent : float
        What was charged by then.
    error : ErrorEstimate
        The error, relative to that of the mean target.
    further : sequence of (float, Interval)
        Further spendings, and the errors with all attributes after them.
    """

    spent: float
    error: ErrorEstimate
    further: Sequence[tuple[float, Interval]]


def estimates_of(state: State) -> Estimates:
    """Compute the estimates of a study.

    Raises
    ------
    DataError
        If too little is known.
    """
    model = fitted(state)
    error = estimate_error(state.values, state.y, seed=int(state.facts["seed"]), algo=state.facts["algo"], model=model)
    spendings = [state.spent * times for times in _FURTHER] if state.spent else []
    return Estimates(state.spent, error, list(zip(spendings, forecast_of(state, model, error, spendings), strict=True)))


def forecast_of(state: State, model: JointModel, error: ErrorEstimate, spendings: Sequence[float]) -> list[Interval]:
    """Return the errors with all attributes after further spendings."""
    return forecast(
        model,
        state.values,
        state.y,
        error.complete,
        spendings,
        state.costs,
        groups=state.groups,
        seed=int(state.facts["seed"]),
    )


def keep(store: StudyFile, state: State, estimates: Estimates) -> None:
    """Record the estimates of a state; in a block of `StudyFile.writing`."""

    def numbers(interval: Interval) -> list[float]:
        return [interval.estimate, interval.low, interval.high]

    content = {
        "complete": numbers(estimates.error.complete),
        "as_bought": numbers(estimates.error.as_bought),
        "further": [[spending, *numbers(interval)] for spending, interval in estimates.further],
    }
    row = (state.version, estimates.spent, json.dumps(content))
    store.change("INSERT INTO estimates VALUES (?, ?, ?) ON CONFLICT DO NOTHING", [row])


def kept(store: StudyFile) -> dict[int, Estimates]:
    """Return all estimates that were recorded, by the version of the state, in their order."""
    result = {}
    for version, spent, text in store.rows("SELECT state, spent, content FROM estimates ORDER BY state"):
        content = json.loads(text)
        error = ErrorEstimate(Interval(*content["complete"]), Interval(*content["as_bought"]))
        further = [(spending, Interval(*numbers)) for spending, *numbers in content["further"]]
        result[version] = Estimates(spent, error, further)
    return result
