"""Attributes that are always the same: an intercept where there is none, and not worth buying where there is one."""

import numpy as np
import pytest

from budgetreg.algorithms.aemr import TargetRegressionLearner
from budgetreg.algorithms.factors import FactorRegression
from budgetreg.common.streams import BLOCK
from budgetreg.data.distributions import PowerLaw
from budgetreg.revealed.collection import Block, Entries
from budgetreg.revealed.columns import Rescaled, equal_values, variance
from budgetreg.revealed.designs import fixed_size
from tests.learners.problems import fit, line, shuffled
from tests.tiers import slow_but

LEARNERS = {
    "regression": lambda: TargetRegressionLearner(name="test", n_factors=3),
    "factors": lambda: FactorRegression(name="test", n_factors=3),
}
each_learner = pytest.mark.parametrize("name", slow_but(["regression"], list(LEARNERS)))


def fitted(name, X, y, k, pilot=0, centred=False, intercept=False, raw=True):
    """Return the regressor (d,), the intercept, and the reveals of each attribute (d,), without the pilot."""
    order = shuffled(1, len(y))
    given = {"centred": centred, "intercept": intercept, "zero_is_meaningful": raw}
    run = {"given": given, "pilot": order[:, :pilot], "itemised": True}
    outputs, accessor = fit(LEARNERS[name](), X, y, order[:, pilot:], k, **run)
    (output,) = outputs.values()
    return output.regressors[0, :, 0], output.intercept[0, 0], accessor.bill().reveals.until()[0, 0]


def test_equal_values_are_counted_in_each_stream():
    entries = Entries(4)
    seen = np.array([[[0, 1], [0, 1], [0, 2]], [[4, 1], [0, 1], [0, 4]]])
    values = np.array([[[2.0, 0], [2, 1], [2, 7]], [[9, 0], [2, 0], [3, 5]]])
    entries.add(seen, values, np.array([[1.0, 1, 1], [0, 0, 0]]))
    entries.add(seen, values, np.array([[1.0, 1, 1], [0, 0, 0]]))
    equal = equal_values(entries.blocks(), 4, zero_is_meaningful=True)
    assert equal.counts.tolist() == [[6, 0, 2, 6], [0, 4, 0, 6]]
    assert equal.values.tolist() == [[2, 0, 7, 1], [0] * 4]
    assert equal.offsets.tolist() == [[True, False, False, False], [False] * 4]
    centred_before = equal_values(entries.blocks(), 4, zero_is_meaningful=False)
    assert centred_before.counts.tolist() == [[0, 0, 0, 6], [0, 0, 0, 6]]


def repeated(count, values, targets):
    """Return the equal values where examples show the same values of all attributes, and have these targets."""
    entries, d = Entries(len(values) + 1), len(values)
    entries.add(np.tile(np.arange(d), (1, count, 1)), np.tile(values, (1, count, 1)), targets[None])
    return equal_values(entries.blocks(), d + 1, zero_is_meaningful=True)


@pytest.mark.parametrize(("values", "constant"), [(11, False), (12, True)])
def test_few_equal_targets_may_be_those_of_two_labels(values, constant):
    assert repeated(values, [0.3, -2.0], np.ones(values)).offsets.tolist() == [[True, True, constant]]


def test_no_number_of_zeros_is_an_intercept():
    equal = repeated(40, [0.0, -2.0], np.zeros(40))
    assert equal.counts.tolist() == [[40, 40, 40]]
    assert equal.offsets.tolist() == [[False, True, False]]


def test_more_equal_values_are_needed_where_other_columns_have_rare_values():
    """A tenth of the values of one column differ: 33 equal ones are as probable as 5 where half of them do."""
    for values, constant in ((32, False), (33, True)):
        shown = np.full((1, values, 2), 3.0)
        rare = np.where(np.arange(40) < 4, 1.0, -0.2)
        entries = Entries(5)
        entries.add(np.tile([0, 1], (1, values, 1)), shown, np.arange(values)[None] * 1.0)
        entries.add(np.full((1, 40, 1), 2), rare[None, :, None], np.arange(40)[None] * 1.0)
        entries.add(np.full((1, 40, 1), 3), np.arange(40.0)[None, :, None], np.arange(40)[None] * 1.0)
        (offsets,) = equal_values(entries.blocks(), 5, zero_is_meaningful=True).offsets.tolist()
        assert offsets == [constant] * 2 + [False] * 3


def test_five_equal_values_are_an_intercept():
    for values, enough in ((4, False), (5, True)):
        assert repeated(values, [3.0], np.arange(float(values))).offsets.tolist() == [[enough, False]]


@pytest.mark.parametrize("value", [0.0, 2.0])
def test_the_variance_after_equal_values_is_the_mean_of_the_posterior(value):
    """By integrals over the share p of other values: half of the columns are constant, p is uniform in the others."""
    n, others = 200, 3.0
    p = (np.arange(100_000) + 0.5) / 100_000
    likelihood = (1 - p) ** n
    mean = np.mean(likelihood * p * (1 - p)) * (value**2 + others) / (1 + np.mean(likelihood))
    assert variance(value, n, others) == pytest.approx(mean, rel=0.02)


