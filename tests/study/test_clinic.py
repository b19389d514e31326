"""The simulated clinic buys the same in Python, on the command line, and on the page that shows it."""

import importlib.util
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE, PAGE = ROOT / "examples" / "buy_measurements.py", ROOT / "docs" / "howto" / "buying.md"
SECONDS = 300

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # a study is played to its end


@pytest.fixture(scope="module")
def clinic() -> ModuleType:
    spec = importlib.util.spec_from_file_location("buy_measurements", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def bought(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder that the example leaves, and what it printed."""
    folder = tmp_path_factory.mktemp("clinic")
    done = subprocess.run(
        [sys.executable, EXAMPLE, folder], capture_output=True, text=True, timeout=SECONDS, env=environment(folder)
    )
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "HOME": str(home), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "COLUMNS": "120"}


def write_tables(clinic: ModuleType, folder: Path) -> None:
    """Write the files with which the page begins."""
    measurements, outcomes = clinic.tumours()
    ours, others = measurements.index[: clinic.PATIENTS], measurements.index[clinic.PATIENTS :]
    pd.DataFrame({"patient": ours, "outcome": outcomes[ours].to_numpy()}).to_csv(folder / "patients.csv", index=False)
    prices = clinic.prices()
    pd.DataFrame({"attribute": prices.keys(), "cost": prices.values()}).to_csv(folder / "prices.csv", index=False)
    new = measurements.loc[others[:3]].copy()
    new.iloc[0, 3:], new.iloc[1, :] = np.nan, np.nan
    new.rename_axis("patient").to_csv(folder / "new.csv")


def fill(clinic: ModuleType, order: Path) -> None:
    """Write results into an order, as the laboratory delivers them: what is ready, and a second file with the rest."""
    ready, late = clinic.measured(pd.read_csv(order), clinic.tumours()[0])
    pd.concat([ready, late.assign(value="")]).to_csv(order, index=False)
    late.to_csv(order.with_name(f"{order.stem}-late.csv"), index=False)


def commands() -> Iterator[tuple[str, str]]:
    """Yield the commands of the page, each with what it prints there."""
    text = re.sub(r"(?m)^    ", "", PAGE.read_text(encoding="utf-8"))
    yield from re.findall(r"(?m)^\$ (.+)\n((?:(?!\$ |$).*\n)+)", text)


def test_the_example_keeps_to_its_budget_and_knows_its_error(bought: tuple[Path, str]) -> None:
    folder, printed = bought
    paid = [int(amount) for amount in re.findall(r"(\d+) EUR paid in all", printed)]
    assert len(paid) == 4 and paid == sorted(paid) and paid[0] > 200 and 900 < paid[-1] <= 1_000
    low, high = map(float, re.findall(r"\((\S+) to (\S+)\)", printed)[-1])
    truth = re.search(r"other tumours: ([\d.]+)", printed)
    assert truth and low < float(truth[1]) < high
    assert (folder / "clinic.png").stat().st_size > 10_000


def test_a_kill_inside_every_command_changes_no_byte(
    clinic: ModuleType, bought: tuple[Path, str], tmp_path: Path
) -> None:
    """Each command is killed at a random moment, and given again until it ends."""
    rng = np.random.default_rng(0)
    seconds = 2.0

    def budgetreg(*words: str) -> None:
        nonlocal seconds
        line = [sys.executable, "-m", "budgetreg", "study", words[0], "trial.db", *words[1:]]
        killed = subprocess.Popen(line, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.DEVNULL)
        try:
            killed.wait(timeout=seconds * rng.random())
        except subprocess.TimeoutExpired:
            killed.kill()
            killed.wait(timeout=SECONDS)
        begin = time.monotonic()
        done = subprocess.run(
            line, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, timeout=SECONDS
        )
        assert done.returncode == 0, done.stderr
        seconds = time.monotonic() - begin

    write_tables(clinic, tmp_path)
    budgetreg("create", "table=patients.csv", "target=outcome", "id=patient", "costs=prices.csv", "unit=EUR")
    for number in range(1, 5):
        order = f"order-{number}.csv"
        budgetreg("ask", "spend=250", "per_example=10", f"order={number}", f"out={order}")
        fill(clinic, tmp_path / order)
        budgetreg("tell", order)
        budgetreg("tell", f"order-{number}-late.csv")
    for name in ("table.csv", "model.npz"):
        budgetreg("export", f"out={name}")
        assert (tmp_path / name).read_bytes() == (bought[0] / name).read_bytes(), name


def test_the_page_shows_what_the_commands_print(clinic: ModuleType, tmp_path: Path) -> None:
    """Numbers that were learned may differ between processors: of these lines, the words alone are compared."""
    write_tables(clinic, tmp_path)
    learned = False
    for line, shown in commands():
        if "study tell trial.db order" in line and "late" not in line:
            fill(clinic, tmp_path / line.split()[-1])
        executable = line.replace("budgetreg", f"{sys.executable} -m budgetreg", 1)
        done = subprocess.run(
            executable,
            shell=True,
            cwd=tmp_path,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert done.returncode == 0, done.stderr
        learned = learned or "out=order-3" in line
        assert (words(done.stdout) == words(shown)) if learned else (done.stdout == shown), line


def words(printed: str) -> list[str]:
    """Return the first words of each line, sorted: attributes are sorted by what was learned, too."""
    return sorted({re.sub(r"[\d.,]+", "#", line).split("  ")[0].split(",")[0] for line in printed.splitlines()})
