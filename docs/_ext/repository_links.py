"""Links of pages to files of the repository: to the page that shows the file, or to the file for download."""

import os
import re
from pathlib import Path, PurePosixPath

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent

_LINK = re.compile(r"(?P<label>!?\[(?:[^\[\]]|\[[^\]]*\])*\])\((?P<target>[^()\s]+)\)")
_CODE = re.compile(r"^ *(?P<fence>```+).*?^ *(?P=fence) *$", re.MULTILINE | re.DOTALL)
_PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CITATION.cff": "project/citing.md",
    "results/README.md": "results/index.md",
}
"""By file of the repository, the page that shows it."""


def page_of(path: PurePosixPath) -> PurePosixPath | None:
    """Return the page that shows a file of the repository, seen from ``docs/``; None if none does."""
    if path.parts[0] == "docs" and path.suffix == ".md":
        return path.relative_to("docs")
    if path.parts[0] == "results" and path.name == "README.md" and len(path.parts) == 3:
        return PurePosixPath("results", f"{path.parts[1]}.md")
    page = _PAGES.get(path.as_posix())
    return None if page is None else PurePosixPath(page)


def rewritten(text: str, source: PurePosixPath, page: PurePosixPath) -> str:
    """Return the text of a file with links that hold on its page.

    Parameters
    ----------
    text : str
        Markdown, whose links are relative to its file.
    source : path
        The file, seen from the root of the repository.
    page : path
        The page, seen from ``docs/``.
    """
    pieces, end = [], 0
    for shown in _CODE.finditer(text):
        pieces += [_linked(text[end : shown.start()], source, page), shown[0]]
        end = shown.end()
    return "".join([*pieces, _linked(text[end:], source, page)])


def _linked(text: str, source: PurePosixPath, page: PurePosixPath) -> str:
    return _LINK.sub(lambda link: f"{link['label']}{_moved(link['target'], source, page)}", text)


def _moved(target: str, source: PurePosixPath, page: PurePosixPath) -> str:
    """Return the target of a link in brackets; nothing for a folder, of which no page shows what is in it."""
    name, hash_, anchor = target.partition("#")
    if not name or re.match(r"\w+:", name):
        return f"({target})"
    path = (ROOT / source.parent / name).resolve()
    if path.is_dir():
        return ""
    shown = page_of(PurePosixPath(path.relative_to(ROOT)))
    to = DOCS / shown if shown is not None else path
    return f"({Path(os.path.relpath(to, (DOCS / page).parent)).as_posix()}{hash_}{anchor})"
