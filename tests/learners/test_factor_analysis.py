"""AEFA: literal EM steps, other solvers of the same model, and the quality of its subspaces."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.decomposition import FactorAnalysis

from budgetreg.algorithms.eigenspaces import leading
from budgetreg.algorithms.factors import FactorAnalysis as Aefa
from budgetreg.algorithms.factors.likelihood import FactorModel, Penalty, RevealedEntries, ascend, kept, products
from budgetreg.algorithms.gonen_2016 import SecondMomentLearner
from budgetreg.data.distributions import BiasedCoins, Hadamard, Spike
from tests.learners.problems import fit, likelihood, shuffled
from tests.learners.test_factors import AEFA, line


def model(d, q, seed=0):
    rng = np.random.default_rng(seed)
    return FactorModel(rng.normal(size=(d, q)), rng.uniform(0.2, 2, d))


def drawn(rng, m, d, n):
    return np.argsort(rng.random((m, d)), axis=1)[:, :n]


def seen_of(X, n, rng):
    i = drawn(rng, *X.shape, n)
    return RevealedEntries(i, np.take_along_axis(X, i, axis=1), X.shape[1])


def aefa(X, k, n, F=5, orders=None, **options):
    """Return subspaces (F, d, n), one per order of the examples."""
    orders = shuffled(F, len(X)) if orders is None else orders
    learner = Aefa(name="test", n_components=n, **{**AEFA, **options})
    outputs, _ = fit(learner, X, np.zeros(len(X)), orders, k)
    return outputs[len(X)][:, 0]


def lost(C, V):
    """Return how much less than the best subspace subspaces (F, d, n) keep, on average."""
    return np.linalg.eigvalsh(C)[-V.shape[2] :].sum() - np.einsum("fij,ik,fkj->f", V, C, V).mean()


# Expectation and maximisation


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_em_step_equals_the_formulas(n, shared):
    """With fewer attributes than factors, as many, and more; one attribute is never seen."""
    d, q, m, ridge, pseudo, noise = 7, 3, 30, 2.0, 1.5, 0.4
    rng, old = np.random.default_rng(n), model(d, q)
    i = drawn(rng, m, d - 1, n)
    x = rng.normal(size=(m, n))
    new = ascend(old, RevealedEntries(i, x, d), Penalty(ridge, pseudo, noise, 0.0, shared))
    A, b, squares, counts = np.zeros((d, q, q)), np.zeros((d, q)), np.zeros(d), np.zeros(d)
    np.testing.assert_allclose(old.second_moment, old.W @ old.W.T + np.diag(old.psi))
    for S, values in zip(i, x, strict=True):
        W = old.W[S]
        V = np.linalg.inv(np.eye(q) + W.T @ np.diag(1 / old.psi[S]) @ W)
        z = V @ W.T @ (values / old.psi[S])
        for j, value in zip(S, values, strict=True):
            A[j] += V + np.outer(z, z)
            b[j] += value * z
            squares[j] += value**2
            counts[j] += 1
    W = np.stack([np.linalg.solve(A[j] + ridge * np.eye(q), b[j]) for j in range(d)])
    left = [
        squares[j] - 2 * W[j] @ b[j] + W[j] @ A[j] @ W[j] + ridge * W[j] @ W[j] + pseudo * noise for j in range(d - 1)
    ]
    psi = np.array(left) / (counts[:-1] + pseudo)
    if shared:
        psi = np.full(d - 1, sum(left) / (counts[:-1] + pseudo).sum())
    np.testing.assert_allclose(new.W, W, atol=1e-10)
    np.testing.assert_allclose(new.psi, np.append(psi, old.psi[-1]), rtol=1e-10)


@given(st.integers(0, 2**32), st.integers(2, 7), st.integers(1, 4), st.integers(1, 12), st.booleans(), st.data())
def test_em_steps_never_decrease_the_likelihood(seed, d, q, m, shared, data):
    rng = np.random.default_rng(seed)
    seen = seen_of(rng.normal(size=(m, d)) * (rng.random((m, d)) < 0.7), data.draw(st.integers(1, d)), rng)
    penalty = Penalty(data.draw(st.sampled_from([0.0, 3.0])), data.draw(st.sampled_from([0.0, 2.0])), 0.5, 0.05, shared)
    current, likelihoods = model(d, q, seed), []
    if shared:
        current = FactorModel(current.W, np.full(d, current.psi[0]))
    for _ in range(8):
        likelihoods.append(likelihood(current, seen, penalty))
        current = ascend(current, seen, penalty)
    assert (np.diff(likelihoods) >= -1e-9 * (1 + np.abs(likelihoods[1:]))).all()


def test_full_rows_reach_the_likelihood_of_another_solver():
    m, d, q = 200, 6, 2
    X = np.random.default_rng(0).normal(size=(m, q)) @ model(d, q).W.T + np.random.default_rng(1).normal(size=(m, d))
    X -= X.mean(axis=0)
    seen, fitted_model = seen_of(X, d, np.random.default_rng(0)), model(d, q, 5)
    for _ in range(400):
        fitted_model = ascend(fitted_model, seen, Penalty())
    other = FactorAnalysis(q, tol=1e-10, max_iter=5000, svd_method="lapack").fit(X)
    assert likelihood(fitted_model, seen, Penalty()) / m == pytest.approx(other.score(X), abs=1e-4)
    np.testing.assert_allclose(fitted_model.second_moment, other.get_covariance(), atol=0.03)


@pytest.mark.slow
def test_planted_factors_are_recovered_from_5_of_8_attributes():
    m, d, q = 8000, 8, 2
    true, rng = FactorModel(model(d, q, 3).W, np.geomspace(0.4, 3, d)), np.random.default_rng(0)
    X = rng.normal(size=(m, q)) @ true.W.T + rng.normal(size=(m, d)) * np.sqrt(true.psi)
    seen, fitted_model = seen_of(X, 5, rng), model(d, q, 9)
    for _ in range(120):
        fitted_model = ascend(fitted_model, seen, Penalty())
    np.testing.assert_allclose(fitted_model.psi, true.psi, atol=0.15, rtol=0.15)
    scale = np.sqrt(np.diagonal(true.second_moment))
    np.testing.assert_allclose(fitted_model.second_moment, true.second_moment, atol=0.06 * np.outer(scale, scale).max())


# Subspaces


@pytest.mark.slow
def test_all_attributes_of_many_examples_give_pca():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3)) @ rng.normal(size=(3, 7)) + rng.normal(size=(2000, 7)) * np.linspace(0.3, 1, 7)
    C = X.T @ X / len(X)
    assert lost(C, aefa(X, 7, 2, F=1)) <= 2e-3 * np.linalg.eigvalsh(C)[-2:].sum()


def test_forty_em_steps_start_from_mean_products():
    """After 39 steps, or one, the subspace is another one."""
    m, d, n = 60, 8, 2
    X, _ = line(m, d)
    C = X.T @ X / m
    values, V = np.linalg.eigh(C)
    W = V[:, -2 * n :] * np.sqrt(values[-2 * n :])
    square = np.trace(C) / d
    fitted_model = FactorModel(W, np.full(d, np.trace(C - W @ W.T) / d))
    seen = RevealedEntries(np.tile(np.arange(d), (m, 1)), X, d)
    angles = []
    (V_learner,) = aefa(X, d, n, F=1, kappa="model")
    for _ in range(40):
        fitted_model = ascend(fitted_model, seen, Penalty(10, 5, 0.5 * square, 0.01 * square))
        other = leading(fitted_model.second_moment, n)
        angles.append(np.linalg.norm(V_learner - other @ (other.T @ V_learner)))
    assert angles[-1] < 1e-9
    assert angles[-2] > 1e-6 and angles[0] > 1e-2


@pytest.mark.parametrize(
    ("d", "k", "m", "same"),
    [(6, 6, 4, True), (6, 6, 19, True), (6, 6, 20, False), (12, 2, 29, True), (12, 2, 30, False)],
)
def test_few_values_use_products_alone(d, k, m, same):
    """Up to 20 examples, or 5 values per attribute on average, unless kappa asks for the model."""
    X, _ = line(m, d)
    options = {"F": 1, "design": "uniform"}
    auto, products, model = (aefa(X, k, 2, kappa=kappa, **options)[0] for kappa in ("auto", 1e-12, "model"))
    assert (np.linalg.norm(auto - products @ (products.T @ auto)) < 1e-6) == same
    assert np.linalg.norm(model - products @ (products.T @ model)) > 1e-2


@given(st.integers(0, 2**32), st.integers(2, 6), st.booleans())
def test_kept_moment_is_unbiased_over_parts(seed, d, all_seen):
    """For any model; for pairs that were never seen it is the model's value."""
    rng, m = np.random.default_rng(seed), 60
    i = drawn(rng, m, d, d if all_seen else 2)
    x = rng.normal(size=(m, d))[np.arange(m)[:, None], i]
    V, F = np.linalg.qr(rng.normal(size=(d, d)))[0][:, :1], rng.normal(size=(d, d))
    C, N = products(RevealedEntries(i, x, d))
    parts = [products(RevealedEntries(i[part::20], x[part::20], d)) for part in range(20)]
    mean_kept = np.mean([kept(V, F, *sums, N) for sums in parts])
    means = np.where(N > 0, C / np.maximum(N, 1), F)
    assert mean_kept == pytest.approx(np.vdot(V, means @ V), abs=1e-9)


