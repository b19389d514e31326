"""Values missing completely at random: estimates are unbiased over all draws and masks."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from budgetreg.algorithms import cesa_bianchi_2010 as pairs
from budgetreg.algorithms import gonen_2016
from budgetreg.algorithms.cesa_bianchi_2010 import PairCentring
from budgetreg.algorithms.gonen_2016 import MatrixGradientLearner, SecondMomentLearner, moment_estimates
from budgetreg.algorithms.kukliansky_shamir_2015 import MomentEstimates
from budgetreg.algorithms.learner import Missing, SideInformation
from budgetreg.algorithms.registry import members
from budgetreg.common.streams import BLOCK
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.testing import checks
from budgetreg.testing.certificates import CheckError, close
from budgetreg.testing.checks import Subject, examined, variants
from budgetreg.testing.enumeration import REFERENCE_UPDATES, STEP, Place, Scripted, ScriptedRuns, outcomes
from tests.tiers import slow_but

D = 4
X, Y = np.array([0.7, -1.1, 0.4, 0.2]), -1.5
MASKS = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 1, 1], [1, 0, 0, 1]], dtype=bool)
PROBABILITIES = np.array([0.25, 0.2, 0.1, 0.15, 0.2, 0.1])
"""Masks of available values, which are far from independent of each other."""
TOGETHER = np.einsum("m,mi,mj->ij", PROBABILITIES, MASKS, MASKS)
ALONE = np.diagonal(TOGETHER)
INDEPENDENT = np.outer(ALONE, ALONE)
WRONG = {
    "as if independent": INDEPENDENT,
    "as if independent but for squares": np.where(np.eye(D) > 0, TOGETHER, INDEPENDENT),
    "not at all": np.ones((D, D)),
}


@dataclass(frozen=True, eq=False)
class Masked(Subject):
    """A learner whose examples have missing values, by the mask (n, d) of their rows."""

    mask: Callable[[int, int], np.ndarray] = lambda n, d: np.ones((n, d), dtype=bool)
    together: np.ndarray | None = None

    def run(self, table: Table, *args: Any, **more: Any) -> Any:
        mask = self.mask(len(table.y), table.d)
        return super().run(replace(table, available=mask, together=self.together), *args, **more)


def masked(subject: Subject, mask: Callable[[int, int], np.ndarray], together: np.ndarray) -> Masked:
    values = {field.name: getattr(subject, field.name) for field in fields(Subject)}
    return Masked(**values, mask=mask, together=together)


def able(*, predicts: bool) -> list[str]:
    return members(lambda learner: learner.missing is not Missing.REFUSED and learner.predicts == predicts)


KINDS = (
    *("aerr", "aer", "ddaerr_two_phase", "naive", "popca", "popca_importance", "mbeg"),
    *("sgd_impute", "impute_ridge", "fixed_subset", "aefa_streaming"),
)
"""One learner of each way to treat missing values, and to collect examples; the others repeat one of them."""

ABLE = [*able(predicts=True), *able(predicts=False)]
GRADIENTS = members(
    lambda learner: learner.missing is Missing.WEIGHED and learner.predicts and not learner.centres_itself
)
CENTRED = members(
    lambda learner: (
        learner.missing is not Missing.REFUSED and learner.predicts and checks.skip_reason(learner, "origin") is None
    )
)


# Estimates from stored sums, of one example, for each mask and each outcome of the draws.


def means(numbers: list[int], rows: list[int], estimate: Callable[[Accessor, list[Any]], Any], k: int, weights) -> Any:
    """Return the mean over draws and masks of estimates (F, ...), F streams having all draws."""

    def estimated(mask: np.ndarray, scripts: np.ndarray) -> Any:
        table = Table(np.where(mask, X, np.nan)[None], np.array([Y]), available=mask[None], together=weights)
        accessor = Accessor(table, np.zeros((len(scripts), 1)), 1, k, [1])
        return estimate(accessor, [Scripted(rows, script) for script in scripts])

    everything = np.ones(D, dtype=bool)
    # Without missing values, all draws with different consequences are distinguished.
    scripts, probability = outcomes(
        numbers, lambda script: estimated(everything, script)[0].reshape(len(script), -1), {}
    )
    by_mask = [[np.tensordot(probability, values, axes=1) for values in estimated(mask, scripts)] for mask in MASKS]
    return [np.tensordot(PROBABILITIES, np.array(values), axes=1) for values in zip(*by_mask, strict=True)]


def numbers_of(estimate: Callable[[Accessor, list[Any]], Any], rows: list[int], k: int) -> list[int]:
    probe = Scripted(rows)
    estimate(Accessor(Table(X[None], np.array([Y])), np.zeros((1, 1)), 1, k, [1]), [probe])
    return probe.values


def of_pairs(k: int) -> tuple[list[int], Callable[[Accessor, list[Any]], Any]]:
    def estimate(accessor: Accessor, rngs: list[Any]) -> Any:
        ((_, A, v),) = pairs.estimates(accessor, [1], rngs, k)
        return A, v

    return [0] * (k // 2), estimate


def of_moved_pairs(m: np.ndarray, r: float) -> tuple[list[int], Callable[[Accessor, list[Any]], Any]]:
    """Return the same for attributes less m and a target less r."""

    def estimate(accessor: Accessor, rngs: list[Any]) -> Any:
        F = len(rngs)
        centring = PairCentring(accessor)
        ((_, A, v),) = pairs.estimates(accessor, [1], rngs, 2, centring)
        return centring.centre(A, v, np.tile(m, (F, 1)), np.full(F, r))

    return [0], estimate


def of_moments(k: int, **options: Any) -> tuple[list[int], Callable[[Accessor, list[Any]], Any]]:
    def estimate(accessor: Accessor, rngs: list[Any]) -> Any:
        learner = SecondMomentLearner(name="popca", n_components=1, **options)
        ((_, C),) = moment_estimates(learner, accessor, [1], rngs, k)
        return (C,)

    return [0] * k, estimate


M, R = np.array([0.3, -0.2, 0.5, 1.0]), 0.4
STORED = {
    "pairs": (*of_pairs(2), 2, [np.outer(X, X), 2 * Y * X]),
    "two pairs": (*of_pairs(4), 4, [np.outer(X, X), 2 * Y * X]),
    "pairs from elsewhere": (*of_moved_pairs(M, R), 2, [np.outer(X - M, X - M), 2 * (Y - R) * (X - M)]),
    "active": (*of_moments(2, update="active"), 2, [np.outer(X, X)]),
    "active, three": (*of_moments(3, update="active"), 3, [np.outer(X, X)]),
    "with replacement": (*of_moments(2, update="active", replacement=True), 2, [np.outer(X, X)]),
    "passive": (*of_moments(2, update="passive"), None, [np.outer(X, X)]),
}


@pytest.mark.parametrize("name", STORED)
def test_estimates_from_stored_sums_are_unbiased(name):
    rows, estimate, k, expected = STORED[name]
    numbers = numbers_of(estimate, rows, k)
    for mean, wanted in zip(means(numbers, rows, estimate, k, TOGETHER), expected, strict=True):
        close(name, mean, wanted)
    for weights in WRONG.values():
        mean = means(numbers, rows, estimate, k, weights)[0]
        with pytest.raises(CheckError):
            close(name, mean, expected[0])


def test_pooled_estimate_of_two_phases_is_unbiased():
    """Draws are random; the masks' distribution is exact."""
    F, m = 400, 6
    learner = SecondMomentLearner(name="popca", n_components=1, update="importance", phase_one=0.5, mix=0.5)
    rng = np.random.default_rng(0)
    rows = rng.choice(len(MASKS), (F, m), p=PROBABILITIES)
    table = Table(np.where(MASKS, X, np.nan), np.zeros(len(MASKS)), available=MASKS, together=TOGETHER)
    rngs = [np.random.default_rng([1, f]) for f in range(F)]
    ((_, C),) = moment_estimates(learner, Accessor(table, rows, 1, 2, [m]), [m], rngs, 2)
    off, error = np.abs(C.mean(axis=0) - np.outer(X, X)), C.std(axis=0) / np.sqrt(F)
    assert (off <= 5 * error).all()
    assert error.max() < np.abs(np.outer(X, X)).max() / 4


