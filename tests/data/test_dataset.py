"""Invariants of every data set."""

from typing import Any

import numpy as np
import pytest

from budgetreg.common.errors import BudgetExceeded, ConfigError, DataError, UserError, nearest
from budgetreg.data.dataset import Dataset, Dense
from budgetreg.data.distributions import Sphere
from budgetreg.data.registry import DatasetKind, load
from budgetreg.protocol.configuration import DatasetConfig

X = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
Y = np.array([1.0, -1.0, 1.0])


def config(kind: str, **options: Any) -> DatasetConfig:
    return DatasetConfig(name=kind, kind=kind, center="none", split="random", test_fraction=0.1, options=options)


def dataset(**changes: Any) -> Dataset:
    parts = {"name": "a", "X": X.copy(), "y": Y.copy(), "scale": 1.0, "n_train": None, "two_valued": True}
    return Dataset(**(parts | changes))


def test_a_dataset_is_read_only() -> None:
    data = dataset()
    with pytest.raises(ValueError, match="read-only"):
        data.X[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        data.y[0] = 1


@pytest.mark.parametrize(
    "changes",
    [
        {"X": X[:2]},
        {"X": X[0]},
        {"X": X[:0], "y": Y[:0]},
        {"X": X.astype(int)},
        {"X": Dense(X)},
        {"X": np.asfortranarray(X)},
        {"y": Y.astype(int)},
        {"y": np.array([1.0, np.nan, -1.0])},
        {"y": np.array([1.0, 0.0, -1.0])},
        {"scale": 0.0},
        {"scale": np.inf},
        {"scale": np.array([1.0, 0.0])},
        {"scale": np.ones(3)},
        {"n_train": 0},
        {"n_train": 3},
    ],
)
def test_parts_that_do_not_fit_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"X|y|scale|n_train|targets"):
        dataset(**changes)


def test_an_unknown_kind_is_refused_with_the_choices() -> None:
    with pytest.raises(ConfigError, match=r"digits, .*gaussian, sphere, power_law, file, mnist"):
        load(config("minst"), 0, 0)


def test_a_kind_has_the_fields_of_its_dataclass_as_options() -> None:
    kind = DatasetKind.of("sphere", Sphere, domain="2-ball")
    options = {"d": 3, "noise": 0.5, "n": 4, "n_test": 2}
    assert kind.parse(options) == Sphere(3, 0.5, 4, 2)
    assert (list(kind.options), kind.domain) == (list(options), "2-ball")
    for wrong in ({"d": 0}, {"noise": "much"}, {"colour": "red"}):
        with pytest.raises(ConfigError, match=rf"^dataset\.{next(iter(wrong))}"):
            kind.parse(options | wrong)


def test_loading_again_returns_the_same_object() -> None:
    assert load(config("digits"), 0, 0) is load(config("digits"), 1, 7)


def test_errors_have_the_documented_exit_codes() -> None:
    assert (UserError.exit_code, ConfigError.exit_code, DataError.exit_code) == (2, 2, 3)
    assert not issubclass(BudgetExceeded, UserError)


def test_the_hint_is_the_nearest_choice_or_empty() -> None:
    assert nearest("aelrr", ["aer", "aelr", "ridge"]) == " (did you mean 'aelr'?)"
    assert nearest("zebra", ["aer", "aelr"]) == ""
