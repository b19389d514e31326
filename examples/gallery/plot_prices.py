"""
Prices, and values that are bought together
===========================================

Some attributes cost more than others, and one assay can give several values at one price. Here thirteen measurements
of wines have made-up prices, and four phenols are bought together. What does a learner buy differently if it knows the
prices?
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import pandas as pd

import budgetreg

# %%
# A price list names every attribute. Attributes with the same ``group`` are bought together: they count as one of the
# *k*, and their price is paid once.

PRICES = """attribute,cost,group
alcohol,5,
malic_acid,8,
ash,4,
alcalinity_of_ash,6,
magnesium,10,
total_phenols,25,phenols
flavanoids,,phenols
nonflavanoid_phenols,,phenols
proanthocyanins,,phenols
color_intensity,2,
hue,2,
od280/od315_of_diluted_wines,6,
proline,30,
"""

# %%
# ``aemr`` is price-aware: it draws expensive attributes less often. ``algo.prices=ignored`` draws as without prices.
# ``total`` is in EUR. ``reveals.csv`` counts how often each attribute was seen.

choices = {"algo": "aemr", "dataset": "wine", "k": 4, "total": 3000, "checkpoints": 4, "repetitions": 4}
curves, seen = {}, {}
with TemporaryDirectory() as folder:
    prices = Path(folder, "prices.csv")
    prices.write_text(PRICES, encoding="utf-8")
    for rule in ("aware", "ignored"):
        out = Path(folder, rule)
        given = {"dataset.costs": str(prices), "dataset.unit": "EUR", "algo.prices": rule, "out": str(out)}
        curves[rule] = budgetreg.run({**choices, **given}).curves
        seen[rule] = pd.read_csv(out / "reveals.csv")

# %%
# With a total, repetitions differ in their numbers of examples. So the means are over the checkpoints of each.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
for (rule, points), marker, colour in zip(curves.items(), "os", ("black", "tab:orange"), strict=True):
    means = points.groupby(points.groupby("repetition").cumcount())[["examples", "cost", "test_relative"]].mean()
    examples, cost, error = means.iloc[-1]
    print(f"prices {rule}: {examples:.1f} wines for {cost:,.0f} EUR, error {error:.3f}")
    left.plot(means["cost"], means["test_relative"], f"{marker}-", color=colour, label=f"prices {rule}")
    last = seen[rule].loc[
        lambda counts: counts["examples"] == counts.groupby("repetition")["examples"].transform("max")
    ]
    share = last["count"].div(last["examples"]).groupby(last["attribute"], sort=False).mean()
    right.plot(share, share.index, marker, color=colour)
left.set(xlabel="EUR paid", ylabel="test error / error of the mean")
left.set_xticks([1_000, 2_000, 3_000], ["1k", "2k", "3k"])
right.set(xlabel="share of wines of which it was bought")
left.legend()
figure.suptitle("Wine, 3,000 EUR: price-aware draws pay for more wines, and the error hardly differs")
plt.show()
