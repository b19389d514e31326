"""Every learner passes its checks, and each check fails for a learner that is broken in its way."""

from dataclasses import replace

import numpy as np
import pytest

from budgetreg.algorithms import cesa_bianchi_2010, gonen_2016
from budgetreg.algorithms.full_rows import ExactGradientLearner
from budgetreg.algorithms.gonen_2016 import MatrixGradientLearner
from budgetreg.algorithms.hazan_koren_2012 import aesvr
from budgetreg.algorithms.learner import Batching, BudgetSplit, SplitBudgetLearner
from budgetreg.cli.app import main
from budgetreg.common.streams import BLOCK
from budgetreg.config import catalogue
from budgetreg.metering.table import Origin
from budgetreg.revealed import designs
from budgetreg.testing import checks
from budgetreg.testing.certificates import Oracle
from budgetreg.testing.enumeration import Scripted, in_turn, outcomes, rows_of
from tests.checks.breaking import failure, running, with_draws, with_given, with_outputs, with_rngs, with_settings
from tests.tiers import quick_but, slow_but

LONG = ("aemr", "aeml", "aefa", "aefa_streaming", "prime_pca", "fixed_subset", "normal_ml")
COVERED = (
    *("aelr", "ddaerr", "ddaelr", "ddaerr_two_phase", "popca_importance", "popca_passive", "mbeg_plus"),
    *("impute_ridge", "impute_iterative", "corrected_lasso", "cocolasso", "hmlasso", "two_phase_sparse", "hybrid"),
)
"""Learners whose class, update and draws are those of quick ones, in another combination; or their minimiser is."""
BLOCKS = ("aer", "ddaelr_two_phase", "aesvr", "naive", "popca", "mbeg", "ridge", "oja", "debiased_sgd")
"""Learners of each way to draw in blocks, to skip examples, and to keep sums from one block to the next."""


@pytest.mark.usefixtures("short_chains")
@pytest.mark.parametrize("name", quick_but((*LONG, *COVERED), catalogue.options("algo")))
def test_every_learner_passes_its_checks(name):
    """The options are those of its file; `budgetreg check` changes them one by one, too."""
    results = [checks.run_check(checks.examined(name), check) for check in checks.CHECKS]
    assert [result for result in results if result.passed is False] == []


@pytest.mark.parametrize(
    "name", slow_but(("online_ridge",), ["aelr", "ddaerr_two_phase", "aesvr", "mbeg", "popca", "online_ridge"])
)
def test_learners_pass_with_changed_options(name):
    results = list(checks.run_checks(checks.examined(name)))
    assert [result.check for result in results] == list(checks.CHECKS) * len({result.changes for result in results})
    assert [result for result in results if result.passed is False] == []


@pytest.mark.parametrize("name", slow_but(BLOCKS, catalogue.options("algo")))
def test_streams_and_unseen_values_over_several_blocks(name):
    """As the checks do within a block, with several plans: no stream depends on another, nor on what is not seen."""
    subject, m, F = checks.examined(name), BLOCK + 40, 2
    table, orders = checks._table(m + 5), np.stack([np.random.default_rng(f).permutation(m) for f in range(F)])

    def run(streams, X=table.X):
        rngs, examples = [checks._rngs(F)[f] for f in streams], replace(table, X=X)
        return subject.run(examples, orders[streams], rngs, 4, checks._settings(subject), [20, m], known=table)

    together, reveals = run([0, 1])
    hidden = np.full(np.shape(table.X), np.nan)
    hidden[reveals.seen] = np.asarray(table.X)[reveals.seen]
    assert np.isnan(hidden).any()
    assert checks._equal(together, run([0, 1], hidden)[0])
    if subject.learner.batching is not Batching.WITH_ITS_FOLDS:
        for f in range(F):
            assert checks._equal([W[f : f + 1] for W in together], run([f])[0])


