"""The error of a model that was learned from a table with missing values, without any complete row; and a forecast.

Each fold of the examples is scored by a model of the others. Two estimates of the error with all attributes are
combined:

- the expected loss given what a held-out example shows and its target, under the model with covariances that held-out
  products have corrected;
- the moment estimate, in which each product of two values counts by the inverse of the share of the examples that show
  it. It is unbiased if all examples are equally likely to show a pair, but varies much. So it counts for more the less
  it varies, and for little unless there are many examples.

A model of other examples has ``r = y - b - <w, m>`` for a held-out example, m being the expectation of x given the
values A that are present. Its loss with all attributes is ``(r - <w, x - m>)^2``, of which the second part is not seen.
Under the model, with ``V`` the covariance of x given A and ``beta`` the regressor that attributes and target imply,

    cov(<w, x>, y | A) = w'V beta,    var(y | A) = s^2 + beta'V beta.

The model's covariances are too large in the direction of w where it took chance for a common factor, because w was
learned from the same values. Held-out products of two values show by how much.

Models of all folds but one have seen fewer values than that of all examples. A learning curve makes up for this.

By the same curve, the reducible part of the error shrinks when more values are bought, and the rest stays. A forecast
assumes that they are bought at random, first of the examples of which least was bought. Well chosen orders bring more.
A study keeps its estimates and forecasts.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import NamedTuple

import numpy as np

from budgetreg.algorithms.conditional import conditional
from budgetreg.common.errors import DataError
from budgetreg.common.streams import generator
from budgetreg.runs.workers import computing
from budgetreg.study.file import StudyFile
from budgetreg.study.model import LEARNER, JointModel, learn, name_left_out, refuse_unlearnable, settled
from budgetreg.study.state import State

_FOLDS, _FEWEST, ENOUGH, _PLENTY = 5, 10, 50, 1000
"""Folds, the fewest examples that can be judged, how many make an estimate that is worth something, and so many that
others change little: further folds are left out."""

_QUANTILE = 1.645
"""Of the normal distribution, for intervals of 90 %."""

_MODEL, _CORRECTION, _BOUGHT = 0.2, 0.5, 0.05
"""Relative standard errors beyond those that the examples show: of the error with all attributes, for the model, and as
a share of what the correction of the covariances changes; and of the error with as many as were bought."""

_TRUST, _LEAST_SPREAD = 0.06, 0.1
"""Relative standard error at which the moment estimate counts half; and the least one, as it is itself estimated."""

_FLOOR, LARGEST = 0.25, 1.2
"""An estimate is at least this share of the expected loss under the model, and no end of an interval is larger."""

_CHUNK = 2**23
"""Numbers in the covariances that are held at a time."""

_SPREADS = (0.25, 0.5)
"""Prior standard deviations of the slopes of held-out products on the model's, about 1."""

_LARGEST_SLOPE, _SMALLEST_EIGENVALUE = 1.3, 1e-3
"""Largest slope; and the smallest eigenvalue of a corrected correlation."""

_NONE, _ROUNDING, _LARGEST_RIDGE = 1e-9, 1e-6, 1e6
"""Eigenvalues of a correlation that count as none, what rounding may change, and a ridge that leaves nothing."""

_EXAMPLES = 256
"""Examples that stand for all, if there are more."""

_ATTAINED = 0.75
"""Share of the excess that is gained with more values: attributes are not normal, and the floor is not that of a normal
distribution."""

_NOISE = 0.3
"""Share of the target's variance that is taken to be noise. An estimated error less the excess would be a worse guess:
its own error would be magnified."""


@dataclass(frozen=True)
class Interval:
    """An estimate with an interval that holds the truth with a probability of 90 %.

    Attributes
    ----------
    estimate, low, high : float
        From 0 to 1.2.
    """

    estimate: float
    low: float
    high: float

    @classmethod
    def around(cls, estimate: float, relative: float) -> "Interval":
        """Return the interval of an estimate above 0 with a relative standard error, on a logarithmic scale."""
        factor = float(np.exp(_QUANTILE * relative))
        estimate = min(estimate, LARGEST)
        return cls(float(estimate), float(estimate / factor), float(min(estimate * factor, LARGEST)))

    @property
    def relative(self) -> float:
        """The relative standard error, from the lower end."""
        return float(np.log(self.estimate / self.low) / _QUANTILE)


