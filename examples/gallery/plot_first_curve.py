"""
A first learning curve
======================

How fast does the test error fall if a learner sees only four of the 64 pixels of each training image? The images are
threes and fives from the bundled digits; the learner is ``aemr``, which has nothing to tune.
"""

from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt

import budgetreg

# %%
# A run has the choices of ``budgetreg run``. Three repetitions split the data at random, each in another way.

with TemporaryDirectory() as folder:
    results = budgetreg.run({"algo": "aemr", "dataset": "digits_3v5", "k": 4, "repetitions": 3, "out": folder})

# %%
# ``curves`` has a row for each repetition and checkpoint. ``attributes`` is the bill: what was charged by then. The
# error is relative to that of the zero predictor, so that 1 means that nothing was learned.

means = results.curves.groupby("examples")[["attributes", "test_relative"]].mean()
print(means)

# %%
# The error of each repetition is a thin line, and their mean is the heavy one.

figure, axes = plt.subplots()
for _, curve in results.curves.groupby("repetition"):
    axes.plot(curve["attributes"], curve["test_relative"], color="grey", linewidth=0.8)
axes.plot(means["attributes"], means["test_relative"], color="black", marker="o", linewidth=2)
axes.set(xscale="log", xlabel="attributes seen", ylabel="test error / error of zero")
axes.set_xticks([100, 300, 1000], ["100", "300", "1k"])
axes.set_title("Digits, 4 of 64 pixels: aemr needs about 350 pixels for an error of 0.2")
plt.show()
