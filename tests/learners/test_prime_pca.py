"""primePCA: the listing, row by row, and the subspaces that it recovers."""

import numpy as np
import pytest

from budgetreg.algorithms.learner import SideInformation
from budgetreg.algorithms.zhu_2022 import PrimePCA, prime_pca
from budgetreg.common.errors import ConfigError
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.testing.checks import Recorder
from tests.tiers import quick_but

SIGMA, N_ITER = 10.0, 1000
"""The defaults of the R package."""


def factors(m, d, q, noise, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, q)) @ rng.normal(size=(q, d)) + noise * rng.normal(size=(m, d))


def fitted(X, k, n, available=None, checkpoints=None, sigma=SIGMA, n_iter=N_ITER):
    """Return {checkpoint: subspace (d, n)}, and the rows as they were seen, NaN for what was not."""
    m, d = X.shape
    checkpoints, log = checkpoints or [m], Recorder(d)
    table, order = Table(X, np.zeros(m), available=available), np.random.default_rng(1).permutation(m)
    accessor = Accessor(table, order[None], 1, k, checkpoints, log=log)
    learner = PrimePCA(name="test", n_components=n, sigma=sigma, n_iter=n_iter)
    outputs = dict(learner.fit(accessor, {}, checkpoints, [np.random.default_rng(3)], SideInformation(k)))
    seen = np.full(X.shape, np.nan)
    seen[log.seen()] = X[log.seen()]
    return {checkpoint: V[0, 0] for checkpoint, V in outputs.items()}, seen[order]


def projections(V):
    return V @ np.swapaxes(V, -1, -2)


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize(
    ("m", "sigma", "n_iter"), quick_but([(120, SIGMA, N_ITER)], [(1100, SIGMA, 2), (300, 1.5, 7), (120, SIGMA, N_ITER)])
)
def test_core_equals_the_listing(holes, m, sigma, n_iter):
    """Over several blocks, with rows of unequal numbers of values, and rows that are left out; then to the end."""
    d, k, n = 12, 5, 2
    X = factors(m, d, n, 0.3)
    available = np.random.default_rng(4).random((m, d)) < 0.35 if holes else None
    outputs, seen = fitted(X, k, n, available, [40, m], sigma, n_iter)
    for checkpoint, V in outputs.items():
        expected = prime_pca(seen[:checkpoint], n, sigma, n_iter)
        np.testing.assert_allclose(projections(V), projections(expected), atol=1e-9)
    assert not holes or len(set(np.isfinite(seen).sum(axis=1))) > 3


def test_without_noise_the_subspace_is_exact():
    X = factors(400, 15, 2, 0.0)
    (V,) = fitted(X, 5, 2)[0].values()
    assert np.square(X - X @ V @ V.T).sum() < 1e-7 * np.square(X).sum()  # as the steps end at a change of 1e-5


def test_few_or_zero_examples_give_an_orthonormal_basis():
    for X in (np.zeros((30, 6)), factors(30, 6, 3, 0.5)):
        for V in fitted(X, 3, 2, checkpoints=[1, 2, 30])[0].values():
            np.testing.assert_allclose(V.T @ V, np.eye(2), atol=1e-12)


def test_it_needs_more_attributes_than_dimensions():
    learner = PrimePCA(name="prime_pca", n_components=3)
    with pytest.raises(ConfigError, match=r"k=3: .*needs a budget above algo\.n_components=3"):
        learner.split_budget(3)
    assert learner.split_budget(4) is None
