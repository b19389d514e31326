"""What a recipe asks for in its figure: axes, panels, bands and published curves."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from budgetreg.analysis.claims import Published
from budgetreg.analysis.intervals import FEWEST, ONE_SIDED, of_ratio, weights
from budgetreg.common.errors import ConfigError
from budgetreg.config.nested import common, flatten
from budgetreg.config.options import (
    FLAG,
    LIST,
    MAPPING,
    NAME,
    NOTHING,
    POSITIVE,
    TEXT,
    Requirement,
    checked,
    one_of,
    option,
    options_of,
)
from budgetreg.data import registry
from budgetreg.runs import tables
from budgetreg.runs.series import ALONG, MEASURES, SUBSPACE_MEASURES, Series, budgets_of, by_checkpoint, common_unit

_FURTHER = Requirement(
    "names with the kind bills", lambda value: MAPPING.accepts(value) and set(value.values()) <= {"bills"}
)
_VERDICTS = Requirement(
    "lists of claims with the keys holds, open and fails",
    lambda value: (
        MAPPING.accepts(value) and set(value) <= {"holds", "open", "fails"} and all(map(LIST.accepts, value.values()))
    ),
)
_LEARNER = NAME | MAPPING | NOTHING


@dataclass(frozen=True)
class Drawing:
    """How a figure is drawn.

    Attributes
    ----------
    kind : {'curves', 'dots', 'scaling', 'paired', 'ratios', 'relative', 'bills', 'advice', 'study'}
        Curves; a dot per data set and learner at the last checkpoint, with the median; a point per learner and
        value of a variable; a panel per learner, with its paired difference from one of them; the last errors of
        variants, divided by that of one of them; the error of one learner along a curve, divided by the least of
        others; the last error against what was paid; and what commands draw of a recommendation and of a study.
    also : mapping of str to str
        The kinds of further figures of the same curves, by what their files' names end with.
    x : str or None
        A variable of `budgetreg.runs.series`; None: attributes, or examples for runs with ``axis=examples``.
    x_scale : {'log', 'linear'}
    y_scale : {'auto', 'log', 'linear'}
    measure : str or None
        A column of the curves; None: the loss that all learners minimise.
    panels : sequence of str
        ``dataset``, ``algo`` or keys of the configuration; each of their values has a panel.
    titles : mapping of str to str
        Titles of panels, by value; several are joined by a comma. Curves have their panels in this
        order, and the others after them.
    finding : str
        What the figure shows, in a sentence above it.
    rests_on : mapping of str to sequence of str
        The claims that this sentence rests on, by their verdict: ``holds``, ``open`` or ``fails``. ``*`` stands for any
        letters, and ``claim@preset`` for the verdict under one preset.
    band : {'interval', 'spread'}
        The 90 % interval of the mean by bootstrap, or 5 to 95 % of repetitions that differ in the true weights.
    named : sequence of str
        Learners with wide lines and bands, while all others are thin and without bands; none: all have them.
    names : mapping of str to str
        What some labels are called in the figure.
    of : str, mapping or None
        The learner whose relative errors are drawn.
    columns : str or None
        The key of the configuration, such as ``dataset.d``, that has a panel of relative errors for each value; None:
        they have a single panel. Each of `panels` has a line there.
    against : str, mapping or None
        The learner that others are compared with, as in claims.
    until : float or None
        Checkpoints beyond this x are not shown; None: all are.
    top : float or None
        Where the y axis ends; None: where the values of the later half of the checkpoints ask for.
    bottom : float or None
        Where a logarithmic y axis begins, and the least that another one shows; smaller values are drawn there, as
        triangles. None: below all values.
    published_as : {'curves', 'points'}
        Whether the published points are those of a curve, or single numbers.
    bound : bool
        Whether a line shows the least error that is possible for normal data, see `budgetreg.analysis.theory`.
    share_y : bool
        Whether all panels have the same y axis.
    row : bool
        Whether all panels stand in one row, as wide as two others, above a legend in place of labels at the ends.
    worst : str or None
        A key of the configuration, such as ``dataset.alpha``: of curves that differ only in it, the figure shows the
        worst at each number of examples.
    over : str or None
        Variable of a scaling's x axis, see `budgetreg.runs.series.of`.
    level : float or None
        In a scaling, y is what curves need to fall to this level; None: y is the value at the last checkpoint.
    published : mapping
        Points x and y of published curves, by learner and variable of the x axis.
    note : str
        A remark in the legend.
    """

    kind: str = option(
        "the kind of figure", one_of("curves", "dots", "scaling", "paired", "ratios", "relative"), "curves"
    )
    also: Mapping[str, str] = option("the kinds of further figures, by the ends of their names", _FURTHER, {})
    x: str | None = option("the variable on the x axis", one_of(*ALONG) | NOTHING, None)
    x_scale: str = option("the scale of the x axis", one_of("log", "linear"), "log")
    y_scale: str = option("the scale of the y axis", one_of("auto", "log", "linear"), "auto")
    measure: str | None = option("the column on the y axis", one_of(*MEASURES, *SUBSPACE_MEASURES) | NOTHING, None)
    panels: Sequence[str] = option("what has a panel for each value", NAME | LIST, ["dataset"])
    titles: Mapping[str, str] = option("the titles of panels", MAPPING, {})
    finding: str = option("the figure's title: what it shows", TEXT, "")
    rests_on: Mapping[str, Sequence[str]] = option("the claims that the title rests on, by verdict", _VERDICTS, {})
    band: str = option("the band", one_of("interval", "spread"), "interval")
    named: Sequence[str] = option("the learners with bands", LIST, [])
    names: Mapping[str, str] = option("what labels are called", MAPPING, {})
    of: str | Mapping[str, object] | None = option("the learner that is compared with others", _LEARNER, None)
    columns: str | None = option("the key that has a panel of relative errors for each value", NAME | NOTHING, None)
    against: str | Mapping[str, object] | None = option("the learner that others are compared with", _LEARNER, None)
    until: float | None = option("the last x of curves that is shown", POSITIVE | NOTHING, None)
    top: float | None = option("where the y axis ends", POSITIVE | NOTHING, None)
    bottom: float | None = option("where the y axis begins", POSITIVE | NOTHING, None)
    published_as: str = option("how published numbers are drawn", one_of("curves", "points"), "curves")
    bound: bool = option("whether the bound for normal data is drawn", FLAG, False)
    share_y: bool = option("whether all panels have the same y axis", FLAG, True)
    row: bool = option("whether all panels stand in one row, above a legend", FLAG, False)
    worst: str | None = option("the key of which the worst value is shown", NAME | NOTHING, None)
    over: str | None = option("what a scaling goes along", NAME | NOTHING, None)
    level: float | None = option("the level that curves have to fall to", POSITIVE | NOTHING, None)
    published: Published = field(default_factory=dict)
    note: str = ""

    def figures(self, name: str) -> dict[str, "Drawing"]:
        """Return the drawing of each figure by the name of its files; the first has the given name.

        Further figures show all k together.
        """
        of_all_k: dict[str, Any] = {"also": {}, "panels": [key for key in self.panels if key != "k"] or ["dataset"]}
        further = {f"{name}_{end}": replace(self, kind=kind, **of_all_k) for end, kind in self.also.items()}
        return {name: self, **further}

    def is_named(self, algo: str) -> bool:
        """Return whether a learner has a wide line and a band."""
        return not self.named or algo in self.named

    def panel(self, series: Series) -> str:
        """Return the name of the panel that shows a series."""
        return ",".join(self._values(series))

    def _values(self, series: Series) -> list[str]:
        values = {**flatten(series.config), "dataset": series.dataset, "algo": series.algo}
        return [str(values.get(key)) for key in self.panels]

    def split(self, series: Sequence[Series]) -> dict[str, list[Series]]:
        """Return the series of each panel, by its name."""
        panels: dict[str, list[Series]] = {}
        for curve in series:
            panels.setdefault(self.panel(curve), []).append(curve)
        return panels

    def title(self, series: Sequence[Series]) -> str:
        """Return the title of the panel that shows some series."""
        panel = self.panel(series[0])
        if panel in self.titles:
            return self.titles[panel]
        budgets = budgets_of(series)
        budget = [f"k = {budgets[0]}"] if len(budgets) == 1 else []
        named = [
            value if key in ("dataset", "algo") else f"{key} {value}"
            for key, value in zip(self.panels, self._values(series[0]), strict=True)
        ]
        return ", ".join([*named, *budget])

    def edges(self, points: pd.DataFrame, column: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and upper edge of the band at each checkpoint; NaN if the repetitions are too few."""
        table = by_checkpoint(points).pivot(index="repetition", columns="examples", values=column).to_numpy(dtype=float)
        repetitions = len(table)
        if self.band == "spread" and repetitions >= FEWEST:
            low, high = np.quantile(table, [1 - ONE_SIDED, ONE_SIDED], axis=0)
            return low, high
        means = weights(repetitions) @ table
        estimates = [of_ratio(at_checkpoint, repetitions) for at_checkpoint in means.T]
        return np.array([each.low for each in estimates]), np.array([each.high for each in estimates])


