"""Composing configurations with Hydra, from our folder and those that other packages bring."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.config_loader import ConfigLoader
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.global_hydra import GlobalHydra
from hydra.core.plugins import Plugins
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig, OmegaConf

from budgetreg.config import catalogue, extensions


class ExtensionSearchPath(SearchPathPlugin):
    """Lets Hydra find the configuration files of other packages, after our own."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Append their folders."""
        for folder in extensions.conf_dirs():
            search_path.append("budgetreg-extension", str(folder))


@contextmanager
def composing() -> Iterator[ConfigLoader]:
    """Let `hydra.compose` work in the block, and yield the loader that it uses."""
    Plugins.instance().register(ExtensionSearchPath)  # doing so again changes nothing
    with initialize_config_dir(str(catalogue.conf_dir()), job_name="run", version_base="1.3"):
        yield GlobalHydra.instance().config_loader()


def composed(choice: Mapping[str, Any], *overrides: str) -> DictConfig:
    """Return the configuration that some choices make.

    Parameters
    ----------
    choice : mapping of str to Any
        Groups with the names of their options, and dotted keys with values. A key that does not exist is added:
        `budgetreg.protocol.configuration.validate` decides whether it may be there.
    *overrides : str
        Further overrides in Hydra's grammar.

    Raises
    ------
    hydra.errors.HydraException, omegaconf.errors.OmegaConfBaseException
        If Hydra cannot compose it.
    """
    groups = catalogue.groups()
    with composing():
        config = compose("config", [*overrides, *(f"{key}={value}" for key, value in choice.items() if key in groups)])
    _set({key: value for key, value in choice.items() if key not in groups}, config)
    return config


class Composer:
    """Composes the cells of a recipe or of another sweep, for which Hydra runs once.

    A cell is what Hydra composes of ``experiment=<name>`` and the choices of the cell. Hydra is slow, so it composes
    the recipe once. Where a cell chooses another file of a group, such as another learner, that file is merged with
    what the recipe sets in the group, as Hydra does. Only files that make use of other files are left to Hydra.

    Parameters
    ----------
    name : str, optional
        The recipe, such as ``hazan_koren_2012/fig1``; none by default.
    left_out : mapping of str to Any, optional
        Top-level keys that no cell needs, such as the claims, with the values that cells have instead.

    Attributes
    ----------
    base : DictConfig
        What Hydra composed without choices, with its own settings under ``hydra``.
    """

    def __init__(self, name: str | None = None, left_out: Mapping[str, Any] | None = None) -> None:
        self._words = [] if name is None else [f"experiment={name}"]
        self._left_out = left_out or {}
        with composing():
            self.base = compose("config", self._words, return_hydra_config=True)
        self._recipe = _parsed("{}" if name is None else catalogue.text("experiment", name))
        self._bases: dict[tuple[tuple[str, str], ...], Any] = {(): self._without(self.base)}

    def __call__(self, choice: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the configuration of a cell; the parameter and the exceptions are those of `composed`."""
        groups = catalogue.groups()
        files = tuple((key, str(value)) for key, value in choice.items() if key in groups)
        if files not in self._bases:
            self._bases[files] = self._chosen(dict(files))
        base = self._bases[files]
        values = {key: value for key, value in choice.items() if key not in groups}
        if _needs_omegaconf(base) or any(_sets_more(key, value) for key, value in values.items()):
            config = OmegaConf.create(base)
            _set(values, config)
            return config
        tree = _copied(base)
        for key, value in values.items():
            _put(tree, key, value)
        return tree

    def _chosen(self, files: Mapping[str, str]) -> Any:
        """Return the recipe with other files of some groups, as plain containers."""
        known = all(catalogue.has_option(group, option) for group, option in files.items())  # else Hydra raises
        texts = {group: catalogue.text(group, option) for group, option in files.items()} if known else {}
        if not known or not _overrides_only(self._recipe) or not all(map(_stands_alone, texts.values())):
            return self._without(composed(files, *self._words))
        overlay = self._recipe
        merged = {group: OmegaConf.merge(_parsed(text), overlay.get(group) or {}) for group, text in texts.items()}
        return {**self._bases[()], **{group: OmegaConf.to_container(section) for group, section in merged.items()}}

    def _without(self, config: DictConfig) -> Any:
        kept = OmegaConf.masked_copy(config, [str(key) for key in config if key not in (*self._left_out, "hydra")])
        tree: Any = OmegaConf.to_container(kept)
        return {**tree, **self._left_out}


def _set(values: Mapping[str, Any], config: DictConfig) -> None:
    for key, value in values.items():
        OmegaConf.update(config, key, value, force_add=True)


def _needs_omegaconf(node: Any) -> bool:
    """Whether a tree refers to other keys or lacks a value, which only OmegaConf can tell."""
    if isinstance(node, dict):
        return any(_needs_omegaconf(value) for value in node.values())
    if isinstance(node, list):
        return any(map(_needs_omegaconf, node))
    return isinstance(node, str) and ("${" in node or node == "???")


def _sets_more(key: str, value: Any) -> bool:
    """Whether setting a key is more than replacing one value."""
    return "[" in key or isinstance(value, dict) or _needs_omegaconf(value)


def _copied(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _copied(value) for key, value in node.items()}
    return list(map(_copied, node)) if isinstance(node, list) else node


def _put(tree: dict[str, Any], key: str, value: Any) -> None:
    """Set a dotted key of a tree, as `OmegaConf.update` does."""
    *path, last = key.split(".")
    for step in path:
        if not isinstance(tree.get(step), dict):
            tree[step] = {}
        tree = tree[step]
    tree[last] = value


@cache
def _parsed(text: str) -> DictConfig:
    """Return the content of a configuration file; do not change it."""
    content = OmegaConf.create(text)
    assert isinstance(content, DictConfig)
    return content


def _stands_alone(text: str) -> bool:
    """Whether a file of a group is that group's section, with nothing taken from other files."""
    return "@package" not in text and "defaults" not in _parsed(text)


def _overrides_only(recipe: DictConfig) -> bool:
    """Whether a recipe takes nothing from other files but the options of groups."""
    entries = recipe.get("defaults", [])
    return all(isinstance(entry, DictConfig) and str(*entry).startswith("override /") for entry in entries)