@dataclass(frozen=True)
class ErrorEstimate:
    """Mean squared errors for a new example, relative to those of the mean target.

    Attributes
    ----------
    complete : Interval
        All attributes of it are measured.
    as_bought : Interval
        As many of them are measured as were bought of an example, on average over those of which any was bought.
    judged : int
        How many examples were judged. Fewer than 50 say little.
    """

    complete: Interval
    as_bought: Interval
    judged: int


class Part(NamedTuple):
    """A model, and examples that it has not seen.

    Attributes
    ----------
    model : JointModel
        Learned from values, so that `shared` is set.
    X : ndarray of float, shape (n, d)
        NaN for missing values.
    y : ndarray of float, shape (n,)
        Targets.
    """

    model: JointModel
    X: np.ndarray
    y: np.ndarray

    @property
    def deviations(self) -> np.ndarray:
        """The attributes less the model's means, 0 where missing, shape (n, d)."""
        return np.where(self.known, self.X - self.model.mean, 0.0)

    @property
    def known(self) -> np.ndarray:
        """The present values, bool of shape (n, d)."""
        return ~np.isnan(self.X)


@dataclass(frozen=True)
class Losses:
    """Squared errors of held-out examples, each of shape (n,).

    Attributes
    ----------
    bought : ndarray of float
        ``r^2``, of predictions from the values that are present.
    unseen : ndarray of float
        ``w'V w``, the variance that the missing values leave.
    given : ndarray of float
        Expected loss with all attributes, given the values that are present and the target.
    """

    bought: np.ndarray
    unseen: np.ndarray
    given: np.ndarray


def error_ratios(
    model: JointModel, known: np.ndarray, variance: float, later: Sequence[np.ndarray | float]
) -> np.ndarray:
    """Return the ratios of the errors when other values were bought to the error now, one for each element.

    This is a learning curve of the error with all attributes.
    An example of which the values A are present adds ``(S - V) / (s2 + w'V w)`` to the precision M of the regressor, in
    expectation over the values. S is the covariance of the attributes, V that given A, w the regressor and s2 the
    noise. The error exceeds the noise by ``tr(S M^-1)``. All of it is in units of the attributes' standard deviations
    and of the target's variance. The prior precision is ``d / R``, as if regressors that explain a share R of the
    target were equally likely in all directions.

    Parameters
    ----------
    model : JointModel
    known : ndarray of bool, shape (n, d)
        The values that were bought so far.
    variance : float
        The target's variance.
    later : sequence of ndarray of bool, shape (n, d), or float
        The other values; a number stands for those that are known, and as many times as many examples.
    """
    units = model.units
    S, w = model.covariance / np.outer(units, units), model.w * units / np.sqrt(variance)
    present = _precision(S, w, known)
    excess = _excess(S, present)
    share = _ATTAINED * excess / (_NOISE + excess)
    ratios = []
    for values in later:
        if isinstance(values, np.ndarray):
            M, growth = _precision(S, w, values), values.sum() / max(known.sum(), 1)
        else:
            M, growth = values * present, values
        ratio = _excess(S, M) / excess if excess > 0 else 1.0
        # The excess changes at most as if it were inversely proportional to the number of values.
        bounded = max(ratio, 1 / growth) if growth >= 1 else min(ratio, 1 / growth)
        ratios.append(1 + share * (bounded - 1))
    return np.array(ratios)