PLAIN = Drawing()
"""What a figure is like that no recipe describes."""


def parse(options: Mapping[str, Any]) -> Drawing:
    """Read the key ``figure`` of a recipe.

    Raises
    ------
    ConfigError
        If a key is unknown or a value is invalid.
    """
    filled = checked(options, options_of(Drawing), "figure")
    if (filled["kind"] == "scaling") != (filled["over"] is not None):
        raise ConfigError("figure.over: a figure of the kind scaling needs it, and no other")
    if filled["kind"] in ("paired", "ratios", "relative") and filled["against"] is None:
        raise ConfigError(f"figure.against: a figure of the kind {filled['kind']} needs it")
    if (filled["kind"] == "relative") != (filled["of"] is not None):
        raise ConfigError("figure.of: a figure of the kind relative needs it, and no other")
    texts = {key: {str(value): str(text) for value, text in filled[key].items()} for key in ("titles", "names")}
    panels = filled["panels"] if isinstance(filled["panels"], list) else [filled["panels"]]
    return Drawing(**{**filled, **texts, "panels": panels})


def worst(series: Sequence[Series], key: str, column: str) -> Iterator[Series]:
    """Merge series that differ only in one key of the configuration into their worst case.

    Parameters
    ----------
    series : sequence of Series
        As `budgetreg.runs.series.read_folder` returns them.
    key : str
        Such as ``dataset.alpha``.
    column : str
        The measure, of which the largest mean is kept.

    Yields
    ------
    Series
        At each number of examples, the points of the series with the largest mean. Its label is the preset of the
        recipe, if there is one.
    """
    groups: dict[tuple[tuple[str, str], ...], list[Series]] = {}
    for curve in series:
        rest = {other: str(value) for other, value in flatten(curve.config).items() if other != key}
        groups.setdefault(tuple(rest.items()), []).append(curve)
    for group in groups.values():
        means = [curve.mean.set_index("examples")[column] for curve in group]
        if any(not mean.index.equals(means[0].index) for mean in means):
            raise ConfigError(f"figure.worst: {key}: curves have other numbers of examples at their checkpoints")
        rows = []
        for examples in means[0].index:
            points = by_checkpoint(group[int(np.argmax([mean[examples] for mean in means]))].points)
            rows.append(points[points["examples"] == examples])
        points = pd.concat(rows, ignore_index=True)
        config = common([curve.config for curve in group])
        label = str(config.get("protocol") or group[0].algo)
        yield replace(group[0], dataset=config["dataset"]["name"], label=label, points=points, config=config)


