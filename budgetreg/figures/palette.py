"""Colour and marker of each learner, the same in every figure.

Colour-blind readers can distinguish the colours. They are Okabe and Ito's (2008, "Color Universal Design") without
yellow, which fades on white, and three of Tol's muted scheme (Tol 2021). Learners that the papers draw in one figure
differ in colour; learners that share a colour differ in marker.
"""

import zlib
from functools import cache
from typing import NamedTuple

from budgetreg.config import catalogue

COLOURS = {
    "vermillion": "#D55E00",
    "blue": "#0072B2",
    "green": "#009E73",
    "purple": "#CC79A7",
    "sky": "#56B4E9",
    "orange": "#E69F00",
    "black": "#000000",
    "grey": "#808080",
    "olive": "#999933",
    "wine": "#882255",
    "indigo": "#332288",
}
"""Colours by the names that files of learners use; a file may also give ``#RRGGBB``."""


class Style(NamedTuple):
    """Colour, as ``#RRGGBB``, and marker, as matplotlib's letter, of a learner."""

    colour: str
    marker: str


VARIANTS = tuple(
    Style(COLOURS[colour], marker)
    for colour, marker in zip(
        ("blue", "vermillion", "green", "purple", "orange", "black", "sky", "olive", "wine", "indigo"),
        "soD^vPXd*p",
        strict=True,
    )
)
"""Styles for figures of a single learner, which compare its options."""

_FALLBACK = tuple(
    Style(COLOURS[colour], marker) for marker in "8x1" for colour in ("wine", "indigo", "olive", "green", "blue")
)


@cache
def style(algo: str) -> Style:
    """Return a learner's colour and marker, the ``style`` in its file of ``conf/algo``.

    Parameters
    ----------
    algo : str
        A learner's name. Without a ``style``, the name alone decides.
    """
    chosen = catalogue.content("algo", algo).get("style") if algo in catalogue.options("algo") else None
    if not chosen:
        return _FALLBACK[zlib.crc32(algo.encode()) % len(_FALLBACK)]
    return Style(COLOURS.get(chosen["colour"], chosen["colour"]), chosen["marker"])
