"""The gate of `make golden`: a change of anything that commands print or write is reported."""

from pathlib import Path
from typing import Any

import golden
import pytest

from tests.commands import ROOT, python

OUTCOME: dict[str, Any] = {
    "exit code": 0,
    "stdout": b"table\n",
    "stderr": b"",
    "run/curve.png": b"\x89PNG",
    "old": None,
}


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        ({"exit code": 1}, "exit code"),
        ({"stdout": b"table \n"}, "stdout"),
        ({"stderr": b"budgetreg: a notice\n"}, "stderr"),
        ({"run/curve.png": b"\x89PNH"}, "run/curve.png"),
        ({"run/curve.png": None}, "run/curve.png"),
        ({"old": b""}, "old"),
        ({"run/new.csv": b"", "stdout": b""}, "stdout, run/new.csv"),
    ],
)
def test_each_change_of_an_outcome_is_reported(change: dict[str, Any], reported: str) -> None:
    before, after = ({"budgetreg run": golden.hashed({**OUTCOME, **more})} for more in ({}, change))
    assert list(golden.differences("a run", before, before)) == []
    assert list(golden.differences("a run", before, after)) == [f"a run: budgetreg run\n    {reported}"]


def test_commands_that_come_and_go_are_reported() -> None:
    lines = golden.differences("a run", {"budgetreg run": OUTCOME}, {"budgetreg plot": OUTCOME})
    assert [line.split("\n    ")[1] for line in lines] == ["is no longer run", "is new"]


@pytest.mark.parametrize(
    ("name", "text", "steady"),
    [
        ("", b"results: /place/here/runs\n", b"results: FOLDER/runs\n"),
        (
            "manifest.json",
            b' "seconds": 0.5,\n "k": 4,\n "commit": "ab1",\n',
            b' "seconds": null,\n "k": 4,\n "commit": null,\n',
        ),
        ("manifest.json", b'"versions": {\n "numpy": "2.4.6"\n}', b'"versions": {\n "numpy": null\n}'),
        ("manifest.json", b'"runs.csv": {"seconds": "time"}', b'"runs.csv": {"seconds": "time"}'),
        ("journal.jsonl", b'{"b": 1, "sha256": "c0"}\n{"a": 1.5}\n', b'{"a": 1.5}\n{"b": 1, "sha256": null}\n'),
        ("runs.csv", b"k,seconds,status\n4,0.5,finished\n", b"k,status\n4,finished\n"),
        ("curves.csv", b"k,seconds\n4,0.5\n", b"k,seconds\n4,0.5\n"),
    ],
)
def test_only_what_differs_between_calls_is_left_out(name: str, text: bytes, steady: bytes) -> None:
    assert golden.steady(text, Path("/place/here"), name) == steady


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["random streams", "plans", "mistakes"])
def test_commands_print_and_write_what_they_did(scenario: str) -> None:
    done = python("scripts/golden.py", "--only", scenario, "-j", "1", folder=ROOT, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
