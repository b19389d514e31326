"""Verifying results: which repetitions are computed again, what counts as the same, how differences are reported."""

import json
import math
import shutil

import numpy as np
import pytest

from budgetreg.api import plan as plan_of
from budgetreg.api import run
from budgetreg.cli.app import main
from budgetreg.common.errors import ConfigError
from budgetreg.common.files import signed
from budgetreg.protocol.configuration import restored
from budgetreg.reproduce.verification import Computation, Sample, compare, largest_difference, recompute, verify_run
from budgetreg.runs.journal import read_status
from budgetreg.runs.manifest import apart, identity_of, provenance, whole_identity
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
    rewrite(folder, lambda manifest: None)
    (folder / "curves.csv").unlink()  # a killed run leaves none, and no digests
    assert verify_run(folder, Sample(None)).checked == 3


@pytest.mark.parametrize("name", ["curves.csv", "runs.csv", "reveals.csv", "model.npz"])
def test_a_missing_file_is_reported_until_the_same_command_writes_it_again(tmp_path, name, capsys):
    choices = {**CHOICES, "dataset.costs": "equal", "repetitions": 1, "checkpoints": 1, "out": str(tmp_path)}
    run(choices)
    (tmp_path / name).unlink()
    for command in (["status", str(tmp_path), "--why"], ["verify", str(tmp_path)]):
        assert main(command) == 3
        out, err = capsys.readouterr()
        assert f"{name} is missing; the command that made it writes it again" in err
        assert not {"complete", "same", "nothing"} & set(out.split())
    run(choices)
    assert read_status(tmp_path).state == "complete"
    assert verify_run(tmp_path, Sample(0)).checked == 0


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


def test_the_model_of_a_subspace_learner_is_compared(tmp_path):
    folder = tmp_path / "run"
    choices = {"algo": "popca", "algo.n_components": 1, "dataset": "coins", "k": 2, "backend": "sequential"}
    run({**choices, "repetitions": 2, "checkpoints": 2, "out": str(folder)})
    assert verify_run(folder, Sample(None)).same
    change_model(folder, "V", 1.5)
    assert verify_run(folder, Sample(None)).difference.column == "model.V"


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


def test_a_recorded_configuration_has_the_identity_of_the_one_asked_for(tmp_path):
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


def rows(tmp_path, **changes):
    """Both tables of three repetitions; a change is written ``curves__test_mse="0.5"`` and made in the last row."""
    tables = {
        name: rows_of(content)
        for name, content in tables_of(toy_plan(tmp_path), [toy_entry(n) for n in range(3)]).items()
    }
    for key, value in changes.items():
        table, column = key.split("__")
        tables[f"{table}.csv"][-1][column] = value
    return tables


def test_equal_bytes_are_the_same_whatever_the_time_they_took(tmp_path):
    assert largest_difference(rows(tmp_path), rows(tmp_path, runs__seconds="9.5"), range(3)) is None


@pytest.mark.parametrize(
    ("changes", "column", "examples", "relative"),
    [
        ({"curves__test_relative": repr(0.5 * (1 + 2e-12))}, "test_relative", 30, 2e-12),
        ({"curves__test_relative": "0.25"}, "test_relative", 30, 0.5),
        ({"runs__p_eta": "0.2"}, "p_eta", None, 1 / 3),
        ({"curves__attributes": "122.0"}, "attributes", 30, 0.0),  # other bytes of the same number
        ({"runs__edge": "B:low"}, "edge", None, math.inf),
        ({"curves__test_mse": "nan"}, "test_mse", 30, math.inf),
        ({"curves__examples": "31"}, "examples", 30, math.inf),
        ({"curves__test_mse": repr(3 / 90 * (1 + 1e-12)), "runs__p_eta": "0.2"}, "p_eta", None, 1 / 3),  # the largest
    ],
)
def test_the_largest_difference_is_reported(tmp_path, changes, column, examples, relative):
    difference = largest_difference(rows(tmp_path), rows(tmp_path, **changes), range(3))
    assert (difference.column, difference.repetition, difference.examples) == (column, 2, examples)
    assert difference.relative == pytest.approx(relative, rel=1e-3)
    assert difference.within_promise == (relative <= 1e-9)


def test_only_repetitions_that_were_computed_again_are_compared(tmp_path):
    changed = rows(tmp_path, curves__test_mse="0.1")
    assert largest_difference(rows(tmp_path), changed, [0, 1]) is None
    assert largest_difference(rows(tmp_path), changed, [1, 2]) is not None


def test_columns_that_the_record_lacks_are_not_compared(tmp_path):
    recorded, again = rows(tmp_path), rows(tmp_path)
    for row in recorded["runs.csv"]:
        del row["cells_run"]
    for row in again["runs.csv"]:
        row["cells_run"] = "7"
    assert largest_difference(recorded, again, range(3)) is None
    assert largest_difference(again, recorded, range(3)).column == "cells_run"


def test_changes_of_versions_and_processor_are_listed():
    now = provenance()
    assert apart([now], now) == []
    then = {"versions": {**now["versions"], "numpy": "0.1"}, "git": now["git"], "processor": None}
    assert apart([then, now], now) == [f"numpy 0.1 -> {now['versions']['numpy']}", "no record of the processor"]
    elsewhere = {**now, "processor": {**now["processor"], "core": "Abacus"}}
    assert apart([elsewhere], now) == [f"core Abacus -> {now['processor']['core'] or 'none'}"]
    assert now["processor"]["machine"]


def test_a_difference_of_the_model_is_reported_unless_the_tables_differ_more(tmp_path):
    def difference_of(was, now, **changes):
        models = ({2: {"w": np.array(was)}}, {1: {"w": np.array([9.0])}, 2: {"w": np.array(now)}})
        return largest_difference(rows(tmp_path), rows(tmp_path, **changes), range(3), models)

    assert difference_of([1.0, 0.0], [1.0, 0.0]) is None
    difference = difference_of([4.0, 1.0, 0.0], [4.0, 1.0, 1e-3])
    assert (difference.column, difference.repetition, difference.examples) == ("model.w", 2, None)
    assert difference.relative == pytest.approx(1e-3 / 4)
    assert difference_of([1.0], [1.0, 2.0]).relative == difference_of([1.0], [np.nan]).relative == math.inf
    assert difference_of([0.0], [-0.0]).relative == 0.0  # other bytes of the same number
    # Of two differences beyond the promise, the difference in the tables counts, as it has a checkpoint.
    assert difference_of([1.0], [2.0], curves__test_relative="0.4").column == "test_relative"
    assert difference_of([1.0], [2.0], curves__test_relative=repr(0.5 * (1 + 2e-12))).column == "model.w"
    assert difference_of([1.0], [1 + 1e-12], curves__test_relative="0.4").column == "test_relative"
