"""Scripts of the gallery run by themselves, in an empty folder, and leave nothing behind.

`make docs` runs all of them, and fails if one does; here are two quick ones.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

GALLERY = Path(__file__).resolve().parent.parent / "examples" / "gallery"
SCRIPTS = sorted(GALLERY.glob("plot_*.py"))


def test_every_script_is_named_so_that_it_is_run() -> None:
    assert sorted(GALLERY.glob("*.py")) == SCRIPTS


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plot_own_learner", "plot_subspace_of_digits"])
def test_a_script_runs_without_a_warning_and_leaves_no_file(name: str, tmp_path: Path) -> None:
    environment = {**os.environ, "MPLBACKEND": "agg", "PYTHONUTF8": "1", "PYTHONPATH": str(GALLERY.parent.parent)}
    words = [sys.executable, "-W", "error::UserWarning", str(GALLERY / f"{name}.py")]
    # On agg, `show` warns that it shows nothing.
    words[3:3] = ["-W", "ignore:FigureCanvasAgg is non-interactive:UserWarning"]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout
    assert not list(tmp_path.iterdir())
