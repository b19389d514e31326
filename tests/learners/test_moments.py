"""The parts of AEMR: regression on the target, pairs, spectra, candidates and held-out risks."""

from copy import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import poisson

from budgetreg.algorithms.aemr.moments import (
    FOLDS,
    RIDGES,
    CandidateScores,
    Constants,
    Evidence,
    LabelRegression,
    Pairs,
    Spectrum,
    Target,
    clean,
    judge,
    label_regression,
    noise,
    regressors,
    shrunk_share,
    standard_error,
)
from budgetreg.revealed.collection import Entries
from tests.learners.problems import line, revealed


def known_label(d, counts, a=None, b=None, v=None):
    a, b = (np.zeros(d) if parameter is None else parameter for parameter in (a, b))
    none = Constants(np.zeros(d), np.ones(d))
    return LabelRegression(a, b, np.ones(d) if v is None else v, counts, np.ones(d, dtype=bool), none)


# Regression on the target


def test_attributes_are_regressed_on_the_target():
    """Many values give least squares; for rare attributes, slopes shrink to 0 and variances to the mean."""
    rng, d, m = np.random.default_rng(0), 4, 4000
    u = rng.normal(size=m)
    X = np.array([2.0, -1, 0, 5]) + np.outer(u, [1, 0, -2, 0.5]) + rng.normal(size=(m, d)) * [1, 2, 0.5, 1]
    i = np.tile(np.arange(d), m)
    regression = label_regression(i, X.reshape(-1), np.repeat(u, d), d)
    slopes = [np.polyfit(u, x, 1) for x in X.T]
    np.testing.assert_allclose(regression.b, [s for s, _ in slopes], atol=2e-3)
    np.testing.assert_allclose(regression.a, [a for _, a in slopes], atol=2e-3)
    left = [np.var(x - np.polyval(line, u)) for x, line in zip(X.T, slopes, strict=True)]
    np.testing.assert_allclose(regression.v, left, rtol=0.02)
    few = i < 3
    few[np.flatnonzero(i == 3)[:3]] = True
    rare = label_regression(i[few], X.reshape(-1)[few], np.repeat(u, d)[few], d)
    x, seen = X[:3, 3], u[:3]
    alone = np.cov(x, seen)[0, 1] / np.var(seen, ddof=1)
    assert 0 < rare.b[3] / alone < 0.95
    assert rare.counts.tolist() == [m, m, m, 3]
    assert rare.live.all()


@given(st.integers(0, 2**32), st.integers(1, 6), st.integers(1, 40))
@settings(max_examples=100, deadline=None)
def test_every_input_gives_a_finite_regression(seed, d, N):
    rng = np.random.default_rng(seed)
    i, x, u = rng.integers(0, d + 1, N), rng.normal(size=N) * (rng.random(N) < 0.7), rng.normal(size=N)
    regression = label_regression(i, x, u, d)
    assert all(np.isfinite(parameter).all() for parameter in (regression.a, regression.b, regression.v))
    assert (regression.v > 0).all() or not regression.live.any()
    assert not regression.a[~regression.live].any()
    assert not regression.b[~regression.live].any()
    turned = label_regression(d - 1 - np.where(i < d, i, -1), x, u, d)
    for parameter, turned_parameter in ((regression.a, turned.a), (regression.b, turned.b), (regression.v, turned.v)):
        np.testing.assert_allclose(parameter, turned_parameter[::-1], rtol=1e-9, atol=1e-12)


# Pairs


def test_pair_sums_equal_a_loop():
    """Over full rows, and examples of fewer attributes, in two phases of draws."""
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
    pairs = Pairs(entries.blocks(), 0, (N, 12, m), label, 0.3)
    E = X - label.a - np.outer(y - 0.3, label.b)
    c = np.sqrt(counts / counts.mean())
    np.testing.assert_allclose(pairs.scale, c)
    np.testing.assert_allclose(pairs.diagonal, c**2)
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
    np.testing.assert_allclose(pairs.sums, sums, atol=1e-12)
    np.testing.assert_array_equal(pairs.counts, numbers)
    np.testing.assert_allclose(pairs.expected, expected * numbers.sum() / expected.sum())
    for f in range(FOLDS):
        rest = [g for g in range(FOLDS) if g != f]
        np.testing.assert_allclose(pairs.without(f)[0], sums[rest].sum(axis=0), atol=1e-12)
    mean = pairs.shrunk(sums.sum(axis=0), numbers.sum(axis=0))
    np.testing.assert_allclose(mean, sums.sum(axis=0) / (numbers.sum(axis=0) + 0.5) + np.diag(c**2), atol=1e-12)


