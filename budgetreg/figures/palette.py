"""Colour, marker and weight of each learner, the same in every figure.

Our learners are heavy and indigo, violet, lilac or plum, published ones have colours, learners that see full rows are
black, and the others are grey. Regressors differ in colour from each other, and so do learners of subspaces, except the
black and the grey ones, which differ in marker. Colour-blind readers can distinguish the colours: they are Okabe and
Ito's (2008, "Color Universal Design") without yellow, which fades on white, and some of Tol's muted scheme (Tol 2021).
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
    "violet": "#7A5CD6",
    "lilac": "#B18FE3",
    "plum": "#AA4499",
    "teal": "#44AA99",
    "rose": "#CC6677",
    "ash": "#BDBDBD",
    "slate": "#5F5F5F",
}
"""Colours by the names that files of learners use; a file may also give ``#RRGGBB``."""


class Style(NamedTuple):
    """Colour, as ``#RRGGBB``, and marker, as matplotlib's letter, of a learner; and whether its lines are heavy."""

    colour: str
    marker: str
    heavy: bool = False


VARIANTS = tuple(
    Style(COLOURS[colour], marker)
    for colour, marker in zip(
        ("blue", "vermillion", "green", "purple", "orange", "sky", "olive", "wine", "indigo"),
        "soD^vXd*p",
        strict=True,
    )
)
"""Styles for figures of a single learner, which compare its options; black is left for full rows."""

_FALLBACK = tuple(
    Style(COLOURS[colour], marker) for marker in "8x1" for colour in ("wine", "indigo", "olive", "green", "blue")
)


@cache
def style(algo: str) -> Style:
    """Return a learner's style, which its file in ``conf/algo`` gives.

    Parameters
    ----------
    algo : str
        A learner's name. Without a ``style``, the name alone decides.
    """
    chosen = catalogue.content("algo", algo).get("style") if algo in catalogue.options("algo") else None
    if not chosen:
        return _FALLBACK[zlib.crc32(algo.encode()) % len(_FALLBACK)]
    return Style(COLOURS.get(chosen["colour"], chosen["colour"]), chosen["marker"], bool(chosen.get("heavy")))
