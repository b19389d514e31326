"""``results/README.md``: each figure with its claims and their verdicts, written from the results alone."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from budgetreg.errors import ConfigError, UserError
from budgetreg.files.paths import content_of_regular
from budgetreg.files.writing import os_errors_explained, write_atomically
from budgetreg.results.manifest import read_merged_manifest
from budgetreg.results.schema import CLAIMS, MANIFEST, SAVINGS
from budgetreg.results.tables import rows_of

_Row = Mapping[str, str]

_PAPERS = {
    "cesa_bianchi_2010": "Cesa-Bianchi, Shalev-Shwartz & Shamir 2010",
    "hazan_koren_2012": "Hazan & Koren 2012",
    "kukliansky_shamir_2015": "Kukliansky & Shamir 2015",
    "gonen_2016": "Gonen, Rosenbaum, Eldar & Shalev-Shwartz 2016",
}
_OURS = {
    "aefa": "AEFA, subspaces from a factor model (ours)",
    "aemr": "AEMR and AEML, regression from cleaned moments and from a factor model (ours)",
}
_HEAD = """# Figures of the papers, reproduced

Made by `budgetreg reproduce`; each figure's folder holds its curves, what was chosen (`runs.csv`), its verdicts
(`claims.csv`), the attributes that each learner needs to reach an error (`savings.csv`), and a caption (`curves.txt`).

A claim **holds** if the 90 % interval of its statistic lies where the claim wants it, **fails** if it lies outside, and
is *undecided* otherwise. The statistic of a claim that two curves are ordered is their largest difference; that of one
that a curve is near a value, or a published curve, is what was measured less that, where it is farthest; and of one
that published points lie within a spread, the least share of repetitions on either side of one.

