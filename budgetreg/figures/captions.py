"""Captions: how a figure was made, in words, without clock time or paths of a machine."""

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import floor, isnan, log10, nan
from pathlib import PurePath
from typing import Any

import pandas as pd

from budgetreg.algorithms import registry
from budgetreg.algorithms.learner import Learner
from budgetreg.analysis.intervals import Estimate
from budgetreg.common.notices import in_one_line
from budgetreg.config.nested import common, distinguishing_options, flatten, show
from budgetreg.figures.specification import Drawing, axes_of
from budgetreg.runs.series import Series

_WIDTH = 100
_SMALL, _LARGE = 1e-3, 1e12  # numbers with an interval have an exponent if they are beyond
BANDS = {"interval": "90 % interval of the mean, {times}", "spread": "5 to 95 % of {times}"}
"""What the legend calls a band."""
_LINES = {
    "interval": "Lines are means over repetitions. Bands are 90 % intervals of the mean, from 2000 bootstrap resamples "
    "of the repetitions; fewer than 5 repetitions have none.",
    "spread": "Lines are means over repetitions. Bands go from the 5 % to the 95 % quantile of the repetitions; fewer "
    "than 5 repetitions have none.",
}
_TUNED_AT = {"end": "chosen once, at the last checkpoint", "each": "chosen again at each checkpoint"}
_TUNED_BY = {
    "theory": "theory's step size (a bound B not given is cross-validated)",
    "fixed": "parameters given beforehand",
}
_AVERAGES = {
    "all": "average of all iterates",
    "suffix": "average of the last half of the iterates",
    "last": "last iterate",
}
_SPLITS = {"random": "random split", "official": "the data set's own split into training and test part"}
_IN_WORDS = {
    "": ("seed", "checkpoints"),
    "algo": ("core", "update", "split", "average", "prices"),
    "dataset": ("center", "split", "test_fraction", "path", "costs", "ranges", "unit"),
    "tuning": ("name", "at", "folds"),
}
"""By section, the keys that `about_config` puts in words, or that the curve already shows, such as checkpoints."""


def about_curves(series: Sequence[Series], remarks: Iterable[str], drawing: Drawing) -> list[str]:
    """Return the paragraphs about curves: the axes, then what each curve is.

    Parameters
    ----------
    series : sequence of Series
        The curves of the figure.
    remarks : iterable of str
        Sentences about the drawing, such as which points are not shown.
    drawing : Drawing
        What a recipe asks for.
    """
    panels = drawing.split(series)
    below = dict.fromkeys(axes_of(in_panel, drawing)[0] for in_panel in panels.values())
    _, y = axes_of(series, drawing)
    configured = [about_config(curve.config) for curve in series]
    shared = [line for line in configured[0] if all(line in lines for lines in configured)] if configured[1:] else []
    explained = [*(f"x: {x.explanation}." for x in below), f"y: {y.explanation}."]
    paragraphs = [
        flowing(" ".join([*explained, _LINES[drawing.band], *remarks])),
        *([_block("all curves", shared)] if shared else []),
    ]
    for curve, lines in zip(series, configured, strict=True):
        differing = [line for line in lines if line not in shared]
        place = "" if len(panels) == 1 else f"{drawing.title(panels[drawing.panel(curve)])}: "
        about = [_about_points(curve), *differing, *_about_runs(curve)]
        paragraphs.append(_block(f"{place}{curve.dataset}, {curve.label}", about))
    return paragraphs


def about_settings(series: Sequence[Series]) -> str:
    """Return the paragraph on what the configurations of all series share."""
    return "\n".join(map(flowing, about_config(*(curve.config for curve in series))))


def about_config(*configs: Mapping[str, Any]) -> list[str]:
    """Return lines on what holds for each configuration: learner, data, tuning, and all else that decides results."""
    config = common(configs)
    # Each is read by itself: an option in which they differ would have its default.
    learners = [learner for each in configs if (learner := registry.read(each.get("algo", {})))]
    flat = flatten(config)
    rest = dict(distinguishing_options(config))
    words = {"learner": _learner(config.get("algo", {}), learners), "data": _data(flat), "tuning": _tuning(flat)}
    words |= {"ranges": _ranges(flat), "prices": _prices(flat, learners)}
    lines = [f"{head}: {text}" for head, text in words.items() if text]
    lines.append(f"seed: {show(flat.get('seed'))}")
    said = {f"{section}.{key}".lstrip(".") for section, keys in _IN_WORDS.items() for key in keys}
    others = [f"{key}={show(rest[key])}" for key in sorted(rest) if key not in said and rest[key] is not None]
    return [*lines, f"other settings: {', '.join(others)}"] if others else lines


