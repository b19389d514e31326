"""Estimates from few values, or from values with heavy tails: degrees of freedom, standard errors and priors count."""

import numpy as np
import pytest
from scipy.stats import kurtosis

from budgetreg.algorithms.factors.posterior import Posterior
from budgetreg.revealed.collection import Block, Entries
from budgetreg.revealed.columns import Moments, StandardisedEntries


def test_gibbs_moments_of_few_values_equal_the_integral():
    """Each attribute has the same three values, and no example shows two of them.

    Then a value of the attribute with the loading ``u psi^(1/2)`` is ``N(mu, (1 + u^2) psi)``, and all but u and alpha
    integrate in closed form. Examples without values keep the whitening of the factors from changing the posterior.
    """
    x, c, F, without = np.array([-0.5, 0.4, 1.5]), 20, 5, 140
    attributes = np.append(np.repeat(np.arange(c), x.size), np.full(without, c + 1))
    values = np.append(np.tile(x, c), np.zeros(without))
    block = Block(*(np.broadcast_to(part[:, None], (F, part.size, 1)) for part in (attributes, values)))
    live = np.broadcast_to(np.arange(c + 1) < c, (F, c + 1))  # the target is not
    moments = Posterior(c + 1, 1, [np.random.default_rng([5, f]) for f in range(F)]).moments([block], live, 220, 200)
    gibbs = np.einsum("fcc->c", moments.second)[:c].mean() / F
    u, alpha = np.linspace(0, 30, 3001), np.geomspace(0.02, 60, 500)[:, None]
    noise = 1 + u**2
    mean, variance = x.sum() / (x.size + noise / 10), 1 / (0.1 + x.size / noise)  # of mu; the variance over psi
    shape, rate = 1 + x.size / 2, 0.3 + (x @ x - mean * x.sum()) / noise / 2  # of psi given u
    density = rate**-shape / np.sqrt(noise**x.size * (1 + 10 * x.size / noise))
    density = density * np.sqrt(alpha) * np.exp(-alpha * u**2 / 2)
    second = (density * (rate / (shape - 1) * (noise + variance) + mean**2)).sum(axis=1) / density.sum(axis=1)
    weight = alpha[:, 0] * np.exp(-alpha[:, 0]) * density.sum(axis=1) ** c  # on a grid of log alpha
    assert gibbs == pytest.approx(weight @ second / weight.sum(), rel=0.08)


def test_heavy_tails_shrink_the_regressor_as_fewer_examples_would():
    """By the kurtosis of the target or the mean one of the attributes, whichever is larger, at least 3."""
    rng, T, d = np.random.default_rng(6), 200, 3
    normal, heavy = rng.normal(size=(T, d + 1)), rng.standard_t(3, (T, d + 1))
    largest = []
    for X, y in ((normal, normal), (heavy, normal), (normal, heavy), (np.sign(normal), np.sign(normal))):
        columns = np.column_stack([X[:, :d], y[:, d]])
        entries = Entries(d + 1)
        entries.add(np.tile(np.arange(d), (T, 1))[None], columns[None, :, :d], columns[None, :, d])
        C = np.cov(rng.normal(size=(d + 1, 9)))
        both = {"centred": True, "intercept": True}
        moments = Moments(np.zeros((1, d + 1)), C[None])
        outputs = StandardisedEntries(entries.blocks(), d, **both).regressors(moments, **both)
        kurtoses = kurtosis(columns, fisher=False)
        largest.append(max(kurtoses[:d].mean(), kurtoses[d], 3))
        w = np.linalg.solve(C[:d, :d], C[:d, d])
        explained = w @ C[:d, d] / C[d, d]
        w = w * explained / (explained + (largest[-1] - 1) / (2 * T))
        of_attributes = columns[:, :d].var(axis=0)
        units = np.sqrt((T * of_attributes + 3 * of_attributes.mean()) / (T + 3))
        np.testing.assert_allclose(outputs.regressors[0, :, 0], w * columns[:, d].std() / units, rtol=1e-10)
    assert largest[-1] == 3 < largest[0] < 4 < 6 < min(largest[1:3])
