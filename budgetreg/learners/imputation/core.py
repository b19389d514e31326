"""Values that were not seen are imputed, and ridge takes them for values like all others."""

import warnings
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from budgetreg.learners.declaration import Outputs, WithIntercept
from budgetreg.learners.factors.collection import collect
from budgetreg.learners.factors.entries import Entries
from budgetreg.metering.accessor import Accessor

_STRENGTHS = np.geomspace(1e-4, 1e4, 17)
"""Those of ridge that are tried, in units of the mean squared length of the columns."""


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
    """Draw k attributes of each example uniformly, impute the others at the checkpoints and solve for ridge.

    Parameters
    ----------
    accessor, settings, checkpoints, rngs
        As for `budgetreg.learners.declaration.Fit`: there is one setting, and nothing to tune.
    k : int
        Attributes of an example that are seen, at least 2.
    impute : {'mean', 'iterative'}
        See `imputed`.
    centred, intercept : bool
        Whether attributes count from their means, and whether the mean of the targets is predicted there.

    Yields
    ------
    checkpoint : int
    W : ndarray of float, shape (F, d, 1); or WithIntercept
    """
    del settings
    for collected in collect(accessor, checkpoints, rngs, k):
        if not collected.is_checkpoint:
            continue  # draws stay uniform
        found = [
            regressor(X, y, impute=impute, centred=centred, intercept=intercept)
            for X, y in _tables(collected.entries, accessor.d)
        ]
        W = np.stack([w for w, _ in found])[:, :, None]
        b = np.array([[b] for _, b in found])
        yield collected.examples, WithIntercept(W, b) if centred or intercept else W


def regressor(X: np.ndarray, y: np.ndarray, *, impute: str, centred: bool, intercept: bool) -> tuple[np.ndarray, float]:
    """Return ridge on imputed rows, its strength chosen by leaving out one of them after the other.

    The means, and all that is imputed, are those of all rows, also where one is left out.

    Parameters
    ----------
    X : ndarray of float, shape (n, d)
        NaN where nothing was seen.
    y : ndarray of float, shape (n,)
    impute : {'mean', 'iterative'}
    centred, intercept : bool
        As for `fit`.

    Returns
    -------
    w : ndarray of float, shape (d,)
        0 for attributes that were never seen, and for all if there is a single example, as none can be left out.
    b : float
        The prediction is ``b + <w, x>``.
    """
    from sklearn.linear_model import RidgeCV  # here, as it is slow to load

    w, r = np.zeros(X.shape[1]), float(y.mean()) if intercept else 0.0
    live = np.flatnonzero(~np.isnan(X).all(axis=0))
    if len(y) < 2 or not live.size:
        return w, r
    means = np.nanmean(X[:, live], axis=0)
    Z = imputed(X[:, live] - means, impute)  # imputers know no other zero, so that where it is changes nothing
    if not centred:
        Z += means
        means = np.zeros(live.size)
    if not Z.any():
        return w, r
    # Only where an intercept is free in both, leaving out one example moves it.
    ridge = RidgeCV(strengths(Z), fit_intercept=centred and intercept).fit(Z, y - r)
    w[live] = ridge.coef_
    return w, r + float(ridge.intercept_) - float(means @ ridge.coef_)


def imputed(Z: np.ndarray, impute: str) -> np.ndarray:
    """Fill in what was not seen.

    Parameters
    ----------
    Z : ndarray of float, shape (n, p)
        Values less the means of those seen, at least one in each column; NaN where nothing was seen.
    impute : {'mean', 'iterative'}
        By the mean; or by `sklearn.impute.IterativeImputer` as it comes, which regresses each attribute on all others,
        the target not among them, ten times over.

    Returns
    -------
    ndarray of float, shape (n, p)
    """
    if impute == "mean":
        return np.where(np.isnan(Z), 0.0, Z)
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401, without which the next is not there
    from sklearn.impute import IterativeImputer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # ten times is what it is given
        filled: np.ndarray = IterativeImputer(random_state=0).fit_transform(Z)
    return filled


def strengths(Z: np.ndarray) -> np.ndarray:
    """Return the strengths of ridge that are tried on rows (n, p), one of which is not 0."""
    return _STRENGTHS * np.square(Z).sum(axis=0).mean()


def _tables(entries: Entries, d: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield X (n, d) and y (n,) of each stream in turn, as dense as only one of them may be."""
    blocks = entries.blocks()
    for f in range(len(blocks[0].values)):
        rows = []
        for block in blocks:
            # The target is column d, and one more takes what is missing.
            table = np.full((block.values.shape[1], d + 2), np.nan)
            np.put_along_axis(table, block.attributes[f], block.values[f], axis=1)
            rows.append(table)
        table = np.concatenate(rows)
        yield table[:, :d], table[:, d]
