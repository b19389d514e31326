"""``results/README.md``: what holds of each paper and of each learner of ours, written from the results alone."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from budgetreg.errors import ConfigError
from budgetreg.files import content_of_regular, os_errors_explained, write_atomically
from budgetreg.reproduce.findings import VERDICTS, Findings, read_findings
from budgetreg.reproduce.pages import MARK, page, verdicts_of
from budgetreg.reproduce.tables import table

_PAGE = "README.md"
_HEAD = "# What holds, and what does not\n"
_EARLIER = "# Figures of the papers, reproduced"
"""The first line of galleries of earlier versions."""
_METHOD = """## How to read the verdicts

A claim is a statistic of curves and a region where it must lie. It **holds** if the 90 % interval of the statistic lies
in the region, **fails** if the interval lies outside, and is *open* (`undecided` in `claims.csv`) otherwise. Some
recipes have presets, such as raw and centred pixels. Then each claim counts once above, with its best verdict. If two
curves are claimed to be ordered, the statistic is their largest difference. If a curve is claimed to be near a value or
a published curve, it is the difference where they are farthest apart. If published points are claimed to lie within a
spread, it is the smallest share of repetitions on either side of one of them.

The folder of each figure has its curves (`curves.csv`), the chosen parameters and the bill (`runs.csv`), the verdicts
(`claims.csv`), the attributes that each learner needs to reach an error (`savings.csv`) and a caption (`curves.txt`).

`budgetreg reproduce` makes all of this again. The same versions of the libraries and the same family of processors give
the same bytes, and other processors the same numbers to 1e-9 (`budgetreg verify`). AERR, DDAERR and its two-phase form
are an exception. They weigh a revealed value by |w|²/w_j, which is unbounded, so that round-off grows. AEML, AEMR
and `aemr_cv` are the other: round-off changes their Markov chains and their draws. Their results differ between
processor types, but have the same distribution.
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
