"""Draw how the error of AEMR compares with that of full rows, against the rows that the same attributes buy.

Reads results/aemr/full_rows/curves.csv, which `budgetreg reproduce aemr/full_rows` writes. Prints a table and writes
results/aemr/full_rows_ratio.png, .pdf and .txt, this text:

- x: full rows bought by as many attributes, divided by the number of attributes d = 20
- y: mean test error of AEMR with k = 4, divided by that of ridge on these rows (solid) or of lasso (dashed), over ten
  repetitions; below 1 AEMR is better
- lines: noise, the share of the target's variance that no attribute explains

    .venv/bin/python scripts/full_rows.py
"""

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, NullFormatter

from budgetreg.figures.canvas import own_settings, write_figure

RESULTS = Path(__file__).resolve().parents[1] / "results" / "aemr"
D = 20
NOISES = {
    "02": ("0.02", "tab:blue", "o"),
    "10": ("0.1", "tab:orange", "s"),
    "30": ("0.3", "tab:green", "^"),
    "60": ("0.6", "tab:red", "D"),
}
STRUCTURES = {"independent": "independent attributes", "factors": "three common factors"}
RIVALS = {"ridge": "-", "lasso": "--"}


def ratios() -> pd.DataFrame:
    """Return the ratios, with a row for each preset and learner on full rows, and a column for each checkpoint."""
    curves = pd.read_csv(RESULTS / "full_rows" / "curves.csv")
    curves["preset"] = curves["cell"].str.extract(r"protocol=(\w+)")
    # Within a curve, the n-th checkpoint of each learner has as many attributes; rows are their number over d.
    curves["rows"] = (curves["attributes"] / D**2).round(2)
    means = curves.groupby(["preset", "algo", "rows"])["test_relative"].mean().unstack("algo")
    quotients = pd.DataFrame({rival: means["aemr"] / means[rival] for rival in RIVALS})
    return pd.DataFrame(quotients.rename_axis(columns="rival").stack().unstack("rows"))


def picture(table: pd.DataFrame) -> Figure:
    """Return the figure."""
    figure = Figure((8.4, 4.0), layout="constrained")
    for axes, (structure, title) in zip(figure.subplots(1, 2, sharey=True), STRUCTURES.items(), strict=True):
        for key, (noise, colour, marker) in NOISES.items():
            for rival, dashes in RIVALS.items():
                values = pd.Series(table.loc[(f"{structure}_{key}", rival)])
                label = f"noise {noise}" if rival == "ridge" else None
                axes.loglog(values.index, values, dashes, color=colour, marker=marker, markersize=4, label=label)
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set_xticks(table.columns, [f"{rows:g}" for rows in table.columns])
        axes.set_yticks([1, 1.5, 2, 3, 5, 7, 10])
        axes.yaxis.set_major_formatter(FormatStrFormatter("%g"))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("full rows for the same number of attributes, divided by d")
        axes.set_title(title, fontsize=10)
        axes.grid(alpha=0.3)
    first = figure.axes[0]
    first.set_ylabel("error of aemr / error on full rows")
    first.plot([], [], "-", color="grey", label="against ridge")
    first.plot([], [], "--", color="grey", label="against lasso")
    first.legend(fontsize=8, loc="center right", bbox_to_anchor=(1, 0.62))
    return figure


def main() -> None:
    """Print the table and draw the figure."""
    table = ratios()
    print(table.round(2).to_string())
    with own_settings():
        write_figure(picture(table), __doc__ or "", RESULTS, "full_rows_ratio")


if __name__ == "__main__":
    main()
