"""Lists of prices and ranges: names and numbers of attributes, what the lists do, and messages for unusable ones."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from budgetreg.common.errors import ConfigError, DataError
from budgetreg.data import attributes
from budgetreg.data.attributes import Columns, Prices, in_ranges, prices_in, ranges_in, read_list
from budgetreg.data.dataset import Dataset
from budgetreg.data.registry import load, located, prices_of
from budgetreg.metering.table import Table
from tests.data.test_bundled import configured, read
from tests.data.test_file import GOOD, csv
from tests.refusals import refusal

NAMES = ("age", "bmi", "7", "bp")
COSTS, RANGES = "bmi,2\n7,3\nbp,4\n", "bmi,15,45\n7,-1,1\nbp,0,1\n"


def prices(folder: Path, text: str, names: tuple[str, ...] = NAMES, d: int = 4) -> Prices:
    return prices_in(read_list(csv(folder, text, "list.csv"), "dataset.costs"), Columns.of(names, d), None)


def ranges(folder: Path, text: str) -> attributes.Ranges:
    return ranges_in(read_list(csv(folder, text, "list.csv"), "dataset.ranges"), Columns.of(NAMES, 4))


@pytest.mark.parametrize(
    ("text", "names", "costs"),
    [
        ("attribute,cost\nbp,4\n1,1.5\n 7 ,3\nbmi, 2e0\n", NAMES, (1.5, 2, 3, 4)),
        (" cost ; attribute \n1;age\n2;bmi\n3; 7\n4;bp\n", NAMES, (1, 2, 3, 4)),
        ("attribute,cost\n2,20\n1,10\n4,40\n3,30\n", (), (10, 20, 30, 40)),
        ("attribute,cost\nb,6\n2,5\nc,1\nd,1\n", ("2", "b", "c", "d"), (5, 6, 1, 1)),  # a name before a number
        (f"attribute,cost\nage,0\n{COSTS}", NAMES, (0, 2, 3, 4)),
    ],
)
def test_names_and_numbers_may_come_in_any_order(
    tmp_path: Path, text: str, names: tuple[str, ...], costs: tuple[float, ...]
) -> None:
    listed = prices(tmp_path, text, names)
    assert (listed.names, listed.costs) == (names or ("1", "2", "3", "4"), costs)
    assert listed.row == sum(costs)
    assert listed.of(np.array([2, 0, 1, 0])) == 2 * costs[0] + costs[2]


def test_ranges_are_of_low_and_high(tmp_path: Path) -> None:
    text = "low;attribute;high\n-1;7;1\n15;2;45\n18;age;8e1\n0;4;1\n"
    assert ranges(tmp_path, text) == ((18, 15, -1, 0), (80, 45, 1, 1))


@pytest.mark.parametrize(
    ("read", "text", "part"),
    [
        (prices, "", "is empty"),
        (prices, "attribute,price\nage,1\n", "line 1 must name the column 'cost' once; a price list needs the columns"),
        (prices, "name,cost\nage,1\n", "line 1 must name the column 'attribute' once"),
        (prices, "attribute,cost,cost\nage,1,1\n", "two columns are named 'cost'"),
        (prices, f"attribute,cost\n{COSTS}", "no price for 'age': each of the 4 attributes needs one"),
        (prices, f"attribute,cost\nage,\n{COSTS}", "no price for 'age'"),
        (
            prices,
            f"attribute,cost\nage,1\nwho,1\n{COSTS}",
            "line 3: the data have no attribute 'who'; attributes: age,",
        ),
        (prices, f"attribute,cost\nagee,1\n{COSTS}", "the data have no attribute 'agee' (did you mean 'age'?)"),
        (prices, f"attribute,cost\n0,1\n{COSTS}", "no attribute '0'"),
        (prices, f"attribute,cost\n5,1\n{COSTS}", "no attribute '5'"),
        (prices, f"attribute,cost\n{'9' * 5000},1\n{COSTS}", "9..."),
        (prices, f"attribute,cost\nage,1\n{COSTS}1,1\n", "line 6: attribute '1' is there already: line 2"),
        (prices, "attribute,cost\nage,0\nbmi,0\n7,0\nbp,0\n", "every price is 0, so there is nothing to buy"),
        (
            prices,
            "attribute,cost,why\nage,1,x\n",
            "no column 'why' is known; a price list has the columns attribute,cost",
        ),
        (prices, f"attribute,cost\nage,1e-31\n{COSTS}", "line 2, column 'cost': 1e-31 cannot be computed with: only 0"),
        (prices, f"attribute,cost\nage,-2\n{COSTS}", "the price of attribute 'age' is -2: it must be 0, or from 1e-30"),
        (prices, f"attribute,cost\nage,inf\n{COSTS}", "inf is not a finite number"),
        (prices, f"attribute,cost\nage,cheap\n{COSTS}", "line 2, column 'cost': 'cheap' is not a number"),
        (prices, f"attribute,cost\nage,1_0\n{COSTS}", "'1_0' is not a number"),
        (prices, f"attribute,cost\nage,\u0661\n{COSTS}", "is not a number"),
        (prices, f"attribute,cost\nage,1,5\n{COSTS}", "line 2: 3 fields, but the header has 2"),
        (ranges, "attribute,low,max\nage,1,2\n", "line 1 must name the column 'high' once"),
        (ranges, f"attribute,low,high\n{RANGES}", "no range for age: each of the 4 attributes needs one"),
        (ranges, f"attribute,low,high\nage,young,2\n{RANGES}", "line 2, column 'low': 'young' is not a number"),
        (ranges, f"attribute,low,high\nage,1,\n{RANGES}", "line 2, column 'high': '' is not a number"),
        (ranges, f"attribute,low,high\nage,1,inf\n{RANGES}", "column 'high': inf is not a finite number"),
        (ranges, f"attribute,low,high\nage,2,1\n{RANGES}", "line 2: low must be below high, not 2 and 1"),
        (ranges, f"attribute,low,high\nage,2,2\n{RANGES}", "low must be below high, not 2 and 2"),
    ],
)
def test_an_unusable_list_gives_a_one_line_message(
    tmp_path: Path, read: Callable[[Path, str], Any], text: str, part: str
) -> None:
    message = refusal(DataError, read, tmp_path, text)
    assert part in message
    assert str(tmp_path / "list.csv") in message
    assert len(message) < 500


def test_a_missing_list_is_refused() -> None:
    with pytest.raises(DataError, match=r"cannot read nowhere.csv: No such file .*dataset.costs"):
        read_list(Path("nowhere.csv"), "dataset.costs")


def test_a_price_list_with_groups_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads, sheet = [], attributes.csv_sheet
    monkeypatch.setattr(attributes, "csv_sheet", lambda path: reads.append(path) or sheet(path))
    costs = tmp_path / "prices.csv"
    words = f"dataset.path={csv(tmp_path, GOOD)}", f"dataset.costs={costs}"
    for price in (1, 20):  # a changed list is read again
        costs.write_text(f"attribute,cost,group\na,{price},lab\nb,,lab\n")
        for _ in range(2):
            data = read("file", *words)
            assert data.groups and data.groups.heads == (0, 0)
            listed = prices_of(configured("dataset=file", *words).dataset, data)
            assert listed and listed.costs == (price, 0)
    assert reads == [costs, costs]


def test_other_data_have_no_price_list() -> None:
    config = configured("dataset=digits_3v5", "dataset.costs=bundled").dataset
    with pytest.raises(ConfigError, match="no price list comes with digits_3v5"):
        prices_of(config, read("digits_3v5"))
    assert prices_of(configured("dataset=digits_3v5").dataset, read("digits_3v5")) is None


def test_equal_prices_need_no_file() -> None:
    listed = prices_of(configured("dataset=wine", "dataset.costs=equal").dataset, read("wine"))
    assert listed == Prices(read("wine").names, (1.0,) * 13, "cost units")


def test_the_digest_depends_on_names_and_prices_alone() -> None:
    one = Prices(("a", "b"), (1.0, 2.0), "EUR")
    assert one.digest() == Prices(("a", "b"), (1.0, 2.0), "minutes").digest()
    assert one.digest() != Prices(("a", "b"), (1.0, 3.0), "EUR").digest()


@pytest.mark.parametrize("ending", ["csv", "libsvm"])
def test_values_are_centred_on_the_middle_in_units_of_half_the_range(tmp_path: Path, ending: str) -> None:
    X = np.array([[1.0, -4], [2, 2], [-2, 0]])  # -4 is outside its range
    table = csv(
        tmp_path,
        "a,b,y\n1,-4,10\n2,2,20\n-2,0,35\n" if ending == "csv" else "10 1:1 2:-4\n20 1:2 2:2\n35 1:-2\n",
        f"t.{ending}",
    )
    ranges = csv(tmp_path, "attribute,low,high\n1,-2,3\n2,-3,2\n", "ranges.csv")
    data = load(configured("dataset=file", f"dataset.path={table}", f"dataset.ranges={ranges}").dataset, 0, 0)
    scaled = Table(data.X, data.y, data.scale, data.shift).rows(np.arange(3))
    np.testing.assert_allclose(scaled, (X - [0.5, -0.5]) / 2.5, rtol=1e-15)
    assert data.notes == ()


def test_scaling_by_ranges_reads_no_value() -> None:
    X = np.full((3, 2), np.nan)
    data = in_ranges(Dataset("poisoned", X, np.zeros(3), 1.0, None, False), ((1, 1), (2, 3)))
    np.testing.assert_array_equal([data.scale, data.shift], [[2, 1], [3, 2]])


def test_the_fingerprint_includes_the_ranges(tmp_path: Path) -> None:
    table = csv(tmp_path, GOOD)
    ranges = csv(tmp_path, "attribute,low,high\na,-2,2\nb,-4,4\n", "ranges.csv")
    keys = (f"dataset.path={table}", f"dataset.ranges={ranges}")
    first = read("file", *keys)
    assert read("file", *keys) is first  # repetitions share its arrays
    assert first.fingerprint().startswith(read("file", keys[0]).fingerprint())
    csv(tmp_path, "attribute,low,high\nb,-4,4\na,-2.0,2\n", "ranges.csv")
    assert read("file", *keys).fingerprint() == first.fingerprint()
    csv(tmp_path, "attribute,low,high\na,-2,2\nb,-4,5\n", "ranges.csv")
    assert read("file", *keys).fingerprint() != first.fingerprint()


def test_relative_paths_of_lists_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for table in ("dataset=wine", "dataset=file"):
        config = configured(table, "dataset.ranges=r.csv", *(["dataset.path=t.csv"] if table.endswith("file") else []))
        assert located(config.dataset).options["ranges"] == str(tmp_path / "r.csv")


def test_ranges_set_the_scale(tmp_path: Path) -> None:
    assert configured("dataset=wine", "dataset.ranges=r.csv").dataset.scaled_by_ranges
    subspaces = configured("dataset=wine", "dataset.ranges=r.csv", "algo=popca", "algo.n_components=2")
    assert subspaces.dataset.scaled_by_ranges
    assert not configured("dataset=wine").dataset.scaled_by_ranges
    with pytest.raises(ConfigError, match=r"leave out dataset.scale=max_abs or dataset.ranges"):
        configured("dataset=wine", "dataset.ranges=r.csv", "dataset.scale=max_abs")
    with pytest.raises(ConfigError, match=r"dataset.scale=ranges: dataset.ranges=FILE is needed"):
        configured("dataset=wine", "dataset.scale=ranges")
