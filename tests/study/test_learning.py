"""What is learned from a table with holes: the numbers of the estimator, and what holes and unknown targets change."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import budgetreg
from budgetreg.common.errors import ConfigError
from budgetreg.estimators import ESTIMATORS
from budgetreg.protocol.in_memory import FitOptions, learn_table
from budgetreg.study.model import JointModel, learn


def factor_table(n: int, d: int, share: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return complete values (n, d), values of which a share is known, and targets: two factors move them all."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2)) @ rng.standard_normal((2, d)) + 0.5 * rng.standard_normal((n, d))
    X = X * np.arange(1, d + 1) + 10
    y = X @ (1 / np.arange(1, d + 1)) + 0.5 * rng.standard_normal(n)
    return X, np.where(rng.random((n, d)) < share, X, np.nan), y


@pytest.mark.slow
def test_moments_and_regressor_approach_the_truth() -> None:
    everything = factor_table(1000, 5, 0.6)
    (X, Z, y), (new, holes, target) = ([part[rows] for part in everything] for rows in (slice(600), slice(600, None)))
    model = learn(Z, y, seed=0)
    np.testing.assert_allclose(model.mean, X.mean(axis=0), atol=0.15 * X.std(axis=0).max())
    units = X.std(axis=0)
    np.testing.assert_allclose(model.covariance / np.outer(units, units), np.corrcoef(X.T), atol=0.12)
    predictions, deviations = model.predict(holes), model.deviations(holes)
    assert 0.8 < np.mean(np.square((predictions - target) / deviations)) < 1.25
    filled = model.predict(np.where(np.isnan(holes), model.mean, holes))
    assert np.mean(np.square(predictions - target)) < 0.8 * np.mean(np.square(filled - target))
    assert np.mean(np.square(model.predict(new) - target)) < np.mean(np.square(predictions - target))


@pytest.mark.slow
def test_examples_without_a_target_inform_the_moments() -> None:
    """With 25 targets and 400 more rows the covariance is nearer the truth than with the 25 rows alone."""
    X, Z, y = factor_table(425, 5, 0.6)
    units = X.std(axis=0)

    def off(model: JointModel) -> float:
        return float(np.abs(model.covariance / np.outer(units, units) - np.corrcoef(X.T)).mean())

    some = np.where(np.arange(len(y)) % 17 == 0, y, np.nan)
    few = ~np.isnan(some)
    with_all, alone = learn(Z, some, seed=0), learn(Z[few], some[few], seed=0)
    assert off(with_all) < 0.6 * off(alone)


@pytest.mark.usefixtures("short_chains")
@pytest.mark.parametrize("targets", [[np.nan] * 5, [1.0, 2.0, 3.0, np.nan, np.nan]])
def test_nothing_is_known_at_first(targets: list[float]) -> None:
    """No value, and no target or some: the mean of the targets is predicted, and each attribute has a variance."""
    model = learn(np.full((5, 3), np.nan), np.array(targets), seed=0, n_factors=1)
    np.testing.assert_array_equal(model.w, 0)
    assert model.b == pytest.approx(np.nan_to_num(np.nanmean([*targets, *[0.0] * all(np.isnan(targets))])), abs=0.3)
    assert (np.diag(model.covariance) > 0).all()
    unknown = np.full((1, 3), np.nan)
    assert np.isfinite([model.predict(unknown), model.deviations(unknown)]).all()


def test_unknown_targets_are_not_in_the_mean() -> None:
    learned = learn_table(FitOptions("aemr"), np.full((5, 3), np.nan), np.array([1.0, 2.0, 3.0, np.nan, np.nan]))
    assert learned.model["b"] == pytest.approx(2, abs=0.05)


@pytest.mark.usefixtures("short_chains")
def test_constant_and_unseen_attributes_are_independent_of_the_others() -> None:
    _, Z, y = factor_table(30, 4, 0.8)
    Z[:, 1], Z[:, 2] = 7.0, np.nan
    model = learn(Z, y, seed=0, n_factors=2)
    assert model.mean[1] == pytest.approx(7)
    assert model.mean[2] == 0
    np.testing.assert_array_equal(model.w[1:3], 0)
    others = model.covariance[1:3] - np.diag(np.diag(model.covariance))[1:3]
    np.testing.assert_array_equal(others, 0)
    assert 0 < model.covariance[1, 1] < 7**2 / 30
    assert model.covariance[2, 2] > 0


@pytest.mark.slow
@pytest.mark.parametrize("algo", ["aemr", "aeml"])
def test_it_is_what_the_estimator_learns(algo: str) -> None:
    """Whose numbers are those of the command, see `tests.estimators.test_estimators`."""
    _, Z, y = factor_table(40, 4, 0.6)
    model = learn(Z, y, seed=2, algo=algo, n_factors=2)
    estimator = ESTIMATORS[algo.upper()](n_factors=2, random_state=2).fit(Z, y)
    np.testing.assert_array_equal(model.w, estimator.coef_)
    np.testing.assert_array_equal(model.covariance, estimator.covariance_)
    assert (model.b, model.noise) == (estimator.intercept_, estimator.noise_variance_)
    answers = model.predict(Z), model.deviations(Z)
    np.testing.assert_allclose(answers, estimator.predict(Z, return_std=True), rtol=1e-12)


@pytest.mark.usefixtures("short_chains")
def test_a_std_of_0_is_explained(tmp_path: Path) -> None:
    study = budgetreg.Study.create(tmp_path / "s.db", examples=["p", "q"], targets=[1.5, None], costs={"a": 1, "b": 1})
    with pytest.warns(match=r"^all known targets are equal: nothing shows how targets vary"):
        assert study.predict(pd.DataFrame({"a": [1.0]}))["std"].tolist() == [0]


def test_everything_needs_the_budget_of_everything() -> None:
    _, Z, y = factor_table(12, 3, 1.0)
    with pytest.raises(ConfigError, match=r"algo\.draws=everything: needs k=3, all attributes, not k=2"):
        learn_table(FitOptions("aemr", k=2, options={"draws": "everything"}, pilot=0), Z, y)


@pytest.mark.parametrize("alone", [0, 240])
def test_the_noise_is_what_nearly_complete_rows_show_whatever_other_targets_are_known(alone: int) -> None:
    """Examples that show their target alone say how much it varies, not what attributes leave unexplained."""
    rng = np.random.default_rng(4)
    X, e = rng.normal(size=(60 + alone, 3)), 0.3 * rng.normal(size=60 + alone)
    y = X[:, 0] + X[:, 1] + e
    X[60:] = np.nan
    noise = learn(X, y, seed=0).noise
    assert noise == pytest.approx(np.square(e[:60]).mean(), rel=0.25)
    X[0, 0] = np.nan
    assert learn(X, y, seed=0).noise == pytest.approx(noise, rel=0.25)


@pytest.mark.usefixtures("short_chains")
def test_covariances_with_the_target_take_the_regressor_for_right_if_examples_are_complete_alone() -> None:
    """Otherwise they are those of the factor model, from which the regressor differs."""
    X, Z, y = factor_table(200, 20, 0.5)
    cosines = []
    for values in (X[:40], Z):
        model = learn(values, y[: len(values)], seed=1)
        direction = np.linalg.solve(model.covariance, model.shared)
        cosines.append(direction @ model.w / np.linalg.norm(direction) / np.linalg.norm(model.w))
    assert cosines[0] > 1 - 1e-4 and cosines[1] < 1 - 1e-4
