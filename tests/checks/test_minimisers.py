"""Certificates of optimality, and outputs that are nearly the best."""

import numpy as np
import pytest

from budgetreg.algorithms import cesa_bianchi_2010, eigenspaces
from budgetreg.testing import checks
from budgetreg.testing.certificates import largest, least, one_norm, two_norm
from tests.checks.breaking import failure, with_outputs, with_settings


@pytest.mark.parametrize(("name", "B"), [("ridge", 0.9999), ("lasso", 0.9999), ("baseline", 0.9999), ("lasso", 1.0001)])
def test_the_minimiser_over_another_ball_fails(name, B):
    said = failure(name, "minimiser", with_settings(B=B))
    assert ("above its minimum" if B < 1 else "is returned for the radius") in said


@pytest.mark.parametrize("name", ["ridge", "lasso", "baseline"])
def test_a_regressor_near_the_minimiser_fails(name):
    def turned(W):
        return np.roll(W, 1, axis=1) * 1e-3 + W * (1 - 1e-3)

    assert "above its minimum" in failure(name, "minimiser", with_outputs(turned))


def test_a_minimiser_of_fewer_examples_fails():
    def broken(fit):
        def late(*args):
            outputs = [W for _, W in fit(*args)]
            return zip(args[2], [outputs[0], *outputs], strict=False)

        return late

    for name in ("ridge", "lasso"):
        assert "the loss of 8 examples" in failure(name, "minimiser", broken)


def test_the_printed_program_and_one_that_is_not_convex_fail(monkeypatch):
    minimisers = cesa_bianchi_2010.minimisers
    monkeypatch.setattr(cesa_bianchi_2010, "minimisers", lambda A, v, radii: minimisers(A, -v, radii))
    assert "above its minimum" in failure("baseline", "minimiser")
    monkeypatch.setattr(
        cesa_bianchi_2010, "minimisers", lambda A, v, radii: minimisers(A + 0.01 * np.eye(len(v)), v, radii)
    )
    assert "above its minimum" in failure("baseline", "minimiser")


def test_correlations_of_another_norm_fail():
    assert "regressors" in failure("naive", "minimiser", with_settings(B=1.001))


@pytest.mark.parametrize("name", ["pca", "popca", "popca_passive", "zero_filled_pca"])
def test_eigenvectors_other_than_the_leading_ones_fail(name, monkeypatch):
    monkeypatch.setattr(eigenspaces, "leading", lambda C, n: np.linalg.eigh(C)[1][:, -n - 1 : -1])
    assert "keeps" in failure(name, "minimiser")
    assert "V'V" in failure(name, "minimiser", with_outputs(lambda V: V * 1.001))


def test_the_duality_gap_is_0_only_at_minimisers():
    """Minimisers of ``|w - c|^2 / 2`` by hand: on a 2-ball, on a 1-ball, and inside."""
    for c, B, w, norm, dual in (
        ([3.0, 4.0], 1.0, [0.6, 0.8], two_norm, two_norm),
        ([3.0, 1.0], 1.0, [1.0, 0.0], one_norm, largest),
        ([0.1, 0.2], 1.0, [0.1, 0.2], one_norm, largest),
    ):
        w = np.array(w)
        least("it", w, B, w - c, 1.0, norm, dual)
        off = w + np.array([-1e-3, 1e-3])
        with pytest.raises(checks.CheckError):
            least("it", off * (B / max(B, norm(off))), B, off - c, 1.0, norm, dual)
