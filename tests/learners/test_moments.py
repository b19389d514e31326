"""AEMR: literal sums, enumerations, certificates; what its candidates, its choice and its partner owe to what."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls
from scipy.stats import poisson

from budgetreg import checks
from budgetreg.errors import ConfigError
from budgetreg.learners.declaration import WithIntercept
from budgetreg.learners.factors import regression as factor_regression
from budgetreg.learners.factors.draws import Draws
from budgetreg.learners.factors.entries import Entries
from budgetreg.learners.moments import regression
from budgetreg.learners.moments.candidates import PENALTIES, RIDGES, Target, lasso_regressors, ridge_regressors
from budgetreg.learners.moments.evidence import Evidence, Judgement, judge
from budgetreg.learners.moments.label import LabelRegression, label_regression
from budgetreg.learners.moments.pairs import FOLDS, collected_pairs, debiased, shrunk, shrunk_share
from budgetreg.learners.moments.solution import solve
from budgetreg.learners.moments.spectrum import Spectrum, clean, noise
from budgetreg.metering.accessor import Accessor, Table
from tests.learners.handfuls import errors, handfuls

AEMR = dict(partner="none", norm="l2", n_factors=20)


def shuffled(F, m):
    return np.stack([np.random.default_rng([1, f]).permutation(m) for f in range(F)])


def fitted(X, y, orders, k, checkpoints=None, pilot=None, seeds=None, given=None, fit=regression.fit, **options):
    """Return {checkpoint: outputs} and the accessor."""
    checkpoints, given = checkpoints or [orders.shape[1]], given or {}
    replicas = len(next(iter(given.values()), [0]))
    accessor = Accessor(Table(X, y), orders, replicas, k, checkpoints, pilot=pilot, itemised=True)
    rngs = [np.random.default_rng([3, f]) for f in (range(len(orders)) if seeds is None else seeds)]
    options = {**AEMR, **options} if fit is regression.fit else options
    return dict(fit(accessor, given, checkpoints, rngs, k=k, **options)), accessor


def aemr(X, y, orders, k, **options):
    """Return the last outputs: regressors (F, d), and intercepts (F,), None if there are none."""
    last = fitted(X, y, orders, k, **options)[0][orders.shape[1]]
    return (last[0][:, :, 0], last[1][:, 0]) if isinstance(last, WithIntercept) else (last[:, :, 0], None)


def line(m, d, noise=0.5, seed=0):
    rng = np.random.default_rng([seed, d])
    X = rng.normal(size=(m, d)) @ rng.normal(size=(d, d)) / np.sqrt(d)
    return X, X @ rng.normal(size=d) + noise * rng.normal(size=m)


def revealed(X, y, k, rng, p=None):
    """Return entries of one stream, k attributes of each example, in equal shares or those of p."""
    d = X.shape[1]
    S = np.stack([rng.choice(d, k, replace=False, p=p) for _ in X])
    entries = Entries(d + 1)
    entries.add(S[None], np.take_along_axis(X, S, axis=1)[None], y[None])
    return entries.blocks(), S


def known_label(d, counts, a=None, b=None, v=None):
    a, b = (np.zeros(d) if own is None else own for own in (a, b))
    return LabelRegression(a, b, np.ones(d) if v is None else v, counts, np.ones(d, dtype=bool))


# Attributes on the target


def test_attributes_are_regressed_on_the_target():
    """With many values, least squares; what was hardly seen is drawn to what is usual, slopes to 0."""
    rng, d, m = np.random.default_rng(0), 4, 4000
    u = rng.normal(size=m)
    X = np.array([2.0, -1, 0, 5]) + np.outer(u, [1, 0, -2, 0.5]) + rng.normal(size=(m, d)) * [1, 2, 0.5, 1]
    i = np.tile(np.arange(d), m)
    found = label_regression(i, X.reshape(-1), np.repeat(u, d), d)
    slopes = [np.polyfit(u, x, 1) for x in X.T]
    np.testing.assert_allclose(found.b, [s for s, _ in slopes], atol=2e-3)
    np.testing.assert_allclose(found.a, [a for _, a in slopes], atol=2e-3)
    left = [np.var(x - np.polyval(own, u)) for x, own in zip(X.T, slopes, strict=True)]
    np.testing.assert_allclose(found.v, left, rtol=0.02)
    few = i < 3
    few[np.flatnonzero(i == 3)[:3]] = True
    own = label_regression(i[few], X.reshape(-1)[few], np.repeat(u, d)[few], d)
    x, seen = X[:3, 3], u[:3]
    alone = np.cov(x, seen)[0, 1] / np.var(seen, ddof=1)
    assert 0 < own.b[3] / alone < 0.95
    assert own.counts.tolist() == [m, m, m, 3]
    assert own.live.all()


@given(st.integers(0, 2**32), st.integers(1, 6), st.integers(1, 40))
@settings(max_examples=100, deadline=None)
def test_any_values_tell_the_width_of_the_prior(seed, d, N):
    rng = np.random.default_rng(seed)
    i, x, u = rng.integers(0, d + 1, N), rng.normal(size=N) * (rng.random(N) < 0.7), rng.normal(size=N)
    found = label_regression(i, x, u, d)
    assert all(np.isfinite(own).all() for own in (found.a, found.b, found.v))
    assert (found.v > 0).all() or not found.live.any()
    assert not found.a[~found.live].any()
    assert not found.b[~found.live].any()
    turned = label_regression(d - 1 - np.where(i < d, i, -1), x, u, d)
    for own, other in ((found.a, turned.a), (found.b, turned.b), (found.v, turned.v)):
        np.testing.assert_allclose(own, other[::-1], rtol=1e-9, atol=1e-12)


# Pairs


def test_pairs_are_summed_as_written_out():
    """Of some full rows, and of examples that show fewer attributes, in equal shares and in others."""
    rng, d, k, N, m = np.random.default_rng(1), 5, 3, 7, 23
    X, y = line(m, d)
    S = [np.arange(d)] * N + [rng.choice(d, k, replace=False) for _ in range(N, m)]
    entries = Entries(d + 1)
    for part in (slice(N), slice(N, m)):
        entries.add(
            np.stack(S[part])[None], np.take_along_axis(X[part], np.stack(S[part]), axis=1)[None], y[part][None]
        )
    counts = np.bincount(np.concatenate(S), minlength=d)
    label = known_label(d, counts, rng.normal(size=d), rng.normal(size=d))
    own = collected_pairs(entries.blocks(), 0, (N, 12, m), label, 0.3)
    E = X - label.a - np.outer(y - 0.3, label.b)
    c = np.sqrt(counts / counts.mean())
    np.testing.assert_allclose(own.scale, c)
    np.testing.assert_allclose(own.diagonal, c**2)
    sums, numbers, expected = np.zeros((FOLDS, d, d)), np.zeros((FOLDS, d, d)), np.zeros((d, d))
    for t, seen in enumerate(S):
        for i in seen:
            for j in set(seen) - {i}:
                sums[t % FOLDS, i, j] += c[i] * c[j] * E[t, i] * E[t, j]
                numbers[t % FOLDS, i, j] += 1
    for phase in (S[:N], S[N:12], S[12:]):
        often, n = np.bincount(np.concatenate(phase), minlength=d), len(phase[0])
        expected += np.outer(often, often) / len(phase) * (n - 1) / n
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(own.sums, sums, atol=1e-12)
    np.testing.assert_array_equal(own.counts, numbers)
    np.testing.assert_allclose(own.expected, expected * numbers.sum() / expected.sum())
    for f in range(FOLDS):
        rest = [g for g in range(FOLDS) if g != f]
        np.testing.assert_allclose(own.without(f)[0], sums[rest].sum(axis=0), atol=1e-12)
    mean = shrunk(own, sums.sum(axis=0), numbers.sum(axis=0))
    np.testing.assert_allclose(mean, sums.sum(axis=0) / (numbers.sum(axis=0) + 0.5) + np.diag(c**2), atol=1e-12)


@pytest.mark.parametrize("mean", [1e-6, 0.02, 0.5, 3.0, 40.0])
def test_what_pseudo_products_take_away_is_known(mean):
    N = np.arange(400)
    of = np.full((2, 2), mean) * (1 - np.eye(2))
    assert shrunk_share(of)[0, 1] == pytest.approx((poisson.pmf(N, mean) * N / (N + 0.5)).sum(), rel=1e-6)
    blocks, _ = revealed(*line(30, 2), 2, np.random.default_rng(0))
    own = collected_pairs(blocks, 0, (30,), known_label(2, np.full(2, 30)), 0.0)
    scaled = type(own)(**{**vars(own), "expected": of})
    kept = (poisson.pmf(N, mean) * N / (N + 1)).sum()
    total = own.sums.sum(axis=0), own.counts.sum(axis=0)
    assert debiased(scaled, *total)[0, 1] == pytest.approx(total[0][0, 1] / 31 / kept, rel=1e-5)


def test_debiased_products_are_right_on_average_under_unequal_draws():
    """Within four standard errors, entry by entry, though a pair is seen .2 to 3 times."""
    rng, d, k, m = np.random.default_rng(2), 6, 2, 30
    C = np.cov(rng.normal(size=(d, 12)))
    root, p = np.linalg.cholesky(C), np.array([0.35, 0.25, 0.15, 0.1, 0.1, 0.05])
    found = []
    for _ in range(3000):
        X = rng.normal(size=(m, d)) @ root.T
        blocks, S = revealed(X, np.zeros(m), k, rng, p)
        counts = np.maximum(np.bincount(S.reshape(-1), minlength=d), 1)
        own = collected_pairs(blocks, 0, (m,), known_label(d, counts), 0.0)
        # The true chance of a pair, as the property is of the division by it.
        scaled = type(own)(**{**vars(own), "expected": m * both(p)})
        found.append(debiased(scaled, own.sums.sum(axis=0), own.counts.sum(axis=0)) / np.outer(own.scale, own.scale))
    off = ~np.eye(d, dtype=bool)
    error = np.std(found, axis=0) / np.sqrt(len(found))
    # Numbers are binomial, for which the Poisson's share is off by a few per cent where a pair is seen often.
    slack = 0.04 * np.abs(C)
    assert (np.abs(np.mean(found, axis=0) - C) <= 4 * error + slack)[off].all()


def both(p):
    """Return the probabilities (d, d) of pairs when two are drawn without replacement."""
    P = np.outer(p, p / (1 - p)) * 0
    for i in range(len(p)):
        for j in range(len(p)):
            if i != j:
                P[i, j] = p[i] * p[j] / (1 - p[i]) + p[j] * p[i] / (1 - p[j])
    return P


# Spectra


def test_without_noise_a_spectrum_stays():
    A = np.random.default_rng(0).normal(size=(6, 9))
    G = A @ A.T / 9
    found = clean(G, 0.0)
    np.testing.assert_allclose((found.U * found.values) @ found.U.T, G, atol=1e-6)


def test_cleaning_brings_a_matrix_nearer_to_what_noise_was_added_to():
    """Nearly as near as any spectrum with these eigenvectors can be; noise is measured by what parts of it share."""
    rng, p = np.random.default_rng(3), 150
    truth = np.diag(np.concatenate([[40.0, 20, 10], np.linspace(0.2, 1.2, p - 3)]))
    s = 3.0
    parts = []
    for _ in range(FOLDS):
        own = rng.normal(size=(p, p)) * s * np.sqrt(FOLDS / p)
        parts.append(truth + np.triu(own, 1) + np.triu(own, 1).T)
    G = np.mean(parts, axis=0)
    others = np.stack([(FOLDS * G - own) / (FOLDS - 1) for own in parts])
    measured = noise(G, others, np.stack(parts))
    assert measured == pytest.approx(s**2, rel=0.05)
    found = clean(G, measured)
    np.testing.assert_allclose(found.U.T @ found.U, np.eye(p), atol=1e-10)
    assert (np.diff(found.values) >= 0).all()
    assert found.values[0] > 0
    best = np.diag(np.einsum("ji,jk,ki->i", found.U, truth, found.U))
    far, near, nearest = (
        np.square(own - truth).sum() for own in (G, (found.U * found.values) @ found.U.T, found.U @ best @ found.U.T)
    )
    assert near <= 0.1 * far
    assert near <= 1.3 * nearest + 1


# Candidates


def moments(rng, p=6):
    A = rng.normal(size=(p, 2 * p))
    values, U = np.linalg.eigh(A @ A.T / p)
    return Spectrum(U, values), rng.normal(size=(p, 2))


@pytest.mark.parametrize("level", [0.0, 1.5])
def test_ridge_solves_the_moments_that_the_label_makes(level):
    rng = np.random.default_rng(4)
    spectrum, P = moments(rng)
    R = (spectrum.U * spectrum.values) @ spectrum.U.T
    W = ridge_regressors([spectrum, Spectrum(spectrum.U, np.ones(6))], P, Target(level, 0.7))
    for row, own in zip(W.reshape(2, len(RIDGES), 6), (R, np.eye(6)), strict=True):
        for w, ridge in zip(row, RIDGES, strict=True):
            M = own + ridge * np.eye(6) + P @ np.diag([1, 0.7]) @ P.T
            np.testing.assert_allclose(M @ w, P @ [level, 0.7], atol=1e-10)


def test_the_lasso_meets_its_optimality_conditions():
    rng = np.random.default_rng(5)
    spectrum, P = moments(rng)
    target = Target(0.4, 2.0)
    M = (spectrum.U * spectrum.values) @ spectrum.U.T + P @ target.moment @ P.T
    units = np.sqrt(np.diag(M))
    rhs = P @ target.product
    top = np.abs(rhs / units).max()
    sizes = []
    for w, penalty in zip(lasso_regressors([spectrum], P, target), PENALTIES, strict=True):
        slope = (rhs - M @ w) / units
        assert (np.abs(slope) <= penalty * top * (1 + 1e-6)).all()
        on = np.abs(w * units) > 1e-9
        np.testing.assert_allclose(slope[on], np.sign(w[on]) * penalty * top, rtol=1e-6)
        sizes.append(np.abs(w * units).sum())
    assert (np.diff(sizes) > 0).all()
    assert not lasso_regressors([spectrum], np.zeros((6, 2)), target).any()


# Evidence


def test_folds_judge_by_risks_that_are_right_on_average():
    """Of regressors that owe nothing to what was revealed, at scales that are not clipped."""
    rng, d, k, m = np.random.default_rng(6), 5, 3, 400
    C, w = np.cov(rng.normal(size=(d, 20))), np.array([0.5, -0.3, 0.2, 0.1, 0.4])
    root, W = np.linalg.cholesky(C), np.stack([w, np.array([0.3, 0.3, 0, 0, 0.3])])
    target = Target(0.0, float(w @ C @ w + 1))
    cross = C @ w
    truth = np.array([-np.square(max(v @ cross, 0)) / (v @ C @ v) for v in W])
    found = []
    for _ in range(300):
        X = rng.normal(size=(m, d)) @ root.T
        y = X @ w + rng.normal(size=m)
        blocks, S = revealed(X, y, k, rng)
        b = cross / target.variance
        left = np.diag(C) - target.variance * b**2
        label = known_label(d, np.bincount(S.reshape(-1), minlength=d), b=b, v=left)
        own = collected_pairs(blocks, 0, (m,), label, 0.0)
        scaled = W / own.scale
        evidence = []
        for f in range(FOLDS):
            R = debiased(own, own.sums[f], own.counts[f])
            evidence.append(Evidence(np.zeros(2), W @ b, ((scaled @ R) * scaled).sum(axis=1), np.zeros(2)))
        found.append(judge(evidence, target).risk)
    error = np.std(found, axis=0) / np.sqrt(len(found))
    assert (np.abs(np.mean(found, axis=0) - truth) <= 4 * error + 0.02 * np.abs(truth)).all()


def test_no_risk_is_below_that_of_knowing_the_target():
    """However wild the folds are: q far below 0 would promise errors below 0."""
    own = Evidence(np.array([0.0]), np.array([2.0]), np.array([-50.0]), np.array([0.0]))
    assert judge([own] * FOLDS, Target(0.0, 1.0)).risk[0] >= -1


def test_candidates_that_chance_could_part_share_and_others_do_not():
    wide = np.array([[-1.0, -0.9, 0.0], [-0.6, -0.5, 0.0], [-1.4, -1.3, 0.0]])
    close = Judgement(np.array([-1.0, -0.9, 0.0]), wide, np.ones(3))
    clear = Judgement(np.array([-1.0, -0.9, 0.0]), -1 + (wide + 1) * 1e-3, np.ones(3))
    assert close.shares().sum() == pytest.approx(1)
    assert 0.3 < close.shares()[1] < close.shares()[0] < 0.7
    assert clear.shares()[0] > 0.99
    assert clear.clearly_better(slice(0, 1), slice(1, 3))
    assert not clear.clearly_better(slice(2, 3), slice(0, 2))


# The whole


@pytest.mark.parametrize("name", ["aemr", "aemr_cv"])
def test_one_attribute_is_refused(name):
    with pytest.raises(ConfigError, match="k=1"):
        checks.examined(name).learner.divide(1)


@pytest.mark.parametrize("options", [{}, {"norm": "l1"}, {"partner": "auto", "norm": "auto"}])
def test_all_attributes_of_many_examples_say_what_least_squares_says(options):
    X, y = line(4000, 4)
    (w,), _ = aemr(X, y, shuffled(1, 4000), 4, **options)
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    assert (w - best) @ (X.T @ X) @ (w - best) <= 0.02 * best @ (X.T @ X) @ best


def test_an_intercept_is_the_mean_and_attributes_count_from_theirs():
    X, y = line(300, 5)
    orders, a = shuffled(2, 300), np.array([2.0, -1, 0.5, 3, 0])
    w, b = aemr(X, y, orders, 5, centred=True, intercept=True)
    v, moved = aemr(X + a, y + 7, orders, 5, centred=True, intercept=True)
    np.testing.assert_allclose(v, w, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(moved, b + 7 - w @ a, rtol=1e-5, atol=1e-6)
    _, b = aemr(X, y, orders, 3, intercept=True)
    np.testing.assert_allclose(b, y.mean())
    assert aemr(X, y, orders, 3)[1] is None


def test_examples_that_tell_nothing_give_zero():
    X, y = line(60, 5)
    for none, target in ((np.zeros_like(X), y), (X, np.zeros(60)), (np.full_like(X, 2.0), y)):
        w, _ = aemr(none, target, shuffled(2, 60), 3, partner="auto", norm="auto")
        assert not w.any()


def test_a_permutation_of_attributes_permutes_the_regressor():
    """The moments': draws and a chain have numbers of their own for each column."""
    X, y = line(200, 7)
    rng = np.random.default_rng(0)
    blocks, S = revealed(X, y, 3, rng)
    turn = rng.permutation(7)
    turned = Entries(8)
    turned.add(turn[S][None], np.take_along_axis(X, S, axis=1)[None], y[None])
    for norm in ("l2", "l1"):
        own, other = (
            solve(one, 0, (200,), 7, norm=norm, centred=False, intercept=False).w for one in (blocks, turned.blocks())
        )
        np.testing.assert_allclose(other[turn], own, rtol=1e-6, atol=1e-9)


