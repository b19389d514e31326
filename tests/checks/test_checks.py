"""Every learner passes its checks, and each check fails for a learner that is broken in its way."""

from dataclasses import replace

import numpy as np
import pytest

from budgetreg import checks
from budgetreg.checks import moments
from budgetreg.checks.scripts import Scripted, in_turn, outcomes, rows_of
from budgetreg.cli.app import main
from budgetreg.config import catalogue
from budgetreg.config.rules import LEARNERS
from budgetreg.learners import dispatch, importance, mbeg, pairs, second_moment, svr
from budgetreg.sampling.draws import BLOCK
from budgetreg.sampling.prefix_sums import designs


@pytest.mark.parametrize("name", catalogue.options("algo"))
def test_learner(name):
    verdicts = list(checks.verdicts(checks.compose(name)))
    assert [verdict.check for verdict in verdicts] == list(checks.CHECKS)
    assert [verdict for verdict in verdicts if verdict.passed is False] == []


def test_learners_of_the_papers_are_excused_from_little():
    expected = dict(aer=0, aerr=0, aelr=0, baseline=0, naive=0, aesvr=1, online_lasso=3, lasso=4)
    expected |= dict(popca=0, popca_passive=1, popca_importance=0, mbeg=0, mbeg_plus=0, zero_filled_pca=2, pca=3)
    excused = {
        name: sum(checks.excuse(checks.compose(name).config.algo, check) is not None for check in checks.CHECKS)
        for name in expected
    }
    assert excused == expected
    plug_in = replace(checks.compose("aesvr").config.algo, residual="plug_in")
    assert "biased" in checks.excuse(plug_in, "unbiased")
    assert {kind.split()[0] for kind, _ in checks.EXCUSES} <= set(LEARNERS)


# Broken learners


def failure(name, check, fit=dispatch.fit):
    """Return why a learner fails a check when it is run by `fit`."""
    verdict = checks.verdict(replace(checks.compose(name), fit=fit), check)
    assert verdict.passed is False
    assert "\n" not in verdict.reason
    return verdict.reason


def with_draws(change):
    """A learner whose whole numbers are changed after they are drawn."""

    class Changed:
        def __init__(self, rng):
            self._rng = rng

        def __getattr__(self, name):
            return getattr(self._rng, name)

        def integers(self, low, high=None, size=None, **options):
            numbers = self._rng.integers(low, high, size, **options)
            return numbers if high is None else change(numbers, high)

    def fit(algo, accessor, settings, checkpoints, rngs, **budget):
        return dispatch.fit(algo, accessor, settings, checkpoints, [Changed(rng) for rng in rngs], **budget)

    return fit


@pytest.mark.parametrize(("name", "check"), [("aerr", "unbiased"), ("aer", "full at k=d"), ("aesvr", "unbiased")])
def test_a_learner_that_never_draws_some_attribute(name, check):
    assert "mean of" in failure(name, check, with_draws(lambda numbers, high: np.minimum(numbers, high - 2)))


def test_a_learner_that_repeats_its_draws():
    fit = with_draws(lambda numbers, high: np.broadcast_to(numbers[:, :1], numbers.shape).copy())
    learner = replace(checks.compose("aelr"), fit=fit)
    assert checks.verdict(learner, "unbiased").passed
    assert checks.verdict(learner, "second moments").passed is False


def test_wrong_weights_in_the_series(monkeypatch):
    monkeypatch.setattr(svr, "WEIGHTS", svr.WEIGHTS * np.where(np.arange(len(svr.WEIGHTS)) == 1, 1.001, 1))
    assert "gradient" in failure("aesvr", "unbiased")


def test_pairs_with_replacement_and_pairs_on_the_diagonal(monkeypatch):
    monkeypatch.setattr(pairs, "subset", lambda rng, n, size: rng.integers(0, n, size=(BLOCK, size)))
    assert checks.verdict(checks.compose("naive"), "unbiased").passed
    assert "square" in failure("naive", "second moments")
    monkeypatch.setattr(pairs, "subset", lambda rng, n, size: rng.integers(0, 4, size=(BLOCK, size)) * 5)
    assert "A" in failure("baseline", "unbiased")
    assert "A" in failure("baseline", "full at k=d")


