"""Two phases: the second shows the attributes that count, and the Dantzig selector of the first is optimal."""

import numpy as np
import pytest

from budgetreg.algorithms.corrected_moments import dantzig
from budgetreg.algorithms.kale_2017 import TwoPhaseSparse
from budgetreg.algorithms.learner import SideInformation
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.testing.checks import Recorder


def sparse(m, d, seed=0):
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(m, d)), np.zeros(d)
    w[[1, 4, 7]] = 1.0, -1.0, 0.7
    return X, X @ w + 0.3 * rng.normal(size=m), w


def run(learner, X, y, k, checkpoints, seed=5):
    log = Recorder(X.shape[1])
    accessor = Accessor(Table(X, y), np.arange(len(y))[None], 1, k, checkpoints, log=log)
    given = SideInformation(k, centred=True, intercept=True)
    outputs = dict(learner.fit(accessor, {}, checkpoints, [np.random.default_rng(seed)], given))
    return outputs, log.seen()


@pytest.mark.parametrize("solver", ["cocolasso", "dantzig"])
def test_the_second_phase_shows_the_attributes_that_count(solver):
    X, y, w = sparse(1500, 20)
    outputs, (rows, attributes) = run(TwoPhaseSparse(name="two", solver=solver, phase_one=0.4), X, y, 5, [600, 1500])
    late = attributes[rows >= 600].reshape(-1, 5)
    assert len(late) == 900
    assert (late == late[0]).all()
    assert {1, 4, 7} <= set(late[0].tolist())
    assert set(attributes[rows < 600].tolist()) == set(range(20))
    np.testing.assert_allclose(outputs[1500].regressors[0, :, 0], w, atol=0.05)


def test_the_dantzig_selector_has_the_least_norm_within_its_tolerance():
    """No regressor within the tolerance is shorter: the dual program has the same value."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(12, 8))
    Gamma, gamma = root.T @ root / 12, rng.normal(size=8)
    tolerances = np.abs(gamma).max() * np.array([1.0, 0.5, 0.1])
    W = dantzig(Gamma, gamma, tolerances)
    np.testing.assert_allclose(W[:, 0], 0, atol=1e-9)
    for w, tolerance in zip(W.T[1:], tolerances[1:], strict=True):
        residual = gamma - Gamma @ w
        assert np.abs(residual).max() <= tolerance * (1 + 1e-7)
        active, bound = np.abs(w) > 1e-9, np.abs(residual) > tolerance * (1 - 1e-7)
        v = np.zeros(8)  # |w|_1 >= v'gamma - tolerance |v|_1 where |Gamma v|_inf <= 1
        v[bound] = np.linalg.lstsq(Gamma[np.ix_(active, bound)], np.sign(w[active]))[0]
        assert np.abs(Gamma @ v).max() <= 1 + 1e-6
        assert v @ gamma - tolerance * np.abs(v).sum() == pytest.approx(np.abs(w).sum())


def test_tolerances_that_no_regressor_meets_repeat_the_one_before():
    Gamma, gamma = np.diag([1.0, 0.0]), np.array([1.0, 0.5])
    W = dantzig(Gamma, gamma, np.array([0.8, 0.1]))
    np.testing.assert_allclose(W, [[0.2, 0.2], [0, 0]])
