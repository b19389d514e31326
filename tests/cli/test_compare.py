"""``budgetreg compare``: what runs need to reach an error, with intervals and bounds."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from tests.commands import Call, one_line
from tests.figures.test_summary import write_run
from tests.written_runs import edit_manifest, edit_table

REPETITIONS = 6


def falling(folder: Path, algo: str, times: float) -> Path:
    """Write a run whose error is 200 times / attributes, at 400, 800, ... 4000 attributes."""
    write_run(folder, algo, relative=(0.5,) * REPETITIONS, checkpoints=10, rate=None)

    def error(curves: pd.DataFrame) -> pd.Series:
        return 200 * times / curves["attributes"] * (1 + 0.001 * curves["repetition"])

    edit_table(folder / "curves.csv", test_relative=error)
    return folder


def rows(out: str) -> dict[str, list[str]]:
    """Return the cells of each learner, without the level."""
    by_learner = {}
    for line in out.splitlines()[2:]:
        if line.startswith("reference: "):
            break
        cells = [cell for cell in re.split(r"\s{2,}", line.strip()) if cell]
        cells = cells[1:] if re.match(r"[\d.]+$", cells[0]) else cells
        by_learner[cells[0]] = cells[1:]
    return by_learner


def test_attributes_needed_to_reach_an_error(call: Call, tmp_path: Path) -> None:
    for algo, times in (("aelr", 1.0), ("aer", 4.0), ("lasso", 2.0), ("ridge", 40.0)):
        falling(tmp_path / algo, algo, times)
    answer = call(f"compare {tmp_path} error=0.2")
    needed = rows(answer.out)
    assert float(needed["aelr"][0].replace(",", "")) == pytest.approx(1000, rel=0.05)
    assert float(needed["lasso"][0].replace(",", "")) == pytest.approx(2000, rel=0.05)
    assert float(needed["aelr"][2]) == pytest.approx(2, rel=0.1)
    low, high = map(float, needed["aelr"][3].split(" to "))
    assert low <= float(needed["aelr"][2]) <= high
    assert needed["aelr"][-1] == "lasso"
    assert len(needed["lasso"]) == 2  # not compared with itself
    assert needed["aer"][0] in ("4,000", "at least 4,000")
    assert needed["ridge"][0] == "at least 4,000"
    assert needed["ridge"][2].startswith("at most 0.5")


def test_without_full_rows_the_best_run_of_the_first_folder_is_the_reference(call: Call, tmp_path: Path) -> None:
    for algo, times in (("aelr", 2.0), ("aer", 4.0), ("ddaerr", 1.0)):
        falling(tmp_path / algo, algo, times)
    answer = call(f"compare error=0.3 {tmp_path}").out
    assert f"reference: ddaerr, the best run in {tmp_path}" in answer
    needed = rows(answer)
    assert len(needed["ddaerr"]) == 2
    assert (needed["aelr"][-1], needed["aer"][-1]) == ("ddaerr", "ddaerr")
    assert float(needed["aelr"][2]) == pytest.approx(0.5, rel=0.1)


def test_error_rate_and_area_are_shown_where_the_error_is_reached(call: Call, tmp_path: Path) -> None:
    folder = falling(tmp_path / "aelr", "aelr", 1.0)
    falling(tmp_path / "aer", "aer", 4.0)
    for path in tmp_path.rglob("curves.csv"):
        edit_table(path, test_error_rate=lambda curves: curves["attributes"] / 1e4, test_auc=0.75)
    answer = call(f"compare error=0.2 {tmp_path}").out
    assert re.search(r"90 % interval  error rate   AUC +ratio", answer.splitlines()[1])
    needed = rows(answer)
    assert float(needed["aelr"][2]) == pytest.approx(0.1, rel=0.05)
    assert (needed["aelr"][3], needed["aer"][2:4]) == ("0.75", ["0.4", "0.75"])
    pd.read_csv(folder / "curves.csv").drop(columns="test_auc").to_csv(folder / "curves.csv", index=False)
    assert "AUC" not in call(f"compare error=0.2 {tmp_path}").out


def test_without_full_rows_the_first_run_is_the_reference(call: Call, tmp_path: Path) -> None:
    other, mine = falling(tmp_path / "1", "aer", 4.0), falling(tmp_path / "2", "aelr", 1.0)
    needed = rows(call(f"compare error=0.3 {other} {mine}").out)
    assert needed["aelr"][-1] == "aer"
    assert float(needed["aelr"][2]) == pytest.approx(4, rel=0.1)
    assert rows(call(f"compare {mine} {other} error=0.3").out)["aer"][-1] == "aelr"


def priced(folder: Path, price: float, unit: str | None = "EUR") -> Path:
    """Give the attributes of a run prices."""
    edit_table(folder / "curves.csv", cost=lambda curves: price * curves["attributes"])
    config = json.loads((folder / "manifest.json").read_text())["config"]
    dataset = {**config["dataset"], "costs": "prices.csv", "unit": unit}
    edit_manifest(folder, config={**config, "dataset": dataset})
    return folder


def test_money_is_compared_if_all_runs_have_prices(call: Call, tmp_path: Path) -> None:
    priced(falling(tmp_path / "aelr", "aelr", 1.0), 6.0)  # few attributes, expensive ones
    priced(falling(tmp_path / "lasso", "lasso", 2.0), 1.5)
    answer = call(f"compare {tmp_path} error=0.2")
    head = answer.out.splitlines()[1]
    assert re.split(r"\s{2,}", head.strip())[2:] == ["EUR", "90 % interval", "ratio", "90 % interval", "reference"]
    needed = rows(answer.out)
    assert float(needed["aelr"][0].replace(",", "")) == pytest.approx(6000, rel=0.05)
    assert float(needed["lasso"][0].replace(",", "")) == pytest.approx(3000, rel=0.05)
    assert float(needed["aelr"][2]) == pytest.approx(0.5, rel=0.1)
    in_attributes = call(f"compare {tmp_path} error=0.2 axis=attributes").out
    assert "attributes" in in_attributes.splitlines()[1]
    assert float(rows(in_attributes)["aelr"][0].replace(",", "")) == pytest.approx(1000, rel=0.05)


def test_money_is_not_compared_with_runs_without_prices(call: Call, tmp_path: Path) -> None:
    priced(falling(tmp_path / "aelr", "aelr", 1.0), 6.0)
    falling(tmp_path / "lasso", "lasso", 2.0)
    assert "attributes" in call(f"compare {tmp_path} error=0.2").out
    answer = call(f"compare {tmp_path} error=0.2 axis=cost", 2)
    assert answer.out == ""
    assert "all runs need prices in one unit: aelr in EUR, lasso without" in one_line(answer.err)
    priced(tmp_path / "lasso", 1.0, "minutes")
    assert "aelr in EUR, lasso in minutes" in one_line(call(f"compare {tmp_path} error=0.2 axis=cost", 2).err)


def test_levels_are_round_unless_one_is_given(call: Call, tmp_path: Path) -> None:
    out = call(f"compare {falling(tmp_path / 'run', 'aelr', 1.0)}").out
    levels = [line.split()[0] for line in out.splitlines()[2:-1]]  # from .501 to .0501
    assert levels == ["0.5", "0.4", "0.3", "0.2", "0.1", "0.09", "0.08", "0.07", "0.06"]


@pytest.mark.parametrize(
    ("checkpoints", "said"),
    [
        (2, "no curve falls to a round level; give one, such as error=0.5"),
        (1, "the runs have one checkpoint each: run them with checkpoints=10, or give an error to reach, such as"),
    ],
)
def test_flat_curves_are_one_line(call: Call, tmp_path: Path, checkpoints: int, said: str) -> None:
    folder = write_run(tmp_path / "run", relative=(0.205,), checkpoints=checkpoints)
    edit_table(folder / "curves.csv", test_relative=0.205)
    assert said in one_line(call(f"compare {folder}", 3).err)
