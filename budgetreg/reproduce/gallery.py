"""The pages of results, written from the results alone.

``results/README.md`` counts the claims of each paper and of each learner of ours that hold; the page of each folder has
its figures with their claims.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from budgetreg.analysis.claims import FAILS, HOLDS, UNDECIDED, Grid, grid_of
from budgetreg.analysis.comparisons import AT_LEAST, AT_MOST
from budgetreg.common.errors import ConfigError, UserError
from budgetreg.common.files import content_of_regular, os_errors_explained, write_atomically
from budgetreg.common.notices import plural
from budgetreg.config import catalogue
from budgetreg.config.options import FLAG, LIST, NUMBER, TEXT, Rules, check
from budgetreg.figures.captions import rounded_texts
from budgetreg.runs.manifest import read_merged_manifest
from budgetreg.runs.tables import CLAIMS, MANIFEST, SAVINGS, rows_of

FINDINGS = "findings.toml"
VERDICTS: Mapping[str, str] = {HOLDS: "holds", UNDECIDED: "open", FAILS: "fails"}
"""The best verdict first, and the word for each on pages."""
_RULES: Rules = {
    "title": ("the title of the page", TEXT),
    "ours": ("whether it is ours", FLAG),
    "place": ("its place among the pages", NUMBER),
    "source": ("the reference", TEXT),
    "found": ("what was found", TEXT),
    "each_preset": ("recipes whose presets are different data", LIST),
}
_DEFAULTS: Mapping[str, Any] = {"ours": False, "place": 0, "source": "", "found": "", "each_preset": []}


@dataclass(frozen=True)
class Findings:
    """The findings of a folder of recipes.

    Attributes
    ----------
    title : str
        The paper, or the learner.
    ours : bool
        Whether it is a learner of ours.
    place : float
        Where its page stands among the others, ascending.
    source : str
        The reference, in Markdown; may be empty.
    found : str
        A few sentences on what holds, in Markdown, without its comments; may be empty.
    each_preset : tuple of str
        Recipes whose presets are different data, so that a claim counts once for each preset.
    """

    title: str
    ours: bool = False
    place: float = 0
    source: str = ""
    found: str = ""
    each_preset: tuple[str, ...] = ()


def read_findings(folder: str) -> Findings:
    """Return the findings of a folder of recipes, such as ``gonen_2016``; without a file, its name is the title.

    Raises
    ------
    ConfigError
        If its file has a mistake.
    """
    paths = [place / "experiment" / folder / FINDINGS for place in catalogue.conf_dirs()]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        return Findings(folder)
    try:
        content = {"title": folder, **_DEFAULTS, **tomllib.loads(path.read_text(encoding="utf-8"))}
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {' '.join(str(error).split())}") from error
    check(content, _RULES, f"{path}: ")
    found = re.sub(r"<!--.*?-->", "", content["found"]).strip()  # comments tie numbers to their tables
    return Findings(**{**content, "found": found, "each_preset": tuple(content["each_preset"])})


def tally(rows: Iterable[Mapping[str, str]], each_preset: bool = False) -> Counter[str]:
    """Count the claims of a figure by their best verdict over presets, or by each of their verdicts.

    Parameters
    ----------
    rows : iterable of mapping
        The rows of its ``claims.csv``.
    each_preset : bool, optional
        Whether a claim counts once for each preset.
    """
    order = list(VERDICTS)
    best: dict[tuple[str, str], str] = {}
    for row in rows:
        claim = (row["claim"], row["protocol"] if each_preset else "")
        best[claim] = min(best.get(claim, row["verdict"]), row["verdict"], key=order.index)
    return Counter(best.values())


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


def claims(rows: Sequence[_Row], entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Give the claims of a figure: grids of those that belong together, and a folded table of the others.

    Parameters
    ----------
    rows : sequence of mapping
        The rows of its ``claims.csv``.
    entries : sequence of mapping
        The claims of its recipe; empty if there is none any more.
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
        yield _others(others)
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
    number, *_ = rounded_texts(row["estimate"], row["interval_low"], row["interval_high"])
    return f"{_mark(row)} {number}".strip()


def _others(rows: Sequence[_Row]) -> str:
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
    return folded(summary, table(["claim", "wanted", *(preset or "here" for preset in presets)], cells))


def _judged(row: _Row) -> str:
    """Return the verdict on a claim, its estimate and interval, and what there is to note."""
    numbers, low, high = rounded_texts(row["estimate"], row["interval_low"], row["interval_high"])
    if low:
        numbers += f" ({low} to {high})"
    return " ".join(filter(None, [_mark(row), numbers, _escaped(row["note"])]))


def _mark(row: _Row) -> str:
    word = VERDICTS[row["verdict"]]
    return f"{_EMPHASIS[word]}{word}{_EMPHASIS[word]}"


def savings(rows: Sequence[_Row], titles: Mapping[str, str] = {}) -> Iterator[str]:
    """Give a folded table of what learners need, for each panel at the least error that most learners reach.

    Parameters
    ----------
    rows : sequence of mapping
        The rows of a figure's ``savings.csv``.
    titles : mapping of str to str
        Titles of panels.
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
        cells.append([_escaped(titles.get(panel, panel)), f"{error:g}", *needed])
    text = "In brackets: what the best learner on full rows needs, divided by what this learner needs.\n"
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


