import csv
import errno
import json
import os
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgetreg.common.errors import ConfigError, UserError
from budgetreg.common.files import signed
from budgetreg.runs import store as store_module
from budgetreg.runs.journal import Journal, read_journal, read_status
from budgetreg.runs.manifest import git_state
from budgetreg.runs.store import Store
from budgetreg.runs.tables import CURVES, SCHEMA_VERSION, columns
from tests.toy_runs import toy_entry, toy_line, toy_plan, toy_result
from tests.written_runs import edit_manifest


def fill(folder, repetitions, **config):
    plan = toy_plan(folder, **{"repetitions": len(repetitions), **config})
    with Store.open(folder, plan) as store:
        for repetition in repetitions:
            store.add(toy_entry(repetition))
        store.finish()
    return plan


def table(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_tables_are_sorted_and_hold_every_digit(tmp_path):
    fill(tmp_path, [2, 0, 1])
    rows = table(tmp_path / "curves.csv")
    assert list(rows[0]) == list(columns(of_subspaces=False)[CURVES])
    assert [(row["repetition"], row["examples"]) for row in rows] == [
        (str(repetition), str(examples)) for repetition in range(3) for examples in (7, 30)
    ]
    assert [float(row["test_relative"]) for row in rows[::2]] == [0.1 + 0.2 * r for r in range(3)]
    assert rows[2]["test_relative"] == "0.30000000000000004"
    assert {row["test_error_rate"] for row in rows} == {""}
    runs = table(tmp_path / "runs.csv")
    assert list(runs[0]) == [
        *("experiment", "algo", "dataset", "k", "repetition", "p_B", "p_eta", "edge", "attributes_total"),
        *("attributes_mean", "attributes_max", "attributes_tuning", "cells_run", "cells_tuning", "rows_full"),
        *("seconds", "status"),
    ]
    assert [run["p_eta"] for run in runs] == ["0.1", "0.2", "0.30000000000000004"]
    assert b"\r" not in (tmp_path / "curves.csv").read_bytes()


def test_names_with_commas_stay_one_column(tmp_path):
    fill(tmp_path, [0], experiment='a,"b"')
    assert table(tmp_path / "curves.csv")[0]["experiment"] == 'a,"b"'


def test_the_manifest_records_configuration_versions_and_meanings(tmp_path):
    fill(tmp_path, [0, 1], notes=("a note",))
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["schema_version"] == SCHEMA_VERSION
    assert (manifest["status"], manifest["repetitions"], manifest["repetitions_done"]) == ("complete", 2, 2)
    assert manifest["config"]["algo"]["name"] == "toy"
    assert manifest["notes"] == ["a note"]
    assert {"python", "numpy", "scipy", "scikit-learn", "hydra", "budgetreg"} <= set(manifest["versions"])
    assert set(manifest["git"]) == {"commit", "dirty"}
    assert manifest["columns"]["curves.csv"].keys() == columns(of_subspaces=False)[CURVES].keys()


def test_a_new_folder_has_a_manifest_before_a_repetition_is_finished(tmp_path):
    folder = tmp_path / "new" / "folder"
    with Store.open(folder, toy_plan(folder)):
        assert json.loads((folder / "manifest.json").read_text())["status"] == "incomplete"
        status = read_status(folder)
        assert (status.planned, status.finished, status.failed, status.running) == (3, 0, 0, True)
    assert not read_status(folder).running


@pytest.mark.parametrize("torn", [b'{"repetition": 1, "status": "fin', b"\0\0\0\n", b"null\n", b'{"repetition": 1}'])
def test_a_torn_last_line_is_cut_off(tmp_path, torn):
    path = tmp_path / "journal.jsonl"
    whole = json.dumps(signed(toy_line(0))).encode() + b"\n"
    path.write_bytes(whole + torn)
    assert read_journal(path) == [toy_line(0)]
    assert path.read_bytes() == whole + torn  # reading changes nothing
    journal = Journal(path)
    assert path.read_bytes() == whole
    journal.append(toy_line(1))
    journal.close()
    assert read_journal(path) == [toy_line(0), toy_line(1)]


@given(st.data())
def test_a_journal_cut_anywhere_keeps_its_whole_lines(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    lines = [json.dumps(signed(toy_line(repetition))).encode() + b"\n" for repetition in range(3)]
    length = data.draw(st.integers(0, sum(map(len, lines))))
    path.write_bytes(b"".join(lines)[:length])
    expected = [n for n in range(3) if sum(map(len, lines[: n + 1])) <= length]
    assert [entry["repetition"] for entry in read_journal(path)] == expected


def test_a_second_run_in_the_same_folder_is_refused(tmp_path):
    plan = toy_plan(tmp_path)
    with Store.open(tmp_path, plan), pytest.raises(ConfigError, match="in use by another run"):
        Store.open(tmp_path, plan).__enter__()
    with Store.open(tmp_path, plan):
        pass


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"k": 5, "algo_name": "other"}, r"\(k=4 there but 5 asked, algo.name=toy there but other asked\)"),
        ({"n_train": 91}, r"\(data.n_train=90 there but 91 asked\)"),
        ({"k": 5, "seed": 1, "algo_name": "other", "n_train": 91}, r"( asked.*){3}, and 1 more\)"),
    ],
)
def test_another_configuration_or_other_data_are_refused_with_both_values(tmp_path, asked, said):
    fill(tmp_path, [0])
    before = (tmp_path / "curves.csv").read_bytes()
    with pytest.raises(ConfigError, match=said) as error:
        Store.open(tmp_path, toy_plan(tmp_path, **asked)).__enter__()
    assert "\n" not in str(error.value)
    assert (tmp_path / "curves.csv").read_bytes() == before
    fill(tmp_path, [0])  # the refusal left the folder unlocked


