"""Whole runs of the command: the same bytes with any workers, batches, backend and launcher."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.commands import Call, process
from tests.runs.test_runner import alive, children, wait_until

pytestmark = pytest.mark.slow
COMMAND = str(Path(sys.executable).with_name("budgetreg"))
LEARNERS = ["aer", "ddaelr_two_phase", "online_lasso", "ridge"]  # one of each kind
QUICK = "repetitions=2 checkpoints=3 tuning.folds=2 dataset.test_fraction=0.9"
CELLS = f"-m algo=aerr,aer k=5 algo.average=suffix tuning.at=each {QUICK}"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a sweep of two cells that Hydra runs one after the other."""
    folder = tmp_path_factory.mktemp("plain") / "o"
    assert process("run", *CELLS.split(), f"out={folder}").returncode == 0
    return folder


@pytest.fixture
def own_places(here: Path, undrawn: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work without figures in an empty folder, with a home and a cache of our own."""
    monkeypatch.setenv("HOME", str(here / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "cache"))
    return here


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


def test_learners_of_each_kind_stay_within_the_budget(own_places: Path, call: Call) -> None:
    enough = "repetitions=2 checkpoints=3 dataset.test_fraction=0.5 tuning.folds=3"  # 183 examples
    installed = [COMMAND, *f"run -m algo={','.join(LEARNERS)} k=4 {enough} out=all".split()]
    done = subprocess.run(installed, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    for algo in LEARNERS:
        folder = own_places / "all" / f"algo={algo},checkpoints=3,dataset.test_fraction=0.5,k=4,tuning.folds=3"
        assert {path.name for path in folder.iterdir()} >= {
            "curves.csv",
            "runs.csv",
            "manifest.json",
            "curve.png",
            "curve.pdf",
        }
        curves = pd.read_csv(folder / "curves.csv", keep_default_na=False)
        assert ",".join(curves.columns) == (
            "experiment,algo,dataset,k,repetition,examples,attributes,test_mse,test_relative,test_error_rate,test_svr_loss"
        )
        assert set(curves.algo) == {algo}
        assert set(curves.dataset) == {"digits_3v5"}
        per_example = 4 if algo in ("aer", "ddaelr_two_phase") else 64
        assert (curves.attributes <= per_example * curves.examples).all()
        assert (curves.attributes > (per_example - 2) * curves.examples - 2).all()
        assert curves.attributes.max() <= 4 * 183
        runs = pd.read_csv(folder / "runs.csv")
        assert (runs.attributes_max <= per_example).all()
        assert runs.attributes_total.tolist() == curves.groupby("repetition").attributes.max().tolist()
        assert (runs.attributes_tuning > runs.attributes_total).all()
        last = curves[curves.examples == curves.examples.max()]
        assert last.test_relative.between(0, 1.2).all()
        manifest = json.loads((folder / "manifest.json").read_text())
        assert manifest["config"]["algo"]["name"] == algo
        assert manifest["status"] == "complete"
    call("plot all")
    assert (own_places / "all" / "curves.png").stat().st_size > 10_000


@pytest.mark.parametrize("algo", ["aelr", "baseline"])
def test_a_run_with_missing_values_has_the_same_bytes_in_two_calls_and_is_verified(
    own_places: Path, call: Call, algo: str
) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(2, 1, size=(150, 5))
    frame = pd.DataFrame(X, columns=list("abcde")).assign(y=X @ [1, -1, 2, 0, 0.5] + rng.normal(size=150))
    frame = frame.mask(rng.random(frame.shape) < [*[0.1] * 5, 0])
    frame.to_csv(own_places / "own.csv", index=False)
    frame.dropna().to_csv(own_places / "whole.csv", index=False)
    line = f"run algo={algo} dataset=file dataset.path=own.csv dataset.missing=unavailable dataset.costs=equal k=2"
    line += " repetitions=2 checkpoints=3 tuning.folds=2"
    assert call(f"{line} out=once").err.count("missing completely at random") == 1
    call(f"{line} n_jobs=2 out=twice repetitions=1")
    call(f"{line} n_jobs=2 out=twice")
    assert (own_places / "twice" / "curves.csv").read_bytes() == (own_places / "once" / "curves.csv").read_bytes()
    call("verify once")
    assert len(call("predict once whole.csv").out.split()) == 1 + len(frame.dropna())
