"""Tables of every format, written and read."""

import bz2
import gzip
import io
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import dump_svmlight_file

from budgetreg.data.dataset import Dataset, as_values
from budgetreg.data.file import parse_file

PACK: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def frame(X: np.ndarray, y: Any) -> pd.DataFrame:
    return pd.DataFrame(X, columns=list("abcdefgh"[: X.shape[1]])).assign(y=y)


def write(folder: Path, ending: str, X: np.ndarray, y: Any, zero_based: bool = False, separator: str = ",") -> Path:
    """Write a table, whose columns are a, b, ... and y; without an ending it is a folder of arrays."""
    path = folder / f"table{ending}"
    if ending == ".npz":
        np.savez(path, X=X, y=y)
    elif ending == "":
        path.mkdir(exist_ok=True)
        np.save(path / "X.npy", X)
        np.save(path / "y.npy", y)
    elif ending == ".parquet":
        frame(X, y).to_parquet(path, index=False, row_group_size=7)
    else:
        text = io.BytesIO()
        if ".csv" in ending:
            frame(X, y).to_csv(text, index=False, sep=separator)
        else:
            dump_svmlight_file(X, y, text, zero_based=zero_based, comment="made by a test")
        path.write_bytes(PACK.get(path.suffix, bytes)(text.getvalue()))
    return path


def read(path: Path | str, **options: Any) -> Dataset:
    """Return a table in its own units."""
    return parse_file({"path": str(path), "target": None, "scale": "none", "missing": "refuse", **options}).load()


def values(data: Dataset) -> np.ndarray:
    """Return all stored values."""
    return as_values(data.X).rows(np.arange(len(data.y)))
