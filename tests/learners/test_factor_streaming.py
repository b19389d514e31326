"""Stepwise EM of a factor model: literal steps, recovery, memory, and independence of streams."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgetreg.algorithms.factors import StreamingFactorAnalysis
from budgetreg.algorithms.factors.likelihood import (
    ALPHA,
    STREAM_PENALTY,
    FactorModel,
    Penalty,
    RevealedEntries,
    StepwiseEM,
)
from budgetreg.common.errors import ConfigError
from budgetreg.revealed.collection import AttributeDraws
from budgetreg.testing import checks
from tests.learners.problems import fit, likelihood, shuffled

RIDGE, PSEUDO, NOISE, LEAST = (getattr(STREAM_PENALTY, name) for name in ("ridge", "pseudo", "noise", "least"))


def block(rng, T, d, n, missing=0.0):
    """Return attributes and values of T examples, d and 0 for a missing value."""
    i = np.argsort(rng.random((T, d)), axis=1)[:, :n]
    there = rng.random((T, n)) >= missing
    return np.where(there, i, d), np.where(there, rng.normal(size=(T, n)) * (1 + i), 0.0)


def literal(rng, d, q, blocks, sweeps=1):
    """Yield the moving and the averaged model after each block, computed attribute by attribute."""
    alpha, recent, average = ALPHA, {}, {}
    W = rng.standard_normal((d, q))
    for t, (attributes, values) in enumerate(blocks, 1):
        if t == 1:
            unit = np.square(values).sum() / (attributes < d).sum()
            W, psi = W * np.sqrt(unit / 2 / q), np.full(d, unit / 2)
        gamma, block_sums = (t + 1) ** -alpha, {}
        for i, x in zip(attributes, values, strict=True):
            S, x = i[i < d], x[i < d]
            V = np.linalg.inv(np.eye(q) + W[S].T @ np.diag(1 / psi[S]) @ W[S])
            z = V @ W[S].T @ (x / psi[S])
            for j, value in zip(S, x, strict=True):
                A, b, c, s = block_sums.get(j, (np.zeros((q, q)), np.zeros(q), 0, 0.0))
                block_sums[j] = A + V + np.outer(z, z), b + value * z, c + 1, s + value**2
        for j in range(d):
            nothing = np.zeros((q, q)), np.zeros(q), 0.0, 0.0
            new, old, all_old = block_sums.get(j, nothing), recent.get(j, nothing), average.get(j, nothing)
            recent[j] = [(1 - gamma) * total + gamma * more for total, more in zip(old, new, strict=True)]
            average[j] = [total + (t + 1) * more for total, more in zip(all_old, new, strict=True)]
        W, psi = W.copy(), psi.copy()
        for j in block_sums:
            A, b, c, s = (total / gamma for total in recent[j])
            for a in list(range(q)) * sweeps:
                others = np.arange(q) != a
                W[j, a] = (b[a] - A[a, others] @ W[j, others]) / (A[a, a] + RIDGE)
            left = s - 2 * W[j] @ b + W[j] @ A @ W[j] + RIDGE * W[j] @ W[j]
            psi[j] = max((left + PSEUDO * NOISE * unit) / (c + PSEUDO), LEAST * unit)
        if t in (1, 2, 4, 8, 16):
            unit = np.mean([s / c for _, _, c, s in average.values() if c])
        model = FactorModel(np.zeros((d, q)), np.zeros(d))
        for j in range(d):
            A, b, c, s = (total / (t + 1) for total in average[j])
            model.W[j] = np.linalg.solve(A + RIDGE * np.eye(q), b)
            left = s - model.W[j] @ b
            model.psi[j] = max((left + PSEUDO * NOISE * unit) / (c + PSEUDO), LEAST * unit)
        yield FactorModel(W, psi), model


@pytest.mark.parametrize(("n", "missing"), [(2, 0.0), (5, 0.0), (4, 0.4)])
def test_block_updates_equal_the_formulas(n, missing):
    """With fewer attributes than factors, and more; some attributes are in few blocks, and one in none."""
    d, q, rng = 7, 3, np.random.default_rng(n)
    blocks = [block(rng, T, d - 1, n, missing) for T in (4, 4, 1, 4, 2, 4)]
    blocks = [(np.where(i == d - 1, d, i), x) for i, x in blocks]
    em = StepwiseEM(np.random.default_rng(1), d, q)
    for (i, x), (_, expected) in zip(blocks, literal(np.random.default_rng(1), d, q, blocks), strict=True):
        em.learn(i, x)
        np.testing.assert_allclose(em.model().W, expected.W, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(em.model().psi, expected.psi, rtol=1e-9)
        shown = np.unique(i[i < d])
        assert (em.mean_squares()[shown] > 0).all()
    assert em.mean_squares()[d - 1] == 0


@given(st.integers(0, 2**32), st.integers(2, 7), st.integers(1, 4), st.data())
def test_sweeps_increase_the_likelihood(seed, d, q, data):
    """For the first block; the listing's steps equal the learner's, see above."""
    i, x = block(np.random.default_rng(seed), 10, d, data.draw(st.integers(1, d)))
    unit = np.square(x).mean()
    penalty = Penalty(RIDGE, PSEUDO, NOISE * unit, LEAST * unit)
    rng = np.random.default_rng(seed)
    start = FactorModel(rng.standard_normal((d, q)) * np.sqrt(unit / 2 / q), np.full(d, unit / 2))
    ((moved, _),) = literal(np.random.default_rng(seed), d, q, [(i, x)])
    before, after = (likelihood(model, RevealedEntries(i, x, d), penalty) for model in (start, moved))
    assert after >= before - 1e-9 * (1 + abs(before))


# Recovery


def examples(m, d=12, seed=0):
    """Return examples of two factors, with noise that differs by attribute."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 2)) @ rng.normal(size=(2, d)) * np.linspace(0.5, 2, d)
    return X + rng.normal(size=(m, d)) * np.linspace(0.2, 0.6, d)


