"""What all tests share: one BLAS thread per worker, no deadlines on noisy machines, and Ctrl-C as a terminal has it."""

import atexit
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import settings

# The tests start a hundred processes, which compile the package once, also where the environment forbids it.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

from budgetreg.runs.workers import keep_freed_memory, pin_blas_threads  # noqa: E402

pin_blas_threads()
keep_freed_memory()
settings.register_profile("quick", deadline=None, max_examples=25)
settings.register_profile("thorough", deadline=None)  # of .ci/run
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
# Started in the background of a script, processes ignore SIGINT, and with nohup SIGHUP. They hand that on to those that
# tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
# No test cuts the power. Waiting for the disk, and deleting what has reached it, takes a tenth of the time. Like fsync,
# fstat fails if the file is closed.
os.fsync = os.fstat

# What tests prepare stays out of the user's cache. They share what is slow to make: MNIST, and matplotlib's fonts.
USUAL_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
CACHE = Path(tempfile.mkdtemp(prefix="budgetreg-tests-"))
(CACHE / "budgetreg").mkdir()
for shared in ("matplotlib", "budgetreg/mnist"):
    if (USUAL_CACHE / shared).is_dir():
        (CACHE / shared).symlink_to(USUAL_CACHE / shared)
os.environ["XDG_CACHE_HOME"] = str(CACHE)
atexit.register(shutil.rmtree, CACHE, ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that may take longest, so that at the end no worker waits for another's."""

    def limit(item: pytest.Item) -> float:
        marker = item.get_closest_marker("timeout")
        return float(marker.args[0]) if marker else 0.0

    items.sort(key=limit, reverse=True)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in an empty folder as the command ``budgetreg``, and leave the environment as it was."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["budgetreg"])
    before = dict(os.environ)
    yield tmp_path
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., object]:
    """Return a function that calls the command in this process, which must end with an exit code, by default 0."""
    from tests.commands import call  # here, as commands are slow to load

    return partial(call, capsys)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the figures of runs in this process: each takes as long as a small run."""

    def nothing(folder: Path) -> list[Path]:
        return []

    monkeypatch.setattr("budgetreg.figures.plot_run", nothing)


@pytest.fixture
def sketched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let images of figures be files of a few bytes, see `tests.sketches`."""
    from tests.sketches import sketch  # here, as matplotlib is slow to load

    sketch(monkeypatch)


@pytest.fixture
def short_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the chains of AEML and AEMR in this process be short: for tests of what is done with a model."""
    shorten_chains(monkeypatch)


def shorten_chains(patch: pytest.MonkeyPatch) -> None:
    """Let the chains of AEML and AEMR in this process be short."""
    for name in ("_BURN_IN", "_MIN_KEPT", "MOST_KEPT", "_MOST_AT_ONCE"):
        patch.setattr(f"budgetreg.algorithms.factors.posterior.{name}", 5)
    for name in ("_ROUNDS", "_COMPLETE_ROUNDS"):
        patch.setattr(f"budgetreg.algorithms.aemr.target_regression.{name}", 2)
