"""A recipe is composed once; its cells equal what Hydra itself composes."""

from pathlib import Path
from typing import Any

import pytest
from hydra import compose
from omegaconf import DictConfig, OmegaConf

from budgetreg.config import catalogue, composition
from budgetreg.config.composition import Composer, composing


def plain(config: Any) -> Any:
    return OmegaConf.to_container(config) if isinstance(config, DictConfig) else config


def by_hydra(name: str, choice: dict[str, Any]) -> Any:
    groups = catalogue.groups()
    words = [f"experiment={name}", *(f"{key}={value}" for key, value in choice.items() if key in groups)]
    with composing():
        config = compose("config", words)
    for key in choice.keys() - set(groups):
        OmegaConf.update(config, key, choice[key], force_add=True)
    return plain(config)


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with our learners and data sets, to which a test adds recipes and options."""
    folder = tmp_path / "conf"
    for path in catalogue.conf_dir().rglob("*.yaml"):
        target = folder / path.relative_to(catalogue.conf_dir())
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(path)
    monkeypatch.setattr(catalogue, "conf_dir", lambda: folder)
    return folder


@pytest.mark.parametrize(
    ("name", "choice"),
    [
        ("hazan_koren_2012/fig1", {"algo": "aerr", "protocol": "paper"}),
        pytest.param("gonen_2016/spike", {"algo": "popca_importance", "dataset.d": 64}, marks=pytest.mark.slow),
        ("aemr/power_law", {"algo": "aemr", "dataset": "power_law_stream", "dataset.alpha": -0.5, "tuning": "theory"}),
        ("aemr/tables", {"algo": "ridge", "dataset": "file", "checkpoints": [0.1, 1], "learners.aemr.n_factors": 3}),
        pytest.param("aemr/mnist", {"dataset": "digits_3v5", "k": "${seed}"}, marks=pytest.mark.slow),
        pytest.param(
            "cesa_bianchi_2010/fig2",
            {"backend": "dask", "dataset.split": "random", "new.key": {"deep": 1}},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_cell_equals_what_hydra_composes(name: str, choice: dict[str, Any]) -> None:
    cell = plain(Composer(name)(choice))
    expected = by_hydra(name, choice)
    assert cell == expected
    assert list(cell) == list(expected)


@pytest.mark.parametrize(
    ("recipe", "option"),
    [
        ("defaults: [{override /algo: aer}]\nalgo: {split: even}\nk: 3", "name: other\nsplit: 1\nlate: ${k}"),
        ("defaults: [toy/base, _self_]\nk: 3", "name: other\nsplit: 1"),
        ("defaults: [{override /algo: aer}]", "# @package _global_\nk: 9\nalgo: {name: other}"),
        ("defaults: [{override /algo: aer}]", "defaults: [aelr, _self_]\nname: other"),
    ],
    ids=["overlay", "recipe with a base", "option outside its section", "option with a base"],
)
def test_files_that_use_other_files_are_composed_as_hydra_does(conf: Path, recipe: str, option: str) -> None:
    (conf / "experiment" / "toy").mkdir(parents=True)
    (conf / "experiment" / "toy" / "base.yaml").write_text("# @package _global_\nalgo: {split: even}\nseed: 5\n")
    (conf / "experiment" / "toy" / "it.yaml").write_text(f"# @package _global_\n{recipe}\n")
    (conf / "algo" / "other.yaml").write_text(option)
    composer = Composer("toy/it")
    for choice in ({"algo": "other", "k": 2}, {"algo": "aer"}):
        assert plain(composer(choice)) == by_hydra("toy/it", choice)


def test_a_cell_can_be_changed_without_changing_the_next() -> None:
    composer = Composer("hazan_koren_2012/fig1")
    first: Any = composer({"algo": "aelr"})
    first["algo"]["grid"]["B"].append(0)
    assert plain(composer({"algo": "aelr"})) == by_hydra("hazan_koren_2012/fig1", {"algo": "aelr"})


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the list of what Hydra composes from now on."""
    noted: list[Any] = []
    monkeypatch.setattr(composition, "compose", lambda *where, **how: noted.append(where) or compose(*where, **how))
    return noted


def test_hydra_runs_once_for_a_recipe(conf: Path, calls: list[Any]) -> None:
    (conf / "experiment").mkdir()
    (conf / "experiment" / "toy.yaml").write_text("# @package _global_\ndefaults: [{override /algo: aemr}]\nk: 3")
    composer = Composer("toy")
    for algo in ("aemr", "aeml", "aelr", "ridge"):
        for k in (4, 5, 16):
            composer({"algo": algo, "k": k})
    assert len(calls) == 1


def test_hydra_runs_again_where_a_file_has_changed(conf: Path, calls: list[Any]) -> None:
    option = conf / "algo" / "mine.yaml"
    option.write_text("name: mine")
    (conf / "algo" / ".#mine.yaml").symlink_to("nowhere")
    first: Any = Composer()({"algo": "mine", "k": 7})
    first["algo"]["name"] = "changed by its owner"
    assert Composer()({"algo": "mine"})["algo"]["name"] == "mine"
    assert len(calls) == 1
    option.write_text("name: other")
    assert Composer()({"algo": "mine"})["algo"]["name"] == "other"
    assert len(calls) == 2
