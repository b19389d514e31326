"""Verifying results: which repetitions are computed again, and how differences are reported."""

import json
import re
import shutil

import numpy as np
import pytest

from budgetreg.api import plan as plan_of
from budgetreg.api import run
from budgetreg.cli.app import main
from budgetreg.common.errors import ConfigError, DataError
from budgetreg.common.files import signed
from budgetreg.reproduce.verification import Computation, Sample, compare, recompute, verify_run
from budgetreg.runs.manifest import identity_of, provenance, whole_identity
from budgetreg.runs.tables import rows_of, tables_of
from tests.toy_runs import toy_entry, toy_plan, toy_repetitions

CHOICES = {"algo": "aelr", "k": 4, "tuning": "fixed", "tuning.B": 2, "tuning.eta": 0.01, "backend": "sequential"}


def contents(folder):
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return the folder of a run of three repetitions."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    run({**CHOICES, "repetitions": 3, "out": str(folder)})
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    """Return a copy of that folder, which a test may change."""
    return shutil.copytree(finished, tmp_path / "run")


def test_a_sample_depends_on_the_seed_and_the_digest_only():
    held = range(40)
    chosen = Sample(5).of(held, "digest")
    assert chosen == Sample(5).of(held, "digest") == sorted(set(chosen))
    assert len({tuple(Sample(5, seed).of(held, "digest")) for seed in range(9)}) > 5
    assert Sample(5).of(held, "another") != chosen
    assert Sample(None).of(held, "digest") == list(held)
    assert Sample(5).of([7, 3], "digest") == [3, 7]


def test_repetitions_computed_again_are_the_same_or_differ_or_fail(tmp_path):
    plan = toy_plan(tmp_path / "run", log=tmp_path / "log", repetitions=4, behaviour={2: "fail", 3: "edge"})
    tables = {name: rows_of(content) for name, content in tables_of(plan, [toy_entry(n) for n in range(4)]).items()}
    there = Computation(tables, whole_identity(identity_of(plan)), [provenance()])
    assert there.repetitions() == [0, 1, 2, 3]
    same = compare(there, recompute(plan, [0, 1], toy_repetitions))
    assert (same.same, same.held, same.checked, same.causes) == (True, 4, 2, ())
    other = compare(there, recompute(plan, [0, 3], toy_repetitions))
    assert (other.same, other.difference.column, other.difference.repetition) == (False, "edge", 3)
    failed = compare(there, recompute(plan, [0, 2], toy_repetitions))
    assert (failed.same, failed.difference, failed.checked) == (False, None, 2)
    assert failed.failed == "repetition 2: ZeroDivisionError: no such luck"
    assert compare(there, recompute(plan, [], toy_repetitions)).checked == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log"]


def test_verifying_computes_a_run_again_from_its_manifest_and_changes_no_file(folder):
    before = contents(folder)
    verdict = verify_run(folder, Sample(2), {"n_jobs": 1, "dataset.root": "nowhere"})
    assert (verdict.same, verdict.held, verdict.checked) == (True, 3, 2)
    assert contents(folder) == before
    (folder / "curves.csv").unlink()  # a killed run leaves none
    assert verify_run(folder, Sample(None)).checked == 3


def change_model(folder, name, factor):
    """Change what a run has learned, and sign its manifest again."""
    with np.load(folder / "model.npz") as file:
        arrays = dict(file)
    arrays[name][1] *= factor
    np.savez(folder / "model.npz", **arrays)
    rewrite(folder, lambda manifest: None)


@pytest.mark.parametrize(("name", "factor", "relative"), [("w", 1 + 1e-6, 1e-6), ("w", 2, 0.5)])
def test_a_changed_model_is_reported(folder, name, factor, relative):
    change_model(folder, name, factor)
    verdict = verify_run(folder, Sample(None))
    assert not verdict.same
    assert (verdict.difference.column, verdict.difference.repetition) == ("model.w", 1)
    assert verdict.difference.relative == pytest.approx(relative, rel=1e-3)
    (folder / "model.npz").unlink()  # the copy beside the journal is compared
    assert verify_run(folder, Sample(None)).same
    (folder / "models.jsonl").unlink()  # without any copy only the tables are compared
    assert verify_run(folder, Sample(None)).same


