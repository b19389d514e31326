"""Draws with other probabilities than stated fail a check, and so do wrong steps at the boundary."""

import numpy as np
import pytest

from budgetreg.algorithms import full_rows, gonen_2016, kukliansky_shamir_2015
from budgetreg.algorithms.engine import ControlVariate, Proportional, data_point_weights
from budgetreg.algorithms.hazan_koren_2012 import aerr_aelr, aesvr
from budgetreg.algorithms.hazan_koren_2012.aerr_aelr import EG, OGD, GradientLearner
from budgetreg.revealed import designs
from budgetreg.revealed.designs import conditional_poisson
from budgetreg.testing import checks
from budgetreg.testing.certificates import Oracle
from tests.checks.breaking import changed, with_given, with_options, with_settings
from tests.tiers import slow_but


def fails(subject, check, reason):
    """Expect a learner to be unbiased, and to fail a check."""
    unbiased = checks.run_check(subject, "unbiased")
    assert unbiased.passed is not False, unbiased
    failed = checks.run_check(subject, check)
    assert failed.passed is False
    assert reason in failed.reason


@pytest.mark.parametrize("name", slow_but(("aelr",), ["aerr", "aelr"]))
def test_other_draws_for_the_data_point_fail(name, monkeypatch):
    monkeypatch.setattr(aerr_aelr, "DATA_POINT_SAMPLERS", {"uniform": Proportional(np.array([1.0, 2, 2, 1]))})
    fails(changed(name), "second moments", "square")


@pytest.mark.parametrize(
    ("name", "weights"), slow_but([("ddaelr", np.sqrt)], [("ddaerr", np.asarray), ("ddaelr", np.sqrt)])
)
def test_moments_that_guide_by_the_other_rule_fail(name, weights, monkeypatch):
    for module in (aerr_aelr, kukliansky_shamir_2015):
        monkeypatch.setattr(module, "data_point_weights", lambda update, moments, prices: weights(moments))
    for learner in (name, f"{name}_two_phase"):
        fails(changed(learner, prices="ignored"), "second moments", "square")


@pytest.mark.parametrize(
    "name", slow_but(("ddaelr_two_phase",), ["ddaerr", "ddaelr", "ddaerr_two_phase", "ddaelr_two_phase"])
)
def test_ignored_prices_fail(name):
    assert checks.run_check(changed(name), "second moments").passed
    fails(changed(name, with_given(prices=None)), "second moments", "square")


def test_prices_that_guide_draws_they_should_not_guide_fail(monkeypatch):
    monkeypatch.setattr(aerr_aelr, "data_point_weights", lambda *words: data_point_weights(*words) / words[-1])
    fails(changed("ddaelr"), "second moments", "square")


def test_other_draws_for_the_inner_product_fail(monkeypatch):
    def by_size(F, d, *rest):
        return OGD(F, d, *rest, root_moments=np.ones((F, d)))

    monkeypatch.setattr(aerr_aelr, "STATES", {"ogd": by_size})
    fails(changed("aerr"), "second moments", "square")


def test_other_draws_for_genest_fail(monkeypatch):
    def by_size(w, weights, uniforms):
        sizes = np.cumsum(np.abs(w), axis=2)
        attributes = (sizes[:, :, None] <= sizes[:, :, -1:, None] * uniforms[:, None, :, None]).sum(axis=3)
        drawn = np.take_along_axis(w, attributes, axis=2)
        return attributes, np.where(drawn != 0, np.sign(drawn) * sizes[:, :, -1:], 0)

    monkeypatch.setattr(aesvr, "_draw", by_size)
    fails(changed("aesvr"), "second moments", "square")


@pytest.mark.parametrize("name", slow_but(("ddaerr_two_phase",), ["ddaerr_two_phase", "ddaelr_two_phase"]))
def test_an_unguided_second_phase_fails(name, monkeypatch):
    monkeypatch.setattr(kukliansky_shamir_2015, "mixed", lambda weights, mix: np.ones_like(weights))
    fails(changed(name), "second moments", "square")


def test_moments_that_are_not_smoothed_as_theory_says_fail():
    broken = with_options(smoothing=0)
    fails(changed("ddaelr_two_phase", broken, smoothing="theory"), "second moments", "square")


def test_a_control_variate_without_effect_fails():
    broken = with_options(control_variate="none")
    for variate in ("mean", "label"):
        fails(changed("aelr", broken, control_variate=variate), "second moments", "square")


def test_a_control_variate_that_is_not_added_again_fails(monkeypatch):
    split = ControlVariate.split
    monkeypatch.setattr(ControlVariate, "split", lambda *words: (split(*words)[0], 0))
    assert checks.run_check(changed("aerr", control_variate="label"), "unbiased").passed is False


@pytest.mark.parametrize("name", slow_but(("mbeg",), ["mbeg", "mbeg_plus"]))
def test_pairs_of_another_mixture_fail(name):
    fails(changed(name, with_options(alpha=0.9)), "second moments", "a pair after a step")


def test_subsets_that_are_not_uniform_fail(monkeypatch):
    design = conditional_poisson(np.array([0.3, 0.6, 0.5, 0.6]), 2)
    monkeypatch.setattr(designs, "uniform_subset", lambda d, k: design if k == 2 else conditional_poisson([], 0))
    subject = changed("popca")
    assert "C's square at k=2" in checks.run_check(subject, "second moments").reason


@pytest.mark.slow
def test_a_second_phase_that_prefers_large_attributes_too_much_fails(monkeypatch):
    shares = designs.working_probabilities
    monkeypatch.setattr(designs, "working_probabilities", lambda root, *rest: shares(root**2, *rest))
    fails(changed("popca_importance"), "second moments", "a subset in the second phase")


# The boundary


@pytest.mark.parametrize(
    "name", slow_but(("aer", "online_ridge"), ["aerr", "aer", "ddaerr_two_phase", "aesvr", "online_ridge"])
)
def test_too_large_a_ball_fails(name):
    fails(changed(name, with_settings(B=1.01)), "boundary", "clipped or projected")


def test_a_step_that_is_not_clipped_fails(monkeypatch):
    class Later(EG):
        """Takes half a step twice: it clips at 2/eta."""

        def step(self, taken, residual):
            super().step(taken, residual / 2)
            super().step(taken, residual / 2)

    monkeypatch.setattr(aerr_aelr, "STATES", {"eg": Later})
    fails(changed("aelr"), "boundary", "clipped or projected")


def test_exact_steps_that_are_not_projected_fail(monkeypatch):
    monkeypatch.setattr(full_rows, "aerr_update", lambda w, phi, x, B, eta: w - (eta * phi)[:, None] * x)
    fails(changed("online_ridge"), "boundary", "clipped or projected")


def test_eigenvalues_that_are_not_capped_fail(monkeypatch):
    def to_the_trace(theta, n):
        return np.log(n) - np.log(np.exp(theta).sum(axis=1))

    monkeypatch.setattr(gonen_2016, "project", to_the_trace)
    subject = changed("mbeg")
    assert checks.run_check(subject, "second moments").passed
    fails(subject, "boundary", "a pair after a step")


def test_an_oracle_that_compares_too_little_fails(monkeypatch):
    class Short(Oracle):
        def unbiased(self, subject):
            pass

    monkeypatch.setattr(GradientLearner, "oracle", Short())
    assert checks.run_check(changed("aerr"), "unbiased").passed
    reason = checks.run_check(changed("aerr"), "second moments").reason
    assert "a reason for 'second moments' to its skipped_checks" in reason
