"""Regression of the target given the covariance of the attributes, the prior of its weights, and averages with it."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import norm

from budgetreg.algorithms.aemr import target_regression as module
from budgetreg.algorithms.aemr.target_regression import (
    LEAST_NOISE,
    CompleteRegression,
    Draws,
    Equations,
    Known,
    TargetRegression,
    WeightsPrior,
    average_regressors,
    expected_parts,
    solve,
    stream_regression,
)
from budgetreg.estimators import ESTIMATORS
from budgetreg.metering.table import WithIntercept
from budgetreg.revealed.collection import Entries
from budgetreg.revealed.columns import Moments, StandardisedEntries
from budgetreg.study.model import learn
from tests.learners.problems import line

# Regression given the covariance of the attributes


class Problem(NamedTuple):
    """The arguments of `TargetRegression`."""

    blocks: list[tuple[np.ndarray, np.ndarray]]
    live: np.ndarray
    M: np.ndarray
    first: np.ndarray
    origin: np.ndarray

    def conditional(self, w: np.ndarray) -> np.ndarray:
        """Return (3, T): mean and variance of w'x given what an example shows, and the target; from the origin.

        Examples without a target are left out. The origin is subtracted from attributes and targets.
        """
        d, statistics = len(self.first) - 1, []
        for attributes, values in self.blocks:
            for i, x in zip(attributes, values, strict=True):
                if i[-1] != d:
                    continue
                kept = np.isin(i[:-1], self.live)
                S = np.searchsorted(self.live, i[:-1][kept])
                slopes = np.linalg.solve(self.M[np.ix_(S, S)], self.M[S]).T
                mean = self.first[self.live] + slopes @ (x[:-1][kept] - self.first[self.live][S])
                variance = w @ (self.M - slopes @ self.M[S]) @ w
                statistics.append((w @ (mean - self.origin[self.live]), variance, x[-1] - self.origin[-1]))
        return np.array(statistics).T

    def means(self) -> np.ndarray:
        """Return the means (T, p) of the attributes given what an example shows, from the origin."""
        return np.array([self.conditional(unit)[0] for unit in np.eye(len(self.live))]).T


def problem(sizes: tuple[int, ...] = (2, 4, 7), T: int = 6, d: int = 7, *, gaps: bool = True) -> Problem:
    """Return blocks of T examples that show so many attributes, which explain most of the target.

    Attribute 3 is not live. With gaps, one example of each block misses an attribute, and another has no target.
    """
    rng = np.random.default_rng(0)
    live, C = np.delete(np.arange(d), 3), np.cov(rng.normal(size=(d - 1, 3 * d)))
    first, origin, w = (rng.normal(size=size) for size in (d + 1, d + 1, d - 1))
    blocks = []
    for n in sizes:
        columns = first + rng.normal(size=(T, d + 1))
        columns[:, live] = rng.multivariate_normal(first[live], C, T)
        columns[:, d] = origin[d] + (columns - origin)[:, live] @ w + 0.3 * rng.normal(size=T)
        attributes = np.argsort(rng.random((T, d)), axis=1)[:, :n]
        attributes = np.append(attributes, np.full((T, 1), d), axis=1)
        values = np.take_along_axis(columns, attributes, axis=1)
        if gaps:
            attributes[1, 0] = attributes[2, -1] = d + 1
            values[1, 0] = values[2, -1] = 0.0
        blocks.append((attributes, values))
    assert any((attributes == 3).any() for attributes, _ in blocks)
    return Problem(blocks, live, C, first, origin)


@pytest.mark.parametrize("chunk", [2**21, 20])
def test_means_and_variances_are_those_of_the_normal_distribution_given_the_values_seen(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_CHUNK", chunk)
    given, w = problem(), np.random.default_rng(1).normal(size=6)
    regression = TargetRegression(*given)
    mean, variance, y = given.conditional(w)
    assert len(y) == 15
    np.testing.assert_allclose(regression.predicted(w), mean, rtol=1e-9)
    np.testing.assert_allclose(regression.unseen(w), variance, rtol=1e-4, atol=1e-5)
    assert regression.variance == pytest.approx(y.var())


def test_complete_examples_need_no_covariance() -> None:
    given, w = problem((7,), gaps=False), np.random.default_rng(1).normal(size=6)
    general, complete = TargetRegression(*given), CompleteRegression(*given._replace(M=np.eye(6)))
    np.testing.assert_allclose(complete.predicted(w), general.predicted(w), rtol=1e-9)
    np.testing.assert_allclose(general.unseen(w), 0.0, atol=1e-5)
    assert not complete.unseen(w).any()
    np.testing.assert_allclose(complete.log_densities(w), general.log_densities(w), rtol=1e-4, atol=1e-4)


def test_log_densities_are_those_of_normal_distributions_at_the_best_noise() -> None:
    given = problem()
    w = 0.8 * np.linalg.lstsq(given.means(), given.conditional(np.zeros(6))[2])[0]
    mean, variance, y = given.conditional(w)
    of_noise = [
        norm.logpdf(y, mean, np.sqrt(s * y.var() + variance)).mean() + np.log(2 * np.pi) / 2
        for s in np.geomspace(1e-3, 1.5, 80)
    ]
    assert 0 < np.argmax(of_noise) < 79
    assert TargetRegression(*given).log_densities(w).mean() == pytest.approx(max(of_noise), rel=1e-5)


def test_shifts_of_values_and_origin_change_nothing() -> None:
    given, shift = problem(), np.append(np.arange(8.0), 0.0)  # of the 7 attributes, the target and missing values
    moved = given._replace(
        blocks=[(attributes, values + shift[attributes]) for attributes, values in given.blocks],
        first=given.first + shift[:-1],
        origin=given.origin + shift[:-1],
    )
    before, after = TargetRegression(*given), TargetRegression(*moved)
    w, moved_w = (solved(regression, 2).mean for regression in (before, after))
    np.testing.assert_allclose(moved_w, w, rtol=1e-9)
    np.testing.assert_allclose(after.predicted(w), before.predicted(w), rtol=1e-9)
    np.testing.assert_allclose(after.log_densities(w), before.log_densities(w), rtol=1e-9)


def test_predictions_are_0_at_the_origin() -> None:
    given, w = problem(sizes=(7,)), np.arange(6.0)
    at_origin = np.append(given.origin, 0.0)  # missing values have the number d + 1
    blocks = [(attributes, at_origin[attributes]) for attributes, _ in given.blocks]
    predicted = TargetRegression(*given._replace(blocks=blocks)).predicted(w)
    complete = [0, 2, 3, 4]  # without the example that misses a value, and that without a target
    np.testing.assert_allclose(predicted[complete], 0.0, atol=1e-9)


def test_a_target_in_half_the_units_has_regressors_of_twice_the_size() -> None:
    given = problem()
    units = np.append(np.ones(7), 2.0)
    twice = given._replace(
        blocks=[(attributes, values * np.append(units, 1.0)[attributes]) for attributes, values in given.blocks],
        first=given.first * units,
        origin=given.origin * units,
    )
    w, w_of_twice = (solved(TargetRegression(*each), 2).mean for each in (given, twice))
    np.testing.assert_allclose(w_of_twice, 2 * w, rtol=1e-9)


def test_the_first_examples_are_used_if_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here three of four attributes (48 entries, of 60), then two of two (8 entries, of 12); none of seven."""
    given, w = problem(sizes=(4, 2, 7)), np.arange(6.0)
    whole = TargetRegression(*given)
    monkeypatch.setattr(module.TargetRegression, "_space", 60)
    used = [0, 1, 2, 5, 6, 7]  # of 5 examples with a target in each block
    short = TargetRegression(*given)
    np.testing.assert_array_equal(short.predicted(w), whole.predicted(w)[used])
    np.testing.assert_array_equal(short.unseen(w), whole.unseen(w)[used])
    y = given.conditional(w)[2]
    assert short.variance == pytest.approx(y[used].var())