def test_targets_of_few_attributes_are_found_to_be_so():
    rng, d, m = np.random.default_rng(7), 60, 4000
    X = rng.normal(size=(m, d))
    few, many = np.zeros(d), rng.normal(size=d)
    few[:3] = 2
    for w, sparse in ((few, True), (many, False)):
        blocks, _ = revealed(X, X @ w + rng.normal(size=m), 4, rng)
        found = {
            norm: solve(blocks, 0, (m,), d, norm=norm, centred=False, intercept=False) for norm in ("auto", "l1", "l2")
        }
        assert found["auto"].sparse == sparse
        np.testing.assert_array_equal(found["auto"].w, found["l1" if sparse else "l2"].w)
        if sparse:
            assert np.square(found["l1"].w - w).sum() < 0.8 * np.square(found["l2"].w - w).sum()


@pytest.mark.parametrize("T", [4, 200, 600])
def test_the_partner_counts_for_half_at_last_and_for_more_before(T):
    """Where all attributes are drawn, so that moments alone have seen the same values."""
    X, y = line(600, 4)
    one = dict(X=X, y=y, orders=shuffled(2, T), k=4)
    both, moments = fitted(**one, partner="auto")[0][T], fitted(**one)[0][T]
    partner = fitted(**one, fit=factor_regression.fit, n_factors=20)[0][T]
    share = 1 - 0.5 * T / (T + 200)
    np.testing.assert_allclose(both, share * partner + (1 - share) * moments, rtol=1e-9, atol=1e-12)


