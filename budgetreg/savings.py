"""Savings: the attributes that each learner of a figure needs to reach an error, and how many times fewer that is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from budgetreg.bootstrap import Estimate, percentile
from budgetreg.curves import Series
from budgetreg.evidence import Evidence
from budgetreg.mean_curves import Means

AT_LEAST, AT_MOST, UNKNOWN = "at least", "at most", "unknown"
_FULL_INFORMATION = ("exact", "offline")
_DECADES = 4


@dataclass(frozen=True)
class Saving:
    """What one learner needs to reach one error.

    A mean curve that has reached it by its first checkpoint, or does not by its last, tells no more than a bound: that
    checkpoint's attributes. Bootstrap intervals, between percentiles, end there too.

    Attributes
    ----------
    error : float
        The level, in units of the measure.
    label : str
        The learner.
    attributes : Estimate
        What its mean curve needs.
    attributes_are : {'', 'at least', 'at most'}
        How that number is to be read.
    reference : str
        The full-information learner that needs least; empty if there is none.
    factor : Estimate
        Times fewer attributes than the reference; NaN if there is none, or it is unknown.
    factor_is : {'', 'at least', 'at most', 'unknown'}
        How that number is to be read.
    """

    error: float
    label: str
    attributes: Estimate
    attributes_are: str
    reference: str
    factor: Estimate
    factor_is: str


@dataclass(frozen=True)
class _Needed:
    """Attributes needed by each resampled mean, with the ends of the curve where that is censored."""

    attributes: np.ndarray
    are: str

    @classmethod
    def of(cls, means: Means, level: float) -> "_Needed":
        crossing = means.crossing(level)
        are = AT_LEAST if np.isinf(crossing[0]) else AT_MOST if crossing[0] == 0 else ""
        return cls(np.clip(crossing, means.x[0], means.x[-1]), are)


def savings(series: Sequence[Series], measure: str) -> list[Saving]:
    """Compute what each learner of a panel saves at round levels of error.

    Parameters
    ----------
    series : sequence of Series
        The learners of one panel; at least one.
    measure : str
        What is to be reached, a column of the curves.

    Returns
    -------
    list of Saving
        By level, from the largest, and learner; levels that some learner reaches along its curve.

    Raises
    ------
    NoEvidence
        If the curves have no such column, or no repetition in common.
    """
    evidence = Evidence(series, measure, "attributes")
    means = {one.label: evidence.means(one) for one in series}
    full = [one.label for one in series if one.config.get("algo", {}).get("core") in _FULL_INFORMATION]
    found: list[Saving] = []
    for level in _levels([own.values[0] for own in means.values()]):
        needed = {label: _Needed.of(own, level) for label, own in means.items()}
        best = min(((_rank(needed[label]), label) for label in full), default=((False, 0.0), ""))[1]
        for label, own in needed.items():
            factor, reading = _factor(needed[best], own, evidence.repetitions) if best else (_NO_NUMBER, "")
            attributes = percentile(own.attributes, evidence.repetitions)
            found.append(Saving(level, label, attributes, own.are, best, factor, reading))
    return found


_NO_NUMBER = Estimate(np.nan, np.nan, np.nan)


def _rank(needed: _Needed) -> tuple[bool, float]:
    return needed.are == AT_LEAST, float(needed.attributes[0])


def _factor(reference: _Needed, own: _Needed, repetitions: int) -> tuple[Estimate, str]:
    if own is reference:
        return Estimate(1.0, 1.0, 1.0), ""
    opposite = {AT_LEAST: AT_MOST, AT_MOST: AT_LEAST, "": ""}
    readings = {reference.are, opposite[own.are]} - {""}
    if len(readings) > 1:
        return _NO_NUMBER, UNKNOWN
    return percentile(reference.attributes / own.attributes, repetitions), readings.pop() if readings else ""


def _levels(curves: Sequence[np.ndarray]) -> list[float]:
    """Return the round levels that some curve reaches after its first checkpoint, largest first."""
    return [level for level in _round_levels() if any(curve.min() <= level < curve[0] for curve in curves)]


def _round_levels() -> Iterator[float]:
    """Give .9, .8, ... .1, .09, ... .01, and so on."""
    for decade in range(1, _DECADES + 1):
        for digit in range(9, 0, -1):
            yield float(f"{digit}e-{decade}")
