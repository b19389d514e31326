"""primePCA: the listing, row by row, and the subspaces that it recovers."""

import numpy as np
import pytest

from budgetreg.algorithms.gonen_2016 import SecondMomentLearner
from budgetreg.algorithms.zhu_2022 import PrimePCA, prime_pca
from budgetreg.common.errors import ConfigError
from budgetreg.testing.checks import Recorder
from tests.learners.problems import fit, shown, shuffled
from tests.tiers import quick_but, slow_but

SIGMA, N_ITER = 10.0, 1000
"""The defaults of the R package."""


def factors(m, d, q, noise, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, q)) @ rng.normal(size=(q, d)) + noise * rng.normal(size=(m, d))


def fitted(X, k, n, F=1, available=None, checkpoints=None, kind=PrimePCA, **options):
    """Return {checkpoint: subspaces (F, d, n)}, and the rows that each stream saw, NaN for what it did not see."""
    m, d = X.shape
    rows, log = shuffled(F, m).ravel(), Recorder(d)
    X = X[rows]  # the streams read separate copies, so that it is known which of them saw a value
    if kind is PrimePCA:
        options = {"sigma": SIGMA, "n_iter": N_ITER, **options}
    learner, orders = kind(name="test", n_components=n, **options), np.arange(F * m).reshape(F, m)
    table = {"available": None if available is None else available[rows]}
    outputs, _ = fit(learner, X, np.zeros(F * m), orders, k, checkpoints, table=table, log=log)
    return {checkpoint: V[:, 0] for checkpoint, V in outputs.items()}, shown(X, log).reshape(F, m, d)


def projections(V):
    return V @ np.swapaxes(V, -1, -2)


def lost(C, V):
    """Return the share of what the best subspace keeps that subspaces (F, d, n) lose, each."""
    most = np.linalg.eigvalsh(C)[-V.shape[2] :].sum()
    return 1 - np.einsum("fij,ik,fkj->f", V, C, V) / most


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize(
    ("m", "sigma", "n_iter"), quick_but([(120, SIGMA, N_ITER)], [(1100, SIGMA, 2), (300, 1.5, 7), (120, SIGMA, N_ITER)])
)
def test_core_equals_the_listing(holes, m, sigma, n_iter):
    """Over several blocks, with rows of unequal numbers of values, and rows that are left out; then to the end."""
    d, k, n = 12, 5, 2
    X = factors(m, d, n, 0.3)
    available = np.random.default_rng(4).random((m, d)) < 0.35 if holes else None
    outputs, seen = fitted(X, k, n, F=2, available=available, checkpoints=[40, m], sigma=sigma, n_iter=n_iter)
    for checkpoint in (40, m):
        for V, rows in zip(outputs[checkpoint], seen, strict=True):
            expected = prime_pca(rows[:checkpoint], n, sigma, n_iter)
            np.testing.assert_allclose(projections(V), projections(expected), atol=1e-9)
    assert not holes or len(set(np.isfinite(seen[0]).sum(axis=1))) > 3


def test_rows_are_chosen_by_sigma():
    """Which rows are good changes the subspace, and if none is, the first subspace remains."""
    X = factors(300, 12, 2, 0.3)
    every, some, none = (fitted(X, 5, 2, sigma=sigma, n_iter=5)[0][300][0] for sigma in (1e6, 1.5, 0.1))
    (_, seen) = fitted(X, 5, 2)
    counts = 1.0 * np.isfinite(seen[0]).T @ np.isfinite(seen[0])
    Y = np.nan_to_num(seen[0])
    first = np.linalg.eigh(Y.T @ Y / counts)[1][:, -2:]
    np.testing.assert_allclose(projections(none), projections(first), atol=1e-9)
    assert np.abs(projections(every) - projections(some)).max() > 1e-3


@pytest.mark.parametrize("seed", slow_but([0], range(3)))
def test_noisy_subspaces_are_recovered_better_than_from_zeros_or_products(seed):
    m, d, k, n = 1000, 20, 6, 2
    X = factors(m, d, n, 0.3, seed)
    C = X.T @ X / m
    prime = lost(C, fitted(X, k, n, F=3)[0][m])
    zeros, products = (
        lost(C, fitted(X, k, n, F=3, kind=SecondMomentLearner, update=update, **options)[0][m])
        for update, options in (("zero_filled", {}), ("active", {"replacement": False}))
    )
    assert prime.max() < 0.5 * min(zeros.min(), products.min())


def test_without_noise_the_subspace_is_exact():
    X = factors(400, 15, 2, 0.0)
    ((V,),) = fitted(X, 5, 2)[0].values()
    assert lost(X.T @ X, V[None]).item() < 1e-7  # as the steps end at a change of 1e-5


def test_all_attributes_give_pca():
    X = factors(50, 6, 6, 0.0)
    ((V,),) = fitted(X, 6, 3)[0].values()
    np.testing.assert_allclose(projections(V), projections(np.linalg.svd(X)[2][:3].T), atol=1e-10)


def test_few_or_zero_examples_give_an_orthonormal_basis():
    for X in (np.zeros((30, 6)), factors(30, 6, 3, 0.5)):
        for V in fitted(X, 3, 2, F=2, checkpoints=[1, 2, 30])[0].values():
            np.testing.assert_allclose(V.transpose(0, 2, 1) @ V, np.eye(2)[None].repeat(2, axis=0), atol=1e-12)


def test_it_needs_more_attributes_than_dimensions():
    learner = PrimePCA(name="prime_pca", n_components=3)
    with pytest.raises(ConfigError, match=r"k=3: .*needs a budget above algo\.n_components=3"):
        learner.split_budget(3)
    assert learner.split_budget(4) is None
