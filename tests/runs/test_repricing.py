"""Finished runs at other prices have the costs of runs with these prices; runs with price-aware draws are refused."""

import shutil
from pathlib import Path

import pandas as pd
import pytest

import budgetreg
from budgetreg.common.errors import ConfigError, DataError
from budgetreg.runs.series import read_series, repriced
from tests.commands import Call

SMALL = {
    "dataset": "diabetes",
    "dataset.unit": "EUR",
    "repetitions": 2,
    "checkpoints": 3,
    "tuning": "fixed",
    "tuning.B": 50,
    "tuning.eta": 0.01,
}
NAMES = ("age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with runs at the bundled prices, at equal prices and without, and with another price list."""
    folder = tmp_path_factory.mktemp("runs")
    other = pd.DataFrame({"attribute": NAMES, "cost": [0.1 * (n + 1) ** 2 for n in range(10)]})
    other.to_csv(folder / "other.csv", index=False)
    blind = {**SMALL, "algo": "ddaerr", "algo.prices": "ignored"}
    budgetreg.run({**blind, "dataset.costs": "bundled", "out": str(folder / "bundled")})
    budgetreg.run({**blind, "dataset.costs": str(folder / "other.csv"), "out": str(folder / "other")})
    budgetreg.run({**SMALL, "algo": "ddaerr", "dataset.costs": "bundled", "out": str(folder / "aware")})
    budgetreg.run({**SMALL, "algo": "ddaerr", "dataset.costs": "equal", "out": str(folder / "equal")})
    budgetreg.run({**SMALL, "algo": "aerr", "out": str(folder / "plain")})
    return folder


@pytest.mark.parametrize("prices", ["bundled", "equal"])
def test_repricing_gives_the_costs_of_a_run_with_those_prices(made: Path, prices: str) -> None:
    (series,) = repriced([made / prices], made / "other.csv")
    (reference,) = read_series([made / "other"])
    (before,) = read_series([made / prices])
    pd.testing.assert_frame_equal(series.points, reference.points, check_exact=True)
    assert not series.points["cost"].equals(before.points["cost"])
    assert before.points["cost"].equals(1.0 * before.points["attributes"]) == (prices == "equal")
    assert (series.unit, repriced([made / prices], made / "other.csv", "minutes")[0].unit) == ("EUR", "minutes")


def test_lists_with_other_free_attributes_are_refused(made: Path, tmp_path: Path) -> None:
    free = tmp_path / "free.csv"
    free.write_text("attribute,cost\n" + "".join(f"{name},{0 if name == 'sex' else 1}\n" for name in NAMES))
    with pytest.raises(ConfigError, match="the price of sex is 0 in only one of the two lists"):
        repriced([made / "bundled"], free)


def test_recorded_reveals_add_up_to_the_bill(made: Path) -> None:
    reveals = pd.read_csv(made / "bundled" / "reveals.csv")
    assert tuple(reveals["attribute"].unique()) == NAMES
    (before,) = read_series([made / "bundled"])
    sums = reveals.groupby(["repetition", "examples"])["count"].sum()
    paid = before.points.set_index(["repetition", "examples"])["attributes"]
    pd.testing.assert_series_equal(sums, paid, check_names=False, check_dtype=False)


def test_runs_with_price_aware_draws_are_refused(made: Path) -> None:
    with pytest.raises(ConfigError, match=r"aware: the draws of ddaerr depend on its prices.*algo.prices=ignored"):
        repriced([made / "aware"], made / "other.csv")


@pytest.mark.usefixtures("short_chains")
def test_runs_that_money_ended_are_named_and_those_that_chose_k_refused(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = {**SMALL, "algo": "ddaerr", "algo.prices": "ignored", "dataset.costs": "bundled", "total": 3000}
    budgetreg.run({**ended, "out": str(tmp_path / "ended")})
    (series,) = repriced([tmp_path / "ended"], made / "other.csv")
    assert series.mean["examples"].tolist() == read_series([tmp_path / "ended"])[0].mean["examples"].tolist()
    assert "ended: a total in money ended it; at other prices" in capsys.readouterr().err
    chose = {key: value for key, value in ended.items() if "tuning" not in key} | {"algo": "aeml", "k": "auto"}
    budgetreg.run({**chose, "repetitions": 1, "out": str(tmp_path / "chose")})
    with pytest.raises(ConfigError, match="aeml chose what it saw by its prices"):
        repriced([tmp_path / "chose"], made / "other.csv")


def test_runs_without_prices_record_no_reveals(made: Path) -> None:
    assert not (made / "plain" / "reveals.csv").exists()
    with pytest.raises(DataError, match=r"there is no reveals.csv in it, .* run it again, .* dataset.costs=equal$"):
        repriced([made / "plain"], made / "other.csv")


def test_damaged_reveals_are_reported(made: Path, tmp_path: Path) -> None:
    hurt = tmp_path / "hurt"
    shutil.copytree(made / "bundled", hurt)
    content = (hurt / "reveals.csv").read_text()
    (hurt / "reveals.csv").write_text(content.replace("age,", "agg,", 1))
    with pytest.raises(DataError, match=r"reveals.csv is damaged"):
        repriced([hurt], made / "other.csv")


@pytest.mark.usefixtures("sketched")
def test_the_command_writes_a_figure_and_a_table(made: Path, tmp_path: Path, call: Call) -> None:
    line = f"reprice {made / 'bundled'} costs={made / 'other.csv'} --out {tmp_path}"
    out = call(f"{line} unit=CHF").out
    names = ["repriced.csv", "repriced.pdf", "repriced.png", "repriced.txt"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert all(str(tmp_path / name) in out for name in names)
    assert "CHF" in out
    (reference,) = read_series([made / "other"])
    assert pd.read_csv(tmp_path / "repriced.csv")["cost"].tolist() == reference.points["cost"].tolist()
    caption = " ".join((tmp_path / "repriced.txt").read_text().split())
    assert "money spent in training" in caption
    assert "in CHF" in caption
    assert "prices: of other.csv; the draws ignore them" in caption
    assert str(made) not in caption
    for theirs in ("label,mine\n", "theirs\n", ""):
        (tmp_path / "repriced.csv").write_text(theirs)
        assert "repriced.csv is there already" in call(line, 2).err
        assert (tmp_path / "repriced.csv").read_text() == theirs


@pytest.mark.parametrize("words", ["runs", "costs=list.csv", "runs costs="])
def test_the_command_needs_a_folder_and_a_list(words: str, call: Call) -> None:
    assert "a folder and a price list are needed" in call(f"reprice {words}", 2).err
