"""AEMR as a whole, alone and with the factor-model estimate."""

import numpy as np
import pytest
from scipy.optimize import nnls

from budgetreg.algorithms.aemr import MomentRegression
from budgetreg.algorithms.aemr.moments import (
    Evidence,
    Pairs,
    Spectrum,
    Target,
    clean,
    judge,
    label_regression,
    noise,
    regressors,
    shrunk_share,
    solve,
)
from budgetreg.algorithms.factors import FactorRegression
from budgetreg.algorithms.learner import SideInformation
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table, WithIntercept
from tests.learners.problems import errors, handfuls, line, revealed, shuffled, table_error, table_handfuls
from tests.tiers import slow_but

AEMR = dict(partner="none", n_factors=5)


def fitted(X, y, orders, k, checkpoints=None, pilot=None, seeds=None, given=None, kind=MomentRegression, **options):
    """Return {checkpoint: outputs} of a learner of this class, and the accessor."""
    checkpoints, given = checkpoints or [orders.shape[1]], given or {}
    replicas = len(next(iter(given.values()), [0]))
    accessor = Accessor(Table(X, y), orders, replicas, k, checkpoints, pilot=pilot, itemised=True)
    rngs = [np.random.default_rng([3, f]) for f in (range(len(orders)) if seeds is None else seeds)]
    options = {**AEMR, **options} if kind is MomentRegression else options
    side = SideInformation(k, **{name: options.pop(name) for name in ("centred", "intercept") if name in options})
    return dict(kind(name="test", **options).fit(accessor, given, checkpoints, rngs, side)), accessor


def aemr(X, y, orders, k, **options):
    """Return the last outputs: regressors (F, d), and intercepts (F,) or None."""
    last = fitted(X, y, orders, k, **options)[0][orders.shape[1]]
    return (last[0][:, :, 0], last[1][:, 0]) if isinstance(last, WithIntercept) else (last[:, :, 0], None)


@pytest.mark.parametrize("centred", [False, True])
def test_solution_equals_listing(centred):
    """The parts have tests of their own; this tests their composition."""
    d, k, T, folds = 7, 3, 90, range(5)
    X, y = line(T, d)
    X, y = X + np.arange(d), y + 2
    blocks, S = revealed(X, y, k, np.random.default_rng(0))
    x, mean = np.take_along_axis(X, S, axis=1), y.mean()
    u, fold = y - mean, np.arange(T) % 5
    target = Target(0.0 if centred else mean, u.var())

    def label(seen):
        return label_regression(S[seen].reshape(-1), x[seen].reshape(-1), np.repeat(u[seen], k), d)

    def about(a, b):
        return np.stack([np.zeros(d) if centred else a, b], axis=1) * pairs.scale[:, None]

    def candidates(sums, counts, trained, factor):
        small, large = (
            clean(of(pairs, sums, counts), s2 * factor)
            for of, s2 in zip((Pairs.shrunk, Pairs.debiased), noises, strict=True)
        )
        spectra = [Spectrum(small.U, np.ones(d)), small, large]
        return regressors(spectra, about(trained.a, trained.b), target)

    whole = label(fold >= 0)
    pairs = Pairs(blocks, 0, (T,), whole, mean)
    everything = pairs.sums.sum(axis=0), pairs.counts.sum(axis=0)
    held = np.stack([pairs.debiased(pairs.sums[f], pairs.counts[f]) for f in folds])
    noises = [
        noise(of(pairs, *everything), np.stack([of(pairs, *pairs.without(f)) for f in folds]), held * share)
        for of, share in ((Pairs.shrunk, shrunk_share(pairs.expected)), (Pairs.debiased, 1.0))
    ]
    evidence = []
    for f in folds:
        trained = label(fold != f)
        W = candidates(*pairs.without(f), trained, 5 / 4)
        level, slope = np.zeros(d), np.zeros(d)
        for i in range(d):
            t, place = np.nonzero(np.where((fold == f)[:, None], S, d) == i)
            left = x[t, place] - trained.a[i] - trained.b[i] * u[t]
            level[i], slope[i] = trained.a[i] + left.mean(), trained.b[i] + (left * u[t]).mean() / target.variance
        a, b = about(level, slope).T
        evidence.append(Evidence(W @ a, W @ b, ((W @ held[f]) * W).sum(axis=1)))
    judgement = judge(evidence, target)
    solution = solve(blocks, 0, (T,), d, centred=centred, intercept=centred)
    every = candidates(*everything, whole, 1) * judgement.scale[:, None] * pairs.scale
    np.testing.assert_allclose(solution.candidates, every, atol=1e-10)
    np.testing.assert_allclose(solution.w, judgement.weights() @ every, atol=1e-10)


