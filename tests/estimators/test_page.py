"""The examples on the page of the estimators, and in the docstring of the package, print what they say."""

import doctest
import re
from pathlib import Path

import pytest

import budgetreg.estimators

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "estimators.md"


@pytest.mark.slow
def test_the_page_prints_what_it_says() -> None:
    examples = PAGE.read_text().replace("```python", "").replace("```", "")
    test = doctest.DocTestParser().get_doctest(examples, {}, PAGE.name, str(PAGE), 0)
    assert len(test.examples) > 20
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.slow
def test_the_docstring_prints_what_it_says() -> None:
    result = doctest.testmod(budgetreg.estimators)
    assert (result.failed, result.attempted > 5) == (0, True)


def test_learners_named_on_the_page_are_classes() -> None:
    named = set(re.findall(r"\b(?:[A-Z]{4,}(?:CV)?|SGDImpute|ImputeRidge|FixedSubset|Baseline)\b", PAGE.read_text()))
    assert len(named) > 8
    assert named <= set(budgetreg.estimators.ESTIMATORS)
