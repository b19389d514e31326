"""Heavy tails: what new values add to the square of a prediction, and that no regressor of ours ends far above none."""

from itertools import product

import numpy as np
import pytest

from budgetreg.algorithms.aemr.target_regression import Known, average_regressors
from budgetreg.algorithms.factors.posterior import Posterior, posterior_moments
from budgetreg.estimators import AEML, AEMR, FixedSubset, ImputeRidge
from budgetreg.protocol.repetitions import run_repetitions
from budgetreg.revealed.collection import Block
from budgetreg.revealed.columns import Rescaled, StandardisedEntries, inflation
from budgetreg.revealed.tails import excess, inverse_tail_index, without_scale
from tests.plans import planned
from tests.tiers import slow_but

BOTH = {"centred": True, "intercept": True}


def modelled(rescaled, d):
    """Return the regressors (d,) of AEML and AEMR."""
    standardised = StandardisedEntries(rescaled.blocks, d, **BOTH, excess=rescaled.excess)
    values = sum(block.values.size for block in rescaled.blocks)
    moments = posterior_moments(Posterior(d + 1, 3, [np.random.default_rng(6)]), standardised, np.arange(1), values)
    by_factors = standardised.regressors(moments, **BOTH, inflation=rescaled.inflation)
    regressed = average_regressors(Known(standardised, moments, rescaled.inflation), [np.random.default_rng(7)], **BOTH)
    return [outputs.regressors[0, :, 0] for outputs in (by_factors, regressed)]


def cells(X):
    """Return attributes and values of all cells of X."""
    return np.tile(np.arange(X.shape[1]), len(X)), X.reshape(-1)


def literally(X):
    """Return the mean of squares over the variance of the others, over that of normal ones, less 1; with its error."""
    n, ratios = len(X), []
    for column in X.T:
        for i in range(n):
            others = np.delete(column, i)
            if np.ptp(others) > 0:
                square = (column[i] - others.mean()) ** 2 / others.var(ddof=1)
                ratios.append(square / (n / (n - 1) * (n - 2) / (n - 4)))
    error = np.std(ratios) / len(ratios) ** 0.5
    return max(0.0, np.mean(ratios) - 1) * (1 + error / np.mean(ratios))


@pytest.mark.parametrize(
    "draw", [lambda rng: rng.standard_t(2, (12, 5)), lambda rng: rng.exponential(size=(40, 3)) ** 3]
)
def test_the_excess_is_that_of_values_left_out(draw):
    X = draw(np.random.default_rng(0))
    assert excess(*cells(X), X.shape[1]) == pytest.approx(literally(X), rel=1e-9)
    assert excess(*cells(X), X.shape[1]) > 0.1


def test_neither_units_nor_zeros_of_attributes_matter():
    X = np.random.default_rng(1).standard_t(3, (50, 4))
    assert excess(*cells(X * [1, 1e6, 1e-6, 3] + [5, 0, 1e-6, -100]), 4) == pytest.approx(
        excess(*cells(X), 4), rel=1e-6
    )


def test_normal_values_have_nearly_none():
    rng = np.random.default_rng(2)
    assert np.mean([excess(*cells(rng.normal(size=(9, 20))), 20) for _ in range(200)]) < 0.1
    assert excess(*cells(rng.normal(size=(200, 20))), 20) < 0.02
    assert excess(*cells(np.sign(rng.normal(size=(200, 20)))), 20) == 0


def test_two_large_values_of_an_attribute_do_not_hide_each_other():
    X = np.random.default_rng(5).normal(size=(38, 25))
    X[[3, 20], [[4], [12]]] *= 100
    new = np.square(X).mean()  # times the variance of attributes that have shown no large value
    assert new > 10
    assert excess(*cells(X), 25) > new / 4


def test_too_few_values_and_constant_attributes_have_none():
    assert excess(*cells(np.random.default_rng(3).standard_t(1, (7, 50))), 50) == 0
    assert excess(*cells(np.full((50, 2), 7.3)), 2) == 0
    alone = np.zeros((50, 2))
    alone[3] = 7.3
    assert excess(*cells(alone), 2) == 0
    assert excess(np.full(50, 4), np.arange(50.0) ** 5, 4) == 0


