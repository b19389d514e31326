"""The recipes of our own learners: what they run, and what their claims are about."""

from typing import Any

import pytest

from budgetreg.config.nested import flatten
from budgetreg.reproduce import gallery, recipes
from tests.tiers import slow_but

OURS = ("aefa", "aemr")
NAMES = [name for name in recipes.names() if name.partition("/")[0] in OURS]


@pytest.fixture(scope="module", params=slow_but(("aefa/mnist", "aemr/digits"), NAMES))
def recipe(request: pytest.FixtureRequest) -> recipes.Recipe:
    return recipes.read_recipe(request.param, {"dataset.root": "somewhere"})


def values_of(cell: recipes.Cell) -> dict[str, Any]:
    """Return what a claim may say of a cell."""
    config = cell.config
    return {**flatten(config.resolved), "algo": config.algo.name, "k": config.k}


def test_each_learner_has_a_recipe_and_a_heading_of_its_own() -> None:
    assert {name.partition("/")[0] for name in NAMES} == set(OURS) == set(gallery._OURS)


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
