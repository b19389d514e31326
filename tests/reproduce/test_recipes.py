"""The recipes: what they run and leave out, what their claims are about, and what figures of subspaces show."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from budgetreg.common.errors import ConfigError
from budgetreg.config import catalogue
from budgetreg.config.composition import combinations
from budgetreg.config.nested import flatten
from budgetreg.figures import plot
from budgetreg.figures.points import scalings_of
from budgetreg.figures.specification import EXAMPLES, EXCESS_LOSS, Drawing, worst
from budgetreg.figures.specification import parse as parse_drawing
from budgetreg.reproduce import recipes
from budgetreg.reproduce.gallery import read_findings
from budgetreg.runs.series import Series
from tests.tiers import slow_but

OURS = {"aefa", "aemr"}
FOLDERS = {*OURS, "field", "gonen_2016"}
NAMES = [name for name in recipes.names() if name.partition("/")[0] in FOLDERS]


@pytest.fixture(scope="module", params=slow_but(("aemr/digits", "gonen_2016/collapse"), NAMES))
def recipe(request: pytest.FixtureRequest) -> recipes.Recipe:
    return recipes.read_recipe(request.param, {"dataset.root": "somewhere"})


def values_of(cell: recipes.Cell) -> dict[str, Any]:
    """Return what a claim may say of a cell."""
    config = cell.config
    return {**flatten(config.resolved), "algo": config.algo.name, "k": config.k}


def test_each_folder_of_recipes_has_findings_and_ours_are_marked() -> None:
    findings = {folder: read_findings(folder) for folder in {name.partition("/")[0] for name in recipes.names()}}
    assert {folder for folder, found in findings.items() if found.ours} == OURS
    assert all(found.found and found.title != folder for folder, found in findings.items())
    assert len({found.place for found in findings.values()}) == len(findings)
    known = set(recipes.names())
    assert {f"{folder}/{name}" for folder, found in findings.items() for name in found.each_preset} <= known


def test_no_cell_of_a_recipe_is_refused_or_run_twice(recipe: recipes.Recipe) -> None:
    for cell in recipe.cells:
        if not cell.config.chooses_k:
            cell.config.algo.split_budget(cell.config.k)
        coins = cell.config.dataset.options.get("n_coins")
        assert coins in (None, getattr(cell.config.algo, "n_components", None))
    assert len({cell.digest for cell in recipe.cells}) == len(recipe.cells)


def test_each_claim_is_about_learners_that_are_run(recipe: recipes.Recipe) -> None:
    run = list(map(values_of, recipe.cells))
    assert recipe.claims
    for claim in recipe.claims:
        for role in filter(None, (claim.options.get("a"), claim.options.get("b"))):
            wanted = {**claim.options["where"], **(role if isinstance(role, dict) else {"algo": role})}
            assert any(all(values.get(key) == value for key, value in wanted.items()) for values in run), claim.id


def series(values: np.ndarray, d: int = 8, algo: str = "popca", **dataset: object) -> Series:
    """Return a curve of excess losses, (repetitions, checkpoints), at 10, 20, 40, ... examples and k = 2."""
    examples = 10 * 2 ** np.arange(values.shape[1])
    points = pd.DataFrame(
        [
            {"repetition": i, "examples": m, "attributes": 2 * m, "excess_loss": v, "relative_error": v}
            for i, row in enumerate(values)
            for m, v in zip(examples, row, strict=True)
        ]
    ).assign(principal_angle=0.0)
    config = {
        "algo": {"name": algo, "n_components": 1},
        "dataset": {"name": "coins", "kind": "coins", **dataset},
        "axis": "examples",
    }
    return Series(f"coins_d{d}", algo, 2, "", algo, points, pd.DataFrame(), config, d, Path(), 1000)


def test_a_recipe_leaves_out_combinations_of_its_own_sweep_only() -> None:
    sweep = {"algo": "popca,pca", "k": "1,2,8"}
    omit = [{"algo": "popca", "k": 1}, {"algo": "pca", "k": [1, 2]}]
    left = combinations(sweep, [], omit)
    assert [(choice["algo"], choice["k"]) for choice in left] == [("popca", 2), ("popca", 8), ("pca", 8)]
    with pytest.raises(ConfigError, match=r"^omit: each must have keys of the sweep \(algo, k\)$"):
        combinations(sweep, [], [{"dataset.d": 1}])


def test_the_worst_of_several_distributions_is_taken_at_each_number_of_examples() -> None:
    low, high = np.array([[0.3, 0.1, 0.2], [0.1, 0.1, 0.2]]), np.array([[0.1, 0.4, 0.0], [0.2, 0.4, 0.0]])
    several = [series(low, alpha=0.1), series(high, alpha=0.2), series(high / 2, d=16, alpha=0.2, n=9)]
    merged, other = worst(several, "dataset.alpha", "excess_loss")
    assert merged.points.groupby("examples")["excess_loss"].mean().tolist() == pytest.approx([0.2, 0.4, 0.2])
    assert merged.repetitions == 2
    assert "alpha" not in merged.config["dataset"]
    assert other.points["excess_loss"].tolist() == [0.05, 0.1, 0.2, 0.2, 0.0, 0.0]


@pytest.mark.usefixtures("sketched")
def test_a_trend_shows_the_examples_needed_to_reach_a_level(tmp_path: Path) -> None:
    falling = np.array([[0.8, 0.4, 0.2, 0.1]] * 6)
    several = [series(falling), series(np.roll(falling, 1, axis=1), d=16), series(falling + 1, d=32)]
    drawing = Drawing(kind="scaling", over="d", level=0.3, panels=["dataset.kind"])
    (points,) = scalings_of(several, drawing, EXCESS_LOSS, EXAMPLES).values()
    # Halfway between 20 and 40 examples on a log axis; the second curve begins below the level.
    assert {x: y.value for x, y in points.items()} == pytest.approx({8: 20 * 2**0.5, 16: 0, 32: np.inf})
    (ends,) = scalings_of(several, replace(drawing, level=None), EXCESS_LOSS, EXAMPLES).values()
    assert [y.value for y in ends.values()] == pytest.approx([0.1, 0.2, 1.1])

    paths = plot(several, tmp_path, "scaling", drawing)
    assert [path.name for path in paths] == ["scaling.png", "scaling.pdf", "scaling.txt"]
    text = " ".join(paths[2].read_text().split())
    assert "training examples until the excess loss is 0.3 against attributes of an example, d" in text
    assert "before the first checkpoint: POPCA at 16, POPCA at 32" in text


def test_a_trend_needs_its_variable() -> None:
    assert parse_drawing({"kind": "scaling", "over": "k"}).level is None
    for options in ({"kind": "scaling"}, {"over": "k"}):
        with pytest.raises(ConfigError, match=r"^figure.over: "):
            parse_drawing(options)


def test_published_points_lie_beside_a_recipe_of_another_package_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "experiment" / "theirs"
    folder.mkdir(parents=True)
    (folder / "published.csv").write_text("figure,algo,axis,x,value\nfig1,aelr,attributes,100,0.5\n")
    monkeypatch.setattr(catalogue, "added_conf_dirs", lambda: [tmp_path])
    ((curve, (x, value)),) = recipes.published_points("theirs/fig1").items()
    assert (curve, x.tolist(), value.tolist()) == (("aelr", "attributes"), [100.0], [0.5])
