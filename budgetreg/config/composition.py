"""Composing configurations with Hydra, from our folder and those that other packages bring."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hydra import compose, initialize_config_dir
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.plugins import Plugins
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig

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


def composed(overrides: Sequence[str] = ()) -> DictConfig:
    """Compose one configuration from overrides as on the command line.

    Raises
    ------
    hydra.errors.HydraException, omegaconf.errors.OmegaConfBaseException
        If they cannot be composed.
    """
    with composing():
        return compose("config", overrides=list(overrides))
