"""What other packages bring: objects declared by entry points, and the folders of their configuration files.

A package that declares a learner's family or a kind of data by an entry point may have a folder ``conf`` beside its
modules, laid out as ours (``conf/algo/<name>.yaml``, ...). Hydra finds what is in it after what is in ours.
"""

import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib import import_module, metadata, util
from pathlib import Path
from types import ModuleType
from typing import Any

from budgetreg.errors import ConfigError

LEARNERS, DATASETS = "budgetreg.learners", "budgetreg.datasets"
"""Groups of entry points: names of families and of kinds of data, with the objects that declare them."""


def declared(package: ModuleType, attribute: str, group: str) -> dict[str, Any]:
    """Collect by name what the modules of a package declare, then what the entry points of a group bring.

    Parameters
    ----------
    package : module
        Each of its modules may have the attribute: a tuple of objects with a ``name``.
    attribute : str
        Such as ``FAMILIES``.
    group : str
        `LEARNERS` or `DATASETS`.

    Raises
    ------
    ConfigError
        If what an entry point names cannot be imported, or brings a name that is taken.
    """
    found: dict[str, Any] = {}
    for module in sorted(one.name for one in pkgutil.iter_modules(package.__path__)):
        for own in getattr(import_module(f"{package.__name__}.{module}"), attribute, ()):
            found[own.name] = own
    for entry in _entries(group):
        try:
            brought = entry.load()
        except Exception as error:  # whatever the code of others raises when it is imported
            raise ConfigError(f"{entry.value}, an entry point of {_owner(entry)}, cannot be loaded: {error}") from error
        if brought.name in found:
            raise ConfigError(f"{entry.value}, an entry point of {_owner(entry)}: there is a {brought.name} already")
        found[brought.name] = brought
    return found


@cache
def conf_dirs() -> tuple[Path, ...]:
    """Return the configuration folders of packages that have entry points of ours, sorted; none of them is imported."""
    tops = sorted({entry.module.partition(".")[0] for group in (LEARNERS, DATASETS) for entry in _entries(group)})
    places = (Path(place) for top in tops for place in _places(top))
    return tuple(place / "conf" for place in places if (place / "conf").is_dir())


def _entries(group: str) -> Iterator[metadata.EntryPoint]:
    yield from sorted(metadata.entry_points(group=group), key=lambda entry: (entry.name, entry.value))


def _places(package: str) -> list[str]:
    spec = util.find_spec(package)
    return list(spec.submodule_search_locations or ()) if spec is not None else []


def _owner(entry: metadata.EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "a package"
