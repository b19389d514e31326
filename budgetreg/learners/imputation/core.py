"""Ridge regression on imputed rows: unseen values are imputed and then treated as seen."""

import warnings
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from budgetreg.metering.accessor import Accessor
from budgetreg.revealed.collection import collect
from budgetreg.revealed.entries import Entries
from budgetreg.tasks.task import Outputs, WithIntercept

_STRENGTHS = np.geomspace(1e-4, 1e4, 17)
"""Strengths of ridge that are tried, in units of the mean squared length of the columns."""


def fit(
    accessor: Accessor,
    settings: Mapping[str, np.ndarray],
    checkpoints: Sequence[int],
    rngs: Sequence[np.random.Generator],
    *,
    k: int,
    impute: str,
    centred: bool = False,
    intercept: bool = False,
) -> Iterator[tuple[int, Outputs]]:
    """Draw k attributes of each example uniformly; impute the others and solve for ridge at each checkpoint.

    Parameters
    ----------
    accessor, settings, checkpoints, rngs
        As for `budgetreg.learners.declaration.Learner.fit`; there is one setting and nothing to tune.
    k : int
        Attributes seen of each example, at least 2.
    impute : {'mean', 'iterative'}
        See `imputed`.
    centred, intercept : bool
        Whether attributes are centred on their means, and whether the regressor has an intercept.

    Yields
    ------
    checkpoint : int
    W : ndarray of float, shape (F, d, 1); or WithIntercept
    """
    del settings
    for collected in collect(accessor, checkpoints, rngs, k):
        if not collected.is_checkpoint:
            continue  # no plans: the draws stay uniform
        solutions = [
            regressor(X, y, impute=impute, centred=centred, intercept=intercept)
            for X, y in _tables(collected.entries, accessor.d)
        ]
        W = np.stack([w for w, _ in solutions])[:, :, None]
        b = np.array([[b] for _, b in solutions])
        yield collected.examples, WithIntercept(W, b) if centred or intercept else W


def regressor(X: np.ndarray, y: np.ndarray, *, impute: str, centred: bool, intercept: bool) -> tuple[np.ndarray, float]:
    """Return the ridge regressor of imputed rows; leave-one-out errors choose its strength.

    A left-out row stays in the means and in the imputation models.

    Parameters
    ----------
    X : ndarray of float, shape (n, d)
        NaN for unseen values.
    y : ndarray of float, shape (n,)
    impute : {'mean', 'iterative'}
    centred, intercept : bool
        As for `fit`.

    Returns
    -------
    w : ndarray of float, shape (d,)
        0 for attributes never seen; all 0 for a single example, because none can be left out.
    b : float
        The prediction is ``b + <w, x>``.
    """
    from sklearn.linear_model import RidgeCV  # imported here because scikit-learn loads slowly

    w, r = np.zeros(X.shape[1]), float(y.mean()) if intercept else 0.0
    live = np.flatnonzero(~np.isnan(X).all(axis=0))
    if len(y) < 2 or not live.size:
        return w, r
    means = np.nanmean(X[:, live], axis=0)
    Z = imputed(X[:, live] - means, impute)  # centred before imputation, so that a shift of the data changes nothing
    if not centred:
        Z += means
        means = np.zeros(live.size)
    if not Z.any():
        return w, r
    # With centred attributes and a free intercept, each left-out example changes the intercept.
    ridge = RidgeCV(strengths(Z), fit_intercept=centred and intercept).fit(Z, y - r)
    w[live] = ridge.coef_
    return w, r + float(ridge.intercept_) - float(means @ ridge.coef_)


def imputed(Z: np.ndarray, impute: str) -> np.ndarray:
    """Return rows with the unseen values filled in.

    Parameters
    ----------
    Z : ndarray of float, shape (n, p)
        Values less the column's mean, at least one in each column; NaN for unseen values.
    impute : {'mean', 'iterative'}
        'mean' imputes the mean; 'iterative' uses `sklearn.impute.IterativeImputer` with its defaults, which regresses
        each attribute on the others (not on the target) in ten rounds.

    Returns
    -------
    ndarray of float, shape (n, p)
    """
    if impute == "mean":
        return np.where(np.isnan(Z), 0.0, Z)
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401, enables the next import
    from sklearn.impute import IterativeImputer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # ten rounds are the default, converged or not
        filled: np.ndarray = IterativeImputer(random_state=0).fit_transform(Z)
    return filled


def strengths(Z: np.ndarray) -> np.ndarray:
    """Return the strengths of ridge that are tried on rows (n, p), not all of which are 0."""
    return _STRENGTHS * np.square(Z).sum(axis=0).mean()


def _tables(entries: Entries, d: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield X (n, d) and y (n,) of each stream, one at a time, because dense tables of all need much memory."""
    blocks = entries.blocks()
    for f in range(len(blocks[0].values)):
        rows = []
        for block in blocks:
            # Column d is the target; one more column collects the missing values.
            table = np.full((block.values.shape[1], d + 2), np.nan)
            np.put_along_axis(table, block.attributes[f], block.values[f], axis=1)
            rows.append(table)
        table = np.concatenate(rows)
        yield table[:, :d], table[:, d]
