from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from budgetreg.common.errors import DataError
from budgetreg.study import error as module
from budgetreg.study.error import Interval, LearningCurve, Part, combined, corrected, estimate_error, losses, unbiased
from budgetreg.study.model import JointModel

D, K = 6, 3


def truth(seed: int, n: int, factors: int = 2, noise: float = 0.3) -> tuple[JointModel, np.ndarray, np.ndarray]:
    """Normal attributes with common factors, the model that they follow, and examples of it."""
    rng = np.random.default_rng(seed)
    loadings, w = rng.standard_normal((factors, D)), rng.standard_normal(D)
    S, mean = loadings.T @ loadings + np.eye(D), rng.standard_normal(D)
    X = mean + rng.standard_normal((n, factors)) @ loadings + rng.standard_normal((n, D))
    y = X @ w + 2 + np.sqrt(noise) * rng.standard_normal(n)
    return JointModel(mean, S, w, 2.0, noise, S @ w), X, y


def holes(X: np.ndarray, seed: int, k: int = K) -> np.ndarray:
    rank = np.random.default_rng(seed).random(X.shape).argsort(axis=1).argsort(axis=1)
    return np.where(rank < k, X, np.nan)


def other_model(seed: int) -> JointModel:
    model, _, _ = truth(seed, 1)
    return model


def test_the_moment_estimate_is_unbiased_over_all_subsets() -> None:
    _, X, y = truth(0, 7)
    wrong = other_model(1)
    subsets = list(combinations(range(D), K))
    rows = np.full((len(subsets), *X.shape), np.nan)
    for values, subset in zip(rows, subsets, strict=True):
        values[:, subset] = X[:, subset]
    parts = [Part(wrong, rows.reshape(-1, D)[i::2], np.tile(y, len(subsets))[i::2]) for i in (0, 1)]
    assert unbiased(parts).mean() == pytest.approx(np.square(y - wrong.b - X @ wrong.w).mean(), rel=1e-9)


def test_of_complete_rows_all_losses_are_the_loss() -> None:
    _, X, y = truth(0, 7)
    wrong = other_model(1)
    loss = losses(Part(wrong, X, y))
    for estimate in (loss.bought, loss.given, unbiased([Part(wrong, X, y)])):
        np.testing.assert_allclose(estimate, np.square(y - wrong.b - X @ wrong.w), rtol=1e-6, atol=1e-9)
    assert not loss.unseen.any()


def test_under_the_right_model_the_losses_are_right_on_average() -> None:
    model, X, y = truth(2, 4000)
    loss = losses(Part(model, holes(X, 0), y))
    assert loss.given.mean() == pytest.approx(model.noise, rel=0.05)
    assert loss.bought.mean() > 2 * model.noise


def test_products_correct_a_common_factor_that_is_not_there() -> None:
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((800, D)), np.ones(D)
    y = X @ w + rng.standard_normal(800)
    spurious = np.eye(D) + 0.4 * (1 - np.eye(D))
    model = JointModel(np.zeros(D), spurious, w, 0.0, 13.0, w)  # of a target with variance 7
    (part,) = corrected([Part(model, holes(X, 1), y)])
    off_diagonal = ~np.eye(D, dtype=bool)
    assert abs(part.model.covariance[off_diagonal]).mean() < 0.15  # from 0.4
    np.testing.assert_allclose(np.diagonal(part.model.covariance), 1.0)


def test_products_confirm_the_right_model() -> None:
    model, X, y = truth(3, 2000)
    (part,) = corrected([Part(model, holes(X, 1), y)])
    np.testing.assert_allclose(part.model.covariance, model.covariance, atol=0.12 * model.covariance.max())


def test_the_moment_estimate_counts_for_more_the_less_it_varies() -> None:
    """A model with too much noise expects too large a loss, which precise moments correct."""
    model, X, y = truth(3, 12000)
    noisy = replace(model, noise=model.noise + float(np.var(y)))
    values, reference = holes(X, 1, 5), np.square(y - y.mean())
    shares = []
    for n in (300, 12000):
        part = Part(noisy, values[:n], y[:n])
        expected, moments = losses(corrected([part])[0]).given.mean(), unbiased([part]).mean()
        curve = LearningCurve(noisy, ~np.isnan(values[:n]), float(np.var(y)))
        error = combined([part], reference[:n], curve).complete.estimate
        shares.append((error * reference[:n].mean() - expected) / (moments - expected))
    few, many = shares
    assert 0 < few < many - 0.1
    assert many < 0.4


def test_inconsistent_covariances_explain_at_most_the_target() -> None:
    """Covariances that few examples have corrected may be almost singular where attributes and target are shared."""
    model, X, y = truth(3, 12000)
    loss = losses(corrected([Part(model, holes(X, 1, 5)[:60], y[:60])])[0])
    assert loss.given.mean() < np.var(y)


def test_intervals_are_bounded() -> None:
    wide = Interval.around(0.9, 2.0)
    assert 0 < wide.low < wide.estimate < wide.high == 1.2
    assert Interval.around(1.5, 0.1).estimate == 1.2
    assert Interval.around(0.4, 0.1).relative == pytest.approx(0.1)


def test_each_fold_is_judged_by_a_model_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    model, X, y = truth(4, 300, noise=10.0)
    values, fits = holes(X, 2), []
    values[:20] = np.nan
    y[20:30] = np.nan

    def recorded(values: np.ndarray, targets: np.ndarray, **_: object) -> JointModel:
        fits.append(values)
        return model

    monkeypatch.setattr(module, "learn", recorded)
    estimate = estimate_error(values, y, seed=0, model=model)
    assert len(fits) == 5
    assert [len(fit) for fit in fits] == [300 - 270 // 5] * 5
    relative = model.noise / np.nanvar(y)
    assert estimate.complete.low < relative < estimate.complete.high
    assert estimate.complete.estimate == pytest.approx(relative, rel=0.4)
    bought = np.nanmean(np.square(y - model.predict(values))[20:]) / np.nanvar(y)
    assert estimate.as_bought.estimate == pytest.approx(bought, rel=0.05)
    assert estimate_error(values, y, seed=0, model=model) == estimate


def test_too_few_examples_are_reported() -> None:
    X = np.full((30, D), np.nan)
    X[:9, 0] = 1.0
    with pytest.raises(DataError, match="at least 10 examples with a target and a value are needed"):
        estimate_error(X, np.arange(30.0), seed=0)
    with pytest.raises(DataError, match="the targets of all examples with a value are equal"):
        estimate_error(np.ones((30, D)), np.ones(30), seed=0)


@pytest.mark.slow
def test_the_error_of_a_learned_model_is_in_its_interval() -> None:
    _, X, y = truth(5, 1200, noise=3.0)
    values = holes(X[:200], 3)
    model = module.learn(values, y[:200], seed=0)
    true = np.square(y[200:] - model.predict(X[200:])).mean() / y.var()
    estimate = estimate_error(values, y[:200], seed=0, model=model).complete
    assert estimate.low < true < estimate.high