def estimate_error(
    values: np.ndarray,
    targets: np.ndarray,
    *,
    seed: int,
    algo: str = LEARNER,
    n_jobs: int = 1,
) -> tuple[ErrorEstimate, JointModel]:
    """Return how large the error of the model of all examples is, estimated by cross-fitting, and this model.

    Examples that have a target and a value are judged, each by a model of the examples outside its fold, until 1,000
    are. All examples are learned from.

    Parameters
    ----------
    values : ndarray of float, shape (n, d)
        NaN for values that are not known.
    targets : ndarray of float, shape (n,)
        NaN for targets that are not known.
    seed : int
        Of folds and models.
    algo : str
        The learner, see `budgetreg.study.model.learn`.
    n_jobs : int
        Models that are learned at the same time; changes no result.

    Raises
    ------
    DataError
        If fewer than 10 examples have a target and a value, or their targets are all equal.
    """
    known = ~np.isnan(values)
    judged = np.flatnonzero(known.any(axis=1) & ~np.isnan(targets))
    if len(judged) < _FEWEST:
        few_targets = np.count_nonzero(~np.isnan(targets)) < _FEWEST
        more = "record the targets of more examples" if few_targets else "buy values of more examples"
        raise DataError(
            f"at least {_FEWEST} examples with a target and a value are needed to estimate the error; "
            f"there are {len(judged)}: {more}"
        )
    if np.ptp(targets[judged]) == 0:
        raise DataError("the targets of all examples with a value are equal, so there is no error to estimate")
    order = generator("folds of a table with holes", seed, len(judged)).permutation(judged)
    from joblib import delayed  # here, as most commands of a study learn nothing

    n_folds = min(_FOLDS, math.ceil(_FOLDS * _PLENTY / len(judged)))
    held_out = [order[fold::_FOLDS] for fold in range(n_folds)]
    others = [np.isin(np.arange(len(values)), held, invert=True) for held in held_out]
    everything = np.ones(len(values), dtype=bool)
    learners = (delayed(learn)(values[rows], targets[rows], seed=seed, algo=algo) for rows in (everything, *others))
    with computing(learners, n_jobs) as learned:
        model, *models = learned
    parts = [Part(each, values[held], targets[held]) for each, held in zip(models, held_out, strict=True)]
    means = [np.nanmean(targets[rows]) for rows in others]
    references = [np.square(part.y - mean) for part, mean in zip(parts, means, strict=True)]
    (ratio,) = error_ratios(model, known[judged], float(np.var(targets[judged])), [1 - 1 / _FOLDS])
    return combined(parts, np.concatenate(references), float(ratio)), model


def combined(parts: list[Part], reference: np.ndarray, ratio: float) -> ErrorEstimate:
    """Return the error of a model of all examples, given models of all folds but one.

    Parameters
    ----------
    parts : list of Part
        The folds, each with the model of the others.
    reference : ndarray of float, shape (n,)
        Squared errors of the mean of the other folds' targets, in the order of the parts.
    ratio : float
        That of the errors of these models to the error of the model of all examples.
    """
    plain = [losses(part) for part in parts]
    improved = [losses(part) for part in corrected(parts)]
    bought = np.concatenate([loss.bought for loss in plain])
    given = np.concatenate([loss.given for loss in improved])
    moments = unbiased(parts)
    center = _relative(given, reference)[0]
    spread = max(_relative(moments, reference)[1] / center, _LEAST_SPREAD)
    share = _TRUST**2 / (_TRUST**2 + spread**2)
    error, deviation = _relative((1 - share) * given + share * moments, reference)
    error = max(error, _FLOOR * center)
    final = error / ratio
    unseen = float(np.concatenate([loss.unseen for loss in plain]).mean())
    explained = float(np.mean([part.model.w @ part.model.covariance @ part.model.w for part in parts]))
    seen = max(1 - unseen / explained, 0.0) if explained > 0 else 0.0
    uncorrected = np.concatenate([loss.given for loss in plain]).mean()
    change = _CORRECTION * abs(np.log(given.mean() / uncorrected))
    loss, its_deviation = _relative(bought, reference)
    shown = loss - (error - final) * seen
    return ErrorEstimate(
        Interval.around(final, float(np.linalg.norm([min(deviation / error, 1.0), _MODEL, change]))),
        Interval.around(shown, float(np.hypot(min(its_deviation / loss, 1.0), _BOUGHT))),
        len(reference),
    )


def _relative(losses: np.ndarray, reference: np.ndarray) -> tuple[float, float]:
    """Return the ratio of two means over the examples, and its standard error."""
    ratio = losses.mean() / reference.mean()
    deviations = (losses - ratio * reference) / reference.mean()
    return float(ratio), float(deviations.std(ddof=1) / np.sqrt(len(losses)))