def index(X, top):
    """Return Hill's estimate of the tail index of all columns together, from the `top` largest of each."""
    logarithms = []
    for column in X.T:
        largest = sorted(abs(column - np.median(column)), reverse=True)
        logarithms += [np.log(largest[j] / largest[top]) for j in range(top)]
    return 1 / np.mean(logarithms)


@pytest.mark.parametrize(("n", "top"), [(8, 1), (40, 2), (119, 5)])
def test_the_tail_index_is_hills_estimate(n, top):
    for seed in range(40):
        X = np.random.default_rng(seed).standard_t(1.3, (n, 20))
        estimate = 1 / index(X, top), 1 / index(X, top) / np.sqrt(20 * top)
        assert inverse_tail_index(*cells(X), 20) == pytest.approx(estimate)
        assert inverse_tail_index(*cells(X * np.geomspace(1e-9, 1e9, 20) + 5), 20) == pytest.approx(estimate)


def test_the_estimate_of_the_tail_index_has_its_standard_error():
    rng = np.random.default_rng(9)
    tables = [rng.standard_t(1.3, (400, 20)) for _ in range(200)]
    estimates, errors = np.transpose([inverse_tail_index(*cells(X), 20) for X in tables])
    assert estimates.std() == pytest.approx(errors.mean(), rel=0.15)


def test_attributes_without_variance_have_no_weight_and_it_is_said_which_may_have_none():
    """As the tail index is below 1.3, or may be by a standard error."""
    verdicts = set()
    for seed in range(40):
        X = np.random.default_rng(seed).standard_t(1.3, (40, 20))
        attributes, values = cells(X)
        rescaled = Rescaled([Block(attributes[None, None], values[None, None])], 20, scaled=True)
        estimate, error = inverse_tail_index(*cells(X), 20)
        assert np.isinf(rescaled.inflation).all() == (estimate > 1 / 1.3)
        assert rescaled.has_variance[0] == (estimate + error <= 1 / 1.3)
        verdicts.add((bool(np.isinf(rescaled.inflation).all()), bool(rescaled.has_variance[0])))
    assert verdicts == {(True, False), (False, False), (False, True)}


def test_cauchy_columns_seem_to_have_no_variance_and_others_do():
    def share(draw, errors):
        estimates = [inverse_tail_index(*cells(draw((31, 25))), 25) for _ in range(100)]
        return np.mean([estimate + errors * error > 1 / 1.3 for estimate, error in estimates])

    rng = np.random.default_rng(7)
    assert share(rng.standard_cauchy, 0) > 0.8
    assert share(rng.standard_cauchy, 1) > 0.95
    assert share(lambda shape: rng.standard_t(3, shape), 1) == share(rng.standard_normal, 1) == 0


def test_few_or_equal_values_show_no_tails():
    rng = np.random.default_rng(8)

    def shown(X):
        return inverse_tail_index(*cells(X), X.shape[1]) != (0, 0)

    assert not shown(rng.standard_cauchy((7, 50)))
    assert not shown(rng.standard_cauchy((39, 19)))
    assert shown(rng.standard_cauchy((39, 20)))
    assert not shown(np.full((50, 2), 7.3))
    rare = np.zeros((50, 2))
    rare[3] = 1e9
    assert not shown(rare)
    assert inverse_tail_index(np.full(50, 4), rng.standard_cauchy(50), 4) == (0, 0)


@pytest.mark.parametrize("draw", ["standard_cauchy", "standard_normal"])
def test_attributes_without_variance_get_no_weight(draw):
    X = getattr(np.random.default_rng(9), draw)((200, 6))
    values = np.column_stack([X, X.sum(axis=1)])[None]
    attributes = np.broadcast_to(np.arange(7), values.shape)
    for w in modelled(Rescaled([Block(attributes, values)], 6, scaled=True), 6):
        assert (w == 0).all() if draw == "standard_cauchy" else (w > 0).all()