def test_with_a_partner_the_draws_are_those_of_aeml():
    X, y = line(300, 7)
    one = dict(X=X, y=y, orders=shuffled(2, 300), k=3)
    bills = [
        fitted(**one, **own)[1].bill().reveals.total()
        for own in ({"partner": "auto"}, {"fit": factor_regression.fit, "n_factors": 20}, {})
    ]
    np.testing.assert_array_equal(bills[0], bills[1])
    assert (bills[0] != bills[2]).any()


def test_a_factor_model_that_pairs_contradict_has_no_say():
    """Two blocks of attributes, each moved by a factor of its own, and a model with one."""
    rng, m = np.random.default_rng(8), 3000
    Z = rng.normal(size=(m, 4))
    X = np.repeat(Z, 4, axis=1) + 0.3 * rng.normal(size=(m, 16))
    y = X[:, 0] + rng.normal(size=m)
    blocks, _ = revealed(X, y, 4, rng)
    found = solve(blocks, 0, (m,), 16, norm="l2", centred=False, intercept=False)
    right = np.kron(np.eye(4), np.ones((4, 4))) + 0.09 * np.eye(16)
    right -= np.outer(right[0], right[0]) / (right[0, 0] + 1)
    wrong = np.diag(np.diag(right))
    assert found.contradict(wrong, 1)
    assert not found.contradict(right, 4)
    assert not found.contradict(wrong, 16)
    orders = shuffled(1, m)
    alone, poor, rich = (
        aemr(X, y, orders, 16, **own)[0]  # draws, which are the partner's plans, then are the same
        for own in ({}, {"partner": "auto", "n_factors": 1}, {"partner": "auto", "n_factors": 6})
    )
    np.testing.assert_array_equal(poor, alone)
    assert (rich != alone).any()


