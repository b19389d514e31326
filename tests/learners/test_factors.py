"""AEML and AEFA: other solvers of the same models, few examples, and independence of streams."""

from copy import deepcopy
from functools import partial
from itertools import product

import numpy as np
import pytest

from budgetreg.algorithms.aemr import TargetRegressionLearner
from budgetreg.algorithms.factors import FactorAnalysis, FactorRegression
from budgetreg.algorithms.factors import posterior as chains
from budgetreg.algorithms.factors.posterior import ArrangedValues, Posterior, draw_factors, posterior_moments
from budgetreg.revealed.collection import AttributeDraws, Block, Entries
from budgetreg.revealed.columns import StandardisedEntries
from budgetreg.testing import checks
from tests.learners.problems import fit, regressors, shuffled
from tests.tiers import slow_but

AEFA = dict(n_factors=None, design="importance", phase_one=0.05, mix=0.1, noise="each", kappa="auto")


aeml = partial(regressors, FactorRegression)


# The posterior


def arranged(c, q, sizes, streams=2):
    """Return arranged values of blocks of 3 examples with so many values, the blocks, and the live columns.

    In each block one value is missing, one is 0, and column 1 is not live in the second stream.
    """
    rng = np.random.default_rng(4)
    blocks = []
    for n in sizes:
        attributes = np.argsort(rng.random((streams, 3, c)), axis=2)[:, :, :n]
        values = rng.normal(size=attributes.shape)
        attributes[:, 1, 0], values[:, 1, 0] = c, np.nan
        values[:, 2, 0] = 0.0
        blocks.append(Block(attributes, values))
    live = np.ones((streams, c), dtype=bool)
    live[1, 1] = False
    assert any((block.attributes[1] == 1).any() for block in blocks)
    return ArrangedValues(blocks, live, q), blocks, live


def seen(blocks, live, f):
    """Yield live columns and their values, by example of a stream."""
    for block in blocks:
        for attributes, values in zip(block.attributes[f], block.values[f], strict=True):
            kept = np.append(live[f], False)[attributes]
            yield attributes[kept], values[kept]


@pytest.mark.parametrize("chunk", [2**20, 50])
def test_factors_have_the_mean_and_covariance_of_their_posterior(chunk, monkeypatch):
    """The draw is affine in its noise: without noise it is the mean; unit vectors give a root of the covariance."""
    monkeypatch.setattr("budgetreg.algorithms.factors.posterior._PART", chunk)
    F, c, q, sizes = 2, 9, 4, (2, 4, 5, 9)  # systems over 2 or 4 columns, and over factors
    data, blocks, live = arranged(c, q, sizes)
    rng = np.random.default_rng(5)
    W, mu, psi = rng.normal(size=(F, c, q)), rng.normal(size=(F, c)), rng.uniform(0.1, 2, size=(F, c))

    def drawn(unit):
        """Return the factors if this number of each example's noise is 1, and all others are 0."""
        before = 0

        def normal(T, n):
            nonlocal before
            # all blocks share the noise of the prior; then each has the noise of its values, whose numbers overlap
            numbers = np.arange(n) + (q if before else 0)
            before += 1
            return np.broadcast_to((numbers == unit).astype(np.float32), (F * T, n)).copy()

        return draw_factors(data, W, mu, psi, normal).astype(float)

    mean = drawn(None)
    root = np.stack([drawn(unit) - mean for unit in range(q + max(sizes))], axis=3)
    for f in range(F):
        for t, (columns, x) in enumerate(seen(blocks, live, f)):
            scaled = W[f, columns].T / psi[f, columns]
            covariance = np.linalg.inv(scaled @ W[f, columns] + np.eye(q))
            np.testing.assert_allclose(mean[f, t], covariance @ scaled @ (x - mu[f, columns]), atol=1e-4)
            np.testing.assert_allclose(root[f, t] @ root[f, t].T, covariance, atol=1e-4)


