"""What the configuration folder offers: learners, data sets, recipes. Composes nothing."""

from pathlib import Path


def conf_dir() -> Path:
    """Return the folder of the configuration files: in an installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "conf"
    return installed if installed.is_dir() else package.parent / "conf"


def groups() -> list[str]:
    """Return the names of the configuration groups, such as ``algo``."""
    return sorted(path.name for path in conf_dir().iterdir() if path.is_dir())


def options(group: str) -> list[str]:
    """Return what a group offers, such as ``hazan_koren_2012/fig1`` of ``experiment``."""
    folder = conf_dir() / group
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.yaml"))


def headline(group: str, option: str) -> str:
    """Return the first comment of a configuration file, which says what it is."""
    text = (conf_dir() / group / f"{option}.yaml").read_text(encoding="utf-8")
    comments = (line.removeprefix("#").strip() for line in text.splitlines() if line.startswith("#"))
    return next((comment for comment in comments if not comment.startswith("@package")), "")
