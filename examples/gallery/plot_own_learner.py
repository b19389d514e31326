"""
A learner of your own
=====================

A learner never holds the data. It asks an accessor for values, and the accessor counts them. Here ridge regression on
estimated second moments is a class of thirty lines. CONTRIBUTING.md shows how a package with an entry point makes such
a class known to ``budgetreg run`` and to the checks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

from budgetreg import extend


@dataclass(frozen=True)
class MomentRidge(extend.Learner):
    """Ridge on E xx' and E xy, each entry averaged over the examples in which it was seen."""

    core = "moment_ridge"
    parameters = (extend.Parameter("penalty", "the penalty", absolute=True),)
    tuned = ("penalty",)

    def fit(
        self,
        accessor: extend.Accessor,
        settings: extend.Settings,
        checkpoints: Sequence[int],
        rngs: extend.Rngs,
        given: extend.SideInformation,
    ) -> extend.Trajectory:
        """Yield regressors (F, d, G) of F streams of examples and G settings at each checkpoint."""
        F, d = accessor.n_streams, accessor.d
        xx, xy = np.zeros((2, F, d, d)), np.zeros((2, F, d))  # sums, and numbers of their terms
        ridge = settings["penalty"][:, None, None] * np.eye(d)
        stream = np.arange(F)[:, None]
        for start, stop in extend.blocks(0, checkpoints[-1]):
            drawn = np.stack([extend.subset(rng, d, given.k) for rng in rngs])[:, : stop - start]
            accessor.open(start, stop)
            values, y = accessor.reveal_block(drawn), accessor.targets()
            for t in range(stop - start):
                pairs = stream[:, :, None], drawn[:, t, :, None], drawn[:, t, None, :]
                xx[0][pairs] += values[:, t, :, None] * values[:, t, None, :]
                xy[0][stream, drawn[:, t]] += values[:, t] * y[:, t, None]
                xx[1][pairs] += 1
                xy[1][stream, drawn[:, t]] += 1
                if start + t + 1 in checkpoints:
                    A, b = (sums / np.maximum(counts, 1) for sums, counts in (xx, xy))
                    yield start + t + 1, np.linalg.solve(A[:, None] + ridge, b[:, None, :, None])[..., 0].swapaxes(1, 2)


# %%
# One stream of 6,000 examples with 20 correlated attributes, of which k = 4 may be seen, and three penalties.

rng = np.random.default_rng(0)
X = rng.normal(size=(8000, 1)) + rng.normal(size=(8000, 20))
y = X @ rng.normal(size=20) + rng.normal(size=8000)
checkpoints, penalties = [100, 200, 400, 800, 1600, 3200, 6000], np.array([1.0, 3.0, 10.0])
accessor = extend.Accessor(extend.Table(X, y), np.arange(6000)[None], len(penalties), 4, checkpoints)
fitted = MomentRidge(name="moment_ridge").fit(
    accessor, {"penalty": penalties}, checkpoints, [rng], extend.SideInformation(4)
)
errors = np.array([np.square(y[6000:, None] - X[6000:] @ W[0]).mean(axis=0) for _, W in fitted]) / np.square(y).mean()
print(f"charged: {accessor.bill().total[0, 0]:,} attributes")
for penalty, error in zip(penalties, errors[-1], strict=True):
    print(f"penalty {penalty}: error {error:.3f}")

# %%
# Means over different examples need not form a positive definite matrix. So a small penalty fails while few attributes
# have been seen, and a large one costs accuracy at the end.

figure, axes = plt.subplots()
for penalty, error, style in zip(penalties, errors.T, ("o-k", "s-C0", "^-C1"), strict=True):
    axes.plot(4 * np.array(checkpoints), error, style, label=f"penalty {penalty:g}")
axes.set(xscale="log", yscale="log", xlabel="attributes seen", ylabel="test error / error of zero")
axes.set_xticks([500, 2_000, 5_000, 20_000], ["500", "2k", "5k", "20k"])
axes.set_yticks([0.3, 1, 10, 100], ["0.3", "1", "10", "100"])
axes.set_title("4 of 20 attributes: a small penalty fails at first, and is best at the end")
axes.legend()
plt.show()
