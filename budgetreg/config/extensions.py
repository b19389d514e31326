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
from typing import Protocol, TypeVar

from budgetreg.errors import ConfigError

LEARNERS, DATASETS = "budgetreg.learners", "budgetreg.datasets"
"""Groups of entry points: names of families and of kinds of data, with the objects that declare them."""


class Named(Protocol):
    """What is declared under a name."""

    @property
    def name(self) -> str:
        """The name."""


Declaration = TypeVar("Declaration", bound=Named)


def declared(package: ModuleType, attribute: str, group: str, declaration: type[Declaration]) -> dict[str, Declaration]:
    """Collect by name what the modules of a package declare, then what the entry points of a group bring.

    Parameters
    ----------
    package : module
        Each of its modules may have the attribute: a tuple of objects with a ``name``.
    attribute : str
        Such as ``FAMILIES``.
    group : str
        `LEARNERS` or `DATASETS`.
    declaration : type
        What the objects are.

    Raises
    ------
    ConfigError
        If what an entry point names cannot be imported, is no declaration, or brings a name that is taken.
    """
    found: dict[str, Declaration] = {}
    for module in sorted(one.name for one in pkgutil.iter_modules(package.__path__)):
        for own in getattr(import_module(f"{package.__name__}.{module}"), attribute, ()):
            found[own.name] = own
    for entry in _entries(group):
        origin = f"{entry.value}, an entry point in {group} of {_owner(entry)}"
        try:
            brought = entry.load()
        except Exception as error:  # whatever the code of others raises when it is imported
            raise ConfigError(f"{origin}, cannot be loaded: {type(error).__name__}: {error}") from error
        if not isinstance(brought, declaration):
            raise ConfigError(f"{origin}, must be a {declaration.__name__}, not a {type(brought).__name__}")
        if brought.name in found:
            raise ConfigError(f"{origin}, brings the name {brought.name}, which is taken")
        found[brought.name] = brought
    return found


@cache
def conf_dirs() -> tuple[Path, ...]:
    """Return the configuration folders of packages that have entry points of ours, sorted; none of them is imported."""
    # Of an entry point that names no module, `declared` says so.
    modules = {entry.value.partition(":")[0] for group in (LEARNERS, DATASETS) for entry in _entries(group)}
    tops = sorted({module.partition(".")[0] for module in modules} - {""})
    places = (Path(place) for top in tops for place in _places(top))
    return tuple(place / "conf" for place in places if (place / "conf").is_dir())


def _entries(group: str) -> Iterator[metadata.EntryPoint]:
    yield from sorted(metadata.entry_points(group=group), key=lambda entry: (entry.name, entry.value))


def _places(package: str) -> list[str]:
    spec = util.find_spec(package)
    return list(spec.submodule_search_locations or ()) if spec is not None else []


def _owner(entry: metadata.EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "a package"
