"""CONTRIBUTING.md, done: its blocks go into a copy of the package, and what it promises is tried there."""

import ast
import csv
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"([^\n]*)\n\n```(\w+)\n(.*?)```\n", PAGE, flags=re.DOTALL)
# The figures of a run are not of interest here, and slow.
TRIAL = """
import sys
from types import SimpleNamespace
from budgetreg.cli.app import main
sys.modules["budgetreg.figures.curves"] = SimpleNamespace(plot_folders=lambda *arguments, **options: None)
tiny = "repetitions=1 checkpoints=1 tuning=fixed tuning.B=1 tuning.eta=0.1 dataset.d=4 dataset.n=400 out=runs".split()
for words in (
    ["list"],
    ["check", "algo=aelr_subset,baseline_ridge"],
    ["run", "algo=baseline_ridge", "dataset=staircase", "k=4", "backend=sequential", *tiny],
    ["run", "--dry-run", "experiment=cesa_bianchi_2010/fig_budgets", "dataset=staircase", "k=8"],
    ["run", "--cfg", "job", "dataset=mnist_1v7"],
):
    print("exit code", main(words), flush=True)
"""


def changed(text: str, hunk: str) -> str:
    """Apply a hunk, whose lines begin with a space, a minus or a plus sign."""
    lines = hunk.splitlines(keepends=True)
    before, after = ("".join(line[1:] for line in lines if line[0] != sign) for sign in "+-")
    assert text.count(before) == 1, before
    return text.replace(before, after)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which everything that the page shows has been done."""
    root = tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "budgetreg", root / "budgetreg")
    shutil.copytree(ROOT / "experiments", root / "experiments")
    shutil.copytree(ROOT / "conf", root / "conf", symlinks=True)
    for sentence, language, content in BLOCKS:
        if language == "diff":
            for part in content.split("--- ")[1:]:
                name, _, hunks = part.partition("\n")
                text = (root / name).read_text(encoding="utf-8")
                for hunk in hunks.split("@@\n"):
                    text = changed(text, hunk)
                (root / name).write_text(text, encoding="utf-8")
        else:
            path = root / re.findall(r"`([^`]+)`", sentence)[-1]
            assert path.parent.is_dir() and not path.exists()
            path.write_text(content, encoding="utf-8")
    return root


def test_what_the_page_shows_works(copy: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    done = subprocess.run(
        [sys.executable, "-c", TRIAL], cwd=copy, env=environment, capture_output=True, text=True, check=False
    )
    said = done.stdout + done.stderr
    listed, checked, ran, planned, composed, rest = re.split(r"(?<=exit code \d\n)", done.stdout)
    assert rest == "", said
    for name in ("aelr_subset", "baseline_ridge", "mnist_1v7", "staircase", "cesa_bianchi_2010/fig_budgets"):
        assert re.search(rf"^{name}  +[A-Z]", listed, flags=re.MULTILINE), said
    assert checked.endswith("exit code 0\n"), said
    assert "✗" not in checked
    assert ran.endswith("exit code 0\n"), said
    (row,) = csv.DictReader((copy / "runs/curves.csv").read_text().splitlines())
    assert (row["algo"], row["dataset"], row["attributes"]) == ("baseline_ridge", "staircase_d4", "1600")
    assert float(row["test_relative"]) < 0.5
    assert "cv, at end, 10 folds, 21 settings" in planned, said  # 3 radii of 7 lambdas each
    assert "8 (4 for the data point, 4 for the inner product)" in planned
    assert re.search(r"name: mnist_1v7\n  kind: mnist\n(.*\n)+?  digits:\n  - 1\n  - 7\n", composed), said


def layers() -> dict[str, int]:
    """Map modules and folders of the table to the numbers of their rows."""
    rows = re.findall(r"^\| (`.*?) \|", PAGE, flags=re.MULTILINE)
    return {name: number for number, row in enumerate(rows) for name in re.findall(r"`(\w+)/?`", row)}


def imported(path: Path) -> Iterator[str]:
    """Find what a module takes from the package when it runs, in functions too: the first names after ``budgetreg``."""
    nodes = [ast.parse(path.read_text(encoding="utf-8")).body]
    for node in (inner for body in nodes for inner in body):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        for inner in ast.walk(node):
            if isinstance(inner, ast.ImportFrom) and inner.module == "budgetreg":
                yield from (alias.name for alias in inner.names if alias.name != "__version__")
            elif isinstance(inner, ast.ImportFrom) and str(inner.module).startswith("budgetreg."):
                yield str(inner.module).split(".")[1]


def test_the_table_of_layers_is_complete_and_true() -> None:
    row = layers()
    package = ROOT / "budgetreg"
    modules = {path.relative_to(package).parts[0].removesuffix(".py") for path in package.rglob("*.py")}
    assert modules - {"__init__", "__main__"} <= set(row)
    assert set(row) - modules <= {"conf"}
    upwards = [
        f"{path.relative_to(package)} imports {name}"
        for path in package.rglob("*.py")
        for name in imported(path)
        if not path.name.startswith("__") or path.parent != package
        if row[name] > row[path.relative_to(package).parts[0].removesuffix(".py")]
    ]
    assert upwards == []