@pytest.mark.filterwarnings("ignore::budgetreg.common.notices.Notice")
@pytest.mark.parametrize("made", [ImputeRidge, FixedSubset])
@pytest.mark.parametrize(("d", "k"), slow_but([(12, 10)], [(12, 10), (310, 10)]))
def test_imputation_predicts_no_large_number_from_lognormal_attributes(made, d, k):
    errors = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        factor = rng.normal(size=(526, 1))
        X = np.exp(rng.choice([2, 2.5, 3]) * (0.6 * factor + 0.8 * rng.normal(size=(526, d))))
        y = factor[:, 0] + 0.5 * rng.normal(size=526)
        predicted = made(k=k).fit(X[:126], y[:126]).predict(X[126:])
        errors.append(np.square(predicted - y[126:]).mean() / y[126:].var())
    assert max(errors) < 1.2


def outlying(n, d):
    """Return factors with noise, a hundredth of whose cells are multiplied by 100, and a target of the factors."""
    rng = np.random.default_rng(4)
    factors = rng.normal(size=(n, 3))
    X = factors @ rng.normal(size=(3, d)) + 0.5 * rng.normal(size=(n, d))
    y = factors @ [1, 0.5, -0.5] + 0.5 * rng.normal(size=n)
    return X * np.where(rng.random((n, d)) < 0.01, 100, 1), y


def test_moments_are_solved_for_large_values_to_come():
    n, d, k, errors = 100, 25, 12, []
    X, y = outlying(2000, d)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        rows = rng.permutation(len(X))[:n]
        attributes = np.stack([rng.permutation(d)[:k] for _ in rows])
        values = np.column_stack([np.take_along_axis(X[rows], attributes, 1), y[rows]])
        blocks = [Block(np.column_stack([attributes, np.full(n, d)])[None], values[None])]
        rescaled = Rescaled(blocks, d, scaled=True)
        assert rescaled.excess[0] > 10
        assert Rescaled(blocks, d, scaled=False).excess == 0
        W = rescaled.as_revealed(np.stack(modelled(rescaled, d), axis=1)[None])[0]
        residuals = y - y[rows].mean() - W.T @ (X - X.mean(axis=0)).T
        errors.append(np.square(residuals).mean(axis=1) / y.var())
    assert (np.mean(errors, axis=0) < 1.2).all()


@pytest.mark.slow
@pytest.mark.parametrize("algo", ["aemr", "aeml"])
def test_large_values_to_come_spoil_no_prediction(tmp_path, algo):
    X, y = outlying(437, 25)
    np.savez(tmp_path / "table.npz", X=X, y=y)
    plan = planned("dataset=file", f"dataset.path={tmp_path / 'table.npz'}", f"algo={algo}", "k=8", "checkpoints=1")
    results = run_repetitions(plan, range(10), lambda done: None)
    assert np.mean([result["curve"][-1]["test_relative"] for result in results]) < 1.2


def test_a_unit_from_few_values_makes_new_ones_larger():
    rng = np.random.default_rng(5)
    factors = inflation(np.arange(40.0))
    assert np.isinf(factors[:4]).all() and np.isfinite(factors[4:]).all() and (np.diff(factors[4:]) < 0).all()
    for n in (6, 12, 39):
        factor = np.sqrt((n - 1) / rng.chisquare(n - 1, 200_000))
        assert factors[n] - 1 == pytest.approx(np.square(factor).mean() / factor.mean() ** 2 - 1, rel=0.1)


def test_attributes_with_up_to_three_values_get_no_weight():
    rng = np.random.default_rng(6)
    n, d = 40, 4
    y = rng.normal(size=n)
    X = y[:, None] + 0.1 * rng.normal(size=(n, d))
    attributes = np.column_stack([np.zeros(n, dtype=int), np.where(np.arange(n) < 3, 1, d + 1), np.full(n, d)])
    attributes[5:9, 1] = 2
    values = np.where(attributes <= d, np.take_along_axis(np.column_stack([X, y, 0 * y]), attributes, 1), 0)
    rescaled = Rescaled([Block(attributes[None], values[None])], d, scaled=True)
    assert (Rescaled([Block(attributes[None], values[None])], d, scaled=False).inflation == 1).all()
    for w in modelled(rescaled, d):
        assert (w[[0, 2]] != 0).all() and (w[[1, 3]] == 0).all()