MARK = "<!-- Written by `budgetreg reproduce` -->\n"
"""How each page begins, so that no other file is replaced by one."""


def page(folder: Path, findings: Findings) -> str:
    """Return the page of a folder of results; empty if it has no figures.

    Parameters
    ----------
    folder : Path
        The folder of a paper, with a folder for each figure, or a picture with a caption.
    findings : Findings
    """
    figures = [block for path in sorted(folder.iterdir()) for block in _figure(path, findings)]
    if not figures:
        return ""
    head = [MARK, f"# {findings.title}\n", *(f"{text}\n" for text in (findings.source, findings.found) if text)]
    return "\n".join([*head, *_counts(folder, findings), *figures, "[All results](../README.md)\n"])


def verdicts_of(folder: Path, findings: Findings) -> Counter[str]:
    """Count the claims of all figures in a folder of results; see `budgetreg.reproduce.gallery.tally`."""
    return sum(_verdicts(folder, findings).values(), Counter())


def _verdicts(folder: Path, findings: Findings) -> dict[str, Counter[str]]:
    """Return the verdicts of each figure that claims something, by name."""
    verdicts = {
        file.parent.name: tally(rows_of(file.read_bytes()), file.parent.name in findings.each_preset)
        for file in sorted(folder.glob(f"*/{CLAIMS}"))
    }
    return {name: counts for name, counts in verdicts.items() if counts}


def _counts(folder: Path, findings: Findings) -> Iterator[str]:
    """Give a table of the verdicts of each figure."""
    counts = _verdicts(folder, findings)
    if counts:
        rows = ([f"[{name}](#{name})", *(str(of[verdict]) for verdict in VERDICTS)] for name, of in counts.items())
        yield table(["figure", *VERDICTS.values()], rows)


def _figure(path: Path, findings: Findings) -> Iterator[str]:
    """Give the blocks of a folder of results, or of a picture with a caption; nothing for other files."""
    if (path / MANIFEST).is_file():
        try:
            manifest = read_merged_manifest(path)
        except UserError:  # it is damaged, which reproducing its figure reports
            return
        if manifest is None:
            return
        yield f"## {path.name}\n\n{manifest['title']}\n"
        for picture in sorted(path.glob("curves*.png")):
            yield from _picture(picture, path.name, f"{path.name}/")
        if (path / CLAIMS).is_file():  # a picture claims nothing
            recipe = _recipe(manifest["recipe"])
            titles = {str(panel): title for panel, title in recipe.get("figure", {}).get("titles", {}).items()}
            if len(set(titles.values())) < len(titles):  # panels of several rows or columns share theirs
                titles = {panel: f"{title} ({panel})" for panel, title in titles.items()}
            yield from claims(rows_of((path / CLAIMS).read_bytes()), recipe.get("claims", []))
            yield from savings(rows_of((path / SAVINGS).read_bytes()), titles)
        if manifest["differs"]:
            yield f"{'Notes' if findings.ours else 'Differences from the paper'}:\n"
            yield "\n".join(f"- {sentence}" for sentence in manifest["differs"]) + "\n"
    elif path.suffix == ".png" and path.with_suffix(".txt").is_file():
        yield f"## {path.stem}\n"
        yield from _picture(path, path.stem, "")


def _picture(picture: Path, name: str, place: str) -> Iterator[str]:
    """Give a picture and its folded caption, without the settings that follow in the caption's file."""
    file = picture.with_suffix(".txt")
    title, _, rest = file.read_text(encoding="utf-8").partition("\n\n")
    title = " ".join(title.removeprefix(f"{picture.stem}: ").split())
    yield f"![{name}: {title}]({place}{picture.name})\n"
    made = "\n".join(line.strip() for line in rest.partition("\n\n")[0].splitlines())
    link = f"\n[All settings]({place}{file.name})\n"
    yield folded(f"How the figure is made: {title}", *([_plain(made)] if made else []), link)


def _plain(text: str) -> str:
    """Return a text in which Markdown formats nothing."""
    for character in "\\*_<|`":
        text = text.replace(character, f"\\{character}")
    return text