def fitted(X, k=5, available=None, **options):
    """Return the subspace (d, n) of one stream, and the accessor."""
    options = {"n_components": 2, "n_factors": None, "design": "importance", **options}
    learner = StreamingFactorAnalysis(name="test", **options)
    run = {"table": {"available": available}, "itemised": True}
    outputs, accessor = fit(learner, X, np.zeros(len(X)), shuffled(1, len(X)), k, **run)
    return outputs[len(X)][0, 0], accessor


def lost(X, V):
    """Return how much less a subspace (d, n) keeps than the best, relative to the best."""
    C = X.T @ X
    best = np.linalg.eigvalsh(C)[-V.shape[1] :].sum()
    return 1 - np.vdot(V, C @ V) / best


@pytest.mark.parametrize(("design", "k"), [("importance", 3), ("uniform", 3), ("importance", 12)])
def test_a_planted_subspace_is_found(design, k):
    X = examples(6000)
    V, accessor = fitted(X, k=k, design=design)
    assert lost(X, V) < 5e-3
    assert (accessor.bill().total == k * 6000).all()


def test_units_do_not_change_the_subspace():
    X = examples(3000)
    V, W = (fitted(data)[0] for data in (X, 1e-9 * X))
    np.testing.assert_allclose(W @ W.T, V @ V.T, atol=1e-9)


def test_large_attributes_are_drawn_more_often_after_the_first_plan(monkeypatch):
    plans, plan = [], AttributeDraws.plan
    monkeypatch.setattr(AttributeDraws, "plan", lambda self, *args: plans.append(args) or plan(self, *args))
    X = examples(4000)
    X[:, 0] *= 0.01
    _, accessor = fitted(X)
    assert len(plans) == 7  # after 32, 64, .., 2048 examples
    shares = accessor.bill().reveals.until()[0, 0] / 4000
    assert shares[0] < 0.5 * shares.mean() < shares[-1] < 1
    _, alike = fitted(X, k=5, design="uniform")
    assert np.ptp(alike.bill().reveals.until()[0, 0]) < 0.1 * 4000


def test_missing_values_are_left_out():
    X = examples(6000)
    there = np.random.default_rng(5).random(X.shape) < np.linspace(1, 0.3, 12)
    V, accessor = fitted(np.where(there, X, np.nan), available=there)
    assert lost(X, V) < 5e-3
    np.testing.assert_array_equal(accessor.bill().total, np.minimum(there.sum(axis=1), 5).sum())


@pytest.mark.parametrize("zeros", [1, 40, 300])
def test_leading_zeros_change_nothing(zeros):
    V, _ = fitted(np.zeros((zeros, 12)))
    np.testing.assert_allclose(V.T @ V, np.eye(2), atol=1e-12)
    model = StepwiseEM(np.random.default_rng(0), 12, 4)
    for _ in range(zeros):
        model.learn(np.zeros((3, 1), dtype=np.int64), np.zeros((3, 1)))
    i, x = block(np.random.default_rng(0), 20, 12, 3)
    fresh = StepwiseEM(np.random.default_rng(0), 12, 4)
    for em in (model, fresh):
        em.learn(i, x)
    np.testing.assert_array_equal(model.model().W, fresh.model().W)


# Memory


@pytest.mark.parametrize("t", [3, 5])
def test_memory_of_a_block_does_not_grow_with_attributes(t):
    """Everything that grows with d is allocated at the start; a block reads and writes few rows."""
    peaks = []
    for d in (1_000, 100_000):
        model, rng = StepwiseEM(np.random.default_rng(0), d, 4), np.random.default_rng(1)
        for number in range(t):
            i = np.stack([rng.choice(500, 6, replace=False) for _ in range(32)]) * (d // 500)
            x = rng.normal(size=i.shape)
            if number == t - 1:
                tracemalloc.start()
            model.learn(i, x)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]


def test_memory_of_a_run_is_linear_in_attributes():
    """At the larger d, a d x d matrix would need 800 times the limit."""
    peaks = []
    for d in (5_000, 20_000):
        X = np.random.default_rng(0).normal(size=(1, d)) * np.ones((70, 1))
        tracemalloc.start()
        fitted(X, k=4, n_components=1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 5 * peaks[0]
    assert peaks[1] < 8 * 20_000 * 100


def test_too_few_attributes_or_factors_are_refused():
    subject = checks.examined("aefa_streaming")
    with pytest.raises(ConfigError, match="k=1: aefa_streaming needs a budget of at least 2"):
        subject.plan(6, 1)
    refused = [replace(subject.learner, n_components=3, n_factors=n_factors).refuse() for n_factors in (None, 3, 2)]
    assert refused[:2] == [None, None]
    assert "n_factors=2" in refused[2]
