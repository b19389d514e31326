"""The laboratory of a simulated clinic: it measures what an order of ``budgetreg study ask`` asks for.

``python laboratory.py`` writes the files with which docs/howto/buying.md begins into the current folder:

- ``patients.csv``: 300 tumours, each malignant or benign
- ``prices.csv``: the price in EUR of each of thirty measurements
- ``new.csv``: three other tumours; three measurements of the first are known, none of the second, all of the third
- ``complete.csv``: the same tumours with all measurements

``python laboratory.py order-1.csv`` writes results into the column ``value`` of an order. About a third come late:
their cells stay empty, and the results are in ``order-1-late.csv``. A few measurements fail, and are ``unavailable``.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from buy_measurements import PATIENTS, measured, prices, tumours


def write_tables(folder: Path) -> None:
    """Write the patients, the price list and the new patients."""
    measurements, outcomes = tumours()
    ours, others = measurements.index[:PATIENTS], measurements.index[PATIENTS:]
    pd.DataFrame({"patient": ours, "outcome": outcomes[ours].to_numpy()}).to_csv(folder / "patients.csv", index=False)
    pd.DataFrame(prices().items(), columns=["attribute", "cost"]).to_csv(folder / "prices.csv", index=False)
    complete = measurements.loc[others[:3]].rename_axis("patient")
    complete.to_csv(folder / "complete.csv")
    new = complete.copy()
    new.iloc[0, 3:], new.iloc[1, :] = np.nan, np.nan
    new.to_csv(folder / "new.csv")


def fill(order: Path) -> None:
    """Write what is ready into an order, and the rest into a second file."""
    ready, late = measured(pd.read_csv(order), tumours()[0])
    pd.concat([ready, late.assign(value="")]).to_csv(order, index=False)
    late.to_csv(order.with_name(f"{order.stem}-late.csv"), index=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("order", type=Path, nargs="?", help="an order to write results into")
    order = parser.parse_args().order
    if order is None:
        write_tables(Path())
    else:
        fill(order)