@pytest.mark.parametrize("complete", [False, True])
def test_a_regressor_equals_a_listing(complete: bool) -> None:
    """Rounds of weighting examples, drawing weights, and estimating the noise; more if all attributes are seen."""
    given = problem((7,) if complete else (2, 4, 7), T=12, gaps=not complete)
    given = given._replace(M=3 * given.M)  # too large, so that there is a penalty
    rng, tails = np.random.default_rng(3), 1.5
    starts = (True,) if complete else (True, False)
    chains = [listed(given, rng, 1 / tails, complete=complete, large=large) for large in starts]
    regression = (CompleteRegression if complete else TargetRegression)(*given)
    assert (regression.complete, regression.examples) == (complete, len(given.conditional(np.eye(6)[0])[2]))
    shares = softmax([regression.log_densities(draws.mean).sum() - tails * draws.parameters for draws in chains])
    assert complete or 0.01 < shares[0] < 0.99
    for result, of in zip(map(np.asarray, solved(regression, 3, tails)), zip(*chains, strict=True), strict=True):
        np.testing.assert_allclose(result, shares @ np.stack(of), rtol=1e-3, atol=1e-5)


def solved(regression: TargetRegression, rng: int | np.random.Generator, tails: float = 1.0) -> Draws:
    """Return the draws of one regression."""
    (draws,) = solve([regression], [np.random.default_rng(rng)], [tails])
    return draws


