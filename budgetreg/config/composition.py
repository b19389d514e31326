"""Composing configurations with Hydra, from our folder and those that other packages bring."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.config_search_path import ConfigSearchPath
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


def register() -> None:
    """Make `ExtensionSearchPath` known to Hydra; doing so again changes nothing."""
    Plugins.instance().register(ExtensionSearchPath)


@contextmanager
def composing() -> Iterator[None]:
    """Let `hydra.compose` work in the block; entering it takes longer than to compose."""
    register()
    with initialize_config_dir(str(catalogue.conf_dir()), version_base="1.3"):
        yield


class Composer:
    """Composes configurations from choices, in a block of `composing`.

    Hydra is slow, and is asked once for each choice of files.

    Parameters
    ----------
    *words : str
        Overrides that all have, such as ``experiment=hazan_koren_2012/fig1``.
    """

    def __init__(self, *words: str) -> None:
        self._words = words
        self._composed: dict[tuple[str, ...], DictConfig] = {}

    def __call__(self, choice: Mapping[str, Any]) -> DictConfig:
        """Compose one.

        Parameters
        ----------
        choice : mapping of str to Any
            Groups with the names of their options, and dotted keys with values. A key that is not there is added:
            whether it may be is for `budgetreg.protocol.configuration.validate` to say.

        Raises
        ------
        hydra.errors.HydraException, omegaconf.errors.OmegaConfBaseException
            If they cannot be composed.
        """
        files = tuple(f"{key}={value}" for key, value in choice.items() if key in catalogue.groups())
        if files not in self._composed:
            self._composed[files] = compose("config", [*self._words, *files])
        config = self._composed[files].copy()
        for key, value in choice.items():
            if key not in catalogue.groups():
                OmegaConf.update(config, key, value, force_add=True)
        return config