def test_popca_with_replacement_passes():
    learner = checks.compose("popca")
    algo = replace(learner.config.algo, replacement=True)
    verdicts = list(checks.verdicts(replace(learner, config=replace(learner.config, algo=algo))))
    assert all(verdict.passed for verdict in verdicts), verdicts


@pytest.mark.parametrize("name", ["popca", "popca_passive", "popca_importance"])
def test_products_that_are_divided_by_wrong_probabilities(name, monkeypatch):
    made = {"popca": "uniform_subset", "popca_passive": "bernoulli"}.get(name)
    if made:
        design = getattr(second_moment, made)
        monkeypatch.setattr(second_moment, made, lambda d, k: replace(design(d, k), probability=np.full((d, d), k / d)))
    else:
        monkeypatch.setattr(importance, "inclusion", lambda p, r: np.full((len(p), len(p)), 0.9))
        monkeypatch.setattr(designs, "inclusion", lambda p, r: np.outer(p, p) + np.diag(p - p**2))
        monkeypatch.setattr(moments, "conditional_poisson", designs.conditional_poisson)
    assert "mean of C" in failure(name, "unbiased")


def test_draws_of_a_pair_that_have_other_probabilities_than_they_are_weighed_with(monkeypatch):
    draw = mbeg.Weights.draw
    monkeypatch.setattr(mbeg.Weights, "draw", lambda self, uniforms: draw(self, uniforms**2))
    assert "mean of C" in failure("mbeg", "unbiased")
    assert "mean of C" in failure("mbeg_plus", "full at k=d")


def test_a_budget_that_does_not_come_in_pairs(monkeypatch):
    monkeypatch.setattr("budgetreg.protocol.plan.split_budget", lambda algo, k: (None, None))
    assert failure("mbeg", "small k") == "k=1 is accepted"


def test_subspaces_that_prefer_an_attribute():
    def fit(*args, **budget):
        for checkpoint, V in dispatch.fit(*args, **budget):
            V[:, :, 0] *= 0.5
            yield checkpoint, np.linalg.qr(V)[0]

    assert "standard error" in failure("popca", "permutation", fit)


def test_an_exact_step_that_is_wrong():
    def fit(algo, accessor, settings, checkpoints, rngs, **budget):
        half = {**settings, "eta": settings["eta"] / 2}
        return dispatch.fit(algo, accessor, half, checkpoints, rngs, **budget)

    for name in ("online_ridge", "online_lasso"):
        failure(name, "unbiased", fit)


def test_learners_that_pass_their_budget():
    def more(algo, *args, k_x, **budget):
        return dispatch.fit(algo, *args, k_x=k_x + 4, **budget)

    assert failure("aelr", "budget", more).startswith("BudgetExceeded")
    assert "on average" in failure("aesvr", "budget", more)

    def unpaid(algo, accessor, *args, **budget):
        accessor._charge = lambda *draws: None
        return dispatch.fit(algo, accessor, *args, **budget)

    assert "paid for" in failure("aer", "budget", unpaid)


def test_learners_with_other_bytes():
    def of_no_seed(algo, accessor, settings, checkpoints, rngs, **budget):
        rngs = [np.random.default_rng() for _ in rngs]
        return dispatch.fit(algo, accessor, settings, checkpoints, rngs, **budget)

    def of_common_draws(algo, accessor, settings, checkpoints, rngs, **budget):
        return dispatch.fit(algo, accessor, settings, checkpoints, rngs[:1] * len(rngs), **budget)

    def of_common_scale(algo, accessor, settings, *args, **budget):
        for checkpoint, W in dispatch.fit(algo, accessor, settings, *args, **budget):
            yield checkpoint, W * settings["B"].mean()

    assert "same seed" in failure("aelr", "same bytes", of_no_seed)
    assert "streams" in failure("naive", "same bytes", of_common_draws)
    assert "settings" in failure("online_ridge", "same bytes", of_common_scale)


@pytest.mark.parametrize("name", ["aer", "ridge"])
def test_a_learner_that_prefers_an_attribute(name):
    def fit(*args, **budget):
        for checkpoint, W in dispatch.fit(*args, **budget):
            W[:, 0] *= 0.5
            yield checkpoint, W

    assert "standard error" in failure(name, "permutation", fit)


