"""Debiased SGD: against the listing, and the bias of the printed correction for subsets."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from budgetreg.algorithms.sportisse_2020 import DebiasedGradient, debiased_gradient, debiased_sgd
from budgetreg.testing import checks
from budgetreg.testing.certificates import CheckError
from budgetreg.testing.checks import Recorder
from budgetreg.testing.oracles import DebiasedOracle
from tests.learners.problems import fit


def example(d=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=d), float(rng.normal()), rng.normal(size=d)


def expected(x, y, w, k, mask):
    masks = [np.isin(np.arange(len(x)), S) for S in combinations(range(len(x)), k)]
    return np.mean([debiased_gradient(x * seen, y, w, k, mask) for seen in masks], axis=0)


@pytest.mark.parametrize("k", [2, 3])
def test_the_printed_gradient_is_off_by_a_factor_outside_the_diagonal(k):
    x, y, w = example()
    d = len(x)
    apart = x * (w @ x) - x**2 * w  # the share of the gradient that pairs of different attributes make
    factor = d * (k - 1) / (k * (d - 1))
    np.testing.assert_allclose(expected(x, y, w, k, "independent"), (w @ x - y) * x + (factor - 1) * apart)


def test_the_printed_gradient_is_unbiased_for_independent_masks():
    x, y, w = example()
    d, p = len(x), 0.4
    total = np.zeros(d)
    for n in range(d + 1):
        for S in combinations(range(d), n):
            seen = np.isin(np.arange(d), S)
            total += p**n * (1 - p) ** (d - n) * debiased_gradient(x * seen, y, w, int(p * d), "independent")
    np.testing.assert_allclose(total, (w @ x - y) * x)


def test_the_check_of_unbiasedness_fails_for_the_printed_form():
    """At k = 4 of 784 attributes the factor is .75."""
    subject = checks.examined("debiased_sgd")
    printed = replace(subject, config=replace(subject.config, algo=replace(subject.learner, mask="independent")))
    with pytest.raises(CheckError, match="the mean of the gradient is off"):
        DebiasedOracle("independent").unbiased(printed)
    DebiasedOracle("subset").unbiased(subject)
    DebiasedOracle("independent").second_moments(printed)


@pytest.mark.parametrize("mask", ["independent", "subset"])
def test_replicas_equal_the_listing(mask):
    rng, m, d, k = np.random.default_rng(0), 300, 6, 3
    X = rng.normal(size=(m, d))
    y = X @ np.linspace(-1, 1, d)
    etas, log = np.array([0.01, 0.03]), Recorder(d)
    run = {"settings": {"eta": etas}, "rngs": [rng], "log": log}
    outputs, _ = fit(DebiasedGradient(name="debiased", mask=mask), X, y, np.arange(m)[None], k, [1, 7, m], **run)
    shown = log.seen()[1].reshape(m, k)
    for g, eta in enumerate(etas):
        listed = list(debiased_sgd(X, y, list(shown), eta, mask))
        for t, W in outputs.items():
            np.testing.assert_allclose(W[0, :, g], listed[t - 1], atol=1e-12)


def test_steps_that_diverge_leave_the_others():
    rng, m, d, k = np.random.default_rng(0), 400, 6, 2
    X = rng.normal(size=(m, d))
    learner, settings = DebiasedGradient(name="debiased", mask="subset"), {"eta": [0.002, 1e3]}
    outputs, _ = fit(learner, X, X[:, 0], np.arange(m)[None], k, settings=settings, rngs=[rng])
    assert np.isfinite(outputs[m][0]).all(axis=0).tolist() == [True, False]