def test_learners_of_the_papers_skip_few_checks():
    expected = dict(aer=1, aerr=1, aelr=1, baseline=1, naive=1, aesvr=2, online_lasso=4, lasso=5)
    expected |= dict(popca=2, popca_passive=3, popca_importance=3, mbeg=2, mbeg_plus=2, zero_filled_pca=4, pca=5)
    skipped = {
        name: sum(checks.skip_reason(checks.examined(name).learner, check) is not None for check in checks.CHECKS)
        for name in expected
    }
    assert skipped == expected
    aesvr = checks.examined("aesvr").learner
    plug_in = replace(aesvr, residual="plug_in")
    assert "biased" in checks.skip_reason(plug_in, "unbiased")
    assert {check for name in expected for check in checks.examined(name).learner.skipped_checks} <= set(checks.CHECKS)


# Broken learners


@pytest.mark.parametrize(("name", "check"), [("aerr", "unbiased"), ("aer", "full at k=d"), ("aesvr", "unbiased")])
def test_an_attribute_that_is_never_drawn_fails_a_check(name, check):
    assert "mean of" in failure(name, check, with_draws(lambda numbers, high: np.minimum(numbers, high - 2)))


def test_repeated_draws_fail_the_second_moments_alone():
    learner = running("aelr", with_draws(lambda numbers, high: np.broadcast_to(numbers[:, :1], numbers.shape).copy()))
    assert checks.run_check(learner, "unbiased").passed
    assert checks.run_check(learner, "second moments").passed is False


def test_wrong_weights_of_the_series_fail(monkeypatch):
    monkeypatch.setattr(aesvr, "WEIGHTS", aesvr.WEIGHTS * np.where(np.arange(len(aesvr.WEIGHTS)) == 1, 1.001, 1))
    assert "slope" in failure("aesvr", "unbiased")


def test_pairs_with_replacement_and_pairs_on_the_diagonal_fail(monkeypatch):
    monkeypatch.setattr(cesa_bianchi_2010, "subset", lambda rng, n, size: rng.integers(0, n, size=(BLOCK, size)))
    assert checks.run_check(checks.examined("naive"), "unbiased").passed
    assert "square" in failure("naive", "second moments")
    monkeypatch.setattr(cesa_bianchi_2010, "subset", lambda rng, n, size: rng.integers(0, 4, size=(BLOCK, size)) * 5)
    assert "A" in failure("baseline", "unbiased")
    assert "A" in failure("baseline", "full at k=d")


@pytest.mark.parametrize("name", ["popca", "popca_passive", "popca_importance"])
def test_products_over_wrong_probabilities_fail(name, monkeypatch):
    made = {"popca": "uniform_subset", "popca_passive": "bernoulli"}.get(name)
    if made:
        design = getattr(designs, made)
        monkeypatch.setattr(designs, made, lambda d, k: replace(design(d, k), probability=np.full((d, d), k / d)))
    else:
        monkeypatch.setattr(designs, "joint_inclusion", lambda p, r: np.outer(p, p) + np.diag(p - p**2))
    assert "mean of C" in failure(name, "unbiased")


def test_pairs_weighed_with_other_probabilities_than_drawn_fail(monkeypatch):
    draw = gonen_2016.Weights.draw
    monkeypatch.setattr(gonen_2016.Weights, "draw", lambda self, uniforms: draw(self, uniforms**2))
    assert "mean of C" in failure("mbeg", "unbiased")
    assert "mean of C" in failure("mbeg_plus", "full at k=d")


def test_a_budget_that_is_not_made_of_pairs_has_to_be_refused(monkeypatch):
    monkeypatch.setattr(MatrixGradientLearner, "split_budget", lambda learner, k: None)
    assert failure("mbeg", "small k") == "k=1 is accepted"


def test_subspaces_that_prefer_an_attribute_fail():
    shrunk = np.array([0.5, *[1] * 7])[:, None]
    broken = with_outputs(lambda V: np.linalg.qr(V * shrunk)[0])
    assert "standard error" in failure("popca", "permutation", broken)


