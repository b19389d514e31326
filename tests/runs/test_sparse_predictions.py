"""LIBSVM files for predictions: columns are matched by index, however wide a file happens to be."""

import gzip
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import budgetreg
from budgetreg.common.errors import DataError
from budgetreg.common.files import write_atomically
from budgetreg.config.nested import flatten
from budgetreg.data import tables
from budgetreg.data.registry import load, prices_of
from budgetreg.runs.models import model_npz, predict, read_models
from tests.plans import configured
from tests.tiers import slow_but

RNG = np.random.default_rng(0)
D = 6
X = RNG.normal(size=(40, D)) * (RNG.random((40, D)) < 0.7)
Y = X @ np.arange(1.0, D + 1) + 0.01 * RNG.normal(size=40)
Z = RNG.normal(size=(8, D))


def sparse(path: Path, rows: np.ndarray, first: int, y: np.ndarray | None = None) -> Path:
    """Write rows without their zeros."""
    targets = np.zeros(len(rows)) if y is None else y
    lines = [
        " ".join([repr(float(t)), *(f"{at + first}:{float(row[at])!r}" for at in np.flatnonzero(row))])
        for row, t in zip(rows, targets, strict=True)
    ]
    content = "\n".join([*lines, ""]).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def learned(folder: Path, first: int, drop: list[int], **more: Any) -> Path:
    table = sparse(folder / "train.svm", X, first, Y)
    choices = {
        "dataset": "file",
        "dataset.path": str(table),
        "dataset.drop": drop,
        "algo": "naive",
        "k": 2,
        "total": 60,
    }
    budgetreg.fit({**choices, "tuning": "fixed", "tuning.B": 9.0, "out": str(folder / "run"), **more})
    return folder / "run"


def dense(run: Path, rows: np.ndarray, first: int, drop: list[int]) -> np.ndarray:
    (model,) = read_models(run).values()
    kept = np.delete(rows, [index - first for index in drop], axis=1)
    return np.asarray(model["b"] + (kept - model["c"]) @ model["w"])


@pytest.mark.parametrize(
    ("first", "drop"), slow_but([(0, [0]), (1, []), (1, [2, 5])], product([0, 1], [[], [0], [1], [2, 5]]))
)
def test_columns_that_are_zero_everywhere_may_be_missing(tmp_path: Path, first: int, drop: list[int]) -> None:
    drop = [at + first for at in drop]
    run = learned(tmp_path, first, drop)
    for zero in ([], [0], [D - 1], [0, 1], [2, 3, 4, 5], range(1, D), range(D)):
        rows = np.where(np.isin(np.arange(D), zero), 0, Z)
        expected = dense(run, rows, first, drop)
        for place, table in ((run, "new.svm"), (run, "new.libsvm.gz"), (run / "model.npz", "new.svm")):
            values = predict(place, sparse(tmp_path / table, rows, first)).columns["prediction"]
            np.testing.assert_allclose(values, expected, atol=1e-12)


def test_a_table_larger_than_memory_is_read_with_the_same_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, rows = learned(tmp_path, 0, [1]), np.where(np.arange(D) % 5, Z, 0)
    monkeypatch.setattr(tables, "IN_MEMORY", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    np.testing.assert_allclose(
        predict(run, sparse(tmp_path / "new.svm", rows, 0)).columns["prediction"], dense(run, rows, 0, [1]), atol=1e-12
    )


@pytest.mark.parametrize("first", [0, 1])
def test_other_indices_are_refused(tmp_path: Path, first: int) -> None:
    run = learned(tmp_path, first, [])
    other = sparse(tmp_path / "other.svm", Z, 1 - first)
    wrong = 0 if first else D
    with pytest.raises(DataError, match=f"other.svm: line 1: index {wrong} is not among {first} to {D - 1 + first}"):
        predict(run, other)
    with pytest.raises(DataError, match="line 8: index 9 is not among"):
        (tmp_path / "more.svm").write_text("1 1:1\n" * 7 + "1 2:1 9:0\n")
        predict(run, tmp_path / "more.svm")


@pytest.mark.parametrize("first", [0, 1])
def test_a_model_without_indices_takes_those_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], first: int
) -> None:
    """Earlier versions kept no indices, and other formats have none."""
    run = learned(tmp_path, first, [])
    (model,) = read_models(run).values()
    write_atomically(tmp_path / "old.npz", model_npz({0: model}, (), "target"))
    rows = np.where(np.arange(D) < 4, Z, 0)
    values = predict(tmp_path / "old.npz", sparse(tmp_path / "new.svm", rows, first)).columns["prediction"]
    np.testing.assert_allclose(values, dense(run, rows, first, []), atol=1e-12)
    assert f"are taken to begin at {first}" in capsys.readouterr().err


@pytest.mark.parametrize("first", [0, 1])
def test_lists_name_attributes_by_index(tmp_path: Path, first: int) -> None:
    table, costs = sparse(tmp_path / "train.svm", X, first, Y), tmp_path / "costs.csv"
    costs.write_text("attribute,cost\n" + "".join(f"{at + first},{at + 1}\n" for at in range(D)))
    words = {"dataset": "file", "dataset.path": table, "dataset.drop": f"[{first}]", "dataset.costs": costs}
    config = configured(*(f"{key}={value}" for key, value in flatten(words).items()))
    data = load(config.dataset, 0, 0)
    prices = prices_of(config.dataset, data)
    assert prices is not None
    assert prices.names == tuple(str(at + first) for at in range(1, D))
    assert prices.costs == (2, 3, 4, 5, 6)
    assert data.label(0) == f"index {1 + first}"
    costs.write_text(costs.read_text() + f"{D + first},1\n")
    with pytest.raises(DataError, match=f"the data have no attribute '{D + first}'"):
        prices_of(config.dataset, data)
