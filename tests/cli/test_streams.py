"""Closed or full streams, readers that stop, and missing letters: no traceback, the right code, results kept."""

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from budgetreg.cli.app import main
from budgetreg.common.notices import patient_streams
from tests.sketches import sketch
from tests.tiers import slow_but
from tests.written_runs import write_run

QUICK = ["run", "algo=naive", "k=4", "repetitions=1", "checkpoints=2", "tuning.folds=2", "out=o"]
COMMANDS = {
    "help": ["--help"],
    "list": ["list"],
    "check": ["check", "algo=naive"],
    "cfg": ["run", "--cfg", "job"],
    "run": QUICK,
    "plot": ["plot", "written"],
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a finished run and one written by hand."""
    folder = tmp_path_factory.mktemp("results")
    write_run(folder / "written")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        sketch(patch)
        assert main(QUICK) == 0
    return folder


@pytest.fixture
def beside(results: Path, here: Path, monkeypatch: pytest.MonkeyPatch, sketched: None) -> Path:
    """Work beside the results."""
    monkeypatch.chdir(results)
    return results


def abandoned() -> io.TextIOWrapper:
    """Return a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "w")


def full() -> io.TextIOWrapper:
    return Path("/dev/full").open("w")


@pytest.mark.parametrize("command", slow_but(("check", "run"), COMMANDS))
@pytest.mark.parametrize(("broken", "code"), [(abandoned, 0), (full, 2)])
def test_output_that_cannot_be_written_gives_no_traceback(
    beside: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    broken: Callable[[], io.TextIOWrapper],
    code: int,
) -> None:
    with monkeypatch.context() as patch, broken() as stream:
        patch.setattr(sys, "stdout", stream)
        assert main(COMMANDS[command]) == code
        assert sys.stdout is stream
    complaint = "budgetreg: cannot write to stdout: No space left on device\n" if code else ""
    assert capsys.readouterr().err == complaint
    assert (beside / "o" / "curves.csv").exists()


@pytest.mark.parametrize(
    ("encoding", "command"),
    slow_but(
        [("latin-1", "plot"), ("ascii", "plot"), ("ascii", "check")],
        [("latin-1", "plot"), *(("ascii", command) for command in COMMANDS)],
    ),
)
def test_letters_that_an_encoding_lacks_are_replaced(
    beside: Path, monkeypatch: pytest.MonkeyPatch, command: str, encoding: str
) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        assert main(COMMANDS[command]) == 0
    printed = raw.getvalue().decode(encoding)
    assert printed
    assert "?" not in printed
    if command == "check":
        assert set(printed.splitlines()[1].split()[1:]) == {"+", "-"}  # passed, and does not apply
    if command == "plot":
        assert (" +- " if encoding == "ascii" else " ± ") in printed


def test_an_error_keeps_its_code_without_a_reader(beside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for broken in (abandoned, full):
        with monkeypatch.context() as patch, broken() as out, broken() as err:
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            assert main(["status", "nowhere"]) == 3
            assert main(["run", "k=0"]) == 2
            assert main(["nothing"]) == 2


def test_nested_blocks_change_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with patient_streams():
        outer = sys.stdout
        with patient_streams():
            assert sys.stdout is outer
        assert sys.stdout is outer
    assert sys.stdout is not outer


def test_names_of_files_keep_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="utf-8"))
        with patient_streams():
            print(os.fsdecode(b"r\xe9sum\xe9"))
        assert raw.getvalue() == b"r\xe9sum\xe9\n"


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a line in which COMMAND stands for the command."""
    words = ["sh", "-c", line.replace("COMMAND", f"{sys.executable} -m budgetreg")]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        pytest.param(f"COMMAND {' '.join(QUICK)} >&- 2>&- <&-", 0, marks=pytest.mark.slow),
        pytest.param(f"COMMAND {' '.join(QUICK)} >/dev/full", 2, marks=pytest.mark.slow),
        pytest.param("COMMAND list >&-", 0, marks=pytest.mark.slow),
        pytest.param("COMMAND list >/dev/full", 2, marks=pytest.mark.slow),
        ("COMMAND --version >/dev/full", 2),
        ("COMMAND --help >/dev/full 2>/dev/full", 2),
        ("COMMAND status nowhere >&- 2>&-", 3),
    ],
)
def test_a_process_exits_with_the_right_code(tmp_path: Path, line: str, code: int) -> None:
    done = shell(line, tmp_path)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert done.stderr.count("\n") == (code == 2 and "2>" not in line)
    if " run " in line:
        assert len((tmp_path / "o" / "curves.csv").read_text().splitlines()) == 3
        assert (tmp_path / "o" / "journal.jsonl").read_text().count("\n") == 1


def test_a_reader_that_stops_changes_no_code(tmp_path: Path) -> None:
    done = shell("(COMMAND --help; echo $? >&2) | head -c 1", tmp_path)
    assert (len(done.stdout), done.stderr) == (1, "0\n")
