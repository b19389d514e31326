"""Figures of images, which scripts draw."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from budgetreg.data.bundled import Digits
from budgetreg.metering.table import Table

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture
def script(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location(request.param, SCRIPTS / f"{request.param}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, request.param, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("script", ["visible_pixels"], indirect=True)
def test_visible_pixels_are_those_of_the_images(script: ModuleType) -> None:
    data = Digits().load()
    picture = script.reveal_images(data, "digits_3v5", 4)
    np.testing.assert_allclose(picture.full.reshape(6, 64), data.X[picture.order] * data.scale)
    hidden = np.isnan(picture.partial)
    assert (~hidden).sum(axis=(1, 2)).tolist() == [4] * 6
    np.testing.assert_array_equal(np.where(hidden, picture.full, picture.partial), picture.full)
    shown = script.draw(picture, 4).axes[7].images[0].get_array()
    np.testing.assert_array_equal(shown.mask, hidden[1])
    row, column = np.argwhere(~hidden[1])[0]
    seen = f"  {picture.order[1]}: ({row}, {column}) {picture.full[1, row, column]:.3g}, "
    assert seen in script.text(picture, "digits_3v5", 4)


@pytest.mark.parametrize("script", ["eigen_digits"], indirect=True)
@pytest.mark.slow
def test_eigen_digits_are_learned_at_every_budget_and_have_the_signs_of_pca(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    monkeypatch.setattr(script, "BUDGETS", (8, 28))
    X = (rng.standard_normal((400, 10)) * 0.6 ** np.arange(10)) @ rng.standard_normal((10, 64))
    subspaces = script.compared(Table(X, np.zeros(len(X))), np.arange(300), np.arange(300, 400))
    assert [subspace.r for subspace in subspaces] == [64, *[8] * 4, *[28] * 4]
    errors = {(subspace.learner, subspace.r): subspace.relative_error for subspace in subspaces}
    assert errors["pca", 64] == pytest.approx(0, abs=1e-12)  # ten directions hold everything
    assert errors["popca", 28] < errors["popca", 8] < 1
    assert errors["aefa", 8] < errors["popca", 8]
    for subspace in subspaces:
        np.testing.assert_allclose(subspace.V.T @ subspace.V, np.eye(10), atol=1e-12)
        assert ((subspace.V * subspaces[0].V).sum(axis=0) >= 0).all()
    assert "zero-filled PCA          k = 28 " in script.text(subspaces, [3, 2])
