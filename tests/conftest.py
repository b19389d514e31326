"""What all tests share: one BLAS thread per worker, no deadlines on noisy machines, and Ctrl-C as a terminal has it."""

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# The tests start a hundred processes, which compile the package once, also where the environment forbids it.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

from budgetreg.execution.workers import pin_blas_threads  # noqa: E402

pin_blas_threads()
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
# Started in the background of a script, processes ignore SIGINT and hand that on to those that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the figures of runs in this process: each takes as long as a small run."""

    def nothing(folder: Path) -> list[Path]:
        return []

    monkeypatch.setattr("budgetreg.figures.curves.plot_run", nothing)


@pytest.fixture
def sketched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let images of figures be files of a few bytes, see `tests.sketches`."""
    from tests.sketches import sketch  # here, as matplotlib is slow to load

    sketch(monkeypatch)