@pytest.mark.slow
def test_more_attributes_than_values_spoil_no_prediction(tmp_path):
    rng = np.random.default_rng(7)
    factors = rng.normal(size=(80, 3))
    X = factors @ rng.normal(size=(3, 60)) + 0.5 * rng.normal(size=(80, 60))
    np.savez(tmp_path / "table.npz", X=X, y=factors @ [1, 0.5, -0.5])
    path = f"dataset.path={tmp_path / 'table.npz'}"
    plan = planned("dataset=file", path, "algo=aemr", "k=2", "checkpoints=1")
    results = run_repetitions(plan, range(6), lambda done: None)
    assert np.mean([result["curve"][-1]["test_relative"] for result in results]) < 1.2


WIDE = {
    "lognormal": lambda rng, Z: np.exp(2 * Z),
    "exponential": lambda rng, Z: rng.exponential(size=Z.shape) + np.maximum(Z, 0),
    "cubes": lambda rng, Z: Z**3,
    "cauchy": lambda rng, Z: Z + rng.standard_cauchy(Z.shape),
    "heaped": lambda rng, Z: np.where(rng.random(Z.shape) < 0.95, 1.0, Z),
    "any unit": lambda rng, Z: 10.0 ** rng.uniform(-19, 9, Z.shape[1]) * Z,
}
"""Tables of which k = 4 attributes of each example show two or so values of each attribute."""


@pytest.mark.filterwarnings("ignore::budgetreg.common.notices.Notice")
@pytest.mark.parametrize(
    ("made", "table"),
    slow_but(
        [(ImputeRidge, "lognormal"), (ImputeRidge, "heaped")],
        product([ImputeRidge, AEMR, AEML], WIDE),
    ),
)
def test_few_values_of_many_attributes_predict_no_large_number(made, table):
    errors = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        factor = rng.normal(size=(326, 1))
        X = WIDE[table](rng, 0.6 * factor + 0.8 * rng.normal(size=(326, 310)))
        y = factor[:, 0] + 0.5 * rng.normal(size=326)
        predicted = made(k=4).fit(X[:126], y[:126]).predict(X[126:])
        errors.append(np.square(predicted - y[126:]).mean() / y[126:].var())
    assert np.mean(errors) < 1.2


def few_of(X, size=4):
    """Return the first values of each column, two more or less in some."""
    return [column[: size + at % 3 - 1] for at, column in enumerate(X.T)]


def test_few_values_show_no_scale_where_all_together_show_heavy_tails():
    rng = np.random.default_rng(10)

    def share(draw, size=4, d=120):
        return np.mean([without_scale(few_of(draw((20, d)), size)) for _ in range(20)])

    assert share(rng.standard_normal) < 0.1
    assert share(lambda shape: 37 + rng.standard_normal(shape)) < 0.1
    assert share(lambda shape: (rng.random(shape) < 0.3) * 5.0) == 0  # two values show how far away others are
    for heavy in (
        rng.standard_cauchy,
        lambda shape: rng.standard_normal(shape) ** 5,
        lambda shape: rng.lognormal(0, 1.5, shape),
    ):
        assert share(heavy) > 0.9
        assert share(heavy, size=18) == 0  # that many values show the tail itself
        assert share(heavy, d=40) == 0  # no unlucky one among fewer is likely


def test_units_do_not_matter_to_whether_few_values_show_a_scale():
    X = np.random.default_rng(11).lognormal(0, 1.5, (20, 90))
    expected = without_scale(few_of(X))
    assert expected.all()
    assert (without_scale(few_of(X * np.geomspace(1e-9, 1e9, 90))) == expected).all()


def test_a_value_away_from_equal_ones_shows_no_scale_where_others_are_nearer():
    X = np.ones((5, 80))
    X[2, :60] = 2.0
    assert not without_scale(list(X.T)).any()  # all are about equally far away
    X[2, 0] = 1.1
    assert (without_scale(list(X.T)) == (np.arange(80) < 60)).all()


def test_few_values_over_decades_show_no_scale_where_others_are_ordinary():
    X = np.random.default_rng(12).normal(size=(4, 80))
    X[:, 7] = [1e-7, 4e-3, 0.04, 2.0]
    assert without_scale(list(X.T))[7]
    X[:, 7] = [0.7, 1.1, 0.9, 2.0]
    assert not without_scale(list(X.T))[7]
