"""Online ridge and online lasso against their listings, one replica and one example at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgetreg.algorithms import full_rows
from budgetreg.algorithms.full_rows import ExactGradientLearner
from budgetreg.algorithms.learner import SideInformation
from budgetreg.algorithms.vectors import Averager
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table

UPDATES = ("ogd", "eg")
AVERAGES = ("all", "suffix", "last")


def streams(F, m, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(F, m, d)) * (rng.random((F, m, d)) < 0.6)
    return X, rng.choice([-1.0, 1.0], size=(F, m))


def grid(*pairs):
    B, eta = np.array(pairs).T
    return {"B": B.copy(), "eta": eta.copy()}


def fit(X, y, settings, checkpoints, update, average):
    F, m, d = X.shape
    table, orders = Table(X.reshape(-1, d), y.ravel()), np.arange(F * m).reshape(F, m)
    accessor = Accessor(table, orders, len(settings["B"]), d, checkpoints)
    learner = ExactGradientLearner(name="online", update=update, average=average)
    outputs = dict(learner.fit(accessor, settings, checkpoints, [], SideInformation(d)))
    assert (accessor.bill().total == d * checkpoints[-1]).all()  # no row is read after the last checkpoint
    return outputs


def ogd_iterates(X, y, B, eta):
    w = np.zeros(X.shape[1])
    for x, target in zip(X, y, strict=True):
        yield w
        v = w - eta * (w @ x - target) * x
        w = v * B / max(np.linalg.norm(v), B)


def eg_iterates(X, y, B, eta):
    z_plus, z_minus = np.ones(X.shape[1]), np.ones(X.shape[1])
    for x, target in zip(X, y, strict=True):
        w = B * (z_plus - z_minus) / (z_plus.sum() + z_minus.sum())
        yield w
        g = (w @ x - target) * x
        clipped = np.maximum(np.minimum(g, 1 / eta), -1 / eta)
        z_plus, z_minus = z_plus * np.exp(-eta * clipped), z_minus * np.exp(eta * clipped)


def output(iterates, average):
    w = np.array(iterates)
    return {"all": w.mean(axis=0), "suffix": w[len(w) // 2 :].mean(axis=0), "last": w[-1]}[average]


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize(("update", "listing"), [("ogd", ogd_iterates), ("eg", eg_iterates)])
def test_core_equals_listing(update, listing, average):
    X, y = streams(F=2, m=41, d=9)
    settings = grid((0.5, 0.1), (2.0, 0.4), (3.0, 5.0))  # the last takes projections and clips
    checkpoints = (1, 2, 7, 14, 30)
    W = fit(X, y, settings, checkpoints, update, average)
    assert tuple(W) == checkpoints
    for checkpoint, f, g in [(c, f, g) for c in checkpoints for f in range(2) for g in range(3)]:
        iterates = listing(X[f, :checkpoint], y[f, :checkpoint], settings["B"][g], settings["eta"][g])
        expected = output(list(iterates), average)
        np.testing.assert_allclose(W[checkpoint][f, :, g], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("update", UPDATES)
def test_block_size_changes_nothing(update, monkeypatch):
    X, y = streams(F=2, m=50, d=4)
    whole = fit(X, y, grid((2.0, 0.5)), (50,), update, "all")
    monkeypatch.setattr(full_rows, "_BLOCK_VALUES", 28)
    np.testing.assert_array_equal(fit(X, y, grid((2.0, 0.5)), (50,), update, "all")[50], whole[50])


def test_eg_does_not_overflow_where_the_listing_does():
    X, y = np.ones((1, 3000, 2)), np.full((1, 3000), 5.0)
    X[:, :, 1] = 0
    with np.errstate(over="raise", invalid="raise"):
        w = fit(X, y, grid((1.0, 1.0)), (3000,), "eg", "last")[3000][0, :, 0]
    np.testing.assert_allclose(w, [1, 0], atol=1e-15)


@given(
    checkpoints=st.lists(st.integers(1, 30), min_size=1, max_size=6),
    average=st.sampled_from(AVERAGES),
    seed=st.integers(0, 99),
)
def test_averager_agrees_with_the_definition(checkpoints, average, seed):
    w = np.random.default_rng(seed).normal(size=(30, 2))
    total, iterate = np.zeros(2), np.zeros(2)  # buffers that are overwritten at every mark
    averager = Averager(checkpoints, average)
    assert set(checkpoints) <= set(averager.marks)
    averages = {}
    for mark in averager.marks:
        total[:], iterate[:] = w[:mark].sum(axis=0), w[mark - 1]
        result = averager.observe(mark, lambda: total, lambda: iterate)
        if result is not None:
            averages[result[0]] = result[1]
    assert list(averages) == sorted(set(checkpoints))
    for checkpoint, value in averages.items():
        np.testing.assert_allclose(value, output(w[:checkpoint], average), rtol=1e-12, atol=1e-12)