def test_regressions_that_are_solved_together_are_independent() -> None:
    given = [TargetRegression(*problem((2, 4, 7), T=T)) for T in (12, 20, 15)]
    rngs = [np.random.default_rng(f) for f in range(3)]
    for f, draws in enumerate(solve(given, rngs, [1.5, 1.0, 2.0], for_draws=True)):
        alone = solve(given[f : f + 1], [np.random.default_rng(f)], [[1.5, 1.0, 2.0][f]], for_draws=True)
        for together, of in zip(draws, alone[0], strict=True):
            np.testing.assert_array_equal(together, of)


def drawn(
    prior: WeightsPrior, given: Equations, rng: Any, sweeps: Any, form: np.ndarray | None = None, penalty: float = 0.0
) -> Draws:
    """Return the draws of one chain, by default without a penalty."""
    form = np.zeros_like(given.Q) if form is None else form
    (draws,) = prior.draw([given], [rng], sweeps, forms=[form], penalties=[penalty])
    return draws


def equations_of(X: np.ndarray, y: np.ndarray) -> Equations:
    return Equations(X.T @ X, X.T @ y, float(y @ y))


def listed(given: Any, rng: np.random.Generator, belief: float, *, complete: bool, large: bool) -> Draws:
    """Return the draws of the last round, from a start with all weights large, or with none."""
    rounds = module._COMPLETE_ROUNDS if complete else module._ROUNDS
    H, units = given.means(), np.eye(6)
    y = given.conditional(units[0])[2]
    # The mean of u(w) is a quadratic form, which sums of unit vectors determine.
    of_sums = [[given.conditional(a + b)[1].mean() for b in units] for a in units]
    single = np.array([given.conditional(unit)[1].mean() for unit in units])
    form = (np.array(of_sums) - single - single[:, None]) / 2
    v, T = y.var(), len(y)
    s, u, penalty, penalties = v / 2, np.full(T, v / 2), 0.0, []
    prior, grid = WeightsPrior(6, [v], large=large), np.geomspace(1e-3, 1.5, 80) * v
    for turn in range(rounds):
        inverse = np.diag(1 / (s + u))
        equations = Equations(H.T @ inverse @ H, H.T @ inverse @ y, y @ inverse @ y)
        sweeps = module._SWEEPS if turn < rounds - 1 else tuple(module._MORE * count for count in module._LAST)
        draws = drawn(prior, equations, rng, sweeps, form=form, penalty=penalty)
        w = draws.mean
        if not complete:
            w = w * min(1.0, np.sqrt(v / (w @ given.M @ w)))
        if turn == rounds - 1:
            break
        seen = given.conditional(w)[1]
        new = seen * draws.form / seen.mean()
        u = new if turn == 0 else (u + new) / 2
        squares = np.square(y - H @ w) * draws.residual / equations.residual(w)
        density = np.array(
            [norm.logpdf(np.sqrt(squares), 0, np.sqrt(g + belief * u + (1 - belief) * u.mean())).sum() for g in grid]
        )
        share = softmax(density - np.log(grid) - LEAST_NOISE * v / grid)
        s = share @ grid
        now = belief * max(0.0, (1 - squares / (s + u)).sum() / (s + u).mean())
        penalty = now if turn == 0 else (penalty + now) / 2
        penalties.append(penalty)
    assert complete or max(penalties) > 0
    return draws._replace(mean=w, noise=s)