@pytest.mark.parametrize("name", ["aerr", "aesvr", "lasso"])
def test_a_learner_that_looks_at_what_it_was_not_shown(name):
    def fit(algo, accessor, *args, **budget):
        scale = accessor._table.X.max()
        for checkpoint, W in dispatch.fit(algo, accessor, *args, **budget):
            yield checkpoint, W * scale

    assert "not shown" in failure(name, "unobserved", fit)


def test_budgets_that_are_accepted_too_early(monkeypatch):
    monkeypatch.setattr("budgetreg.protocol.plan.split_budget", lambda algo, k: (1, 1))
    assert failure("aelr", "small k") == "k=1 is accepted"


def test_an_update_that_nothing_is_known_of_and_a_crash():
    learner = checks.compose("online_ridge")
    algo = replace(learner.config.algo, update="newton")

    def fit(algo, *args, **budget):
        return dispatch.fit(replace(algo, update="ogd"), *args, **budget)

    unknown = checks.Learner(replace(learner.config, algo=algo), fit)
    assert "update=newton" in checks.verdict(unknown, "unbiased").reason
    assert failure("aer", "budget", lambda *args, **budget: 1 / 0).startswith("ZeroDivisionError")


# The enumeration


def test_outcomes_have_their_probabilities():
    """A whole number and two uniforms, one of which has a box of width 0.01: against the law worked out by hand."""
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
    law = dict(zip(map(tuple, act(scripts).astype(int)), probability, strict=True))
    widths = np.diff([0, *walls, 1])
    assert len(law) == len(scripts) == 3 * 4 * 4
    for (a, b, c), p in law.items():
        assert 0 <= a < 3
        assert p == pytest.approx(widths[b] * widths[c] / 3, abs=1e-9)
    scripts, probability = outcomes(rng.values, act, {1: 0.505})
    assert probability.sum() == pytest.approx(1)
    assert len(scripts) == 3 * 4
    with pytest.raises(ValueError, match="too many"):
        outcomes([100, 100, 100], act, {})


def test_outcomes_in_turn_have_their_probabilities():
    """The second number's walls depend on the first one: 0.2 below 0.7, and 0.4 and 0.9 from there on."""

    def act(scripts):
        first = scripts[:, 0] >= 0.7
        second = np.where(first, np.searchsorted([0.4, 0.9], scripts[:, 1]), scripts[:, 1] >= 0.2)
        return np.column_stack([first, second])

    scripts, probability = in_turn(2, act)
    law = dict(zip(map(tuple, act(scripts).astype(int).tolist()), probability, strict=True))
    expected = {(0, 0): 0.14, (0, 1): 0.56, (1, 0): 0.12, (1, 1): 0.15, (1, 2): 0.03}
    assert law == pytest.approx(expected, abs=1e-8)
    assert len(scripts) == len(law)


def test_scripts_give_the_numbers_of_one_example_alone():
    one, other = Scripted([2, 2, None], [0.99, 0.0, 0.8]), Scripted([None] * 3)
    first, second = one.integers(0, 7, size=(BLOCK, 2)), other.integers(0, 7, size=(BLOCK, 2))
    assert first[2].tolist() == [6, 0]
    rest = np.arange(BLOCK) != 2
    np.testing.assert_array_equal(first[rest], second[rest])
    assert one.geometric(0.5, (BLOCK, 1))[2] == 3
    np.testing.assert_array_equal(one.random((BLOCK, 3)), Scripted(()).random((BLOCK, 3)))


def test_an_example_is_in_one_row_of_the_calls_for_its_block():
    """Blocks of 10 and 256 examples with two calls each, then one with a single call."""
    assert rows_of(9, [(2, 10), (4, 266), (5, 300)]) == [9, 9, None, None, None]
    assert rows_of(10, [(2, 10), (4, 266), (5, 300)]) == [None, None, 0, 0, None]
    assert rows_of(270, [(2, 10), (4, 266), (5, 300)]) == [None, None, None, None, 4]


# The command


def test_command(capsys, monkeypatch):
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
def test_mistakes_are_told_in_one_line(words, message, capsys):
    assert main(["check", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
