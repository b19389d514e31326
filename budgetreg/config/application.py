"""Hydra as the front of ``budgetreg run``: words of a command line become calls of a task, one for each configuration.

Only Hydra's public parts are used: the compose API, the loader that it sets up, and its sweepers, launchers and shell
completions, which are plugins.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from hydra.core.config_loader import ConfigLoader
from hydra.core.plugins import Plugins
from hydra.core.utils import run_job
from hydra.experimental.callback import Callback
from hydra.plugins.completion_plugin import CompletionPlugin
from hydra.types import HydraContext, RunMode
from omegaconf import DictConfig, OmegaConf

from budgetreg.config.composition import composing, for_hydra
from budgetreg.errors import ConfigError

_CONFIG = "config"  # the file of the conf folder with which every composition begins
Task = Callable[[DictConfig], Any]


def run_one(words: Sequence[str], task: Task) -> Any:
    """Call a task for the configuration that some overrides make, and return what it returns.

    Parameters
    ----------
    words : sequence of str
        Overrides in Hydra's grammar.
    task : callable
        Called with the configuration, while `HydraConfig` holds Hydra's own part of it.

    Raises
    ------
    Exception
        Whatever Hydra raises.
    """
    with composing() as loader:
        config, context = _loaded(loader, words, RunMode.RUN)
        job = run_job(task, config, job_dir_key="hydra.run.dir", job_subdir_key=None, hydra_context=context)
    return job.return_value  # or raises what the task raised


def run_sweep(words: Sequence[str], task: Task, folder: Path) -> Iterator[Any]:
    """Call a task for each configuration of a sweep, perhaps in other processes, and yield what it returns.

    Parameters
    ----------
    words, task
        As for `run_one`; words such as ``k=2,4`` stand for several configurations, and a recipe among them may ask for
        a sweep, too.
    folder : Path
        Where Hydra and its launchers leave files.

    Raises
    ------
    Exception
        Whatever Hydra and its plugins raise.
    """
    with composing() as loader:
        config, context = _loaded(loader, [f"hydra.sweep.dir={for_hydra(str(folder))}", *words], RunMode.MULTIRUN)
        loader.load_sweep_config = _each_cell_once(loader.load_sweep_config)  # type: ignore[method-assign]
        plugins = Plugins.instance()
        sweeper = plugins.instantiate_sweeper(config=config, hydra_context=context, task_function=task)
        batches: Any = sweeper.sweep(arguments=list(config.hydra.overrides.task))
    for batch in batches:
        yield from (job.return_value for job in batch)


def _loaded(loader: ConfigLoader, words: Sequence[str], mode: RunMode) -> tuple[DictConfig, HydraContext]:
    config = loader.load_configuration(_CONFIG, [*words, f"hydra.mode={mode.name}"], mode)
    return config, HydraContext(loader, callbacks=cast(Any, Callback()))  # callbacks that do nothing


def _each_cell_once(compose: Callable[..., DictConfig]) -> Callable[..., DictConfig]:
    """Return a function that composes each cell of a sweep once: Hydra does it to validate it, and again to run it."""
    validated: dict[tuple[str, ...], DictConfig] = {}

    def composed(master_config: DictConfig, sweep_overrides: Sequence[str]) -> DictConfig:
        cell = tuple(sweep_overrides)
        if cell in validated:
            return validated.pop(cell)  # the job changes it
        validated[cell] = compose(master_config, list(sweep_overrides))
        return validated[cell]

    return composed


def show(words: Sequence[str]) -> None:
    """Print the configuration that some overrides in Hydra's grammar make, without Hydra's own part."""
    with composing() as loader:
        config = loader.load_configuration(_CONFIG, list(words), RunMode.RUN)
    print(OmegaConf.to_yaml(OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])), end="")


def complete(words: Sequence[str]) -> None:
    """Answer a shell: print the script that installs completion, or what the line in COMP_LINE can become.

    Parameters
    ----------
    words : sequence of str
        What is asked for, install, uninstall or query, and the name of the shell: ``install=bash``.

    Raises
    ------
    ConfigError
        If this cannot be asked for, or Hydra knows no such shell.
    """
    action, _, shell = " ".join(words).partition("=")
    if action not in ("install", "uninstall", "query") or not shell:
        raise ConfigError("-sc needs install=SHELL or uninstall=SHELL, such as install=bash (see budgetreg run --help)")
    with composing() as loader:
        discovered: Any = Plugins.instance().discover(CompletionPlugin)
        plugins = {plugin.provides(): plugin for plugin in discovered}
        if shell not in plugins:
            raise ConfigError(f"-sc {action}={shell}: no such shell; choices: {', '.join(sorted(plugins))}")
        if action != "query" and sys.argv[0].endswith(".py"):  # the script that is printed names this program
            raise ConfigError(f"-sc {action}={shell}: call budgetreg by that name, python -m cannot be completed")
        plugin = plugins[shell](loader)
        plugin.query(_CONFIG) if action == "query" else getattr(plugin, action)()


def asks_for_sweep(words: Sequence[str]) -> bool:
    """Return whether a recipe among some words, or a word, asks for a sweep; not if they cannot be composed."""
    if not any(word.lstrip("+").startswith(("experiment", "hydra.mode")) for word in words):
        return False  # without the tenth of a second that composing takes
    try:
        with composing() as loader:
            config = loader.load_configuration(_CONFIG, list(words), RunMode.MULTIRUN, validate_sweep_overrides=False)
    except Exception:  # whatever is wrong is raised again when the configuration is composed to be run
        return False
    return bool(config.hydra.mode == RunMode.MULTIRUN)
