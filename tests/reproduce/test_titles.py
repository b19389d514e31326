"""The title of each figure states what its claims are judged to be, and nothing that they leave open."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import pytest

from budgetreg.figures.specification import parse
from budgetreg.reproduce.gallery import VERDICTS
from tests.reproduce.test_committed_results import RECIPES, content_of

# What a title says of claims that do not hold.
WORDS = {"holds": "", "open": r"\bopen\b", "fails": r"\b(not|no|only)\b"}


def mistakes(figure: Mapping[str, Any], claims: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Give what is wrong with the title of a figure, given the rows of its ``claims.csv``."""
    drawing = parse(figure)
    if not drawing.finding or not drawing.rests_on:
        yield "the figure has no title, or names no claim that it rests on"
    for verdict, names in drawing.rests_on.items():
        if not re.search(WORDS[verdict], drawing.finding):
            yield f"the title does not say what of it {verdict}"
        for name in names:
            claim, _, preset = name.partition("@")
            rows = [row for row in claims if fnmatchcase(row["claim"], claim) and preset in ("", row["protocol"])]
            if not rows:
                yield f"{name}: no such claim"
            for row in rows:
                if VERDICTS[row["verdict"]] != verdict:
                    yield f"{row['claim']} {row['protocol']}: {VERDICTS[row['verdict']]}, not {verdict}"


@pytest.mark.parametrize("folder", RECIPES, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_a_title_says_what_its_claims_are_judged_to_be(folder: Any) -> None:
    with (folder / "claims.csv").open(newline="") as file:
        claims = list(csv.DictReader(file))
    assert list(mistakes(content_of(folder)["figure"], claims)) == []
