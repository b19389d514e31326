"""Figures and tables of runs with prices show money if all have prices in one unit."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from budgetreg.analysis.comparisons import ResampledCurves
from budgetreg.cli.console import console
from budgetreg.cli.run import plan_table
from budgetreg.common.errors import ConfigError
from budgetreg.figures.specification import Drawing, axes_of
from budgetreg.figures.tables import comparison_tables, run_table
from budgetreg.runs.series import Series, read_series
from tests.figures.drawn import drawn
from tests.plans import planned
from tests.written_runs import write_run


def priced(folder: Path, algo: str = "aelr", unit: str | None = "EUR", price: float = 2.5, **changes: object) -> Path:
    """Write a run whose attributes all cost the same."""
    settings = {"dataset__costs": "/somewhere/prices.csv", "dataset__unit": unit, **changes}
    write_run(folder, algo, **settings)  # type: ignore[arg-type]
    table = pd.read_csv(folder / "curves.csv")
    table.insert(7, "cost", price * table["attributes"])
    table.to_csv(folder / "curves.csv", index=False)
    return folder


def x_of(*folders: Path) -> tuple[str, str]:
    x, _ = axes_of(read_series(folders))
    return x.column, x.label


def test_the_axis_is_money_if_all_have_prices_in_one_unit(tmp_path: Path) -> None:
    first, second = priced(tmp_path / "a"), priced(tmp_path / "b", "aerr")
    assert x_of(first, second) == ("cost", "spent on attributes in training, in EUR")
    assert x_of(priced(tmp_path / "c", unit=None)) == ("cost", "spent on attributes in training, in cost units")
    assert x_of(first, write_run(tmp_path / "d", "aer"))[0] == "attributes"
    assert x_of(first, priced(tmp_path / "e", "aer", unit="minutes"))[0] == "attributes"
    assert x_of(priced(tmp_path / "f", axis="examples"))[0] == "examples"


def test_the_axis_shows_the_mean_cost(tmp_path: Path) -> None:
    (series,) = read_series([priced(tmp_path)])
    curve = series.mean
    np.testing.assert_array_equal(curve["cost"], 2.5 * curve["attributes"])
    assert "cost" not in replace(series, points=series.points.drop(columns="cost")).mean


def test_a_figure_may_ask_for_money_if_there_are_prices(tmp_path: Path) -> None:
    both = read_series([priced(tmp_path / "a"), write_run(tmp_path / "b", "aer")])
    assert axes_of(both, Drawing(x="cost"))[0].label.endswith("in EUR")

    def paid(series: Series) -> list[float]:
        return ResampledCurves(both, "test_relative", "cost").means(series).x.tolist()

    assert paid(both[0]) == [2.5 * 39.5, 2.5 * 159.5, 2.5 * 639.5]
    with pytest.raises(ConfigError, match=r"x: cost: aer has no prices: set dataset\.costs"):
        paid(both[1])


def test_captions_say_the_cost_and_whether_draws_are_price_aware(tmp_path: Path) -> None:
    runs = [
        priced(tmp_path / "a"),
        priced(tmp_path / "b", k=5, algo__data_point="moment", algo__inner_product="moment", algo__update="ogd"),
        write_run(tmp_path / "c", k=6),
    ]
    captions = [drawn(run)[1] for run in runs]
    assert "1,599 EUR" in captions[0]
    assert "prices: of prices.csv; the draws ignore them" in captions[0]
    assert "prices: of prices.csv; the draws are price-aware" in captions[1]
    assert "prices" not in captions[2]
    assert all("algo.prices" not in text and "/somewhere" not in text for text in captions)


def test_tables_have_a_column_for_each_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = priced(tmp_path / "a")
    console().print(run_table(run))
    assert "EUR" in capsys.readouterr().out
    others = [priced(tmp_path / "b", "aer", unit="minutes"), write_run(tmp_path / "c", "aerr")]
    console().print(*comparison_tables(read_series([run, *others])))
    out = capsys.readouterr().out
    (head,) = (line for line in out.splitlines() if "examples" in line and "attributes" in line)
    assert head.index("attributes") < head.index("EUR") < head.index("minutes")
    (row,) = (line for line in out.splitlines() if "aer " in line)
    at = [row[head.index(unit) :].split()[0] for unit in ("EUR", "minutes")]
    assert at == ["-", "1,599"]


@pytest.mark.parametrize(
    ("keys", "most"),
    [
        # A pilot of 15 rows of 75 each, then 4 draws of the most expensive attribute, of 18, for each of 360 examples.
        (["algo=ddaerr"], "at most 27,045 EUR"),
        (["algo=ridge"], "at most 11,925 EUR"),
        (["algo=aesvr"], "on average at most 27,045 EUR"),
    ],
)
def test_a_plan_shows_the_most_that_a_run_can_cost(
    keys: list[str], most: str, capsys: pytest.CaptureFixture[str]
) -> None:
    console().print(plan_table(planned("dataset=diabetes", "dataset.costs=bundled", "dataset.unit=EUR", "k=4", *keys)))
    out = capsys.readouterr().out
    assert "1 to 18 EUR for an attribute, 75 for a full row" in out
    assert most in out
