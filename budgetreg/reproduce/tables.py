"""Claims and savings of a figure as Markdown tables."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from budgetreg.analysis.claims import Grid, grid_of
from budgetreg.analysis.comparisons import AT_LEAST, AT_MOST
from budgetreg.notices import plural
from budgetreg.reproduce.findings import VERDICTS

_Row = Mapping[str, str]
_EMPHASIS = {"holds": "**", "open": "*", "fails": "**"}
_BOUNDS = {"": "", AT_LEAST: "≥ ", AT_MOST: "≤ "}


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def folded(summary: str, *blocks: str) -> str:
    """Return blocks of which only a summary is visible until it is opened."""
    # Markdown inside HTML needs blank lines around it.
    return "\n".join([f"<details>\n<summary>{summary}</summary>\n", *blocks, "</details>\n"])


def counted(verdicts: Mapping[str, int]) -> str:
    """Return counts of verdicts in words, such as ``3 hold, 1 is open, 2 fail``."""
    texts = {"holds": ("holds", "hold"), "open": ("is open", "are open"), "fails": ("fails", "fail")}
    counts = [(verdicts.get(verdict, 0), texts[word]) for verdict, word in VERDICTS.items()]
    return ", ".join(f"{count} {words[count != 1]}" for count, words in counts if count)


def claims(rows: Sequence[_Row], entries: Sequence[Mapping[str, Any]], head: str) -> Iterator[str]:
    """Give the claims of a figure: grids of those that belong together, and a folded table of the others.

    Parameters
    ----------
    rows : sequence of mapping
        The rows of its ``claims.csv``.
    entries : sequence of mapping
        The claims of its recipe; empty if there is none any more.
    head : str
        The head of the column of sentences.
    """
    by_id = {row["claim"]: row for row in rows}
    in_grids: set[str] = set()
    for grid in filter(None, map(grid_of, entries)):
        ids = {entry["id"] for entry in grid.entries.values()}
        if by_id.keys() >= ids:
            in_grids |= ids
            yield _grid(grid, by_id)
    others = [row for row in rows if row["claim"] not in in_grids]
    if others:
        yield _others(others, head)
    counts = sorted({int(row["repetitions"]) for row in rows} - {0})
    if counts:
        span = " to ".join(map(str, dict.fromkeys([counts[0], counts[-1]])))
        yield f"The verdicts are based on {span} repetitions.\n"


def _grid(grid: Grid, by_id: Mapping[str, _Row]) -> str:
    cells = ([row, *(_in_grid(by_id[grid.entries[row, column]["id"]]) for column in grid.columns)] for row in grid.rows)
    verdicts = Counter(by_id[entry["id"]]["verdict"] for entry in grid.entries.values())
    said = f"{grid.sentence[0].upper()}{grid.sentence[1:]}: of {verdicts.total()} claims, {counted(verdicts)}."
    text = f"{said} Each number is the largest difference between the two errors.\n"
    return text + "\n" + table(["learner", *(column or "verdict" for column in grid.columns)], cells)


def _in_grid(row: _Row) -> str:
    return f"{_mark(row)} {_number(row['estimate'])}".strip()


def _others(rows: Sequence[_Row], head: str) -> str:
    """Return a folded table with a row for each claim and a column for each preset."""
    of_claim: dict[str, dict[str, _Row]] = {}
    for row in rows:
        of_claim.setdefault(row["claim"], {})[row["protocol"]] = row
    presets = [""]
    if any(len(by_preset) > 1 for by_preset in of_claim.values()):
        presets = list(dict.fromkeys(row["protocol"] for row in rows))
    cells = []
    for claim, by_preset in of_claim.items():
        any_row = next(iter(by_preset.values()))
        here = {"": any_row} if presets == [""] else by_preset
        judged = [_judged(here[preset]) if preset in here else "" for preset in presets]
        cells.append([f"{_escaped(any_row['says'])} (`{claim}`)", _number(any_row["wanted"]), *judged])
    verdicts = Counter(row["verdict"] for row in rows)
    each = "" if presets == [""] else f" under {len(presets)} presets"
    summary = f"{plural(len(of_claim), 'claim')}{each}: {counted(verdicts)}"
    return folded(summary, table([head, "wanted", *(preset or "here" for preset in presets)], cells))


def _judged(row: _Row) -> str:
    """Return the verdict on a claim, its estimate and interval, and what there is to note."""
    numbers = _number(row["estimate"])
    if row["interval_low"]:
        numbers += f" ({_number(row['interval_low'])} to {_number(row['interval_high'])})"
    return " ".join(filter(None, [_mark(row), numbers, _escaped(row["note"])]))


def _mark(row: _Row) -> str:
    word = VERDICTS[row["verdict"]]
    return f"{_EMPHASIS[word]}{word}{_EMPHASIS[word]}"


def savings(rows: Sequence[_Row]) -> Iterator[str]:
    """Give a folded table of what learners need, for each panel at the least error that most learners reach.

    Parameters
    ----------
    rows : sequence of mapping
        The rows of a figure's ``savings.csv``.
    """
    panels: dict[str, dict[float, dict[str, _Row]]] = {}
    for row in rows:
        if row["reference"]:
            levels = panels.setdefault(row["panel"], {})
            levels.setdefault(float(row["error"]), {})[row["learner"]] = row
    if not panels:
        return
    learners = list(dict.fromkeys(row["learner"] for row in rows if row["reference"]))
    cells = []
    for panel, levels in panels.items():
        reached = {error: sum(not row["attributes_are"] for row in of.values()) for error, of in levels.items()}
        error = max(levels, key=lambda error: (reached[error], -error))
        needed = [_needed(levels[error][learner]) if learner in levels[error] else "" for learner in learners]
        cells.append([_escaped(panel), f"{error:g}", *needed])
    text = "In brackets: how many times fewer than the best learner of full rows needs.\n"
    yield folded("Attributes needed to reach an error", text, table(["panel", "error", *learners], cells))


def _needed(row: _Row) -> str:
    needed = f"{_BOUNDS[row['attributes_are']]}{float(row['attributes']):,.0f}"
    if row["learner"] == row["reference"] or not row["factor"]:
        return needed
    return f"{needed} ({_BOUNDS[row['factor_is']]}{float(row['factor']):.2g})"


def _number(text: str) -> str:
    """Return a number with commas in its thousands; other texts as they are."""
    try:
        value = float(text)
    except ValueError:
        return text
    return f"{value:,.0f}" if abs(value) >= 1000 else text


def _escaped(text: str) -> str:
    """Return a text in which Markdown has nothing to format."""
    return "".join(f"\\{character}" if character in "|*<_`[]" else character for character in text)
