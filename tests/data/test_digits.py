"""The bundled digits."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import budgetreg.data
from budgetreg.data.bundled import Digits

ROOT = Path(__file__).parents[2]


def test_the_bundled_file_is_the_output_of_the_script() -> None:
    pytest.importorskip("sklearn")
    spec = importlib.util.spec_from_file_location("make", ROOT / "scripts" / "make_digits_3v5.py")
    assert spec is not None and spec.loader is not None
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    assert make.BUNDLED.read_bytes() == make.table().encode()


def test_threes_become_minus_one_and_fives_plus_one() -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    X, digit = datasets.load_digits(return_X_y=True)
    kept = (digit == 3) | (digit == 5)
    data = Digits().load()
    assert data.X.dtype == np.uint8
    assert np.array_equal(data.X * data.scale, X[kept] / 16)
    assert np.array_equal(data.y, np.where(digit[kept] == 3, -1, 1))
    assert (data.name, data.n_train, data.two_valued) == ("digits_3v5", None, True)


def test_the_licence_is_beside_the_data() -> None:
    text = (Path(budgetreg.data.__file__).parent / "digits_3v5.LICENSE.txt").read_text()
    assert "CC BY 4.0" in text
    assert "Alpaydin" in text