@pytest.mark.parametrize("n", [15, 200])
def test_factors_of_nearly_no_noise_have_the_mean_of_their_posterior(n):
    """Rounding in float32 would exceed the least eigenvalue of a system. One of two streams has such little noise."""
    F, c, q = 2, 200, 20
    rng = np.random.default_rng(6)
    W, psi = rng.normal(size=(F, c, q)), np.full((F, c), 0.5)
    W[1, :, 1:] = W[1, :, :1] + 1e-4 * rng.normal(size=(c, q - 1))
    psi[1] = 1e-7
    values = (rng.normal(size=(F, 50, q)) @ W.swapaxes(1, 2))[:, :, :n]
    data = ArrangedValues([Block(np.broadcast_to(np.arange(n), values.shape), values)], np.ones((F, c), dtype=bool), q)
    z = draw_factors(data, W, np.zeros((F, c)), psi, lambda T, size: np.zeros((F * T, size), np.float32))
    for f in range(F):
        seen = W[f, :n]
        mean = values[f] @ np.linalg.solve(seen @ seen.T + np.diag(psi[f, :n]), seen)
        np.testing.assert_allclose(z[f], mean, atol=1e-2)


@pytest.mark.parametrize("summed", [2**18, 20])
def test_sums_equal_those_of_a_loop(summed, monkeypatch):
    monkeypatch.setattr("budgetreg.algorithms.factors.posterior._SUMMED", summed)
    F, c, q = 2, 6, 3
    data, blocks, live = arranged(c, q, (2, 6))
    z = np.random.default_rng(7).normal(size=(F, data.examples, q)).astype(np.float32)
    products, weighted = data.sums(z)
    for f in range(F):
        A, b, counts, squares = np.zeros((c, q, q)), np.zeros((c, q)), np.zeros(c), np.zeros(c)
        for t, (columns, x) in enumerate(seen(blocks, live, f)):
            for i, value in zip(columns, x, strict=True):
                A[i] += np.outer(z[f, t], z[f, t])
                b[i] += value * z[f, t]
                counts[i] += 1
                squares[i] += value**2
        np.testing.assert_allclose(products[f], A[:, *np.triu_indices(q)], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(weighted[f], b, rtol=1e-12)
        np.testing.assert_array_equal(data.counts[f], counts)
        np.testing.assert_allclose(data.squares[f], squares, rtol=1e-12)


def test_loadings_and_noise_are_drawn_from_their_conditional_distributions():
    """Each column alone, from the same random numbers."""
    F, c, q = 2, 6, 3
    data, blocks, live = arranged(c, q, (2, 6, 6))
    chain = Posterior(c, q, [np.random.default_rng(f) for f in range(F)])
    chain.moments(blocks, live, 5, 1)
    z = np.random.default_rng(8).normal(size=(F, data.examples, q)).astype(np.float32)
    psi, alpha = chain._psi.copy(), chain._alpha.copy()
    rngs = [deepcopy(rng) for rng in chain._rngs]
    tails = np.array([1.0, 2.0])
    means, traces = chain._draw_loadings(data, z, live, tails)
    for f, rng in enumerate(rngs):
        examples = list(enumerate(seen(blocks, live, f)))
        shown = [[(z[f, t], *x[columns == i]) for t, (columns, x) in examples if i in columns] for i in range(c)]
        normal = rng.standard_normal((c, q + 1))
        gamma = rng.standard_gamma(1 + (np.array([len(of) for of in shown]) + q + 1) / 2)
        for i in np.flatnonzero(live[f]):
            Z, x = np.array([np.append(of, 1) for of, _ in shown[i]]), np.array([value for _, value in shown[i]])
            more = 0.08 * q * (tails[f] - 1) if i == c - 1 else 0.0
            scaled = np.diag(np.append(alpha[f], 0.1))
            prior = scaled + more * psi[f, i] * np.diag(np.append(np.ones(q), 0.0))
            covariance = np.linalg.inv(Z.T @ Z + prior)
            mean = covariance @ Z.T @ x
            np.testing.assert_allclose(means[f, i], mean, rtol=1e-4, atol=1e-5)
            assert traces[f, i] == pytest.approx(psi[f, i] * np.trace(covariance), rel=1e-4)
            drawn = np.append(chain._W[f, i], chain._mu[f, i])
            noise = np.linalg.cholesky(Z.T @ Z + prior).T @ (drawn - mean) / np.sqrt(psi[f, i])
            np.testing.assert_allclose(noise, normal[i], atol=1e-3)
            rate = (0.3 if i < c - 1 else 0.1 * tails[f]) + (
                np.square(x - Z @ drawn).sum() + drawn @ scaled @ drawn
            ) / 2
            assert chain._psi[f, i] == pytest.approx(rate / gamma[i], rel=1e-4)
    assert not means[~live].any() and not chain._W[~live].any() and not chain._mu[~live].any()


@pytest.mark.slow
@pytest.mark.parametrize(("size", "off"), [(1, 0.1), (3, 0.25)])
def test_gibbs_moments_equal_those_of_metropolis(size, off):
    """Metropolis chains sample the density in which the factors are integrated out.

    Whitening the factors is not a Gibbs step. It weakens the prior of the loadings: by a tenth of the posterior's
    width, or by a quarter if the target is larger than the prior of its loadings expects.
    """
    T, c, q, F = 40, 3, 2, 16
    rng = np.random.default_rng(0)
    X = np.outer(rng.normal(size=T), [0.8, 0.6, 0.7]) + rng.normal(size=(T, c)) * [0.6, 0.8, 0.7]
    X[:, 2] *= size
    which = np.arange(T) % 2
    entries = Entries(c)
    values = X[np.arange(T), which]
    entries.add(
        *(np.broadcast_to(part[:, None], (F, T, 1)) for part in (which, values)), np.broadcast_to(X[:, 2], (F, T))
    )
    chain = Posterior(c, q, [np.random.default_rng([5, f]) for f in range(F)])
    moments = chain.moments(entries.blocks(), np.ones((F, c), dtype=bool), 550, 500)
    first, second, width = metropolis(
        [(np.array([j, 2]), X[which == j][:, [j, 2]]) for j in (0, 1)], c, q, chains=150, steps=3000
    )
    np.testing.assert_allclose(moments.first.mean(axis=0), first, atol=0.03)
    assert (np.abs(moments.second.mean(axis=0) - second) <= off * width + 0.005).all()


def metropolis(parts, c, q, chains, steps):
    """Return means (c,) and (c, c) of the moments, and standard deviations of the second moments.

    Proposals are differences of two other chains (ter Braak 2006), which need no step size.
    """
    rng = np.random.default_rng(1)

    def parameters(theta):
        W = theta[:, : c * q].reshape(-1, c, q)
        psi = np.exp(theta[:, c * q : c * q + c])
        return W, psi, theta[:, -c:], W @ W.swapaxes(1, 2) + psi[:, :, None] * np.eye(c)

    def density(theta):
        W, psi, mu, C = parameters(theta)
        size = (np.square(W) / psi[:, :, None]).sum(axis=1)
        rates, starts = np.append(np.full(c - 1, 0.3), 0.1), 5 * np.arange(1, q + 1)
        log = -(np.log(psi) + rates / psi).sum(axis=1) - (mu**2 / (10 * psi) + np.log(psi)).sum(axis=1) / 2
        log -= q / 2 * np.log(psi).sum(axis=1)
        log -= (1 + c / 2) * np.log(1 / starts + size / 2).sum(axis=1)  # without alpha
        for S, X in parts:
            covariance, center = C[:, S[:, None], S], X.mean(axis=0) - mu[:, S]
            M = np.cov(X.T, bias=True) + center[:, :, None] * center[:, None]
            log -= (
                len(X) / 2 * (np.linalg.slogdet(covariance)[1] + np.einsum("cij,cij->c", np.linalg.inv(covariance), M))
            )
        return log

    theta = rng.normal(size=(chains, c * q + 2 * c)) * 0.3
    now, first, second, squares = density(theta), 0.0, 0.0, 0.0
    for step in range(steps):
        ring = rng.permutation(chains)
        jump = np.empty_like(theta)
        jump[ring] = theta[np.roll(ring, 1)] - theta[np.roll(ring, 2)]
        new = theta + (0.3 if step % 10 else 1.0) * jump + rng.normal(size=theta.shape) * 0.02
        log = density(new)
        taken = np.log(rng.random(chains)) < log - now
        theta, now = np.where(taken[:, None], new, theta), np.where(taken, log, now)
        if step >= steps // 4:
            _, _, mu, C = parameters(theta)
            moment = C + mu[:, :, None] * mu[:, None]
            first, second = first + mu.mean(axis=0), second + moment.mean(axis=0)
            squares = squares + np.square(moment).mean(axis=0)
    n = steps - steps // 4
    return first / n, second / n, np.sqrt(squares / n - np.square(second / n))


# Regressors


def line(m, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) @ (np.eye(d) + 0.4 * rng.normal(size=(d, d)))
    return X, X @ np.linspace(-1, 1, d) + 0.5 * rng.normal(size=m)


def test_all_attributes_of_many_examples_give_least_squares():
    X, y = line(500, 4)
    best = np.linalg.lstsq(X, y)[0]
    w, _ = aeml(X, y, np.arange(500)[None], 4)
    assert np.linalg.norm(w - best) <= 0.05 * np.linalg.norm(best)


@pytest.mark.slow
def test_centring_matters_only_for_shifted_data():
    X, y = line(60, 4)
    X, y, orders, a = X - X.mean(axis=0), y - y.mean(), shuffled(1, 60), np.array([2.0, -1, 0.5, 3])
    (plain, none), *others = (
        aeml(X, y, orders, 4, centred=c, intercept=i) for c, i in product([False, True], repeat=2)
    )
    assert not none.any()
    for (w, b), off in zip(others, (0.3, 0.3, 0.1), strict=True):  # the chain is slow to find both means
        np.testing.assert_allclose(w, plain, atol=0.02)
        np.testing.assert_allclose(b, 0, atol=off)
    for (c, i), (w, b) in zip([(False, True), (True, False), (True, True)], others, strict=True):
        moved, moved_intercept = aeml(X + c * a, y + i * 7, orders, 4, centred=c, intercept=i)
        np.testing.assert_allclose(moved, w, rtol=1e-6)
        np.testing.assert_allclose(moved_intercept, b + 7 * i - c * w @ a, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("size", "kept", "for_draws"), [(10, 100, 60), (90_000, 49, 20), (500_000, 20, 20)])
def test_draw_probabilities_get_fewer_sweeps(size, kept, for_draws):
    X, y = line(30, 4)
    entries = Entries(5)
    entries.add(np.broadcast_to(np.arange(4), (1, 30, 4)), X[None], y[None])
    standardised = StandardisedEntries(entries.blocks(), 4, centred=False, intercept=False)
    done = []
    for purpose in (False, True):
        posterior = Posterior(5, 2, [np.random.default_rng(0)])
        posterior_moments(posterior, standardised, np.arange(1), size, for_draws=purpose)
        done += posterior.sweeps.tolist()
    assert done == [60 + kept, 60 + for_draws]  # the first 60 are not averaged


def test_outputs_are_of_accurate_moments(monkeypatch):
    """Outputs are, and plans get less accurate ones, whether there is an output or not."""
    purposes = []

    def noted(*arguments, for_draws, **options):
        purposes.append(for_draws)
        return posterior_moments(*arguments, for_draws=for_draws, **options)

    monkeypatch.setattr(chains, "posterior_moments", noted)
    X, y = line(40, 6)
    fit(FactorRegression(name="test", n_factors=2), X, y, shuffled(1, 40), 3, [4, 20, 40])
    assert purposes == [False, True, True, True, False, True, False]  # after 4, 4, 8, 16, 20, 32 and 40 examples


@pytest.mark.usefixtures("short_chains")
@pytest.mark.parametrize("learner", slow_but([TargetRegressionLearner], [FactorRegression, TargetRegressionLearner]))
def test_no_draw_and_no_output_depends_on_the_checkpoints_before_it(learner):
    X, y = line(40, 6)
    # plans are due after 4, 8, 16 and 32 examples
    run = learner(name="test", n_factors=2), X, y, shuffled(1, 40), 3
    (some, bill), (alone, other) = (fit(*run, checkpoints, itemised=True) for checkpoints in ([4, 20, 33, 40], [40]))
    np.testing.assert_array_equal(some[40].regressors, alone[40].regressors)
    np.testing.assert_array_equal(bill.bill().reveals.until(), other.bill().reveals.until())


@pytest.mark.usefixtures("short_chains")
def test_units_rescale_the_regressor():
    """Bitwise, for powers of 2."""
    X, y = line(60, 5)
    w, b = aeml(X, y, shuffled(2, 60), 2, intercept=True)
    v, a = aeml(4 * X, y / 2, shuffled(2, 60), 2, intercept=True)
    np.testing.assert_array_equal(v, w / 8)
    np.testing.assert_array_equal(a, b / 2)


@pytest.mark.usefixtures("short_chains")
def test_rarely_seen_and_constant_attributes_get_no_weight():
    m = 12
    X, y = line(m, 20)
    learner = FactorRegression(name="test", n_factors=5)
    outputs, accessor = fit(learner, X, y, shuffled(3, m), 2, itemised=True)
    W, counts = outputs[m].regressors[:, :, 0], accessor.bill().reveals.until()[:, 0]
    assert (counts == 0).any() and (counts == 1).any()
    np.testing.assert_array_equal(W != 0, counts > 1)
    X, y = line(30, 5)
    for constant, centred in ((0.0, False), (7.0, True)):
        X[:, 1] = constant
        w, _ = aeml(X, y, shuffled(2, 30), 3, centred=centred)
        assert not w[:, 1].any() and w[:, [0, 2, 3, 4]].all()
    for constant in (0.0, 2.0):
        w, b = aeml(X, np.full(30, constant), shuffled(2, 30), 3, intercept=True, centred=True)
        assert not w.any()
        np.testing.assert_allclose(b, constant)


@pytest.mark.slow
def test_draws_do_not_depend_on_checkpoints():
    """Nor do AEFA's outputs. AEML's chain continues at each checkpoint, so its later plans differ."""
    rng = np.random.default_rng(0)
    often, rarely = (AttributeDraws(np.random.default_rng(0), 9, 4) for _ in range(2))
    parts = [often.take(n) for n in (3, 250, 4, 300)]
    np.testing.assert_array_equal(np.concatenate(parts), rarely.take(557))
    p = rng.dirichlet(np.ones(9)) * 0.4 + 0.4
    for draws in (often, rarely):
        draws.plan(p, 0.1)
    np.testing.assert_array_equal(np.concatenate([often.take(10), often.take(30)]), rarely.take(40))
    X, _ = line(700, 6)
    run = FactorAnalysis(name="test", n_components=2, **AEFA), X, np.zeros(700), shuffled(2, 700), 3
    (once, paid), (twice, also) = (fit(*run, checkpoints, itemised=True) for checkpoints in ([700], [5, 33, 256, 700]))
    assert once[700].tobytes() == twice[700].tobytes()
    np.testing.assert_array_equal(paid.bill().reveals.until(), also.bill().reveals.until())


@pytest.mark.slow
def test_rounding_does_not_change_the_mean_output():
    """It is not bitwise portable: one draw that is rejected, or falls elsewhere, changes all later ones."""
    assert checks.examined("aefa").learner.bitwise_portable and not checks.examined("aeml").learner.bitwise_portable
    X, y = line(40, 5)
    F = 8
    w, v = (aeml(data, y, shuffled(F, 40), 3)[0] for data in (X, X.astype(np.float32).astype(np.float64)))
    rngs = [np.random.default_rng([3, f]) for f in range(100, 100 + F)]
    u, _ = aeml(X, y, shuffled(F, 40), 3, rngs=rngs)
    for other in (v, u):
        error = np.sqrt((w.var(axis=0) + other.var(axis=0)) / F)
        assert (w != other).any()
        assert (np.abs(w.mean(axis=0) - other.mean(axis=0)) <= 4 * error).all()