def test_weights_explain_at_most_the_variance_of_the_target() -> None:
    """Also that of an attribute which one example in fifteen shows, with a value near 0."""
    rng, T = np.random.default_rng(1), 15
    X, y = rng.normal(size=(T, 4)), rng.normal(size=T)
    X[0, 3] = 0.01
    S = np.argsort(rng.random((T, 3)), axis=1)[:, :2]
    S[0] = [0, 3]
    regression = regression_of(X, y, S, np.eye(4))
    w = solved(regression, rng).mean
    assert 0 < w @ w <= regression.variance * (1 + 1e-9)


def regression_of(X: np.ndarray, y: np.ndarray, attributes: np.ndarray, M: np.ndarray) -> TargetRegression:
    """Return the regression of y on some attributes (T, k) of rows X, through the origin, with means of 0."""
    (T, d), zero = X.shape, np.zeros(X.shape[1] + 1)
    attributes = np.append(attributes, np.full((T, 1), d), axis=1)
    values = np.take_along_axis(np.column_stack([X, y]), attributes, axis=1)
    return TargetRegression([(attributes, values)], np.arange(d), M, zero, zero)


def test_complete_rows_with_little_noise_give_least_squares() -> None:
    X, y = line(300, 5, noise=0.1)
    M = X.T @ X / 300
    w = solved(regression_of(X, y, np.tile(np.arange(5), (300, 1)), M), 4).mean
    best = np.linalg.lstsq(X, y)[0]
    assert (w - best) @ M @ (w - best) <= 1e-4 * best @ M @ best


def test_few_large_weights_are_found_as_no_ridge_regressor_finds_them() -> None:
    rng, d, T = np.random.default_rng(5), 40, 1000
    X, truth = rng.normal(size=(T, d)), np.zeros(d)
    truth[:3] = [1, -1, 1]
    y = X @ truth + 0.3 * rng.normal(size=T)
    S = np.argsort(rng.random((T, d)), axis=1)[:, :4]
    w = solved(regression_of(X, y, S, np.eye(d)), rng).mean
    seen = np.where((S[:, :, None] == np.arange(d)).any(axis=1), X, 0.0)
    ridge = [np.linalg.solve(seen.T @ seen + penalty * np.eye(d), seen.T @ y) for penalty in np.geomspace(0.1, 1e4, 30)]
    assert np.square(w - truth).sum() < 0.5 * min(np.square(r - truth).sum() for r in ridge)


# The prior of the weights


