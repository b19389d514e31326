"""Links between the pages of the repository, and to its files, lead somewhere."""

import re
from pathlib import Path

import pytest

from tests.pages.written import PAGES, ROOT, anchors, name, prose

LINK = re.compile(r"\]\(([^()\s]+)\)")


def lost(page: Path, text: str) -> list[str]:
    """Return the links of a page that lead nowhere; those to another host are not opened."""
    found = []
    for target in LINK.findall(re.sub(r"`[^`\n]*`(?!\])", "", prose(text))):
        path, _, anchor = target.partition("#")
        if re.match(r"\w+:", target) or path.endswith("gallery/index.rst"):  # the build writes the gallery
            continue
        to = (page.parent / path).resolve() if path else page
        there = text if to == page else to.read_text(encoding="utf-8") if anchor and to.is_file() else ""
        if not to.exists() or (anchor and anchor not in anchors(there)):
            found.append(target)
    return found


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    assert lost(page, page.read_text(encoding="utf-8")) == []


def test_a_link_that_leads_nowhere_is_found() -> None:
    page = ROOT / "docs" / "project" / "citing.md"
    text = (
        "# A title, here\n\n[kept](architecture.md) [there](#a-title-here) [mail](mailto:a@b.c)\n\n"
        "[gone](gone.md) [no such title](#title) [nor there](architecture.md#nothing)\n\n```\n[code](gone.md)\n```\n"
    )
    assert lost(page, text) == ["gone.md", "#title", "architecture.md#nothing"]
