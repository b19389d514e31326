"""Draw the figure of the README: error against pixels seen, MNIST 3-vs-5, four pixels of each image.

Reads results/aemr/mnist/curves.csv and savings.csv, which `budgetreg reproduce aemr/mnist` writes. Prints what each
learner needs for the error that the figure marks, and writes docs/start/mnist_k4.png, .pdf and .txt, its caption.

    .venv/bin/python scripts/readme_figure.py
"""

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator

from budgetreg.analysis.intervals import basic, weights
from budgetreg.figures.canvas import grid, own_settings, write_figure, write_finding
from budgetreg.figures.looks import style

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results" / "aemr" / "mnist"
K, MARKED = 4, 0.5
NAMED = {"aemr": "AEMR (ours), 4 pixels", "ridge": "ridge, full images", "ddaelr": "DDAELR, 4 pixels"}
GREY = ["aelr", "aerr", "ddaerr", "aer", "baseline"]
LEAST, MOST = 0.3, 1.1
CAPTION = """Test error against pixels seen in training: MNIST 3-vs-5, four pixels of each image

x: pixels seen in training, the mean over ten repetitions; log scale. y: mean squared test error divided by that of
the predictor that always answers zero; the thin line at 1 marks it. Lines are means over ten repetitions, bands 90 %
bootstrap intervals of the mean; that of ridge begins above the figure.

AEMR (ours) sees 4 of the 784 pixels of each image and tunes nothing. The published learners see 4 pixels too, and
ridge sees all pixels of fewer images; their parameters are cross-validated on images that are seen in full. DDAELR
(Kukliansky & Shamir 2015), which is given the second moments of all pixels, ends lowest of the published learners.
Grey: the others, AELR, AERR, DDAERR, AER and Baseline.

Drawn by scripts/readme_figure.py from results/aemr/mnist.
"""


def means(curves: pd.DataFrame, algo: str) -> pd.DataFrame:
    """Return a learner's mean curve: attributes, error, and the ends of the error's 90 % interval."""
    rows = []
    for _, points in curves[curves["algo"] == algo].groupby("examples"):
        repetitions = len(points)
        estimate = basic(weights(repetitions) @ points["test_relative"].to_numpy(), repetitions)
        rows.append((points["attributes"].mean(), estimate.value, estimate.low, estimate.high))
    return pd.DataFrame(rows, columns=["attributes", "error", "low", "high"])


def needed(savings: pd.DataFrame) -> pd.Series:
    """Return the attributes that each learner needs to reach the marked error; none for one that does not reach it."""
    here = savings[(savings["panel"] == K) & (savings["error"] == MARKED)].set_index("learner")
    return here["attributes"].where(here["attributes_are"].isna()).astype(float)


def rounded(pixels: float) -> str:
    """Return a number of pixels to three digits, such as 24,700."""
    return f"{float(f'{pixels:.3g}'):,.0f}"


def note(axes: Axes, text: str, place: tuple[float, float], colour: str, **how: Any) -> None:
    """Write a text beside a place: by default to the right of it."""
    axes.annotate(text, place, textcoords="offset points", color=colour, **{"xytext": (9, 0), "va": "center", **how})


def draw(axes: Axes, curves: pd.DataFrame, savings: pd.DataFrame) -> None:
    """Draw the named curves with their bands, the others in grey, and where the marked error is reached."""
    for algo in GREY:
        curve = means(curves, algo)
        axes.plot(curve["attributes"], curve["error"], color="#B0B0B0", linewidth=1)
    for algo, label in NAMED.items():
        curve, look = means(curves, algo), style(algo)
        axes.fill_between(curve["attributes"], curve["low"], curve["high"], color=look.colour, alpha=0.15, linewidth=0)
        line: dict[str, Any] = {"marker": look.marker, "markersize": 5, "linewidth": 2.4 if algo == "aemr" else 1.4}
        axes.plot(curve["attributes"], curve["error"], color=look.colour, **line)
        end = curve.iloc[-1]
        note(axes, f"{label}: {end['error']:.3f}", (end["attributes"], end["error"]), look.colour)
    ends = pd.DataFrame([means(curves, algo).iloc[-1] for algo in GREY]).mean()
    note(axes, "other published\nlearners, 4 pixels", (ends["attributes"], ends["error"]), "#707070")
    reached = needed(savings)
    axes.axhline(MARKED, color="#909090", linewidth=0.8, zorder=0)
    for algo in ("aemr", "ridge"):
        pixels = reached[algo]
        axes.plot([pixels, pixels], [LEAST, MARKED], color=style(algo).colour, linewidth=0.8, zorder=0)
        note(axes, rounded(pixels), (pixels, LEAST), style(algo).colour, xytext=(-3, 4), ha="right", va="baseline")


def picture(curves: pd.DataFrame, savings: pd.DataFrame) -> Figure:
    """Return the figure."""
    figure = Figure((7.4, 3.9), layout="constrained")
    axes = figure.subplots()
    axes.set_xscale("log")
    axes.axhline(1, color="black", linewidth=0.6)
    draw(axes, curves[curves["k"] == K], savings)
    ticks = {150: "150", 500: "500", 1_500: "1.5k", 5_000: "5k", 15_000: "15k", 50_000: "50k"}
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(LEAST, MOST)
    axes.set_xlabel("pixels seen in training (log scale)")
    axes.set_ylabel("test error / error of the zero predictor")
    ours, full = (rounded(needed(savings)[algo]) for algo in ("aemr", "ridge"))
    write_finding(figure, f"MNIST 3-vs-5: an error of {MARKED} takes AEMR {ours} pixels, ridge {full}")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    grid(axes)
    return figure


def main() -> None:
    """Print who reaches the marked error, and draw the figure."""
    curves, savings = (pd.read_csv(RESULTS / name) for name in ("curves.csv", "savings.csv"))
    print(needed(savings).to_string())
    with own_settings():
        write_figure(picture(curves, savings), CAPTION, ROOT / "docs" / "start", "mnist_k4")


if __name__ == "__main__":
    main()
