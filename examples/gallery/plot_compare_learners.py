"""
Compare learners on the same splits
===================================

Which of four learners has the smallest test error with 600 attributes of breast cancer data? Three of them see 8 of 30
attributes of each tumour; ridge sees all attributes of fewer tumours. All learners have the same random splits, so
their errors can be compared split by split.
"""

from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np

import budgetreg
from budgetreg.analysis.intervals import difference, mean_error

# %%
# ``total`` is the number of attributes that every learner may spend. ``checkpoints=1`` keeps the end of the curve only.

errors = {}
with TemporaryDirectory() as folder:
    for algo in ("aemr", "fixed_subset", "naive", "ridge"):
        choices = {"algo": algo, "dataset": "breast_cancer", "k": 8, "total": 600, "checkpoints": 1, "repetitions": 10}
        errors[algo] = budgetreg.run({**choices, "out": f"{folder}/{algo}"}).curves["test_relative"].to_numpy()

# %%
# The intervals of the mean errors overlap, because some splits are harder than others for all learners. The paired
# difference leaves this variation out, and its interval shows which learners are worse than ``aemr``.

for algo, values in errors.items():
    error, behind = mean_error(values), difference(values, errors["aemr"])
    print(f"{algo:12}  error {error.value:.3f} ({error.low:.3f} to {error.high:.3f})", end="  ")
    print(f"above aemr {behind.value:+.3f} ({behind.low:+.3f} to {behind.high:+.3f})")

# %%
# Left, the mean errors; right, their paired differences from ``aemr``. Bars are 90 % intervals.

figure, panels = plt.subplots(1, 2, sharey=True, layout="constrained")
for row, values in enumerate(errors.values()):
    for axes, estimate in zip(panels, (mean_error(values), difference(values, errors["aemr"])), strict=True):
        axes.plot([estimate.low, estimate.high], [row, row], color="black")
        axes.plot(estimate.value, row, "o", color="black")
panels[0].set(xlabel="test error / error of the mean", yticks=np.arange(len(errors)), yticklabels=list(errors))
panels[1].set(xlabel="paired difference from aemr")
panels[1].axvline(0, color="grey", linewidth=0.8)
figure.suptitle("Breast cancer, 600 attributes: all others err more than aemr")
plt.show()
