"""The pages of results, written from the results alone.

``results/README.md`` counts the claims of each paper and of each learner of ours that hold; the page of each folder has
its figures with their claims. The templates beside this module say how they look.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from budgetreg.analysis.claims import FAILS, HOLDS, UNDECIDED, Grid, grid_of
from budgetreg.analysis.comparisons import AT_LEAST, AT_MOST
from budgetreg.common.errors import ConfigError, UserError
from budgetreg.common.files import content_of_regular, os_errors_explained, write_atomically
from budgetreg.common.notices import plural
from budgetreg.config import catalogue
from budgetreg.config.options import FLAG, LIST, NUMBER, TEXT, checked, option, options_of
from budgetreg.figures.captions import rounded_texts
from budgetreg.runs.manifest import read_merged_manifest
from budgetreg.runs.tables import CLAIMS, MANIFEST, SAVINGS, rows_of

FINDINGS = "findings.toml"
MARK = "<!-- Written by `budgetreg reproduce` -->\n"
"""How each page begins, so that no other file is replaced by one."""
VERDICTS: Mapping[str, str] = {HOLDS: "holds", UNDECIDED: "open", FAILS: "fails"}
"""The best verdict first, and the word for each on pages."""

_PAGE = "README.md"
_KINDS = {False: "paper", True: "learner of ours"}
_MARKS = {HOLDS: "**holds**", UNDECIDED: "*open*", FAILS: "**fails**"}
_COUNTED = {HOLDS: ("holds", "hold"), UNDECIDED: ("is open", "are open"), FAILS: ("fails", "fail")}
_BOUNDS = {"": "", AT_LEAST: "≥ ", AT_MOST: "≤ "}
_Row = Mapping[str, str]


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
    each_preset : sequence of str
        Recipes whose presets are different data, so that a claim counts once for each preset.
    """

    title: str = option("the title of the page", TEXT)
    ours: bool = option("whether it is ours", FLAG, default=False)
    place: float = option("its place among the pages", NUMBER, default=0)
    source: str = option("the reference", TEXT, default="")
    found: str = option("what was found", TEXT, default="")
    each_preset: Sequence[str] = option("recipes whose presets are different data", LIST, default=[])


def read_findings(folder: str) -> Findings:
    """Return the findings of a folder of recipes, such as ``gonen_2016``; without a title, its name is the title.

    Raises
    ------
    ConfigError
        If its file has a mistake.
    """
    paths = [place / "experiment" / folder / FINDINGS for place in catalogue.conf_dirs()]
    path = next((path for path in paths if path.is_file()), None)
    try:
        given = {} if path is None else tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {' '.join(str(error).split())}") from error
    content = checked({"title": folder, **given}, options_of(Findings), f"{path}: ")
    found = re.sub(r"<!--.*?-->", "", content["found"]).strip()  # comments tie numbers to their tables
    return Findings(**{**content, "found": found})


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
            foreign = path.exists() and not content_of_regular(path).startswith(MARK.encode())
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
    tables: dict[str, list[list[object]]] = {kind: [] for kind in _KINDS.values()}
    others = []
    folders = {folder: read_findings(folder.name) for folder in sorted(results.iterdir()) if folder.is_dir()}
    for folder, findings in sorted(folders.items(), key=lambda item: item[1].place):
        figures = [figure for path in sorted(folder.iterdir()) for figure in _figure(path)]
        if not figures:
            continue
        verdicts = _verdicts(folder, findings)
        counts = [[f"[{name}](#{name})", *_in_order(of)] for name, of in verdicts.items()]
        pages[folder / _PAGE] = _rendered("page", findings=findings, counts=counts, figures=figures)
        link = f"[{findings.title}]({folder.name}/{_PAGE})"
        if verdicts:
            row = [link, *_in_order(sum(verdicts.values(), Counter())), " ".join(findings.found.split())]
            tables[_KINDS[findings.ours]].append(row)
        else:
            others.append(link)
    return {**pages, results / _PAGE: _rendered("summary", tables=tables, others=others)}