def test_given_candidates_are_those_that_are_judged():
    """At their own scales, and each with the draws that the judged ones plan."""
    X, y = line(300, 5)
    given = {"candidate": np.array([1.0, 25, 40, 25])}
    found = fitted(X, y, shuffled(2, 300), 3, given=given)[0][300]
    assert found.shape == (2, 5, 4)
    for g, number in enumerate(given["candidate"]):
        one, _ = fitted(X, y, shuffled(2, 300), 3, given={"candidate": np.array([number])})
        np.testing.assert_array_equal(one[300][:, :, 0], found[:, :, g])
    assert (found[:, :, 0] != found[:, :, 1]).any()
    # The choice by what was revealed is a mean of them.
    w, _ = aemr(X, y, shuffled(2, 300), 3)
    every = fitted(X, y, shuffled(2, 300), 3, given={"candidate": np.arange(1.0, 41)})[0][300]
    for f in range(2):
        share, left = nnls(np.vstack([every[f], np.full(40, 100.0)]), np.append(w[f], 100.0))
        assert left <= 1e-6
        assert share.sum() == pytest.approx(1)


@handfuls
def test_it_errs_no_more_than_the_mean_of_the_targets_by_much(law, d, k, m, N):
    def fitted(X, y, orders, pilot):
        return aemr(X, y, orders, k, partner="auto", norm="auto", pilot=pilot, centred=True, intercept=True)

    assert max(errors(law, d, m, N, fitted)) <= 1.2


