"""The target regressed on the attributes that were seen, and its average with the regressor of the factor model.

The regression is given the covariance of all attributes. Attributes are ``N(m, M)``, S are those that an example shows,
and ``y = w'x + e``. Without those that are unseen,

    y | x_S  ~  N(w'h, s + u(w)),   h = m + M_.S A (x_S - m_S),   A = M_SS^-1,   u(w) = w'M w - w'M_.S A M_S. w.

M comes from the factor model and stays as it is, so that unseen values are never drawn and the weights of a few hundred
attributes cost a few matrix products. Unlike in the factor model, no factor has to carry the target, so that targets
with little noise, and those of few attributes, are not shrunk by the factors' prior.

References
----------
H. Akaike. A new look at the statistical model identification. IEEE Transactions on Automatic Control 19, 1974.
E. I. George, R. E. McCulloch. Variable selection via Gibbs sampling. JASA 88, 1993: the mixture.
E. Makalic, D. F. Schmidt. A simple sampler for the horseshoe estimator. IEEE Signal Processing Letters 23, 2016: the
half-Cauchy distribution as a mixture of inverse gamma distributions.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from itertools import groupby
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtrs
from scipy.sparse import csr_array, vstack
from scipy.special import expit, logit, logsumexp

from budgetreg.algorithms.factors.posterior import LEAST_NOISE, Known
from budgetreg.metering.table import WithIntercept
from budgetreg.revealed.collection import dense_rows, sum_by_columns
from budgetreg.revealed.columns import Moments

_ROUNDS, _COMPLETE_ROUNDS, _SWEEPS, _LAST = 6, 15, (3, 7), (9, 30)
"""Rounds of `solve`, also if examples are complete; and (burn-in, kept) sweeps of each, and of the
last. With more rounds the noise variance becomes too small where M is off, which has no effect on complete examples."""

_FEW, _MORE = 100, 4
"""Up to so many weights, so many times the sweeps in the last round: they cost little there, and the chain's noise is
visible."""

_SHARE_FOR_DRAWS = 0.3
"""Share of the differences of u between examples that is used where only draw probabilities are wanted: weights that
noise makes large are explored, and those that count are found earlier."""

_NOISES = np.geomspace(1e-3, 1.5, 80)[:, None]
"""Grid of the noise variance s, in variances of the target."""

_CHUNK, _MAX_INVERSES = 2**21, 2**27
"""Entries of the inverses A that are computed at a time, and of all that are kept. If examples show so many attributes
that there would be more, the first examples that fit are used."""

_AT_ONCE = 2**22
"""Entries of the matrices of streams that are solved together: NumPy's calls take longer than small systems do."""