def _recipe(name: str) -> Mapping[str, Any]:
    """Return a recipe as it stands in its file; nothing if there is no such recipe any more."""
    return catalogue.content("experiment", name) if catalogue.has_option("experiment", name) else {}


_PAGE = "README.md"
_HEAD = "# Which claims hold\n"
_EARLIER = "# Figures of the papers, reproduced"
"""The first line of galleries of earlier versions."""
_METHOD = """## How to read the verdicts

A claim is a statistic of curves and a region where it must lie. It **holds** if the 90 % interval of the statistic lies
in the region, **fails** if the interval lies outside, and is *open* (`undecided` in `claims.csv`) otherwise. Some
recipes have presets, such as raw and centred pixels. Then each claim counts once above, with its best verdict, unless
the presets are different data. If two curves are claimed to be ordered, the statistic is their largest difference. If a
curve is claimed to be near a value or a published curve, it is the difference where they are farthest apart. If
published points are claimed to lie within a spread, it is the smallest share, over these points, of repetitions above
or below the point.

The folder of each figure has its curves (`curves.csv`), the chosen parameters and the bill (`runs.csv`), the verdicts
(`claims.csv`), the attributes that each learner needs to reach an error (`savings.csv`) and a caption (`curves.txt`).

`budgetreg reproduce` makes all of this again. The same versions of the libraries and the same family of processors give
the same bytes, and other processors the same numbers to 1e-9 (`budgetreg verify`), with two exceptions. AERR, DDAERR
and its two-phase form weigh a revealed value by |w|²/w_j, which is unbounded, so that round-off grows. In AEML and
AEMR, round-off changes the Markov chains and the draws. The results of all these differ between processor types, but
have the same distribution.
"""


def refuse_foreign(results: Path, folders: Iterable[str] = ()) -> None:
    """Refuse to replace a ``README.md`` that is not one of the pages.

    Parameters
    ----------
    results : Path
        The folder with a folder for each paper.
    folders : iterable of str, optional
        The names of the folders that get a page, too.

    Raises
    ------
    ConfigError
        If there is such a file.
    """
    for path in (results / _PAGE, *(results / folder / _PAGE for folder in dict.fromkeys(folders))):
        with os_errors_explained(f"read {path}"):
            foreign = path.exists() and not content_of_regular(path).startswith((MARK.encode(), _EARLIER.encode()))
        if foreign:
            raise ConfigError(f"{path} is no page of results, and would be replaced by one: choose another out")


def write_gallery(results: Path) -> Path:
    """Write the page of each folder of results, and the page that sums them up.

    Parameters
    ----------
    results : Path
        As for `pages_of`.

    Returns
    -------
    Path
        The file that sums them up.

    Raises
    ------
    ConfigError
        If a page would replace another file, or the findings of a paper have a mistake.
    """
    for path, content in pages_of(results).items():
        new = content.encode()
        if not path.is_file() or path.read_bytes() != new:
            refuse_foreign(path.parent)
            write_atomically(path, new)
    return results / _PAGE


def pages_of(results: Path) -> dict[Path, str]:
    """Return the content of all pages, by the file of each.

    Parameters
    ----------
    results : Path
        The folder with a folder for each paper, which has a folder of merged results for each recipe.

    Raises
    ------
    ConfigError
        If the findings of a paper have a mistake.
    """
    pages: dict[Path, str] = {}
    found: dict[Path, Findings] = {}
    for folder in sorted(path for path in results.iterdir() if path.is_dir()):
        findings = read_findings(folder.name)
        content = page(folder, findings)
        if content:
            pages[folder / _PAGE], found[folder] = content, findings
    return {**pages, results / _PAGE: "\n".join([MARK, _HEAD, *_summaries(found), _METHOD])}


def _summaries(pages: Mapping[Path, Findings]) -> Iterator[str]:
    """Give tables with the verdicts on the papers' claims and on ours, then the pages that claim nothing."""
    rows: dict[bool, list[list[str]]] = {False: [], True: []}
    others = []
    for folder, findings in sorted(pages.items(), key=lambda item: item[1].place):
        link = f"[{findings.title}]({folder.name}/{_PAGE})"
        counts = verdicts_of(folder, findings)
        if counts:
            found = " ".join(findings.found.split())
            rows[findings.ours].append([link, *(str(counts[verdict]) for verdict in VERDICTS), found])
        else:
            others.append(link)
    for ours, head in ((False, "paper"), (True, "learner of ours")):
        if rows[ours]:
            yield table([head, *VERDICTS.values(), "what was found"], rows[ours])
    if others:
        yield f"Figures without claims: {', '.join(others)}\n"
