"""The committed results: their verdicts are those that their curves give, so that a regression of either shows."""

import csv
import json
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from budgetreg import catalogue
from budgetreg.claims import parse
from budgetreg.figure import Drawing
from budgetreg.findings import claim_row
from budgetreg.recipes import Recipe, published_points
from budgetreg.reproduce import judged

RESULTS = Path(__file__).resolve().parent.parent / "results"
FIGURES = [
    path.parent
    for path in sorted(RESULTS.glob("*/*/manifest.json"))
    if "recipe" in json.loads(path.read_text(encoding="utf-8")) and (path.parent / "curves.csv").exists()
]


def as_told(name: str) -> Recipe:
    """A recipe without its cells, which only Hydra can tell."""
    told = OmegaConf.to_container(OmegaConf.load(catalogue.conf_dir() / "experiment" / f"{name}.yaml"))
    assert isinstance(told, dict)
    claims = tuple(map(parse, told.get("claims", [])))
    return Recipe(name, "", (), tuple(told.get("protocols", [])), Drawing(), (), claims, published_points(name))


@pytest.mark.parametrize("folder", FIGURES, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_verdicts_follow_from_the_committed_curves(folder: Path) -> None:
    with (folder / "claims.csv").open(newline="") as file:
        committed = list(csv.DictReader(file))
    found = list(map(claim_row, judged(as_told(f"{folder.parent.name}/{folder.name}"), RESULTS)))
    for row, new in zip(committed, found, strict=True):
        assert [row[key] for key in ("claim", "protocol", "verdict")] == [
            new[key] for key in ("claim", "protocol", "verdict")
        ]
        for key in ("estimate", "interval_low", "interval_high"):
            assert (row[key] == "") == (new[key] == "")
            if row[key]:
                assert float(new[key]) == pytest.approx(float(row[key]), rel=2e-3, abs=1e-6)
