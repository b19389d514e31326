"""The recipes of our own learners: what they run, and that their claims speak of it."""

import pytest

from budgetreg.reproduce import gallery, recipes

OURS = ("aefa", "aeml")
NAMES = [name for name in recipes.names() if name.partition("/")[0] in OURS]


@pytest.fixture(scope="module", params=NAMES)
def recipe(request: pytest.FixtureRequest) -> recipes.Recipe:
    return recipes.read_recipe(request.param, {"dataset.root": "somewhere"})


def test_each_learner_has_a_recipe_and_a_heading_of_its_own() -> None:
    assert {name.partition("/")[0] for name in NAMES} == set(OURS) == set(gallery._OURS)


def test_no_cell_of_a_recipe_is_refused_or_run_twice(recipe: recipes.Recipe) -> None:
    for cell in recipe.cells:
        cell.config.algo.divide(cell.config.k)
    assert len({cell.digest for cell in recipe.cells}) == len(recipe.cells)


def test_each_claim_speaks_of_learners_that_are_run(recipe: recipes.Recipe) -> None:
    run = [
        {
            "algo": cell.config.algo.name,
            "k": cell.config.k,
            "dataset.name": cell.config.dataset.name,
            "protocol": next(
                (own.partition("=")[2] for own in cell.name.split(",") if own.startswith("protocol=")), None
            ),
        }
        for cell in recipe.cells
    ]
    assert recipe.claims
    for claim in recipe.claims:
        for told in filter(None, (claim.options.get("a"), claim.options.get("b"))):
            wanted = {**claim.options["where"], **(told if isinstance(told, dict) else {"algo": told})}
            assert any(wanted.items() <= own.items() for own in run), claim.id
