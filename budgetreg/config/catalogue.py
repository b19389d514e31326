"""What can be chosen: the files of the configuration folders, and what other packages bring. Nothing is composed here.

A package that declares a learner or a kind of data by an entry point may have a folder ``conf`` beside its modules,
laid out as ours (``conf/algo/<name>.yaml``, ...). Hydra searches it after ours.
"""

import pkgutil
import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module, metadata, util
from itertools import takewhile
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from budgetreg.common.errors import ConfigError, ContractError, Interrupted, PluginError, UserError, described

LEARNERS, DATASETS = "budgetreg.learners", "budgetreg.datasets"
"""Groups of entry points, whose objects declare learners and kinds of data."""

Declaration = TypeVar("Declaration")


def conf_dir() -> Path:
    """Return our configuration folder: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "conf"
    return installed if installed.is_dir() else package.parent / "conf"


def conf_dirs() -> list[Path]:
    """Return all configuration folders, ours first; the first file of a name counts."""
    return [conf_dir(), *added_conf_dirs()]


def groups() -> list[str]:
    """Return the names of the configuration groups, such as ``algo``."""
    return sorted(path.name for path in conf_dir().iterdir() if path.is_dir())


def options(group: str) -> list[str]:
    """Return the options of a group, such as ``hazan_koren_2012/fig1`` of ``experiment``."""
    folders = [folder / group for folder in conf_dirs()]
    return sorted(
        {path.relative_to(folder).with_suffix("").as_posix() for folder in folders for path in folder.rglob("*.yaml")}
    )


def has_option(group: str, option: str) -> bool:
    """Return whether a group offers an option."""
    return any(path.exists() for path in _paths(group, option))


def text(group: str, option: str) -> str:
    """Return the text of an option's file."""
    return next(path for path in _paths(group, option) if path.exists()).read_text(encoding="utf-8")


def content(group: str, option: str) -> dict[str, Any]:
    """Return what the file of an option sets, without the files that it builds on."""
    import yaml  # here, as shell completion does not need it

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where PyYAML was built with it
    return dict(yaml.load(text(group, option), Loader=loader) or {})


def headline(group: str, option: str) -> str:
    """Return the first comment of an option's file, which describes the option."""
    return description(group, option)[0]


def description(group: str, option: str) -> tuple[str, str]:
    """Return the first comment of an option's file, and those that follow it before the first key."""
    head = takewhile(lambda line: line.startswith("#"), text(group, option).splitlines())
    first, *rest = [line.removeprefix("#").strip() for line in head if "@package" not in line] or [""]
    return first, " ".join(rest)


def comments(group: str, option: str) -> dict[str, str]:
    """Return what an option's file says beside its keys."""
    return dict(re.findall(r"(?m)^(\w+):.*? +# ([^(].*)$", text(group, option)))


def _paths(group: str, option: str) -> list[Path]:
    return [folder / group / f"{option}.yaml" for folder in conf_dirs()]


def modules(package: str) -> Iterator[ModuleType]:
    """Import the modules and packages directly below a package, by name."""
    for module in sorted(module.name for module in pkgutil.iter_modules(import_module(package).__path__)):
        yield import_module(f"{package}.{module}")


def declared(
    ours: Iterable[Declaration], group: str, name_of: Callable[[Any], str | None], wanted: str
) -> dict[str, Declaration]:
    """Collect declarations by name: ours, then what the entry points of a group bring.

    Parameters
    ----------
    ours : iterable
        What this package declares.
    group : str
        `LEARNERS` or `DATASETS`.
    name_of : callable
        Returns the name of a declaration; None of anything else.
    wanted : str
        What an entry point must bring, for messages.

    Raises
    ------
    ConfigError
        If an entry point cannot be imported, is no declaration, or has a name that is taken.
    """
    by_name = {str(name_of(declaration)): declaration for declaration in ours}
    for entry in _entries(group):
        package = "a package" if entry.dist is None else entry.dist.name
        origin = f"{entry.value}, an entry point in {group} of {package}"
        try:
            brought = entry.load()
        except Interrupted:
            raise
        except BaseException as error:  # code of other packages may raise anything
            raise ConfigError(f"{origin}, cannot be loaded: {described(error)}") from error
        name = name_of(brought)
        if name is None:
            kind = f"the class {brought.__name__}" if isinstance(brought, type) else f"a {type(brought).__name__}"
            raise ConfigError(f"{origin}, must be {wanted}, not {kind}")
        if name in by_name:
            raise ConfigError(f"{origin}, brings the name {name}, which is taken")
        by_name[name] = brought
    return by_name


@contextmanager
def blamed() -> Iterator[None]:
    """Turn what code of another package raises in the block, even `SystemExit`, into one line that names the package.

    Raises
    ------
    PluginError
        If a line of a package that declares learners or data has led to the exception.
    """
    try:
        yield
    except (UserError, ContractError, Interrupted):
        raise
    except BaseException as error:
        for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
            module = str(frame.f_globals.get("__name__"))
            package = _packages().get(module.partition(".")[0])
            if package is not None:
                raise PluginError(f"{package} has failed in line {line} of {module}: {described(error)}") from error
        raise


@cache
def _packages() -> Mapping[str, str]:
    """Return the names of the packages that have such entry points, by the first word of their modules' names."""
    packages = {}
    for entry in (*_entries(LEARNERS), *_entries(DATASETS)):
        top = entry.value.partition(":")[0].partition(".")[0]
        packages[top] = f"the package {top if entry.dist is None else entry.dist.name}"
    return {top: package for top, package in sorted(packages.items()) if top not in ("", "budgetreg")}


@cache
def added_conf_dirs() -> tuple[Path, ...]:
    """Return the configuration folders of the packages that have such entry points, without importing them."""
    # `declared` reports an entry point that names no module, for which there is no spec.
    specs = [spec for top in _packages() if (spec := util.find_spec(top)) is not None]
    folders = (Path(place, "conf") for spec in specs for place in spec.submodule_search_locations or ())
    return tuple(folder for folder in folders if folder.is_dir())


def _entries(group: str) -> Iterator[metadata.EntryPoint]:
    yield from sorted(metadata.entry_points(group=group), key=lambda entry: (entry.name, entry.value))
