"""Claims that say the same of several learners and several data sets or budgets, as grids."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_Entry = Mapping[str, Any]
_COMPARING = ("below", "buys_more")
_FEWEST = 3
"""Fewest learners that make a grid."""


@dataclass(frozen=True)
class Grid:
    """Claims in rows and columns.

    Attributes
    ----------
    sentence : str
        What all of them say, in Markdown, with words for what varies.
    rows, columns : tuple of str
        What each of them says there; there may be a single column without a name.
    ids : mapping of (str, str) to str
        The id of the claim of a row and a column.
    """

    sentence: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    ids: Mapping[tuple[str, str], str]


def grids(entries: Sequence[_Entry]) -> list[Grid]:
    """Return the grids among the claims of a recipe, in order.

    Claims belong together if they compare one learner with several, under one condition each, and their sentences
    differ in nothing but the names of these.

    Parameters
    ----------
    entries : sequence of mapping
        The claims as the recipe has them.
    """
    groups: dict[tuple[object, ...], list[_Entry]] = {}
    for entry in entries:
        where = entry.get("where", {})
        if entry["kind"] in _COMPARING and isinstance(entry["a"], str) and isinstance(entry["b"], str):
            key = (entry["kind"], entry["a"], entry.get("x"), tuple(where), frozenset(entry))
            if len(where) == 1 and "also" not in entry:
                groups.setdefault(key, []).append(entry)
    found = (_grid(group, next(iter(group[0]["where"]))) for group in groups.values())
    return [grid for grid in found if grid is not None]


def _grid(entries: Sequence[_Entry], key: str) -> Grid | None:
    """Return the grid of some claims, unless they differ in more than two places of their sentences."""
    says = {(str(entry["where"][key]), entry["b"]): _words(entry["says"]) for entry in entries}
    columns, rows = (list(dict.fromkeys(place[axis] for place in says)) for axis in (0, 1))
    edges = {(columns[0], row) for row in rows} | {(column, rows[0]) for column in columns}
    if len(rows) < _FEWEST or len(says) < len(entries) or not edges <= says.keys():
        return None
    first = says[columns[0], rows[0]]
    learner = _slot([says[columns[0], row] for row in rows])
    learners = {row: _between(says[columns[0], row], learner) for row in rows}
    slots = [(learner, "learner")]
    heads, places = dict.fromkeys(columns, ""), dict.fromkeys(columns, "")
    if len(columns) > 1:
        place = _slot([says[column, rows[0]] for column in columns])
        if learner[0] < len(first) - place[1] and place[0] < len(first) - learner[1]:
            return None  # what varies overlaps
        places = {column: _between(says[column, rows[0]], place) for column in columns}
        heads = {column: f"k = {column}" for column in columns} if key == "k" else places
        slots = sorted([*slots, (place, "place")])

    def sentence(names: Mapping[str, str]) -> str:
        text, end = "", 0
        for (before, after), name in slots:
            text += "".join(first[end:before]) + names[name]
            end = len(first) - after
        return text + "".join(first[end:])

    for (column, row), words in says.items():
        if sentence({"learner": learners[row], "place": places[column]}) != "".join(words):
            return None
    return Grid(
        sentence({"learner": "*learner*", "place": "*k*" if key == "k" else "*data*"}),
        tuple(learners.values()),
        tuple(heads.values()),
        {(learners[entry["b"]], heads[str(entry["where"][key])]): str(entry["id"]) for entry in entries},
    )


def _words(says: str) -> list[str]:
    return re.findall(r"\s+|[\w.'-]+|[^\w\s]", says)


def _slot(several: Sequence[Sequence[str]]) -> tuple[int, int]:
    """Return how many words all sentences begin with, and how many others they end with."""
    before = _shared(several)
    return before, _shared([words[before:][::-1] for words in several])


def _shared(several: Iterable[Sequence[str]]) -> int:
    count = 0
    for words in zip(*several, strict=False):
        if len(set(words)) > 1:
            break
        count += 1
    return count


def _between(words: Sequence[str], slot: tuple[int, int]) -> str:
    return "".join(words[slot[0] : len(words) - slot[1]])
