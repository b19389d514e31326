"""Learners that see k attributes of each example: GAERR, GAELR and AER as one pass over lined-up streams.

A learner is a composition: how the data point is drawn (`draws`), how the regressor moves and is sampled for the
inner product (`updates`), and which iterates are averaged (`average`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np

from budgetreg.accessor import Accessor
from budgetreg.draws import BLOCK, DATA_POINT_SAMPLERS, next_block
from budgetreg.learners.average import Averager
from budgetreg.rounds import Round, rounds, touched
from budgetreg.updates.eg import EG
from budgetreg.updates.ogd import OGD
from budgetreg.updates.pegasos import Pegasos

REFRESH_BLOCKS = 4
"""Blocks between two refreshes of the state: rare enough to cost little, often enough to stop round-off drifting."""


class Update(Protocol):
    """State of F x G replicas of one update rule, with the running sums of their iterates."""

    width: int
    """Attributes per block of the sampler, see `budgetreg.sampling.BlockLayout`."""

    @property
    def alive(self) -> np.ndarray:
        """Replicas with ``w != 0``, shape (F, G); valid after `settle`."""

    def settle(self, before: np.ndarray, now: np.ndarray) -> None:
        """Project, then hold the regressors from step ``before + 1`` to step ``now`` (both of shape (F,))."""

    def draw(self, uniforms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Draw for the inner product: attributes j and coefficients ``w_j / p_j``, both (F, G, n), from (F, n)."""

    def step(self, coordinates: Round, residual: np.ndarray) -> None:
        """Move along ``phi~ x~`` for residual estimates ``phi~`` of shape (F, G)."""

    def refresh(self) -> None:
        """Sum everything afresh, against the drift of round-off."""

    def running_sum(self) -> np.ndarray:
        """Return the sum of the iterates held so far, shape (F, d, G)."""

    def iterate(self) -> np.ndarray:
        """Return the regressors, shape (F, d, G); valid after `settle`."""


UPDATES: Mapping[str, Callable[[int, int, Mapping[str, np.ndarray]], Update]] = {
    "ogd": OGD,
    "eg": EG,
    "pegasos": Pegasos,
}


def fit(
    accessor: Accessor,
    settings: Mapping[str, np.ndarray],
    checkpoints: Sequence[int],
    rngs: list[np.random.Generator],
    *,
    update: str,
    data_point: str,
    k_x: int,
    k_ip: int,
    average: str,
) -> Iterator[tuple[int, np.ndarray]]:
    """Run all settings along all streams of the accessor, one pass.

    Parameters
    ----------
    accessor : Accessor
        F streams of examples, G settings, a budget of ``k_x + k_ip`` attributes.
    settings : mapping of str to ndarray of shape (G,)
        Parameters of the update (``B`` and ``eta`` or ``lambda``).
    checkpoints : sequence of int
        Numbers of examples at which the output is wanted, increasing.
    rngs : list of numpy.random.Generator
        One per stream.
    update : {'ogd', 'eg', 'pegasos'}
        How the regressor moves.
    data_point : {'uniform', 'subset'}
        How the attributes of the data point are drawn, both with ``q = 1/d``.
    k_x, k_ip : int
        Draws for the data point and for the inner product.
    average : {'all', 'suffix', 'last'}
        Which iterates are averaged.

    Yields
    ------
    checkpoint : int
    W : ndarray of float, shape (F, d, G)
        Output regressors.
    """
    F, d = accessor.n_streams, accessor.d
    state: Update = UPDATES[update](F, d, settings)
    sampler = DATA_POINT_SAMPLERS[data_point]
    averager = Averager(checkpoints, average)
    stream = np.arange(F)
    held = np.zeros(F, dtype=int)
    for start in range(0, checkpoints[-1], BLOCK):
        stop = min(start + BLOCK, checkpoints[-1])
        if start % (REFRESH_BLOCKS * BLOCK) == 0:
            state.refresh()
        attributes, uniforms = next_block(rngs, sampler, d, k_x, k_ip)
        attributes = attributes[:, : stop - start]
        accessor.open(start, stop)
        y = accessor.targets()
        points = touched(attributes, accessor.reveal_block(attributes) * (d / k_x))
        passed_over = _PassedOver(start, stop, F)
        first = start
        last: int
        for last, mark in [(m - 1, m) for m in averager.marks if start < m <= stop] + [(stop, None)]:
            for coordinates in rounds(points, start, first, last, held, state.width):
                state.settle(held, coordinates.step)
                held = coordinates.step
                position = np.maximum(held - 1 - start, 0)
                alive = state.alive
                passed_over.note(coordinates, alive)
                j, coefficient = state.draw(uniforms[stream, position])
                x = accessor.reveal(position, j, alive & coordinates.live[:, None])
                product = np.where(alive, (coefficient * x).sum(axis=2) / k_ip, 0.0)
                state.step(coordinates, product - y[stream, position][:, None])
            now = np.full(F, stop if mark is None else mark)
            state.settle(held, now)
            held, first = now, last
            output = averager.observe(mark, state.running_sum, state.iterate) if mark else None
            if output:
                yield output
        accessor.pay(k_ip * passed_over.alive(state.alive))


class _PassedOver:
    """Which replicas had ``w != 0``, and so drew for the inner product, at the steps that no round took."""

    def __init__(self, start: int, stop: int, n_streams: int) -> None:
        self._start, self._stop = start, stop
        self._rounds: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._n_streams = n_streams

    def note(self, coordinates: Round, alive: np.ndarray) -> None:
        self._rounds.append((coordinates.live, coordinates.step - 1 - self._start, alive))

    def alive(self, at_end: np.ndarray) -> np.ndarray:
        """Return 1 where a step was passed over with ``w != 0``, else 0: (F, T, G), from the final `alive` (F, G)."""
        always = at_end.all() and all(alive.all() for _, _, alive in self._rounds)
        result = np.ones((self._n_streams, self._stop - self._start, at_end.shape[1]), dtype=np.int32)
        begin = np.zeros(self._n_streams, dtype=np.intp)
        for live, position, alive in self._rounds:
            streams = np.flatnonzero(live)
            if not always:
                for f in streams:
                    result[f, begin[f] : position[f]] = alive[f]
                    begin[f] = position[f] + 1
            result[streams, position[streams]] = 0
        if not always:
            for stream, first in enumerate(begin):
                result[stream, first:] = at_end[stream]
        return result
