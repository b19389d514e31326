"""
Buy measurements, order by order
================================

You have patients and their outcomes, but no measurements. A study recommends which measurements to buy next, and
estimates the error without a complete row. Here a table plays the laboratory, so the estimate can be compared with the
error on other patients.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import budgetreg

# %%
# Each of the ten measurements costs 1; the first 250 patients are in the study.

table = load_diabetes(as_frame=True, scaled=False).frame.sample(frac=1, random_state=0).reset_index(drop=True)
patients, others = table.iloc[:250], table.iloc[250:]
prices = dict.fromkeys(table.columns.drop("target"), 1.0)

# %%
# ``ask`` returns the next order, and ``tell`` records its results. ``error`` has an interval; ``complete`` is the error
# for a new patient of whom everything is measured.

paid, estimates, measured = [], [], []
with TemporaryDirectory() as folder:
    names = [f"patient {number}" for number in patients.index]
    targets = list(patients["target"])
    with budgetreg.Study.create(Path(folder) / "trial.db", examples=names, targets=targets, costs=prices) as study:
        for _ in range(4):
            order = study.ask(spend=150)
            rows = order["example"].str.removeprefix("patient ").astype(int)
            order["value"] = [table.at[row, name] for row, name in zip(rows, order["attribute"], strict=True)]
            study.tell(order)
            predicted = study.predict(others.drop(columns="target"))["prediction"]
            paid.append(study.bill().total)
            estimates.append(study.error().complete)
            measured.append(np.square(predicted.to_numpy() - others["target"]).mean() / others["target"].var(ddof=0))
for total, error, truth in zip(paid, estimates, measured, strict=True):
    print(f"paid {total:.0f}: estimated error {error.estimate:.3f} ({error.low:.3f} to {error.high:.3f}), ", end="")
    print(f"on other patients {truth:.3f}")

# %%
# The bars are 90 % intervals of the estimate.

held = sum(error.low <= truth <= error.high for error, truth in zip(estimates, measured, strict=True))
figure, axes = plt.subplots()
axes.vlines(paid, [error.low for error in estimates], [error.high for error in estimates], color="black")
axes.plot(paid, [error.estimate for error in estimates], "o-", color="black", label="estimated without complete rows")
axes.plot(paid, measured, "s-", color="tab:blue", label="on 192 other patients")
axes.set(xlabel="paid", ylabel="error / error of the mean", ylim=(0, 1.2))
axes.set_title(f"Diabetes: the error on other patients lies in {held} of {len(estimates)} intervals")
axes.legend(loc="lower left")
plt.show()