def equations(p: int, T: int, seed: int = 6) -> Equations:
    """Return the equations of T examples with p attributes, and a noise of variance 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(T, p))
    y = X @ rng.normal(size=p) + rng.normal(size=T)
    return equations_of(X, y)


@pytest.mark.parametrize("start", [True, False])
def test_sweeps_equal_a_listing(start: bool) -> None:
    """In each third sweep, weights are drawn in turn, and whether they are large before their value is known."""
    p, v, A, penalty = 5, 2.0, np.diag(np.arange(1.0, 6)), 0.7
    given, rng = equations(p, 9), np.random.default_rng(7)
    prior = WeightsPrior(p, [v], large=start)
    draws = drawn(prior, given, np.random.default_rng(7), (2, 3), form=A, penalty=penalty)
    large, w, kept = np.full(p, start), np.zeros(p), []
    t, pi = (v / p, 0.5) if start else (v, 1 / (p + 1))
    of_t, base = 1 / t, given.Q + penalty * A
    for sweep in range(5):
        variances = np.array([0.01 * t, t])
        if sweep % 3 == 0:
            below, noise = rng.random(p), rng.standard_normal(p)
            for i in range(p):
                others = np.arange(p) != i
                gradient, curvature = given.r[i] - base[i, others] @ w[others], base[i, i]
                # The integral over w_i of the likelihood and of each component of the prior, but for a factor.
                posterior = 1 / (curvature + 1 / variances)
                evidence = np.sqrt(posterior / variances) * np.exp(gradient**2 * posterior / 2)
                large[i] = below[i] < pi * evidence[1] / (pi * evidence[1] + (1 - pi) * evidence[0])
                its = posterior[int(large[i])]
                w[i] = its * gradient + np.sqrt(its) * noise[i]
        else:
            densities = pi * norm.pdf(w, 0, np.sqrt(t)), (1 - pi) * norm.pdf(w, 0, np.sqrt(0.01 * t))
            large = rng.random(p) < densities[0] / sum(densities)
        precision = base + np.diag(1 / np.where(large, t, 0.01 * t))
        mean = np.linalg.solve(precision, given.r)
        w = mean + np.linalg.solve(np.linalg.cholesky(precision).T, rng.standard_normal(p))
        kept.append((mean, given.residual(w), w @ A @ w, w**2))
        pi = rng.beta(1 + large.sum(), 1 + (~large).sum())
        t = (np.square(w / np.where(large, 1, 0.1)).sum() / 2 + 1 / of_t) / rng.standard_gamma((p + 1) / 2)
        of_t = (max(1, large.sum()) / v + 1 / t) / rng.standard_gamma(1.0)
    for result, expected in zip(draws[:4], zip(*kept[2:], strict=True), strict=True):
        np.testing.assert_allclose(np.asarray(result), np.mean(expected, axis=0), rtol=1e-9)
    assert draws.parameters == pytest.approx(draws.residual - given.residual(draws.mean))


@pytest.mark.parametrize("start", [True, False])
def test_few_weights_of_many_are_found_from_each_start(start: bool) -> None:
    """Three of 300 weights count, and no value of a weight is likely both for small and for large ones."""
    p, rng = 300, np.random.default_rng(2)
    X = rng.normal(size=(400, p))
    y = X[:, :3].sum(axis=1) + rng.normal(size=400)
    prior = WeightsPrior(p, [float(y.var())], large=start)
    w = drawn(prior, equations_of(X, y), rng, (60, 40)).mean
    np.testing.assert_allclose(w[:3], 1, atol=0.2)
    assert np.square(w[3:]).sum() < 0.05


def test_residuals_of_equations_are_those_of_the_examples() -> None:
    rng = np.random.default_rng(8)
    X, y, w = rng.normal(size=(9, 3)), rng.normal(size=9), rng.normal(size=3)
    assert equations_of(X, y).residual(w) == pytest.approx(np.square(y - X @ w).sum())


def test_overwhelming_data_give_least_squares_and_no_data_give_0() -> None:
    p, rng = 5, np.random.default_rng(9)
    few, nothing = equations(p, 100), Equations(np.zeros((p, p)), np.zeros(p), 0.0)
    much = Equations(1e4 * few.Q, 1e4 * few.r, 1e4 * few.squares)
    draws, none = (drawn(WeightsPrior(p, [1.0], large=True), given, rng, (5, 10)) for given in (much, nothing))
    np.testing.assert_allclose(draws.mean, np.linalg.solve(much.Q, much.r), rtol=1e-3)
    assert not none.mean.any()


def test_the_effective_number_of_weights_is_all_that_the_data_show() -> None:
    rng, p = np.random.default_rng(12), 6
    x = rng.normal(size=(4000, p)) * [1, 1, 1, 1, 0, 0]  # nothing is seen of the last two
    y = x @ np.ones(p) + rng.normal(size=4000)
    prior = WeightsPrior(p, [float(y.var())], large=True)
    draws = drawn(prior, equations_of(x, y), rng, (50, 4000))
    assert draws.parameters == pytest.approx(4, rel=0.05)


def test_the_penalty_shrinks_the_weights_along_its_form() -> None:
    p, A = 5, np.diag([1.0, 0, 0, 0, 0])
    given = Equations(1000 * np.eye(p), np.full(p, 1000.0), 5000.0)
    free, penalised = (
        drawn(WeightsPrior(p, [1.0], large=True), given, np.random.default_rng(9), (5, 20), A, penalty)
        for penalty in (0.0, 1000.0)
    )
    np.testing.assert_allclose(free.mean, 1.0, rtol=0.01)
    np.testing.assert_allclose(penalised.mean, [0.5, 1, 1, 1, 1], rtol=0.01)
    assert free.form == pytest.approx(1, rel=0.1)
    assert penalised.form == pytest.approx(0.25, rel=0.1)


# The average


def streams(d: int = 4, T: int = 60, k: int = 3, noise: float = 8.0) -> list[Any]:
    """Return k of d attributes of three streams: a constant target, any values, and constant attributes."""
    X, y = line(T, d, noise=noise)
    X, y, entries = X + np.arange(d), y + 2, Entries(d + 1)
    tables = (X, np.full(T, 3.0)), (X, y), (np.full_like(X, 2.0), y)
    S = np.stack([np.argsort(np.random.default_rng(f).exponential(size=(T, d)), axis=1)[:, :k] for f in range(3)])
    values = [np.take_along_axis(of[0], seen, axis=1) for of, seen in zip(tables, S, strict=True)]
    entries.add(S, np.stack(values), np.stack([of[1] for of in tables]))
    return entries.blocks()


def moments(standardised: StandardisedEntries) -> Moments:
    """Return moments of columns that are correlated, with means that are not 0."""
    rng, (F, c) = np.random.default_rng(10), standardised.live.shape
    first = 0.2 * rng.normal(size=(F, c))
    second = np.stack([np.cov(rng.normal(size=(c, 20 * c))) + np.outer(mean, mean) for mean in first])
    return Moments(first, second)


class Solved(StandardisedEntries):
    """Entries that note the moments, and the factors of variances, that they are asked to solve."""

    def regressors(
        self, moments: Moments, *, centred: bool, intercept: bool, inflation: np.ndarray | float = 1.0
    ) -> WithIntercept:
        self.solved = moments, inflation
        return super().regressors(moments, centred=centred, intercept=intercept, inflation=inflation)


def averaged(
    standardised: Solved, given: Moments, inflation: np.ndarray, *, centred: bool, intercept: bool
) -> tuple[WithIntercept, tuple[Moments, np.ndarray]]:
    """Return the average regressors of three streams, and the moments and factors that have them for their solution."""
    known, rngs = Known(standardised, given, inflation), [np.random.default_rng(seed) for seed in (12, 11, 12)]
    outputs = average_regressors(known, rngs, centred=centred, intercept=intercept)
    average, factors = standardised.solved
    return outputs, (average, np.asarray(factors))


@pytest.mark.usefixtures("short_chains")
@pytest.mark.parametrize(("centred", "intercept"), [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize(("k", "noise", "fits"), [(3, 8.0, False), (4, 0.2, False), (5, 8.0, False), (5, 8.0, True)])
def test_the_average_equals_a_listing(k: int, noise: float, fits: bool, centred: bool, intercept: bool) -> None:
    """The moments returned are those of a target that is predicted by it; one attribute is left out.

    If the moments given fit the examples better than the regression, they count alone.
    """
    d, both, live = 5, {"centred": centred, "intercept": intercept}, np.array([0, 1, 2, 4])
    inflation = np.array([1.5, 1, 2, np.inf, 1])
    blocks = streams(d, 60, k, noise)
    standardised = Solved(blocks, d, **both)
    given = moments(standardised)
    if fits:
        of_sample = standardised.sample_moments(np.array([1]))
        given.first[1], given.second[1] = of_sample.first[0], of_sample.second[0]
    origin = standardised.origin(given, **both)
    outputs, (average, factors) = averaged(standardised, given, np.stack([inflation] * 3), **both)
    first, second = average.first[1], average.second[1]

    ((attributes, scaled),) = [(block.attributes[1], block.values[1]) for block in standardised.blocks]
    C = given.second[1] - np.outer(given.first[1], given.first[1])
    mean, M = given.first[1] - origin[1], C[np.ix_(live, live)]
    about = C + np.outer(mean, mean)
    by_factors = np.linalg.solve(about[np.ix_(live, live)], about[live, d])
    kind = TargetRegression if k < d else CompleteRegression
    regression = kind([(attributes, scaled)], live, M, given.first[1], origin[1])
    draws = solved(regression, 11)
    gains = regression.log_densities(draws.mean) - regression.log_densities(by_factors)
    seen = np.isin(attributes[:, :-1], live).sum(axis=1)
    owed = standardised.tails[1] * draws.parameters + 2 * np.sqrt(60) * gains.std()
    share = 1 - np.exp(-max(0, gains.sum() - (1 - np.square(seen / 4).mean()) * owed))
    assert set(seen.tolist()) == {3: {2, 3}, 4: {3, 4}, 5: {4}}[k]
    assert share == 0 if fits or k == 3 else share > 0.5
    w = share * draws.mean + (1 - share) * by_factors

    np.testing.assert_array_equal(factors[1][live], (share + (1 - share) * inflation if k == d else inflation)[live])
    assert factors[1][3] == np.inf
    np.testing.assert_array_equal(first[:d], given.first[1, :d])
    np.testing.assert_allclose(second[:d, :d], given.second[1, :d, :d], rtol=1e-12)
    assert first[d] == pytest.approx(given.first[1, d] if intercept else origin[1, d] + mean[live] @ w)
    covariance, shared = second - np.outer(first, first), np.zeros(d)
    shared[live] = M @ w + intercept * mean[live] * (mean[live] @ w)
    np.testing.assert_allclose(covariance[d, :d], shared, atol=1e-12)
    np.testing.assert_allclose(covariance[:d, d], shared, atol=1e-12)
    variance, explained = regression.variance, shared[live] @ np.linalg.solve(M, shared[live])
    assert covariance[d, d] == pytest.approx(max(variance, explained + LEAST_NOISE * variance))
    unexplained = draws.noise * (1 + draws.parameters / 60)
    if k == d:
        average.second[1, d, d] = first[d] ** 2 + explained + unexplained
    else:
        all_of_it = np.append(live, d)
        contrasts = (np.append(-v, 1) for v in (w, np.linalg.solve(M, C[live, d])))
        by_average, by_factors = (v @ C[np.ix_(all_of_it, all_of_it)] @ v - unexplained for v in contrasts)
        given.second[1, d, d] -= max(0, min(np.square(seen / 4).mean() * by_average, by_factors))
    stated = standardised.joint(given if k < d else average, 1)
    np.testing.assert_allclose(outputs.moments(1).covariance, stated.covariance, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("centred", "intercept"), [(True, True), (True, False), (False, True), (False, False)])
def test_outputs_have_the_regressor_of_the_average(
    centred: bool, intercept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for its size, also if it explains more than the target varies.

    They predict at the origin what those of the factor model predict.
    """
    d, both, best = 4, {"centred": centred, "intercept": intercept}, np.array([30, -20, 10, 50.0])
    standardised = Solved(streams(d), d, **both)
    given = moments(standardised)
    draws = Draws(best, 0.0, 0.0, best**2, 0.0)
    monkeypatch.setattr(module, "solve", lambda regressions, rngs, tails, *, for_draws: [draws] * len(regressions))
    monkeypatch.setattr(TargetRegression, "log_densities", lambda self, w: np.full(60, 1e3 * np.array_equal(w, best)))
    average = averaged(standardised, given, np.ones((3, d)), **both)[1][0]
    first, second = average.first[1], average.second[1]
    assert np.linalg.eigvalsh(second - np.outer(first, first))[0] > 0
    average = Moments(np.stack([first] * 3), np.stack([second] * 3))
    before, after = (standardised.regressors(each, **both) for each in (given, average))
    w = (after.regressors if isinstance(after, WithIntercept) else after)[1, :, 0]
    seen, scaled = (block.values[1, :, :-1] for block in (streams(d)[0], standardised.blocks[0]))
    columns = standardised.blocks[0].attributes[1, :, :-1]
    units = np.array([np.ptp(seen[columns == i]) / np.ptp(scaled[columns == i]) for i in range(d)])
    np.testing.assert_allclose(w * units / np.linalg.norm(w * units), best / np.linalg.norm(best))
    if isinstance(before, WithIntercept) and isinstance(after, WithIntercept):
        point = standardised.joint(given, 1).mean[:d] * centred
        at_origin = [outputs.intercept[1] + point @ outputs.regressors[1] for outputs in (before, after)]
        np.testing.assert_allclose(*at_origin, atol=1e-12)


