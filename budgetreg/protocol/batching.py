"""How many streams and repetitions advance together, given the memory of a worker; no result depends on it."""

from typing import NamedTuple

import numpy as np

from budgetreg.data import Dataset
from budgetreg.learners.declaration import Batching
from budgetreg.protocol.configuration import Config

REPLICA_BYTES = 64
"""Memory per number of a replica's state, with its output: `Learner.state_numbers` counts these numbers."""
COUNT_BYTES = 24
"""Memory per attribute, replica and checkpoint of the curve for an itemised bill; folds have their own checkpoints."""
WORKER_BYTES = 1 << 30
"""Memory of one worker for the replicas that advance together, and for the data that they read."""


class Batches(NamedTuple):
    """What advances together."""

    streams_at_once: int
    repetitions_at_once: int
    one_pass: bool
    """Whether final runs advance beside the folds, for all settings, rather than afterwards for the chosen ones."""


def batches(config: Config, data: Dataset, n_settings: int, n_checkpoints: int, itemised: bool) -> Batches:
    """Return what advances together.

    Final runs beside the folds are worth their cost if a step of few replicas is slow and if little memory suffices to
    keep the outputs of all settings until one is chosen.

    Parameters
    ----------
    config : Config
        The learner, the number of folds and the limit on replicas.
    data : Dataset
    n_settings, n_checkpoints : int
        Settings of the grid, and checkpoints of the curve.
    itemised : bool
        Whether the bill counts attributes one by one.
    """
    algo, d = config.algo, data.X.shape[1]
    streams = streams_at_once(config, d, n_settings, n_checkpoints, itemised)
    tuned = n_settings > 1
    one_pass = tuned and algo.unequal_lengths and 8 * d * n_settings * n_checkpoints <= WORKER_BYTES
    if algo.batching is not Batching.IN_STEP or not isinstance(data.X, np.ndarray):
        return Batches(streams, 1, one_pass)
    of_a_repetition = (config.tuning.folds if tuned else 0) + (not tuned or one_pass)
    return Batches(streams, max(1, min(streams // of_a_repetition, WORKER_BYTES // data.X.nbytes)), one_pass)


def streams_at_once(config: Config, d: int, n_settings: int, n_checkpoints: int, itemised: bool) -> int:
    """Return how many streams advance together: as many as fit into memory, or all folds of a repetition.

    Parameters are those of `batches`, but for the number d of attributes.
    """
    if config.algo.batching is Batching.WITH_ITS_FOLDS:
        return config.tuning.folds
    state = REPLICA_BYTES * config.algo.state_numbers(d)
    counts = COUNT_BYTES * d * n_checkpoints if itemised else 0
    replicas = min(config.backend.batch_size, WORKER_BYTES // (state + counts))
    return max(1, replicas // n_settings)