@pytest.mark.parametrize("update", ["pairs", "singles"])
@pytest.mark.parametrize("name", ["right", *WRONG])
def test_mbeg_estimates_are_unbiased(monkeypatch, update, name):
    """Every pair that may be drawn, for every mask, enters the state with its estimate."""
    followed = []
    monkeypatch.setattr(
        gonen_2016.Weights, "move", lambda self, rows, change, step: followed.append((rows, change.copy()))
    )
    mean = np.zeros((D, D))
    for mask, p in zip(MASKS, PROBABILITIES, strict=True):
        table = Table(np.where(mask, X, np.nan)[None], np.zeros(1), available=mask[None])
        table = replace(table, together=WRONG.get(name, TOGETHER))
        scripts = np.array([[(q + 0.5) / D, (s + 0.5) / D, 0.5] for q in range(D) for s in range(D)])
        accessor = Accessor(table, np.zeros((len(scripts), 1)), 1, 2, [1])
        rngs = [Scripted([0] * 3, script) for script in scripts]
        followed.clear()
        learner = MatrixGradientLearner(name="mbeg", n_components=1, update=update, alpha=1, output="top")
        list(learner.fit(accessor, {"eta": np.ones(1)}, [1], rngs, SideInformation(2)))
        mean += p * sum(change.sum(axis=0) for _, change in followed) / len(scripts)
    if name == "right":
        close("C", mean, np.outer(X, X))
    else:
        with pytest.raises(CheckError):
            close("C", mean, np.outer(X, X))