class TargetRegression:
    """Regression of one stream's target on its attributes.

    Parameters
    ----------
    blocks : sequence of tuple of ndarray
        Attributes and values (T, n + 1) in standardised columns, the target last. Missing attributes have the number
        d + 1, as has the target where it is unknown.
    live : ndarray of int, shape (p,)
        The attributes to use.
    M : ndarray of float, shape (p, p)
        Their covariance, positive definite.
    first : ndarray of float, shape (d + 1,)
        Means of the columns.
    origin : ndarray of float, shape (d + 1,)
        The point through which predictions go.

    Attributes
    ----------
    live : ndarray of int, shape (p,)
    M : ndarray of float, shape (p, p)
    p : int
        Number of weights.
    examples : int
        Number of examples that are used: those with a known target, while there is space.
    variance : float
        Variance of their targets; 0 without examples.
    seen : float
        Share of the pairs of live attributes that examples show on average, 1 if all show all of them.
    mean_unseen : ndarray of float, shape (p, p)
        A matrix A such that ``w'A w`` is the mean of u(w) over examples.
    """

    complete: ClassVar[bool] = False
    """Whether all examples show all live attributes."""

    _space: ClassVar[int] = _MAX_INVERSES

    def __init__(
        self,
        blocks: Sequence[tuple[np.ndarray, np.ndarray]],
        live: np.ndarray,
        M: np.ndarray,
        first: np.ndarray,
        origin: np.ndarray,
    ) -> None:
        self.live, self.p, self.M, self._means = live, len(live), M, (first - origin)[live]
        used, space = [], self._space
        for attributes, values in blocks:
            size = (attributes.shape[1] - 1) ** 2
            known = np.flatnonzero(attributes[:, -1] == len(first) - 1)[: space // size]
            space -= known.size * size
            used.append((attributes[known], values[known]))
        self._y = np.concatenate([np.zeros(0), *(values[:, -1] for _, values in used)]) - origin[-1]
        self.examples = len(self._y)
        self.variance = float(self._y.var()) if self.examples else 0.0
        self._noises = _NOISES * self.variance
        self._arrange([(attributes[:, :-1], values[:, :-1]) for attributes, values in used], live, first, origin)

    def _arrange(
        self, used: list[tuple[np.ndarray, np.ndarray]], live: np.ndarray, first: np.ndarray, origin: np.ndarray
    ) -> None:
        """Arrange the attributes and values of the examples that are used."""
        p, M = self.p, self.M
        position = np.full(len(first) + 1, p)  # p: not live, or missing
        position[live] = np.arange(p)
        means = np.append(first[live], 0.0)
        self.parts: list[tuple[np.ndarray, np.ndarray]] = []
        self._inverses = np.zeros((p, p))
        pairs = 0.0
        rows = [csr_array((0, p + 1))]
        for attributes, values in used:
            seen = position[attributes]
            pairs += np.square((seen < p).sum(axis=1) / p).sum()
            x = np.where(seen < p, values - means[seen], 0.0)
            step = max(1, _CHUNK // seen.shape[1] ** 2)
            rows += [self._add(seen[i : i + step], x[i : i + step]) for i in range(0, len(seen), step)]
        self.seen = float(pairs / max(self.examples, 1))
        self._rows = vstack(rows).tocsr()[:, :p]  # h = m + M rows
        self._columns = self._rows.T.tocsr()
        explained = M @ (self._inverses / max(self.examples, 1)) @ M
        self.mean_unseen = M - (explained + explained.T) / 2

    def _add(self, seen: np.ndarray, x: np.ndarray) -> csr_array:
        """Keep the inverses of some examples, and return ``A x_S`` of each as a row of p + 1 columns."""
        p, n = self.p, seen.shape[1]
        padded, diagonal = np.zeros((p + 1, p + 1)), np.arange(n)
        padded[:p, :p] = self.M
        K = padded[seen[:, :, None], seen[:, None, :]]
        K[:, diagonal, diagonal] += seen == p
        A = np.linalg.inv(K) * ((seen < p)[:, :, None] & (seen < p)[:, None, :])
        self.parts.append((seen, A.astype(np.float32)))
        self._inverses += sum_by_columns(seen, A, p)
        values = (A @ x[:, :, None]).reshape(-1)
        return csr_array((values, seen.reshape(-1), np.arange(0, seen.size + 1, n)), (len(seen), p + 1))

    def predicted(self, w: np.ndarray) -> np.ndarray:
        """Return ``w'h`` of each example, given w of shape (p,)."""
        return np.asarray(self._rows @ (self.M @ w) + self._means @ w)

    def unseen(self, w: np.ndarray) -> np.ndarray:
        """Return ``u(w)`` of each example."""
        shared = self.M @ w
        padded = np.append(shared, 0.0)
        explained = [((A @ (x := padded.take(seen))[:, :, None])[..., 0] * x).sum(axis=1) for seen, A in self.parts]
        return np.maximum(w @ shared - np.concatenate(explained), 0.0)

    def squared_errors(self, w: np.ndarray) -> np.ndarray:
        """Return the squared error of each example's target."""
        return np.asarray((self._y - self.predicted(w)) ** 2)

    def log_densities(self, w: np.ndarray) -> np.ndarray:
        """Return the log densities (T,) of targets given what their examples show, at the best noise variance.

        Constants are left out.
        """
        variances = self._noises + self.unseen(w)
        densities = -(np.log(variances) + self.squared_errors(w) / variances) / 2
        return np.asarray(densities[densities.mean(axis=1).argmax()])

    def within_bounds(self, w: np.ndarray) -> np.ndarray:
        """Return w, shortened if it explains more than the target's variance.

        Otherwise the weight of a rarely seen attribute could escape: u grows with it, so that the examples that do not
        show the attribute count less, and the weight grows again.
        """
        explained = float(w @ self.M @ w)
        return w * np.sqrt(min(1.0, self.variance / max(explained, np.finfo(float).tiny)))

    def equations(self, weights: np.ndarray) -> Equations:
        """Return the normal equations of the examples with these weights (T,)."""
        y, M, m = self._y, self.M, self._means
        weighted = self._rows.copy()
        weighted.data *= np.repeat(weights, np.diff(weighted.indptr))
        Q = M @ (self._columns @ weighted).toarray() @ M
        shared = np.outer(M @ (self._columns @ weights), m)
        Q += shared + shared.T + weights.sum() * np.outer(m, m)
        return Equations(Q, M @ (self._columns @ (weights * y)) + (weights @ y) * m, float(weights @ np.square(y)))

    def noise(self, squares: np.ndarray, u: np.ndarray, share: float) -> float:
        """Return the posterior mean of s, given squared errors and u of the examples; its differences have a share."""
        variances = self._noises + share * u + (1 - share) * u.mean()
        density = -(np.log(variances) + squares / variances).sum(axis=1) / 2
        density -= np.log(self._noises[:, 0]) + LEAST_NOISE * self.variance / self._noises[:, 0]
        return float(np.exp(density - logsumexp(density)) @ self._noises[:, 0])


class CompleteRegression(TargetRegression):
    """The same for examples that all show all live attributes: nothing is unseen, and M and the means do not matter.

    Parameters
    ----------
    blocks, live, M, first, origin
        As for `TargetRegression`.
    """

    complete = True
    seen = 1.0
    _space = sys.maxsize  # nothing is inverted

    def _arrange(
        self, used: list[tuple[np.ndarray, np.ndarray]], live: np.ndarray, first: np.ndarray, origin: np.ndarray
    ) -> None:
        rows = [dense_rows(attributes, values, len(first))[:, live] - origin[live] for attributes, values in used]
        self._x, self.mean_unseen = np.concatenate([np.zeros((0, self.p)), *rows]), np.zeros((self.p, self.p))

    def predicted(self, w: np.ndarray) -> np.ndarray:
        """Return ``w'x`` of each example."""
        return np.asarray(self._x @ w)

    def unseen(self, w: np.ndarray) -> np.ndarray:
        """Return 0 for each example."""
        return np.zeros(self.examples)

    def within_bounds(self, w: np.ndarray) -> np.ndarray:
        """Return w: no example can count less than another."""
        return w

    @cached_property
    def _unweighted(self) -> Equations:
        x, y = self._x, self._y
        return Equations(x.T @ x, x.T @ y, float(y @ y))

    def equations(self, weights: np.ndarray) -> Equations:
        """Return the normal equations of the examples with these weights (T,), which are equal."""
        same, (Q, r, squares) = float(weights[0]), self._unweighted
        return Equations(same * Q, same * r, same * squares)


# Draws of a regression's weights, of which few may be large.
#
# Each weight is large with probability pi: ``w_i ~ N(0, t)`` if large, and ``N(0, s t)`` otherwise, with a fixed small
# s. The root of t is half-Cauchy with scale ``sqrt(v / m)``, v the target's variance and m the number of large weights,
# so that m weights may explain it all; and pi is uniform. Dense regressors have pi near 1, sparse ones near 0. s is
# 1 / p, so that all small weights together count at most as much as a large one, or 1 / 100 if that is less.
#
# Chains of several regressions of p weights each advance together, because NumPy's calls take longer than small systems
# do. A chain's draws depend on no other.

_LEAST_SMALL = 100
"""1 / s is the number of weights, or this if that is more."""

_IN_TURN = 3
"""In one of so many sweeps, large weights are drawn in turn, which takes longer."""


class Equations(NamedTuple):
    """Normal equations of a regression with weighted examples.

    Attributes
    ----------
    Q : ndarray of float, shape (p, p)
        Sum of the attributes' products.
    r : ndarray of float, shape (p,)
        Sum of their products with the target.
    squares : float
        Sum of the target's squares.
    """

    Q: np.ndarray
    r: np.ndarray
    squares: float

    def residual(self, w: np.ndarray) -> float:
        """Return the sum of squares that the regressor w leaves, at least a tiny positive number."""
        return max(self.squares - 2 * float(self.r @ w) + float(w @ self.Q @ w), 1e-9)


class Draws(NamedTuple):
    """Means over draws of the weights.

    Attributes
    ----------
    mean : ndarray of float, shape (p,)
    residual : float
        Mean of `Equations.residual`.
    form : float
        Mean of the quadratic form.
    square : ndarray of float, shape (p,)
        Mean of the squares.
    parameters : float
        Effective number of weights: what a draw leaves in the mean more than their mean does, in variances.
    noise : float
        Variance of the target given all attributes with which the examples were weighted; 0 if that is unknown.
    """

    mean: np.ndarray
    residual: float
    form: float
    square: np.ndarray
    parameters: float
    noise: float = 0.0


class WeightsPrior:
    """The states of the prior's own parameters in the Gibbs chains of G regressions.

    Parameters
    ----------
    p : int
        Number of weights of each.
    variances : sequence of float
        Variance v of each target.
    large : bool
        Whether all weights are large at first, or none is.
    """

    def __init__(self, p: int, variances: Sequence[float], *, large: bool) -> None:
        G, at_first = len(variances), p if large else 1
        self._p, self._v, self._small = p, variances, 1 / max(p, _LEAST_SMALL)
        self._t = np.array(variances)[:, None] / at_first
        self._inverse_a = [at_first / v for v in variances]
        self._large, self._pi = np.full((G, p), large), np.full((G, 1), 0.5 if large else 1 / (p + 1))
        self._w = np.zeros((G, p))

    def draw(
        self,
        equations: Sequence[Equations],
        rngs: Sequence[np.random.Generator],
        sweeps: tuple[int, int],
        *,
        forms: Sequence[np.ndarray],
        penalties: Sequence[float],
    ) -> list[Draws]:
        """Draw weights and the prior's parameters in turn, and return the means of each regression.

        Parameters
        ----------
        equations : sequence of Equations
            The examples of each regression, weighted by their precisions.
        rngs : sequence of numpy.random.Generator
        sweeps : tuple of int
            Sweeps before those that are averaged, and those.
        forms : sequence of ndarray of float, shape (p, p)
            A matrix A, of the quadratic form ``w'A w``.
        penalties : sequence of float
            The density is multiplied by ``exp(-penalty w'A w / 2)``.
        """
        before, kept = sweeps
        bases = np.stack([of.Q + penalty * A for of, A, penalty in zip(equations, forms, penalties, strict=True)])
        r = np.stack([of.r for of in equations])
        mean, square = np.zeros_like(r), np.zeros_like(r)
        residuals, sizes = np.zeros(len(r)), np.zeros(len(r))
        both = np.empty((*r.shape[:1], 2, self._p))
        for sweep in range(before + kept):
            if sweep % _IN_TURN == 0:
                self._draw_in_turn(bases, r, rngs)
            else:
                self._draw_large(rngs)
            precisions = bases.copy()
            np.einsum("gii->gi", precisions)[:] += 1 / np.where(self._large, self._t, self._small * self._t)
            for root, right, right_and_half, rng in zip(np.linalg.cholesky(precisions), r, both, rngs, strict=True):
                # LAPACK itself, which reads matrices by columns, hence the transposes: if systems are small, the
                # checks of SciPy's solve_triangular take longer than solving.
                half, _ = dtrtrs(root.T, right, trans=1)
                right_and_half[:] = half
                right_and_half[1] += rng.standard_normal(self._p)
                right_and_half[:] = dtrtrs(root.T, right_and_half.T)[0].T
            self._w = both[:, 1].copy()
            self._draw_parameters(rngs)
            if sweep >= before:
                mean += both[:, 0] / kept
                square += np.square(self._w) / kept
                for g, (w, of, form) in enumerate(zip(self._w, equations, forms, strict=True)):
                    residuals[g] += of.residual(w) / kept
                    sizes[g] += float(w @ form @ w) / kept
        parameters = [
            max(0.0, x - of.residual(w)) for x, of, w in zip(residuals.tolist(), equations, mean, strict=True)
        ]
        return list(map(Draws, mean, residuals.tolist(), sizes.tolist(), square, parameters))

    def _draw_in_turn(self, bases: np.ndarray, r: np.ndarray, rngs: Sequence[np.random.Generator]) -> None:
        """Draw, for one weight after the other, whether it is large, whatever its value, and then the weight.

        The density is ``exp(r'w - w' base w / 2)`` times the prior. A weight that is small now can become large
        although no value of it is likely for both, which hardly happens in `_draw_large`.
        """
        p, a = self._p, np.einsum("gii->gi", bases)
        uniform, normal = map(np.stack, zip(*((rng.random(p), rng.standard_normal(p)) for rng in rngs), strict=True))
        # of a weight given the others, if small and if large
        small, large = (t / (1 + a * t) for t in (self._small * self._t, self._t))
        odds = logit(self._pi) - logit(uniform) + np.log(large / small * self._small) / 2
        gain, variances = (large - small) / 2, np.stack([small, large], axis=2)
        noise = normal[:, :, None] * np.sqrt(variances)
        # Lists, because single numbers of an array are slow to read.
        of_all = (of.tolist() for of in (self._w, a, odds, gain, variances, noise))
        for base, w, is_large, right, *single in zip(bases, self._w, self._large, r, *of_all, strict=True):
            left = right - base @ w
            for i, (old, a_i, odds_i, gain_i, variance, e) in enumerate(zip(*single, strict=True)):
                alone = left.item(i) + a_i * old
                now_large = odds_i + gain_i * alone**2 > 0
                w[i] = variance[now_large] * alone + e[now_large]
                left -= base[i] * (w.item(i) - old)
                is_large[i] = now_large

    def _draw_large(self, rngs: Sequence[np.random.Generator]) -> None:
        odds = logit(self._pi) + np.log(self._small) / 2 + self._w**2 / (2 * self._t) * (1 / self._small - 1)
        self._large = np.stack([rng.random(self._p) for rng in rngs]) < expit(odds)

    def _draw_parameters(self, rngs: Sequence[np.random.Generator]) -> None:
        sizes = (np.square(self._w) / np.where(self._large, 1.0, self._small)).sum(axis=1).tolist()
        for g, (large, size, rng) in enumerate(zip(self._large.sum(axis=1).tolist(), sizes, rngs, strict=True)):
            self._pi[g] = min(max(rng.beta(1 + large, 1 + self._p - large), 1e-6), 1 - 1e-6)
            t = (size / 2 + 1 / self._inverse_a[g]) / rng.standard_gamma((self._p + 1) / 2)
            self._inverse_a[g] = (max(1, large) / self._v[g] + 1 / t) / rng.standard_gamma(1.0)
            self._t[g] = t


class _Chain:
    """What the rounds of a regression's chain hand on: the noise variance s, u of each example, and the penalty.

    Examples are weighted by ``1 / (s + u)``, u from the weights of the round before. The likelihood also depends on w
    through u; the quadratic penalty has a share of its gradient.
    """

    def __init__(self, regression: TargetRegression, share: float) -> None:
        v = regression.variance
        self._regression, self._share = regression, share
        self.noise, self._u, self.penalty = v / 2, np.full(regression.examples, v / 2), 0.0
        self._is_new = True

    @property
    def equations(self) -> Equations:
        """Normal equations of the weighted examples."""
        return self._regression.equations(1 / (self.noise + self._u))

    def revise(self, equations: Equations, draws: Draws) -> None:
        """Revise s, u and the penalty by the weights that were drawn from these equations."""
        regression, share = self._regression, self._share
        w = regression.within_bounds(draws.mean)
        # Squares of draws, not those of their mean, are what the likelihood expects.
        new = regression.unseen(w)
        new *= draws.form / max(new.mean(), np.finfo(float).tiny)
        self._u = new if self._is_new else (self._u + new) / 2
        squares = regression.squared_errors(w) * (draws.residual / equations.residual(w))
        self.noise = regression.noise(squares, self._u, share)
        variances = self.noise + self._u
        penalty = share * max(0.0, float((1 - squares / variances).sum() / variances.mean()))
        self.penalty = penalty if self._is_new else (self.penalty + penalty) / 2
        self._is_new = False


def solve(
    regressions: Sequence[TargetRegression],
    rngs: Sequence[np.random.Generator],
    tails: Sequence[float],
    *,
    for_draws: bool = False,
) -> list[Draws]:
    """Return draws of the weights of each regression from their posterior under the mixture prior of `WeightsPrior`.

    A chain seldom gets from many large weights to few, or back, so one starts from each. They count in proportion to
    exp of the log density of the targets less `tails` times the effective number of weights (Akaike 1974). If all
    examples are complete, one start is enough. u is made of second moments, which tell `tails` times less than those of
    normal values, so that many times less of how it differs between examples is used. If only draw probabilities are
    wanted, this share is `_SHARE_FOR_DRAWS`, and the last round has fewer sweeps.

    Parameters
    ----------
    regressions : sequence of TargetRegression
        With equally many weights, all complete or none. A result depends on no other regression.
    rngs : sequence of numpy.random.Generator
    tails : sequence of float
        How many examples tell as much as one of normal values.
    for_draws : bool
        Whether only draw probabilities are wanted.
    """
    shares = [_SHARE_FOR_DRAWS if for_draws else 1 / each for each in tails]
    chains = [
        _chains(regressions, rngs, shares, large=large, exact=not for_draws)
        for large in ((True,) if regressions[0].complete else (True, False))
    ]
    return [_by_score(*of) for of in zip(regressions, tails, *chains, strict=True)]


def _chains(
    regressions: Sequence[TargetRegression],
    rngs: Sequence[np.random.Generator],
    shares: Sequence[float],
    *,
    large: bool,
    exact: bool,
) -> list[Draws]:
    """Return draws of chains that start with all weights large, or none."""
    p, complete = regressions[0].p, regressions[0].complete
    prior = WeightsPrior(p, [regression.variance for regression in regressions], large=large)
    chains = list(map(_Chain, regressions, shares))
    forms = [regression.mean_unseen for regression in regressions]

    def draw(sweeps: tuple[int, int]) -> tuple[list[Equations], list[Draws]]:
        equations = [chain.equations for chain in chains]
        penalties = [chain.penalty for chain in chains]
        return equations, prior.draw(equations, rngs, sweeps, forms=forms, penalties=penalties)

    for _ in range((_COMPLETE_ROUNDS if complete else _ROUNDS) - 1):
        for chain, equations, draws in zip(chains, *draw(_SWEEPS), strict=True):
            chain.revise(equations, draws)
    times, (before, kept) = _MORE if p <= _FEW and exact else 1, _LAST
    _, last = draw((times * before, times * kept))
    return [
        draws._replace(mean=regression.within_bounds(draws.mean), noise=chain.noise)
        for regression, chain, draws in zip(regressions, chains, last, strict=True)
    ]


def _by_score(regression: TargetRegression, tails: float, *chains: Draws) -> Draws:
    """Return the average of the draws of a regression's chains, each by what its mean explains."""
    scores = np.array([regression.log_densities(draws.mean).sum() - tails * draws.parameters for draws in chains])
    shares = np.exp(scores - logsumexp(scores))
    return Draws(*(sum(share * x for share, x in zip(shares, of, strict=True)) for of in zip(*chains, strict=True)))


# The average of the factor model's regressor and of this regression. The regression fits errors of M as well, and
# counts as far as it is clearly better: by the difference of log likelihoods of the targets revealed, less what it owes
# to the weights being fitted to these targets, which is their effective number, and less two standard errors. Where
# tails are heavy, errors of M weigh as much as if examples were fewer, and so does the number of weights. All that is
# deducted counts by the share of pairs of attributes that examples do not show, for which the regression relies on M:
# otherwise a few incomplete examples among complete ones would take away what the complete ones have shown. If all
# examples are complete, nothing is deducted, and the other regressor is that of `StandardisedEntries.sample_moments`,
# which is ridge's.

_ERRORS = 2.0
"""Standard errors that the difference must exceed."""


def stream_regression(known: Known, origin: np.ndarray, f: int) -> TargetRegression | None:
    """Return the regression of a stream's target on the attributes that may have a weight.

    There is none if the target or all attributes have too few values, or if the targets are all equal.
    """
    is_live = known.standardised.live[f]
    live = np.flatnonzero(is_live[:-1] & np.isfinite(known.inflation[f]) & is_live[-1])
    if not live.size:
        return None
    first = known.moments.first[f]
    M = (known.moments.second[f] - np.outer(first, first))[np.ix_(live, live)]
    blocks = [(block.attributes[f], block.values[f]) for block in known.standardised.blocks]
    # Examples of which nothing was seen tell nothing of the weights, and would hide that all others are complete.
    some = [(attributes[:, :-1] < len(first) - 1).any(axis=1) for attributes, _ in blocks]
    blocks = [(i[shown], x[shown]) for (i, x), shown in zip(blocks, some, strict=True)]
    complete = all((np.isin(attributes[:, :-1], live).sum(axis=1) == live.size).all() for attributes, _ in blocks)
    regression = (CompleteRegression if complete else TargetRegression)(blocks, live, M, first, origin[f])
    return regression if regression.variance else None


def _solved(
    known: Known, origin: np.ndarray, rngs: Sequence[np.random.Generator], *, for_draws: bool
) -> Iterator[tuple[int, TargetRegression, Draws]]:
    """Yield number, regression and draws of each stream that has a regression; small ones are solved together."""
    blocks = known.standardised.blocks
    size = origin.shape[1] ** 2 + sum(block.values[0].size * block.values.shape[2] for block in blocks)
    at_once = max(1, _AT_ONCE // size)
    for start in range(0, len(rngs), at_once):
        streams = range(start, min(start + at_once, len(rngs)))
        there = [(f, regression) for f in streams if (regression := stream_regression(known, origin, f))]
        for _, alike in groupby(there, lambda each: (each[1].p, each[1].complete)):
            numbers, regressions = map(list, zip(*alike, strict=True))
            own = [rngs[f] for f in numbers]
            draws = solve(regressions, own, known.standardised.tails[numbers].tolist(), for_draws=for_draws)
            yield from zip(numbers, regressions, draws, strict=True)


def expected_parts(known: Known, rngs: Sequence[np.random.Generator], *, centred: bool, intercept: bool) -> np.ndarray:
    """Return the posterior means of ``w_i^2 s_i^2`` (F, d), by which attributes are drawn; 0 where nothing is known.

    Parameters are those of `average_regressors`.
    """
    origin = known.standardised.origin(known.moments, centred=centred, intercept=intercept)
    parts = np.zeros(known.inflation.shape)
    for f, regression, draws in _solved(known, origin, rngs, for_draws=True):
        parts[f, regression.live] = draws.square * np.diagonal(regression.M)
    return parts


def average_regressors(
    known: Known, rngs: Sequence[np.random.Generator], *, centred: bool, intercept: bool
) -> WithIntercept:
    """Return the average regressors of all streams.

    A stream whose target or attributes have too few values has the factor model's.

    Parameters
    ----------
    known : Known
    rngs : sequence of numpy.random.Generator
    centred : bool
        Whether predictions go through the attributes' means.
    intercept : bool
        Whether predictions go through the target's mean.

    Returns
    -------
    WithIntercept
        Regressors (F, d, 1), with the intercept 0 if nothing is centred.
    """
    standardised, moments = known.standardised, known.moments
    origin = standardised.origin(moments, centred=centred, intercept=intercept)
    # Moments whose solution is the average: those of the target are what the average implies, as if it were right.
    first, second, inflation = moments.first.copy(), moments.second.copy(), known.inflation.copy()
    joint = Moments(moments.first.copy(), moments.second.copy())
    for f, regression, draws in _solved(known, origin, rngs, for_draws=False):
        live = regression.live
        covariance = second[f] - np.outer(first[f], first[f])
        M, mean = covariance[np.ix_(live, live)], first[f] - origin[f]
        about = M + np.outer(mean[live], mean[live])
        by_factors = np.linalg.solve(about, covariance[live, -1] + mean[live] * mean[-1])
        gains = regression.log_densities(draws.mean) - regression.log_densities(by_factors)
        owed = float(standardised.tails[f]) * draws.parameters + _ERRORS * np.sqrt(gains.size) * gains.std()
        clear = gains.sum() - (1 - regression.seen) * owed
        share = float(1 - np.exp(-max(0.0, clear)))
        w = share * draws.mean + (1 - share) * by_factors
        # The target's variance given all attributes, and the weights' own error.
        noise = draws.noise * (1 + draws.parameters / regression.examples)
        if regression.complete:  # whose regression depends on no unit
            inflation[f, live] = share + (1 - share) * inflation[f, live]
        # What the factor model leaves unexplained by the average, and by its own regressor.
        with_target = covariance[live, -1]
        by_model = float(covariance[-1, -1] - 2 * w @ with_target + w @ M @ w)
        left = float(covariance[-1, -1] - with_target @ np.linalg.solve(M, with_target))
        level, shared = float(mean[live] @ w), M @ w
        if intercept:  # predictions go through the target's mean where attributes are at their origin
            shared += mean[live] * level
        else:
            first[f, -1] = origin[f, -1] + level
        covariance[-1] = covariance[:, -1] = 0.0
        covariance[live, -1] = covariance[-1, live] = shared
        explained = float(shared @ np.linalg.solve(M, shared))
        covariance[-1, -1] = max(regression.variance, explained + LEAST_NOISE * regression.variance)
        second[f] = covariance + np.outer(first[f], first[f])
        # Moments that imply the average take it for right, which only complete examples show. Otherwise those of the
        # factor model are stated, with more noise than the regression finds, the less so the more is seen.
        if regression.complete:
            joint.first[f], joint.second[f] = first[f], second[f]
            joint.second[f, -1, -1] = explained + noise + first[f, -1] ** 2
        else:
            joint.second[f, -1, -1] -= max(0.0, min(regression.seen * (by_model - noise), left - noise))
    outputs = standardised.regressors(Moments(first, second), centred=centred, intercept=intercept, inflation=inflation)
    return outputs._replace(moments=partial(standardised.joint, joint))
