"""GAERR, GAELR and AER: one pass, with k attributes of each example, over all streams in parallel.

A learner combines a sampler of the data point (`budgetreg.sampling.draws`), an update that moves the regressor and
samples the inner product (`budgetreg.updates`), and an average of iterates.

With values missing completely at random, ``phi~`` and ``x~`` both depend on which values of the same example are
available. Let ``pi_ij`` be the share of examples that have both i and j, and ``pi_ii`` of those that have i. Entry i of
the gradient is estimated by

    (x_i / q_i) (mean_s (w_j / p_j) x_j / pi_ij - y / pi_ii),    with 0 for missing values.

It is unbiased because ``E M_i M_j = pi_ij`` for the indicators M of available values. Dividing by ``pi_i pi_j`` would
be wrong, in particular for ``i = j``, where ``M_i^2 = M_i``.

Notation: w regressors, q probabilities of the data point's draws, p of the inner product's, j their attributes, x~ and
phi~ the estimates of the data point and of the residual.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from budgetreg.learners.partial.skipped_steps import skipped_steps
from budgetreg.learners.signature import BudgetSplit, Rngs
from budgetreg.metering.accessor import Accessor
from budgetreg.sampling.draws import DataPointSampler, Proportional, blocks, next_block
from budgetreg.sampling.rounds import Round, rounds, sparse_points
from budgetreg.sampling.segment_trees import Layout
from budgetreg.updates.averaging import Averager
from budgetreg.updates.control_variates import ControlVariate
from budgetreg.updates.dense import sum_in_order
from budgetreg.updates.eg import EG
from budgetreg.updates.ogd import OGD
from budgetreg.updates.pegasos import Pegasos

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
        As for `budgetreg.learners.declaration.Learner.fit`.
    state : RegressorUpdate
        The replicas at their start.
    first : int
        Number of examples used before.
    samplers : sequence of callable
        The data point's sampler of each stream, see `budgetreg.sampling.draws`.
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
        attributes, uniforms = next_block(rngs, samplers, d, k_x, k_ip)
        attributes = attributes[:, : stop - start]
        accessor.open(start, stop)
        y = accessor.targets()
        values = accessor.reveal_block(attributes)
        revealed(attributes, values)
        if control:
            control.open(attributes, values, y)
        scale = d if inverse_q is None else inverse_q[stream[:, None, None], attributes]
        points = sparse_points(attributes, values * (scale / k_x))
        state.active.add(points)
        skipped = skipped_steps(accessor, state.draw, points, attributes, uniforms[:, : stop - start])
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