def tally(rows: Iterable[_Row], each_preset: bool = False) -> Counter[str]:
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


def _verdicts(folder: Path, findings: Findings) -> dict[str, Counter[str]]:
    """Return the verdicts of each figure that claims something, by name."""
    verdicts = {
        file.parent.name: tally(rows_of(file.read_bytes()), file.parent.name in findings.each_preset)
        for file in sorted(folder.glob(f"*/{CLAIMS}"))
    }
    return {name: counts for name, counts in verdicts.items() if counts}


def _in_order(counts: Counter[str]) -> list[int]:
    return [counts[verdict] for verdict in VERDICTS]


def _figure(path: Path) -> Iterator[dict[str, Any]]:
    """Give what a page shows of a folder of results, or of a picture with a caption; nothing for other files."""
    if (path / MANIFEST).is_file():
        try:
            manifest = read_merged_manifest(path)
        except UserError:  # it is damaged, which reproducing its figure reports
            return
        if manifest is None:
            return
        figure = {"name": path.name, "title": manifest["title"], "differs": manifest["differs"]}
        figure["pictures"] = [_picture(picture, f"{path.name}/") for picture in sorted(path.glob("curves*.png"))]
        if (path / CLAIMS).is_file():  # a picture claims nothing
            name = manifest["recipe"]
            recipe = catalogue.content("experiment", name) if catalogue.has_option("experiment", name) else {}
            titles = {str(panel): title for panel, title in recipe.get("figure", {}).get("titles", {}).items()}
            if len(set(titles.values())) < len(titles):  # panels of several rows or columns share theirs
                titles = {panel: f"{title} ({panel})" for panel, title in titles.items()}
            figure["claims"] = claims(rows_of((path / CLAIMS).read_bytes()), recipe.get("claims", []))
            figure["savings"] = _savings(rows_of((path / SAVINGS).read_bytes()), titles)
        yield figure
    elif path.suffix == ".png" and path.with_suffix(".txt").is_file():
        yield {"name": path.stem, "pictures": [_picture(path, "")]}


def _picture(picture: Path, place: str) -> dict[str, str]:
    """Return a picture with its title and how it was made, without the settings that follow in the caption's file."""
    caption = picture.with_suffix(".txt")
    title, _, rest = caption.read_text(encoding="utf-8").partition("\n\n")
    return {
        "file": f"{place}{picture.name}",
        "caption": f"{place}{caption.name}",
        "title": " ".join(title.removeprefix(f"{picture.stem}: ").split()),
        "made": "\n".join(line.strip() for line in rest.partition("\n\n")[0].splitlines()),
    }


def claims(rows: Sequence[_Row], entries: Sequence[Mapping[str, Any]]) -> str:
    """Return the claims of a figure: grids of those that belong together, and a folded table of the others.

    Parameters
    ----------
    rows : sequence of mapping
        The rows of its ``claims.csv``.
    entries : sequence of mapping
        The claims of its recipe; empty if there is none any more.
    """
    by_id = {row["claim"]: row for row in rows}
    grids = [grid for grid in filter(None, map(grid_of, entries)) if by_id.keys() >= _ids(grid)]
    in_grids = {name for grid in grids for name in _ids(grid)}
    of_claim: dict[str, dict[str, _Row]] = {}
    for row in rows:
        if row["claim"] not in in_grids:
            of_claim.setdefault(row["claim"], {})[row["protocol"]] = row
    counts = sorted({int(row["repetitions"]) for row in rows} - {0})
    return _rendered(
        "claims",
        grids=[_grid(grid, by_id) for grid in grids],
        others=_others(of_claim) if of_claim else None,
        repetitions=" to ".join(map(str, dict.fromkeys([*counts[:1], *counts[-1:]]))),
    )


def _ids(grid: Grid) -> set[str]:
    return {entry["id"] for entry in grid.entries.values()}


