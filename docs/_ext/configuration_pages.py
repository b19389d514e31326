"""The reference of the configuration: keys with their defaults from ``conf/``, and what the code allows of each."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import getsource
from typing import Any

from budgetreg.algorithms.cesa_bianchi_2010 import aer, baseline
from budgetreg.algorithms.corrected_moments import corrected_moments
from budgetreg.algorithms.gonen_2016 import mbeg, popca
from budgetreg.algorithms.hazan_koren_2012.aerr_aelr import aelr, aerr
from budgetreg.algorithms.hazan_koren_2012.aesvr import aesvr
from budgetreg.algorithms.kukliansky_shamir_2015 import ddaelr, ddaerr, two_phases
from budgetreg.algorithms.murata_suzuki_2018 import block_gradient
from budgetreg.algorithms.normal_ml import em_step
from budgetreg.algorithms.registry import GROUPS, algo_options, cores, members, parameters, section
from budgetreg.algorithms.sportisse_2020 import debiased_sgd
from budgetreg.algorithms.zhu_2022 import prime_pca
from budgetreg.config import catalogue
from budgetreg.config.options import ANYTHING, BACKEND, RECIPE, TOP, TUNINGS, Options, tuning_options
from budgetreg.data.registry import kinds
from markup import code, escaped, table

_LINE = re.compile(r"^( *)([\w/]+):(?: +(?!#)(?P<value>.*?))?(?: +# (?P<comment>.*))?$")
_HEADER = ("Key", "Default", "Allowed", "Meaning")
_IDENTITY = ("name", "core", "kind", "style", "advised", "defaults", "hydra")
"""Keys that say what a file describes, or how it looks in figures and sweeps."""
_KINDS_OF_LEARNERS = {
    "all_budgeted": ("Regression on a budget", "These learners see k attributes of each example."),
    "all_full": ("Regression on full rows", "These learners see, and pay for, all attributes of each example."),
    "all_subspaces": ("Subspaces", "These learners find the subspace that is closest to the examples."),
}

_LISTINGS: Mapping[str, Callable[..., Any]] = {
    **{listing.__name__: listing for listing in (aer, baseline, aerr, aelr, aesvr, ddaerr, ddaelr, popca, mbeg)},
    "ddaerr_two_phase": two_phases,
    "ddaelr_two_phase": two_phases,
    **dict.fromkeys(("corrected_lasso", "corrected_ridge", "cocolasso", "hmlasso"), corrected_moments),
    "debiased_sgd": debiased_sgd,
    **dict.fromkeys(("exploration", "hybrid"), block_gradient),
    "normal_ml": em_step,
    "prime_pca": prime_pca,
}
"""The algorithms as published, by learner."""
_LISTED = "The algorithm for one setting, one example at a time, as published:"


def configuration(_: str) -> str:
    """Return the plain keys, and those of tunings and backends."""
    plain = {name: option for name, option in TOP.items() if name not in catalogue.groups()}
    text = (catalogue.conf_dir() / "config.yaml").read_text(encoding="utf-8")
    rows = [row for row in _lines(text) if row[0] in plain and row[0] not in RECIPE]
    recipe = [row for row in _lines(text) if row[0] in RECIPE]
    named = {name: parameter.what for name, parameter in parameters().items()}
    tunings = {name: tuning_options(name, named) for name in TUNINGS}
    return "\n\n".join(
        [
            "## Plain keys",
            _table("", rows, plain),
            "## Tuning",
            "These are the choices of `tuning=`, which decides how the parameters of a learner are chosen.",
            *(part for name, options in tunings.items() for part in _option("tuning", name, options)),
            "## Backend",
            "These are the choices of `backend=`, which decides where repetitions are computed. It changes no result.",
            *(part for name in catalogue.options("backend") for part in _option("backend", name, BACKEND)),
            "## Keys of recipes",
            "A recipe of `experiments/` sets these keys; a run needs none of them.",
            _table("", recipe, plain),
        ]
    )


def recipes(_: str) -> str:
    """Return a table of the recipes that `experiment=` names."""
    names = catalogue.options("experiment")
    return table(
        ("`experiment=`", "What it reproduces or compares"),
        ((code(name), escaped(catalogue.headline("experiment", name))) for name in names),
    )


def learners(_: str) -> str:
    """Return a section for each learner of ``conf/algo``, by what it learns and sees."""
    parts = []
    for group, (title, about) in _KINDS_OF_LEARNERS.items():
        names = members(GROUPS[group])
        parts += [f"## {title}", about, _overview("algo", names)]
        for name in names:
            parts += _option("algo", name, algo_options(cores()[section(name)["core"]]))
            if name in _LISTINGS:
                parts += [_LISTED, f"```python\n{getsource(_LISTINGS[name]).strip()}\n```"]
    return "\n\n".join(parts)


def datasets(_: str) -> str:
    """Return a section for each file of ``conf/dataset``."""
    names = catalogue.options("dataset")
    kind = {name: kinds()[next(row[1] for row in _of_file("dataset", name) if row[0] == "kind")] for name in names}
    options = (part for name in names for part in _option("dataset", name, kind[name].all_options(), "##"))
    return "\n\n".join([_overview("dataset", names), *options])


def _overview(group: str, names: Sequence[str]) -> str:
    rows = ((f"[`{name}`](#{_anchor(group, name)})", escaped(catalogue.description(group, name)[0])) for name in names)
    return table((code(f"{group}="), "What it is"), rows)


def _anchor(group: str, name: str) -> str:
    return f"{group}-{name.replace('_', '-')}"


def _option(group: str, name: str, options: Options, level: str = "###") -> list[str]:
    """Return the section of a file of a group: its comment, and its keys."""
    headline, rest = catalogue.description(group, name)
    rows = [row for row in _of_file(group, name) if row[0].partition(".")[0] not in _IDENTITY]
    return [
        f"({_anchor(group, name)})=\n{level} {group}={name}",
        escaped(f"{headline}."),
        escaped(rest),
        _table(f"{group}.", rows, options),
    ]


def _of_file(group: str, name: str) -> list[tuple[str, str, str]]:
    """Return the keys of a file and of those that it builds on, in which it replaces values."""
    content = catalogue.content(group, name)
    own = list(_lines(catalogue.text(group, name)))
    inherited = {
        row[0]: row
        for base in content.get("defaults", [])
        if base in catalogue.options(group)
        for row in _of_file(group, base)
    }
    given = {key: (key, value, comment or inherited.get(key, ("", "", ""))[2]) for key, value, comment in own}
    return list((inherited | given).values())


def _lines(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the dotted key, the value as it is written, and the comment of each line that sets a value."""
    path: list[str] = []
    for line in text.splitlines():
        found = _LINE.match(line)
        if found is None:
            continue
        path = [*path[: len(found[1]) // 2], found[2]]
        if found["value"]:
            yield ".".join(path), found["value"], found["comment"] or ""


def _table(prefix: str, rows: Sequence[tuple[str, str, str]], options: Options) -> str:
    """Return a table of keys; one without a comment has what its declaration says."""
    if not rows:
        return "It has no keys."
    return table(_HEADER, [_row(prefix, row, options) for row in rows])


def _row(prefix: str, row: tuple[str, str, str], options: Options) -> tuple[str, str, str, str]:
    key, value, comment = row
    declared = options.get(key)
    allowed = declared.must.phrase if declared and declared.must is not ANYTHING else ""
    return code(prefix + key), code(value), escaped(allowed), escaped(comment or (declared.what if declared else ""))
