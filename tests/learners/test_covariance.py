"""The covariance of what was seen, with a prior."""

import numpy as np

from budgetreg.algorithms.factors import covariance as module
from budgetreg.algorithms.factors.covariance import revised


def problem(sizes=(2, 3, 5), T=30, p=5, seed=0):
    """Return columns and values of examples that show so many columns, one of each block missing, and a prior."""
    rng = np.random.default_rng(seed)
    C, prior = (np.cov(rng.normal(size=(p, 3 * p))) for _ in range(2))
    seen = []
    for n in sizes:
        x = rng.multivariate_normal(np.zeros(p), C, T)
        columns = np.argsort(rng.random((T, p)), axis=1)[:, :n]
        values = np.take_along_axis(x, columns, axis=1)
        columns[0, 0], values[0, 0] = p, np.nan
        seen.append((columns, values))
    return seen, prior, C


def objective(S, seen, prior):
    """Return the log density by a loop over examples."""
    total = -module._PRIOR_EXAMPLES * len(S) / 2 * (np.linalg.slogdet(S)[1] + np.trace(np.linalg.solve(S, prior)))
    for columns, values in seen:
        for i, x in zip(columns, values, strict=True):
            i, x = i[i < len(S)], x[i < len(S)]
            K = S[np.ix_(i, i)]
            total -= (np.linalg.slogdet(K)[1] + x @ np.linalg.solve(K, x)) / 2
    return total


def by_em(seen, prior, steps):
    """Return the maximum by steps of EM, for examples that show the same columns together."""
    p, S = len(prior), prior
    nu, T, products = module._PRIOR_EXAMPLES * p, 0, {}
    for columns, values in seen:
        for i, x in zip(columns, values, strict=True):
            order = np.argsort(i)[: np.count_nonzero(i < p)]
            i, x = i[order], x[order]
            count, sums = products.get(tuple(i), (0, 0.0))
            products[tuple(i)] = count + 1, sums + np.outer(x, x)
            T += 1
    for _ in range(steps):
        total = nu * prior
        for i, (count, sums) in products.items():
            slopes = np.linalg.solve(S[np.ix_(i, i)], S[list(i)]).T
            total = total + slopes @ sums @ slopes.T + count * (S - slopes @ S[list(i)])
        S = total / (nu + T)
    return S


def test_it_is_the_maximum_that_em_converges_to(monkeypatch):
    monkeypatch.setattr(module, "_GAIN", 1e-12)
    seen, prior, _ = problem()
    expected = by_em(seen, prior, 300)
    for chunk in (2**21, 30):
        monkeypatch.setattr(module, "_CHUNK", chunk)
        S = revised(seen, prior)
        np.testing.assert_allclose(S, expected, rtol=1e-3, atol=1e-3)
        np.testing.assert_array_equal(S, S.T)
    rng = np.random.default_rng(1)
    for _ in range(20):
        step = rng.normal(size=S.shape)
        assert objective(S + 0.01 * (step + step.T), seen, prior) < objective(S, seen, prior)


def test_it_ends_near_the_maximum():
    """By less than a fiftieth of a standard error: a tenth of a log density is half of .45 squared."""
    seen, prior, _ = problem((2, 2, 2), T=400)
    assert objective(by_em(seen, prior, 2000), seen, prior) - objective(revised(seen, prior), seen, prior) < 0.1


def test_complete_examples_count_beside_the_prior():
    rng, prior = np.random.default_rng(2), np.eye(4) + 1
    x = rng.normal(size=(50, 4))
    S = revised([(np.tile(np.arange(4), (50, 1)), x)], prior)
    np.testing.assert_allclose(S, (12 * prior + x.T @ x) / 62, rtol=1e-9)


def test_complete_examples_equal_others_in_any_order(monkeypatch):
    """Also if columns that are missing are named between those that are seen."""
    monkeypatch.setattr(module, "_GAIN", 1e-12)
    seen, prior, _ = problem((3, 5))
    turned = [(columns[::-1, ::-1], values[::-1, ::-1]) for columns, values in reversed(seen)]
    wider = [(np.insert(columns, 1, 5, axis=1), np.insert(values, 1, np.nan, axis=1)) for columns, values in seen]
    for other in (turned, wider):
        np.testing.assert_allclose(revised(other, prior), revised(seen, prior), rtol=1e-5, atol=1e-6)


def test_nothing_seen_is_the_prior():
    _, prior, _ = problem()
    np.testing.assert_array_equal(revised([], prior), prior)
    nothing = [(np.full((3, 2), 5), np.zeros((3, 2)))]
    np.testing.assert_allclose(revised(nothing, prior), prior, rtol=1e-9)


def test_a_prior_that_is_wrong_is_overruled():
    """And the more, the more examples show both of two columns."""
    errors = []
    for T in (100, 1000, 10_000):
        seen, prior, C = problem((3,), T=T)
        errors.append(np.abs(revised(seen, prior) - C).max())
    assert errors[2] < 0.3 * np.abs(prior - C).max()
    assert errors[0] > errors[1] > errors[2]


def test_a_step_that_is_dear_is_left_out(monkeypatch):
    seen, prior, _ = problem()
    monkeypatch.setattr(module, "_WORK", 10)
    np.testing.assert_array_equal(revised(seen, prior), prior)
