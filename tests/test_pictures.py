"""The scripts that draw images, on small tables."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from budgetreg.accessor import Table

SCRIPTS = Path(__file__).parents[1] / "scripts"


@pytest.fixture
def script(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location(request.param, SCRIPTS / f"{request.param}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, request.param, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("script", ["four_pixels"], indirect=True)
def test_four_pixels_of_each_image_are_what_they_are_and_the_others_stay_unseen(script: ModuleType) -> None:
    X = np.random.default_rng(0).integers(1, 256, (20, 784)).astype(np.uint8)
    order = np.array([3, 19, 0])
    full, partial = script.seen(Table(X, np.zeros(20), 1 / 255), order)
    np.testing.assert_allclose(full, X[order] / 255)
    assert (~np.isnan(partial)).sum(axis=1).tolist() == [4, 4, 4]
    assert np.isin(partial[~np.isnan(partial)], full).all()
    np.testing.assert_array_equal(np.where(np.isnan(partial), full, partial), full)
    shown = script.picture(full, partial).axes[4].images[0].get_array()
    np.testing.assert_array_equal(shown.mask.ravel(), np.isnan(partial[1]))
    assert "  19: (" in script.text(order, partial)


@pytest.mark.parametrize("script", ["eigen_digits"], indirect=True)
def test_eigen_digits_are_learned_at_every_budget_and_turned_like_those_of_pca(script: ModuleType) -> None:
    rng = np.random.default_rng(1)
    X = (rng.standard_normal((1200, 10)) * 0.6 ** np.arange(10)) @ rng.standard_normal((10, 64))
    found = script.compared(Table(X, np.zeros(len(X))), np.arange(1000), np.arange(1000, 1200))
    assert [one.r for one in found] == [64, 8, 8, 8, 28, 28, 28, 57, 57, 57]
    errors = {(one.learner, one.r): one.relative_error for one in found}
    assert errors["pca", 64] == pytest.approx(0, abs=1e-12)  # ten directions hold everything
    assert errors["popca", 57] < errors["popca", 28] < errors["popca", 8] < 1
    for one in found:
        np.testing.assert_allclose(one.V.T @ one.V, np.eye(10), atol=1e-12)
        assert ((one.V * found[0].V).sum(axis=0) >= 0).all()
    assert "zero_filled_pca   k = 57 " in script.text(found, [3, 2])
