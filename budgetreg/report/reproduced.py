"""The section about a reproduced figure: the figure, the verdicts on its claims, and where it comes from."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from budgetreg.errors import DataError
from budgetreg.figures.tables import comparison_table, right
from budgetreg.report.bill import bill
from budgetreg.report.images import image_of
from budgetreg.report.page import PagePart, Section
from budgetreg.report.provenance import Computed, provenance
from budgetreg.report.tables import listing, page_table
from budgetreg.runs.manifest import cells_of, read_merged_manifest
from budgetreg.runs.schema import CLAIMS, SAVINGS
from budgetreg.runs.series import labelled, read_folder
from budgetreg.runs.tables import rows_of

_VERDICTS = {"holds": "hold", "fails": "fail", "undecided": "undecided"}
_MEANING = (
    "A claim holds if the 90 % interval of its statistic lies where the claim wants it, fails if the interval lies "
    "outside, and is undecided otherwise."
)


def section_of_figure(folder: Path) -> Section:
    """Return the section about the merged results of a recipe.

    Raises
    ------
    DataError
        If there are none, or a file is damaged.
    """
    manifest = read_merged_manifest(folder)
    if manifest is None:
        raise DataError(f"{folder} holds no reproduced figure")
    series = labelled(read_folder(folder))
    pictures = [image_of(path) for path in sorted(folder.glob("curves*.png"))]
    claims, findings = _claims(folder / CLAIMS)
    differs = manifest["differs"]
    computed = [Computed(cell.name, cell) for cell in cells_of(manifest)]
    parts = [
        *([PagePart("Figure", pictures=pictures)] if pictures else []),
        *claims,
        *([PagePart("Results", tables=[page_table(comparison_table(series))])] if series else []),
        *_savings(folder / SAVINGS),
        *([PagePart("How it differs", points=differs)] if differs else []),
        *([bill(series)] if series else []),
        *([provenance(computed, (manifest.get("promised") or {}).items())] if computed else []),
    ]
    return Section(str(manifest["recipe"]), "reproduced figure", [manifest["title"], *findings], parts=parts)


def _claims(path: Path) -> tuple[list[PagePart], list[str]]:
    """Return a part with the claims and their verdicts, and a sentence; nothing if nothing is claimed."""
    rows = _rows(path)
    if not rows:
        return [], []
    counts = Counter(row["verdict"] for row in rows)
    tally = ", ".join(f"{counts[verdict]} {words}" for verdict, words in _VERDICTS.items() if counts[verdict])
    presets = ", counted for each preset" if any(row["protocol"] for row in rows) else ""
    heads = ("claim", "preset", "verdict", *right("estimate", "90 % interval"), "wanted", *right("repetitions"))
    cells = [
        (
            f"{row['says']} ({row['claim']})",
            row["protocol"] or "-",
            row["verdict"] + (f": {row['note']}" if row["note"] else ""),
            row["estimate"] or "-",
            f"{row['interval_low']} to {row['interval_high']}" if row["interval_low"] else "-",
            row["wanted"],
            row["repetitions"],
        )
        for row in rows
    ]
    about = "Claims and their verdicts"
    return [PagePart("Claims", tables=[listing(about, heads, cells, [_MEANING])])], [f"Claims: {tally}{presets}."]


def _savings(path: Path) -> list[PagePart]:
    rows = _rows(path)
    if not rows:
        return []
    heads = ("panel", *right("error"), "learner", *right("attributes", "90 % interval", "times fewer"), "than")
    cells = [
        (
            row["panel"],
            row["error"],
            row["learner"],
            f"{row['attributes_are']} {_number(row['attributes'])}".strip(),
            _interval(row["attributes_low"], row["attributes_high"]),
            f"{row['factor_is']} {row['factor']}".strip() or "-",
            row["reference"] if row["reference"] != row["learner"] else "",
        )
        for row in rows
    ]
    table = listing("Attributes seen in training until the mean error has fallen to a level", heads, cells)
    return [PagePart("What it takes to reach an error", tables=[table], folded=True)]


def _interval(low: str, high: str) -> str:
    return f"{_number(low)} to {_number(high)}" if low or high else "-"


def _number(text: str) -> str:
    """Return a number of attributes without an exponent; a question mark if it is not known."""
    return f"{float(text):,.0f}" if text else "?"


def _rows(path: Path) -> Sequence[dict[str, str]]:
    return rows_of(path.read_bytes()) if path.is_file() else []
