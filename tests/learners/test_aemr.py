"""AEMR as a whole: the regression of the target, averaged with the factor model's regressor."""

from functools import partial

import numpy as np
import pytest

from budgetreg.algorithms.aemr import TargetRegressionLearner, target_regression
from budgetreg.algorithms.aemr.target_regression import CompleteRegression, solve
from budgetreg.algorithms.factors.posterior import Posterior
from tests.learners.problems import fit, line, regressors, shuffled

aemr = partial(regressors, TargetRegressionLearner)


def test_all_attributes_of_many_examples_give_least_squares():
    X, y = line(2000, 4)
    (w,), _ = aemr(X, y, shuffled(1, 2000), 4)
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    assert (w - best) @ (X.T @ X) @ (w - best) <= 0.02 * best @ (X.T @ X) @ best


def test_complete_rows_with_little_noise_give_the_regression_alone_and_run_no_chain(monkeypatch):
    """Also a pilot, and with a row that is not complete the factor model is needed."""

    def refused(*arguments):
        raise AssertionError("a chain is run")

    solved = []

    def noted(regressions, rngs, tails, *, for_draws):
        assert all(isinstance(each, CompleteRegression) for each in regressions)
        solved.extend(solve(regressions, rngs, tails, for_draws=for_draws))
        return solved[-len(regressions) :]

    monkeypatch.setattr(target_regression, "solve", noted)
    monkeypatch.setattr(Posterior, "moments", refused)
    X, y = line(60, 4, noise=0.1)
    orders = shuffled(2, 60)
    w, _ = aemr(X, y, orders[:, 5:], 4, pilot=orders[:, :5], centred=True, intercept=True)
    assert len(solved) == 2
    units = np.sqrt(60 * X.var(axis=0) + 3 * X.var(axis=0).mean())
    for of_stream, draws in zip(w * units, solved, strict=True):
        directions = (v / np.linalg.norm(v) for v in (of_stream, draws.mean))
        np.testing.assert_allclose(*directions, rtol=1e-9)
    with pytest.raises(AssertionError, match="a chain is run"):
        aemr(X, y, orders, 3)


def test_intercepts_and_centring_absorb_shifts():
    X, y = line(300, 5)
    orders, a = shuffled(2, 300), np.array([2.0, -1, 0.5, 3, 0])
    w, b = aemr(X, y, orders, 5, centred=True, intercept=True)
    v, moved = aemr(X + a, y + 7, orders, 5, centred=True, intercept=True)
    np.testing.assert_allclose(v, w, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(moved, b + 7 - w @ a, rtol=1e-5, atol=1e-6)
    _, b = aemr(X, y, orders, 5, intercept=True)
    np.testing.assert_allclose(b, y.mean())
    assert not aemr(X, y, orders, 5)[1].any()


@pytest.mark.usefixtures("short_chains")
def test_uninformative_examples_give_zero():
    X, y = line(30, 5)
    for none, target, centred in (
        (np.zeros_like(X), y, False),
        (X, np.zeros(30), False),
        (np.full_like(X, 2.0), y, True),
    ):
        for k in (3, 5):
            w, _ = aemr(none, target, shuffled(1, 30), k, centred=centred)
            assert not w.any()


@pytest.mark.usefixtures("short_chains")
def test_draws_prefer_variable_and_relevant_attributes():
    rng, d = np.random.default_rng(4), 8
    X = rng.normal(size=(900, d)) * [6, 6, 1, 1, 1, 1, 1, 1]
    y = X[:, 1] + rng.normal(size=900)
    learner = TargetRegressionLearner(name="test", n_factors=5)
    _, accessor = fit(learner, X, y, shuffled(1, 900), 2, itemised=True)
    often = accessor.bill().reveals.until()[0, 0]
    assert often[1] > 1.2 * often[0] > 1.5 * often[2:].max()