OPTIONS = {
    "alone": {"norm": "auto", "intercept": True, "centred": True},
    "with a partner": {"partner": "auto", "norm": "auto", "n_factors": 3, "intercept": True, "centred": True},
}


def numbers(found, f=0):
    """Return what came of one stream, in bytes."""
    parts = [part[f] for one in found.values() for part in (one if isinstance(one, tuple) else [one])]
    return [part.tobytes() for part in parts]


@pytest.mark.parametrize("name", OPTIONS)
def test_a_stream_does_not_depend_on_its_company(name):
    """Over several blocks, one of full rows and several plans."""
    X, y = line(290, 7)
    orders = shuffled(3, 290)

    def some(streams):
        own, pilot = orders[streams, 10:], orders[streams, :10]
        return fitted(X, y, own, 3, [280], pilot, seeds=streams, **OPTIONS[name])[0]

    together, turned = some([0, 1, 2]), some([2, 0, 1])
    for f in range(3):
        alone = numbers(some([f]))
        assert alone == numbers(together, f)
        assert alone == numbers(turned, [2, 0, 1].index(f))


@pytest.mark.parametrize("name", OPTIONS)
def test_what_was_not_seen_may_be_anything(name, monkeypatch):
    (X, y), taken, take = line(290, 7), [], Draws.take
    monkeypatch.setattr(Draws, "take", lambda self, examples: taken.append(take(self, examples)) or taken[-1])
    orders = shuffled(1, 280)
    found, _ = fitted(X, y, orders, 3, [20, 280], **OPTIONS[name])
    poisoned = np.full(X.shape, np.nan)
    cells = orders[0][:, None], np.concatenate(taken)
    poisoned[cells] = X[cells]
    assert np.isnan(poisoned).mean() > 0.5
    again, _ = fitted(poisoned, y, orders, 3, [20, 280], **OPTIONS[name])
    assert numbers(again) == numbers(found)
