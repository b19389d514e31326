"""Checks try every option, alone or with one that gives it an effect, and name the variant that fails."""

import numpy as np
import pytest

from budgetreg.algorithms.registry import cores
from budgetreg.algorithms.vectors import Averager
from budgetreg.cli.app import main
from budgetreg.config import catalogue
from budgetreg.config.options import options_of
from budgetreg.testing import checks
from budgetreg.testing.checks import variants
from budgetreg.testing.enumeration import iterates


@pytest.mark.parametrize("name", catalogue.options("algo"))
def test_variants_are_valid_learners(name):
    learner = checks.examined(name).learner
    tried = list(variants(learner))
    assert tried[0] == ({}, learner)
    for changes, variant in tried:
        assert changes == {key: value for key, value in vars(variant).items() if value != getattr(learner, key)}
        for key, option in options_of(type(learner)).items():
            value = getattr(variant, key)
            assert option.must.accepts(value) if option.applies(vars(variant)) else value is None
        assert variant.refuse() is None
        assert not set(changes) & set(variant.inactive_options)
    assert len({str(variant) for _, variant in tried}) == len(tried)


def test_every_option_takes_several_values_in_some_learner():
    """Except updates, which are learners of their own, options with one value, and moments, as checks have no pilot.

    Plans that ignore prices are those of equal prices, which tests of prices compare. What is declared as
    `options_without_draws` needs k = d, whereas checks see fewer attributes; `tests.revealed.test_collection` compares
    it with draws.
    """
    seen = {core: {name: set() for name in options_of(learner)} for core, learner in cores().items()}
    for name in catalogue.options("algo"):
        for _, variant in variants(checks.examined(name).learner):
            for key, values in seen[variant.core].items():
                values.add(getattr(variant, key))
    single = {
        (core, name) for core, options in seen.items() for name, values in options.items() if len(values - {None}) < 2
    }
    planned = {("target_regression", "prices"), ("factor_regression", "prices")}
    everything = {(core, name) for core, learner in cores().items() for name in learner.options_without_draws}
    assert single == {("svr", "update"), ("two_phase", "data_point"), ("partial", "moments"), *planned, *everything}


def test_options_are_tried_where_they_have_an_effect():
    tried = [changes for changes, _ in variants(checks.examined("aesvr").learner)]
    assert {"residual": "plug_in", "split": "even"} in tried
    assert {"split": "even"} not in tried
    assert {"data_point": "moment"} not in [changes for changes, _ in variants(checks.examined("aer").learner)]


def test_a_failing_option_is_named(monkeypatch, capsys):
    observe = Averager.observe

    def shrunk(self, *words):
        output = observe(self, *words)
        return output and (output[0], output[1] * (0.9 if self._average == "suffix" else 1))

    monkeypatch.setattr(Averager, "observe", shrunk)
    assert main(["check", "algo=online_ridge"]) == 1
    printed = capsys.readouterr().out
    row = next(line for line in printed.splitlines() if line.startswith("online_ridge"))
    assert row.split()[1] == "✗"
    (failed,) = [line for line in printed.splitlines() if "unbiased" in line and line.startswith("✗")]
    assert failed.startswith("✗ online_ridge average=suffix, unbiased: ")
    assert "average=all" not in printed


@pytest.mark.parametrize("average", ["all", "suffix", "last"])
@pytest.mark.parametrize("first", [0, 3])
def test_iterates_are_recovered_from_their_averages(average, first):
    w = np.random.default_rng(0).standard_normal((9, 2))
    outputs = []
    for phase in (w[:first], w[first:]):
        for c in range(1, len(phase) + 1):
            begin = {"all": 0, "suffix": c // 2, "last": c - 1}[average]
            outputs.append(phase[begin:c].mean(axis=0))
    np.testing.assert_allclose(iterates(np.array(outputs), average, first), w, atol=1e-13)