@dataclass(frozen=True)
class Axis:
    """An axis of a figure.

    Attributes
    ----------
    column : str
        A column of `budgetreg.runs.series.Series.mean`.
    label : str
        The text beside the axis.
    name : str
        The name in the figure's title.
    meaning : str
        The explanation in the caption.
    zero : float or None
        Value of the predictor that sees no attribute; None if unknown.
    constant : str
        What that predictor answers, in a word.
    most : float
        The axis always shows values up to this one.
    log : bool
        Whether the axis is always logarithmic. Another y axis becomes logarithmic if its values span decades.
    """

    column: str
    label: str
    name: str
    meaning: str
    zero: float | None = None
    constant: str = "zero"
    most: float = 0.0
    log: bool = False

    @property
    def text(self) -> str:
        """Return the text beside the axis."""
        return f"{self.label} (log scale)" if self.log else self.label

    @property
    def explanation(self) -> str:
        """Return the explanation in the caption, with the scale."""
        return f"{self.meaning}; log scale" if self.log else self.meaning


ATTRIBUTES = Axis(
    "attributes",
    "attributes seen in training",
    "attributes seen in training",
    "attributes charged by each checkpoint, mean over repetitions",
)
_BILLED = (
    "what pilot and final run were charged by each checkpoint, mean over repetitions, and before them what tuning "
    "revealed besides, a pair of an example and an attribute once, held-out examples in full; of checkpoints at the "
    "same bill the last is shown"
)
PAID = Axis("paid", "attributes paid for, tuning included", "attributes paid for", f"attributes paid for: {_BILLED}")
EXAMPLES = Axis(
    "examples",
    "training examples",
    "training examples",
    "training examples, as many for every learner, whatever it was charged for them",
)
COST = Axis(
    "cost",
    "spent on attributes in training, in {unit}",
    "money spent in training",
    "what attributes charged by each checkpoint cost by the price list, in {unit}, mean over repetitions",
)
PAID_COST = Axis(
    tables.PAID_COST,
    "spent on attributes, tuning included, in {unit}",
    "money spent",
    f"what attributes cost, in {{unit}}: {_BILLED}",
)
EFFECTIVE_EXAMPLES = Axis(
    "effective_examples",
    "m (r/d)² / n, for m examples of d attributes, r of which are seen, and n dimensions",
    "effective examples",
    "m (r/d)² / n, for m examples of d attributes, r of which are seen, and n dimensions of the subspace",
)


