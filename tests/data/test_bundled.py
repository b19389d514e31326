"""The bundled digits; the tables of scikit-learn, and their illustrative prices."""

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets

import budgetreg.data
from budgetreg.common.errors import ConfigError, DataError
from budgetreg.data.attributes import Prices
from budgetreg.data.bundled import Digits
from budgetreg.data.dataset import Dataset
from budgetreg.data.registry import kinds, load, prices_of
from budgetreg.protocol.plan import make_plan
from tests.plans import configured

ORIGINALS = {
    "diabetes": datasets.load_diabetes(scaled=False),
    "breast_cancer": datasets.load_breast_cancer(),
    "wine": datasets.load_wine(),
}


def read(name: str, *keys: str) -> Dataset:
    return load(configured(f"dataset={name}", *keys).dataset, 0, 0)


@pytest.mark.parametrize("name", ORIGINALS)
def test_attributes_are_those_of_scikit_learn(name: str) -> None:
    raw, scaled = read(name, "dataset.scale=none"), read(name, "dataset.scale=max_abs")
    X = ORIGINALS[name].data
    np.testing.assert_array_equal(raw.X * raw.scale, X)
    np.testing.assert_allclose(scaled.X * scaled.scale, X / np.abs(X).max(axis=0), rtol=1e-15)
    assert (raw.name, raw.n_train, raw.notes) == (name, None, ())
    assert "outside the attribute budget" in scaled.notes[-1]


def test_targets_are_numbers_or_the_signs_of_two_classes() -> None:
    np.testing.assert_array_equal(read("diabetes").y, ORIGINALS["diabetes"].target)
    np.testing.assert_array_equal(read("wine").y, ORIGINALS["wine"].target)
    benign = ORIGINALS["breast_cancer"].target_names[ORIGINALS["breast_cancer"].target] == "benign"
    np.testing.assert_array_equal(read("breast_cancer").y, np.where(benign, 1, -1))
    assert [read(name).two_valued for name in ORIGINALS] == [False, True, False]


def test_bundled_tables_are_scaled_like_files() -> None:
    file = configured("dataset=file", "dataset.path=any.csv").resolved["dataset"]
    for name in ORIGINALS:
        bundled = configured(f"dataset={name}").resolved["dataset"]
        assert {key: bundled[key] for key in ("scale", "center", "split", "test_fraction")} == {
            key: file[key] for key in ("scale", "center", "split", "test_fraction")
        }


def test_columns_of_bundled_tables_can_be_left_out() -> None:
    whole, part = read("diabetes"), read("diabetes", "dataset.drop=[sex,4]", "dataset.costs=bundled")
    kept = [0, 2, *range(4, 10)]
    np.testing.assert_array_equal(part.X, whole.X[:, kept])
    assert part.names == tuple(whole.names[at] for at in kept)
    assert part.dropped == ((1, "sex"), (3, "bp"))
    plan = make_plan(configured("dataset=diabetes", "dataset.drop=[sex,4]", "dataset.costs=bundled", "k=4"))
    assert plan.prices is not None
    assert plan.prices.costs == (1, 2, 8, 12, 10, 18, 15, 5)
    with pytest.raises(DataError, match=r"^diabetes: dataset\.drop: no column 'sexx'.*did you mean 'sex'"):
        read("diabetes", "dataset.drop=[sexx]")
    assert "drop" not in configured("dataset=diabetes").identity()["dataset"]


@pytest.mark.parametrize("keys", [["algo=aelr"], ["algo=popca", "algo.n_components=2"]])
@pytest.mark.parametrize("name", ORIGINALS)
def test_runs_of_regressors_and_subspaces_can_be_planned(name: str, keys: list[str]) -> None:
    plan = make_plan(configured(f"dataset={name}", "k=4", *keys))
    assert (plan.dataset, plan.d) == (name, ORIGINALS[name].data.shape[1])


def test_unknown_tables_and_scales_are_refused_with_the_choices() -> None:
    with pytest.raises(ConfigError, match="diabetes, breast_cancer, wine"):
        configured("dataset=wine", "dataset.table=iris")
    with pytest.raises(ConfigError, match="max_abs, none"):
        read("wine", "dataset.scale=maxabs")


@pytest.mark.parametrize("name", ORIGINALS)
def test_each_attribute_has_an_illustrative_price(name: str) -> None:
    path = kinds()["scikit_learn"].prices({"table": name})
    table = pd.read_csv(path)
    assert list(table.columns) == ["attribute", "cost"]
    assert list(table.attribute) == list(ORIGINALS[name].feature_names)
    assert (table.cost > 0).all()
    assert table.cost.nunique() > 2
    assert "made up" in (path.parent / "README.txt").read_text()
    config = configured(f"dataset={name}", "dataset.costs=bundled", "dataset.unit=EUR").dataset
    assert prices_of(config, read(name)) == Prices(read(name).names, tuple(table.cost), "EUR")


ROOT = Path(__file__).parents[2]


def test_the_bundled_file_is_the_output_of_the_script() -> None:
    spec = importlib.util.spec_from_file_location("make", ROOT / "scripts" / "make_digits_3v5.py")
    assert spec is not None and spec.loader is not None
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    assert make.BUNDLED.read_bytes() == make.table().encode()


def test_threes_become_minus_one_and_fives_plus_one() -> None:
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
