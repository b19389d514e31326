"""Merged results and runs of a recipe: verified, and compared with the recipe."""

import json
import shutil
from pathlib import Path

import pytest

from budgetreg.common.errors import DataError
from budgetreg.common.files import record_digest
from budgetreg.config.nested import number_ranges
from budgetreg.reproduce.recipes import read_recipe
from budgetreg.reproduce.verification import Sample, cell_problems, read_once, verify_merged
from tests.commands import Call
from tests.reproduce.conftest import RECIPE
from tests.written_runs import edit_manifest

FOLDER = Path("results/paper/toy")
CELLS = [f"algo={algo},protocol={protocol}" for algo in ("aelr", "ridge") for protocol in ("literal", "paper")]


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_merged_results_are_the_same_when_computed_again(reproduced: Path) -> None:
    before, lines = contents(FOLDER), []
    verdicts = list(verify_merged(FOLDER, read_recipe("paper/toy"), Sample(2), lines.append))
    assert [cell.recorded.name for cell in verdicts] == CELLS
    assert all(cell.verdict and cell.verdict.same for cell in verdicts)
    assert [(cell.verdict.checked, cell.verdict.held) for cell in verdicts if cell.verdict] == [(2, 5)] * 4
    assert lines[0] == f"paper/toy: {CELLS[0]} (1 of 4)"
    assert contents(FOLDER) == before


def test_only_the_cell_that_differs_is_reported(reproduced: Path, call: Call) -> None:
    path = FOLDER / "curves.csv"
    lines = path.read_text().splitlines()
    head, first = lines[0].split(","), lines[1].split(",")
    first[head.index("test_mse")] = repr(float(first[head.index("test_mse")]) * (1 + 1e-12))
    path.write_text("\n".join([lines[0], ",".join(first), *lines[2:]]) + "\n")
    assert "curves.csv is damaged" in call("verify results --all", 3).err
    edit_manifest(FOLDER, tables={})
    printed = call("verify results --all", 1)
    lines = printed.out.splitlines()
    assert lines[0].strip() == "results/paper/toy"
    assert [line.split()[5:7] for line in lines[2:6]] == [["of", "5"]] * 4
    assert "differs, same to 1e-9  test_mse" in lines[2]
    assert all(" same " in line and "differs" not in line for line in lines[3:6])
    assert "nothing that was recorded has changed (algo=aelr,protocol=literal)" in "".join(lines[6:])
    assert lines[-1] == "same to 1e-9: as promised for another processor"
    assert printed.err == ""


def test_cells_that_the_results_lack_are_listed(reproduced: Path, call: Call) -> None:
    assert (
        call("status results --why").out
        == "nothing is missing, failed or stale; budgetreg verify compares data and results, too\n"
    )

    def lacks(text: str) -> dict[str, tuple[str, str]]:
        reproduced.write_text(text)
        return {
            problem.cell: (problem.state, problem.why) for problem in cell_problems(FOLDER, read_recipe("paper/toy"))
        }

    assert lacks(RECIPE) == {}
    assert lacks(RECIPE.replace("split: even", "split: 1")) == {CELLS[1]: ("stale", "algo.split even -> 1")}
    more = lacks(RECIPE.replace("repetitions: 5", "repetitions: 7"))
    assert more == dict.fromkeys(CELLS, ("fewer", "repetitions 5-6 of 7 are missing"))
    assert lacks(RECIPE.replace("repetitions: 5", "repetitions: 4")) == {}
    other = lacks(RECIPE.replace("aelr,ridge", "aelr,aerr"))
    assert other["algo=aerr,protocol=paper"] == ("missing", "the results hold no such cell")
    assert other["algo=ridge,protocol=paper"] == ("no longer", "the recipe has no such cell")
    reproduce_again = lacks(RECIPE.replace("tuning: {B: 4, eta: 0.02}", "tuning: {B: 4, eta: 0.01}\nk: 3"))
    assert reproduce_again[CELLS[0]] == ("stale", "k 4 -> 3, tuning.eta 0.02 -> 0.01")


def test_a_new_version_of_a_learner_is_reported(reproduced: Path) -> None:
    entries = json.loads((FOLDER / "manifest.json").read_text())["cells"]
    cell = read_recipe("paper/toy").cells[0]
    identity = cell.config.identity()
    latest = identity["algo"]["version"]
    identity["algo"]["version"] = latest + 1
    entries[0] |= {"identity_digest": record_digest(identity), "version": latest + 1}
    edit_manifest(FOLDER, cells=entries)
    (problem,) = cell_problems(FOLDER, read_recipe("paper/toy"))
    assert problem.why == f"algo.version {latest + 1} -> {latest}: the numbers of aelr have changed"
    entries[0] |= {"identity_digest": "0" * 64, "version": latest}
    edit_manifest(FOLDER, cells=entries)
    (problem,) = cell_problems(FOLDER, read_recipe("paper/toy"))
    assert problem.why == "its digest is not that of the configuration recorded with it"
    verdicts = list(verify_merged(FOLDER, read_recipe("paper/toy"), Sample(1)))
    assert [cell.verdict is None for cell in verdicts] == [True, False, False, False]
    assert verdicts[0].stale == (problem.why,)


def test_damaged_and_stale_results_are_reported(reproduced: Path, call: Call) -> None:
    reproduced.write_text(RECIPE.replace("split: even", "split: 1"))
    assert call("status results --why").out.splitlines()[1].split() == [
        *("results/paper/toy", CELLS[1], "stale", "algo.split", "even", "->", "1")
    ]
    assert "stale: algo.split even -> 1 (algo=aelr,protocol=paper)" in call("verify results --sample 1", 1).out
    with (FOLDER / "runs.csv").open("a") as file:
        file.write("paper/toy\n")
    printed = call("status results --why", 3)
    assert "damaged" in printed.out
    assert "runs.csv is damaged" in printed.err
    (FOLDER / "runs.csv").unlink()
    with pytest.raises(DataError, match="is missing"):
        cell_problems(FOLDER, read_recipe("paper/toy"))
    reproduced.unlink()
    assert "there is no recipe paper/toy" in call("status results --why").out


def test_runs_are_stale_if_their_recipe_has_no_such_cell(reproduced: Path, call: Call) -> None:
    def stale() -> dict[str, str]:
        read_once.cache_clear()  # each command is a process of its own
        rows = [line.split() for line in call("status runs --why").out.splitlines() if " stale " in line]
        return {Path(row[0]).name.rpartition("-")[0]: " ".join(row[4:]) for row in rows}

    assert stale() == {}
    reproduced.write_text(RECIPE.replace("split: even", "split: 1"))
    assert stale() == {CELLS[1]: "algo.split even -> 1"}
    reproduced.write_text(RECIPE.replace("aelr,ridge", "ridge"))
    assert stale() == dict.fromkeys(CELLS[:2], "the recipe has no such cell")
    run = next(Path("runs/paper/toy").glob(f"{CELLS[0]}-*"))
    for other in ("runs/paper/toy/digits_3v5", "runs/kept", "runs/paper/other"):  # made by the user
        Path(other).mkdir()
        shutil.copytree(run, Path(other, run.name))
    shutil.copytree(run, "runs/paper/toy/mine")
    assert len(stale()) == 2
    reproduced.unlink()
    assert stale() == {}


def test_consecutive_numbers_become_a_range() -> None:
    assert (number_ranges([0, 3, 4, 5, 9]), number_ranges([2]), number_ranges([])) == ("0, 3-5, 9", "2", "")
