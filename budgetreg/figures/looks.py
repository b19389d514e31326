"""How the curve of each label is drawn: the colour and marker of its learner, or of its variant.

Our learners are heavy and indigo, violet, lilac or plum, published ones have colours, learners that see full rows are
black, or dark grey if they are online, and the others are grey. Regressors differ in colour from each other, and so do
learners of subspaces, except the black and the grey ones, which differ in marker; lasso's lines are broken, ridge's are
not. Colour-blind readers can distinguish the colours: they are Okabe and Ito's (2008, "Color Universal Design") without
yellow, which fades on white, and some of Tol's muted scheme (Tol 2021), with an indigo that is lighter than black
without colours, too.
"""

import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from budgetreg.config import catalogue
from budgetreg.figures.canvas import Artist, Line2D, mixed
from budgetreg.figures.specification import PLAIN, Drawing
from budgetreg.runs.series import Series, budgets_of

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
    "indigo": "#4433BB",
    "violet": "#7A5CD6",
    "lilac": "#B18FE3",
    "plum": "#AA4499",
    "teal": "#44AA99",
    "rose": "#CC6677",
    "slate": "#5F5F5F",
}
"""Colours by the names that files of learners use; a file may also give ``#RRGGBB``."""


class Style(NamedTuple):
    """How a learner is drawn.

    Attributes
    ----------
    colour : str
        As ``#RRGGBB``.
    marker : str
        Matplotlib's letter.
    heavy, broken : bool
        Whether its lines are.
    name : str
        What titles and labels call it, such as AEMR.
    """

    colour: str
    marker: str
    heavy: bool = False
    broken: bool = False
    name: str = ""


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
        return _FALLBACK[zlib.crc32(algo.encode()) % len(_FALLBACK)]._replace(name=algo)
    colour, (heavy, broken) = chosen["colour"], (bool(chosen.get(key)) for key in ("heavy", "broken"))
    return Style(COLOURS.get(colour, colour), chosen["marker"], heavy, broken, chosen.get("name", algo))


def called(curve: Series) -> Series:
    """Return a series whose label has the learner's name in figures: ``AEMR k=4`` for ``aemr k=4``."""
    algo, *variant = re.split(r"(?=[ ,])", curve.label, maxsplit=1)
    return replace(curve, label="".join([style(algo).name, *variant])) if algo == curve.algo else curve


Looks = Mapping[str, Mapping[str, Any]]
"""Options of matplotlib's lines, by label."""

_PUBLISHED: Mapping[str, Mapping[str, Any]] = {
    "curves": {"linestyle": (0, (5, 2)), "linewidth": 1.1, "markersize": 3.5, "markerfacecolor": "white", "zorder": 2},
    "points": {"linestyle": "none", "markersize": 8.5, "markeredgewidth": 1.6, "markerfacecolor": "none", "zorder": 6},
}
_HEAVY, _USUAL = 2.6, 1.5  # points
_THIN = {"linewidth": 1.0, "markersize": 3.0, "zorder": 2.5}
_TINTS = (0.0, 0.4, 0.6, 0.75)  # shares of white, for the variants of one learner among others
_BLACK = COLOURS["black"]
_BROKEN = "-."  # unlike what was published, and unlike bounds


def looks_of(series: Sequence[Series], drawing: Drawing = PLAIN) -> Looks:
    """Return the look of each label.

    A learner has its own colour. Its variants are lighter, and each second one has hollow markers; the same shade
    stands for the same budget of all learners, unless learners have several variants. If each panel shows the variants
    of one learner, colours stand for these: a variant that sees full rows is black, and one that chooses k itself has
    the learner's own look. If the drawing names learners, all others are thin.
    """
    variants: Counter[str] = Counter()
    looks: dict[str, dict[str, Any]] = {}
    if shows_variants(series, drawing):
        return _looks_of_variants(series)
    budgets = budgets_of(series)
    by_budget = len({(curve.algo, curve.k) for curve in series}) == len({curve.label for curve in series})
    for curve in series:
        if curve.label in looks:
            continue
        at = budgets.index(curve.k) if by_budget else variants[curve.algo]
        variants[curve.algo] += 1
        thin = {} if drawing.is_named(curve.algo) else _THIN
        looks[curve.label] = {**look_of(curve.algo, at), **thin}
    return looks


def _looks_of_variants(series: Sequence[Series]) -> Looks:
    of_full_rows = {curve.label for curve in series if curve.k == curve.d}
    others = [curve for curve in series if curve.label not in of_full_rows and not isinstance(curve.k, str)]
    names = list(dict.fromkeys(within_learner(curve) for curve in others))
    looks: dict[str, dict[str, Any]] = {}
    for curve in series:
        if curve.label in of_full_rows:
            looks[curve.label] = _look(_BLACK, style(curve.algo).marker, _USUAL)
        elif isinstance(curve.k, str):
            looks[curve.label] = look_of(curve.algo)
        else:
            at = names.index(within_learner(curve))
            colour, marker, *_ = VARIANTS[at % len(VARIANTS)]
            looks[curve.label] = _look(colour, marker, _USUAL, hollow=at >= len(VARIANTS))
    return looks


def look_of(algo: str, variant: int = 0) -> dict[str, Any]:
    """Return the look of a learner's variant: lighter than the learner's own, with hollow markers for each second."""
    colour, marker, heavy, broken, _ = style(algo)
    tint = _TINTS[variant % len(_TINTS)]
    shade = mixed(colour, tint, "white") if tint else colour
    hollow = (variant + variant // len(_TINTS)) % 2 == 1
    look = _look(shade, marker, _HEAVY if heavy else _USUAL, hollow=hollow)
    return {**look, "linestyle": _BROKEN} if broken else look


def is_heavy(look: Mapping[str, Any]) -> bool:
    """Return whether a look is that of one of our learners."""
    return bool(look["linewidth"] == _HEAVY)


def published_look(look: Mapping[str, Any], drawing: Drawing) -> Mapping[str, Any]:
    """Return how the published numbers of a learner are drawn, given the look of its curve."""
    return {"color": look["color"], "marker": look.get("marker", "o"), **_PUBLISHED[drawing.published_as]}


def published_entry(series: Sequence[Series], drawing: Drawing) -> dict[str, Artist]:
    """Return the sample of published numbers in a legend; nothing if there are none of the learners."""
    if not {curve.algo for curve in series} & {algo for algo, _ in drawing.published}:
        return {}
    return {"as published": Line2D([], [], **published_look({"color": "black"}, drawing))}


def shows_variants(series: Sequence[Series], drawing: Drawing) -> bool:
    """Return whether each panel shows the variants of a single learner."""
    panels = drawing.split(series).values()
    return all(len({curve.algo for curve in panel}) == 1 for panel in panels) and any(
        len(panel) > 1 for panel in panels
    )


def within_learner(curve: Series) -> str:
    """Return the label of a series without the name of its learner; the name if there is nothing else."""
    name = style(curve.algo).name
    return called(curve).label.removeprefix(name).lstrip(" ,") or name


def _look(colour: str, marker: str, width: float, *, hollow: bool = False) -> dict[str, Any]:
    heavy = width > _USUAL
    return {
        "color": colour,
        "linewidth": width,
        "marker": marker,
        "markersize": 6.5 if heavy else 5.0,
        "markerfacecolor": "white" if hollow else colour,
        "zorder": 5 if heavy else 4 if colour == _BLACK else 3,
    }
