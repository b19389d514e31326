"""Reproducing a recipe: what is run, merged, judged and drawn, and what is refused."""

import csv
import re
import shutil
from itertools import product
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from budgetreg.analysis.claims import parse_all
from budgetreg.cli.app import main
from budgetreg.config import catalogue
from budgetreg.data import mnist
from budgetreg.figures.specification import parse as parse_drawing
from budgetreg.reproduce import recipes, reproduction
from budgetreg.runs import runner
from budgetreg.runs.series import read_folder, read_series
from tests.commands import Call
from tests.reproduce.conftest import RECIPE
from tests.tiers import slow_but

FOLDER = Path("results/paper/toy")


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of learners that are run from now on."""
    ran: list[str] = []
    execute = runner.execute

    def noted(plan, **rest):  # type: ignore[no-untyped-def]
        ran.append(plan.config.algo.name)
        return execute(plan, **rest)

    monkeypatch.setattr(runner, "execute", noted)
    return ran


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder, without the receipt."""
    return {path.name: path.read_bytes() for path in folder.glob("[!.]*")}


def test_a_recipe_is_run_judged_and_drawn(
    reproduced: Path, computed: list[str], monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    printed = call("reproduce paper/toy").out
    assert computed == []
    first, folder = contents(FOLDER), FOLDER
    assert {"curves.csv", "runs.csv", "claims.csv", "savings.csv", "manifest.json"} < first.keys()
    assert {"curves.png", "curves.pdf", "curves.txt"} < first.keys()
    assert {"curves_paid.png", "curves_paid.pdf", "curves_paid.txt"} < first.keys()
    assert b"test error against attributes paid for" in first["curves_paid.txt"]
    assert b"digits_3v5, full rows" in first["curves.txt"]

    verdicts = {(row["claim"], row["protocol"]): row for row in rows(folder / "claims.csv")}
    assert set(verdicts) == {("ridge_below", "literal"), ("ridge_below", "paper"), ("level", "paper")}
    assert verdicts["ridge_below", "paper"]["verdict"] == "holds"
    assert float(verdicts["ridge_below", "paper"]["interval_high"]) < 0
    assert re.search(r"ridge_below +paper +holds", printed)
    page = Path("results/paper/README.md").read_text()
    assert "| claim | wanted | literal | paper |" in page
    assert re.search(
        r"\| ridge is better \(`ridge_below`\) \| below 0 \| .* \| \*\*holds\*\* -0\.\d+ \(.* to .*\) \|\n", page
    )
    assert re.search(r"\| it ends well \(`level`\) \| -0.3 to 0.3 \|  \| .* \|\n", page)
    best = {"ridge_below": "holds", "level": verdicts["level", "paper"]["verdict"]}
    counts = [sum(verdict == wanted for verdict in best.values()) for wanted in ("holds", "undecided", "fails")]
    row = " | ".join(map(str, counts))
    assert f"| [toy](#toy) | {row} |" in page
    assert f"| [paper](paper/README.md) | {row} |  |" in Path("results/README.md").read_text()
    table = re.search(r"\| panel \| error \| aelr \| ridge \|\n.*\n\| literal \| (\S+) \| .*\| (\S+) \|\n", page)
    assert table
    saved = {(row["panel"], float(row["error"]), row["learner"]): row for row in rows(folder / "savings.csv")}
    assert f"{float(saved['literal', float(table[1]), 'ridge']['attributes']):,.0f}" == table[2]
    assert "- the digits are smaller" in page
    assert "(toy/curves.png)" in page
    assert "(toy/curves_paid.png)" in page

    # Each series is that of a run of its own, with the preset's settings.
    splits = {
        curve.config["protocol"]: curve.config["algo"]["split"]
        for curve in read_series([folder])
        if curve.algo == "aelr"
    }
    assert splits == {"literal": "literal", "paper": "even"}
    table_of_run = next(Path("runs/paper/toy").glob("algo=aelr,protocol=paper-*/curves.csv"))
    merged = [row for row in rows(folder / "curves.csv") if row.pop("cell") == "algo=aelr,protocol=paper"]
    assert merged == rows(table_of_run)

    # What is current is neither run nor changed, with or without the runs that it came from; a claim changes no result.
    shutil.rmtree("runs")
    reproduced.write_text(RECIPE.replace("it ends well", "it ends badly"))
    call("reproduce paper/toy")
    assert computed == []
    second = contents(folder)
    assert second.pop("claims.csv") == first.pop("claims.csv").replace(b"it ends well", b"it ends badly")
    assert second == first

    # Another parameter makes those stale that have it.
    monkeypatch.setattr(reproduction, "plot", lambda *_: [])
    reproduced.write_text(RECIPE.replace("split: even", "split: 1"))
    call("reproduce paper/toy")
    assert computed == ["aelr"]


@pytest.mark.usefixtures("sketched")
def test_presets_with_the_same_configuration_share_a_run(recipe: Path, computed: list[str]) -> None:
    recipe.write_text(RECIPE.replace("dataset: {center: full}, ", ""))
    assert main(["reproduce", "paper/toy"]) == 0
    assert computed == ["aelr", "aelr", "ridge"]
    folder = FOLDER
    first = contents(folder)
    presets = [curve.config["protocol"] for curve in read_folder(folder) if curve.algo == "ridge"]
    assert presets == ["literal", "paper"]

    shutil.rmtree("runs")
    assert main(["reproduce", "paper/toy"]) == 0
    assert contents(folder) == first


@pytest.mark.usefixtures("sketched")
def test_savings_are_in_money_if_a_panel_has_prices(recipe: Path) -> None:
    recipe.write_text(RECIPE.replace("literal: {}", "literal: {dataset: {costs: equal, unit: EUR}}"))
    assert main(["reproduce", "paper/toy"]) == 0
    saved = rows(Path("results/paper/toy/savings.csv"))
    assert {(row["panel"], row["unit"]) for row in saved} == {("literal", "EUR"), ("paper", "")}
    for row in saved:
        money = [row[name] for name in ("cost", "cost_is", "cost_low", "cost_high", "cost_reference", "cost_factor")]
        attributes = ("attributes", "attributes_are", "attributes_low", "attributes_high", "reference", "factor")
        assert money == ([row[name] for name in attributes] if row["unit"] else [""] * 6)  # 1 EUR each


@pytest.mark.usefixtures("sketched")
def test_a_quick_reproduction_says_so_and_leaves_claims_undecided(
    recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe.write_text(
        RECIPE.replace("aelr,ridge", "ridge")
        .replace("a: aelr", "a: ridge")
        .replace("x_scale", "finding: clear, x_scale")
    )
    plot, stated = reproduction.plot, []
    monkeypatch.setattr(
        reproduction, "plot", lambda *drawn: (stated.append((drawn[-1].finding, drawn[-1].note)), plot(*drawn))
    )
    assert main(["reproduce", "paper/toy", "--quick"]) == 0
    folder = Path("runs/quick/results/paper/toy")
    assert {row["repetition"] for row in rows(folder / "curves.csv")} == {"0", "1"}
    assert {row["verdict"] for row in rows(folder / "claims.csv")} == {"undecided"}
    assert "2 repetitions (of 5 asked for)" in (folder / "curves.txt").read_text()
    # Both figures say so: what five repetitions show, two may not.
    assert stated == [("", "quick look: 2 of 5 repetitions")] * 2
    assert not Path("results").exists()


def test_an_interrupted_reproduction_resumes(
    recipe: Path, computed: list[str], monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    recipe.write_text(RECIPE.replace("  literal: {}\n", "").replace("literal: {}, ", ""))
    execute = runner.execute

    def interrupted(plan, **rest):  # type: ignore[no-untyped-def]
        if plan.config.algo.name == "ridge":
            raise KeyboardInterrupt
        return execute(plan, **rest)

    monkeypatch.setattr(runner, "execute", interrupted)
    monkeypatch.setattr(reproduction, "plot", lambda *_: [])
    assert "the same command resumes" in call("reproduce paper/toy", 130).err
    monkeypatch.setattr(runner, "execute", execute)
    computed.clear()
    call("reproduce paper/toy")
    assert computed == ["ridge"]


_JOURNALS = ["manifest.json", "journal.jsonl", "models.jsonl"]


@pytest.mark.parametrize("left", [pytest.param(_JOURNALS, marks=pytest.mark.slow), [*_JOURNALS, "curves.csv"]])
def test_a_killed_reproduction_resumes(reproduced: Path, computed: list[str], left: list[str]) -> None:
    """It was killed during a run, or between its tables."""
    whole = contents(FOLDER)
    shutil.rmtree("results")
    for path in Path("runs/paper/toy").glob("algo=ridge,protocol=literal-*/*"):
        if path.name not in left:
            path.unlink()
    assert main(["reproduce", "paper/toy"]) == 0
    assert computed == ["ridge"]
    assert contents(FOLDER) == whole


@pytest.mark.parametrize("table", ["curves.csv", pytest.param("runs.csv", marks=pytest.mark.slow)])
def test_results_that_lost_a_row_are_not_used(reproduced: Path, table: str) -> None:
    whole = contents(FOLDER)
    (FOLDER / table).write_bytes(b"".join(whole[table].splitlines(keepends=True)[:-1]))
    assert main(["reproduce", "paper/toy"]) == 0
    assert contents(FOLDER) == whole


def test_current_results_are_neither_judged_nor_drawn_nor_written(
    reproduced: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    def files() -> dict[Path, tuple[bytes, int]]:
        return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in Path("results").rglob("*.*")}

    before = files()
    monkeypatch.setattr(reproduction, "report", None)
    assert re.search(r"ridge_below +paper +holds", call("reproduce paper/toy").out)
    assert files() == before


@pytest.mark.parametrize(
    ("name", "changed"),
    slow_but([("curves_paid.txt", True)], product(["claims.csv", "curves_paid.txt"], [True, False])),
)
def test_a_report_that_was_changed_or_lost_is_made_again(reproduced: Path, name: str, changed: bool) -> None:
    whole = contents(FOLDER)
    if changed:
        (FOLDER / name).write_bytes(b"changed")
    else:
        (FOLDER / name).unlink()
    assert main(["reproduce", "paper/toy"]) == 0
    assert contents(FOLDER) == whole


def test_results_are_not_replaced_by_fewer_repetitions(reproduced: Path, call: Call) -> None:
    whole = contents(FOLDER)
    assert "holds 5 repetitions, more than a quick look has" in call("reproduce paper/toy --quick out=results", 2).err
    assert contents(FOLDER) == whole

    Path("README.md").write_text("# My project\n")
    assert "README.md is no page of results" in call("reproduce paper/toy out=.", 2).err
    assert Path("README.md").read_text() == "# My project\n"
    Path("README.md").unlink()
    Path("paper").mkdir()
    Path("paper/README.md").write_text("# My paper\n")
    assert "paper/README.md is no page of results" in call("reproduce paper/toy out=.", 2).err
    assert {path.name for path in Path("paper").iterdir()} == {"README.md"}


def test_damaged_results_are_reported(reproduced: Path, call: Call) -> None:
    (FOLDER / "manifest.json").write_text('{"recipe"')
    message = call("reproduce paper/toy", 3).err
    assert message.count("\n") == 1
    assert "results/paper/toy/manifest.json is damaged" in message
    assert "remove the folder" in message
    assert "paper" not in Path("results/README.md").read_text().partition("## How")[0].replace("| paper |", "")


def test_mistakes_are_one_line(recipe: Path, call: Call) -> None:
    def refused(words: str) -> str:
        message: str = call(f"reproduce {words}", 2).err
        assert message.count("\n") == 1
        return message

    assert "did you mean 'paper/toy'" in refused("paper/toys")
    assert refused("aemr/laws") == "budgetreg: aemr/laws: is now aemr/distributions\n"
    assert "reproduce follows the recipe" in refused("paper/toy repetitions=3")
    recipe.write_text(RECIPE.replace("kind: below", "kind: under"))
    assert "paper/toy: claims: ridge_below: under: no such kind" in refused("paper/toy")
    recipe.write_text(RECIPE.replace("kind: below", "kind: buys_more"))
    assert "ridge_below: kind buys_more: is now below_at_any_spending\n" in refused("paper/toy")
    recipe.write_text(RECIPE.replace("panels:", "panles:"))
    assert "figure.panles: no such key (did you mean 'panels'?)" in refused("paper/toy")
    recipe.write_text(RECIPE.replace("x_scale", "x: piad, x_scale"))
    assert "the variable on the x axis must be one of attributes, paid, " in refused("paper/toy")
    recipe.write_text(RECIPE.replace("digits_3v5", "digits"))
    assert "paper/toy: " in refused("paper/toy")
    recipe.write_text(RECIPE.replace("claims:", "claims: ["))
    assert "paper/toy: " in refused("paper/toy")


def test_missing_digits_are_reported(recipe: Path, monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    monkeypatch.setattr(mnist, "prepared", lambda *_: None)
    recipe.write_text(RECIPE.replace("digits_3v5", "mnist_3v5"))
    message = call("reproduce paper/toy dataset.root=nowhere", 3).err
    assert "nowhere/MNIST/raw" in message
    assert "train-images-idx3-ubyte" in message


@pytest.mark.parametrize("name", recipes.names())
def test_every_recipe_can_be_read(name: str) -> None:
    """Read without Hydra."""
    file = catalogue.conf_dir() / "experiment" / f"{name}.yaml"
    content = OmegaConf.to_container(OmegaConf.load(file))
    assert isinstance(content, dict)
    assert content["experiment"] == name
    parse_drawing(content.get("figure", {}))
    claims = parse_all(content.get("claims", []))
    learners = set(content["hydra"]["sweeper"]["params"]["algo"].split(","))
    for claim in claims:
        named = [claim.options.get(role) for role in ("a", "b", "minus")]
        assert {condition for condition in named if isinstance(condition, str)} <= learners
        assert set(claim.options["also"]) <= set(recipes.names())
        assert {claim.options["where"].get("protocol")} <= {None, *content.get("protocols", [])}


def test_a_recipes_cells_are_those_of_a_multirun(recipe: Path) -> None:
    cells = {cell.name: cell.config for cell in recipes.read_recipe("paper/toy").cells}
    both = [(algo, preset) for algo in ("aelr", "ridge") for preset in ("literal", "paper")]
    assert list(cells) == [f"algo={algo},protocol={preset}" for algo, preset in both]
    assert cells["algo=aelr,protocol=paper"].algo.split == "even"
    assert cells["algo=ridge,protocol=paper"].dataset.center == "full"
    assert cells["algo=ridge,protocol=literal"].dataset.center == "none"
