"""Recipes: the runs of a figure, how it is drawn, what differs from the paper, and which claims are judged."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from budgetreg.analysis.claims import Claim, Published, parse_all
from budgetreg.common.errors import ConfigError, nearest
from budgetreg.config import catalogue
from budgetreg.config.composition import Composer, combinations
from budgetreg.config.options import FORMER, TOP, checked
from budgetreg.figures.specification import Drawing
from budgetreg.figures.specification import parse as parse_drawing
from budgetreg.protocol.configuration import Config, validate
from budgetreg.runs.tables import rows_of

PUBLISHED = "published.csv"


@dataclass(frozen=True)
class Cell:
    """One run of a recipe.

    Attributes
    ----------
    name : str
        The keys that it sets, such as ``algo=aer,protocol=paper``.
    config : Config
    """

    name: str
    config: Config

    @cached_property
    def digest(self) -> str:
        """The digest of everything in the configuration that can change a result."""
        return self.config.digest()


@dataclass(frozen=True)
class Recipe:
    """A recipe, read and checked.

    Attributes
    ----------
    name : str
        Such as ``hazan_koren_2012/fig1``.
    title : str
        The first comment in its file.
    cells : tuple of Cell
        Its runs.
    protocols : tuple of str
        Its presets; empty if it has none.
    drawing : Drawing
        How its figure is drawn.
    differs : tuple of str
        What differs from the paper, and why.
    claims : tuple of Claim
    """

    name: str
    title: str
    cells: tuple[Cell, ...]
    protocols: tuple[str, ...]
    drawing: Drawing
    differs: tuple[str, ...]
    claims: tuple[Claim, ...]


def names() -> list[str]:
    """Return the names of all recipes."""
    return catalogue.options("experiment")


def read_recipe(name: str, given: Mapping[str, Any] | None = None) -> Recipe:
    """Read a recipe, and expand its sweep and presets into cells.

    Parameters
    ----------
    name : str
        Such as ``hazan_koren_2012/fig1``.
    given : mapping, optional
        Keys that change no result, such as ``n_jobs``; ``dataset.root`` is set in the cells that have the key.

    Raises
    ------
    ConfigError
        If there is no such recipe, or it has a mistake; the message names the recipe.
    """
    if name in FORMER["experiment"]:
        raise ConfigError(f"{name}: is now {FORMER['experiment'][name]}")
    if name not in names():
        raise ConfigError(f"{name}: no such recipe{nearest(name, names())}; recipes: {', '.join(names())}")
    try:
        return _read(name, given or {})
    except (ConfigError, HydraException, OmegaConfBaseException, YAMLError) as error:
        raise ConfigError(f"{name}: {' '.join(str(error).split())}") from error


def _read(name: str, given: Mapping[str, Any]) -> Recipe:
    composer = Composer(name)
    keys = ("protocols", "omit", "figure", "differs", "claims")
    content: dict[str, Any] = {key: OmegaConf.to_container(composer.base[key]) for key in keys}
    checked(content, {key: TOP[key] for key in keys}, "")
    protocols = tuple(map(str, content["protocols"]))
    choices = combinations(composer.base.hydra.sweeper.params or {}, protocols, content["omit"])
    cells = tuple(_cells(composer, choices, given))
    return Recipe(
        name=name,
        title=catalogue.headline("experiment", name),
        cells=cells,
        protocols=protocols,
        drawing=replace(parse_drawing(content["figure"]), published=published_points(name)),
        differs=tuple(map(str, content["differs"])),
        claims=parse_all(content["claims"]),
    )


def _cells(composer: Composer, choices: Sequence[Mapping[str, Any]], given: Mapping[str, Any]) -> Iterator[Cell]:
    everywhere = {key: value for key, value in given.items() if key != "dataset.root"}
    for choice in choices:
        config = composer({**choice, **everywhere})
        if "root" in config["dataset"]:
            config = composer({**choice, **given})
        name = ",".join(f"{key}={value}" for key, value in choice.items()).replace(" ", "")
        yield Cell(name, validate(config, choice))


def published_points(name: str) -> Published:
    """Read the published points of a figure from the file beside its recipe."""
    folder, _, figure = name.rpartition("/")
    paths = [conf / "experiment" / folder / PUBLISHED for conf in catalogue.conf_dirs()]
    points: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for path in [path for path in paths if path.exists()][:1]:
        for row in rows_of(path.read_bytes()):
            if row["figure"] == figure:
                points.setdefault((row["algo"], row["axis"]), []).append((float(row["x"]), float(row["value"])))
    return {curve: (np.array(pairs).T[0], np.array(pairs).T[1]) for curve, pairs in points.items()}
