"""Compare the error with k=auto with that of the best fixed k in hindsight, at three totals.

Reads results/aemr/designs/curves.csv, which `budgetreg reproduce aemr/designs` writes. Prints a table and writes it to
results/aemr/designs.csv:

- attributes: how many were bought in all
- error: mean test error with k=auto, relative to that of predicting the mean
- best_k, best_error: the fixed k with the least mean error, all attributes among them
- ratio: of the two errors; the row `all` has its geometric mean in the column ratio, and the row `worst` the largest

Between its checkpoints the error of a curve is interpolated in the logarithm of the attributes. A curve that has seen k
attributes of every example keeps its last error.

    .venv/bin/python scripts/designs.py
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from budgetreg.runs.series import Series, read_series

RESULTS = Path(__file__).resolve().parents[1] / "results" / "aemr"
TOTALS = (300, 800, 1500)


def comparison(curves: Mapping[str, Mapping[int | str, pd.DataFrame]]) -> pd.DataFrame:
    """Return a row for each data set and total, and two for all.

    Parameters
    ----------
    curves : mapping
        By data set and budget, mean curves with the columns ``attributes`` and ``test_relative``.
    """
    rows = []
    for name, by_budget in sorted(curves.items()):
        for total in TOTALS:
            errors = {
                k: float(np.interp(np.log(total), np.log(curve["attributes"]), curve["test_relative"]))
                for k, curve in by_budget.items()
            }
            error = errors.pop("auto")
            best = min(errors, key=lambda k: errors[k])
            rows.append([name, total, error, best, errors[best], error / errors[best]])
    table = pd.DataFrame(rows, columns=["dataset", "attributes", "error", "best_k", "best_error", "ratio"])
    ratios = table["ratio"]
    ends = pd.DataFrame({"dataset": ["all", "worst"], "ratio": [np.exp(np.log(ratios).mean()), ratios.max()]})
    return pd.concat([table, ends], ignore_index=True)


def means(series: list[Series]) -> dict[str, dict[int | str, pd.DataFrame]]:
    """Return the mean curves of some series, by data set and budget."""
    curves: dict[str, dict[int | str, pd.DataFrame]] = {}
    for each in series:
        curves.setdefault(each.dataset, {})[each.k] = each.mean
    return curves


if __name__ == "__main__":
    table = comparison(means(read_series([RESULTS / "designs"]))).round(4)
    table.to_csv(RESULTS / "designs.csv", index=False)
    print(table.to_string(index=False, na_rep=""))
