"""Whole runs of the command: the same bytes with any workers, batches, backend and launcher."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.commands import call, process
from tests.runs.test_runner import alive, children, wait_until

pytestmark = pytest.mark.slow
QUICK = "repetitions=2 checkpoints=3 tuning.folds=2 dataset.test_fraction=0.9"
CELLS = f"-m algo=aerr,aer k=5 algo.average=suffix tuning.at=each {QUICK}"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a sweep of two cells that Hydra runs one after the other."""
    folder = tmp_path_factory.mktemp("plain") / "o"
    assert process("run", *CELLS.split(), f"out={folder}").returncode == 0
    return folder


@pytest.mark.parametrize(
    "how",
    [
        "n_jobs=2 backend.batch_size=1",
        "backend=sequential backend.batch_size=100",
        "hydra/launcher=joblib hydra.launcher.n_jobs=2",
        "hydra/launcher=submitit_local",
    ],
)
def test_a_sweep_has_the_same_bytes_however_it_is_computed(here: Path, plain: Path, how: str) -> None:
    done = process("run", *CELLS.split(), *how.split(), "out=o")
    assert done.returncode == 0, done.stderr
    assert "merge the curves: budgetreg plot o" in done.stdout
    assert {path.name for path in (here / "o").iterdir()} == {path.name for path in plain.iterdir()}
    for folder in plain.iterdir():
        there = here / "o" / folder.name
        assert {path.name for path in there.iterdir()} == {path.name for path in folder.iterdir()}
        for name in ("curves.csv", "model.npz"):
            assert (there / name).read_bytes() == (folder / name).read_bytes()
        assert json.loads((there / "manifest.json").read_text())["status"] == "complete"


def test_a_launcher_reports_the_mistake_of_a_cell_and_runs_the_others(here: Path) -> None:
    done = process("run", *f"-m hydra/launcher=joblib algo=aelr k=4,65 {QUICK} out=p".split())
    assert (done.returncode, "at most d=64" in done.stderr) == (2, True)
    assert len(list((here / "p").glob("*/curves.csv"))) == 1


def test_no_worker_of_a_launcher_outlives_a_killed_command(here: Path) -> None:
    line = "run -m hydra/launcher=joblib hydra.launcher.n_jobs=3 algo=aelr k=4,5 repetitions=5000 out=o"
    command = [sys.executable, "-m", "budgetreg", *line.split()]
    running = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )  # one of the workers is idle
    wait_until(lambda: len(children(running.pid)) >= 5)  # three workers and their resource tracker
    started = children(running.pid)
    running.kill()
    running.wait(60)
    wait_until(lambda: not any(map(alive, started)))


def test_a_correlated_distribution_with_heavy_tails_is_learned_up_to_its_noise(
    here: Path, capsys: pytest.CaptureFixture[str], undrawn: None
) -> None:
    distribution = "dataset.d=6 dataset.n=900 dataset.rho=0.7 dataset.n_factors=1 dataset.tails=4 dataset.support=3"
    call(capsys, f"run algo=ridge k=6 dataset=gaussian {distribution} checkpoints=2 tuning=fixed tuning.B=5 out=o")
    curves = pd.read_csv(here / "o" / "curves.csv")
    assert set(curves["dataset"]) == {"gaussian_d6_rho0.7_factors1_t4_support3_noise0.2"}
    assert curves["test_relative"][curves["examples"] == 900].mean() == pytest.approx(0.2, abs=0.02)


def test_missing_values_are_refused_or_learned_from(
    here: Path, capsys: pytest.CaptureFixture[str], undrawn: None
) -> None:
    """They are refused with a hint, then learned from in one call and in two, verified, and predicted with."""
    rng = np.random.default_rng(2)
    X = rng.normal(2, 1, size=(150, 5))
    y = X @ [1, -1, 2, 0, 0.5] + rng.normal(size=150)
    frame = pd.DataFrame(np.where(rng.random(X.shape) < 0.1, np.nan, X), columns=list("abcde")).assign(y=y)
    frame.to_csv("own.csv", index=False)
    frame.dropna().to_csv("whole.csv", index=False)
    line = "run dataset=file dataset.path=own.csv algo=aelr k=2 repetitions=2 checkpoints=3 tuning.folds=2"
    assert "dataset.missing=unavailable" in call(capsys, line, 3).err
    with_gaps = f"{line} dataset.missing=unavailable"
    assert call(capsys, f"{with_gaps} out=once").err.count("missing completely at random") == 1
    for repetitions in (1, 2):
        call(capsys, f"{with_gaps} n_jobs=2 out=twice repetitions={repetitions}")
    assert (here / "once" / "curves.csv").read_bytes() == (here / "twice" / "curves.csv").read_bytes()
    call(capsys, "verify once")
    assert len(call(capsys, "predict once whole.csv").out.split()) == 1 + len(frame.dropna())
    assert "unavailable" not in call(capsys, "predict once own.csv", 3).err  # predict has no such option
