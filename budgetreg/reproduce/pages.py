"""One page for each folder of results, ``results/<paper>/README.md``: its figures with their claims."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from budgetreg.config import catalogue
from budgetreg.errors import UserError
from budgetreg.reproduce.findings import VERDICTS, Findings, tally
from budgetreg.reproduce.tables import claims, folded, savings, table
from budgetreg.runs.manifest import read_merged_manifest
from budgetreg.runs.tables import CLAIMS, MANIFEST, SAVINGS, rows_of

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
    """Count the claims of all figures in a folder of results; see `budgetreg.reproduce.findings.tally`."""
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
            head = "claimed" if findings.ours else "the paper says"
            yield from claims(rows_of((path / CLAIMS).read_bytes()), _entries(manifest["recipe"]), head)
            yield from savings(rows_of((path / SAVINGS).read_bytes()))
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


def _entries(recipe: str) -> list[dict[str, Any]]:
    """Return the claims of a recipe as they stand in its file; none if there is no such recipe any more."""
    if not catalogue.has_option("experiment", recipe):
        return []
    return list(catalogue.content("experiment", recipe).get("claims", []))
