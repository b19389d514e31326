"""What cannot be run: configurations that contradict themselves, or do not fit the data.

`budgetreg.protocol.configuration` checks each key alone; `budgetreg.protocol.spending` refuses what the budget cannot
pay for.
"""

import numpy as np

from budgetreg.data import Dataset
from budgetreg.errors import ConfigError, DataError
from budgetreg.learners import members
from budgetreg.learners.declaration import Learner, Missing
from budgetreg.protocol.configuration import Config
from budgetreg.protocol.side_information import shares


def check_config(config: Config) -> None:
    """Refuse keys that contradict each other or the learner.

    Raises
    ------
    ConfigError
    """
    algo, asked = config.algo, config.checkpoints
    if config.total is not None:
        if config.axis == "examples":
            raise ConfigError(
                f"total={config.total}: axis=examples ends all learners at the same number of examples; use one of them"
            )
        if not isinstance(asked, int) and not any(isinstance(checkpoint, float) for checkpoint in asked):
            raise ConfigError(
                f"checkpoints={list(asked)}: these numbers of examples contradict total={config.total}; "
                "give shares, such as [0.5,1.0]"
            )
    if config.intercept == "mean" and not algo.predicts:
        raise ConfigError(f"intercept=mean: {algo.name} learns a subspace and predicts nothing; use none")
    no_origin = algo.skipped_checks.get("origin")
    if no_origin and (config.intercept == "mean" or config.dataset.center == "revealed"):
        raise ConfigError(f"{algo.name}: {no_origin}: use intercept=none, and dataset.center=none or full")


def check_data(config: Config, data: Dataset) -> None:
    """Refuse data that the learner cannot use, or that are too few or too narrow for the configuration.

    Raises
    ------
    ConfigError
        If another configuration can use the data.
    DataError
        If none can.
    """
    algo, d, n = config.algo, data.X.shape[1], data.y.size
    algo.task.admit(algo.name, data, config.dataset.center)
    if data.available is not None:
        _check_missing(algo, data)
    if config.dataset.split == "official" and data.n_train is None:
        raise ConfigError(f"dataset.split=official: {data.name} has no official split; use random")
    if config.dataset.split != "official" and not 0 < int(n * config.dataset.test_fraction) < n:
        raise DataError(f"{data.name} has {n} examples: too few for a test part of {config.dataset.test_fraction}")
    if config.k > d:
        raise ConfigError(f"k={config.k}: the attribute budget must be at most d={d}, the attributes of {data.name}")


def _check_missing(algo: Learner, data: Dataset) -> None:
    if algo.missing is Missing.REFUSED:
        able = members(lambda other: other.missing is not Missing.REFUSED and other.predicts == algo.predicts)
        raise ConfigError(
            f"dataset.missing=unavailable: {algo.name} needs every value; learners that do not: {', '.join(able)}"
        )
    if algo.missing is Missing.WEIGHED:
        shares(data, np.arange(data.y.size))
    if not data.complete.any():
        raise DataError(f"{data.name}: every row has a missing value, and tests need complete rows")