def losses(part: Part) -> Losses:
    """Return the losses of held-out examples under the model."""
    model, w = part.model, part.model.w
    beta = _regressor(model)
    center = model.b + w @ model.mean
    rest = max(model.target_variance - model.shared_with_target @ beta, 0.0)
    pieces = []
    step = max(1, _CHUNK // model.d**2)
    for start in range(0, len(part.y), step):
        X, y = part.X[start : start + step], part.y[start : start + step]
        known = model.conditional(X)
        shift = known.means - model.mean
        unseen, crossed, hidden = (
            np.einsum("i,pij,j->p", left, known.covariances, right, optimize=True)[known.pattern]
            for left, right in ((w, w), (w, beta), (beta, beta))
        )
        r = y - center - shift @ w
        variance = rest + hidden
        slope = crossed / np.where(variance > 0, variance, 1.0)
        given = np.square(r - slope * (y - center - shift @ beta)) + unseen - slope * crossed
        pieces.append((np.square(r), unseen, given))
    return Losses(*(np.concatenate(arrays) for arrays in zip(*pieces, strict=True)))


def corrected(parts: Sequence[Part]) -> list[Part]:
    """Return the parts with covariances corrected by the products of all held-out values.

    A correlation of two attributes is ``a1 c_i c_j + a2 (S_ij - c_i c_j)``, c being the correlations with the target.
    The slopes are those of the held-out products on both terms, shrunk towards 1 by how uncertain they are.
    """
    gram, products, scores = np.zeros((2, 2)), np.zeros(2), []
    for part in parts:
        terms = _terms(part.model)
        x, known = part.deviations / part.model.units, part.known.astype(float)
        shown = np.stack([((x @ term) * x).sum(axis=1) for term in terms], axis=1) / 2
        squares = [((known @ (terms[a] * terms[b])) * known).sum(axis=1) / 2 for a, b in ((0, 0), (0, 1), (1, 1))]
        gram += np.array([[squares[0].sum(), squares[1].sum()], [squares[1].sum(), squares[2].sum()]])
        products += shown.sum(axis=0)
        scores.append(shown - np.stack([squares[0] + squares[1], squares[1] + squares[2]], axis=1))
    slopes = _shrunk(gram, products, np.concatenate(scores))
    return [part._replace(model=_with_slopes(part.model, slopes)) for part in parts]


def unbiased(parts: Sequence[Part]) -> np.ndarray:
    """Return the moment estimate of the loss with all attributes, by example in the order of the parts, shape (n,).

    Each product counts by the inverse of the share of the examples that show it. Pairs that no example shows are those
    of the model.
    """
    known = np.concatenate([part.known for part in parts]).astype(float)
    single, pairs = known.mean(axis=0), known.T @ known / len(known)
    inverse, inverse_pairs = (np.where(share > 0, 1 / np.where(share > 0, share, 1), 0) for share in (single, pairs))
    pieces = []
    for part in parts:
        w = part.model.w
        t = part.y - part.model.b - w @ part.model.mean
        x = part.deviations * w
        never = np.where(pairs > 0, 0.0, part.model.covariance)
        square = ((x @ inverse_pairs) * x).sum(axis=1) + w @ never @ w
        crossed = (x @ inverse) * t + w @ np.where(single > 0, 0.0, part.model.shared_with_target)
        pieces.append(np.square(t) - 2 * crossed + square)
    return np.concatenate(pieces)


def _regressor(model: JointModel) -> np.ndarray:
    """Return ``beta``, the covariance's inverse times that with the target, also if attributes determine each other.

    It explains at most the target's variance: a ridge grows until it does. Corrected covariances are no longer those of
    one distribution, and may be almost singular where attributes and target are shared.
    """
    units, variance = model.units, model.target_variance
    values, U = np.linalg.eigh(model.covariance / np.outer(units, units))
    along = (model.shared_with_target / units) @ U
    along[values <= _NONE * values.max()] = 0.0
    ridge, values = 0.0, np.maximum(values, _NONE)
    while (np.square(along) / (values + ridge)).sum() > variance * (1 + _ROUNDING) and ridge < _LARGEST_RIDGE:
        ridge = max(2 * ridge, _SMALLEST_EIGENVALUE)
    return np.asarray(U @ (along / (values + ridge)) / units)


def _terms(model: JointModel) -> np.ndarray:
    """Return the off-diagonal terms of the model's correlations, shape (2, d, d)."""
    units = model.units
    correlations = model.covariance / np.outer(units, units)
    target = np.sqrt(max(model.target_variance, np.finfo(float).tiny))
    c = np.clip(model.shared_with_target / units / target, -1.0, 1.0)
    terms = np.stack([np.outer(c, c), correlations - np.outer(c, c)])
    np.einsum("tii->ti", terms)[:] = 0.0
    return terms


def _shrunk(gram: np.ndarray, products: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the posterior mean of the slopes, given sums over examples whose scores vary as they are seen to."""
    weights = gram @ np.linalg.pinv(scores.T @ scores, hermitian=True)
    prior = np.diag(1 / np.square(_SPREADS))
    slopes = np.linalg.solve(weights @ gram + prior, weights @ products + prior @ np.ones(2))
    return np.clip(slopes, 0.0, _LARGEST_SLOPE)


def _with_slopes(model: JointModel, slopes: np.ndarray) -> JointModel:
    """Return the model with other correlations, which keep positive eigenvalues."""
    units, terms = model.units, _terms(model)
    values, U = np.linalg.eigh(slopes[0] * terms[0] + slopes[1] * terms[1] + np.eye(model.d))
    correlations = (U * np.maximum(values, _SMALLEST_EIGENVALUE)) @ U.T
    covariance = correlations * np.outer(units, units)
    w, shared = model.w, model.shared_with_target
    noise = model.target_variance - 2 * w @ shared + w @ covariance @ w
    return replace(model, covariance=covariance, noise=float(noise), shared=shared)


def _precision(S: np.ndarray, w: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the precision (d, d) that examples with some known values add in all; attributes have variance 1."""
    rows = known[known.any(axis=1)]
    if not len(rows):
        return np.zeros_like(S)
    some = rows[np.unique(np.linspace(0, len(rows) - 1, _EXAMPLES).round().astype(int))]
    given = conditional(np.zeros(len(w)), S, np.where(some, 0.0, np.nan))
    V = given.covariances
    counts = np.bincount(given.pattern, minlength=len(V))
    left = np.einsum("i,pij,j->p", w, V, w, optimize=True)
    weights = counts / (_NOISE + np.maximum(left, 0)) * (len(rows) / len(some))
    return np.asarray(weights.sum() * S - np.einsum("p,pij->ij", weights, V))


def _excess(S: np.ndarray, M: np.ndarray) -> float:
    """Return ``tr(S M^-1)`` with the prior's precision added to M."""
    prior = len(S) / (1 - _NOISE)
    return float(np.trace(np.linalg.solve(M + prior * np.eye(len(S)), S)))


_FURTHER = (0.5, 1.0, 2.0)
"""For how many times the money that was spent there is a forecast."""

_GAIN, _OTHER = 0.3, 0.05
"""Standard errors of a forecast beyond that of the error now: a share of the gain, on a logarithmic scale, and what the
forecast for little money is off."""


@dataclass(frozen=True)
class Estimates:
    """Estimates of the error of a study at a moment.

    Attributes
    ----------
    spent : float
        What was charged by then.
    error : ErrorEstimate
        The error, relative to that of the mean target.
    further : sequence of (float, Interval)
        Further spendings, at most the price of all that can still be bought, and the errors with all attributes after
        them.
    """

    spent: float
    error: ErrorEstimate
    further: Sequence[tuple[float, Interval]]


def estimates_of(state: State, n_jobs: int = 1) -> Estimates:
    """Compute the estimates of a study; `n_jobs` as for `estimate_error`.

    Raises
    ------
    DataError
        If too little is known.
    """
    refuse_unlearnable(state)
    seed, algo = int(state.facts["seed"]), state.facts["algo"]
    error, model = estimate_error(state.values, state.y, seed=seed, algo=algo, n_jobs=n_jobs)
    name_left_out(state, model)
    # What is on order will be paid for when it comes.
    left = ~(state.known | _closed(state, model)) & state.known_targets[:, None]
    price = float((state.by_unit(left) * state.unpaid).sum())
    spendings = sorted({min(state.spent * times, price) for times in _FURTHER} - {0.0})
    return Estimates(state.spent, error, list(zip(spendings, forecast_of(state, model, error, spendings), strict=True)))


def forecast_of(state: State, model: JointModel, error: ErrorEstimate, spendings: Sequence[float]) -> list[Interval]:
    """Return the errors of a study with all attributes after further spendings."""
    closed, seed = _closed(state, model), int(state.facts["seed"])
    return forecast(
        model, state.values, state.y, error.complete, spendings, state.unpaid, state.heads, closed=closed, seed=seed
    )


def _closed(state: State, model: JointModel) -> np.ndarray:
    """Return which cells no order will buy, bool of shape (n, d)."""
    return state.unavailable | state.excluded | (settled(state, model) & ~state.on_order)


def keep(store: StudyFile, state: State, estimates: Estimates) -> None:
    """Record the estimates of a state; in a block of `StudyFile.writing`."""
    content = {
        "complete": astuple(estimates.error.complete),
        "as_bought": astuple(estimates.error.as_bought),
        "judged": estimates.error.judged,
        "further": [[spending, *astuple(interval)] for spending, interval in estimates.further],
    }
    row = (state.version, estimates.spent, json.dumps(content))
    store.change("INSERT INTO estimates VALUES (?, ?, ?) ON CONFLICT DO NOTHING", [row])


def kept(store: StudyFile) -> dict[int, Estimates]:
    """Return all estimates that were recorded, by the version of the state, in their order."""
    result = {}
    for version, spent, text in store.rows("SELECT state, spent, content FROM estimates ORDER BY state"):
        content = json.loads(text)
        judged = content.get("judged", ENOUGH)  # which estimates of earlier versions lack
        error = ErrorEstimate(Interval(*content["complete"]), Interval(*content["as_bought"]), judged)
        further = [(spending, Interval(*numbers)) for spending, *numbers in content["further"]]
        result[version] = Estimates(spent, error, further)
    return result


def forecast(
    model: JointModel,
    values: np.ndarray,
    targets: np.ndarray,
    error: Interval,
    spendings: Sequence[float],
    prices: np.ndarray,
    heads: np.ndarray,
    *,
    closed: np.ndarray,
    seed: int,
) -> list[Interval]:
    """Return the errors with all attributes after further spendings, with intervals of 90 %.

    Parameters
    ----------
    model : JointModel
        What was learned from the values.
    values : ndarray of float, shape (n, d)
        NaN for values that were not bought.
    targets : ndarray of float, shape (n,)
        NaN for unknown targets. Values are bought of examples with a target alone.
    error : Interval
        The error now, see `estimate_error`.
    spendings : sequence of float
        What is spent in addition, at least 0 each. What exceeds the price of all that is left changes nothing.
    prices : ndarray of float, shape (d,) or (n, d)
        What attributes cost, at least 0, perhaps of each example; of a group, the price of its first attribute counts,
        once.
    heads : ndarray of int, shape (d,)
        The first attribute of each attribute's group: itself, if it is alone.
    closed : ndarray of bool, shape (n, d)
        Values that cannot be bought any more.
    seed : int
        Of the values that are taken to be bought.
    """
    labelled = ~np.isnan(targets)
    known, closed = ~np.isnan(values[labelled]), closed[labelled]
    prices = np.broadcast_to(prices, values.shape)[labelled]
    if not known.any():
        return [error for _ in spendings]
    order = _order(known | closed, prices, heads, generator("values of a forecast", seed, len(known)))
    later = [known | (_bought(order, prices, heads, spending, known.shape) & ~closed) for spending in spendings]
    ratios = error_ratios(model, known, float(np.var(targets[labelled])), later)
    return [
        Interval.around(error.estimate * float(r), float(np.hypot(error.relative, _OTHER + _GAIN * abs(np.log(r)))))
        for r in ratios
    ]


def _order(known: np.ndarray, prices: np.ndarray, heads: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return what is left to buy, in order, as examples and heads of groups, shape (m, 2)."""
    units = np.unique(heads)
    whole = np.stack([known[:, heads == unit].all(axis=1) for unit in units], axis=1)
    draws = np.where(whole, -1.0, rng.random(whole.shape))
    # How many an example has once this one is bought: those it has come first, the others in random order.
    level = draws.argsort(axis=1).argsort(axis=1) + 1
    example, unit = np.nonzero(~whole)
    order = np.lexsort((rng.random(len(example)), level[example, unit], prices[example, units[unit]] > 0))
    return np.stack([example, units[unit]], axis=1)[order]


def _bought(
    order: np.ndarray, prices: np.ndarray, heads: np.ndarray, spending: float, shape: tuple[int, ...]
) -> np.ndarray:
    """Return what is bought with a spending, bool of shape (n, d)."""
    costs = np.cumsum(prices[tuple(order.T)])
    example, head = order[: np.searchsorted(costs, spending * (1 + 1e-9), side="right")].T
    bought = np.zeros(shape, dtype=bool)
    bought[example, head] = True
    return bought[:, heads]
