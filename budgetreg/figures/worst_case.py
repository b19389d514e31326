"""The worst of several laws at each number of examples: what a bound on all laws is compared with."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from budgetreg.results.naming import flatten
from budgetreg.results.nested import common
from budgetreg.results.series import Series, mean_curve


def worst(series: Sequence[Series], key: str, column: str) -> Iterator[Series]:
    """Merge series that differ only in one key of the configuration.

    Parameters
    ----------
    series : sequence of Series
        As `budgetreg.results.series.read_folder` returns them.
    key : str
        Such as ``dataset.alpha``.
    column : str
        What is to be largest.

    Yields
    ------
    Series
        At each number of examples the points of that series whose mean is the largest.  The preset of a recipe is its
        label, where there is one.
    """
    alike: dict[tuple[tuple[str, str], ...], list[Series]] = {}
    for one in series:
        rest = {other: str(value) for other, value in flatten(one.config).items() if other != key}
        alike.setdefault(tuple(rest.items()), []).append(one)
    for several in alike.values():
        points = pd.concat(_worst_points(several, column), ignore_index=True)
        config = common([one.config for one in several])
        label = str(config.get("protocol") or several[0].algo)
        yield replace(several[0], dataset=config["dataset"]["name"], label=label, points=points, config=config)


def _worst_points(several: Sequence[Series], column: str) -> Iterator[pd.DataFrame]:
    curves = [mean_curve(one.points).set_index("examples")[column] for one in several]
    for examples in curves[0].index:
        points = several[int(np.argmax([curve[examples] for curve in curves]))].points
        yield points[points["examples"] == examples]
