"""The tables of what every key of the configuration is and must be, and the comparison with them."""

import json
from collections.abc import Mapping
from typing import Any

from budgetreg.config.requirements import (
    ANYTHING,
    FLAG,
    FRACTION,
    LIST,
    MAPPING,
    MAPPINGS,
    NAME,
    NOT_NEGATIVE,
    NOTHING,
    ONE,
    POSITIVE,
    TEXT,
    ZERO,
    Requirement,
    increasing,
    one_of,
    whole,
)
from budgetreg.errors import ConfigError, nearest

Rules = Mapping[str, tuple[str, Requirement]]  # key -> (what it is, what it must be)

TOP: Rules = {
    "experiment": ("the recipe's name", TEXT),
    "protocol": ("the preset", NAME | NOTHING),
    "protocols": ("what each preset of a recipe sets", MAPPING),
    "algo": ("the learner", ANYTHING),
    "learners": ("what a recipe sets for each learner", MAPPING),
    "omit": ("the combinations that a recipe leaves out", MAPPINGS),
    "dataset": ("the data set", ANYTHING),
    "tuning": ("the tuning", ANYTHING),
    "backend": ("the backend", ANYTHING),
    "k": ("the attribute budget", whole(1)),
    "axis": ("the axis on which learners end alike", one_of("attributes", "examples")),
    "repetitions": ("the number of repetitions", whole(1)),
    "seed": ("the seed", whole(0)),
    "checkpoints": (
        "the checkpoints",
        whole(1)
        | increasing("an increasing list of numbers of examples, each at least 1", whole(1))
        | increasing("of shares of the whole axis, above 0 and up to 1", FRACTION | ONE),
    ),
    "n_jobs": ("the number of workers", whole(1)),
    "out": ("the folder of the results", NAME | NOTHING),
    "figure": ("how a recipe's figure is drawn", MAPPING),
    "differs": ("what differs from the paper", LIST),
    "claims": ("a recipe's claims", LIST),
}

_SPLIT = one_of("literal", "even") | whole(1)
_AVERAGE = one_of("all", "suffix", "last")


def _learner(split: Requirement, average: Requirement, *updates: str) -> Rules:
    return {
        "name": ("the learner's name", NAME),
        "core": ("the kind of learner", ANYTHING),
        "update": ("the update", one_of(*updates)),
        "split": ("the split of the budget", split),
        "average": ("the averaging of iterates", average),
        "grid": ("the grid of parameters", ANYTHING),
    }


_PARTIAL: Rules = {
    **_learner(_SPLIT, _AVERAGE, "ogd", "eg", "pegasos"),
    "data_point": ("the draw of attributes for the data point", one_of("uniform", "subset", "moment")),
    "inner_product": ("the draw of attributes for the inner product", one_of("weight", "moment")),
    "literal_split": ("the meaning of split=literal", one_of("one", "half")),
}


def _subspace(*updates: str) -> Rules:
    dimension: Rules = {"n_components": ("the dimension of the subspace", whole(1))}
    return {**_learner(_SPLIT | NOTHING, _AVERAGE | NOTHING, *updates), **dimension}


_SECOND_MOMENT = ("active", "passive", "importance", "zero_filled", "full")

# By algo.core. A learner accepts a split or average it has no use for: a sweep over learners sets it for all.
LEARNERS: Mapping[str, Rules] = {
    "partial": {**_PARTIAL, "control_variate": ("the control variate", one_of("none", "mean", "label"))},
    "two_phase": {
        **_PARTIAL,
        **_learner(_SPLIT, _AVERAGE, "ogd", "eg"),
        "data_point": ("the draw of attributes for the data point", one_of("moment")),
        "phase_one": ("the first phase's share of the examples", FRACTION),
        "smoothing": ("the smoothing of estimated moments", one_of("theory") | NOT_NEGATIVE),
        "mix": ("the share of equal weights in the draws", ZERO | FRACTION),
    },
    "exact": _learner(_SPLIT | NOTHING, _AVERAGE, "ogd", "eg"),
    "offline": _learner(_SPLIT | NOTHING, _AVERAGE | NOTHING, "ridge", "lasso"),
    "pairs": _learner(_SPLIT | NOTHING, _AVERAGE | NOTHING, "program", "correlation"),
    "svr": {
        **_learner(_SPLIT, _AVERAGE, "ogd"),
        "residual": ("the estimate of the residual's slope", one_of("gen_est", "plug_in")),
        "delta": ("the residual that costs nothing", NOT_NEGATIVE),
        "eps": ("the scale of the smoothing", POSITIVE),
    },
    "second_moment": _subspace(*_SECOND_MOMENT),
    "mbeg": {
        **_subspace("pairs", "singles"),
        "alpha": ("the share of uniform pairs", one_of("theory") | ZERO | FRACTION | ONE),
        "output": ("what becomes of the average of the weight matrices", one_of("decompose", "top")),
    },
    "streaming": _subspace("oja", "grouse", "petrels"),
}


OPTIONS: Mapping[str, Rules] = {  # by algo.core and update, what only such learners have
    "second_moment active": {"replacement": ("whether attributes are drawn with replacement", FLAG)},
    "second_moment importance": {
        "phase_one": ("the first phase's share of the examples", FRACTION),
        "mix": ("the share of equal probabilities in the draws", FRACTION),
    },
}


