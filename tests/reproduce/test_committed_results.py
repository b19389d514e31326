"""The committed verdicts follow from the committed curves."""

import csv
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from budgetreg.analysis.claims import claim_row, parse_all
from budgetreg.config import catalogue
from budgetreg.figures.specification import Drawing
from budgetreg.reproduce.recipes import Recipe, published_points, read_recipe
from budgetreg.reproduce.reproduction import judged, receipt_of, results_in
from budgetreg.runs.series import read_folder
from tests.tiers import slow_but

RESULTS = Path(__file__).resolve().parent.parent.parent / "results"


def content_of(folder: Path) -> dict[str, Any]:
    """Return the content of the recipe of a folder of results, without its cells, for which Hydra is needed."""
    path = catalogue.conf_dir() / "experiment" / folder.parent.name / f"{folder.name}.yaml"
    recipe = OmegaConf.to_container(OmegaConf.load(path))
    assert isinstance(recipe, dict)
    return {str(key): value for key, value in recipe.items()}


RECIPES = [
    path.parent
    for path in sorted(RESULTS.glob("*/*/manifest.json"))
    if "recipe" in json.loads(path.read_text(encoding="utf-8"))
]


# Means in gonen_2016/spike equal the level of a claim, except for round-off.
QUICK = [RESULTS / name for name in ("gonen_2016/spike", "hazan_koren_2012/fig1")]


@pytest.mark.parametrize("folder", slow_but(QUICK, RECIPES), ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_verdicts_follow_from_the_committed_curves(folder: Path) -> None:
    with (folder / "claims.csv").open(newline="") as file:
        committed = list(csv.DictReader(file))
    name, recipe = f"{folder.parent.name}/{folder.name}", content_of(folder)
    drawing, claims = Drawing(published=published_points(name)), parse_all(recipe.get("claims", []))
    without_cells = Recipe(name, "", (), tuple(recipe.get("protocols", [])), drawing, (), claims)
    again = judged(without_cells, RESULTS, cache(read_folder))
    assert [{key: value for key, value in claim_row(result).items() if value} for result in again] == [
        {key: value for key, value in row.items() if value} for row in committed
    ]


@pytest.mark.slow
@pytest.mark.parametrize("folder", RECIPES, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_verdicts_and_figures_are_current(folder: Path) -> None:
    """Nothing is judged or drawn again by `make figures`; if this fails, it has to run, which takes two minutes."""
    recipe = read_recipe(f"{folder.parent.name}/{folder.name}")
    assert receipt_of(recipe, RESULTS).holds(results_in(folder))