def test_the_unit_of_a_constant_attribute_is_its_size():
    values = np.tile([-0.1, 0.0, 7.0], (6, 1))
    block = Block(np.tile(np.arange(3), (1, 6, 1)), values[None])
    (rescaled,) = Rescaled([block], 2, scaled=True).blocks  # the third column is the target
    np.testing.assert_allclose(rescaled.values[0], np.tile([-1, 0, 7], (6, 1)))


def test_few_equal_values_are_no_certainty():
    """44 of them are, and at last the square root of the examples; a 0 that is not centred may be a rare attribute."""
    for values, examples, known in ((43, 100, False), (44, 1936, True), (44, 1937, False), (100, 10_000, True)):
        equal = repeated(values, [0.0, 3.0], np.ones(values))
        assert equal.known(examples, centred=True).tolist() == [[known, known, known]]
        assert equal.known(examples, centred=False).tolist() == [[False, known, known]]


@each_learner
@pytest.mark.parametrize("k", slow_but([3], [3, 6]))
def test_a_constant_attribute_is_the_intercept(name, k):
    """In its unit, however small; at about the same error as with an intercept. Also if rows are complete."""
    m = 150
    X, y = line(m, 5)
    X, y = np.column_stack([X - X.mean(axis=0), np.full(m, -0.1)]), y - y.mean() + 3
    w, b, _ = fitted(name, X, y, k)
    assert b == 0
    assert w[5] * -0.1 == pytest.approx(3, rel=0.07)
    v, c, _ = fitted(name, X, y, k, centred=True, intercept=True)
    assert v[5] == pytest.approx(0, abs=1e-9)
    left, least = np.square(y - X @ w).mean(), np.square(y - X @ v - c).mean()
    assert left <= 1.5 * least <= 0.15 * np.square(y).mean()


@pytest.mark.usefixtures("short_chains")
def test_a_constant_means_nothing_where_unpaid_means_were_subtracted():
    X, y = line(100, 5)
    X, y = np.column_stack([X, np.full(100, -1.0)]), y + 3
    raw, centred = (fitted("regression", X, y, 3, 10, raw=is_raw)[0][5] for is_raw in (True, False))
    assert centred == 0 > raw


@pytest.mark.usefixtures("short_chains")
@each_learner
def test_nothing_varies(name):
    for y, intercept in ((0.1, False), (0.1, True), (-7.0, False)):
        w, b, _ = fitted(name, np.full((20, 4), 0.3), np.full(20, y), 3, intercept=intercept)
        assert w.sum() * 0.3 + b == pytest.approx(y, rel=0.07)


@pytest.mark.usefixtures("short_chains")
@each_learner
def test_a_known_constant_is_not_bought_again(name):
    """After the first plan. With centred attributes a 0 is like any other constant; without, it may be a rare one."""
    m, k, pilot = 150, 3, 50
    X, y = line(m, 7)
    X[:, 0], X[:, 1], X[:, 2] = 0, 5.1, 0
    X[shuffled(1, m)[0][pilot - 1], 2] = 1  # rare
    first_plan = -(-2 * 7 // k)
    reveals = {c: fitted(name, X, y, k, pilot, centred=c, intercept=c)[2] for c in (True, False)}
    for bought in reveals.values():
        assert bought.sum() == k * (m - pilot)
        assert bought[1] <= first_plan
        assert (bought[2:] > first_plan).all()
    assert reveals[True][0] <= first_plan and reveals[True][0] < reveals[False][0]


@pytest.mark.usefixtures("short_chains")
def test_too_few_other_attributes_leave_constants_in():
    X, y = line(100, 5)
    X[:, :3] = 2.5
    *_, bought = fitted("regression", X, y, 3, 50, centred=True, intercept=True)
    assert bought.sum() == 150 and (bought[:3] > 0).all()


def test_attributes_of_probability_0_are_never_drawn():
    p, r = np.array([0.0, 0.7, 0.3, 0, 0.6, 0.4, 0]), 2
    among, rngs = np.flatnonzero(p), [np.random.default_rng(0) for _ in range(2)]
    for _ in range(3):
        drawn = fixed_size(p, r)(rngs[0]).attributes
        assert drawn.shape == (BLOCK, r)
        np.testing.assert_array_equal(drawn, among[fixed_size(p[among], r)(rngs[1]).attributes])


@pytest.mark.slow
@pytest.mark.parametrize("name", list(LEARNERS))
def test_coins_that_all_show_1_are_learned(name):
    data = PowerLaw(d=20, alpha=0, norm="linf", n=100, n_test=10, implicit=False).draw(0, 0)
    X, y = np.asarray(data.X, dtype=float), data.y
    w, _, _ = fitted(name, X[:100], y[:100], 5)
    assert np.square(X[100:] @ w - y[100:]).mean() <= 0.01 * np.square(y[100:]).mean()
