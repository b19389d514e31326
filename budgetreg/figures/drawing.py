"""How a figure is drawn, where a recipe asks for something else than usual: axes, panels, bands, published curves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from budgetreg.analysis.bootstrap import ONE_SIDED, weights
from budgetreg.config.requirements import LIST, MAPPING, NAME, NOTHING, POSITIVE, list_of, one_of
from budgetreg.config.rules import Rules, check
from budgetreg.errors import ConfigError
from budgetreg.results.axis_variables import ALONG
from budgetreg.results.naming import flatten
from budgetreg.results.series import MEASURES, SUBSPACE_MEASURES, Series

_RULES: Rules = {
    "kind": ("the kind of figure", one_of("curves", "dots", "scaling", "pictures")),
    "x": ("the variable on the x axis", one_of(*ALONG) | list_of("a list of these", one_of(*ALONG)) | NOTHING),
    "x_scale": ("the scale of the x axis", one_of("log", "linear")),
    "y_scale": ("the scale of the y axis", one_of("auto", "log", "linear")),
    "measure": ("the column on the y axis", one_of(*MEASURES, *SUBSPACE_MEASURES) | NOTHING),
    "panels": ("what has a panel for each value", NAME | LIST),
    "titles": ("the titles of panels", MAPPING),
    "band": ("the band", one_of("auto", "sd", "interval", "spread")),
    "worst": ("the key of which the worst value is shown", NAME | NOTHING),
    "over": ("what a scaling goes along", NAME | NOTHING),
    "level": ("the level that curves have to fall to", POSITIVE | NOTHING),
}
BANDS = {
    "sd": "mean ± one s.d. over {times}",
    "interval": "mean, 90 % interval, {times}",
    "spread": "5 to 95 % of {times}",
}


@dataclass(frozen=True)
class Drawing:
    """How a figure is drawn.

    Attributes
    ----------
    kind : {'curves', 'dots', 'scaling', 'pictures'}
        Curves; a point per data set and learner at the last checkpoint, with the median; a point per learner and
        value of a variable; or images, for which no learner is run.
    x : str or None
        A variable of `budgetreg.results.axis_variables`; None: attributes, or examples where runs end alike in them.
    also : sequence of str
        Variables against which the same is drawn once more, each in a figure of its own.
    x_scale : {'log', 'linear'}
    y_scale : {'auto', 'log', 'linear'}
    measure : str or None
        A column of the curves; None: what all learners minimise.
    panels : str or list of str
        ``dataset``, ``algo`` or keys of the configuration: each of their values has a panel.
    titles : mapping of str to str
        Titles of panels, by value; several are joined by a comma.
    band : {'auto', 'sd', 'interval', 'spread'}
        One standard deviation over repetitions; 90 % interval of the mean by bootstrap; 5 to 95 % of repetitions.
        What ``auto`` is, `budgetreg.figures.axes.resolve_drawing` decides.
    worst : str or None
        A key of the configuration, such as ``dataset.alpha``: of curves that differ only in it the worst is shown, at
        each number of examples.
    over : str or None
        Of a scaling: the variable of `budgetreg.results.axis_variables.of` that it goes along.
    level : float or None
        Of a scaling: y is what it takes to fall to this; None: what there is at the last checkpoint.
    published : mapping
        By learner and variable of the x axis: x and y of its published curve.
    note : str
        What the figure says of itself, in its legend.
    """

    kind: str = "curves"
    x: str | None = None
    also: Sequence[str] = ()
    x_scale: str = "log"
    y_scale: str = "auto"
    measure: str | None = None
    panels: str | list[str] = "dataset"
    titles: Mapping[str, str] = field(default_factory=dict)
    band: str = "auto"
    worst: str | None = None
    over: str | None = None
    level: float | None = None
    published: Mapping[tuple[str, str], tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    note: str = ""

    def figures(self, name: str) -> dict[str, "Drawing"]:
        """Return how each of its figures is drawn, by the name of its files: the first has the name given."""
        return {name: self, **{f"{name}_{x}": replace(self, x=x, also=()) for x in self.also}}

    def panel(self, series: Series) -> str:
        """Return the panel that a series is drawn in."""
        own = {**flatten(series.config), "dataset": series.dataset, "algo": series.algo}
        return ",".join(str(own.get(key)) for key in self._keys)

    def title(self, series: Sequence[Series]) -> str:
        """Return the title of a panel, whose series are given."""
        panel = self.panel(series[0])
        if panel in self.titles:
            return self.titles[panel]
        budgets = sorted({one.k for one in series})
        budget = [f"k = {budgets[0]}"] if len(budgets) == 1 else []
        values = panel.split(",")
        named = [
            value if key in ("dataset", "algo") else f"{key} {value}"
            for key, value in zip(self._keys, values, strict=False)
        ]
        return ", ".join([*named, *budget])

    @property
    def _keys(self) -> list[str]:
        return [self.panels] if isinstance(self.panels, str) else self.panels

    def edges(self, points: pd.DataFrame, column: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and upper edge of the band at each checkpoint."""
        table = points.pivot(index="repetition", columns="examples", values=column).to_numpy(dtype=float)
        if self.band == "sd":
            mean, sd = table.mean(axis=0), table.std(axis=0, ddof=1)
            return mean - sd, mean + sd
        rows = table if self.band == "spread" else (weights(len(table)) @ table)[1:]
        low, high = np.quantile(rows, [1 - ONE_SIDED, ONE_SIDED], axis=0)
        return low, high


def parse(options: Mapping[str, Any]) -> Drawing:
    """Read the key ``figure`` of a recipe.

    Raises
    ------
    ConfigError
        If a key is unknown, or a value is not what its key needs.
    """
    default = Drawing()
    filled = {**{key: getattr(default, key) for key in _RULES}, **options}
    check(filled, _RULES, "figure")
    first, *also = filled["x"] if isinstance(filled["x"], list) else [filled["x"]]
    if (filled["kind"] == "scaling") != (filled["over"] is not None):
        raise ConfigError("figure.over: a figure of the kind scaling needs it, and no other")
    titles = {str(key): str(text) for key, text in filled["titles"].items()}
    return Drawing(**{**filled, "x": first, "also": also, "titles": titles})
