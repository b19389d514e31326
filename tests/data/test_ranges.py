"""Lists of ranges: how they scale values, and messages for unusable lists."""

from pathlib import Path

import numpy as np
import pytest

from budgetreg.common.errors import ConfigError, DataError
from budgetreg.data.attributes import Ranges, in_ranges, read_ranges
from budgetreg.data.dataset import Dataset
from budgetreg.data.registry import load, located
from budgetreg.metering.table import Table
from tests.data.test_bundled import configured, read
from tests.data.test_file import GOOD, csv

NAMES = ("age", "bmi", "7")
REST = "bmi,15,45\n7,-1,1\n"


def listed(folder: Path, text: str, names: tuple[str, ...] = NAMES) -> Ranges:
    return read_ranges(csv(folder, text, "ranges.csv"), names, 3)


def values(data: Dataset) -> np.ndarray:
    return Table(data.X, data.y, data.scale, data.shift).rows(np.arange(len(data.y)))


def test_names_and_numbers_may_come_in_any_order(tmp_path: Path) -> None:
    assert listed(tmp_path, "low;attribute;high\n-1;7;1\n15;2;45\n18;age;8e1\n") == ((18, 15, -1), (80, 45, 1))


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "a list of ranges needs the columns attribute,low,high"),
        ("attribute,low,max\nage,1,2\n", "line 1 must name the column 'high' once"),
        (f"attribute,low,high\n{REST}", "no range for age: each of the 3 attributes needs one"),
        (f"attribute,low,high\nagee,1,2\n{REST}", "line 2: the data have no attribute 'agee' (did you mean 'age'?)"),
        (f"attribute,low,high\nage,1,2\n{REST}1,1,2\n", "line 5: attribute '1' has a range already, on line 2"),
        (f"attribute,low,high\nage,1\n{REST}", "line 2: 2 fields, but the header has 3"),
        (f"attribute,low,high\nage,young,2\n{REST}", "line 2: attribute 'age': low: 'young' is not a number"),
        (f"attribute,low,high\nage,1,\n{REST}", "line 2: attribute 'age': high: '' is not a number"),
        (f"attribute,low,high\nage,1,inf\n{REST}", "attribute 'age': high must be from -1e+30 to 1e+30, not inf"),
        (f"attribute,low,high\nage,nan,1\n{REST}", "attribute 'age': low must be from -1e+30 to 1e+30, not nan"),
        (f"attribute,low,high\nage,2,1\n{REST}", "line 2: attribute 'age': low must be below high, not 2 and 1"),
        (f"attribute,low,high\nage,2,2\n{REST}", "low must be below high, not 2 and 2"),
    ],
)
def test_an_unusable_list_gives_a_one_line_message(tmp_path: Path, text: str, part: str) -> None:
    with pytest.raises(DataError) as caught:
        listed(tmp_path, text)
    message = str(caught.value)
    assert part in message
    assert str(tmp_path / "ranges.csv") in message
    assert "\n" not in message


def test_a_missing_list_is_refused() -> None:
    with pytest.raises(DataError, match=r"cannot read nowhere.csv: No such file .*dataset.ranges"):
        read_ranges(Path("nowhere.csv"), NAMES, 3)


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
    np.testing.assert_allclose(values(data), (X - [0.5, -0.5]) / 2.5, rtol=1e-15)
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
