"""Pages, or parts of pages, that are written while the site is built, so that they cannot disagree with the code.

A line ``<!-- generated: NAME ARGUMENT -->`` of a page is replaced by what the function NAME of `GENERATORS` returns.
Pages of results are copies of ``results/<paper>/README.md``.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

import commands_page
import configuration_pages
import outputs_page
from repository_links import DOCS, ROOT, page_of, rewritten

_MARKER = re.compile(r"^<!-- generated: (\w+) ?(.*?) -->$", re.MULTILINE)


def _include(path: str) -> str:
    """Return the text of a file of the repository, with links that hold on the page that shows it."""
    page = page_of(PurePosixPath(path))
    if page is None:
        raise ExtensionError(f"no page shows {path}: add it to repository_links.py")
    return rewritten((ROOT / path).read_text(encoding="utf-8"), PurePosixPath(path), page)


def _results(_: str) -> str:
    """Return the table of contents of the results, in the order in which the page of all results links to them."""
    overview = (ROOT / "results" / "README.md").read_text(encoding="utf-8")
    names = sorted((file.parent.name for file in _pages_of_results()), key=lambda name: overview.find(f"({name}/"))
    return "\n".join(["```{toctree}", ":maxdepth: 1", "", *names, "```"]) if names else ""


def _pages_of_results() -> list[Path]:
    return sorted(ROOT.glob("results/*/README.md"))


GENERATORS: Mapping[str, Callable[[str], str]] = {
    "commands": commands_page.commands,
    "configuration": configuration_pages.configuration,
    "datasets": configuration_pages.datasets,
    "include": _include,
    "learners": configuration_pages.learners,
    "outputs": outputs_page.outputs,
    "recipes": configuration_pages.recipes,
    "results": _results,
}
"""By name, what returns the Markdown of a part of a page, given the argument of its marker."""


def _generated(marker: re.Match[str]) -> str:
    name, argument = marker.groups()
    if name not in GENERATORS:
        raise ExtensionError(f"{marker[0]}: no such generator; there are {', '.join(GENERATORS)}")
    return GENERATORS[name](argument)


def _read(app: Sphinx, name: str, source: list[str]) -> None:
    """Complete the text of a page before it is parsed."""
    path = Path(app.env.doc2path(name))
    if path.suffix == ".md":
        page = PurePosixPath(path.relative_to(DOCS))
        source[0] = _MARKER.sub(_generated, rewritten(source[0], "docs" / page, page))


def _copy_results(_: Sphinx) -> None:
    """Write a page for each ``results/<paper>/README.md``, and remove those of papers that have none any more."""
    pages = {DOCS / "results" / f"{file.parent.name}.md": file for file in _pages_of_results()}
    for old in set((DOCS / "results").glob("*.md")) - {DOCS / "results" / "index.md", *pages}:
        old.unlink()
    for page, file in pages.items():
        page.write_text(f"<!-- generated: include {file.relative_to(ROOT).as_posix()} -->\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Complete pages as they are read."""
    app.connect("builder-inited", _copy_results)
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
