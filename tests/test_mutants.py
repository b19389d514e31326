"""Every mutant applies to the package as it is; whether tests notice it takes long, and is `make mutants`."""

import math
import sys
from pathlib import Path
from types import ModuleType

import mutants
import mutation
import pytest
from mutation import Mutant, around, rewrite

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("mutant", mutants.mutants(), ids=lambda mutant: mutant.name)
def test_a_mutant_applies(mutant: Mutant) -> None:
    owner, name = mutation.located(mutant)
    assert mutation.changed(mutant) is not vars(owner)[name]
    assert all((ROOT / test.partition("::")[0]).is_file() for test in (mutants.LITERAL, *mutant.tests))


def test_names_tell_mutants_apart() -> None:
    names = [mutant.name for mutant in mutants.mutants()]
    assert len(set(names)) == len(names)


class Shop:
    def cost(self, price: float) -> float:
        total = price * 2  # the comment and the layout do not matter
        return round(total) + math.floor(price)

    @property
    def hours(self) -> int:
        return 8 + 8


def test_a_rewritten_method_has_one_other_expression() -> None:
    assert rewrite("price*2", "price * 3")(Shop.cost)(Shop(), 1.4) == 5
    assert rewrite("math.floor(_1)", "math.ceil(_1)")(Shop.cost)(Shop(), 1.4) == 5
    assert rewrite("total = _1", "total = 0 * _1")(Shop.cost)(Shop(), 1.4) == 1


def test_a_structure_that_is_gone_or_repeated_is_an_error() -> None:
    with pytest.raises(ValueError, match="occurs 0 times, not once: price - 1"):
        rewrite("price - 1", "price")(Shop.cost)
    with pytest.raises(ValueError, match="occurs 2 times, not once: 8"):
        rewrite("8", "9")(vars(Shop)["hours"])


def test_a_property_can_be_changed() -> None:
    shop = type("Other", (), {"hours": around(lambda hours, shop: hours(shop) + 1)(vars(Shop)["hours"])})()
    assert shop.hours == 17


def test_a_change_reaches_modules_that_import_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    def price() -> int:
        return 3

    home, importer = ModuleType("budgetreg.home"), ModuleType("budgetreg.importer")
    price.__module__ = home.__name__
    home.price = importer.cost = price
    for module in (home, importer):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    mutation.apply(Mutant("dearer", "home:price", around(lambda price: price() + 1, spare="tests")))
    assert home.price is importer.cost is not price
    assert home.price() == 3  # as this test is spared
    assert eval("cost()", {"__name__": "budgetreg", "cost": importer.cost}) == 4
    with pytest.raises(ValueError, match="home defines charge 0 times, not once"):
        mutation.apply(Mutant("dearer", "home:charge", around(lambda charge: 0)))