@pytest.mark.parametrize("intercept", [True, False])
def test_streams_without_anything_to_regress_keep_their_moments(intercept: bool) -> None:
    both = {"centred": True, "intercept": intercept}
    standardised = Solved(streams(), 4, **both)
    given, inflation = moments(standardised), np.full((3, 4), 1.5)
    _, (average, factors) = averaged(standardised, given, inflation, **both)
    for f in (0, 2):
        np.testing.assert_array_equal(average.first[f], given.first[f])
        np.testing.assert_array_equal(average.second[f], given.second[f])
        np.testing.assert_array_equal(factors[f], inflation[f])


def test_examples_that_show_nothing_leave_the_others_complete() -> None:
    d, rng, entries, both = 3, np.random.default_rng(1), Entries(4), {"centred": True, "intercept": True}
    entries.add(np.tile(np.arange(d), (1, 8, 1)), rng.normal(size=(1, 8, d)), rng.normal(size=(1, 8)))
    entries.add(np.full((1, 2, d), d + 1), np.zeros((1, 2, d)), rng.normal(size=(1, 2)))
    standardised = StandardisedEntries(entries.blocks(), d, **both)
    given = Moments(np.zeros((1, d + 1)), np.eye(d + 1)[None])
    known = Known(standardised, given, np.ones((1, d)))
    regression = stream_regression(known, standardised.origin(given, **both), 0)
    assert (regression.complete, regression.examples) == (True, 8)