@pytest.mark.parametrize("mean", [1e-6, 0.02, 0.5, 3.0, 40.0])
def test_shrinkage_by_pseudo_products_has_its_poisson_mean(mean):
    N = np.arange(400)
    expected = np.full((2, 2), mean) * (1 - np.eye(2))
    assert shrunk_share(expected)[0, 1] == pytest.approx((poisson.pmf(N, mean) * N / (N + 0.5)).sum(), rel=1e-6)
    blocks, _ = revealed(*line(30, 2), 2, np.random.default_rng(0))
    pairs = Pairs(blocks, 0, (30,), known_label(2, np.full(2, 30)), 0.0)
    scaled = copy(pairs)
    scaled.expected = expected
    kept = (poisson.pmf(N, mean) * N / (N + 1)).sum()
    total = pairs.sums.sum(axis=0), pairs.counts.sum(axis=0)
    assert scaled.debiased(*total)[0, 1] == pytest.approx(total[0][0, 1] / 31 / kept, rel=1e-5)


@pytest.mark.slow
def test_debiased_products_are_unbiased_under_unequal_draws():
    """Entries are within four standard errors, though a pair is seen only 0.2 to 3 times."""
    rng, d, k, m = np.random.default_rng(2), 6, 2, 30
    C = np.cov(rng.normal(size=(d, 12)))
    root, p = np.linalg.cholesky(C), np.array([0.35, 0.25, 0.15, 0.1, 0.1, 0.05])
    estimates = []
    for _ in range(1200):
        X = rng.normal(size=(m, d)) @ root.T
        blocks, S = revealed(X, np.zeros(m), k, rng, p)
        counts = np.maximum(np.bincount(S.reshape(-1), minlength=d), 1)
        pairs = Pairs(blocks, 0, (m,), known_label(d, counts), 0.0)
        # The true probability of a pair, because unbiasedness holds for division by it.
        scaled = copy(pairs)
        scaled.expected = m * both(p)
        estimates.append(
            scaled.debiased(pairs.sums.sum(axis=0), pairs.counts.sum(axis=0)) / np.outer(pairs.scale, pairs.scale)
        )
    off = ~np.eye(d, dtype=bool)
    error = np.std(estimates, axis=0) / np.sqrt(len(estimates))
    # Numbers are binomial, so the Poisson shrinkage is off by a few per cent for frequent pairs.
    slack = 0.04 * np.abs(C)
    assert (np.abs(np.mean(estimates, axis=0) - C) <= 4 * error + slack)[off].all()


def both(p):
    """Return the probabilities (d, d) of pairs when two are drawn without replacement."""
    P = np.outer(p, p / (1 - p)) * 0
    for i in range(len(p)):
        for j in range(len(p)):
            if i != j:
                P[i, j] = p[i] * p[j] / (1 - p[i]) + p[j] * p[i] / (1 - p[j])
    return P


# Spectra


def test_cleaning_without_noise_changes_nothing():
    A = np.random.default_rng(0).normal(size=(6, 9))
    G = A @ A.T / 9
    spectrum = clean(G, 0.0)
    np.testing.assert_allclose((spectrum.U * spectrum.values) @ spectrum.U.T, G, atol=1e-6)


def test_eigenvalues_have_a_floor():
    """Without a floor, directions of no variance would have regressors of any size."""
    A = np.random.default_rng(1).normal(size=(6, 3))
    values = clean(A @ A.T / 3, 0.0).values
    np.testing.assert_allclose(values[:3], 0.02)
    assert values[3] > 0.02


def test_cleaning_reduces_the_error():
    """The error is close to the least for these eigenvectors; the noise is measured from parts."""
    rng, p = np.random.default_rng(3), 150
    truth = np.diag(np.concatenate([[40.0, 20, 10], np.linspace(0.2, 1.2, p - 3)]))
    s = 3.0
    parts = []
    for _ in range(FOLDS):
        matrix = rng.normal(size=(p, p)) * s * np.sqrt(FOLDS / p)
        parts.append(truth + np.triu(matrix, 1) + np.triu(matrix, 1).T)
    G = np.mean(parts, axis=0)
    others = np.stack([(FOLDS * G - matrix) / (FOLDS - 1) for matrix in parts])
    measured = noise(G, others, np.stack(parts))
    assert measured == pytest.approx(s**2, rel=0.05)
    spectrum = clean(G, measured)
    np.testing.assert_allclose(spectrum.U.T @ spectrum.U, np.eye(p), atol=1e-10)
    assert (np.diff(spectrum.values) >= 0).all()
    assert spectrum.values[0] > 0
    best = np.diag(np.einsum("ji,jk,ki->i", spectrum.U, truth, spectrum.U))
    far, near, nearest = (
        np.square(matrix - truth).sum()
        for matrix in (G, (spectrum.U * spectrum.values) @ spectrum.U.T, spectrum.U @ best @ spectrum.U.T)
    )
    assert near <= 0.1 * far
    assert near <= 1.3 * nearest + 1


# Candidates


def moments(rng, p=6):
    A = rng.normal(size=(p, 2 * p))
    values, U = np.linalg.eigh(A @ A.T / p)
    return Spectrum(U, values), rng.normal(size=(p, 2))


