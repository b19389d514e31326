"""The identity of results: later options at their defaults leave it unchanged; whatever changes a number changes it."""

from collections.abc import Callable, Iterator
from dataclasses import field, make_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from budgetreg.algorithms import registry
from budgetreg.config import catalogue, options
from budgetreg.config.options import Option, one_of
from budgetreg.data.registry import DatasetKind, kinds
from budgetreg.protocol.configuration import Config, validate
from budgetreg.reproduce.recipes import names, read_recipe
from budgetreg.reproduce.reproduction import read_results
from tests.plans import composer
from tests.tiers import slow_but

RESULTS = Path(__file__).resolve().parents[2] / "results"
LATER = Option("what came later", one_of("off", "on"), default="off")
DRAWN = [name for name in names() if (RESULTS / name / "curves.csv").exists()]


def with_option(declared: Any) -> Any:
    """Return a class of learners, or a kind of data, with one more option."""
    if isinstance(declared, DatasetKind):
        return replace(declared, options={**declared.options, "later": LATER})
    extra = ("later", str, field(default="off", metadata={"option": LATER}))
    return make_dataclass(declared.__name__, [extra], bases=(declared,), frozen=True)


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[Any], Any]], None]]:
    """Replace all learners and kinds of data by what a function returns for them."""
    collect = catalogue.declared

    def forget() -> None:
        for remembered in (registry.cores, registry.parameters, kinds):
            remembered.cache_clear()

    def change(function: Callable[[Any], Any]) -> None:
        monkeypatch.setattr(
            catalogue,
            "declared",
            lambda *where: {name: function(declaration) for name, declaration in collect(*where).items()},
        )
        forget()

    yield change
    monkeypatch.undo()
    forget()


def configured(**choice: Any) -> Config:
    return validate(composer()({key.replace("__", "."): value for key, value in choice.items()}))


@pytest.mark.parametrize("name", slow_but(("gonen_2016/price", "hazan_koren_2012/fig1"), DRAWN))
def test_later_options_leave_committed_results_current(
    name: str, changed: Callable[[Callable[[Any], Any]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    changed(with_option)
    monkeypatch.setitem(options.TOP, "later", LATER)  # type: ignore[index]
    cells = read_recipe(name).cells
    assert {cell.config.resolved["algo"]["later"] for cell in cells} == {"off"}
    assert {cell.config.resolved["dataset"]["later"] for cell in cells} == {"off"}
    assert {cell.config.resolved["later"] for cell in cells} == {"off"}
    assert read_results(RESULTS / name, cells).keys() == {cell.name for cell in cells}


def test_a_later_option_that_is_used_changes_the_identity(changed: Callable[[Callable[[Any], Any]], None]) -> None:
    plain = configured(algo="popca", dataset="coins").identity()
    changed(with_option)
    assert configured(algo="popca", dataset="coins").identity() == plain
    for key in ("algo__later", "dataset__later"):
        assert configured(algo="popca", dataset="coins", **{key: "on"}).identity() != plain


def test_results_are_stale_when_the_version_of_their_learner_changes(
    changed: Callable[[Callable[[Any], Any]], None],
) -> None:
    name = "gonen_2016/one_attribute"
    assert read_results(RESULTS / name, read_recipe(name).cells)
    changed(
        lambda declaration: (
            type(declaration.__name__, (declaration,), {"version": declaration.version + 1})
            if isinstance(declaration, type)
            else declaration
        )
    )
    assert read_results(RESULTS / name, read_recipe(name).cells) == {}


@pytest.mark.parametrize(
    ("chosen", "inactive_options"),
    [
        ({"algo": "aelr"}, {"algo__control_variate": "none", "dataset__center": "none", "axis": "examples"}),
        ({"algo": "aelr", "algo__split": "even"}, {"algo__literal_split": "half"}),
        ({"algo": "aesvr", "k": 6}, {"algo__split": "even"}),
        ({"algo": "popca", "dataset": "coins"}, {"algo__average": "last", "tuning__folds": 3, "tuning": "theory"}),
        ({"algo": "lasso", "tuning": "fixed", "tuning__B": 2}, {"tuning__at": "each", "tuning__eta": 3.0}),
        ({"algo": "lasso", "tuning": "fixed", "tuning__B": 2}, {"algo__grid__B": [1.0, 7.0]}),
        ({"algo": "aelr", "tuning": "theory"}, {"algo__grid__eta": [1.0, 7.0]}),
        ({"algo": "aelr", "dataset": "sphere", "dataset__split": "official"}, {"dataset__test_fraction": 0.5}),
        ({"dataset": "mnist_3v5"}, {"dataset__root": "elsewhere"}),
        ({}, {"n_jobs": 3, "repetitions": 99, "backend": "sequential", "out": "somewhere"}),
    ],
)
def test_options_without_effect_do_not_change_the_identity(
    chosen: dict[str, Any], inactive_options: dict[str, Any]
) -> None:
    plain = configured(**chosen).identity()
    for key, value in inactive_options.items():
        assert configured(**{**chosen, key: value}).identity() == plain, key


@pytest.mark.parametrize(
    ("chosen", "effective"),
    [
        ({"dataset": "mnist_3v5"}, {"k": 5, "seed": 1, "checkpoints": 3, "dataset__digits": [1, 7]}),
        ({"algo": "aelr"}, {"algo__control_variate": "mean", "dataset__center": "full", "algo__literal_split": "half"}),
        ({"algo": "aesvr", "k": 6, "algo__residual": "plug_in"}, {"algo__split": "even"}),
        ({"algo": "lasso"}, {"axis": "examples", "tuning__at": "each", "tuning__folds": 3, "algo__grid__B": [1.0]}),
        ({"algo": "lasso", "tuning": "theory"}, {"tuning__folds": 3, "tuning__B": 1.0}),
        ({"algo": "aelr", "dataset": "sphere", "dataset__split": "random"}, {"dataset__test_fraction": 0.5}),
    ],
)
def test_options_with_an_effect_change_the_identity(chosen: dict[str, Any], effective: dict[str, Any]) -> None:
    plain = configured(**chosen).identity()
    for key, value in effective.items():
        assert configured(**{**chosen, key: value}).identity() != plain, key
