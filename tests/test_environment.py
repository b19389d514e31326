"""`make` finds a Python that is new enough, and installs what exists for it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

PYTHON = """#!{python}
# A Python of another version, for which some versions of packages do not exist.
import shutil, sys
from pathlib import Path

sys.version_info = {version}
match sys.argv[1:]:
    case ["--version"]:
        print("Python " + ".".join(map(str, sys.version_info)))
    case ["-c", code]:
        exec(code)
    case ["-m", "venv", folder]:
        (Path(folder) / "bin").mkdir(parents=True)
        shutil.copy(__file__, Path(folder, "bin", "python"))
        Path(folder, "bin", "pip").touch()
    case ["-m", "pip", "install", *words]:
        print("pip", *words)
        sys.exit("-c" in words and not {pinned})
"""


def pythons(folder: Path, *, pinned: bool = True, **versions: tuple[int, int, int]) -> None:
    """Write commands that are Pythons of other versions."""
    for name, version in versions.items():
        path = folder / name
        path.write_text(PYTHON.format(python=sys.executable, version=version, pinned=pinned))
        path.chmod(0o755)


def made(folder: Path, names: str) -> subprocess.CompletedProcess[str]:
    """Make an environment; the folder's commands come before those of the machine."""
    command = [
        shutil.which("make") or "make",
        f"PYTHON={names}",
        f"VENV={folder}/venv",
        f"{folder}/venv/.installed-dev",
    ]
    environment = {**os.environ, "PATH": f"{folder}:/usr/bin:/bin"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 20, 1)])
def test_the_first_python_that_is_new_enough_is_taken(tmp_path: Path, version: tuple[int, int, int]) -> None:
    pythons(tmp_path, old=(3, 10, 13), new=version, newer=(3, 21, 0))
    done = made(tmp_path, "missing old new newer")
    assert done.returncode == 0, done.stderr
    assert f"with Python {'.'.join(map(str, version))}\n" in done.stdout
    assert done.stdout.count("pip ") == 1
    assert "-c constraints.txt -e .[dev]" in done.stdout
    assert not done.stderr


def test_what_was_tried_is_listed_in_one_line(tmp_path: Path) -> None:
    pythons(tmp_path, old=(3, 10, 13))
    done = made(tmp_path, "missing old")
    assert done.returncode
    assert (
        "needs Python 3.11 or newer, and none of these is: missing (not found), old (Python 3.10.13); " in done.stderr
    )
    assert not (tmp_path / "venv").exists()


@pytest.mark.parametrize(("version", "others"), [((3, 13, 9), False), ((3, 14, 0), True)])
def test_without_the_pinned_versions_a_newer_python_gets_others(
    tmp_path: Path, version: tuple[int, int, int], others: bool
) -> None:
    """For the Pythons of constraints.txt, they exist: there another cause makes the installation fail."""
    pythons(tmp_path, new=version, pinned=False)
    done = made(tmp_path, "new")
    assert (done.returncode == 0) == others == (tmp_path / "venv" / ".installed-dev").exists()
    assert done.stdout.count("pip ") == 1 + others
    assert ("cannot be installed with Python 3.1" in done.stderr) == others
