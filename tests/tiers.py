"""The quick and the slow tier of tests."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def slow_but(quick: Collection[Any], cases: Iterable[Any]) -> list[Any]:
    """Return cases for ``parametrize``, of which all but the quick ones are marked slow."""
    return [case if case in quick else pytest.param(case, marks=pytest.mark.slow) for case in cases]


def quick_but(slow: Collection[Any], cases: Iterable[Any]) -> list[Any]:
    """Return cases for ``parametrize``, of which only the slow ones are marked slow."""
    return [pytest.param(case, marks=pytest.mark.slow) if case in slow else case for case in cases]