def repetitions_of(series: Iterable[Series]) -> str:
    """Return how many repetitions some series have: ``100 repetitions``, or ``90 to 100 repetitions``."""
    counts = sorted({curve.repetitions for curve in series})
    return f"{' to '.join(map(str, counts))} repetition{'s' if counts != [1] else ''}"


def chosen_parameters(runs: pd.DataFrame) -> str:
    """Return a summary of the parameters chosen in the repetitions; empty if none were.

    It has the most common value of each parameter (the smallest of several), its range if it varied, and in how many
    repetitions some lie on the edge of the grid:
    ``"B = 1.4 (1 to 2.8), on the edge of the grid in 1 of 9 repetitions"``.

    Parameters
    ----------
    runs : DataFrame
        `Series.runs`, with columns ``p_<name>``.
    """
    texts = []
    for column in (name for name in runs.columns if name.startswith("p_")):
        values = runs[column].dropna()
        if values.empty:
            continue
        text = f"{column.removeprefix('p_')} = {values.mode().iloc[0]:.4g}"
        varied = values.nunique() > 1
        texts.append(f"{text} ({values.min():.4g} to {values.max():.4g})" if varied else text)
    hits = int((runs["edge"] != "").sum()) if "edge" in runs else 0
    if texts and hits:
        texts.append(f"on the edge of the grid in {hits} of {len(runs)} repetitions")
    return ", ".join(texts)


def with_interval(estimate: Estimate) -> str:
    """Return a number with its interval, if known, in as many digits as that supports: ``0.527 (0.466 to 0.596)``."""
    number, low, high = rounded(estimate)
    return number if isnan(estimate.low) else f"{number} ({low} to {high})"


def in_full(estimate: Estimate) -> str:
    """Return a number with its interval, and what kind of interval that is."""
    return with_interval(estimate).replace("(", "(90 % interval ")


def rounded(estimate: Estimate) -> tuple[str, str, str]:
    """Return a number and the ends of its interval as text, with two digits of half the interval's width.

    The largest of them has at most four digits behind leading zeros, and a number that would be 0 has one. Without an
    interval, the number has three digits, or is a whole number from 1,000 on. An unknown end is a question mark.
    """
    numbers = (estimate.value, estimate.low, estimate.high)
    largest = max((abs(number) for number in numbers if not isnan(number)), default=0.0)
    known = [end for end in (estimate.low, estimate.high) if not isnan(end)]
    width = max(known) - min(known) if len(known) > 1 else max((abs(estimate.value - end) for end in known), default=0)
    if not width > 0 or not _SMALL <= largest < _LARGE:  # also without a value
        return _each(numbers, lambda number: f"{number:,.0f}" if 1000 <= abs(number) < _LARGE else f"{number:.3g}")
    decimals = max(min(1 - floor(log10(width / 2)), 3 - floor(log10(largest))), 0)
    return _each(numbers, lambda number: f"{number:{f',.{decimals}f' if abs(number) > 0.5 / 10**decimals else '.1g'}}")


def rounded_texts(value: str, low: str, high: str) -> tuple[str, str, str]:
    """Return a number and its interval, given as text, as `rounded`; other texts and missing ends stay as they are."""
    given = (value, low, high)
    try:
        texts = rounded(Estimate(*(float(text or nan) for text in given)))
    except ValueError:
        return given
    number, below, above = (new if old else "" for old, new in zip(given, texts, strict=True))
    return number, below, above


def _each(numbers: Iterable[float], as_text: Callable[[float], str]) -> tuple[str, str, str]:
    number, low, high = ("?" if isnan(number) else as_text(number) for number in numbers)
    return number, low, high


