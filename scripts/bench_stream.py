"""Run on tables larger than memory, and measure how much memory that takes.

Each case is one `budgetreg run` in a process of its own, with an empty cache: values that are computed when they are
looked at, a sparse LIBSVM file that is converted into mapped arrays, and a dense array that is mapped where it lies.
Prints a table and writes results/bench/streaming.csv:

- gigabytes: what n x d floats of 8 bytes would take; disk_mb: what the table takes on the disk, with what is kept of it
  in the cache
- peak_rss_mb: most memory of the process, pages of mapped files included, which the system takes back at need
- peak_private_mb: most memory of its own, looked up ten times a second (where there is /proc)
- test_relative: error of the last regressor, divided by the zero predictor's

    .venv/bin/python scripts/bench_stream.py
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import bench_common
import numpy as np
import pandas as pd

COMMON = "k=8 repetitions=1 checkpoints=4 backend=sequential tuning=theory"
_ROWS = 2000  # written at a time


def power_law(folder: Path, n: int, d: int) -> list[str]:
    """Return the overrides of a run on values that are computed when they are read."""
    return ["algo=aerr", "dataset=power_law_stream", f"dataset.n={n}", f"dataset.d={d}", "tuning.B=3"]


def libsvm(folder: Path, n: int, d: int) -> list[str]:
    """Write a sparse table of about 50 entries a row, common attributes first; targets are linear in the first 100."""
    rng, path = np.random.default_rng(0), folder / "sparse.libsvm"
    w = np.where(np.arange(d) < 100, rng.choice([-1.0, 1.0], d), 0.0)
    with path.open("w") as file:
        for _ in range(n // _ROWS):
            columns = np.floor(d * rng.random((_ROWS, 60)) ** 3).astype(int)
            for row in map(np.unique, columns):
                entries = " ".join([f"{column + 1}:1" for column in row])
                file.write(f"{w[row].sum():g} {entries}\n")
    return ["algo=aerr", "dataset=file", f"dataset.path={path}", "dataset.test_fraction=0.01", "tuning.B=10"]


def mapped(folder: Path, n: int, d: int) -> list[str]:
    """Write a dense table of bytes, whose targets are linear in a few of them."""
    rng, path = np.random.default_rng(0), folder / "dense"
    path.mkdir()
    y = []
    with (path / "X.npy").open("wb") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": (n // _ROWS * _ROWS, d)}
        np.lib.format.write_array_header_1_0(file, header)
        for _ in range(n // _ROWS):
            X = rng.integers(0, 256, (_ROWS, d), dtype=np.uint8)
            file.write(X.data)
            y.append(X[:, :20].mean(axis=1) / 255)
    np.save(path / "y.npy", np.concatenate(y))
    return ["algo=aelr", "dataset=file", f"dataset.path={path}", "dataset.test_fraction=0.01", "tuning.B=1"]


CASES: dict[str, tuple[Callable[[Path, int, int], list[str]], int, int]] = {  # name: writer, n, d
    "power_law_stream": (power_law, 250_000, 10_000),
    "sparse LIBSVM": (libsvm, 400_000, 20_000),
    "dense bytes, mapped": (mapped, 100_000, 10_000),
}


def measured(overrides: list[str], folder: Path) -> tuple[float, float]:
    """Run budgetreg; return the peaks of its resident and of its private memory, in MB."""
    command = [sys.executable, "-m", "budgetreg", "run", *COMMON.split(), *overrides, f"out={folder / 'out'}"]
    environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache")}
    child = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    private = 0
    while os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        status = Path(f"/proc/{child.pid}/status")
        lines = status.read_text().splitlines() if status.exists() else []
        private = max([private] + [int(line.split()[1]) for line in lines if line.startswith("RssAnon")])
        time.sleep(0.1)
    _, code, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(code)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    return usage.ru_maxrss / 1000, private / 1000


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of examples, to try it quickly")
    arguments = parser.parse_args()
    rows = []
    for name, (prepare, whole, d) in CASES.items():
        n = int(whole * arguments.scale)
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            overrides = prepare(folder, n, d)
            rss, private = measured(overrides, folder)
            out = folder / "out"
            with (out / "curves.csv").open() as file:
                *_, last = csv.DictReader(file)
            disk = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and out not in path.parents)
            rows.append(
                {
                    "data": name,
                    "n": n,
                    "d": d,
                    "gigabytes": round(n * d * 8e-9, 1),
                    "disk_mb": round(disk / 1e6),
                    "peak_rss_mb": round(rss),
                    "peak_private_mb": round(private),
                    "attributes": int(last["attributes"]),
                    "test_relative": round(float(last["test_relative"]), 3),
                }
            )
            print(rows[-1], file=sys.stderr)
    bench_common.save(pd.DataFrame(rows), "streaming.csv" if arguments.scale == 1 else "")


if __name__ == "__main__":
    main()
