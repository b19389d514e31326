"""Where numbers come from: versions of what computed them, the commit of the source, and the processor."""

import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

from budgetreg import __version__
from budgetreg.results.naming import flatten, show

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
        both None if the package does not run from a checkout or there is no git;
        ``processor``: the ``machine``, and the ``blas`` of numpy with the ``core`` that it computes for, by which
        processors differ in last digits; None is what cannot be told.
    """
    versions = {"python": platform.python_version(), **libraries(), "platform": platform.platform()}
    return {"versions": versions, "git": git_state(Path(__file__).parents[2]), "processor": _processor()}


@cache
def libraries() -> Mapping[str, str | None]:
    """Return the versions of numpy, scipy, scikit-learn, hydra and budgetreg; None is what is not installed."""
    versions = {name: _version(distribution) for name, distribution in DISTRIBUTIONS.items()}
    return {**versions, "budgetreg": __version__}


def apart(recorded: Iterable[Mapping[str, Any]], now: Mapping[str, Any]) -> list[str]:
    """Return what here and now is not as it was recorded with results, as far as that tells.

    Parameters
    ----------
    recorded : iterable of mapping
        What `provenance` was when the results were computed; several if they were resumed elsewhere.
    now : mapping
        What it is.

    Returns
    -------
    list of str
        Such as ``"numpy 2.0.0 -> 2.1.0"`` and ``"core Zen -> SkylakeX"``. That there is no record of something is
        told, too: earlier versions recorded no processor.
    """
    told, found = flatten(now), []
    for one in recorded:
        found += [
            f"{key.partition('.')[2]} {_brief(key, was)} -> {_brief(key, told.get(key))}"
            for key, was in flatten(one).items()
            if was != told.get(key)
        ]
        found += [f"no record of the {key}" for key in now if key not in one]
    return list(dict.fromkeys(found))


def _brief(key: str, value: Any) -> str:
    return show(value)[:8] if key == "git.commit" else show(value)


def _processor() -> dict[str, str | None]:
    import numpy as np  # here, as it is slow to load; and loaded it must be for its BLAS to be found

    found = [one for one in threadpool_info() if one.get("user_api") == "blas"]
    # Others, such as scipy's, are found only if something has loaded them: what is told must not depend on that.
    home = str(Path(np.__file__).resolve().parent)
    here = [one for one in found if os.path.realpath(str(one.get("filepath", ""))).startswith(home)]
    own = (here or found or [{}])[0]
    blas = f"{own['internal_api']} {own.get('version') or ''}".strip() if own else None
    return {"machine": platform.machine(), "blas": blas, "core": own.get("architecture")}


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
