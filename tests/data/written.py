"""Tables of every format, written and read."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import dump_svmlight_file

from budgetreg.data.dataset import Dataset, as_values
from budgetreg.data.file import parse_file


def write(folder: Path, ending: str, X: np.ndarray, y: Any, zero_based: bool = False) -> Path:
    """Write a table, whose columns are a, b, ... and y; without an ending it is a folder of arrays."""
    path = folder / f"table{ending}"
    if ending == ".npz":
        np.savez(path, X=X, y=y)
    elif ending == "":
        path.mkdir(exist_ok=True)
        np.save(path / "X.npy", X)
        np.save(path / "y.npy", y)
    elif ending == ".libsvm":
        dump_svmlight_file(X, y, str(path), zero_based=zero_based)
    else:
        table = pd.DataFrame(X, columns=list("abcdefgh"[: X.shape[1]])).assign(y=y)
        table.to_csv(path, index=False) if ending == ".csv" else table.to_parquet(path, index=False, row_group_size=7)
    return path


def read(path: Path, **options: Any) -> Dataset:
    """Return a table in its own units."""
    return parse_file({"path": str(path), "target": None, "scale": "none", "missing": "refuse", **options}).load()


def values(data: Dataset) -> np.ndarray:
    """Return all stored values."""
    return as_values(data.X).rows(np.arange(len(data.y)))