@pytest.mark.parametrize("level", [0.0, 1.5])
def test_ridge_solves_the_normal_equations(level):
    rng = np.random.default_rng(4)
    spectrum, P = moments(rng)
    R = (spectrum.U * spectrum.values) @ spectrum.U.T
    W = regressors([spectrum, Spectrum(spectrum.U, np.ones(6))], P, Target(level, 0.7))
    for row, R_candidate in zip(W.reshape(2, len(RIDGES), 6), (R, np.eye(6)), strict=True):
        for w, ridge in zip(row, RIDGES, strict=True):
            M = R_candidate + ridge * np.eye(6) + P @ np.diag([1, 0.7]) @ P.T
            np.testing.assert_allclose(M @ w, P @ [level, 0.7], atol=1e-10)


# Evidence


def test_held_out_risks_are_unbiased():
    """For regressors independent of the data, at scales that are not clipped."""
    rng, d, k, m = np.random.default_rng(6), 5, 3, 400
    C, w = np.cov(rng.normal(size=(d, 20))), np.array([0.5, -0.3, 0.2, 0.1, 0.4])
    root, W = np.linalg.cholesky(C), np.stack([w, np.array([0.3, 0.3, 0, 0, 0.3])])
    target = Target(0.0, float(w @ C @ w + 1))
    cross = C @ w
    truth = np.array([-np.square(max(v @ cross, 0)) / (v @ C @ v) for v in W])
    risks = []
    for _ in range(300):
        X = rng.normal(size=(m, d)) @ root.T
        y = X @ w + rng.normal(size=m)
        blocks, S = revealed(X, y, k, rng)
        b = cross / target.variance
        left = np.diag(C) - target.variance * b**2
        label = known_label(d, np.bincount(S.reshape(-1), minlength=d), b=b, v=left)
        pairs = Pairs(blocks, 0, (m,), label, 0.0)
        scaled = W / pairs.scale
        evidence = []
        for f in range(FOLDS):
            R = pairs.debiased(pairs.sums[f], pairs.counts[f])
            evidence.append(Evidence(np.zeros(2), W @ b, ((scaled @ R) * scaled).sum(axis=1)))
        risks.append(judge(evidence, target).risk)
    error = np.std(risks, axis=0) / np.sqrt(len(risks))
    assert (np.abs(np.mean(risks, axis=0) - truth) <= 4 * error + 0.02 * np.abs(truth)).all()


@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.7]))
@settings(max_examples=50, deadline=None)
def test_scores_equal_a_loop(seed, level):
    """With the Cauchy-Schwarz bound and the scale; for all folds, and without each."""
    rng, n = np.random.default_rng(seed), 6
    target = Target(level, 1.5)
    parts = [Evidence(*rng.normal([0.2, 0.3, 0.1], 0.2, (n, 3)).T) for _ in range(FOLDS)]
    scores = judge(parts, target)

    def risk(among, c):
        alpha, gamma, q = ([getattr(fold, name)[c] for fold in among] for name in ("alpha", "gamma", "q"))
        gain = level * np.mean(alpha) + 1.5 * np.mean(gamma)
        square = max(np.mean(alpha) ** 2 + 1.5 * np.mean(gamma) ** 2 + np.mean(q), gain**2 / (level**2 + 1.5))
        scale = min(max(gain / square, 0), 1.1)
        return scale**2 * square - 2 * scale * gain, scale

    for c in range(n):
        assert (scores.risk[c], scores.scale[c]) == pytest.approx(risk(parts, c))
        for f in range(FOLDS):
            assert scores.without[f, c] == pytest.approx(risk(parts[:f] + parts[f + 1 :], c)[0])


def test_jackknife_errors_of_means_are_standard_errors():
    values = np.random.default_rng(0).normal(size=(FOLDS, 3))
    without = (values.sum(axis=0) - values) / (FOLDS - 1)
    np.testing.assert_allclose(standard_error(without), values.std(axis=0, ddof=1) / np.sqrt(FOLDS))


def test_no_risk_is_below_a_perfect_prediction():
    """Even if q is far below 0, which would promise negative errors."""
    evidence = Evidence(np.array([0.0]), np.array([2.0]), np.array([-50.0]))
    assert judge([evidence] * FOLDS, Target(0.0, 1.0)).risk[0] >= -1


def test_candidates_within_chance_share_the_weight():
    wide = np.array([[-1.0, -0.9, 0.0], [-0.6, -0.5, 0.0], [-1.4, -1.3, 0.0]])
    close = CandidateScores(np.array([-1.0, -0.9, 0.0]), wide, np.ones(3))
    clear = CandidateScores(np.array([-1.0, -0.9, 0.0]), -1 + (wide + 1) * 1e-3, np.ones(3))
    assert close.weights().sum() == pytest.approx(1)
    assert 0.3 < close.weights()[1] < close.weights()[0] < 0.7
    assert clear.weights()[0] > 0.99
    sure = CandidateScores(np.array([-1e4, -1e3]), np.tile([-1e4, -1e3], (3, 1)), np.ones(2))
    assert sure.weights().tolist() == [1, 0]


def test_uncertain_candidates_get_less_weight():
    without = np.array([[-1.1, -1.5], [-1.0, -1.0], [-0.9, -0.5]])
    sure, unsure = CandidateScores(np.array([-1.0, -1.0]), without, np.ones(2)).weights()
    assert sure > 2 * unsure
