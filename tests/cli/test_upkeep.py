"""``status --why``, ``verify`` and ``gc`` on folders of runs."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from budgetreg.cli.app import main
from budgetreg.errors import DataError
from budgetreg.execution import scratch
from budgetreg.files.garbage import Garbage
from budgetreg.files.integrity import signed
from budgetreg.results.folders import abandoned_files
from budgetreg.results.store import Store
from tests.toy_runs import toy_entry, toy_plan, toy_run


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in an empty folder, with a cache and temporary files of its own, and leave the environment as it was."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["budgetreg"])
    before = dict(os.environ)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    yield tmp_path
    os.environ.clear()
    os.environ.update(before)


def budgetreg(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    where = {"PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "budgetreg", *line.split()]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={**os.environ, **where}, check=False, timeout=300
    )


def dead_process() -> int:
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait(timeout=60)
    return done.pid


@pytest.mark.slow
def test_runs_are_verified_and_not_changed(here: Path) -> None:
    words = "run -m algo=aelr,ridge k=4 repetitions=3 tuning=fixed tuning.B=2 tuning.eta=0.01 out=runs"
    assert budgetreg(words, here).returncode == 0
    before = {path: path.read_bytes() for path in sorted(Path("runs").rglob("*")) if path.is_file()}
    answer = budgetreg("verify runs n_jobs=2", here)
    assert (answer.returncode, answer.stderr) == (0, "")
    lines = [line.split() for line in answer.stdout.splitlines()]
    assert [line[:1] + line[4:] for line in lines[1:]] == [
        [str(folder), "2", "of", "3", "same"] for folder in sorted(Path("runs").iterdir())
    ]
    assert {path: path.read_bytes() for path in sorted(Path("runs").rglob("*")) if path.is_file()} == before

    # Another processor and version then, and other numbers: the message has the column, the checkpoint and both causes.
    folder = next(Path("runs").glob("algo=aelr*"))
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["config"]["tuning"]["eta"] = 0.02
    manifest["processor"]["core"] = "Abacus"
    (folder / "manifest.json").write_text(json.dumps(signed(manifest)))
    answer = budgetreg("verify runs --all", here)
    assert (answer.returncode, answer.stderr) == (1, "")
    differs, same = answer.stdout.splitlines()[1:3]
    assert " 3 of 3  differs  " in differs
    assert "examples" in differs
    assert " same " in same
    reasons = " ".join(" ".join(answer.stdout.splitlines()[3:]).split())
    assert reasons.startswith("since then: tuning.eta 0.01 -> 0.02, core Abacus -> ")

    # One that is damaged, or that this version cannot run, keeps no other from being verified.
    (folder / "manifest.json").write_text("{")
    answer = budgetreg("verify runs", here)
    assert answer.returncode == 3
    assert answer.stderr.startswith(f"budgetreg: {folder}/manifest.json is damaged")
    assert answer.stderr.count("\n") == 1
    assert len(answer.stdout.splitlines()) == 2


def test_why_shows_missing_and_failed_repetitions(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = toy_plan(Path("runs/a"), log=here / "log", repetitions=4, behaviour={1: "fail", 3: "fail"})
    Path("runs").mkdir()
    toy_run(plan)
    with Store.open(Path("runs/b"), toy_plan(Path("runs/b"), repetitions=9)) as store:
        for number in (0, 4):
            store.add(toy_entry(number))
    capsys.readouterr()
    assert main(["status", "runs"]) == 0
    without = capsys.readouterr().out
    assert main(["status", "runs", "--why"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "\n".join(lines[:3]) + "\n" == without
    assert [line.split() for line in lines[4:]] == [
        ["runs/a", "repetition", "1,", "3", "failed", "ZeroDivisionError:", "no", "such", "luck"],
        [
            *("runs/b", "repetition", "1-3,", "5-8", "missing"),
            *("interrupted:", "the", "same", "command", "resumes"),
        ],
    ]
    with Store.open(Path("runs/b"), toy_plan(Path("runs/b"), repetitions=9)):
        assert main(["status", "runs/b", "--why"]) == 0
    assert "a process works on it now" in capsys.readouterr().out


def test_why_shows_the_error_that_would_come_again(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = {"log": here / "log", "repetitions": 3}
    with pytest.raises(DataError):
        toy_run(toy_plan(Path("run"), behaviour={1: "refuse"}, **facts))
    assert main(["status", "run", "--why"]) == 0
    assert "repetition 1-2  missing  stopped by an error: the data are no good" in capsys.readouterr().out
    with pytest.raises(KeyboardInterrupt):
        toy_run(toy_plan(Path("run"), behaviour={1: "interrupt"}, **facts))
    assert main(["status", "run", "--why"]) == 0
    assert "interrupted: the same command resumes" in capsys.readouterr().out
    toy_run(toy_plan(Path("run"), **facts))
    toy_run(toy_plan(Path("whole"), **facts))
    kept, whole = (json.loads(Path(name, "manifest.json").read_text()) for name in ("run", "whole"))
    assert kept.keys() == whole.keys()


def leave(folder: Path, name: str, process: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f".{name}.{process}.0f.tmp"
    path.write_bytes(b"half")
    return path


def test_temporary_files_of_killed_processes_are_abandoned(here: Path) -> None:
    dead = dead_process()
    gone = leave(Path("runs/a"), "curves.csv", dead)
    leave(Path("runs/a"), "curves.csv", os.getpid())
    leave(Path("runs/a"), "letter.odt", dead)
    (here / "elsewhere").mkdir()
    leave(here / "elsewhere", "curves.csv", dead)
    Path("runs/link").symlink_to(here / "elsewhere")
    assert [garbage.path for garbage in abandoned_files(Path("runs"))] == [gone]
    with Store.open(Path("runs/b"), toy_plan(Path("runs/b"))):
        leave(Path("runs/b"), "curves.csv", dead)
        assert [garbage.path for garbage in abandoned_files(Path("runs"))] == [gone]


def test_gc_lists_asks_and_removes(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    dead = dead_process()
    paths = [leave(Path("runs/a"), name, dead) for name in ("curves.csv", "manifest.json")]
    old = here / "cache" / "budgetreg" / "power_law-1"
    old.mkdir(parents=True)
    (old / "0a.npy").write_bytes(bytes(2_500_000))
    abandoned = here / "tmp" / "budgetreg-x"
    abandoned.mkdir()
    for name in (".owner", "slots"):
        (abandoned / name).write_bytes(b"12")
    (here / "tmp" / "budgetreg-of-somebody-else").mkdir()
    every = [*paths, old, abandoned]

    def there() -> list[bool]:
        return [path.exists() for path in every]

    assert main(["gc"]) == 0  # nobody can be asked
    printed = capsys.readouterr()
    assert printed.err == "budgetreg: nothing was removed (--yes removes these)\n"
    lines = printed.out.splitlines()
    assert [line.split()[0] for line in lines[1:5]] == [*map(str, paths), str(old), str(abandoned)]
    assert lines[3].split()[1:] == ["2", "MB", "arrays", "of", "an", "earlier", "layout"]
    assert lines[5].split() == ["together", "3", "MB"]
    assert there() == [True] * 4

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    with monkeypatch.context() as patch:
        patch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
        for word in ("\n", "n\n", ""):
            patch.setattr(sys, "stdin", Terminal(word))
            assert main(["gc"]) == 0
            assert "remove these? [y/N] " in capsys.readouterr().err
        assert there() == [True] * 4
        patch.setattr(sys, "stdin", Terminal("y\n"))
        assert main(["gc"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "removed: 4, 3 MB"
    assert there() == [False] * 4
    assert (here / "tmp" / "budgetreg-of-somebody-else").exists()
    assert main(["gc", "--yes"]) == 0
    assert capsys.readouterr().out == "nothing to remove\n"


def test_what_cannot_be_removed_is_reported(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = leave(Path("runs/a"), "curves.csv", dead_process())
    monkeypatch.setattr(Garbage, "remove", lambda self: False)  # as if it had come into use
    assert main(["gc", "runs", "--yes"]) == 1
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-1] == "removed: 0, 0 B"
    assert printed.err == f"budgetreg: {path}: in use, or cannot be removed\n"


def test_a_run_is_removed_completely_or_not_at_all(here: Path) -> None:
    from budgetreg.results.folders import run_folder

    plan = toy_plan(Path("runs/a"), log=here / "log")
    toy_run(plan)
    garbage = run_folder(plan.folder, "nobody needs it")
    with Store.open(plan.folder, plan):
        assert (garbage.size(), garbage.remove()) == (None, False)
    (plan.folder / "notes.txt").write_text("mine")
    assert (garbage.size(), garbage.remove()) == (None, False)
    (plan.folder / "notes.txt").unlink()
    assert (plan.folder / "curves.csv").exists()
    assert garbage.size()
    assert garbage.remove()
    assert list(Path("runs").iterdir()) == []
