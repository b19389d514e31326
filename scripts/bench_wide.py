"""Measure how the time to open a table grows with its number of columns, for each format and for a price list.

The tables have 100 rows, which are several reads of the widest.  Prints a table and writes
results/bench/wide.csv:

- us_per_column: CPU microseconds, the least of several rounds
- ratio: to the table of the fewest columns

    .venv/bin/python scripts/bench_wide.py
"""

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import bench_common  # before numpy is loaded
import numpy as np
import pandas as pd
from sklearn.datasets import dump_svmlight_file

from budgetreg.data.attributes import read_prices
from budgetreg.data.file import parse_file

ROWS = 100


def written(folder: Path, d: int) -> Mapping[str, Callable[[], object]]:
    """Write a table of d attributes in all formats, and a price list; return what opens each."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(ROWS, d)).round(3), rng.normal(size=ROWS)
    names = [f"gene{number}" for number in range(d)]
    frame = pd.DataFrame(np.column_stack([X, y]), columns=[*names, "y"])
    frame.to_csv(folder / "table.csv", index=False)
    frame.to_parquet(folder / "table.parquet")
    np.savez(folder / "table.npz", X=X, y=y)
    dump_svmlight_file(X, y, str(folder / "table.svm"), zero_based=False)
    pd.DataFrame({"attribute": names, "cost": 1.0}).to_csv(folder / "costs.csv", index=False)

    def opened(ending: str) -> Callable[[], object]:
        return lambda: parse_file({"path": str(folder / f"table.{ending}"), "scale": "none"}).load()

    tables = {ending: opened(ending) for ending in ("csv", "parquet", "npz", "svm")}
    return {**tables, "price list": lambda: read_prices(folder / "costs.csv", names, d)}


def main() -> None:
    """Measure every format at every number of columns, in turns."""
    arguments = bench_common.options(__doc__, rounds=3, d=[1000, 10_000, 60_000])
    times: dict[tuple[str, int], list[float]] = {}
    for d in arguments.d:
        with tempfile.TemporaryDirectory() as folder:
            cases = written(Path(folder), d)
            for name, opened in list(cases.items()) * arguments.rounds:
                times.setdefault((name, d), []).append(bench_common.cpu_seconds(opened))
    rows = [
        {"opened": name, "columns": d, "us_per_column": round(1e6 * min(values) / d, 2)}
        for (name, d), values in times.items()
    ]
    frame = pd.DataFrame(rows).sort_values(["opened", "columns"], ignore_index=True)
    frame["ratio"] = (frame["us_per_column"] / frame.groupby("opened")["us_per_column"].transform("first")).round(2)
    bench_common.save(frame, "wide.csv")


if __name__ == "__main__":
    main()
