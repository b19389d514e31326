"""The simulated clinic buys the same in Python, on the command line, and on the page that shows it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES, PAGE = ROOT / "examples", ROOT / "docs" / "howto" / "buying.md"
SECONDS = 300

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # a study is played to its end


@pytest.fixture(scope="module")
def bought(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder that the example leaves, and what it printed."""
    folder = tmp_path_factory.mktemp("clinic")
    done = subprocess.run(
        [sys.executable, EXAMPLES / "buy_measurements.py", folder],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=environment(folder),
    )
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "HOME": str(home), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "COLUMNS": "120"}


def commands() -> list[tuple[str, str]]:
    """Return the commands of the page, each with what it prints there."""
    text = re.sub(r"(?m)^    ", "", PAGE.read_text(encoding="utf-8"))
    return re.findall(r"(?m)^\$ (.+)\n((?:(?!\$ |$).*\n)*)", text)


def test_the_example_keeps_to_its_budget_and_knows_its_error(bought: tuple[Path, str]) -> None:
    folder, printed = bought
    paid = [int(amount) for amount in re.findall(r"(\d+) EUR paid in all", printed)]
    assert len(paid) == 4 and paid == sorted(paid) and paid[0] > 200 and 900 < paid[-1] <= 1_000
    low, high = map(float, re.findall(r"\((\S+) to (\S+)\)", printed)[-1])
    truth = re.search(r"other tumours: ([\d.]+)", printed)
    assert truth and low < float(truth[1]) < high
    assert (folder / "clinic.png").stat().st_size > 10_000


def test_the_page_shows_what_the_commands_print(bought: tuple[Path, str], tmp_path: Path) -> None:
    """They buy what the example in Python buys.

    Numbers that were learned may differ between processors: of these lines, the words alone are compared.
    """
    (tmp_path / "examples").symlink_to(EXAMPLES)
    folder, learned = tmp_path / "clinic", False
    folder.mkdir()
    for line, shown in commands():
        if line in ("mkdir clinic", "cd clinic"):
            continue
        executable = re.sub("^budgetreg", f"{sys.executable} -m budgetreg", re.sub("^python", sys.executable, line))
        done = subprocess.run(
            executable,
            shell=True,
            cwd=folder,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert done.returncode == 0, done.stderr
        learned = learned or "out=order-3" in line
        assert (words(done.stdout) == words(shown)) if learned else (done.stdout == shown), line
    for name in ("table.csv", "model.npz"):
        assert (folder / name).read_bytes() == (bought[0] / name).read_bytes(), name


def words(printed: str) -> list[str]:
    """Return the first words of each line, sorted: attributes are sorted by what was learned, too."""
    return sorted({re.sub(r"[\d.,]+", "#", line).split("  ")[0].split(",")[0] for line in printed.splitlines()})