def _grid(grid: Grid, by_id: Mapping[str, _Row]) -> dict[str, Any]:
    return {
        "sentence": f"{grid.sentence[0].upper()}{grid.sentence[1:]}",
        "verdicts": Counter(by_id[name]["verdict"] for name in _ids(grid)),
        "heads": ["learner", *(column or "verdict" for column in grid.columns)],
        "rows": [
            [row, *(_judged(by_id[grid.entries[row, column]["id"]], in_full=False) for column in grid.columns)]
            for row in grid.rows
        ],
    }


def _others(of_claim: Mapping[str, Mapping[str, _Row]]) -> dict[str, Any]:
    """Return a table with a row for each claim and a column for each preset, and its summary."""
    every = [row for by_preset in of_claim.values() for row in by_preset.values()]
    presets = list(dict.fromkeys(row["protocol"] for row in every))
    if max(map(len, of_claim.values())) == 1:  # each under one preset
        presets = [""]
        of_claim = {claim: {"": row} for claim, by_preset in of_claim.items() for row in by_preset.values()}
    cells = []
    for claim, by_preset in of_claim.items():
        any_row = next(iter(by_preset.values()))
        judged = [_judged(by_preset[preset]) if preset in by_preset else "" for preset in presets]
        cells.append([f"{_escaped(any_row['says'])} (`{claim}`)", _number(any_row["wanted"]), *judged])
    each = "" if presets == [""] else f" under {len(presets)} presets"
    return {
        "what": f"{plural(len(of_claim), 'claim')}{each}",
        "verdicts": Counter(row["verdict"] for row in every),
        "heads": ["claim", "wanted", *(preset or "here" for preset in presets)],
        "rows": cells,
    }


def _judged(row: _Row, in_full: bool = True) -> str:
    """Return the verdict on a claim and its estimate; in full, with its interval and what there is to note."""
    number, low, high = rounded_texts(row["estimate"], row["interval_low"], row["interval_high"])
    words = [_MARKS[row["verdict"]], number]
    if in_full:
        words += [f"({low} to {high})" if low else "", _escaped(row["note"])]
    return " ".join(filter(None, words))


def _savings(rows: Sequence[_Row], titles: Mapping[str, str]) -> dict[str, Any]:
    """Return a table of what learners need, for each panel at the least error that most learners reach."""
    panels: dict[str, dict[float, dict[str, _Row]]] = {}
    learners: dict[str, None] = {}
    for row in rows:
        if row["reference"]:
            levels = panels.setdefault(row["panel"], {})
            levels.setdefault(float(row["error"]), {})[row["learner"]] = row
            learners[row["learner"]] = None
    cells = []
    for panel, levels in panels.items():
        reached = {error: sum(not row["attributes_are"] for row in of.values()) for error, of in levels.items()}
        error = max(levels, key=lambda error: (reached[error], -error))
        needed = [_needed(levels[error][learner]) if learner in levels[error] else "" for learner in learners]
        cells.append([_escaped(titles.get(panel, panel)), f"{error:g}", *needed])
    return {"heads": ["panel", "error", *learners], "rows": cells}


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


def _escaped(text: str, special: str = "|*<_`[]") -> str:
    """Return a text in which Markdown has nothing to format."""
    return "".join(f"\\{character}" if character in special else character for character in text)


def _counted(verdicts: Mapping[str, int]) -> str:
    """Return counts of verdicts in words, such as ``3 hold, 1 is open, 2 fail``."""
    return ", ".join(f"{verdicts[key]} {words[verdicts[key] != 1]}" for key, words in _COUNTED.items() if verdicts[key])


@cache
def _templates() -> Environment:
    loader = PackageLoader("budgetreg.reproduce", "")
    environment = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True)
    environment.globals |= {"mark": MARK, "verdicts": list(VERDICTS.values())}
    environment.filters |= {"counted": _counted, "plain": lambda text: _escaped(text, "\\*_<|`")}
    return environment


def _rendered(name: str, **content: Any) -> str:
    return _templates().get_template(f"{name}.md.jinja").render(content)