def _grid(*parameters: str) -> Rules:
    requirement = increasing("an increasing list of numbers above 0", POSITIVE)
    return {key: (f"the grid of {key}", requirement) for key in parameters}


GRIDS: Mapping[str, Rules] = {  # by algo.update, preceded by the kind of learner if that matters
    "ogd": _grid("B", "eta"),
    "eg": _grid("B", "eta"),
    "pegasos": _grid("B", "lambda"),
    "two_phase ogd": _grid("B", "eta", "eta_two"),
    "two_phase eg": _grid("B", "eta", "eta_two"),
    "ridge": _grid("B"),
    "lasso": _grid("B"),
    "program": _grid("B"),
    "correlation": _grid("B"),
    **{update: _grid() for update in _SECOND_MOMENT},
    "mbeg pairs": _grid("eta"),
    "mbeg singles": _grid("eta"),
    "oja": _grid("eta"),
    "grouse": _grid("eta"),
    "petrels": _grid("forgetting"),
}


def _data(split: Requirement, *options: str) -> Rules:
    return {
        "name": ("the data set's name", NAME),
        "kind": ("the kind of data", ANYTHING),
        "center": ("the centring", one_of("none", "revealed", "full")),
        "split": ("the split into training and test part", split),
        "test_fraction": ("the test part", FRACTION),
        **{key: (key, ANYTHING) for key in options},
    }


def _law(*options: str) -> Rules:
    """Return the rules of data whose second moment is known: all examples train, and nothing needs full rows."""
    rest: Rules = {
        "center": ("the centring", one_of("none")),
        "test_fraction": ("the test part", NOTHING),
    }
    return {**_data(one_of("official"), *options), **rest}


DATASETS: Mapping[str, Rules] = {  # by dataset.kind
    "mnist": _data(one_of("random", "official"), "root", "digits"),
    "power_law": _data(one_of("random", "official"), "d", "alpha", "norm", "n", "n_test", "implicit"),
    "digits": _data(one_of("random")),
    "sphere": _data(one_of("random", "official"), "d", "noise", "n", "n_test"),
    "one_good_feature": _data(one_of("random", "official"), "d", "p", "n", "n_test"),
    "three_bits": _data(one_of("random", "official"), "n", "n_test"),
    "hidden_basis": _data(one_of("random", "official"), "d", "eps", "n", "n_test"),
    "coins": _law("d", "n_coins", "alpha", "n"),
    "hadamard": _law("d", "n_coins", "alpha", "n"),
    "spike": _law("d", "p", "n"),
    "two_lines": _law("n"),
    "file": _data(one_of("random"), "path", "target", "scale"),
}


def _tuning(**values: str) -> Rules:
    return {
        "name": ("the tuning's name", ANYTHING),
        "at": ("the checkpoint to tune at", one_of("end", "each")),
        "folds": ("the number of folds", whole(2)),
        **{key: (what, POSITIVE | NOTHING) for key, what in values.items()},
    }


TUNINGS: Mapping[str, Rules] = {  # by tuning.name
    "cv": _tuning(),
    "theory": _tuning(B="the radius"),
    "fixed": _tuning(
        B="the radius",
        eta="the step size",
        eta_two="the second phase's step size",
        forgetting="the factor by which an example's weight falls with each one that follows",
        **{"lambda": "the regularisation"},
    ),
}

BACKEND: Rules = {
    "name": ("the backend's name", one_of("loky", "sequential")),
    "batch_size": ("the number of replicas advanced together", whole(1)),
}


def chosen(section: Any, prefix: str, key: str, tables: Mapping[str, Rules]) -> Rules:
    """Return the rules that the value of one key, such as ``dataset.kind``, selects for its section.

    Raises
    ------
    ConfigError
        If that value selects nothing.
    """
    if not isinstance(section, dict):
        raise ConfigError(f"{prefix}={_shown(section)}: must have the key {key}, one of {', '.join(tables)}")
    selector: Rules = {key: (f"the {key}", one_of(*tables))}
    check({key: section[key]} if key in section else {}, selector, prefix)
    return tables[section[key]]


def check(section: Any, rules: Rules, prefix: str) -> None:
    """Compare the keys and values of a section with its rules.

    Raises
    ------
    ConfigError
        If a key is unknown or missing, or a value is not what it must be.
    """
    dot = "." if prefix else ""
    if not isinstance(section, dict):
        raise ConfigError(f"{prefix}={_shown(section)}: must have the keys {', '.join(rules)}")
    for key in section:
        if key not in rules:
            hint = nearest(key, rules)
            raise ConfigError(f"{prefix}{dot}{key}: no such key{hint}; keys: {', '.join(rules)}")
    for key, (what, must) in rules.items():
        if key not in section:
            raise ConfigError(f"{prefix}{dot}{key}: {what} is missing")
        value = section[key]
        if not must.accepts(value):
            hint = nearest(str(value), must.choices)
            raise ConfigError(f"{prefix}{dot}{key}={_shown(value)}: {what} must be {must.phrase}{hint}")


def _shown(value: Any) -> str:
    """Return a value as it is written on the command line."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
