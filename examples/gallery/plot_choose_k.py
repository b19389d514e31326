"""
How many attributes of each example?
====================================

With 1,500 attributes, should you see a few attributes of many patients or all ten of 150 patients? This compares
budgets *k* at the same total. ``budgetreg advise dataset=diabetes total=1500`` answers the same question in one command
and compares more learners.
"""

from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt

import budgetreg
from budgetreg.analysis.intervals import mean_error

# %%
# A run ends at the total, or earlier if it has seen k attributes of every training example: with k = 2, 398 patients
# cost only 796 attributes, beside the full rows of the pilot.

BUDGETS = (2, 4, 8, 10)
estimates, examples = [], []
with TemporaryDirectory() as folder:
    for k in BUDGETS:
        choices = {"algo": "aemr", "dataset": "diabetes", "k": k, "total": 1500, "checkpoints": 1, "repetitions": 5}
        curves = budgetreg.run({**choices, "out": f"{folder}/k{k}"}).curves
        estimates.append(mean_error(curves["test_relative"].to_numpy()))
        examples.append(int(curves["examples"].mean()))
        error, bill = estimates[-1], curves["attributes"].mean()
        print(f"k = {k:2}: {examples[-1]} patients, {bill:,.0f} attributes, ", end="")
        print(f"error {error.value:.3f} ({error.low:.3f} to {error.high:.3f})")

# %%
# The bars are 90 % intervals over random splits.

figure, axes = plt.subplots()
axes.vlines(BUDGETS, [error.low for error in estimates], [error.high for error in estimates], color="black")
axes.plot(BUDGETS, [error.value for error in estimates], "o-", color="black")
for k, error, patients in zip(BUDGETS, estimates, examples, strict=True):
    axes.annotate(f"{patients} patients", (k, error.value), xytext=(6, 6), textcoords="offset points")
axes.set(xlabel="attributes of each patient", ylabel="test error / error of the mean", xlim=(1.5, 12))
axes.set_title("Diabetes, 1,500 attributes: aemr errs about as much with each k")
plt.show()
