"""Files with the hardest accepted numbers: every learner ends with finite results, no warning."""

import csv
from math import isfinite
from pathlib import Path

import numpy as np
import pytest

import budgetreg
from budgetreg.common.errors import ConfigError, DataError
from budgetreg.config import catalogue
from tests.tiers import slow_but

N = 30
X = np.random.default_rng(0).uniform(-1, 1, (N, 6))
Y = X @ [1.0, -0.5, 0.2, 0, 0.3, 0.1]
ODD = np.arange(N) % 2
# One column is tiny, one half huge and half the smallest number, one constant, and one 0.
HARD = np.column_stack([X[:, 0] * 1e-29, np.where(ODD, 5e-324, X[:, 1] * 1e10), np.full(N, 3.0), np.zeros(N), X[:, 4:]])

FAMILIES = (
    *("aelr", "ddaerr_two_phase", "aesvr", "online_lasso", "ridge"),
    *("aemr", "aefa_streaming", "popca", "impute_ridge"),
)
"""One learner of each way to learn; others differ from one of them in an option, a base class, or a step."""


def write(path: Path, A: np.ndarray, y: np.ndarray) -> None:
    names = ",".join([*(f"x{i}" for i in range(A.shape[1])), "y"])
    np.savetxt(path, np.column_stack([A, y]), delimiter=",", header=names, comments="", fmt="%.17g")


def run(algo: str, folder: Path) -> Path:
    keys = {"algo": algo, "k": 4, "repetitions": 1, "checkpoints": 2, "tuning.folds": 2, "out": str(folder / "run")}
    table = {"dataset": "file", "dataset.path": str(folder / "table.csv"), "dataset.scale": "none"}
    if "n_components" in catalogue.text("algo", algo):
        keys |= {"algo.n_components": 2}
    budgetreg.run(keys | table)
    return folder / "run"


def numbers(path: Path) -> list[float]:
    """Return all numbers of a table, without words and empty fields."""
    with path.open(newline="") as file:
        words = [word for row in csv.reader(file) for word in row]
    return [float(word) for word in words if word.lower().lstrip("-+")[:3] in ("inf", "nan") or word[-1:].isdigit()]


@pytest.mark.usefixtures("short_chains")
@pytest.mark.parametrize("algo", slow_but(FAMILIES, catalogue.options("algo")))
def test_every_learner_ends_on_hard_numbers(tmp_path: Path, algo: str) -> None:
    write(tmp_path / "table.csv", HARD, Y * 1e12)
    if algo == "aesvr":  # its eps is in units of the target
        with pytest.raises(ConfigError, match=r"algo\.eps=2: GenEst cannot work with targets"):
            run(algo, tmp_path)
        return
    folder = run(algo, tmp_path)  # a warning would be an error
    for name in ("curves.csv", "runs.csv"):
        values = numbers(folder / name)
        assert values
        assert all(map(isfinite, values))


@pytest.mark.parametrize(("size", "where"), [(1e-170, "y"), (1e155, "y"), (1e200, "x"), (5e-324, "x")])
def test_sizes_that_would_overflow_are_refused(tmp_path: Path, size: float, where: str) -> None:
    write(tmp_path / "table.csv", X * size if where == "x" else X, Y * size if where == "y" else Y)
    with pytest.raises(DataError, match="write it in another unit"):
        run("aelr", tmp_path)