def _relative_to(predictor: str, does: str, constant: str, more: str = "") -> Axis:
    return Axis(
        "test_relative",
        f"test error / error {predictor}",
        "test error",
        f"mean squared test error divided by that of the predictor that {does}; the thin line at 1 marks it{more}",
        zero=1.0,
        constant=constant,
    )


RELATIVE = _relative_to("of the zero predictor", "always answers zero", "zero")
TO_THE_MEAN = _relative_to("of the mean predictor", "always answers the mean of the training targets", "mean")
TO_EITHER = _relative_to(
    "of the constant predictor",
    "sees no attribute",
    "constant",
    "; it answers the mean of the training targets for learners with an intercept, and else zero",
)
SVR_LOSS = Axis(
    "test_svr_loss",
    "test loss max(|residual| - delta, 0)",
    "SVR loss",
    "mean of max(|residual| - delta, 0) over the test part",
)
MSE = Axis(
    "test_mse",
    "mean squared test error",
    "test error",
    "mean squared error on the test part, in squared units of the target",
)
ERROR_RATE = Axis(
    "test_error_rate",
    "test examples of the wrong sign",
    "error rate",
    "share of test examples whose prediction has the wrong sign",
)
RELATIVE_ERROR = Axis(
    "relative_error",
    "relative error, loss / mean |x|²",
    "relative error",
    "mean squared distance from the subspace, divided by the mean squared length, of the test examples, or under the "
    "distribution that examples are drawn from where its second moment is known",
    most=1.0,
)
EXCESS_LOSS = Axis(
    "excess_loss",
    "excess loss",
    "excess loss",
    "mean squared distance from the subspace above that from the best one of as many dimensions, of the test examples, "
    "or under the distribution that examples are drawn from where its second moment is known, and then exact",
    log=True,
)
ANGLE = Axis(
    "principal_angle",
    "largest principal angle in degrees",
    "principal angle",
    "largest angle between the subspace and the best one, in degrees",
)
FULL_ROWS = Axis(
    "full_rows",
    "full rows for the same number of attributes / d",
    "full rows",
    "how many full rows have as many attributes as were charged by each checkpoint, divided by d",
)
_X = {axis.column: axis for axis in (ATTRIBUTES, PAID, EXAMPLES, COST, PAID_COST, EFFECTIVE_EXAMPLES, FULL_ROWS)}
_Y = {axis.column: axis for axis in (RELATIVE, SVR_LOSS, MSE, ERROR_RATE, RELATIVE_ERROR, EXCESS_LOSS, ANGLE)}


