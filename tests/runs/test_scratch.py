"""Temporary files of killed processes are removed by the next process, and those of living ones stay."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from filelock import FileLock

from budgetreg.common.files import remove_abandoned, scratch_folder, write_atomically
from budgetreg.data import cache
from tests.commands import Call

ROOT = Path(__file__).parents[2]
HOLD = """
import sys
from pathlib import Path
from budgetreg.common.files import scratch_folder
with scratch_folder(sys.argv[2], Path(sys.argv[1])) as folder:
    (folder / "content").write_text("half")
    print(folder, flush=True)
    sys.stdin.read()
"""


def hold(parent: Path, prefix: str = "budgetreg-") -> tuple[subprocess.Popen[str], Path]:
    """Start a process that holds a folder until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(parent), prefix],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate(timeout=60)


def test_a_folder_is_removed_by_its_owner_or_after_the_owner_was_killed(tmp_path: Path) -> None:
    process, theirs = hold(tmp_path)
    (tmp_path / "budgetreg-results").mkdir()  # a user's folder
    with scratch_folder(parent=tmp_path) as ours:
        assert theirs.is_dir()
        remove_abandoned("budgetreg-", tmp_path)  # as another process would
        assert ours.is_dir()
        assert theirs.is_dir()
    assert not ours.exists()
    kill(process)
    assert (theirs / "content").exists()
    with scratch_folder(parent=tmp_path):
        assert not theirs.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["budgetreg-results"]


def test_a_folder_whose_owner_died_before_it_was_locked_is_removed(tmp_path: Path) -> None:
    with scratch_folder(parent=tmp_path) as ours:
        unlocked = ours.with_name("budgetreg-unlocked.tmp")
        unlocked.mkdir()
        ours.with_name("budgetreg-mine").mkdir()
        remove_abandoned("budgetreg-", tmp_path)
        assert {path.name for path in tmp_path.iterdir()} == {ours.name, "budgetreg-mine"}


def test_a_run_removes_the_folders_of_killed_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "argv", ["budgetreg"])
    (tmp_path / "tmp").mkdir()
    for name in ("abandoned", "prepared"):
        (cache.cache_root() / name / "table.tmp").mkdir(parents=True)
        (cache.cache_root() / name / "images.npy.tmp").touch()
    process, theirs = hold(tmp_path / "tmp")
    kill(process)
    before = dict(os.environ)
    try:
        with FileLock(cache.cache_root() / "prepared" / "lock"):  # another process prepares it now
            call("run --dry-run")
    finally:
        os.environ.clear()
        os.environ.update(before)
    assert not theirs.exists()
    assert {path.parent.name for path in cache.cache_root().rglob("*.tmp")} == {"prepared"}
    assert list((tmp_path / "tmp").iterdir()) == []


def test_writing_a_file_removes_the_temporary_files_of_killed_writers(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(60)
    owners = ((".file", process.pid), (".file", os.getppid()), (".file", "mine"), (".other", process.pid))
    names = [f"{name}.{owner}.0f.tmp" for name, owner in owners]
    for name in names:
        (tmp_path / name).touch()
    write_atomically(tmp_path / "file", b"content")
    assert {path.name for path in tmp_path.iterdir()} == {"file", *names[1:]}
