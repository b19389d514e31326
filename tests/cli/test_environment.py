"""What surrounds a command cannot make it end without one clear line: settings, faulty packages, little memory."""

import resource
import signal
import sys
import warnings
from pathlib import Path

import pytest

from budgetreg.cli.app import main
from budgetreg.common.errors import Interrupted, PluginError
from budgetreg.common.notices import plain_warnings
from budgetreg.config import catalogue
from budgetreg.runs.workers import interrupts_told_apart
from tests.commands import process
from tests.written_runs import write_run

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from stress_processes import HOW, install_faulty  # noqa: E402

TINY = ("k=4", "repetitions=2", "checkpoints=1", "tuning=fixed", "tuning.B=2", "out=out")


def command(folder, *words, **variables):
    """Run the command as a process, in a folder with a faulty package."""
    install_faulty(folder)
    return process(*words, folder=folder, **variables)


def test_settings_of_matplotlib_change_nothing(tmp_path):
    write_run(tmp_path / "run")
    (tmp_path / "matplotlibrc").write_bytes(b"\xff")
    done = process("plot", "run", folder=tmp_path, MPLBACKEND="nonsense")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "run" / "curves.png").exists()


def test_a_warning_is_one_plain_line(capsys):
    with warnings.catch_warnings(action="default"), plain_warnings():
        warnings.warn("two\nlines", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == "budgetreg: UserWarning: two lines\n"


@pytest.mark.slow
def test_a_repetition_in_which_another_package_fails_is_one_line_and_others_are_kept(tmp_path):
    done = command(tmp_path, "run", "algo=faulty", *TINY, FAULTY="fit,SystemExit,1")
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    said = "the package faulty has failed in line 30 of faulty.learner: SystemExit"
    assert all(line.startswith("budgetreg: ") for line in lines)
    assert {"budgetreg: UserWarning: two lines", f"budgetreg: repetition 1 failed: {said}"} <= set(lines)
    rows = (tmp_path / "out" / "runs.csv").read_text().splitlines()[1:]
    assert [row.split(",")[-1] for row in rows] == ["finished", "failed"]


@pytest.fixture
def reach(tmp_path, monkeypatch):
    """Return a function of a faulty package, which fails in some way."""
    install_faulty(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "faulty.learner", raising=False)
    catalogue._packages.cache_clear()

    def fail(how):
        from faulty import learner

        monkeypatch.setattr(learner, "WHEN", "now")
        monkeypatch.setattr(learner, "HOW", how)
        learner.reach("now")

    yield fail
    catalogue._packages.cache_clear()


@pytest.mark.parametrize("how", HOW)
def test_whatever_another_package_raises_names_it(reach, how):
    with (
        pytest.raises(PluginError, match=r"^the package faulty has failed in line \d+ of faulty\.learner: \w") as error,
        interrupts_told_apart(),
        catalogue.blamed(),
    ):
        reach(how)
    assert "\n" not in str(error.value)


def test_other_code_and_interrupts_are_not_blamed_on_a_package(reach):
    with pytest.raises(ZeroDivisionError), catalogue.blamed():
        _ = 1 / 0
    with pytest.raises(Interrupted), interrupts_told_apart(), catalogue.blamed():
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("how", [pytest.param("KeyboardInterrupt", marks=pytest.mark.slow), "SystemExit"])
def test_a_package_that_ends_while_it_is_imported_is_one_line(tmp_path, how):
    done = command(tmp_path, "run", "--dry-run", "algo=faulty", FAULTY=f"import,{how},0")
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2
    assert line.startswith(
        "budgetreg: faulty.learner:Faulty, an entry point in budgetreg.learners of faulty, cannot be"
    )


def test_a_small_address_space_is_one_line_before_libraries_load(monkeypatch, capsys):
    monkeypatch.setattr(resource, "getrlimit", lambda which: (300_000 * 1024, -1))
    assert main(["status", "."]) == 2
    assert capsys.readouterr().err == (
        "budgetreg: the address space is limited to 300,000 KB (ulimit -v), and numpy and scipy need 750,000 KB: raise "
        "the limit\n"
    )
