"""Where numbers come from: versions of what computed them, and the commit of the source."""

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from budgetreg import __version__

DISTRIBUTIONS = {"numpy": "numpy", "scipy": "scipy", "scikit-learn": "scikit-learn", "hydra": "hydra-core"}
# What can change a result: a folder of results inside the checkout does not make the source dirty.
SOURCES = ("budgetreg", "conf", "experiments", "pyproject.toml")


def provenance() -> dict[str, Any]:
    """Return what computes here and now.

    Returns
    -------
    dict
        ``versions``: of python, numpy, scipy, scikit-learn, hydra and budgetreg, and the platform;
        ``git``: ``commit`` of the source checkout and whether its sources were changed since (``dirty``),
        both None if the package does not run from a checkout or there is no git.
    """
    versions: dict[str, str | None] = {"python": platform.python_version()}
    versions.update((name, _version(distribution)) for name, distribution in DISTRIBUTIONS.items())
    versions.update(budgetreg=__version__, platform=platform.platform())
    return {"versions": versions, "git": git_state(Path(__file__).parents[2])}


def git_state(root: Path) -> dict[str, Any]:
    """Return the commit of a checkout and whether its sources differ from it.

    Parameters
    ----------
    root : Path
        The top folder of the checkout. A folder that only lies somewhere inside of one (the packages of a
        virtual environment inside a user's own repository) has no commit of ours.
    """
    commit = _git(root, "rev-parse", "HEAD") if (root / ".git").exists() else None
    if commit is None:
        return {"commit": None, "dirty": None}
    sources = [name for name in SOURCES if (root / name).exists()]
    changes = _git(root, "--no-optional-locks", "status", "--porcelain", "--", *sources)
    return {"commit": commit, "dirty": None if changes is None else bool(changes)}


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _git(root: Path, *arguments: str) -> str | None:
    # A hook of git runs its programs with GIT_DIR set, which would answer for that other repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        answer = subprocess.run(
            ["git", "-C", str(root), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()
