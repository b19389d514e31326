"""An empty folder for each test of the command."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in an empty folder as the command ``budgetreg``, and leave the environment as it was."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["budgetreg"])
    before = dict(os.environ)
    yield tmp_path
    os.environ.clear()
    os.environ.update(before)
