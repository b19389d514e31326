"""
Missing values in a scikit-learn pipeline
=============================================

``AEML`` models all attributes and the target together, so it learns from incomplete rows and predicts such rows, too.
Here more and more cells of the diabetes table are removed, and ``AEML`` is compared with ridge on imputed means.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from budgetreg.estimators import AEML

# %%
# Both pipelines use scikit-learn's scaler, which ignores NaN. ``AEML`` needs no imputer.

X, y = load_diabetes(return_X_y=True, scaled=False)
y = (y - y.mean()) / y.std()
pipelines = {
    "AEML": make_pipeline(StandardScaler(), AEML()),
    "mean imputation and ridge": make_pipeline(StandardScaler(), SimpleImputer(), RidgeCV(np.logspace(-2, 4, 13))),
}

# %%
# Cells are removed completely at random, of the training rows and of the rows that are predicted.

shares = (0.0, 0.2, 0.4, 0.6, 0.8)
uniform = np.random.default_rng(0).random(X.shape)
errors = {
    name: [
        -cross_val_score(
            pipeline, np.where(uniform < share, np.nan, X), y, cv=5, scoring="neg_mean_squared_error"
        ).mean()
        for share in shares
    ]
    for name, pipeline in pipelines.items()
}
for name, values in errors.items():
    print(f"{name:26}", *(f"{value:.3f}" for value in values))

# %%
# A prediction comes with a standard deviation, which grows with what is missing.

model = pipelines["AEML"].fit(np.where(uniform < 0.6, np.nan, X), y)
rows = np.where(np.arange(10) < np.array([[10], [5], [0]]), X[0], np.nan)
predictions, deviations = model.predict(rows, return_std=True)
for known, prediction, deviation in zip((10, 5, 0), predictions, deviations, strict=True):
    print(f"{known:2} of 10 attributes known: {prediction:+.2f} with standard deviation {deviation:.2f}")

figure, axes = plt.subplots()
for (name, values), style in zip(errors.items(), ("o-k", "s-C0"), strict=True):
    axes.plot(shares, values, style, label=name)
axes.set(xlabel="share of cells that are missing", ylabel="mean squared error / variance")
axes.set_title("Diabetes: with missing values, AEML errs less than ridge on imputed means")
axes.legend()
plt.show()
