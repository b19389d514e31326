"""Colour and marker of each learner, the same in every figure.

The colours are Okabe and Ito's, told apart by colour-blind readers (Okabe & Ito 2008, "Color Universal
Design"), without their yellow, which fades on white, and with three of Tol's muted scheme (Tol 2021).
Learners that the papers draw in one figure differ in colour; learners that share a colour differ in marker.
"""

import zlib
from functools import cache
from typing import NamedTuple

from budgetreg.config import catalogue

VERMILLION, BLUE, GREEN, PURPLE = "#D55E00", "#0072B2", "#009E73", "#CC79A7"
SKY, ORANGE, BLACK, GREY = "#56B4E9", "#E69F00", "#000000", "#808080"
OLIVE, WINE, INDIGO = "#999933", "#882255", "#332288"


COLOURS = {
    "vermillion": VERMILLION,
    "blue": BLUE,
    "green": GREEN,
    "purple": PURPLE,
    "sky": SKY,
    "orange": ORANGE,
    "black": BLACK,
    "grey": GREY,
    "olive": OLIVE,
    "wine": WINE,
    "indigo": INDIGO,
}
"""By the names that files of learners use; they may also write ``#RRGGBB``."""


class Style(NamedTuple):
    """How a learner is drawn: colour as ``#RRGGBB``, marker in matplotlib's letters."""

    colour: str
    marker: str


VARIANTS = (
    Style(BLUE, "s"),
    Style(VERMILLION, "o"),
    Style(GREEN, "D"),
    Style(PURPLE, "^"),
    Style(ORANGE, "v"),
    Style(BLACK, "P"),
    Style(SKY, "X"),
    Style(OLIVE, "d"),
    Style(WINE, "*"),
    Style(INDIGO, "p"),
)
"""For figures of a single learner, which show what its choices do."""

_FALLBACK = tuple(Style(colour, marker) for marker in ("8", "x", "1") for colour in (WINE, INDIGO, OLIVE, GREEN, BLUE))


@cache
def style(algo: str) -> Style:
    """Return a learner's colour and marker, as its file in ``conf/algo`` has them under ``style``.

    Parameters
    ----------
    algo
        A learner's name; one without a style of its own gets one that depends on its name alone.
    """
    told = catalogue.content("algo", algo).get("style") if algo in catalogue.options("algo") else None
    if not told:
        return _FALLBACK[zlib.crc32(algo.encode()) % len(_FALLBACK)]
    return Style(COLOURS.get(told["colour"], told["colour"]), told["marker"])
