"""Single inverted bits in the files of a run are reported in one line or change nothing; no result changes silently.

``FLIPS=200 pytest tests/runs/test_damage.py`` tries more than the few for each file that a test has time for.
"""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from budgetreg.cli.app import main
from budgetreg.common.errors import DataError, UserError
from budgetreg.common.files import Damaged, content_of, signed
from budgetreg.reproduce.verification import Sample, verify_run
from budgetreg.runs import manifest as manifest_module
from budgetreg.runs import store as store_module
from budgetreg.runs.journal import read_journal, read_lines, read_status
from budgetreg.runs.manifest import read_tables
from budgetreg.runs.models import read_regressors
from budgetreg.runs.series import Series, read_series
from budgetreg.runs.store import Store
from tests.damage import flip
from tests.toy_runs import toy_entry, toy_line, toy_plan

FLIPS = int(os.environ.get("FLIPS", 5))
NAMES = ("journal.jsonl", "manifest.json", "curves.csv", "runs.csv")


def fill(folder: Path) -> None:
    """Compute the missing repetitions of a run, and write its tables."""
    with Store.open(folder, toy_plan(folder)) as store:
        for repetition in store.missing():
            store.add(toy_entry(repetition))
        store.finish()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(manifest_module, "_PAUSE", 0)
    fill(tmp_path / "run")
    return tmp_path / "run"


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in NAMES}


def drawn(series: list[Series]) -> list[object]:
    """Return everything that a figure or a table shows."""
    return [
        (curve.label, curve.config, curve.d, curve.points.to_csv(), curve.runs.drop(columns=["seconds"]).to_csv())
        for curve in series
    ]


def one_line(error: UserError) -> str:
    assert "\n" not in str(error)
    return str(error)


@pytest.mark.parametrize("name", NAMES)
def test_an_inverted_bit_is_reported_or_changes_nothing(
    run: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, expected, kept = contents(run), drawn(read_series([run])), tmp_path / "kept"
    rng = np.random.default_rng(0)
    shutil.copytree(run, kept)
    caught = 0
    for _ in range(FLIPS):
        shutil.rmtree(run)
        shutil.copytree(kept, run)
        flip(run / name, rng)
        try:
            assert drawn(read_series([run])) == expected
        except DataError as error:
            caught += name in one_line(error)
        code, damage = main(["status", str(run)]), capsys.readouterr().err
        assert (code, damage.count("\n")) in ((0, 0), (3, 1))
        assert code == 0 or name in damage
        try:
            fill(run)
        except UserError as error:  # nobody knows whose results a damaged manifest describes
            assert name == "manifest.json"
            assert name in one_line(error)
            continue
        assert contents(run)["curves.csv"] == whole["curves.csv"]
        assert read_status(run).damage == ""
    # A flipped bit in the manifest may change nothing, in a digit beyond a number's precision for example.
    assert caught >= {"journal.jsonl": 0, "manifest.json": 0.95 * FLIPS - 1}.get(name, FLIPS)


def test_a_damaged_line_of_the_journal_is_reported_and_computed_again(run: Path) -> None:
    whole = contents(run)
    lines = whole["journal.jsonl"].splitlines(keepends=True)
    (run / "journal.jsonl").write_bytes(lines[0] + lines[1].replace(b"900", b"901") + lines[2])
    assert [entry["repetition"] for entry in read_journal(run / "journal.jsonl")] == [0, 2]
    with Store.open(run, toy_plan(run)) as store:
        assert store.missing() == [1]
        (note,) = store.notes
        assert "journal.jsonl is damaged: 1 of its lines" in note
        store.add(toy_entry(1))
        store.finish()
    assert contents(run)["curves.csv"] == whole["curves.csv"]
    assert (run / "journal.jsonl").read_bytes() == lines[0] + lines[2] + lines[1]
    with Store.open(run, toy_plan(run)) as store:
        assert store.notes == ()


@pytest.mark.parametrize("sound", [toy_line(0), {**signed(toy_line(0)), "seconds": 9.0}])
def test_lines_without_their_digest_are_damaged(tmp_path: Path, sound: object) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text(f"{json.dumps(sound)}\n{json.dumps(signed(toy_line(1)))}\n")
    assert read_journal(path) == [toy_line(1)]
    assert read_lines(path).damaged == 1


@pytest.mark.parametrize("record", [{}, {"sha256": None}, {"sha256": ""}, {"repetition": 0}, {"tables": {}}, [], None])
def test_nothing_vouches_for_a_record_without_a_digest(record: object) -> None:
    assert content_of(record) is None


def test_an_empty_line_of_the_journal_is_damaged(run: Path) -> None:
    with (run / "journal.jsonl").open("a") as file:
        file.write("{}\n")
    assert len(read_lines(run / "journal.jsonl").entries) == 3
    assert "journal.jsonl is damaged" in read_status(run).damage


@pytest.mark.parametrize("manifest", [[], {}, {"tables": {}}])
def test_a_manifest_that_says_nothing_makes_no_run(run: Path, manifest: object) -> None:
    (run / "manifest.json").write_text(json.dumps(manifest))
    for action in (read_status, lambda run: read_series([run]), read_regressors, lambda run: verify_run(run, Sample())):
        with pytest.raises(DataError, match="holds no"):
            action(run)


def test_a_manifest_without_its_digest_is_damaged(run: Path) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    del manifest["sha256"]
    (run / "manifest.json").write_text(json.dumps(manifest))
    for action in (lambda: read_series([run]), lambda: fill(run), lambda: read_status(run)):
        with pytest.raises(Damaged, match=r"manifest\.json is damaged"):
            action()


@pytest.mark.parametrize("killed_at", ["curves.csv", "runs.csv"])
def test_a_run_that_was_killed_while_its_tables_change_is_not_damaged(
    run: Path, monkeypatch: pytest.MonkeyPatch, killed_at: str
) -> None:
    write = store_module.write_atomically

    def killed(path: Path, content: bytes) -> None:
        if path.name == killed_at:
            raise KeyboardInterrupt
        write(path, content)

    with Store.open(run, toy_plan(run, repetitions=4)) as store:
        store.add(toy_entry(3))
        monkeypatch.setattr(store_module, "write_atomically", killed)
        with pytest.raises(KeyboardInterrupt):
            store.finish()
    monkeypatch.undo()
    assert read_status(run).damage == ""
    assert read_series([run])


def test_a_reader_waits_for_a_writer_that_is_between_two_files(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    curves = (run / "curves.csv").read_bytes()
    (run / "curves.csv").write_bytes(curves + b"more")
    monkeypatch.setattr(manifest_module.time, "sleep", lambda _: (run / "curves.csv").write_bytes(curves))
    assert read_tables(run, ["curves.csv"]) == {"curves.csv": curves}