def test_the_command_names_the_array_of_the_model_that_differs(folder, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["verify", str(folder), "--all"]) == 0
    change_model(folder, "w", -1)
    assert main(["verify", str(folder), "--all"]) == 1
    assert re.search(r"3 of 3 +differs +model\.w +2\.0e\+00 +repetition 1", capsys.readouterr().out)


def test_the_model_of_a_subspace_learner_is_compared(tmp_path):
    folder = tmp_path / "run"
    choices = {"algo": "popca", "algo.n_components": 1, "dataset": "coins", "k": 2, "backend": "sequential"}
    run({**choices, "repetitions": 2, "checkpoints": 2, "out": str(folder)})
    assert verify_run(folder, Sample(None)).same
    change_model(folder, "V", 1.5)
    assert verify_run(folder, Sample(None)).difference.column == "model.V"


def test_damage_is_reported(folder):
    (folder / "curves.csv").write_bytes((folder / "curves.csv").read_bytes().replace(b"0.", b"1.", 1))
    with pytest.raises(DataError, match=r"curves\.csv is damaged"):
        verify_run(folder, Sample())


def rewrite(folder, edit):
    """Change a manifest and sign it again."""
    manifest = json.loads((folder / "manifest.json").read_text())
    edit(manifest)
    (folder / "manifest.json").write_text(json.dumps(signed({**manifest, "tables": {}})))


def test_a_difference_is_reported_with_all_that_has_changed_since(folder):
    def elsewhere(manifest):
        manifest["config"]["tuning"]["eta"] = 0.02
        manifest["versions"]["numpy"] = "0.1"
        manifest["processor"]["core"] = "Abacus"

    rewrite(folder, elsewhere)
    verdict = verify_run(folder, Sample(1))
    assert not verdict.same
    assert verdict.difference.relative > 1e-9
    assert verdict.causes[0] == "tuning.eta 0.01 -> 0.02"
    assert verdict.causes[1].startswith("numpy 0.1 -> ")
    assert verdict.causes[2].startswith("core Abacus -> ")


def test_all_that_computed_a_resumed_run_is_among_the_causes(folder):
    def resumed_twice(manifest):
        before = {key: manifest[key] for key in ("versions", "git", "processor")}
        manifest["earlier"] = [
            {**before, "versions": {**before["versions"], "numpy": "0.1"}},
            {**before, "processor": {**before["processor"], "core": "Abacus"}},
        ]

    change_model(folder, "w", -1)
    rewrite(folder, resumed_twice)
    first, second = verify_run(folder, Sample(None)).causes[:2]
    assert first.startswith("numpy 0.1 -> ")
    assert second.startswith("core Abacus -> ")


def test_a_configuration_that_cannot_be_run_is_one_line(folder):
    rewrite(folder, lambda manifest: manifest["config"]["algo"].update(core="gone"))
    with pytest.raises(ConfigError, match=r"algo\.core"):
        verify_run(folder, Sample())


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(DataError, match="holds no run"):
        verify_run(tmp_path, Sample())


def test_a_recorded_configuration_has_the_identity_of_the_one_asked_for(tmp_path):
    from budgetreg.protocol.configuration import restored

    for choices in (
        {**CHOICES, "algo.split": "even"},
        {"algo": "ridge", "k": 4, "axis": "examples"},
        {"algo": "popca", "algo.n_components": 1, "dataset": "coins", "k": 2},
        {"algo": "aesvr", "dataset": "sphere", "k": 7, "checkpoints": [0.5, 1.0]},
    ):
        asked = plan_of({**choices, "out": str(tmp_path)}).config
        recorded = json.loads(json.dumps(asked.resolved))
        assert restored(recorded).identity() == asked.identity()
        again = restored(recorded, {"n_jobs": 3, "dataset.root": "elsewhere"})
        assert (again.n_jobs, again.identity()) == (3, asked.identity())
