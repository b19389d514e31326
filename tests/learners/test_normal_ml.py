"""Maximum likelihood of a normal distribution: against EM as in the textbook, and the likelihood itself."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from budgetreg.algorithms.normal_ml import NormalMaximumLikelihood, em_step, maximum_likelihood
from budgetreg.cli.app import main
from budgetreg.revealed.collection import Block
from tests.learners.problems import fit


def seen_examples(n, d, k, seed=0):
    """Return joint rows (n, d + 1), NaN for what was not seen, and the same as stored blocks."""
    rng = np.random.default_rng(seed)
    joint = 2 + rng.normal(size=(n, d + 1)) @ (np.eye(d + 1) + 0.4 * rng.normal(size=(d + 1, d + 1)))
    shown = np.column_stack([rng.random((n, d)).argsort(axis=1)[:, :k], np.full(n, d)])
    rows = np.full(joint.shape, np.nan)
    np.put_along_axis(rows, shown, np.take_along_axis(joint, shown, axis=1), axis=1)
    return rows, [Block(shown[None], np.take_along_axis(joint, shown, axis=1)[None])]


def penalised(rows, mean, C, prior):
    """Return the log-likelihood of what was seen, with that of the prior's example."""
    logs = [
        multivariate_normal(mean[S], C[np.ix_(S, S)]).logpdf(row[S])
        for row in rows
        for S in [np.flatnonzero(~np.isnan(row))]
    ]
    return sum(logs) - 0.5 * (np.linalg.slogdet(C)[1] + np.trace(np.linalg.solve(C, prior)))


def test_the_result_is_a_fixed_point_of_em():
    rows, blocks = seen_examples(200, 4, 2)
    mean, C = maximum_likelihood(blocks, 0, 5, np.ones(5, dtype=bool))
    new_mean, new_C = em_step(rows, mean, C)
    prior = np.diag(np.nanvar(rows, axis=0))
    np.testing.assert_allclose(new_mean, mean, atol=1e-4)
    np.testing.assert_allclose((200 * new_C + prior) / 201, C, atol=1e-4)


def test_no_other_distribution_near_it_is_likelier():
    rows, blocks = seen_examples(150, 3, 2)
    mean, C = maximum_likelihood(blocks, 0, 4, np.ones(4, dtype=bool))
    prior, rng = np.diag(np.nanvar(rows, axis=0)), np.random.default_rng(0)
    best = penalised(rows, mean, C, prior)
    for size in (1e-2, 1e-1):
        for _ in range(8):
            move = size * rng.normal(size=(4, 4))
            other = (np.eye(4) + move) @ C @ (np.eye(4) + move).T
            assert penalised(rows, mean + size * rng.normal(size=4), other, prior) < best


def test_full_rows_give_their_mean_and_covariance():
    rows, blocks = seen_examples(300, 3, 3)
    mean, C = maximum_likelihood(blocks, 0, 4, np.ones(4, dtype=bool))
    S = np.cov(rows.T, bias=True)
    np.testing.assert_allclose(mean, rows.mean(axis=0))
    np.testing.assert_allclose(C, (300 * S + np.diag(S.diagonal())) / 301, rtol=1e-5)


def test_missing_values_and_unknown_targets_are_left_out():
    """They are stored in the column after the target."""
    rows, [block] = seen_examples(120, 4, 3)
    hidden = np.random.default_rng(1).random(block.attributes.shape) < 0.3
    attributes = np.where(hidden, 5, block.attributes)
    mean, C = maximum_likelihood([Block(attributes, np.where(hidden, 0.0, block.values))], 0, 5, np.ones(5, dtype=bool))
    left = np.full(rows.shape, np.nan)
    for row, columns, values, gone in zip(left, block.attributes[0], block.values[0], hidden[0], strict=True):
        row[columns[~gone]] = values[~gone]
    new_mean, new_C = em_step(left[~np.isnan(left).all(axis=1)], mean, C)
    seen = np.count_nonzero(~np.isnan(left).all(axis=1))
    new_C = (seen * new_C + (120 - seen) * (C + np.outer(mean - new_mean, mean - new_mean))) / 120
    np.testing.assert_allclose(new_mean, mean, atol=1e-4)
    np.testing.assert_allclose((120 * new_C + np.diag(np.nanvar(left, axis=0))) / 121, C, atol=2e-4)


def test_means_that_are_not_estimated_are_0():
    _, blocks = seen_examples(100, 3, 2)
    mean, C = maximum_likelihood(blocks, 0, 4, np.array([True, True, True, False]))
    assert mean[3] == 0
    assert (mean[:3] != 0).all()
    assert C[3, 3] > 3  # about 0, the target's mean is 2


def test_the_moments_predict_rows_with_holes():
    X = np.random.default_rng(0).normal(size=(400, 4))
    y, given = X @ np.linspace(-1, 1, 4) + 1, {"centred": True, "intercept": True}
    output = fit(NormalMaximumLikelihood(name="ml"), X, y, np.arange(400)[None], 3, given=given)[0][400]
    mean, C = output.moments(0)
    w, b = output.regressors[0, :, 0], output.intercept[0, 0]
    np.testing.assert_allclose(C[:-1, :-1] @ w, C[:-1, -1])
    assert b + w @ mean[:-1] == pytest.approx(mean[-1])


def test_too_many_attributes_are_refused(tmp_path, capsys):
    words = ["run", "algo=normal_ml", "dataset=gaussian", "dataset.d=61", "k=4", f"out={tmp_path / 'out'}"]
    assert main(words) == 2
    assert "at most 60 attributes" in capsys.readouterr().err
