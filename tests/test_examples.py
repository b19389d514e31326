"""The packages in examples/ are built, installed and used through the command line, like any other package."""

import doctest
import os
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import pytest

from budgetreg.algorithms import registry
from budgetreg.common.errors import ConfigError
from budgetreg.config import catalogue
from budgetreg.data.registry import kinds
from tests import commands
from tests.commands import ROOT, Ended
from tests.tiers import slow_but

EXAMPLE = ROOT / "examples" / "budgetreg_marginals"

Command = Callable[..., Ended]


def python(*words: str | Path, cwd: Path, home: Path, path: str = "") -> Ended:
    places = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "PYTHONPATH": path, "PYTHONUTF8": "1"}
    return commands.python(*words, folder=cwd, timeout=300, **places)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which only the example's wheel is installed."""
    folder = tmp_path_factory.mktemp("example")
    pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index")
    done = python("-m", "build", "--wheel", "--no-isolation", "--outdir", folder, EXAMPLE, cwd=folder, home=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    done = python(*pip, "--target", folder / "site", wheel, cwd=folder, home=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


@pytest.fixture
def budgetreg(installed: Path, tmp_path: Path) -> Command:
    """Call the command in an empty folder, with the example installed unless other packages are named."""

    def call(line: str, check: int = 0, packages: Sequence[Path] = (installed,)) -> Ended:
        path = os.pathsep.join(map(str, (*packages, ROOT)))
        done = python("-m", "budgetreg", *shlex.split(line), cwd=tmp_path, home=installed.parent, path=path)
        assert done.returncode == check, done.stdout + done.stderr
        return done

    return call


def refused(done: Ended) -> str:
    (line,) = done.stderr.splitlines()
    assert line.startswith("budgetreg: ")
    return line.removeprefix("budgetreg: ")


@pytest.mark.slow
def test_its_readme_shows_what_is_printed_and_runs_leave_honest_curves(budgetreg: Command, tmp_path: Path) -> None:
    text = re.sub(r"(?m)^    ", "", (EXAMPLE / "README.md").read_text(encoding="utf-8"))
    commands = re.findall(r"(?m)^\$ budgetreg (.+)\n((?:(?!\$ |$).*\n)+)", text)
    assert [line.split()[0] for line, _ in commands] == ["list", "list", "check", "run", "plot", "run"]
    for line, shown in commands:
        printed = budgetreg(line).stdout
        assert doctest.OutputChecker().check_output(shown, printed, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE), (
            printed
        )

    (swept,) = (tmp_path / "runs" / "rho0").glob("*algo=marginal_ridge*")
    assert (swept / "curve.png").stat().st_size > 10_000
    curves = pd.read_csv(swept / "curves.csv", keep_default_na=False)
    assert set(curves.dataset) == {"equicorrelated_d20_rho0.0_noise0.1"}
    assert (curves.attributes == 2 * curves.examples).all()
    runs = pd.read_csv(swept / "runs.csv")
    assert (runs.attributes_max == 2).all()
    assert (runs.attributes_tuning == 2 * 3600 * 10 * 9).all()  # examples of 10 folds, 9 values of its parameter
    budgetreg(
        next(line for line, _ in commands if " -m " in line)
        .replace("-m", "n_jobs=2 backend.batch_size=1")
        .replace("ridge,naive", "ridge")
    )
    (again,) = (tmp_path / "runs" / "rho0").glob("curves.csv")
    assert again.read_bytes() == (swept / "curves.csv").read_bytes()

    given = pd.read_csv(tmp_path / "runs" / "digits" / "runs.csv")
    assert set(given.p_shrinkage) == {3}
    assert set(given.attributes_tuning) == {0}
    caption = (tmp_path / "runs" / "digits" / "curve.txt").read_text(encoding="utf-8")
    assert "ridge on marginal moments, each weight in its attribute's own scale" in " ".join(caption.split())


def test_it_imports_the_facade_alone() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in (EXAMPLE / "src").rglob("*.py"))
    assert set(re.findall(r"(?m)^(?:from|import) (budgetreg\b[.\w]*)", code)) == {"budgetreg.extend"}


@pytest.mark.slow
def test_messages_about_its_keys_and_where_it_is_unknown(budgetreg: Command) -> None:
    line = "run -m algo=marginal_ridge,aer --dry-run tuning=fixed tuning.B=1 tuning.lambda=1"
    assert "shrinkage" not in budgetreg(f"{line} tuning.shrinkage=3").stderr
    assert "needs tuning.shrinkage" in refused(budgetreg(line, check=2))
    line = "run algo=marginal_ridge"
    assert "no theorem prescribes shrinkage" in refused(budgetreg(f"{line} tuning=theory", check=2))
    unknown = refused(budgetreg(line, check=2, packages=()))
    assert unknown.startswith("algo=marginal_ridge: no such algo")


def another(folder: Path, group: str, value: str) -> Path:
    """Install a package with an entry point and no modules."""
    metadata = folder / "other-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{group}]\nz = {value}\n")
    return folder


@pytest.mark.slow
def test_a_mistake_of_another_package_gives_one_line(budgetreg: Command, installed: Path, tmp_path: Path) -> None:
    other = another(tmp_path / "other", "budgetreg.datasets", "budgetreg_marginals.data:KIND")
    done = budgetreg("run algo=aer --dry-run", check=2, packages=(installed, other))
    assert refused(done) == (
        "budgetreg_marginals.data:KIND, an entry point in budgetreg.datasets of other, brings the name equicorrelated, "
        "which is taken"
    )


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (
            "budgetreg.algorithms.cesa_bianchi_2010:NOTHING",
            "cannot be loaded: AttributeError: .* has no attribute 'NOTHING'",
        ),
        ("nowhere.learner:Learner", "cannot be loaded: ModuleNotFoundError: No module named 'nowhere'"),
        ("not a module!", "cannot be loaded: "),
        (":Learner", "cannot be loaded: "),
        ("budgetreg.data.distributions:KINDS", "must be a class of learners, derived from Learner, not a tuple"),
        (
            "budgetreg.algorithms.hazan_koren_2012.aerr_aelr:SplitBudgetLearner",
            "must be a class of learners, .* not the class SplitBudget",
        ),
        ("budgetreg.algorithms.cesa_bianchi_2010:Baseline", "brings the name pairs, which is taken"),
    ],
)
def test_an_entry_point_has_to_name_a_declaration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, complaint: str
) -> None:
    monkeypatch.syspath_prepend(another(tmp_path, catalogue.LEARNERS, value))
    catalogue.added_conf_dirs.__wrapped__()
    with pytest.raises(ConfigError, match=f"^{value}, an entry point in budgetreg.learners of other, {complaint}"):
        registry.cores.__wrapped__()
    assert kinds.__wrapped__()


@pytest.mark.parametrize("name", slow_but([], ["buy_measurements", "laboratory", "write_tables"]))
def test_the_help_of_an_example_writes_nothing(tmp_path: Path, name: str) -> None:
    answer = python(ROOT / "examples" / f"{name}.py", "--help", cwd=tmp_path, home=tmp_path, path=str(ROOT))
    assert answer.returncode == 0
    assert answer.stdout.startswith(f"usage: {name}.py")
    assert not list(tmp_path.iterdir())
