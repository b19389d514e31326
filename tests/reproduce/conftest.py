"""A toy recipe, and a folder in which it is reproduced."""

import shutil
from pathlib import Path

import pytest

from budgetreg.cli.app import main
from budgetreg.config import catalogue
from tests.sketches import sketch

RECIPE = """# @package _global_
# A toy: AELR against ridge on handwritten digits
defaults:
  - override /dataset: digits_3v5
  - override /tuning: fixed
  - override /backend: sequential

experiment: paper/toy
repetitions: 5
checkpoints: [0.5, 1]
tuning: {B: 4, eta: 0.02}
protocols:
  literal: {}
  paper: {dataset: {center: full}, learners: {aelr: {split: even}}}
figure: {panels: protocol, also: {paid: bills}, x_scale: linear, names: {ridge: full rows}}
differs: [the digits are smaller]
claims:
  - {id: ridge_below, says: ridge is better, kind: below, a: ridge, b: aelr}
  - {id: level, says: it ends well, kind: near, a: aelr, value: 0.8, tolerance: 0.3, where: {protocol: paper}}
hydra:
  mode: MULTIRUN
  sweeper: {params: {algo: "aelr,ridge"}}
"""


def work_in(place: Path, patch: pytest.MonkeyPatch) -> Path:
    """Change to a folder, use the configuration in it, and return the file of its toy recipe."""
    patch.setattr(catalogue, "conf_dir", lambda: place / "conf")
    patch.setenv("XDG_CACHE_HOME", str(place / "cache"))
    patch.chdir(place)
    return place / "conf" / "experiment" / "paper" / "toy.yaml"


def write_recipe(place: Path, patch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with a configuration that has the toy recipe; return the recipe's file."""
    shutil.copytree(catalogue.conf_dir(), place / "conf")
    file = work_in(place, patch)
    file.parent.mkdir()
    file.write_text(RECIPE)
    (file.parent / "published.csv").write_text("figure,algo,axis,x,value\ntoy,aelr,attributes,700,0.8\n")
    return file


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder without results; return the recipe's file."""
    return write_recipe(tmp_path, monkeypatch)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which the toy recipe is reproduced."""
    place = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        write_recipe(place, patch)
        sketch(patch)
        assert main(["reproduce", "paper/toy"]) == 0
    return place


@pytest.fixture
def reproduced(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sketched: None) -> Path:
    """Work in a copy of that folder; return the recipe's file."""
    shutil.copytree(finished, tmp_path / "copy")
    return work_in(tmp_path / "copy", monkeypatch)