# Online learners: one step, for all outcomes of its draws and all masks.


def mean_step(subject: Subject, together: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean direction of a step whose example may have missing values, and the gradient.

    The scripts distinguish all outcomes without missing values; with missing values, outcomes may coincide.
    """
    learner = subject.learner
    place = Place(STEP, False, learner.average, int(getattr(learner, "phase_one", 0) * (STEP + 1)))
    examples, targets = place.examples(D)

    def met(available: np.ndarray) -> Masked:
        def mask(n: int, d: int) -> np.ndarray:
            there = np.ones((n, d), dtype=bool)
            there[np.arange(n) % len(examples) == STEP - 1] = available
            return there

        return masked(subject, mask, together)

    whole = met(np.ones(D, dtype=bool))
    rows, values, _ = ScriptedRuns(whole, examples, targets, k, place).probe()

    def regressors(who: Subject, scripts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        before, after, _ = ScriptedRuns(who, examples, targets, k, place).by_scripts(rows, scripts)
        return before, after

    scripts, probability = outcomes(values, lambda scripts: regressors(whole, scripts)[1], {})
    mean = np.zeros(D)
    for mask, p in zip(MASKS, PROBABILITIES, strict=True):
        before, after = regressors(met(mask), scripts)
        mean += p * (probability @ REFERENCE_UPDATES[learner.update].gradient(before, after, STEP, place.settings))
    return mean, (before[0] @ examples[STEP - 1] - targets[STEP - 1]) * examples[STEP - 1]


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_unbiased(name):
    close("the gradient", *mean_step(examined(name), TOGETHER, 3))


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", ["aerr", "aelr", "aer"])
def test_other_weights_are_biased(name, wrong):
    with pytest.raises(CheckError):
        close("the gradient", *mean_step(examined(name), WRONG[wrong], 3))


def test_two_draws_for_the_inner_product_are_unbiased():
    close("the gradient", *mean_step(examined("aerr"), TOGETHER, 4))


# Rules for all learners that accept missing values.


def random_mask(n: int, d: int) -> np.ndarray:
    """Return a mask with two thirds of the values available, and all values of the last rows."""
    there = np.random.default_rng([n, d]).random((n, d)) < 0.65
    there[-5:] = True
    return there


def sparse(subject: Subject) -> Masked:
    together = np.full((checks.D,) * 2, 0.45)
    np.fill_diagonal(together, 0.65)
    return masked(subject, random_mask, together)


@pytest.mark.usefixtures("short_chains")
@pytest.mark.parametrize(
    ("check", "name"),
    slow_but(
        list(product([checks.unobserved], KINDS)),
        product((checks.unobserved, checks.same_bytes), ABLE),
    ),
)
def test_stored_numbers_of_missing_values_change_nothing(name, check):
    check(sparse(examined(name)))


@pytest.mark.usefixtures("short_chains")
@pytest.mark.parametrize("name", slow_but(KINDS, CENTRED))
def test_shifts_change_only_the_intercept(name):
    checks.origin(sparse(examined(name)))


@pytest.mark.usefixtures("short_chains")
@pytest.mark.parametrize("name", slow_but(KINDS[::2], ABLE))
def test_masks_of_ones_change_nothing(name):
    """Shares of 1 divide nothing."""
    subject = examined(name)
    whole = masked(subject, lambda n, d: np.ones((n, d), dtype=bool), np.ones((checks.D,) * 2))
    table, orders = checks._table(40), np.arange(40)[None]
    runs = [
        learner.run(table, orders, checks._rngs(1), checks.K, checks._setting(learner, 0), [3, 40])
        for learner in (subject, whole)
    ]
    for plain, with_mask in zip(runs[0][0], runs[1][0], strict=True):
        np.testing.assert_allclose(plain, with_mask, rtol=1e-9, atol=1e-12)
    assert (runs[0][1].bill.total == runs[1][1].bill.total).all()


@pytest.mark.usefixtures("short_chains")
@pytest.mark.parametrize("name", slow_but(KINDS, able(predicts=True)))
def test_missing_values_are_free(name):
    """If the data point has no available value, draws for the inner product are free, too."""
    m = 12
    X = np.random.default_rng(0).uniform(1, 2, (m, checks.D))
    there = np.random.default_rng(1).random((m, checks.D)) < 0.25
    subject = masked(examined(name), lambda n, d: there, np.full((checks.D,) * 2, 0.3))
    order, every = np.arange(m)[None], list(range(1, m + 1))
    _, reveals = subject.run(Table(X, X[:, 0]), order, checks._rngs(1), 4, checks._setting(subject, 0), every)
    bill = reveals.bill
    costs = np.diff([0, *(bill.at[t][0, 0] for t in every)])
    rows, attributes = reveals.seen
    assert there[rows, attributes].all()
    shown = np.bincount(rows, minlength=m)
    np.testing.assert_array_equal(costs, shown)
    assert (shown == 0).any()
    assert 0 < costs.max() <= 4


def test_moments_use_available_values_only():
    rng = np.random.default_rng(0)
    there, attributes = rng.random((600, D)) < 0.6, rng.integers(0, D, (1, 600, 2))
    values = np.where(np.take_along_axis(there[None], attributes, axis=2), rng.normal(size=attributes.shape), 0.0)
    accessor = Accessor(Table(np.ones((600, D)), np.zeros(600), available=there), np.arange(600)[None], 1, 2, [600])
    moments = MomentEstimates(accessor)
    for start in range(0, 600, BLOCK):
        block = slice(start, min(start + BLOCK, 600))
        accessor.open(block.start, block.stop)
        moments.note(attributes[:, block], values[:, block])
    for i, mean in enumerate(moments.means()[0]):
        np.testing.assert_allclose(mean, np.square(values[(attributes == i) & (values != 0)]).mean(), rtol=1e-12)


def listed(page: str, after: str, before: str) -> set[str]:
    """Return the words in backticks in a part of a how-to guide."""
    text = (Path(__file__).parents[2] / "docs" / "howto" / page).read_text()
    part = text.partition(after)[2].partition(before)[0]
    return set(part.split("`")[1::2])


def test_the_guides_list_learners_as_they_are_declared():
    def declared(missing: Missing) -> set[str]:
        return set(members(lambda learner: learner.missing is missing))

    assert listed("missing.md", "until k are seen or none is left:", "\n- ") == declared(Missing.LEFT_OUT)
    assert listed("missing.md", "do without those that are missing:", "\n- ") == declared(Missing.SKIPPED)
    assert listed("missing.md", "draws of missing values are lost:", "\n- ") == declared(Missing.WEIGHED)
    refused = listed("missing.md", "Learners that need every value", "\n\n")
    assert refused - {"algo.control_variate"} == declared(Missing.REFUSED)
    assert listed("prices.md", "These learners use free attributes:", "\n\n") == set(
        members(lambda learner: learner.uses_free)
    )


def test_control_variates_need_all_values():
    for changes, learner in variants(examined("aerr").learner):
        assert (learner.missing is Missing.REFUSED) == (changes.get("control_variate", "none") != "none")