@pytest.mark.parametrize("name", ["online_ridge", "online_lasso"])
def test_a_wrong_exact_step_fails(name):
    failure(name, "unbiased", with_settings(eta=0.5))


def test_learners_that_exceed_their_budget_fail():
    more = failure("aelr", "budget", with_given(budget_split=BudgetSplit(9, 1)))
    assert more.startswith("BudgetExceeded")
    assert "on average" in failure("aesvr", "budget", with_given(budget_split=BudgetSplit(7, 3)))

    def unpaid(fit):
        def free(accessor, *rest):
            accessor._charge = lambda *draws: None
            return fit(accessor, *rest)

        return free

    assert "paid for" in failure("aer", "budget", unpaid)


def test_learners_with_other_bytes_fail():
    def of_common_scale(fit):
        return lambda accessor, settings, *rest: (
            (checkpoint, W * settings["B"].mean()) for checkpoint, W in fit(accessor, settings, *rest)
        )

    of_no_seed = with_rngs(lambda rngs: [np.random.default_rng() for _ in rngs])
    assert "same seed" in failure("aelr", "same bytes", of_no_seed)
    assert "streams" in failure("naive", "same bytes", with_rngs(lambda rngs: rngs[:1] * len(rngs)))
    assert "settings" in failure("online_ridge", "same bytes", of_common_scale)


@pytest.mark.parametrize("name", slow_but(("aer", "ridge"), ["aer", "ridge", "aemr", "aeml"]))
def test_a_learner_that_prefers_an_attribute_fails(name):
    def halved(outputs):
        getattr(outputs, "regressors", outputs)[:, 0] *= 0.5
        return outputs

    assert "standard error" in failure(name, "permutation", with_outputs(halved))


@pytest.mark.parametrize("name", ["aerr", "aesvr", "lasso"])
def test_a_learner_that_reads_unseen_values_fails(name):
    def broken(fit):
        return lambda accessor, *rest: (
            (checkpoint, W * accessor._table.X.max()) for checkpoint, W in fit(accessor, *rest)
        )

    assert "not shown" in failure(name, "unobserved", broken)


@pytest.mark.parametrize("name", ["ridge", "baseline"])
def test_learners_that_ignore_the_origin_fail(name):
    assert "where zero is changes the regressor" in failure(name, "origin", with_given(centred=False))


def test_a_learner_that_forgets_its_intercept_fails():
    def other(fit):
        def forgetful(accessor, *rest):
            accessor.origins = lambda examples: [Origin(shift=np.zeros(accessor.d))] * accessor.n_streams
            yield from fit(accessor, *rest)

        return forgetful

    assert "where zero is changes the regressor" in failure("aerr", "origin", other)


def test_accepting_too_small_a_budget_fails(monkeypatch):
    monkeypatch.setattr(SplitBudgetLearner, "split_budget", lambda learner, k: BudgetSplit(1, 1))
    assert failure("aelr", "small k") == "k=1 is accepted"


def test_a_learner_without_an_oracle_and_a_crash_fail(monkeypatch):
    subject = checks.examined("online_ridge")
    monkeypatch.setattr(ExactGradientLearner, "oracle", Oracle())
    assert "online_ridge declares nothing to compare with" in checks.run_check(subject, "unbiased").reason
    assert failure("aer", "budget", lambda fit: lambda *args: 1 / 0).startswith("ZeroDivisionError")


# The enumeration


