"""The command in this process, or in one of its own, and what it prints."""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from budgetreg.cli.app import main
from budgetreg.runs.runner import Choices

ROOT = Path(__file__).parents[1]
Ended = subprocess.CompletedProcess[str]
NO_CHOICES = Choices("aer", 0, {})


@dataclass(frozen=True)
class Answer:
    out: str
    err: str


Call = Callable[..., Answer]


def call(capsys: pytest.CaptureFixture[str], line: str, code: int = 0) -> Answer:
    """Call the command here; it must end with this exit code. Tests use the fixture ``call``."""
    capsys.readouterr()
    ended = main(shlex.split(line))
    answer = Answer(*capsys.readouterr())
    assert ended == code, answer.out + answer.err
    return answer


def python(*words: object, folder: Path | None = None, timeout: float, **environment: str) -> Ended:
    """Call Python as a process of its own, which imports this checkout."""
    return subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=timeout,
    )


def process(*words: str, folder: Path | None = None, **environment: str) -> Ended:
    """Call the command as a process of its own."""
    return python("-m", "budgetreg", *words, folder=folder, timeout=300, **environment)


def one_line(text: str) -> str:
    """Return what a mistake prints, which is one line."""
    assert text.startswith("budgetreg: ")
    assert text.count("\n") == 1
    return text
