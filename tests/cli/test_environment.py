"""What surrounds a command cannot make it end without one clear line: settings, faulty packages, little memory."""

import resource
import signal
import sys
import warnings

import pytest

from budgetreg.cli.app import main
from budgetreg.common.errors import Interrupted, PluginError
from budgetreg.common.notices import plain_warnings
from budgetreg.config import catalogue
from budgetreg.runs.workers import interrupts_told_apart
from tests.commands import process
from tests.written_runs import write_run

HOW = ("SystemExit", "KeyboardInterrupt", "MemoryError", "Unspeakable", "Odd", "ValueError", "recursion")
FAULTY = {
    "faulty/__init__.py": "",
    "faulty/learner.py": """\
# A learner that fails.
import os
import warnings
from dataclasses import dataclass
import numpy as np
from budgetreg import extend

class Unspeakable(Exception):
    def __str__(self):
        raise self

class Odd(BaseException):
    pass

WHEN, HOW, NTH = (os.environ.get("FAULTY") or "never,nothing,0").split(",")
calls = 0

def recurse():
    return recurse()

def reach(place):
    global calls
    if place != WHEN:
        return
    calls += 1
    if calls <= int(NTH):
        return
    if HOW == "recursion":
        recurse()
    raise {"SystemExit": SystemExit, "KeyboardInterrupt": KeyboardInterrupt, "MemoryError": MemoryError,
           "Unspeakable": Unspeakable, "Odd": Odd, "ValueError": ValueError}[HOW]()

reach("import")

@dataclass(frozen=True)
class Faulty(extend.Learner):
    core = "faulty"
    parameters = (extend.RADIUS,)
    tuned = ("B",)
    words = ("no attributes", "nothing")

    def fit(self, accessor, settings, checkpoints, rngs, given):
        warnings.warn("two\\nlines")
        accessor.open(0, checkpoints[-1])
        for checkpoint in checkpoints:
            yield checkpoint, np.ones((accessor.n_streams, accessor.d, accessor.n_settings))
        reach("fit")
""",
    "faulty/conf/algo/faulty.yaml": "# Faulty\nname: faulty\ncore: faulty\ngrid: {B: [1]}\n",
    "faulty-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: faulty\nVersion: 1\n",
    "faulty-1.dist-info/entry_points.txt": "[budgetreg.learners]\nfaulty = faulty.learner:Faulty\n",
}
"""By path, a package whose learner raises HOW at WHEN, after N times, for FAULTY=WHEN,HOW,N."""

TINY = ("k=4", "repetitions=2", "checkpoints=1", "tuning=fixed", "tuning.B=2", "out=out")


def install_faulty(root):
    for name, content in FAULTY.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)


def command(folder, *words, **variables):
    """Run the command as a process, in a folder with a faulty package."""
    install_faulty(folder)
    return process(*words, folder=folder, **variables)


@pytest.mark.slow
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
