"""The installed package is complete, needs no torch, and works away from the checkout."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import budgetreg

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.slow  # the package is built


def run(*command: str | Path, cwd: Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command that must succeed; ``path`` is where Python looks for modules first."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    words = [str(part) for part in command]
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The source archive and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    (sdist,) = folder.glob("*.tar.gz")
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def wheel_names(archives: tuple[Path, Path]) -> list[str]:
    with zipfile.ZipFile(archives[1]) as archive:
        return archive.namelist()


@pytest.fixture(scope="module")
def metadata(archives: tuple[Path, Path]) -> Message:
    with zipfile.ZipFile(archives[1]) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_string(archive.read(name).decode())


@pytest.fixture(scope="module")
def installed(archives: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the installed wheel alone."""
    target = tmp_path_factory.mktemp("installed")
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, "--no-deps", "--no-index", "--target", target, archives[1], cwd=target)
    return target


def shipped(folder: str, pattern: str) -> set[str]:
    """The files below a folder of the repository, links followed, relative to it."""
    return {
        os.path.relpath(os.path.join(parent, name), ROOT / folder)
        for parent, _, names in os.walk(ROOT / folder, followlinks=True)
        for name in names
        if re.search(pattern, name)
    }


@pytest.mark.parametrize(
    ("folder", "pattern", "inside"),
    [
        ("budgetreg", r"\.py$", "budgetreg"),
        ("budgetreg", r"\.html$", "budgetreg"),
        ("budgetreg/data", r"(\.csv|LICENSE\.txt)$", "budgetreg/data"),
        ("conf", r"\.yaml$", "budgetreg/conf"),
        ("experiments", r"\.yaml$", "budgetreg/conf/experiment"),
    ],
)
def test_the_wheel_holds_every_file_once(wheel_names: list[str], folder: str, pattern: str, inside: str) -> None:
    wanted = {f"{inside}/{name}" for name in shipped(folder, pattern)}
    assert wanted
    assert {name: wheel_names.count(name) for name in wanted} == dict.fromkeys(wanted, 1)


def test_the_wheel_holds_only_the_package(wheel_names: list[str]) -> None:
    assert {name.split("/")[0] for name in wheel_names} == {
        "budgetreg",
        f"budgetreg-{budgetreg.__version__}.dist-info",
    }


def test_the_source_archive_holds_what_a_developer_needs(archives: tuple[Path, Path]) -> None:
    with tarfile.open(archives[0]) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    assert {"Makefile", "constraints.txt", "LICENSE", "tests/test_packaging.py"} <= names
    assert {"docs/project/architecture.md", "docs/project/layers.svg"} <= names
    assert "examples/budgetreg_marginals/pyproject.toml" in names


def test_an_installation_without_extras_needs_no_torch(metadata: Message) -> None:
    requirements = [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]
    base = {requirement.name for requirement in requirements if requirement.marker is None}
    assert {"numpy", "hydra-core", "scikit-learn"} <= base
    assert not {name for name in base if name.startswith("torch")}
    with_mnist = {r.name for r in requirements if r.marker and r.marker.evaluate({"extra": "mnist"})}
    assert with_mnist == {"torchvision"}


def test_every_direct_requirement_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    requirements = [Requirement(line) for line in sum(extras, project["dependencies"])]
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    pins = dict(line.split("==") for line in lines if line)
    unpinned = [r.name for r in requirements if pins.get(r.name, "") not in r.specifier]
    assert unpinned == []


def test_every_file_states_the_same_version(metadata: Message) -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    assert metadata["Version"] == budgetreg.__version__
    assert f"\nversion: {budgetreg.__version__}\n" in citation
    assert f"## {budgetreg.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_installed_command_works_away_from_the_checkout(installed: Path, tmp_path: Path) -> None:
    command = installed / "bin" / "budgetreg"
    assert run(command, "--version", cwd=tmp_path, path=installed).stdout.split()[-1] == budgetreg.__version__
    where = "import budgetreg; print(budgetreg.__file__)"
    imported = run(sys.executable, "-c", where, cwd=tmp_path, path=installed).stdout
    assert Path(imported.strip()).is_relative_to(installed)
    listed = run(command, "list", cwd=tmp_path, path=installed).stdout
    assert {"aelr", "ridge", "hazan_koren_2012/fig1"} <= set(listed.split())
