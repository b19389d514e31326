"""GAERR, GAELR and AER: one pass, with k attributes of each example, over all streams in parallel.

A learner combines a sampler of the data point (`budgetreg.draws`), an update that moves the regressor and
samples the inner product (`budgetreg.updates`), and an average of iterates.

With values missing completely at random, ``phi~`` and ``x~`` both depend on which values of the same example are
available. Let ``pi_ij`` be the share of examples that have both i and j, and ``pi_ii`` of those that have i. Entry i of
the gradient is estimated by

    (x_i / q_i) (mean_s (w_j / p_j) x_j / pi_ij - y / pi_ii),    with 0 for missing values.

It is unbiased because ``E M_i M_j = pi_ij`` for the indicators M of available values. Dividing by ``pi_i pi_j`` would
be wrong, in particular for ``i = j``, where ``M_i^2 = M_i``.

The data point estimate of some steps is 0, so that they change nothing. Their draws must still be paid for, because the
learner makes them before it can know. If the accessor records which attributes are drawn, the draws are made with the
regressors of that step; otherwise they are only counted.

Notation: w regressors, q probabilities of the data point's draws, p of the inner product's, j their attributes, x~ and
phi~ the estimates of the data point and of the residual.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from budgetreg.algorithms.averages import Averager
from budgetreg.algorithms.cesa_bianchi_2010.aer import Pegasos
from budgetreg.algorithms.control_variates import ControlVariate
from budgetreg.algorithms.hazan_koren_2012.eg import EG
from budgetreg.algorithms.hazan_koren_2012.ogd import OGD
from budgetreg.algorithms.rounds import Round, SparsePoints, rounds, sparse_points
from budgetreg.algorithms.signature import BudgetSplit, Rngs
from budgetreg.algorithms.trees import Layout
from budgetreg.algorithms.vectors import sum_in_order
from budgetreg.draws import DataPointSampler, Proportional, blocks, next_block
from budgetreg.metering.accessor import Accessor

RegressorUpdate = OGD | EG | Pegasos
"""State of F x G replicas of an update rule, with the running sums of their iterates."""

UPDATES: Mapping[str, Callable[..., RegressorUpdate]] = {"ogd": OGD, "eg": EG, "pegasos": Pegasos}


def run(
    accessor: Accessor,
    state: RegressorUpdate,
    first: int,
    checkpoints: Sequence[int],
    rngs: Rngs,
    samplers: Sequence[DataPointSampler],
    budget_split: BudgetSplit,
    *,
    average: str,
    revealed: Callable[[np.ndarray, np.ndarray], None] = lambda attributes, values: None,
    control: ControlVariate | None = None,
) -> Iterator[tuple[int, np.ndarray]]:
    """Let a state learn from the examples between `first` and the last checkpoint.

    Parameters
    ----------
    accessor, checkpoints, rngs
        As for `budgetreg.algorithms.learner.Learner.fit`.
    state : RegressorUpdate
        The replicas at their start.
    first : int
        Number of examples used before.
    samplers : sequence of callable
        The data point's sampler of each stream, see `budgetreg.draws`.
    budget_split : BudgetSplit
        Draws for the data point and for the inner product.
    average : {'all', 'suffix', 'last'}
        Which iterates of this run are averaged.
    revealed : callable, optional
        Called with the data points' attributes and values, (F, T, k_x) each, of every block.
    control : ControlVariate, optional
        Control variate of the inner product's estimate.

    Yields
    ------
    checkpoint : int
    W : ndarray of float, shape (F, d, G)
    """
    F, d, (k_x, k_ip) = accessor.n_streams, accessor.d, budget_split
    nonuniform = [sampler.q for sampler in samplers if isinstance(sampler, Proportional)]
    inverse_q = 1 / np.where(np.stack(nonuniform) > 0, nonuniform, 1.0) if nonuniform else None
    averager = Averager([checkpoint - first for checkpoint in checkpoints], average)
    stream = np.arange(F)
    held = np.full(F, first)
    for start, stop in blocks(first, checkpoints[-1]):
        attributes, uniforms = (part[:, : stop - start] for part in next_block(rngs, samplers, d, k_x, k_ip))
        accessor.open(start, stop)
        y = accessor.targets()
        values = accessor.reveal_block(attributes)
        revealed(attributes, values)
        if control:
            control.open(attributes, values, y)
        scale = d if inverse_q is None else inverse_q[stream[:, None, None], attributes]
        points = sparse_points(attributes, values * (scale / k_x))
        state.active.add(points)
        skipped: _ItemisedDraws | _CountedDraws = _CountedDraws(accessor, points, uniforms.shape)
        if accessor.itemised:
            skipped = _ItemisedDraws(accessor, state, attributes, uniforms)
        before = start
        last: int
        marks = [first + mark for mark in averager.marks]
        for last, mark in [(m - 1, m) for m in marks if start < m <= stop] + [(stop, None)]:
            for coordinates in rounds(points, start, before, last, held, state.layout):
                state.settle(held, coordinates.step)
                held = coordinates.step
                position = np.maximum(held - 1 - start, 0)
                nonzero = state.alive
                skipped.note(coordinates.live, position, nonzero)
                j, coefficient = state.draw(np.ascontiguousarray(uniforms[stream, position].T))
                x = accessor.reveal(position, j, nonzero & coordinates.live[:, None])
                target = y[stream, position]
                if not accessor.complete:
                    value = _gradient(accessor, state.layout, coordinates, j, coefficient * x / k_ip, target)
                    state.step(replace(coordinates, value=value), np.ones(nonzero.shape))
                    continue
                if control:
                    x, expected = control.split(j, x, target)
                product = sum_in_order(coefficient * x) / k_ip
                if control:
                    product += expected
                state.step(coordinates, np.where(nonzero, product, 0.0) - target[:, None])
            now = np.full(F, stop if mark is None else mark)
            state.settle(held, now)
            held, before = now, last
            output = averager.observe(mark - first, state.running_sum, state.iterate) if mark else None
            if output:
                yield first + output[0], output[1]
        skipped.close(state.alive)


def _gradient(
    accessor: Accessor, layout: Layout, coordinates: Round, j: np.ndarray, terms: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """Return the touched coordinates (N, G) of the gradients of examples with missing values.

    Parameters
    ----------
    accessor : Accessor
    layout : Layout
        Layout of the rows in `coordinates`.
    coordinates : Round
        Coordinates of the data points; none is 0.
    j : ndarray of int, shape (n, F, G)
        Draws for the inner product.
    terms : ndarray of float, shape (n, F, G)
        Their terms of the estimate without missing values; 0 for a missing value.
    y : ndarray of float, shape (F,)
        Targets.
    """
    stream = coordinates.stream
    i = coordinates.row - stream * layout.padded
    product = sum_in_order(terms[:, stream] / accessor.together(stream[:, None], i[:, None], j[:, stream]))
    return np.asarray(coordinates.values * (product - (y[stream] / accessor.together(stream, i, i))[:, None]))


class _ItemisedDraws:
    """Make the draws of skipped steps, by uniforms (F, T, k_ip) and the regressors of that step, to pay for each.

    If no value drawn for the data point is available, the step is known to be void and draws nothing. The block's data
    points have the attributes (F, T, k_x).
    """

    def __init__(
        self, accessor: Accessor, state: RegressorUpdate, attributes: np.ndarray, uniforms: np.ndarray
    ) -> None:
        self._accessor, self._state, self._uniforms = accessor, state, uniforms
        self._available = np.asarray(accessor.available(attributes).any(axis=2))
        self._stream, self._begin = np.arange(len(uniforms)), np.zeros(len(uniforms), dtype=np.intp)

    def note(self, live: np.ndarray, position: np.ndarray, nonzero: np.ndarray) -> None:
        """Note a round: pay for the steps since the previous one, over which the regressors did not change.

        `live` (F,) has the streams that take part, `position` (F,) their positions, and `nonzero` (F, G) the regressors
        that are not 0.
        """
        end = np.where(live, position, self._begin)
        for ahead in range(int((end - self._begin).max())):
            skipped = self._begin + ahead < end
            step = np.where(skipped, self._begin + ahead, 0)
            j, _ = self._state.draw(np.ascontiguousarray(self._uniforms[self._stream, step].T))
            self._accessor.pay_for(step, j, nonzero & (skipped & self._available[self._stream, step])[:, None])
        self._begin = np.where(live, position + 1, self._begin)

    def close(self, nonzero: np.ndarray) -> None:
        """Pay for the steps after the last round."""
        all_streams = np.ones(len(self._stream), dtype=bool)
        self.note(all_streams, np.full(len(self._stream), self._uniforms.shape[1]), nonzero)


class _CountedDraws:
    """Count the draws of skipped steps, of all replicas whose regressor was not 0 then."""

    def __init__(self, accessor: Accessor, points: SparsePoints, shape: tuple[int, ...]) -> None:
        self._accessor, self._points, self._shape = accessor, points, shape
        self._rounds: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def note(self, live: np.ndarray, position: np.ndarray, nonzero: np.ndarray) -> None:
        """Note a round, see `_ItemisedDraws.note`."""
        self._rounds.append((live, position, nonzero))

    def close(self, nonzero: np.ndarray) -> None:
        """Pay for the whole block."""
        self._accessor.pay(self._shape[2] * self._paying(nonzero))

    def _paying(self, at_end: np.ndarray) -> np.ndarray:
        """Return 1 for skipped steps with ``w != 0``, else 0: (F, T, G)."""
        result = np.ones((*self._shape[:2], at_end.shape[1]), dtype=np.int32)
        if not (at_end.all() and all(nonzero.all() for _, _, nonzero in self._rounds)):
            result[:] = at_end[:, None]
            begin = np.zeros(len(at_end), dtype=np.intp)
            for live, position, nonzero in self._rounds:
                for f in np.flatnonzero(live):
                    result[f, begin[f] : position[f]] = nonzero[f]
                    begin[f] = position[f]
        result[self._points.stream, self._points.position] = 0
        return result