@pytest.mark.parametrize("name", ["curves.csv", "journal.jsonl", "manifest.json", "notes.txt"])
def test_files_of_others_are_never_overwritten(tmp_path, name):
    (tmp_path / name).write_text("{}")
    if name == "notes.txt":
        fill(tmp_path, [0])
    else:
        with pytest.raises(ConfigError, match=f"holds a {name} that budgetreg did not write"):
            Store.open(tmp_path, toy_plan(tmp_path)).__enter__()
    assert (tmp_path / name).read_text() == "{}"


def test_another_schema_is_refused(tmp_path):
    fill(tmp_path, [0])
    edit_manifest(tmp_path, schema_version=99)
    with pytest.raises(ConfigError, match="schema 99"):
        Store.open(tmp_path, toy_plan(tmp_path)).__enter__()


def test_fewer_and_more_repetitions_share_a_folder(tmp_path):
    fill(tmp_path, [0, 1, 2])
    three = (tmp_path / "curves.csv").read_bytes()
    fewer = toy_plan(tmp_path, repetitions=1)
    with Store.open(tmp_path, fewer) as store:
        assert store.missing() == []
        store.finish()
    assert three.startswith((tmp_path / "curves.csv").read_bytes())
    assert {row["repetition"] for row in table(tmp_path / "curves.csv")} == {"0"}
    assert json.loads((tmp_path / "manifest.json").read_text())["repetitions"] == 1
    with Store.open(tmp_path, toy_plan(tmp_path, repetitions=4)) as store:
        assert store.missing() == [3]
        assert read_status(tmp_path).planned == 4
        store.finish()
    assert (tmp_path / "curves.csv").read_bytes() == three


def test_results_of_other_versions_are_noted_and_recorded(tmp_path, monkeypatch):
    fill(tmp_path, [0])
    first = json.loads((tmp_path / "manifest.json").read_text())
    other = {"versions": {"python": "4.0"}, "git": {"commit": None, "dirty": None}, "processor": {"machine": "abacus"}}
    monkeypatch.setattr(store_module, "provenance", lambda: other)
    with Store.open(tmp_path, toy_plan(tmp_path, repetitions=1)) as store:  # nothing is computed, so nothing changes
        assert store.notes == ()
        store.finish()
    assert json.loads((tmp_path / "manifest.json").read_text()) == first
    with Store.open(tmp_path, toy_plan(tmp_path, repetitions=2)) as store:
        assert "other versions" in store.notes[0]
        store.add(toy_entry(1))
        store.finish()
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["versions"] == other["versions"]
    assert [earlier["versions"] for earlier in manifest["earlier"]] == [first["versions"]]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_is_one_line_and_leaves_nothing_half_written(tmp_path, monkeypatch, call):
    plan = fill(tmp_path, [0, 1])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Store.open(tmp_path, plan) as store:
        monkeypatch.setattr(os, call, full)
        with pytest.raises(UserError, match=r"^cannot write \S*curves\.csv: No space left on device$"):
            store.finish()
        if call == "fsync":
            with pytest.raises(UserError, match=r"^cannot write \S*models\.jsonl: No space left on device$"):
                store.add(toy_entry(5))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_an_impossible_folder_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"^cannot create \S*file/below: Not a directory$"):
        Store.open(tmp_path / "file" / "below", toy_plan(tmp_path)).__enter__()


def test_results_read_back_equal_the_results_written(tmp_path):
    plan = fill(tmp_path, [0])
    result = toy_result(0)
    del result["model"]  # the model has its own file
    with Store.open(tmp_path, plan) as store:
        assert [entry["result"] for entry in store.finished()] == [result]


def git(folder, *arguments):
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    subprocess.run(["git", "-C", folder, *identity, *arguments], check=True, capture_output=True, timeout=60)


def test_git_state_follows_the_sources_only(tmp_path, monkeypatch):
    assert git_state(tmp_path) == {"commit": None, "dirty": None}
    git(tmp_path, "init")
    assert git_state(tmp_path)["commit"] is None
    (tmp_path / "budgetreg").mkdir()
    (tmp_path / "budgetreg" / "module.py").write_text("one")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "one")
    assert len(git_state(tmp_path)["commit"]) == 40
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "curves.csv").write_text("results are no sources")
    assert git_state(tmp_path)["dirty"] is False
    (tmp_path / "budgetreg" / "module.py").write_text("two")
    assert git_state(tmp_path)["dirty"] is True
    assert git_state(tmp_path / "budgetreg") == {"commit": None, "dirty": None}
    monkeypatch.setenv("PATH", "")  # without git
    assert git_state(tmp_path) == {"commit": None, "dirty": None}