def test_outcomes_have_their_probabilities():
    """A whole number and two uniforms, one of which has a box of width 0.01: against values computed by hand."""
    walls = np.array([0.123456789, 0.5, 0.51])
    rng = Scripted([4, None, 3])
    rng.integers(2, 5, size=(BLOCK,))
    rng.random((BLOCK, 5))
    rng.random((BLOCK, 2))
    rng.integers(2**64, size=2, dtype=np.uint64)
    assert rng.values == [3, 0, 0]

    def act(scripts):
        boxes = np.searchsorted(walls, scripts[:, 1:])
        return np.column_stack([np.floor(3 * scripts[:, 0]), boxes])

    scripts, probability = outcomes(rng.values, act, {})
    distribution = dict(zip(map(tuple, act(scripts).astype(int)), probability, strict=True))
    widths = np.diff([0, *walls, 1])
    assert len(distribution) == len(scripts) == 3 * 4 * 4
    for (a, b, c), p in distribution.items():
        assert 0 <= a < 3
        assert p == pytest.approx(widths[b] * widths[c] / 3, abs=1e-9)
    scripts, probability = outcomes(rng.values, act, {1: 0.505})
    assert probability.sum() == pytest.approx(1)
    assert len(scripts) == 3 * 4
    with pytest.raises(ValueError, match="too many"):
        outcomes([100, 100, 100], act, {})


def test_outcomes_in_turn_have_their_probabilities():
    """The walls of the second number depend on the first: 0.2 below 0.7, and 0.4 and 0.9 from there on."""

    def act(scripts):
        first = scripts[:, 0] >= 0.7
        second = np.where(first, np.searchsorted([0.4, 0.9], scripts[:, 1]), scripts[:, 1] >= 0.2)
        return np.column_stack([first, second])

    scripts, probability = in_turn(2, act)
    distribution = dict(zip(map(tuple, act(scripts).astype(int).tolist()), probability, strict=True))
    expected = {(0, 0): 0.14, (0, 1): 0.56, (1, 0): 0.12, (1, 1): 0.15, (1, 2): 0.03}
    assert distribution == pytest.approx(expected, abs=1e-8)
    assert len(scripts) == len(distribution)


def test_scripts_give_the_numbers_of_one_example_alone():
    given, other = Scripted([2, 2, None], [0.99, 0.0, 0.8]), Scripted([None] * 3)
    first, second = given.integers(0, 7, size=(BLOCK, 2)), other.integers(0, 7, size=(BLOCK, 2))
    assert first[2].tolist() == [6, 0]
    rest = np.arange(BLOCK) != 2
    np.testing.assert_array_equal(first[rest], second[rest])
    assert given.geometric(0.5, (BLOCK, 1))[2] == 3
    np.testing.assert_array_equal(given.random((BLOCK, 3)), Scripted(()).random((BLOCK, 3)))


def test_an_example_is_in_one_row_of_the_calls_for_its_block():
    """Blocks of 10 and 256 examples with two calls each, then one with a single call."""
    assert rows_of(9, [(2, 10), (4, 266), (5, 300)]) == [9, 9, None, None, None]
    assert rows_of(10, [(2, 10), (4, 266), (5, 300)]) == [None, None, 0, 0, None]
    assert rows_of(270, [(2, 10), (4, 266), (5, 300)]) == [None, None, None, None, 4]


# The command


def test_the_command_prints_a_table_and_the_reasons(capsys, monkeypatch):
    assert main(["check", "algo=online_ridge,lasso"]) == 0
    printed = capsys.readouterr()
    header, *rows = printed.out.splitlines()
    assert all(check in header for check in checks.CHECKS)
    assert [row.split()[0] for row in rows[:2]] == ["online_ridge", "lasso"]
    assert "✗" not in printed.out and "nothing is estimated" in printed.out
    assert not printed.err

    def fails(learner):
        raise checks.CheckError("as it should")

    monkeypatch.setattr(checks, "CHECKS", {"budget": fails})
    assert main(["check", "algo=lasso"]) == 1
    assert "✗ lasso, budget: as it should" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [(["algo=aelrx"], "did you mean 'aelr'"), (["aelr"], "must be algo=NAME"), (["algo="], "no such algo")],
)
def test_a_mistake_gives_one_line(words, message, capsys):
    assert main(["check", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
