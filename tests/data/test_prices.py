"""Price lists: names and numbers of attributes, and messages for unusable lists."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from budgetreg.common.errors import ConfigError, DataError
from budgetreg.data.attributes import Prices, read_prices
from budgetreg.data.dataset import Dataset
from budgetreg.data.registry import prices_of
from budgetreg.data.text_files import records
from tests.data.test_bundled import configured, read
from tests.data.test_file import GOOD, csv

NAMES = ("age", "bmi", "7", "bp")


def listed(folder: Path, text: str, names: tuple[str, ...] = NAMES) -> Prices:
    return read_prices(csv(folder, text, "prices.csv"), names, 4)


def test_names_and_numbers_may_come_in_any_order(tmp_path: Path) -> None:
    prices = listed(tmp_path, "attribute,cost\nbp,4\n1,1.5\n 7 ,3\nbmi, 2e0\n")
    assert (prices.names, prices.costs) == (NAMES, (1.5, 2, 3, 4))
    assert prices.row == 10.5
    assert prices.of(np.array([2, 0, 1, 0])) == 6


def test_attributes_without_names_have_numbers_from_1(tmp_path: Path) -> None:
    prices = listed(tmp_path, "attribute,cost\n2,20\n1,10\n4,40\n3,30\n", names=())
    assert (prices.names, prices.costs) == (("1", "2", "3", "4"), (10, 20, 30, 40))


def test_a_name_that_is_a_number_comes_before_the_number(tmp_path: Path) -> None:
    prices = read_prices(csv(tmp_path, "attribute,cost\nb,6\n2,5\n", "prices.csv"), ("2", "b"), 2)
    assert prices.costs == (5, 6)


def test_semicolons_are_allowed(tmp_path: Path) -> None:
    prices = listed(tmp_path, "cost;attribute\n1;age\n2;bmi\n3;7\n4;bp\n")
    assert prices.costs == (1, 2, 3, 4)


def test_some_attributes_may_be_free(tmp_path: Path) -> None:
    prices = listed(tmp_path, f"attribute,cost\nage,0\n{REST}")
    assert prices.costs == (0, 2, 3, 4)
    assert prices.row == 9


REST = "bmi,2\n7,3\nbp,4\n"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "a price list needs the columns attribute,cost"),
        ("attribute,price\nage,1\n", "line 1 must name the column 'cost' once"),
        ("name,cost\nage,1\n", "line 1 must name the column 'attribute' once"),
        (f"attribute,cost\n{REST}", "no price for age: each of the 4 attributes needs one"),
        (
            f"attribute,cost\nage,1\nwho,1\n{REST}",
            "line 3: the data have no attribute 'who'; attributes: age, bmi, 7, bp",
        ),
        (f"attribute,cost\nagee,1\n{REST}", "line 2: the data have no attribute 'agee' (did you mean 'age'?)"),
        (f"attribute,cost\n0,1\n{REST}", "no attribute '0'"),
        (f"attribute,cost\n5,1\n{REST}", "no attribute '5'"),
        (f"attribute,cost\nage,1\n{REST}age,1\n", "line 6: attribute 'age' has a price already, on line 2"),
        (f"attribute,cost\nage,1\n{REST}1,1\n", "line 6: attribute '1' has a price already, on line 2"),
        ("attribute,cost\nage,0\nbmi,0\n7,0\nbp,0\n", "every price is 0, so there is nothing to buy"),
        (
            "attribute,cost,why,when\nage,1,x,y\n",
            "line 1: no column 'why', 'when' is known; a price list has the columns attribute,cost, and no others",
        ),
        (f"attribute,cost\nage,1e-31\n{REST}", "line 2: attribute 'age': cost must be 0 or from 1e-30 to 1e+30, not"),
        (f"attribute,cost\nage,-2\n{REST}", "cost must be 0 or from 1e-30 to 1e+30, not -2"),
        (f"attribute,cost\nage,nan\n{REST}", "cost must be 0 or from 1e-30 to 1e+30, not nan"),
        (f"attribute,cost\nage,inf\n{REST}", "cost must be 0 or from 1e-30 to 1e+30, not inf"),
        (f"attribute,cost\nage,cheap\n{REST}", "line 2: attribute 'age': cost: 'cheap' is not a number"),
        (f"attribute,cost\nage,\n{REST}", "'' is not a number"),
        (f"attribute,cost\nage,1,5\n{REST}", "line 2: 3 fields, but the header has 2"),
    ],
)
def test_an_unusable_list_gives_a_one_line_message(tmp_path: Path, text: str, part: str) -> None:
    with pytest.raises(DataError) as caught:
        listed(tmp_path, text)
    message = str(caught.value)
    assert part in message
    assert str(tmp_path / "prices.csv") in message
    assert "\n" not in message


def test_a_missing_list_is_refused() -> None:
    with pytest.raises(DataError, match=r"cannot read nowhere.csv: No such file .*dataset.costs"):
        read_prices(Path("nowhere.csv"), NAMES, 4)


@pytest.mark.parametrize("name", ["diabetes", "breast_cancer", "wine"])
def test_bundled_tables_have_a_price_list(name: str) -> None:
    config = configured(f"dataset={name}", "dataset.costs=bundled", "dataset.unit=EUR").dataset
    data = read(name)
    prices = prices_of(config, data)
    assert prices is not None
    assert (prices.names, prices.unit) == (data.names, "EUR")
    assert len(set(prices.costs)) > 2


def test_a_price_list_with_groups_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []

    def counted(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
        reads.append(path)
        return records(path, separator)

    monkeypatch.setattr("budgetreg.data.attributes.records", counted)
    costs = tmp_path / "prices.csv"
    words = f"dataset.path={csv(tmp_path, GOOD)}", f"dataset.costs={costs}"
    for price in (1, 20):  # a changed list is read again
        costs.write_text(f"attribute,cost,group\na,{price},lab\nb,,lab\n")
        for _ in range(2):
            data = read("file", *words)
            assert data.groups and data.groups.heads == (0, 0)
            prices = prices_of(configured("dataset=file", *words).dataset, data)
            assert prices and prices.costs == (price, 0)
    assert reads == [costs, costs]


def test_other_data_have_no_price_list() -> None:
    config = configured("dataset=digits_3v5", "dataset.costs=bundled").dataset
    with pytest.raises(ConfigError, match="no price list comes with digits_3v5"):
        prices_of(config, read("digits_3v5"))
    assert prices_of(configured("dataset=digits_3v5").dataset, read("digits_3v5")) is None


def test_equal_prices_need_no_file() -> None:
    prices = prices_of(configured("dataset=wine", "dataset.costs=equal").dataset, read("wine"))
    assert prices == Prices(read("wine").names, (1.0,) * 13, "cost units")


def test_attributes_of_files_have_names_also_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    plain = csv(tmp_path, GOOD)
    pd.read_csv(plain).to_csv(tmp_path / "packed.csv.gz", index=False)
    pd.read_csv(plain).to_parquet(tmp_path / "table.parquet")
    for path in (plain, tmp_path / "packed.csv.gz", tmp_path / "table.parquet"):
        assert read("file", f"dataset.path={path}").names == ("a", "b")
    from budgetreg.data.file import parse_file

    options = {"path": str(tmp_path / "packed.csv.gz"), "target": "a", "scale": "none"}
    assert [parse_file(options).load().names for _ in range(2)] == [("b", "y")] * 2  # first read, then mapped


def test_a_data_set_has_a_name_for_each_attribute() -> None:
    with pytest.raises(ValueError, match="1 names for 2 attributes"):
        Dataset("x", np.zeros((3, 2)), np.zeros(3), 1.0, None, False, names=("a",))


def test_the_digest_of_prices_ignores_the_unit() -> None:
    prices = Prices(("a", "b"), (1.0, 2.0), "EUR")
    assert prices.digest() == Prices(("a", "b"), (1.0, 2.0), "minutes").digest()
    assert prices.digest() != Prices(("a", "b"), (1.0, 3.0), "EUR").digest()