def test_parts_are_the_second_moments_of_the_weights_in_units_of_the_columns() -> None:
    """They are 0 where nothing can be regressed, and for an attribute that is left out."""
    both, live = {"centred": True, "intercept": True}, np.array([0, 2, 3])
    standardised = StandardisedEntries(streams(), 4, **both)
    given, inflation = moments(standardised), np.ones((3, 4))
    inflation[1, 1] = np.inf
    known = Known(standardised, given, inflation)
    parts = expected_parts(known, [np.random.default_rng(f) for f in range(3)], **both)
    regression = stream_regression(known, standardised.origin(given, **both), 1)
    C = given.second[1] - np.outer(given.first[1], given.first[1])
    (draws,) = solve([regression], [np.random.default_rng(1)], [1.0], for_draws=True)
    expected = draws.square * np.diagonal(C)[live]
    np.testing.assert_allclose(parts[1, live], expected, rtol=1e-12)
    assert parts[1, 1] == 0 and not parts[[0, 2]].any()


@pytest.mark.slow
@pytest.mark.parametrize("rows", [60, 200])
def test_complete_rows_with_little_noise_give_the_error_of_least_squares(rows: int) -> None:
    """The factor model alone shrinks the regressor, and errs several times as much."""
    rng, d = np.random.default_rng(12), 15
    X, w = rng.normal(size=(rows + 1000, d)), rng.normal(size=d)
    y = X @ w + 0.1 * np.linalg.norm(w) * rng.normal(size=len(X))
    test, train = slice(rows, None), slice(rows)
    best = np.linalg.lstsq(np.column_stack([X[train], np.ones(rows)]), y[train])[0]
    least = np.square(X[test] @ best[:-1] + best[-1] - y[test]).mean()
    errors = {
        learner: np.square(ESTIMATORS[learner](k=d, random_state=0).fit(X[train], y[train]).predict(X[test]) - y[test])
        for learner in ("AEMR", "AEML")
    }
    assert errors["AEMR"].mean() < 1.1 * least < 0.7 * errors["AEML"].mean()


