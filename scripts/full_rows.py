"""Draw the error of AEMR divided by that of full rows, against the number of rows for the same attributes.

Reads results/aemr/full_rows/curves.csv, which `budgetreg reproduce aemr/full_rows` writes. Prints a table and writes
results/aemr/full_rows_ratio.png, .pdf and .txt:

    .venv/bin/python scripts/full_rows.py
"""

from itertools import product
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from budgetreg.figures.canvas import Axes, End, grid, label_ends, own_settings, set_ticks, sheet, write_figure
from budgetreg.figures.looks import VARIANTS

RESULTS = Path(__file__).resolve().parents[1] / "results" / "aemr"
D = 20
NOISES = dict(zip(("02", "10", "30", "60"), zip(("0.02", "0.1", "0.3", "0.6"), VARIANTS, strict=False), strict=True))
STRUCTURES = {"independent": "independent attributes", "factors": "three common factors"}
RIVALS = ("ridge", "lasso")
CAPTION = """full_rows_ratio: the error of AEMR divided by that of full rows, against the number of rows

x: full rows that have as many attributes as AEMR sees, divided by the number of attributes, d = 20. y: mean test error
of AEMR with k = 4, divided by that of ridge on these rows (upper panels) or of lasso (lower panels), over 10
repetitions; below 1 AEMR is better. Each line has a noise: the share of the target's variance that no attribute
explains.
"""


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
    """Return the figure: a column of panels for each kind of data, a row for each learner on full rows."""
    drawn = sheet(*[len(STRUCTURES)] * len(RIVALS), share_y=True)
    rows = table.columns.to_numpy(dtype=float)
    ends: dict[Axes, list[End]] = {}
    for place, (rival, structure) in zip(drawn.places, product(RIVALS, STRUCTURES), strict=True):
        ax = place.ax
        ax.set(xscale="log", yscale="log", xlim=(0.42, 9.5), ylim=(0.9, 14))
        set_ticks(ax)
        ax.set_xticks(rows, [f"{value:g}" for value in rows])
        ax.set_xticks([], minor=True)
        grid(ax)
        ax.axhline(1, color="#555555", linewidth=0.8, zorder=1)
        for key, (noise, look) in NOISES.items():
            values = pd.Series(table.loc[(f"{structure}_{key}", rival)]).to_numpy(dtype=float)
            ax.plot(rows, values, color=look.colour, marker=look.marker, linewidth=1.5, markersize=5)
            ends.setdefault(ax, []).append(End(f"noise {noise}", rows[-1], values[-1], look.colour))
        ax.set_title(f"{STRUCTURES[structure]}, against {rival}", loc="left", fontsize=10)
        ax.tick_params(labelleft=place.first)
        if place.lowest:
            ax.set_xlabel("full rows for the same number of attributes / d (log scale)")
        if place.first:
            ax.set_ylabel(f"error of aemr / that of {rival}\n(log scale)")
    most = table.to_numpy(dtype=float).max()
    title = f"With low noise, full rows err up to {most:.0f} times less than aemr; with much noise, about as much"
    drawn.finish(title, 0)
    label_ends(drawn.figure, ends)
    return drawn.figure


def main() -> None:
    """Print the table and draw the figure."""
    table = ratios()
    print(table.round(2).to_string())
    with own_settings():
        write_figure(picture(table), CAPTION, RESULTS, "full_rows_ratio")


if __name__ == "__main__":
    main()
