"""Write the tables that the pages of the documentation use: ``python examples/write_tables.py [FOLDER]``.

They are scikit-learn's diabetes (442 patients, ten measurements) and breast cancer tables (569 tumours, thirty
measurements), with what a page needs beside them. Prices and ranges are made up.

- ``diabetes.csv``: the measurements, and the progress of the disease in the last column
- ``new.csv``: the measurements of three patients, without the target
- ``gaps.csv``: ``diabetes.csv`` with a twentieth of its measurements emptied at random
- ``ranges.csv``: between which values each measurement of ``diabetes.csv`` lies
- ``prices.csv``, ``panel.csv``: what each measurement costs, one by one, and with a blood panel at one price
- ``tumours.csv``, ``new_tumours.csv``: tumours with the label malignant or benign, and three without
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes

PRICES = {"age": 1, "sex": 1, "bmi": 2, "bp": 3, "s1": 8, "s2": 12, "s3": 10, "s4": 18, "s5": 15, "s6": 5}
SERUM, PANEL = ("s1", "s2", "s3", "s4", "s5", "s6"), 30
RANGES = {
    **{"age": (18, 80), "sex": (1, 2), "bmi": (15, 45), "bp": (60, 140), "s1": (90, 310)},
    **{"s2": (40, 250), "s3": (20, 100), "s4": (2, 10), "s5": (3, 6.5), "s6": (55, 125)},
}
NEW = 3


def diabetes() -> pd.DataFrame:
    """Return the measurements in their own units, and the target as the last column."""
    return load_diabetes(as_frame=True, scaled=False).frame.rename(columns={"target": "progress"})


def tumours() -> pd.DataFrame:
    """Return the measurements, and the label as the last column."""
    frame = load_breast_cancer(as_frame=True).frame
    return frame.drop(columns="target").assign(diagnosis=frame["target"].map({0: "malignant", 1: "benign"}))


def with_gaps(table: pd.DataFrame, share: float) -> pd.DataFrame:
    """Return a table in which a share of all cells is missing, the last column excepted."""
    keep = np.random.default_rng(0).random(table.shape) >= share
    keep[:, -1] = True
    return table.where(keep)


def main(folder: Path) -> None:
    """Write all tables into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    patients, tumour_table = diabetes(), tumours()
    singles = [(name, price, None) for name, price in PRICES.items() if name not in SERUM]
    serum = [(name, None if position else PANEL, "serum") for position, name in enumerate(SERUM)]
    tables = {
        "diabetes": patients,
        "new": patients.iloc[:NEW, :-1],
        "gaps": with_gaps(patients, 0.05),
        "ranges": pd.DataFrame([(name, *ends) for name, ends in RANGES.items()], columns=["attribute", "low", "high"]),
        "prices": pd.DataFrame(PRICES.items(), columns=["attribute", "cost"]),
        "panel": pd.DataFrame([*singles, *serum], columns=["attribute", "cost", "group"]).convert_dtypes(),
        "tumours": tumour_table,
        "new_tumours": tumour_table.iloc[[0, 19, 145], :-1],
    }
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default="tables", help="where they are written (%(default)s)")
    main(parser.parse_args().folder)