Computed again with the same versions of the libraries on processors of the same family, the numbers have the same
bytes; on others they are the same to 1e-9 (`budgetreg verify`). Not so the paths of AERR, DDAERR and their two-phase
forms: what they reveal for an inner product weighs |w|²/w_j, which is unbounded, and round-off grows until another
processor has other numbers, of the same law; their captions say it.
"""
_BOUNDS = {"": "", "at least": "≥ ", "at most": "≤ "}
_MARKS = {"holds": "**holds**", "fails": "**fails**", "undecided": "*undecided*"}


def refuse_foreign(results: Path) -> None:
    """Refuse a folder whose ``README.md`` is not a gallery, which the gallery would replace.

    Raises
    ------
    ConfigError
        If it holds such a file.
    """
    path = results / "README.md"
    with os_errors_explained(f"read {path}"):
        foreign = path.exists() and not content_of_regular(path).startswith(_HEAD.partition("\n")[0].encode())
    if foreign:
        raise ConfigError(f"{path} is no gallery of figures, and would be replaced by one: choose another out")


def write_gallery(results: Path) -> Path:
    """Write the gallery of a folder of results.

    Parameters
    ----------
    results : Path
        The folder with a folder of merged results for each recipe.

    Returns
    -------
    Path
        The file.
    """
    blocks = [_HEAD, *_tally(results)]
    for paper in sorted(path for path in results.iterdir() if path.is_dir()):
        figures = [block for path in sorted(paper.iterdir()) for block in _figure(path, f"{paper.name}/{path.stem}")]
        blocks += [f"## {(_PAPERS | _OURS).get(paper.name, paper.name)}\n", *figures] if figures else []
    target = results / "README.md"
    content = "\n".join(blocks).encode()
    if not target.is_file() or target.read_bytes() != content:
        write_atomically(target, content)
    return target


def _tally(results: Path) -> Iterator[str]:
    """Give a table of the verdicts of each figure; a claim counts once for each preset."""
    judged: dict[str, Counter[str]] = {}
    for file in sorted(results.glob(f"*/*/{CLAIMS}")):
        verdicts = Counter(row["verdict"] for row in rows_of(file.read_bytes()))
        if verdicts:
            name = file.parent.relative_to(results).as_posix()
            judged[f"[{name}](#{name.replace('/', '')})"] = verdicts
    if judged:
        judged["all"] = sum(judged.values(), Counter())
        rows = ([name, *(str(verdicts[mark]) for mark in _MARKS)] for name, verdicts in judged.items())
        yield from _table(["figure", *_MARKS], rows)
        yield ""


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _figure(path: Path, name: str) -> Iterator[str]:
    """Give the blocks of a folder of results, or of a picture with a caption; nothing for other files."""
    if (path / MANIFEST).is_file():
        try:
            manifest = read_merged_manifest(path)
        except UserError:  # it is damaged, which reproducing its figure reports
            return
        if manifest is None:
            return
        ours = path.parent.name in _OURS
        yield f"### {name}\n\n{manifest['title']}\n"
        for picture in sorted(path.glob("curves*.png")):
            yield f"![{name}]({name}/{picture.name})\n"
        if (path / CLAIMS).is_file():  # a picture claims nothing
            yield from _claims(rows_of((path / CLAIMS).read_bytes()), "claimed" if ours else "the paper says")
            yield from _savings(rows_of((path / SAVINGS).read_bytes()))
        if manifest["differs"]:
            yield f"{'To be known' if ours else 'Differs from the paper'}:\n"
            yield from (f"- {sentence}" for sentence in manifest["differs"])
            yield ""
    elif path.suffix == ".png" and path.with_suffix(".txt").is_file():
        title = path.with_suffix(".txt").read_text(encoding="utf-8").partition("\n\n")[0]
        yield f"### {name}\n\n{' '.join(title.split())}\n\n![{name}]({name}.png)\n"


def _claims(rows: Sequence[_Row], head: str) -> Iterator[str]:
    if not rows:
        return
    presets = ["preset"] if any(row["protocol"] for row in rows) else []
    cells = (
        [
            f"{row['says']} (`{row['claim']}`)",
            *([row["protocol"]] if presets else []),
            _MARKS[row["verdict"]] + (f": {row['note']}" if row["note"] else ""),
            row["estimate"] or "-",
            f"{row['interval_low']} to {row['interval_high']}" if row["interval_low"] else "-",
            row["wanted"],
        ]
        for row in rows
    )
    yield from _table([head, *presets, "here", "estimate", "interval", "wanted"], cells)
    counts = sorted({int(row["repetitions"]) for row in rows} - {0})
    judged = f"Judged by {' to '.join(map(str, dict.fromkeys([counts[0], counts[-1]])))} repetitions." if counts else ""
    yield f"\n{judged}\n"


def _savings(rows: Sequence[_Row]) -> Iterator[str]:
    """Give a table of what learners need, for each panel at the least error that most learners reach."""
    panels: dict[str, dict[float, dict[str, _Row]]] = {}
    for row in rows:
        if row["reference"]:
            levels = panels.setdefault(row["panel"], {})
            levels.setdefault(float(row["error"]), {})[row["learner"]] = row
    if not panels:
        return
    learners = list(dict.fromkeys(row["learner"] for row in rows if row["reference"]))
    yield "Attributes it takes to reach an error, and in brackets how many times fewer than with full information:\n"
    table = []
    for panel, levels in panels.items():
        reached = {error: sum(not row["attributes_are"] for row in of.values()) for error, of in levels.items()}
        error = max(levels, key=lambda error: (reached[error], -error))
        cells = [_needed(levels[error][learner]) if learner in levels[error] else "" for learner in learners]
        table.append([panel, f"{error:g}", *cells])
    yield from _table(["panel", "error", *learners], table)
    yield ""


def _needed(row: _Row) -> str:
    needed = f"{_BOUNDS[row['attributes_are']]}{float(row['attributes']):,.0f}".replace(",", " ")
    if row["learner"] == row["reference"] or not row["factor"]:
        return needed
    return f"{needed} ({_BOUNDS[row['factor_is']]}{float(row['factor']):.2g})"