@pytest.mark.parametrize(
    ("kind", "n", "k", "repetitions"),
    [
        pytest.param(BiasedCoins(8, 4, 0.5, 400), 4, 3, 20, marks=pytest.mark.slow),
        pytest.param(Hadamard(8, 4, 0.5, 400), 4, 3, 20, marks=pytest.mark.slow),
        (Spike(12, 0.1, 200), 1, 2, 5),
    ],
    ids=["coins", "hadamard", "spike"],
)
def test_data_without_factors_lose_at_most_twice_popca(kind, n, k, repetitions):
    """The loss is at most POPCA's on Hadamard matrices and spikes, and 1.5 times POPCA's on coins."""
    loss, popca_loss = 0.0, 0.0
    for repetition in range(repetitions):
        data = kind.draw(0, repetition)
        X, C = data.X * data.scale, kind.second_moment(0, repetition)
        loss += lost(C, aefa(X, k, n, F=1))
        popca = SecondMomentLearner(name="popca", n_components=n, update="active")
        outputs, _ = fit(popca, X, np.zeros(len(X)), shuffled(1, len(X)), k)
        popca_loss += lost(C, outputs[len(X)][:, 0])
    assert loss <= 2 * popca_loss + 0.01 * repetitions * np.trace(C)


def test_wrong_models_get_little_trust():
    """The data have three independent pairs, the model one factor."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(2000, 3)) * [1, 0.9, 0.8], 2, axis=1) + 0.3 * rng.normal(size=(2000, 6))
    C = X.T @ X / len(X)
    wrong, auto, products = (lost(C, aefa(X, 3, 3, F=2, n_factors=1, kappa=kappa)) for kappa in ("model", "auto", 1e-6))
    assert auto <= 1.5 * products + 1e-3 < 0.1 * wrong


def test_zero_examples_give_an_orthonormal_basis():
    for m in (1, 2, 30):
        V = aefa(np.zeros((m, 6)), 3, 2, F=2)
        np.testing.assert_allclose(V.transpose(0, 2, 1) @ V, np.eye(2)[None].repeat(2, axis=0), atol=1e-12)


@pytest.mark.slow
def test_rare_pairs_trust_the_model():
    """On images of digits the model's entries are worse than products, but its subspace is better."""
    X = load_digits().data[:600] / 16
    C = X.T @ X / len(X)
    auto, model, products = (lost(C, aefa(X, 8, 5, F=2, kappa=kappa)) for kappa in ("auto", "model", 10.0))
    assert model < auto < 0.6 * products


def test_a_single_nonzero_example_is_found_at_any_place():
    """Also if all examples that the model is fitted to are 0."""
    for place in (0, 18, 19):
        X = np.zeros((20, 5))
        X[place, 3] = 1
        (V,) = aefa(X, 5, 1, F=1, design="uniform", orders=np.arange(20)[None])
        np.testing.assert_allclose(np.abs(V[:, 0]), np.eye(5)[3], atol=1e-9)
