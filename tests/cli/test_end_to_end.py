"""Whole runs of the command, on bundled and on small data."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from budgetreg.cli.app import main
from tests.runs.test_runner import alive, children, wait_until

COMMAND = str(Path(sys.executable).with_name("budgetreg"))
LEARNERS = ["aer", "ddaelr_two_phase", "online_lasso", "ridge"]  # one of each kind
QUICK = "repetitions=2 checkpoints=3 tuning.folds=2 dataset.test_fraction=0.7"
CELLS = f"algo=aelr,ridge k=4 {QUICK} tuning=fixed tuning.B=2 tuning.eta=0.01"


@pytest.fixture
def budgetreg(tmp_path, monkeypatch, capfd, undrawn):
    """Call the command in an empty folder, with its own home: here without figures, or `installed` in a process."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def call(line, check=0):
        capfd.readouterr()
        code = main(shlex.split(line))
        said = capfd.readouterr()
        assert code == check, said.out + said.err
        return SimpleNamespace(stdout=said.out, stderr=said.err)

    def installed(line, check=0):
        done = subprocess.run([COMMAND, *shlex.split(line)], capture_output=True, text=True, timeout=300)
        assert done.returncode == check, done.stdout + done.stderr
        return done

    call.installed = installed
    call.start = lambda line: subprocess.Popen(
        [COMMAND, *shlex.split(line)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    return call


@pytest.mark.slow
def test_bytes_do_not_depend_on_workers_batches_or_backend(budgetreg, tmp_path):
    line = f"run -m algo=aerr,aer k=5 algo.average=suffix tuning.at=each {QUICK} dataset.test_fraction=0.9"
    budgetreg(f"{line} out=a")
    budgetreg(f"{line} out=b n_jobs=2 backend.batch_size=1")
    budgetreg(f"{line} out=c backend=sequential backend.batch_size=100")
    names = ("*/curves.csv", "*/model.npz")
    files = [path.relative_to(tmp_path / "a") for name in names for path in sorted((tmp_path / "a").glob(name))]
    assert len(files) == 4
    for path in files:
        expected = (tmp_path / "a" / path).read_bytes()
        assert (tmp_path / "b" / path).read_bytes() == expected
        assert (tmp_path / "c" / path).read_bytes() == expected


@pytest.mark.parametrize(
    "tuning", ["tuning=theory", "tuning=theory tuning.B=2", "tuning=fixed tuning.B=2 tuning.eta=0.01"]
)
def test_theory_and_fixed_tuning_set_the_parameters(budgetreg, tmp_path, tuning):
    budgetreg(f"run algo=aerr k=6 algo.split=even {QUICK} {tuning} out=o")
    runs = pd.read_csv(tmp_path / "o" / "runs.csv")
    if "B=2" in tuning:
        assert (runs.p_B == 2).all()
        assert (runs.attributes_tuning == 0).all()
    eta = 0.01 if "fixed" in tuning else np.sqrt(3 / (2 * 64 * 110))
    np.testing.assert_allclose(runs.p_eta, eta, rtol=1e-12)


def test_text_targets_become_labels_and_changed_data_are_refused(budgetreg, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 5))
    frame = pd.DataFrame(X, columns=list("abcde")).assign(kind=np.where(X[:, 0] > 0, "yes", "no"))
    frame.to_csv(tmp_path / "own.csv", index=False)
    done = budgetreg(f"run algo=aelr k=2 dataset=file dataset.path=own.csv dataset.target=kind {QUICK} out=o")
    assert "'no' -> -1" in done.stderr
    assert set(pd.read_csv(tmp_path / "o" / "curves.csv").dataset) == {"own"}
    frame.assign(a=frame.a + 1).to_csv(tmp_path / "own.csv", index=False)
    line = f"run algo=aelr k=2 dataset=file dataset.path=own.csv dataset.target=kind {QUICK} out=o"
    assert "data.fingerprint" in budgetreg(line, check=2).stderr


@pytest.mark.slow
def test_a_correlated_distribution_with_heavy_tails_is_learned_up_to_its_noise(budgetreg, tmp_path):
    distribution = "dataset.d=6 dataset.n=900 dataset.rho=0.7 dataset.n_factors=1 dataset.tails=4 dataset.support=3"
    budgetreg(f"run algo=ridge k=6 dataset=gaussian {distribution} checkpoints=2 tuning=fixed tuning.B=5 out=o")
    curves = pd.read_csv(tmp_path / "o" / "curves.csv")
    assert set(curves.dataset) == {"gaussian_d6_rho0.7_factors1_t4_support3_noise0.2"}
    assert curves.test_relative[curves.examples == 900].mean() == pytest.approx(0.2, abs=0.02)


@pytest.fixture(scope="module")
def without_launcher(tmp_path_factory):
    """Return the folder of a sweep of two cells that Hydra runs one after the other."""
    folder = tmp_path_factory.mktemp("basic") / "o"
    assert main(shlex.split(f"run -m {CELLS} out={folder}")) == 0
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["joblib hydra.launcher.n_jobs=2", "submitit_local"])
def test_launchers_leave_the_same_bytes(budgetreg, tmp_path, without_launcher, launcher):
    done = budgetreg.installed(f"run -m hydra/launcher={launcher} {CELLS} out=o")
    assert "merge the curves: budgetreg plot o" in done.stdout
    for folder in without_launcher.iterdir():
        there = tmp_path / "o" / folder.name
        assert {path.name for path in there.iterdir()} == {path.name for path in folder.iterdir()}
        for name in ("curves.csv", "model.npz"):
            assert (there / name).read_bytes() == (folder / name).read_bytes()
        assert json.loads((there / "manifest.json").read_text())["status"] == "complete"
    assert len(list((tmp_path / "o").iterdir())) == 2


