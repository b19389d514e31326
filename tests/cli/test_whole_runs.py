"""Whole runs of the command: the same bytes with any workers, batches, backend and launcher."""

import json
from pathlib import Path

import pytest

from tests.commands import process

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
