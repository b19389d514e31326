"""The provenance of results: what decides them, what computed them, and how either has changed since."""

import json
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
from budgetreg.config.nested import Tree, differing
from budgetreg.files import record_digest
from budgetreg.protocol.configuration import with_defaults
from budgetreg.protocol.plan import Plan
from budgetreg.runs.naming import show

DISTRIBUTIONS = {"numpy": "numpy", "scipy": "scipy", "scikit-learn": "scikit-learn", "hydra": "hydra-core"}
# Only these can change a result: a folder of results inside the checkout does not make the source dirty.
SOURCES = ("budgetreg", "conf", "experiments", "pyproject.toml")


def identity_of(plan: Plan) -> Tree:
    """Return what decides the results of a plan.

    Returns
    -------
    dict
        ``identity``: the part of the configuration that can change a result; ``identity_digest``: its SHA-256;
        ``data``: name, content, shape and prices of the data, because files can change under the same configuration,
        and whether other draws make up for missing values.
    """
    identity = json.loads(json.dumps(plan.config.identity(), sort_keys=True))
    return {
        "identity_digest": record_digest(identity),
        "identity": identity,
        "data": {
            "name": plan.dataset,
            "fingerprint": plan.fingerprint,
            "n_train": plan.n_train,
            "n_test": plan.n_test,
            "d": plan.d,
            **({"full_row": plan.full_row} if plan.full_row != plan.d else {}),
            **({"prices": plan.prices.digest()} if plan.prices else {}),
            **({"gaps": "replaced"} if plan.spends_gaps else {}),  # earlier runs ended below their totals
        },
    }


def whole_identity(tree: Mapping[str, Any]) -> Tree:
    """Return configuration and data together, from a manifest or from what `identity_of` returns."""
    return {**tree["identity"], "data": tree["data"]}


def changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return how two configurations, or identities, differ, such as ``"k 4 -> 8"``."""
    return [f"{key} {was} -> {value}" for key, (was, value) in _differing(then, now).items()]


def conflict(there: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    """Return up to three keys in which results differ from those asked for; empty if there are none."""
    keys = _differing(whole_identity(there), whole_identity(asked))
    words = [f"{key}={was} there but {value} asked" for key, (was, value) in list(keys.items())[:3]]
    return ", ".join([*words, f"and {len(keys) - 3} more"] if len(keys) > 3 else words)


def _differing(then: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return differing keys with both values as text; what a user would name first comes first."""
    keys = differing(with_defaults(then), with_defaults(now))  # an identity holds no defaults
    first = sorted(keys, key=lambda key: (key.startswith("data."), key.count("."), not key.endswith(".name"), key))
    return {key: (_text(keys[key][0]), _text(keys[key][1])) for key in first}


def _text(value: Any) -> str:
    return json.dumps(value) if value in ("", None) else show(value, in_full=True)


def provenance() -> dict[str, Any]:
    """Return what computes in this process.

    Returns
    -------
    dict
        ``versions``: of python, numpy, scipy, scikit-learn, hydra and budgetreg, and the platform;
        ``git``: ``commit`` of the source checkout and whether its sources were changed since (``dirty``),
        both None if the package does not run from a checkout or there is no git;
        ``processor``: the ``machine``, the ``blas`` of numpy, and the ``core`` that BLAS chose, which decides the last
        digits; None stands for what is not known.
    """
    versions = {"python": platform.python_version(), **libraries(), "platform": platform.platform()}
    return {"versions": versions, "git": git_state(Path(__file__).parents[2]), "processor": _processor()}


@cache
def libraries() -> Mapping[str, str]:
    """Return the versions of numpy, scipy, scikit-learn, hydra and budgetreg."""
    versions = {name: metadata.version(distribution) for name, distribution in DISTRIBUTIONS.items()}
    return {**versions, "budgetreg": __version__}


def apart(recorded: Iterable[Mapping[str, Any]], now: Mapping[str, Any]) -> list[str]:
    """Return how what computes now differs from what computed recorded results.

    Parameters
    ----------
    recorded : iterable of mapping
        What `provenance` returned when the results were computed; several if a run was resumed elsewhere.
    now : mapping
        What it returns now.

    Returns
    -------
    list of str
        Such as ``"numpy 2.0.0 -> 2.1.0"``, and ``"no record of the processor"`` if the record is null.
    """
    lines = []
    for source in recorded:
        known = {key: value for key, value in source.items() if value is not None}
        for key, (was, value) in differing(known, {name: now[name] for name in known}).items():
            lines.append(f"{key.partition('.')[2]} {_brief(key, was)} -> {_brief(key, value)}")
        lines += [f"no record of the {key}" for key in source if key not in known]
    return list(dict.fromkeys(lines))


def _brief(key: str, value: Any) -> str:
    return show(value)[:8] if key == "git.commit" else show(value)


def _processor() -> dict[str, str | None]:
    import numpy as np  # here, as it is slow to load; its BLAS is only found once it is loaded

    libraries = [library for library in threadpool_info() if library.get("user_api") == "blas"]
    # Others, such as scipy's, are only there if something has loaded them, and the record must not depend on that.
    home = str(Path(np.__file__).resolve().parent)
    of_numpy = [each for each in libraries if os.path.realpath(str(each.get("filepath", ""))).startswith(home)]
    library = (of_numpy or libraries or [{}])[0]
    blas = f"{library['internal_api']} {library.get('version') or ''}".strip() if library else None
    return {"machine": platform.machine(), "blas": blas, "core": library.get("architecture")}


def git_state(root: Path) -> dict[str, Any]:
    """Return the commit of a checkout and whether its sources differ from it.

    Parameters
    ----------
    root : Path
        The top folder of the checkout. A folder inside another repository, such as the packages of a virtual
        environment, has no commit of ours.
    """
    commit = _git(root, "rev-parse", "HEAD") if (root / ".git").exists() else None
    if commit is None:
        return {"commit": None, "dirty": None}
    sources = [name for name in SOURCES if (root / name).exists()]
    changes = _git(root, "--no-optional-locks", "status", "--porcelain", "--", *sources)
    return {"commit": commit, "dirty": None if changes is None else bool(changes)}


def _git(root: Path, *arguments: str) -> str | None:
    # A hook of git runs its programs with GIT_DIR set, and git would then answer for that other repository.
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
