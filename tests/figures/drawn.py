"""Figures of curves as tests look at them: the figure, the text of its caption, its labels and its legend."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from budgetreg.figures.curves import draw_curves
from budgetreg.figures.specification import PLAIN, Drawing
from budgetreg.runs.series import Series, read_series


def drawn(*folders: Path, **keys: Any) -> tuple[Figure, str]:
    """Return the figure of the runs in and below some folders, and the text of its caption in one line."""
    return of_series(read_series(folders), Drawing(**keys))


def of_series(series: Sequence[Series], drawing: Drawing = PLAIN) -> tuple[Figure, str]:
    figure, _, paragraphs = draw_curves(series, drawing)
    return figure, " ".join(" ".join(paragraphs).split())


def labels_of(ax: Axes) -> list[str]:
    """Return the labels at the ends of a panel's lines, from the top."""
    labels = [text for text in ax.texts if text.get_position()[0] > 1]
    return [text.get_text() for text in sorted(labels, key=lambda text: -text.get_position()[1])]


def legend_of(figure: Figure) -> list[str]:
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]
