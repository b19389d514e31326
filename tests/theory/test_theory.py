"""Step sizes and bounds: values computed by hand, and properties that any such theorem must have."""

from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from budgetreg.algorithms.gonen_2016 import mbeg_bound, mbeg_least_examples, mbeg_step, popca_bound
from budgetreg.algorithms.hazan_koren_2012.aerr_aelr import (
    aelr_bound,
    aerr_bound,
    ddaelr_step,
    ddaerr_step,
    eg_step,
    ogd_step,
)
from budgetreg.algorithms.hazan_koren_2012.aesvr import svr_step
from budgetreg.algorithms.kukliansky_shamir_2015 import ddaelr_two_phase_step, ddaerr_two_phase_step, moment_error

MOMENTS = np.array([0.25, 0.16, 0.09, 0.0])  # sum 0.5, 1/2-norm (0.5 + 0.4 + 0.3)^2 = 1.44


def test_two_phase_steps_match_values_by_hand():
    eps = moment_error(d=4, delta=0.1, k=5, m_1=1000)
    assert eps == pytest.approx(4 * log(80) / 5000)
    assert moment_error(d=4, delta=0.1, k=5, m_1=1) == 1

    H = np.sqrt(2 * MOMENTS + 10 / 3 * eps).sum() ** 2
    # As printed: the paper's k + 1 draws per example are 5 here, and its k is k_x = 4.
    printed = 2 * H + 2 * sqrt(5 * 4**3 * H * log(80) / (3 * 5 * 1000)) + 4
    certain, guided = sqrt(4 / (6 * 4 * 900)), sqrt(4 / 900 / printed)
    assert ddaerr_two_phase_step(MOMENTS, eps, m_2=900, k_x=4) == pytest.approx(max(certain, guided))
    assert guided > certain
    assert ddaerr_two_phase_step(MOMENTS, 1.0, m_2=900, k_x=4) == pytest.approx(certain)

    printed = sqrt(4 * log(8) / (20 * 9 * 900 * (8 * 0.5 + 20 * 4 * eps + 4)))
    assert ddaelr_two_phase_step(3.0, MOMENTS, eps, m_2=900, k_x=4) == pytest.approx(printed)


def ogd_regret(eta, B, G, m):
    """Kukliansky & Shamir 2015, Theorem 3.1."""
    return 2 * B**2 / (eta * m) + eta * G**2 / 2


def eg_regret(eta, B, G, d, m):
    """Kukliansky & Shamir 2015, Theorem 4.1."""
    return B * (log(2 * d) / (eta * m) + 5 * eta * G**2)


problems = {
    "B": st.floats(0.1, 50),
    "d": st.integers(2, 1000),
    "m": st.integers(20, 10**6),
    "k_x": st.integers(1, 50),
}


@given(**problems)
def test_step_sizes_minimise_the_regret_and_bounds_are_its_minimum(B, d, m, k_x):
    """The step size 1/(4B^2) that AELR's theorem prints would fail here unless B = 1."""
    moments = np.random.default_rng(d).random(d)
    spread = np.sqrt(moments).sum() ** 2 / k_x + 1
    for G, eta, bound in [
        (2 * B * sqrt(2 * d / k_x), ogd_step(d, m, k_x), aerr_bound(B, d, m, k_x)),
        (2 * B, ogd_step(d, m, None), aerr_bound(B, d, m, None)),
        (2 * B * sqrt(spread), ddaerr_step(moments, m, k_x), 4 * B**2 * sqrt(spread / m)),
    ]:
        check_minimum(lambda eta, G=G: ogd_regret(eta, B, G, m), eta, bound)
    spread = moments.sum() / k_x + 1
    for G, eta, bound in [
        (2 * B * sqrt(2 * d / k_x), eg_step(B, d, m, k_x), aelr_bound(B, d, m, k_x)),
        (2 * B * sqrt(spread), ddaelr_step(B, moments, m, k_x), 4 * B**2 * sqrt(5 * log(2 * d) * spread / m)),
    ]:
        check_minimum(lambda eta, G=G: eg_regret(eta, B, G, d, m), eta, bound)
        assert eta <= 1 / (2 * G)  # the theorem's condition, as m >= log(2d)
    # A slope of at most 1 instead of 2B changes only G.
    G = sqrt(2 * d / k_x)
    check_minimum(lambda eta: ogd_regret(eta, B, G, m), svr_step(B, d, m, k_x), 2 * B * G / sqrt(m))


def check_minimum(regret, eta, bound):
    assert regret(eta) == pytest.approx(bound, rel=1e-9)
    # The numerical search is over the logarithm of eta; the minimum is unique.
    best = minimize_scalar(lambda s: regret(eta * np.exp(s)), bounds=(-3, 3), method="bounded", options={"xatol": 1e-6})
    assert abs(best.x) < 1e-3


@given(**problems)
def test_steps_for_guided_draws_are_at_least_those_for_uniform_draws(B, d, m, k_x):
    """The theorems assume |x|_2 <= 1 or |x|_inf <= 1, and a budget of at most d."""
    k_x = min(k_x, d)
    rng = np.random.default_rng(d)
    in_2_ball = rng.dirichlet(np.full(d, 0.3)) * rng.random()
    in_inf_ball = rng.random(d) ** 4
    slack = 1 - 1e-12
    assert ddaerr_step(in_2_ball, m, k_x) >= ogd_step(d, m, k_x) * slack
    assert ddaelr_step(B, in_inf_ball, m, k_x) >= eg_step(B, d, m, k_x) * slack
    # With estimated moments the step size is at least 1/sqrt(3) times that for uniform draws.
    assert ddaerr_two_phase_step(in_2_ball, 0.1, m, k_x) >= ogd_step(d, m, k_x) / sqrt(3) * slack


def test_subspace_steps_and_bounds_match_values_by_hand():
    assert mbeg_step(r=2, d=16, m=100) == pytest.approx(sqrt(2 * log(16) / 3600))
    assert popca_bound(n=4, d=10, r=2, m=100) == pytest.approx(1.0)
    assert popca_bound(n=4, d=10, r=2, m=100, passive=False) == pytest.approx(sqrt(45) / 5)
    assert mbeg_bound(n=2, d=16, r=2, m=7200) == pytest.approx(2 * sqrt(log(16) / 100))


@pytest.mark.parametrize("d", [8, 16, 784])
def test_mbeg_needs_the_least_number_of_examples(d):
    """There ``alpha = eta d^2`` is 1/2."""
    least = mbeg_least_examples(r=2, d=d)
    assert mbeg_step(2, d, least) * d**2 == pytest.approx(0.5)
    assert least == pytest.approx({8: 3.4e3, 16: 4.0e4, 784: 1.3e10}[d], rel=0.05)