def charged_per_example(runs: pd.DataFrame) -> str:
    """Return the attributes charged per example, on average and at most; empty if that is not known."""
    if runs.empty or not {"attributes_mean", "attributes_max"} <= set(runs.columns):
        return ""
    return f"{runs['attributes_mean'].mean():.4g} on average, {runs['attributes_max'].max():g} at most"


def _block(head: str, lines: Iterable[str]) -> str:
    return "\n".join([in_one_line(head), *(flowing(line, "  ") for line in lines)])


def _about_points(series: Series) -> str:
    curve = series.mean
    last = curve.iloc[-1]
    asked = series.config.get("repetitions")
    unfinished = f" (of {asked} asked for)" if isinstance(asked, int) and asked > series.repetitions else ""
    paid = f", {amount(last['cost'])} {series.unit}" if series.unit else ""
    examples = "" if isinstance(series.k, str) else f"{int(last['examples']):,} examples and "
    return (
        f"k = {series.k}, {repetitions_of([series])}{unfinished}, {len(curve)} checkpoints, the last at "
        f"{examples}{last['attributes']:,.0f} attributes{paid}"
    )


def _about_runs(series: Series) -> list[str]:
    lines = []
    if chosen := chosen_parameters(series.runs):
        each = series.config.get("tuning", {}).get("at") == "each" and len(series.mean) > 1
        lines.append(f"chosen{' for the last checkpoint' if each else ''}: {chosen} (most common value, range)")
    if bill := charged_per_example(series.runs):
        lines.append(f"attributes charged per example: {bill}")
    return lines


def _learner(algo: Mapping[str, Any], learners: Sequence[Learner]) -> str:
    split, alike = algo.get("split"), learners if "core" in algo else ()
    parts = [
        *(word for word in (alike[0].words if alike else ()) if all(word in learner.words for learner in alike)),
        f"split of the budget {show(split)}" if split is not None else "",
        _AVERAGES.get(str(algo.get("average")), ""),
        "results differ between processor types, but have the same distribution"
        if alike and not any(learner.bitwise_portable for learner in alike)
        else "",
    ]
    return ", ".join(filter(None, parts))


def _data(flat: Mapping[str, Any]) -> str:
    centred = {
        "none": "attributes not centred",
        "full": "attributes centred by the means of the full training part (outside the budget)",
        "revealed": "attributes centred by running means of what the budget revealed",
    }
    split = str(flat.get("dataset.split"))
    fraction = flat.get("dataset.test_fraction")
    if split == "official" and fraction is None:
        return "no test part, as the second moment of the distribution is known"
    tested = f", {100 * float(fraction):g} % for testing" if split == "random" and fraction is not None else ""
    parts = [centred.get(str(flat.get("dataset.center")), ""), _SPLITS.get(split, "") + tested]
    return "; ".join(filter(None, parts))


def _ranges(flat: Mapping[str, Any]) -> str:
    ranges = flat.get("dataset.ranges")
    unit = "attributes are centred on the middle of their range, in units of half its width; no value was looked at"
    return "" if ranges is None else f"of {PurePath(str(ranges)).name}; {unit}"


def _prices(flat: Mapping[str, Any], learners: Iterable[Learner]) -> str:
    costs, aware = flat.get("dataset.costs"), {bool(learner.cost_aware) for learner in learners}
    if costs is None:
        return ""
    draws = "" if len(aware) > 1 else "; the draws are price-aware" if True in aware else "; the draws ignore them"
    return f"of {PurePath(str(costs)).name}{draws}"


def amount(value: float) -> str:
    """Return attributes or money as text; large amounts are rounded to whole units."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _tuning(flat: Mapping[str, Any]) -> str:
    if not any(key.startswith("algo.grid.") for key in flat):
        return ""
    name = flat.get("tuning.name")
    if name == "cv":
        folds, at = flat.get("tuning.folds", 10), _TUNED_AT.get(str(flat.get("tuning.at")))
        return f"{folds}-fold cross-validation{f', {at}' if at else ''}"
    return _TUNED_BY.get(str(name), show(name) if name else "")


def flowing(text: str, indent: str = "") -> str:
    """Return a paragraph wrapped at 100 columns."""
    return textwrap.fill(text, _WIDTH, initial_indent=indent, subsequent_indent=indent + "  " if indent else "")
