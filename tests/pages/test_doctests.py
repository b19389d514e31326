"""Examples of Python on the pages, and in docstrings, print what they say."""

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

import budgetreg.estimators
from tests.pages.written import PAGES, ROOT, name
from tests.tiers import quick_but

ESTIMATORS = ROOT / "docs" / "howto" / "estimators.md"
WITH_EXAMPLES = [page for page in PAGES if ">>> " in page.read_text(encoding="utf-8")]
MODULES = sorted(
    file.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    for file in (ROOT / "budgetreg").rglob("*.py")
    if re.search(r"^\s*>>> ", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
)


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=name)
def test_pages_print_what_they_say(page: Path, here: Path) -> None:
    examples = re.sub(r"^```(python|pycon)?$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(examples, {}, page.name, str(page), 0)
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.usefixtures("short_chains")
@pytest.mark.parametrize("module", quick_but(["budgetreg.estimators"], MODULES))
def test_docstrings_print_what_they_say(module: str) -> None:
    result = doctest.testmod(import_module(module))
    assert result.failed == 0
    assert result.attempted > 0


def test_there_are_examples() -> None:
    assert ESTIMATORS in WITH_EXAMPLES
    assert "budgetreg.estimators" in MODULES


def test_learners_named_on_the_page_are_classes() -> None:
    named = set(
        re.findall(r"\b(?:[A-Z]{4,}(?:CV)?|SGDImpute|ImputeRidge|FixedSubset|Baseline)\b", ESTIMATORS.read_text())
    )
    assert len(named) > 8
    assert named <= set(budgetreg.estimators.ESTIMATORS)
