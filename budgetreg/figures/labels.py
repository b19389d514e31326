"""Labels at the ends of lines, in the order of the last values and without overlap."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from budgetreg.figures.library import Axes, Figure
from budgetreg.figures.looks import darker

_SIZE, _LINE = 8.0, 10.0  # points: of the letters, and between the middles of two labels
_LONGEST = 34  # letters
_BESIDE = 1.035  # where labels begin, in widths of the axes
_TEXT = 0.3  # share of black in the colour of labels, as light ones are hard to read
_POINTS = 72  # per inch


@dataclass(frozen=True)
class End:
    """The end of a line and its label.

    Attributes
    ----------
    text : str
    x, y : float
        Last point of the line, in data coordinates. A label of a point outside the axes shows its value.
    colour : str
    heavy : bool
        Whether the label is bold.
    """

    text: str
    x: float
    y: float
    colour: str
    heavy: bool = False


def fit(ends: Sequence[End], height: float) -> bool:
    """Return whether labels fit beside axes of a height in inches."""
    return len(ends) * _LINE <= height * _POINTS and max((len(end.text) for end in ends), default=0) <= _LONGEST


def label_ends(figure: Figure, ends: Mapping[Axes, Sequence[End]]) -> None:
    """Write labels beside the panels of a figure; call it when all else is drawn, and the limits are set."""
    texts = {ax: [_text(ax, end) for end in of_panel] for ax, of_panel in ends.items()}
    figure.draw_without_rendering()  # the labels have their space now, so that the height of the axes is known
    for ax, of_panel in texts.items():
        gap = _LINE / (ax.get_window_extent().height * _POINTS / figure.dpi)
        for text, place in zip(of_panel, spread([_fraction(ax, end) for end in ends[ax]], gap), strict=True):
            text.set_position((_BESIDE, place))


def spread(places: Sequence[float], gap: float) -> np.ndarray:
    """Return places in [0, 1] that lie a gap apart, in the same order and as close as possible to the given ones.

    Examples
    --------
    >>> spread([0.5, 0.9, 0.5], 0.1).round(2).tolist()
    [0.45, 0.9, 0.55]
    """
    order = np.argsort(places, kind="stable")
    steps = gap * np.arange(len(order))
    apart = np.clip(isotonic_regression(np.asarray(places)[order] - steps).x, 0.0, max(0.0, 1 - steps[-1:].sum()))
    moved = np.empty(len(order))
    moved[order] = apart + steps
    return moved


def _fraction(ax: Axes, end: End) -> float:
    """Return how far up in the axes a point lies."""
    _, place = ax.transAxes.inverted().transform(ax.transData.transform(_shown(ax, end)))
    return float(place)


def _shown(ax: Axes, end: End) -> tuple[float, float]:
    """Return a point, or the point of the axes that is closest to it: a log axis has no 0, and may end below a value.

    A coordinate that is undefined is at the upper end of its axis.
    """
    ranges = zip((end.x, end.y), (ax.get_xlim(), ax.get_ylim()), strict=True)
    x, y = (float(np.clip(np.nan_to_num(value, nan=np.inf), *limits)) for value, limits in ranges)
    return x, y


def _text(ax: Axes, end: End) -> Any:
    leader: dict[str, Any] = {"arrowstyle": "-", "color": end.colour, "linewidth": 0.6, "alpha": 0.7}
    return ax.annotate(
        end.text if end.y == _shown(ax, end)[1] else f"{end.text} ({end.y:.3g})",
        _shown(ax, end),
        xytext=(_BESIDE, _fraction(ax, end)),
        textcoords="axes fraction",
        arrowprops={**leader, "shrinkA": 1, "shrinkB": 3, "relpos": (0, 0.5), "patchA": None},
        annotation_clip=False,
        ha="left",
        va="center",
        fontsize=_SIZE,
        fontweight="bold" if end.heavy else "normal",
        color=darker(end.colour, _TEXT),
    )
