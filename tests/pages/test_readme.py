"""The README is short, and shows the verdicts of today."""

import re
from pathlib import Path

import pytest

from tests.pages.written import ROOT

LINES = 120


def tally(page: Path) -> dict[str, tuple[int, ...]]:
    """Return how many claims hold, are open and fail for each row of a page's tables of findings."""
    rows = re.findall(r"(?m)^\| ([^|]+) \| (\d+) \| (\d+) \| (\d+) \|", page.read_text(encoding="utf-8"))
    titles = (re.sub(r"\[(.*)\]\(.*\)", r"\1", title).removesuffix(" (ours)") for title, *_ in rows)
    return {title: tuple(map(int, counts)) for title, (_, *counts) in zip(titles, rows, strict=True)}


def test_the_readme_is_one_page() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= LINES


@pytest.mark.skipif(not (ROOT / "results").is_dir(), reason="a source distribution has no results")
def test_the_readme_counts_the_verdicts_of_the_results() -> None:
    counted = tally(ROOT / "README.md")
    assert len(counted) > 4
    assert counted == tally(ROOT / "results" / "README.md")