def axes_of(series: Sequence[Series], drawing: Drawing = PLAIN) -> tuple[Axis, Axis]:
    """Return the x and y axis of a figure.

    Parameters
    ----------
    series : sequence of Series
        All curves of the figure.
    drawing : Drawing, optional
        What a recipe asks for; the rest is chosen by the series.

    Returns
    -------
    x : Axis
        Examples if all runs have ``axis=examples``; else money if all have prices in one unit, else attributes. With
        ``axis=paid`` in all runs, money or attributes include tuning.
    y : Axis
        The SVR loss if all learners minimise it, else the relative squared error. For subspaces, the excess loss if it
        is exact for all, else the relative error.
    """
    x, y = _usual(series)
    x = _X[drawing.x] if drawing.x else x
    units = " or ".join(sorted({curve.unit for curve in series if curve.unit}))
    label, meaning = (text.format(unit=units) for text in (x.label, x.meaning))
    x = replace(x, label=label, meaning=meaning, log=drawing.x_scale == "log")
    y = _relative(series) if drawing.measure == RELATIVE.column else _Y[drawing.measure] if drawing.measure else y
    return x, y if drawing.y_scale == "auto" else replace(y, log=drawing.y_scale == "log")


def within_total(series: Series, curve: pd.DataFrame, x: Axis) -> pd.DataFrame:
    """Return a curve without the points beyond the total that ``axis=paid`` allows.

    Without a total in the axis's unit, the limit is the cost of k attributes of each training example.
    """
    in_money = x.column == PAID_COST.column
    if series.config.get("axis") != "paid" or not (in_money or x.column == PAID.column):
        return curve
    total = series.config.get("total") if in_money == (series.unit is not None) else None
    most = total or (curve[COST.column].max() if in_money else series.attributes_per_example * series.n_train)
    return curve[curve[x.column] <= most]


def _usual(series: Sequence[Series]) -> tuple[Axis, Axis]:
    asked = {str(curve.config.get("axis")) for curve in series}
    priced = common_unit(series) is not None
    x = COST if priced else ATTRIBUTES
    if asked == {"examples"}:
        x = EXAMPLES
    elif asked == {"paid"}:
        x = PAID_COST if priced else PAID
    if all(curve.of_subspaces for curve in series):
        exact = all(map(_distribution_is_known, series))
        return x, EXCESS_LOSS if exact else RELATIVE_ERROR
    of_svr = all(curve.points["test_svr_loss"].notna().any() for curve in series)
    return x, SVR_LOSS if of_svr else _relative(series)


def _relative(series: Sequence[Series]) -> Axis:
    means = {curve.config.get("intercept") == "mean" for curve in series}
    return TO_EITHER if len(means) > 1 else TO_THE_MEAN if means == {True} else RELATIVE


def _distribution_is_known(series: Series) -> bool:
    kind = registry.kinds().get(series.config.get("dataset", {}).get("kind", ""))
    return kind is not None and not kind.tested
