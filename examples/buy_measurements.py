"""A simulated clinic buys measurements of tumours: four orders, 1,000 EUR, and no complete row.

The clinic knows which of 300 tumours were malignant. It wants to predict that from thirty measurements, each of which
costs money, and measures at most ten of each tumour. The laboratory is slow: part of each order comes late. Some
measurements fail for good. In the third order, the clinic's computer stops between the order and the results.

The study is one file, `clinic.db`. `ask` recommends what to measure next and records the order, `tell` records results.
At the end, the estimated error is compared with the error on 269 other tumours, whose measurements are all known here,
because the clinic is simulated.

Run it with ``python examples/buy_measurements.py FOLDER``; the folder is `clinic` if none is given.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

import budgetreg

BUDGET, ORDERS, PER_PATIENT, PATIENTS = 1_000, 4, 10, 300
PRICES = {"mean": 2, "worst": 3, "error": 4}
"""EUR for a measurement, by the word in its name."""

LATE, FAILED = 0.3, 0.03
"""Share of an order's results that come late, and share of measurements that fail."""


def tumours() -> tuple[pd.DataFrame, pd.Series]:
    """Return all measurements and outcomes; only the simulated laboratory looks at the measurements."""
    frame = load_breast_cancer(as_frame=True)
    order = np.random.default_rng(0).permutation(len(frame.data))
    names = [f"patient {number}" for number in range(1, len(order) + 1)]
    measurements = frame.data.iloc[order].set_axis(names)
    return measurements, frame.target.iloc[order].map({0: "malignant", 1: "benign"}).set_axis(names)


def prices() -> dict[str, float]:
    """Return the price of each measurement in EUR."""
    names = load_breast_cancer().feature_names
    return {str(name): next(price for word, price in PRICES.items() if word in name) for name in names}


def measured(order: pd.DataFrame, measurements: pd.DataFrame) -> list[pd.DataFrame]:
    """Return the results of an order as the laboratory delivers them: what is ready, then the rest."""
    rng = np.random.default_rng(int(order["order"].iloc[0]))
    results = order.assign(value=[str(measurements.at[row.example, row.attribute]) for row in order.itertuples()])
    results.loc[rng.random(len(results)) < FAILED, "value"] = "unavailable"
    late = rng.random(len(results)) < LATE
    return [results[~late], results[late]]


def main(folder: Path) -> None:
    """Buy measurements, and report what came of it."""
    measurements, outcomes = tumours()
    ours, others = measurements.index[:PATIENTS], measurements.index[PATIENTS:]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "clinic.db"
    patients = pd.DataFrame({"patient": ours, "outcome": outcomes[ours].to_numpy()})
    study = budgetreg.Study.create(path, examples=patients, targets="outcome", id="patient", costs=prices(), unit="EUR")
    for number in range(1, ORDERS + 1):
        order = study.ask(spend=BUDGET / ORDERS, per_example=PER_PATIENT, order=number)
        if number == 3:  # the computer stops; the file has the order, and asking again returns it
            study.close()
            study = budgetreg.Study(path)
            order = study.ask(spend=BUDGET / ORDERS, per_example=PER_PATIENT, order=number)
        for results in measured(order, measurements):
            study.tell(results)
        error = study.error().complete
        print(
            f"order {number}: {len(order)} measurements, {study.bill().total:,.0f} EUR paid in all, "
            f"estimated error {error.estimate:.3f} ({error.low:.3f} to {error.high:.3f})"
        )
    predicted = study.predict(measurements.loc[others])
    y = np.where(outcomes[others] == "malignant", 1, -1)
    relative = np.square(predicted["prediction"] - y).mean() / np.var(y)
    right = (predicted["label"] == outcomes[others].to_numpy()).mean()
    print(f"error on {len(others)} other tumours: {relative:.3f}; {right:.0%} of their labels are right")
    study.export(folder / "table.csv")
    study.export(folder / "model.npz")
    for drawn in budgetreg.draw_study(study):
        print(drawn)
    study.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "folder", type=Path, nargs="?", default="clinic", help="where its files are written (%(default)s)"
    )
    main(parser.parse_args().folder)