@pytest.mark.slow
def test_a_launcher_reports_the_mistake_of_a_cell_and_runs_the_others(budgetreg, tmp_path):
    bad = budgetreg.installed(f"run -m hydra/launcher=joblib algo=aelr k=4,65 {QUICK} out=p", check=2)
    assert "at most d=64" in bad.stderr
    assert len(list((tmp_path / "p").glob("*/curves.csv"))) == 1


@pytest.mark.slow
def test_no_worker_of_a_launcher_outlives_a_killed_command(budgetreg):
    line = "run -m hydra/launcher=joblib hydra.launcher.n_jobs=3 algo=aelr k=4,5 repetitions=5000 out=o"
    process = budgetreg.start(line)  # one of the workers is idle
    wait_until(lambda: len(children(process.pid)) >= 5)  # three workers and their resource tracker
    started = children(process.pid)
    process.kill()
    process.wait(60)
    wait_until(lambda: not any(map(alive, started)))


@pytest.mark.slow
def test_missing_values_are_refused_or_learned_from(budgetreg, tmp_path):
    """They are refused with a hint, then learned from in one call and in two, verified, and predicted with."""
    rng = np.random.default_rng(2)
    X = rng.normal(2, 1, size=(150, 5))
    y = X @ [1, -1, 2, 0, 0.5] + rng.normal(size=150)
    gaps = rng.random(X.shape) < 0.1
    frame = pd.DataFrame(np.where(gaps, np.nan, X), columns=list("abcde")).assign(y=y)
    frame.to_csv(tmp_path / "own.csv", index=False)
    frame[~gaps.any(axis=1)].to_csv(tmp_path / "whole.csv", index=False)
    line = "run dataset=file dataset.path=own.csv k=2 repetitions=2 checkpoints=3 tuning.folds=2"
    assert "dataset.missing=unavailable" in budgetreg(f"{line} algo=aelr", check=3).stderr
    with_gaps = f"{line} dataset.missing=unavailable dataset.costs=equal"
    needs = budgetreg(f"{with_gaps} algo=ridge", check=2).stderr
    assert needs.count("\n") == 1
    assert "aelr" in needs
    for algo in ("aelr", "baseline"):
        done = budgetreg(f"{with_gaps} algo={algo} out={algo}")
        assert done.stderr.count("missing completely at random") == 1
        runs = pd.read_csv(tmp_path / algo / "runs.csv")
        assert (runs.attributes_max == 2).all()
        assert runs.attributes_mean.between(1.6, 1.95).all()
        assert (runs.cost_total == runs.attributes_total).all()
        assert (runs.cells_run + runs.cells_tuning <= np.count_nonzero(~gaps)).all()
        # Held-out examples are complete.
        assert (runs.rows_full <= np.count_nonzero(~gaps.any(axis=1))).all()
        curves = (tmp_path / algo / "curves.csv").read_bytes()
        budgetreg(f"{with_gaps} algo={algo} n_jobs=2 out={algo}-again repetitions=1")
        budgetreg(f"{with_gaps} algo={algo} n_jobs=2 out={algo}-again")
        assert (tmp_path / f"{algo}-again" / "curves.csv").read_bytes() == curves
        budgetreg(f"verify {algo}")
        assert len(budgetreg(f"predict {algo} whole.csv").stdout.split()) == 1 + np.count_nonzero(~gaps.any(axis=1))
    assert "unavailable" not in budgetreg("predict aelr own.csv", check=3).stderr  # predict has no such option
    budgetreg(f"{with_gaps} algo=popca dataset.target=y algo.n_components=2 out=popca")
    assert "which is assumed" in budgetreg(f"{with_gaps} algo=aelr --dry-run").stdout.replace("\n", " ")
