"""The files of the configuration folders: learners, data sets, recipes. Nothing is composed here."""

from pathlib import Path
from typing import Any

from budgetreg.config import extensions


def conf_dir() -> Path:
    """Return our configuration folder: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "conf"
    return installed if installed.is_dir() else package.parent / "conf"


def conf_dirs() -> list[Path]:
    """Return all configuration folders, ours first; the first file of a name counts."""
    return [conf_dir(), *extensions.conf_dirs()]


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
    comments = (line.removeprefix("#").strip() for line in text(group, option).splitlines() if line.startswith("#"))
    return next((comment for comment in comments if not comment.startswith("@package")), "")


def _paths(group: str, option: str) -> list[Path]:
    return [folder / group / f"{option}.yaml" for folder in conf_dirs()]
