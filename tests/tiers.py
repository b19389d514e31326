"""The quick and the slow tier of tests."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def slow_but(quick: Collection[Any], cases: Iterable[Any]) -> list[Any]:
    """Return cases for ``parametrize``, all but the quick ones marked slow; a tuple holds the values of a case."""
    return [case if case in quick else _slow(case) for case in cases]


def quick_but(slow: Collection[Any], cases: Iterable[Any]) -> list[Any]:
    """Return cases for ``parametrize``, only the slow ones marked slow; a tuple holds the values of a case."""
    return [_slow(case) if case in slow else case for case in cases]


def _slow(case: Any) -> Any:
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)
