"""Impute, then learn: unseen values are imputed and then treated as seen, as is commonly done.

Ridge is fitted to rows that scikit-learn's imputers complete, at a strength that cross-validation on the same rows
chooses (`RidgeRows`). A regressor that is fitted to rows with imputed means is too large for complete rows;
`full_row_scale` corrects its size. SGD on imputed examples takes running means instead.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from budgetreg.algorithms.corrected_moments import ridge_of, semidefinite, shown_sums
from budgetreg.algorithms.learner import (
    ONE_PASS,
    RADIUS,
    STEP_SIZE,
    UNBOUNDED,
    UPDATES,
    Batching,
    Learner,
    Missing,
    Rngs,
    RunContext,
    Settings,
    SideInformation,
    Trajectory,
    UniformSubsetsLearner,
    average_option,
)
from budgetreg.algorithms.vectors import Averager, inner_products, project_l2
from budgetreg.common.errors import ConfigError
from budgetreg.common.streams import blocks, generator
from budgetreg.config.options import FLAG, one_of, option
from budgetreg.metering.table import JointMoments, Outputs, TargetMeans, WithIntercept
from budgetreg.revealed.collection import AttributeDraws, Block, Entries, dense_rows, reveal
from budgetreg.revealed.columns import Rescaled, RunningScale, inflation
from budgetreg.revealed.tails import few_of_many

if TYPE_CHECKING:
    from budgetreg.metering.accessor import Accessor

_WAYS = {"mean": "the means of those seen", "iterative": "ten rounds of regressions on all others"}

_MOST_ATTRIBUTES = 100
"""For iterative imputation, which takes ten times d regressions on d attributes at each checkpoint."""

_GUESSED = "imputed values are guesses, and the regressor is not linear in them"

SCALE_FOLDS = 10
"""Parts of the rows that are held out in turn to scale a regressor."""

_WITH_TARGET = 3
"""Version of imputation with the target."""

_LARGE = 30.0
"""Excess of new values that counts: ridge expects no larger values, unless they dominate those seen."""


@dataclass(frozen=True)
class ImputationLearner(UniformSubsetsLearner):
    """Ridge on rows whose unseen values are imputed.

    Attributes
    ----------
    impute : {'mean', 'iterative'}
        See `imputed`.
    with_target : bool
        Whether iterative imputation regresses on the target, too, also for rows that are held out.
    rescale : bool
        Whether regressors of rows with imputed means are scaled for complete rows, see `full_row_scale`.
    """

    impute: str = option("the method of imputation", one_of(*_WAYS))
    with_target: bool = option("whether iterative imputation uses the target", FLAG, default=False)
    rescale: bool = option("whether regressors are scaled for complete rows", FLAG, default=False)

    core = "imputation"
    version = 2
    check_streams = 50

    def solved(self, entries: Entries, accessor: Accessor, given: SideInformation) -> Outputs:
        """Impute what was not seen, and solve for ridge."""
        ways: dict[str, Any] = {"impute": self.impute, "rescale": self.rescale, "with_target": self.with_target}
        return regressors(entries, accessor, given, **ways)

    @property
    def most_attributes(self) -> int | None:
        """How many attributes the data may have, if values are imputed iteratively."""
        return _MOST_ATTRIBUTES if self.impute == "iterative" else None

    def notes(self, run: RunContext, settings: Mapping[str, Sequence[float]]) -> Sequence[str]:
        """Return nothing.

        Raises
        ------
        ConfigError
            If there are too many attributes for iterative imputation.
        """
        if self.most_attributes is not None and run.d > self.most_attributes:
            raise ConfigError(
                f"algo.impute=iterative: at most {_MOST_ATTRIBUTES} attributes, as {run.d} would take too long; "
                "use mean"
            )
        return ()

    @property
    def inactive_options(self) -> Sequence[str]:
        """The scaling if values are imputed by regressions, as its derivation is for means; else the target."""
        return ("with_target",) if self.impute == "mean" else ("rescale",)

    def identity(self, section: Mapping[str, Any]) -> dict[str, Any]:
        """Return what decides its results; imputation with the target has a version of its own."""
        by_target = self.impute == "iterative" and self.with_target
        return super().identity(section) | ({"version": _WITH_TARGET} if by_target else {})

    @property
    def words(self) -> Sequence[str]:
        """What it sees and how it imputes."""
        scaled = ", the regressor being scaled for complete rows" if self.rescale and self.impute == "mean" else ""
        way = _WAYS[self.impute] + (" and the target" if self.with_target and self.impute == "iterative" else "")
        return "k attributes per example", f"ridge, what was not seen being imputed by {way}{scaled}"

    @property
    def skipped_checks(self) -> Mapping[str, str]:
        """Estimates are guesses."""
        guessed = {"unbiased": _GUESSED, "second moments": _GUESSED, "boundary": UNBOUNDED}
        if self.impute == "mean":
            return guessed
        return {**guessed, "minimiser": "what it minimises depends on values that scikit-learn makes up"}


def regressors(
    entries: Entries, accessor: Accessor, given: SideInformation, *, among: np.ndarray | None = None, **ways: Any
) -> Outputs:
    """Return the ridge regressors of all streams, of values as they were revealed.

    Parameters
    ----------
    entries : Entries
        Everything revealed, with targets.
    accessor : Accessor
        The streams.
    given : SideInformation
        Whether values are scaled and centred, and whether there is an intercept.
    among : ndarray of int, shape (F, n), optional
        The attributes of each stream's regressor, filled up with d; all by default.
    **ways
        impute, rescale, with_target: as for `regressor`.
    """
    rescaled = Rescaled(entries.blocks(), accessor.d, given.scaled, accessor.stored_units())
    W, b = np.zeros((accessor.n_streams, accessor.d, 1)), np.zeros((accessor.n_streams, 1))
    for f, (X, y) in enumerate(tables(rescaled.blocks, accessor.d)):
        left_out = rescaled.left_out[f]
        counts = np.count_nonzero(~np.isnan(X), axis=0)
        enough = np.isfinite(inflation(counts))
        # If values are enough and new ones may still have any size, the stream's variances are infinite.
        heavy = (enough & ~left_out & np.isinf(rescaled.inflation[f])).any()
        # Ridge on so few values of one attribute among many fits chance, and knows nothing of the error of its scale.
        few = given.scaled & few_of_many(counts)
        X, some = np.where(left_out | heavy | few, np.nan, X), np.arange(accessor.d)
        if among is not None:
            some = among[f][among[f] < accessor.d]
            X = X[:, some]
        tails = {"excess": rescaled.excess[f], "limited": bool(left_out.any())}
        W[f, some, 0], b[f] = regressor(X, y, centred=given.centred, intercept=given.intercept, **tails, **ways)
    if not (given.centred or given.intercept):
        return rescaled.as_revealed(W)
    selection = partial(_moments, rescaled, accessor.d, given) if among is None else None
    return rescaled.as_revealed(WithIntercept(W, b, selection=selection))


def _moments(rescaled: Rescaled, d: int, given: SideInformation, f: int) -> JointMoments:
    """Return the corrected joint moments of what a stream revealed."""
    return semidefinite([shown_sums(rescaled, f, d, given)], 0)


def regressor(
    X: np.ndarray,
    y: np.ndarray,
    *,
    impute: str,
    rescale: bool,
    centred: bool,
    intercept: bool,
    with_target: bool = False,
    excess: float = 0.0,
    limited: bool = False,
) -> tuple[np.ndarray, float]:
    """Return the ridge regressor of imputed rows, the mean over the strengths that cross-validation chooses.

    A held-out row stays in the means and in the imputation models.

    Parameters
    ----------
    X : ndarray of float, shape (n, d)
        NaN for unseen values.
    y : ndarray of float, shape (n,)
    impute : {'mean', 'iterative'}
    rescale : bool
        Whether the regressor is scaled for complete rows if means are imputed, see `full_row_scale`.
    centred, intercept : bool
        As for `fit`.
    with_target : bool
        Whether iterative imputation uses the target.
    excess : float
        How much larger new values are, see `budgetreg.revealed.columns.Rescaled`. From `_LARGE` on, the regressor is
        shrunk by the share of the variance that they would add, as those of AEML and AEMR are by any.
    limited : bool
        Whether the regressor is shortened where it explains more than the variance of the target, because attributes
        are left out, and imputation has few values of the others.

    Returns
    -------
    w : ndarray of float, shape (d,)
        0 for attributes never seen; all 0 for a single example, because none can be held out.
    b : float
        The prediction is ``b + <w, x>``.
    """
    w, r = np.zeros(X.shape[1]), float(y.mean()) if intercept else 0.0
    live = np.flatnonzero(~np.isnan(X).all(axis=0))
    if len(y) < 2 or not live.size:
        return w, r
    means = np.nanmean(X[:, live], axis=0)
    # Centred before imputation, so that a shift of the data changes nothing.
    columns = X[:, live] - means
    if with_target:  # in its own unit: the rounds end by a tolerance for all columns
        columns = np.column_stack([columns, (y - y.mean()) / (y.std() or 1.0)])
    Z = imputed(columns, impute)[:, : live.size]
    if not centred:
        Z += means
        means = np.zeros(live.size)
    if not Z.any() or not (y - r).any():
        return w, r
    # With centred attributes and a free intercept, the rows of each fold change the intercept.
    rows = RidgeRows(Z, y - r, centred and intercept)
    chosen = rows.chosen()
    W, b = rows.solved(chosen)
    w[live] = W.mean(axis=1)
    if rescale and impute == "mean":
        w[live] *= full_row_scale(X[:, live], y - r, chosen, centred=centred)
    if excess >= _LARGE:
        explained = np.square(Z @ w[live]).mean()
        new = excess * float(np.square(w[live]) @ np.nanvar(X[:, live], axis=0))
        w[live] *= explained / (explained + new) if new else 1.0
    if limited:
        origin, deviation = deviations(X[:, live])
        origin = origin * (not centred)
        C = covariance(deviation, ~np.isnan(X[:, live])) + np.outer(origin, origin)
        explained = float(w[live] @ C @ w[live])
        w[live] *= np.sqrt(min(1.0, float(np.square(y - r).mean()) / explained)) if explained else 1.0
    return w, r + float(b.mean()) - float(means @ w[live])


def full_row_scale(X: np.ndarray, y: np.ndarray, strengths: np.ndarray, *, centred: bool) -> float:
    """Return the factor, from 0 to 1, by which ridge on rows with imputed means is multiplied for complete rows.

    Let complete rows have the covariance C, and covariances c with the target. If k of d values are seen of each row,
    rows with imputed means have ``p c``, where ``p = k / d``, and ``p_2 C + (p - p_2) diag C``, where
    ``p_2 = p (k - 1) / (d - 1)``. So least squares on them is ``(d - 1) / (k - 1)`` times ridge on complete rows, whose
    strength is ``(d - k) / (k - 1) diag C``. This is right if the attributes are uncorrelated; the more they are
    correlated, the more it is too large. Of all multiples ``s w``, ``s = <w, c> / w'C w`` errs least on complete rows.

    Both terms are averages over parts of the rows, each with the regressor w of the other rows. In <w, c>, the values
    of the part are divided by the share of rows that show them; C is estimated from all rows, see `covariance`.

    Parameters
    ----------
    X : ndarray of float, shape (n, p)
        NaN for unseen values; at least one value in each column.
    y : ndarray of float, shape (n,)
    strengths : ndarray of float, shape (S,)
        Strengths of ridge, above 0: the regressor is the mean over these.
    centred : bool
        Whether the regressor is that of values less their means.

    Returns
    -------
    float
        1 if no value is unseen.
    """
    seen = ~np.isnan(X)
    if seen.all():
        return 1.0
    means, Z = deviations(X)
    origin = np.zeros_like(means) if centred else means
    C, shares = covariance(Z, seen) + np.outer(origin, origin), seen.mean(axis=0)
    filled = Z + origin
    rows, part = RidgeRows(filled, y, free=False), np.arange(len(y)) % SCALE_FOLDS
    gain = size = 0.0
    for held_out in (part == each for each in range(min(SCALE_FOLDS, len(y)))):
        w = rows.solved(strengths, held_out)[0].mean(axis=1)
        gain += float(y[held_out] @ (Z[held_out] / shares + origin) @ w)
        size += np.count_nonzero(held_out) * float(w @ C @ w)
    return min(max(gain / size, 0.0), 1.0) if size > 0 else 1.0


def imputed(Z: np.ndarray, impute: str) -> np.ndarray:
    """Return rows with the unseen values filled in.

    Parameters
    ----------
    Z : ndarray of float, shape (n, p)
        Values less the column's mean, at least one in each column; NaN for unseen values. The target may be a column.
    impute : {'mean', 'iterative'}
        'mean' imputes the mean; 'iterative' uses `sklearn.impute.IterativeImputer` with its defaults, which regresses
        each column on the others in ten rounds.

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


