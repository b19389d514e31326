"""The recipes of our own learners: what they run, and what their claims are about."""

from typing import Any

import pytest

from budgetreg.config.nested import flatten
from budgetreg.reproduce import recipes
from budgetreg.reproduce.gallery import read_findings
from tests.tiers import slow_but

OURS = ("aefa", "aemr")
AS_OURS = (*OURS, "field")
NAMES = [name for name in recipes.names() if name.partition("/")[0] in AS_OURS]


@pytest.fixture(scope="module", params=slow_but(("aefa/mnist", "aemr/digits"), NAMES))
def recipe(request: pytest.FixtureRequest) -> recipes.Recipe:
    return recipes.read_recipe(request.param, {"dataset.root": "somewhere"})


def values_of(cell: recipes.Cell) -> dict[str, Any]:
    """Return what a claim may say of a cell."""
    config = cell.config
    return {**flatten(config.resolved), "algo": config.algo.name, "k": config.k}


def test_each_folder_of_recipes_has_findings_and_ours_are_marked() -> None:
    findings = {folder: read_findings(folder) for folder in {name.partition("/")[0] for name in recipes.names()}}
    assert {folder for folder, found in findings.items() if found.ours} == set(OURS)
    assert all(found.found and found.title != folder for folder, found in findings.items())
    assert len({found.place for found in findings.values()}) == len(findings)
    known = set(recipes.names())
    assert {f"{folder}/{name}" for folder, found in findings.items() for name in found.each_preset} <= known


def test_no_cell_of_a_recipe_is_refused_or_run_twice(recipe: recipes.Recipe) -> None:
    for cell in recipe.cells:
        if not cell.config.chooses_k:
            cell.config.algo.split_budget(cell.config.k)
    assert len({cell.digest for cell in recipe.cells}) == len(recipe.cells)


def test_each_claim_is_about_learners_that_are_run(recipe: recipes.Recipe) -> None:
    run = list(map(values_of, recipe.cells))
    assert recipe.claims
    for claim in recipe.claims:
        for role in filter(None, (claim.options.get("a"), claim.options.get("b"))):
            wanted = {**claim.options["where"], **(role if isinstance(role, dict) else {"algo": role})}
            assert any(all(values.get(key) == value for key, value in wanted.items()) for values in run), claim.id