@pytest.mark.parametrize("partner", slow_but(("none",), ["none", "auto"]))
def test_all_attributes_of_many_examples_give_least_squares(partner):
    X, y = line(2000, 4)
    (w,), _ = aemr(X, y, shuffled(1, 2000), 4, partner=partner)
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    assert (w - best) @ (X.T @ X) @ (w - best) <= 0.02 * best @ (X.T @ X) @ best


def test_intercepts_and_centring_absorb_shifts():
    X, y = line(300, 5)
    orders, a = shuffled(2, 300), np.array([2.0, -1, 0.5, 3, 0])
    w, b = aemr(X, y, orders, 5, centred=True, intercept=True)
    v, moved = aemr(X + a, y + 7, orders, 5, centred=True, intercept=True)
    np.testing.assert_allclose(v, w, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(moved, b + 7 - w @ a, rtol=1e-5, atol=1e-6)
    _, b = aemr(X, y, orders, 3, intercept=True)
    np.testing.assert_allclose(b, y.mean())
    assert aemr(X, y, orders, 3)[1] is None


@pytest.mark.usefixtures("short_chains")
def test_uninformative_examples_give_zero():
    X, y = line(60, 5)
    for none, target, centred in (
        (np.zeros_like(X), y, False),
        (X, np.zeros(60), False),
        (np.full_like(X, 2.0), y, True),
    ):
        w, _ = aemr(none, target, shuffled(1, 60), 3, partner="auto", centred=centred)
        assert not w.any()


def test_draws_prefer_variable_and_relevant_attributes():
    rng, d = np.random.default_rng(4), 8
    X = rng.normal(size=(900, d)) * [6, 6, 1, 1, 1, 1, 1, 1]
    y = X[:, 1] + rng.normal(size=900)
    often = fitted(X, y, shuffled(1, 900), 2)[1].bill().reveals.until()[0, 0]
    assert often[1] > 1.2 * often[0] > 1.5 * often[2:].max()


@pytest.mark.usefixtures("short_chains")
@pytest.mark.slow
def test_draws_with_the_factor_estimate_equal_aeml():
    X, y = line(300, 7)
    problem = dict(X=X, y=y, orders=shuffled(2, 300), k=3)
    bills = [
        fitted(**problem, **options)[1].bill().reveals.until()
        for options in ({"partner": "auto"}, {"kind": FactorRegression, "n_factors": 5}, {})
    ]
    np.testing.assert_array_equal(bills[0], bills[1])
    assert (bills[0] != bills[2]).any()


def test_given_candidates_are_the_ones_averaged():
    """Each at its scale, with the draws that the averaged regressor plans."""
    X, y = line(300, 5)
    given = {"candidate": np.array([1.0, 15, 30, 15])}
    candidates = fitted(X, y, shuffled(2, 300), 3, given=given)[0][300]
    assert candidates.shape == (2, 5, 4)
    for g, number in enumerate(given["candidate"]):
        single, _ = fitted(X, y, shuffled(2, 300), 3, given={"candidate": np.array([number])})
        np.testing.assert_array_equal(single[300][:, :, 0], candidates[:, :, g])
    assert (candidates[:, :, 0] != candidates[:, :, 1]).any()
    # The regressor is an average of the candidates.
    w, _ = aemr(X, y, shuffled(2, 300), 3)
    every = fitted(X, y, shuffled(2, 300), 3, given={"candidate": np.arange(1.0, 31)})[0][300]
    for f in range(2):
        share, left = nnls(np.vstack([every[f], np.full(30, 100.0)]), np.append(w[f], 100.0))
        assert left <= 1e-6
        assert share.sum() == pytest.approx(1)


@handfuls
def test_few_examples_give_at_most_1_2_times_the_mean_error(distribution, d, k, m, N):
    def fitted(X, y, orders, pilot):
        return aemr(X, y, orders, k, partner="auto", pilot=pilot, centred=True, intercept=True, n_factors=20)

    assert max(errors(distribution, d, m, N, fitted)) <= 1.2


@table_handfuls
def test_few_rows_of_tables_give_at_most_1_2_times_the_mean_error(table, m, N):
    def fitted(X, y, orders, pilot):
        return aemr(X, y, orders, 4, partner="auto", pilot=pilot, centred=True, intercept=True, n_factors=20)

    assert table_error(table, m, N, fitted) <= 1.2