def tables(blocks: Sequence[Block], d: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield X (n, d) and y (n,) of each stream, one at a time, because dense tables of all need much memory."""
    for f in range(len(blocks[0].values)):
        rows = [dense_rows(block.attributes[f], block.values[f], d + 1, np.nan) for block in blocks]
        table = np.concatenate(rows)
        yield table[:, :d], table[:, d]


# Ridge on rows that were paid for, its strength by repeated cross-validation on the same rows. Leave-one-out errors are
# unstable where there are about as many rows as columns: each fit sees nearly all rows, so that all errors share their
# mistakes, and a strength near 0 passes by chance. So a fifth of the rows is held out at a time. The random folds are
# repeated for few rows, and the regressors of the strengths that repetitions choose are averaged.
#
# No choice uses rows beyond these. `ridge` and `lasso` choose better because tuning has them judged by the held-out
# folds of all training examples, in full, which no budget pays for.

_STRENGTHS = np.geomspace(1e4, 1e-4, 17)
"""Strengths tried, in units of the mean squared length of the columns; of equally good ones the first counts."""

_FOLDS = 5
"""Parts of the rows that are held out in turn to choose a strength."""

_HELD_OUT, _MOST_REPETITIONS = 500, 10
"""Folds are repeated until as many rows as the first were held out in all, and at most as often as the second."""


class RidgeRows:
    """Rows of a ridge regression, which is solved for several strengths at once, with and without a part of the rows.

    Parameters
    ----------
    Z : ndarray of float, shape (n, p)
        Rows.
    y : ndarray of float, shape (n,)
        Targets.
    free : bool
        Whether an intercept is fitted that is not shrunk: the rows that are used, and their targets, are centred.
    """

    def __init__(self, Z: np.ndarray, y: np.ndarray, free: bool) -> None:
        self._Z, self._y, self._free = Z, y, free
        wide = Z.shape[1] > len(Z)
        self._products = None if wide else (Z.T @ Z, y @ Z)

    def solved(self, strengths: np.ndarray, without: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the minimisers of ``|y - Z w|^2 + strength |w|^2``.

        Parameters
        ----------
        strengths : ndarray of float, shape (S,)
            All above 0.
        without : ndarray of bool, shape (n,), optional
            The rows that are left out.

        Returns
        -------
        regressors : ndarray of float, shape (p, S)
        intercepts : ndarray of float, shape (S,)
            0 without a free intercept.
        """
        Z, y = (self._Z, self._y) if without is None else (self._Z[~without], self._y[~without])
        free = self._free and len(y) > 0
        mean, r = (Z.mean(axis=0), y.mean()) if free else (np.zeros(Z.shape[1]), 0.0)
        if self._products is None:
            Z = Z - mean
            W = Z.T @ ridge_of(Z @ Z.T, y - r, strengths)  # w = Z'a with (ZZ' + strength) a = y
        else:
            gram, b = self._products
            if without is not None:
                left_out = self._Z[without]
                gram, b = gram - left_out.T @ left_out, b - self._y[without] @ left_out
            W = ridge_of(gram - len(y) * np.outer(mean, mean), b - len(y) * r * mean, strengths)
        return W, r - mean @ W

    def chosen(self) -> np.ndarray:
        """Return the strength with the least held-out error in each repetition of the folds, shape (repetitions,)."""
        n = len(self._y)
        tried = strengths(self._Z)
        choices = []
        for parts in folds(n):
            errors = np.zeros(len(tried))
            for part in parts:
                # For fewer rows, the same strength per row.
                W, b = self.solved(tried * (1 - part.mean()), part)
                errors += np.square(self._y[part, None] - b - self._Z[part] @ W).sum(axis=0)
            choices.append(tried[errors.argmin()])
        return np.array(choices)


def strengths(Z: np.ndarray) -> np.ndarray:
    """Return the strengths of ridge that are tried on rows (n, p), not all of which are 0; descending."""
    return _STRENGTHS * np.square(Z).sum(axis=0).mean()


def folds(n: int) -> Iterator[list[np.ndarray]]:
    """Yield the folds of n rows, at least 2, for each repetition: masks (n,) of the rows that are held out.

    They depend on n alone.
    """
    rng, parts = generator("folds of ridge"), min(_FOLDS, n)
    for _ in range(min(_MOST_REPETITIONS, -(-_HELD_OUT // n))):
        part = rng.permutation(n) % parts
        yield [part == each for each in range(parts)]


# Second moments of complete rows, estimated from rows of which only some values were seen.


def deviations(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of what was seen of each column, (p,), and the values (n, p) less it; 0 for unseen values.

    Parameters
    ----------
    X : ndarray of float, shape (n, p)
        NaN for unseen values; at least one value in each column.
    """
    means = np.nanmean(X, axis=0)
    return means, np.where(np.isnan(X), 0.0, X - means)


def covariance(Z: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Return an estimate of the covariance of the columns, positive semidefinite.

    A product is in the sum over the rows only where both values were seen. So the mean product of columns i and j is
    divided by the share of rows in which they were. Few rows may show a given pair, or none. So the share of each pair
    is taken to be ``c p_i p_j``, where p_i is the share of rows that show i, and c is such that all pairs together were
    seen as often as they were. Negative eigenvalues, which come from chance, become 0.

    Parameters
    ----------
    Z : ndarray of float, shape (n, p)
        What `deviations` returns: 0 for unseen values.
    seen : ndarray of bool, shape (n, p)
        Which values were seen, at least one in each column.

    Returns
    -------
    ndarray of float, shape (p, p)
    """
    products = Z.T @ Z / len(Z)
    if seen.all():
        return products
    shares, per_row = seen.mean(axis=0), seen.sum(axis=1)
    pairs, expected = (per_row * (per_row - 1)).mean(), shares.sum() ** 2 - np.square(shares).sum()
    together = np.outer(shares, shares) * (pairs / expected if pairs else 1.0)
    np.fill_diagonal(together, shares)
    values, vectors = np.linalg.eigh(products / together)
    return np.asarray((vectors * np.maximum(values, 0)) @ vectors.T)


# SGD on imputed examples, in which running means stand for the attributes that are not seen. The gradient
# ``(<w, x> - y) x`` is computed for the imputed example as if all of it had been seen, hence biased.
#
# Where attributes are scaled, w is the regressor of attributes in units of their running standard deviations. The unit
# of a value contains the value, so that none of n values exceeds ``sqrt(n)`` and no step follows from an odd one alone.

_GRADIENT_GUESSED = "imputed values are guesses, so the gradient is biased"


@dataclass(frozen=True)
class ImputedGradientLearner(Learner):
    """Projected SGD on uniform subsets of k attributes, the others imputed by the means of what was revealed."""

    average: str = average_option()

    core = "sgd_impute"
    version = 2
    continues = True
    parameters = (RADIUS, replace(STEP_SIZE, absolute=True))
    tuned = ("B", "eta")
    batching = Batching.IN_STEP
    centres_itself = True
    scales_itself = True
    missing = Missing.LEFT_OUT
    uses_free = True
    draws_groups = True
    words = ("k attributes per example, the others imputed by their running means", UPDATES["ogd"])
    skipped_checks: ClassVar[Mapping[str, str]] = {
        "unbiased": _GRADIENT_GUESSED,
        "second moments": _GRADIENT_GUESSED,
        "minimiser": ONE_PASS,
        "small k": "the means need one attribute of an example, so any k is enough",
    }

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Run all settings along all streams; missing values are imputed like values that are not seen."""
        F, G, d = accessor.n_streams, accessor.n_settings, accessor.d
        averager = Averager(checkpoints, self.average)
        X, known = accessor.pilot()
        seen, targets = RunningScale(X, given.scaled, accessor.stored_units()), TargetMeans(known)
        w, total = np.zeros((F, G, d)), np.zeros((F, G, d))
        draws = [AttributeDraws(rng, d, given.k, accessor.free, accessor.groups) for rng in rngs]
        for start, stop in blocks(0, checkpoints[-1]):
            attributes, values = reveal(accessor, draws, start, stop, missing=d)
            y = targets.open(start, accessor.targets()) if given.intercept else accessor.targets()
            for t in range(stop - start):
                total += w
                mark = start + t + 1
                output = averager.observe(mark, total.copy, w.copy)
                if output:
                    weighted, left_out = seen.weighted()
                    W = output[1] * (weighted / seen.units())[:, None]
                    b = np.repeat(targets.at(mark)[:, None], G, axis=1) if given.intercept else np.zeros((F, G))
                    if given.centred:
                        b -= inner_products(W, seen.means[:, None, :-1])
                    yield mark, WithIntercept(np.ascontiguousarray(W.swapaxes(1, 2)), b, None, left_out)
                seen.add(attributes[:, t], values[:, t])
                x = seen.means.copy()
                np.put_along_axis(x, attributes[:, t], values[:, t], axis=1)
                x = (x - seen.means if given.centred else x)[:, :-1] / seen.units()
                residual = inner_products(w, x[:, None]) - y[:, t, None]
                w = project_l2(w - (settings["eta"] * residual)[:, :, None] * x[:, None], settings["B"])