@pytest.mark.slow
@pytest.mark.parametrize(("shown", "most"), [(0, 1.1), (4, 1.25)])
def test_other_rows_do_not_spoil_what_complete_rows_show(shown: int, most: float) -> None:
    """Few weights of many, without much noise, which complete rows alone show."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 30))
    y = X[:, :3].sum(axis=1) + 0.5 * rng.normal(size=600)
    known = np.arange(600)[:, None] < 70
    known = known | (np.arange(600)[:, None] < 110) & (rng.random(X.shape).argsort(axis=1) < shown)
    train, test = slice(110), slice(110, None)
    alone, together = (learn(np.where(known[rows], X[rows], np.nan), y[rows], seed=0) for rows in (slice(70), train))
    errors = [np.square(y[test] - model.predict(X[test])).mean() for model in (alone, together)]
    assert errors[0] < 0.4
    assert errors[1] < most * errors[0]


_FURTHER, _SAME = (range(36, 54), 0.7, 1.0), (range(36), 0.97, 1.2)


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "seen", "most"), [_FURTHER, _SAME])
def test_holes_take_little_away_from_complete_rows(rows: range, seen: float, most: float) -> None:
    """Independent attributes, which a factor model shrinks: further rows with holes, or a few holes in the rows."""
    rng = np.random.default_rng(3)
    X, w = rng.normal(size=(600, 18)), rng.normal(size=18)
    y = X @ w / np.linalg.norm(w) + 0.5 * rng.normal(size=600)
    holes = np.isin(np.arange(600), rows)[:, None] & (rng.random(X.shape) >= seen)
    values, n = np.where(holes, np.nan, X), max(36, rows.stop)
    models = learn(X[:36], y[:36], seed=0), learn(values[:n], y[:n], seed=0)
    alone, together = (np.square(y[60:] - model.predict(X[60:])).mean() for model in models)
    assert together < most * alone
