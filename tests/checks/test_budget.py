"""The budget check compares the bill with the declared cost, whatever the values: a learner with another bill fails."""

import re

import numpy as np
import pytest

from budgetreg.algorithms.gonen_2016 import SecondMomentLearner
from budgetreg.algorithms.learner import Cost
from budgetreg.algorithms.regressors import ScaledRegressors
from budgetreg.metering.accessor import Accessor
from budgetreg.testing import checks
from tests.checks.breaking import failure
from tests.tiers import slow_but


@pytest.mark.parametrize(
    "name", slow_but(("aerr", "baseline", "oja"), ["aerr", "aer", "baseline", "popca", "popca_passive", "aesvr", "oja"])
)
def test_the_budget_check_notices_zeros_that_are_not_paid_for(name, monkeypatch):
    reveal = Accessor.reveal_block

    def free_of_charge(self, attributes, drawn=None):
        other_than_0 = self._table.entries(self._rows[:, :, None], attributes) != 0
        return reveal(self, attributes, other_than_0 if drawn is None else drawn & other_than_0)

    monkeypatch.setattr(Accessor, "reveal_block", free_of_charge)
    assert re.search("costs|paid for", failure(name, "budget"))


def test_the_budget_check_notices_replicas_that_do_not_pay_for_zeros(monkeypatch):
    reveal_some, reveal = Accessor.reveal_some, Accessor.reveal

    def some_free(self, position, attributes, drawn):
        values = self._table.entries(self._rows[:, position, None, None], attributes)
        return reveal_some(self, position, attributes, drawn & (values != 0))

    def own_free(self, position, attributes, paid):
        values = self._table.entries(self._rows[self._stream, position][:, None], attributes)
        return reveal(self, position, attributes, paid & (values != 0).all(axis=0))

    monkeypatch.setattr(Accessor, "reveal_some", some_free)
    monkeypatch.setattr(Accessor, "reveal", own_free)
    for name in ("mbeg", "mbeg_plus", "aesvr", "aerr"):
        assert re.search("a sparse example costs|paid for", failure(name, "budget"))


def test_the_budget_check_notices_examples_skipped_without_paying(monkeypatch):
    monkeypatch.setattr(Accessor, "pay", lambda self, draws: None)
    for name in ("aelr", "aer", "ddaerr_two_phase"):
        assert "example costs" in failure(name, "budget")


def test_the_budget_check_notices_draws_left_out_at_zero():
    def none_at_zero(fit):
        def blind(accessor, *rest):
            reveal = accessor.reveal_block

            def later(attributes):
                return reveal(
                    attributes, np.broadcast_to(np.arange(attributes.shape[1])[:, None] > 0, attributes.shape)
                )

            accessor.reveal_block = later
            return fit(accessor, *rest)

        return blind

    for name in ("ddaelr", "naive", "petrels"):
        assert failure(name, "budget", none_at_zero).startswith("the first example costs 0 attributes")


def test_the_budget_check_notices_charges_at_zero_without_draws(monkeypatch):
    monkeypatch.setattr(ScaledRegressors, "nonzero", property(lambda self: np.ones_like(self._c, dtype=bool)))
    assert failure("aerr", "budget") == "the first example costs 6 attributes on average; it should be 5"


def test_a_declared_cost_beyond_the_budget_fails(monkeypatch):
    subject = checks.examined("popca_passive")
    monkeypatch.setattr(SecondMomentLearner, "cost", lambda learner, d, k, settings: Cost(k + 1, k))
    assert checks.run_check(subject, "budget").reason == "an example costs 7 attributes; the budget is 6"
