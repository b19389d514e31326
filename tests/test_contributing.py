"""The examples of CONTRIBUTING.md work: its blocks are written into a copy of the package and run there."""

import csv
import re
import shutil
from pathlib import Path

import pytest

from tests.commands import ROOT, Ended, python

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"([^\n]*)\n\n```(\w+)\n(.*?)```\n", PAGE, flags=re.DOTALL)
# Figures are slow, and these tests do not need them.
TRIAL = """
import sys
from budgetreg.testing import checks
from budgetreg.cli.app import main
from budgetreg import figures
figures.plot_run = lambda folder: None
tiny = "repetitions=1 checkpoints=1 tuning=fixed tuning.B=1 tuning.eta=0.1 dataset.d=4 dataset.n=400 out=runs".split()
for words in (
    ["list"],
    ["check", "algo=my_sgd"],
    ["run", "algo=my_sgd", "dataset=staircase", "k=4", "backend=sequential", *tiny],
    ["run", "--dry-run", "experiment=cesa_bianchi_2010/fig_budgets", "dataset=staircase", "k=8"],
    ["run", "--cfg", "job", "dataset=mnist_1v7"],
):
    print("exit code", main(words), flush=True)
# As `budgetreg check` would, but without changing options: they are those of aelr.
print([check for check in checks.CHECKS if checks.run_check(checks.examined("aelr_subset"), check).passed is False])
"""


