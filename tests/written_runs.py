"""Folders as runs leave them, written by hand."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from budgetreg.common.files import signed
from budgetreg.runs.manifest import write_manifest
from budgetreg.runs.tables import CURVES, columns

EXAMPLES = (10, 40, 160)


def config(algo: str = "aelr", dataset: str = "mnist_3v5", k: int = 4, **changes: Any) -> dict[str, Any]:
    """Build a resolved configuration; a change is written ``algo__split="even"``."""
    resolved: dict[str, Any] = {
        "experiment": "",
        "algo": {
            "name": algo,
            "core": "partial",
            "update": "eg",
            "split": "literal",
            "average": "all",
            "grid": {"B": [1.0, 2.0]},
        },
        "dataset": {
            "name": dataset,
            "root": "/somewhere/data",
            "center": "none",
            "split": "random",
            "test_fraction": 0.1,
        },
        "tuning": {"name": "cv", "at": "end", "folds": 10},
        "backend": {"name": "loky", "batch_size": 64},
        "k": k,
        "repetitions": 2,
        "seed": 0,
        "checkpoints": 3,
        "n_jobs": 1,
        "out": "/somewhere/out",
    }
    for key, value in changes.items():
        *groups, last = key.split("__")
        level = resolved
        for group in groups:
            level = level[group]
        level[last] = value
    return resolved


def write_run(
    folder: Path,
    algo: str = "aelr",
    dataset: str = "mnist_3v5",
    k: int = 4,
    repetitions: int = 2,
    shift: float = 0.0,
    examples: Sequence[int] = EXAMPLES,
    d: int = 784,
    **changes: Any,
) -> Path:
    """Write what a run leaves; repetition r is charged r attributes less than k per example would be."""
    rows = [
        {
            "experiment": "",
            "algo": algo,
            "dataset": dataset,
            "k": k,
            "repetition": repetition,
            "examples": seen,
            "attributes": k * seen - repetition,
            "test_mse": 0.9 + shift + repetition / 10 - at / 10,
            "test_relative": 0.9 + shift + repetition / 10 - at / 10,
            "test_error_rate": 0.1,
        }
        for repetition in range(repetitions)
        for at, seen in enumerate(examples)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows, columns=list(columns(of_subspaces=False)[CURVES])).to_csv(folder / "curves.csv", index=False)
    runs = pd.DataFrame({"repetition": range(repetitions), "p_B": 2.0, "edge": ["B:high"] + [""] * (repetitions - 1)})
    runs.to_csv(folder / "runs.csv", index=False)
    resolved = config(algo, dataset, k, repetitions=repetitions, **changes)
    write_run_manifest(folder, resolved, d)
    return folder


def write_run_manifest(folder: Path, config: dict[str, Any], d: int, n_train: int = 1000) -> None:
    """Write a manifest of a run without versions and machine, and without digests of its tables."""
    manifest = {
        **{key: "" for key in ("algo", "dataset", "identity_digest")},
        **{key: 0 for key in ("k", "repetitions", "repetitions_done")},
        **{"versions": {}, "git": {}, "processor": None, "earlier": []},
        "identity": {"algo": {"version": 1}},
        "config": config,
        "data": {"d": d, "n_train": n_train},
        "columns": {},
    }
    write_manifest(folder, manifest, {})


def edit_manifest(folder: Path, **changes: Any) -> None:
    """Change keys of a manifest, and sign it again."""
    path = folder / "manifest.json"
    path.write_text(json.dumps(signed({**json.loads(path.read_text()), **changes})))


def edit_table(path: Path, **columns: Any) -> None:
    """Change columns of a table, or add them; a function gets the table."""
    pd.read_csv(path).assign(**columns).to_csv(path, index=False)
