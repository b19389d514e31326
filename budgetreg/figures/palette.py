"""Colour and marker of each learner, the same in every figure.

The colours are Okabe and Ito's, told apart by colour-blind readers (Okabe & Ito 2008, "Color Universal
Design"), without their yellow, which fades on white, and with three of Tol's muted scheme (Tol 2021).
Learners that the papers draw in one figure differ in colour; learners that share a colour differ in marker.
"""

import zlib
from typing import NamedTuple

VERMILLION, BLUE, GREEN, PURPLE = "#D55E00", "#0072B2", "#009E73", "#CC79A7"
SKY, ORANGE, BLACK, GREY = "#56B4E9", "#E69F00", "#000000", "#808080"
OLIVE, WINE, INDIGO = "#999933", "#882255", "#332288"


class Style(NamedTuple):
    """How a learner is drawn: colour as ``#RRGGBB``, marker in matplotlib's letters."""

    colour: str
    marker: str


STYLES = {
    "aer": Style(VERMILLION, "o"),
    "aerr": Style(BLUE, "s"),
    "aelr": Style(GREEN, "D"),
    "ddaerr": Style(PURPLE, "^"),
    "ddaelr": Style(PURPLE, "v"),
    "ddaerr_two_phase": Style(SKY, "P"),
    "ddaelr_two_phase": Style(SKY, "X"),
    "aesvr": Style(INDIGO, "p"),
    "baseline": Style(OLIVE, "d"),
    "naive": Style(WINE, "*"),
    "online_ridge": Style(ORANGE, "<"),
    "online_lasso": Style(ORANGE, ">"),
    "ridge": Style(BLACK, "h"),
    "lasso": Style(GREY, "H"),
    "popca": Style(VERMILLION, "s"),
    "popca_passive": Style(BLUE, "o"),
    "popca_importance": Style(GREEN, "^"),
    "mbeg": Style(PURPLE, "D"),
    "mbeg_plus": Style(SKY, "d"),
    "pca": Style(BLACK, "p"),
    "zero_filled_pca": Style(GREY, "*"),
    "oja": Style(ORANGE, "v"),
    "grouse": Style(OLIVE, "X"),
    "petrels": Style(WINE, "P"),
}

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


def style(algo: str) -> Style:
    """Return a learner's colour and marker.

    Parameters
    ----------
    algo
        A learner's name; one that is not in `STYLES` gets a style that depends on its name alone.
    """
    return STYLES.get(algo) or _FALLBACK[zlib.crc32(algo.encode()) % len(_FALLBACK)]