def install(project: Path, root: Path) -> None:
    """Build the wheel of a project, and unpack it into a folder, as an installer does."""
    done = python("-m", "hatchling", "build", "--target", "wheel", folder=project, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = project.glob("dist/*.whl")
    shutil.unpack_archive(wheel, root, "zip")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with all files that the page shows."""
    root = tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "budgetreg", root / "budgetreg")
    shutil.copytree(ROOT / "experiments", root / "experiments")
    shutil.copytree(ROOT / "conf", root / "conf", symlinks=True)
    for sentence, language, content in BLOCKS:
        assert language in ("python", "toml", "yaml"), "what is added touches no other file"
        path = root / re.findall(r"`([^`]+)`", sentence)[-1]
        assert not path.exists()
        assert path.parent.is_dir() or "my-learners" in path.parts
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    (root / "my-learners/src/my_learners/__init__.py").touch()
    install(root / "my-learners", root)
    return root


@pytest.mark.slow
def test_the_examples_of_the_page_work(copy: Path) -> None:
    done = python("-c", TRIAL, folder=copy, timeout=600, PYTHONPATH=str(copy))
    said = done.stdout + done.stderr
    listed, checked, ran, planned, composed, rest = re.split(r"(?<=exit code \d\n)", done.stdout)
    assert rest == "[]\n", said
    for name in ("aelr_subset", "my_sgd", "mnist_1v7", "staircase", "cesa_bianchi_2010/fig_budgets"):
        assert re.search(rf"^{name}  +[A-Z]", listed, flags=re.MULTILINE), said
    assert checked.endswith("exit code 0\n"), said
    assert "✗" not in checked
    assert ran.endswith("exit code 0\n"), said
    (row,) = csv.DictReader((copy / "runs/curves.csv").read_text().splitlines())
    assert (row["algo"], row["dataset"], row["attributes"]) == ("my_sgd", "staircase_d4", "1600")
    assert float(row["test_relative"]) < 0.5
    assert "cv, at end, 10 folds, 21 settings" in planned, said  # 3 radii of 7 lambdas each
    assert "8 (4 for the data point, 4 for the inner product)" in planned
    assert re.search(r"name: mnist_1v7\n  kind: mnist\n(.*\n)+?  digits:\n  - 1\n  - 7\n", composed), said


@pytest.fixture
def checkout_copy(tmp_path: Path) -> Path:
    """A checkout in which imports can be added."""
    for folder in ("budgetreg", "docs", "scripts"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint_imports(checkout: Path) -> Ended:
    """Check the imports as ``make lint`` does."""
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return python("-c", program, "--no-logo", "--no-cache", folder=checkout, timeout=120, PYTHONPATH="")


def spoil(checkout: Path, module: str, line: str) -> None:
    with (checkout / module).open("a", encoding="utf-8") as file:
        file.write(f"\n\n{line}\n")


def packages(checkout: Path) -> set[str]:
    return {path.stem for path in (checkout / "budgetreg").iterdir()} - {"__init__", "__main__", "__pycache__"}


def test_the_example_learner_takes_at_most_60_lines_and_imports_the_facade_alone(copy: Path) -> None:
    lines = (copy / "my_learners" / "learner.py").read_text(encoding="utf-8").splitlines()
    code = [line for line in lines if line.strip()]
    assert len(code) <= 60
    assert [line for line in code if "import" in line and "budgetreg" in line] == ["from budgetreg import extend"]


def test_the_examples_of_the_page_keep_to_the_layers(copy: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", copy)
    done = lint_imports(copy)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 kept, 0 broken" in done.stdout


@pytest.mark.slow
def test_imports_against_the_order_are_refused(checkout_copy: Path) -> None:
    """Up in a function, up for a type, sideways, in a circle, and from a package without a place in the order."""
    (checkout_copy / "budgetreg" / "attic").mkdir()
    (checkout_copy / "budgetreg" / "attic" / "__init__.py").write_text('"""What nobody has found a place for."""\n')
    refused = {
        "common is not allowed to import budgetreg.cli": ("common/files.py", "def f():\n    import budgetreg.cli"),
        "metering is not allowed to import budgetreg.protocol": (
            "metering/accessor.py",
            "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from budgetreg.protocol import plan",
        ),
        "estimators is not allowed to import budgetreg.runs": (
            "estimators/parameters.py",
            "from budgetreg.runs import runner",
        ),
        "No modules of a package import each other in a circle": (
            "algorithms/regressors.py",
            "from budgetreg.algorithms import engine",
        ),
    }
    for module, line in refused.values():
        spoil(checkout_copy, f"budgetreg/{module}", line)
    done = lint_imports(checkout_copy)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "0 kept, 2 broken" in done.stdout
    said = done.stdout.partition("Broken contracts")[2]
    assert [message for message in ("attic", *refused) if message not in said] == []


def test_the_picture_of_the_layers_follows_their_imports(checkout_copy: Path) -> None:
    def draw(*words: str) -> tuple[int, int]:
        done = python("scripts/layers.py", *words, folder=checkout_copy, timeout=120, PYTHONPATH="")
        return done.returncode, len(done.stderr.splitlines())

    picture = checkout_copy / "docs" / "project" / "layers.svg"
    before = picture.read_text(encoding="utf-8")
    assert draw("--check") == (0, 0)
    assert re.findall('font-weight="bold".*>(.*)</text>', before)[0] == "The layers of budgetreg"
    assert set(re.findall('font-weight="bold".*>(.*)</text>', before)[1:]) == packages(checkout_copy)
    spoil(checkout_copy, "budgetreg/metering/table.py", "import budgetreg.config")
    assert draw("--check") == (1, 1)
    assert picture.read_text(encoding="utf-8") == before
    assert draw() == (0, 0)
    new = set(picture.read_text(encoding="utf-8").splitlines()) - set(before.splitlines())
    assert re.findall("<title>(.*)</title>", "".join(new)) == ["metering imports config"]


def test_the_page_on_architecture_names_every_package_and_of_files_that_exist() -> None:
    page = (ROOT / "docs" / "project" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("## The layers")[2].partition("\n## ")[0]
    named = {
        name for row in re.findall(r"^\| (`.*?) \|", table, flags=re.MULTILINE) for name in re.findall(r"\w+", row)
    }
    assert named == packages(ROOT)
    paths = re.findall(r"`([\w.]+(?:/[\w.]*)+)`", page)
    assert len(paths) > 20
    known = (ROOT, ROOT / "budgetreg")
    lost = [path for path in paths if not any((at / name).exists() for at in known for name in (path, f"{path}.py"))]
    assert lost == []
