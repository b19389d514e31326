"""Only tests of places lay figures out."""

import pytest

from tests.sketches import skip_layout


@pytest.fixture
def laid_out() -> None:
    """Lay figures out."""


@pytest.fixture(autouse=True)
def _no_layout(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "laid_out" not in request.fixturenames:
        skip_layout(monkeypatch)
