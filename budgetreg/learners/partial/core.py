"""Learners that see k attributes of each example: GAERR, GAELR and AER as one pass over lined-up streams.

A learner is a composition: how the data point is drawn (`draws`), how the regressor moves and is sampled for the
inner product (`updates`), and which iterates are averaged (`average`).

Where values are missing completely at random, ``phi~`` and ``x~`` both hang on which of the same example are there.
With ``pi_ij`` the share of examples that have both i and j, and ``pi_ii`` of those that have i, the gradient's entry i
is estimated by

    (x_i / q_i) (mean_s (w_j / p_j) x_j / pi_ij - y / pi_ii),    0 standing for what is missing,

which is unbiased as ``E M_i M_j = pi_ij`` for the marks M of what is there: ``pi_i pi_j`` would be wrong, not least for
``i = j``, where ``M_i^2 = M_i``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, cast

import numpy as np

from budgetreg.metering.accessor import Accessor
from budgetreg.sampling import importance_weights
from budgetreg.sampling.draws import BLOCK, DATA_POINT_SAMPLERS, DataPointSampler, Proportional, next_block
from budgetreg.sampling.rounds import Round, SparsePoints, rounds, sparse_points
from budgetreg.sampling.segment_trees import Layout
from budgetreg.updates.averaging import Averager
from budgetreg.updates.control_variates import ControlVariate, Expecting
from budgetreg.updates.eg import EG
from budgetreg.updates.ogd import OGD
from budgetreg.updates.pegasos import Pegasos
from budgetreg.updates.scaled_regressors import ActiveRows


class RegressorUpdate(Protocol):
    """State of F x G replicas of one update rule, with the running sums of their iterates."""

    layout: Layout
    """Shape of the sampler's trees."""
    active: ActiveRows
    """Which coordinates are touched, told before they are."""

    @property
    def alive(self) -> np.ndarray:
        """Replicas with ``w != 0``, shape (F, G); valid after `settle`."""

    def settle(self, before: np.ndarray, now: np.ndarray) -> None:
        """Project, then hold the regressors from step ``before + 1`` to step ``now`` (both of shape (F,))."""

    def draw(self, uniforms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Draw for the inner product: attributes j and coefficients ``w_j / p_j``, both (n, F, G), from (n, F)."""

    def step(self, coordinates: Round, residual: np.ndarray) -> None:
        """Move along ``phi~ x~`` for residual estimates ``phi~`` of shape (F, G)."""

    def running_sum(self) -> np.ndarray:
        """Return the sum of the iterates held so far, shape (F, d, G)."""

    def iterate(self) -> np.ndarray:
        """Return the regressors, shape (F, d, G); valid after `settle`."""


UPDATES: Mapping[str, Callable[..., RegressorUpdate]] = {"ogd": OGD, "eg": EG, "pegasos": Pegasos}


def fit(
    accessor: Accessor,
    settings: Mapping[str, np.ndarray],
    checkpoints: Sequence[int],
    rngs: Sequence[np.random.Generator],
    *,
    update: str,
    data_point: str,
    inner_product: str,
    k_x: int,
    k_ip: int,
    average: str,
    moments: np.ndarray | None = None,
    control_variate: str = "none",
    prices: np.ndarray | None = None,
) -> Iterator[tuple[int, np.ndarray]]:
    """Run all settings along all streams of the accessor, one pass.

    Parameters
    ----------
    accessor, settings, checkpoints, rngs
        As for `budgetreg.learners.declaration.Fit`: a budget of ``k_x + k_ip`` attributes; settings are ``B``
        and ``eta`` or ``lambda``.
    update : {'ogd', 'eg', 'pegasos'}
        How the regressor moves.
    data_point : {'uniform', 'subset', 'moment'}
        How the attributes of the data point are drawn: the first two with ``q = 1/d``, the last guided by the moments.
    inner_product : {'weight', 'moment'}
        Whether the draws for the inner product are guided by the moments, too; not for 'pegasos'.
    k_x, k_ip : int
        Draws for the data point and for the inner product.
    average : {'all', 'suffix', 'last'}
        Which iterates are averaged.
    moments : ndarray of float, shape (F, d), optional
        Second moments ``E x_i^2``, which each stream is given, for 'moment'.
    control_variate : {'none', 'mean', 'label'}
        Whether the inner product's draws estimate what differs from the attributes' means, or from their means given
        the target, see `budgetreg.updates.control_variates`; 'none' for 'pegasos'.
    prices : ndarray of float, shape (d,), optional
        What attributes cost, for draws guided by moments to heed it, see `budgetreg.sampling.importance_weights`.

    Yields
    ------
    checkpoint : int
    W : ndarray of float, shape (F, d, G)
        Output regressors.
    """
    F, d = accessor.n_streams, accessor.d
    options = {}
    if inner_product == "moment":
        assert moments is not None
        options["root_moments"] = importance_weights.inner_product(moments, prices)
    samplers: Sequence[DataPointSampler]
    if data_point == "moment":
        assert moments is not None
        samplers = [Proportional(weights) for weights in importance_weights.data_point(update, moments, prices)]
    else:
        samplers = [DATA_POINT_SAMPLERS[data_point]] * F
    state = UPDATES[update](F, d, k_ip, settings, **options)
    control = None
    if control_variate != "none":
        control = ControlVariate(cast(Expecting, state), F, d, slope=control_variate == "label")
    yield from run(
        accessor, state, 0, checkpoints, rngs, samplers, k_x=k_x, k_ip=k_ip, average=average, control=control
    )


def run(
    accessor: Accessor,
    state: RegressorUpdate,
    first: int,
    checkpoints: Sequence[int],
    rngs: Sequence[np.random.Generator],
    samplers: Sequence[DataPointSampler],
    *,
    k_x: int,
    k_ip: int,
    average: str,
    revealed: Callable[[np.ndarray, np.ndarray], None] = lambda attributes, values: None,
    control: ControlVariate | None = None,
) -> Iterator[tuple[int, np.ndarray]]:
    """Let a state learn from the examples after the first ones up to the last checkpoint.

    Parameters
    ----------
    accessor, checkpoints, rngs, k_x, k_ip, average
        As for `fit`; only iterates of this run are averaged.
    state : RegressorUpdate
        The replicas, at their start.
    first : int
        Examples that went before.
    samplers : sequence of callable
        How the data point's attributes of each stream are drawn, see `budgetreg.sampling.draws`.
    revealed : callable, optional
        Told the data points' attributes and values, (F, T, k_x) each, block by block.
    control : ControlVariate, optional
        That of the inner product's estimate.

    Yields
    ------
    checkpoint : int
    W : ndarray of float, shape (F, d, G)
    """
    F, d = accessor.n_streams, accessor.d
    guided = [sampler.q for sampler in samplers if isinstance(sampler, Proportional)]
    inverse_q = 1 / np.where(np.stack(guided) > 0, guided, 1.0) if guided else None
    averager = Averager([checkpoint - first for checkpoint in checkpoints], average)
    stream = np.arange(F)
    held = np.full(F, first)
    for start in range(first, checkpoints[-1], BLOCK):
        stop = min(start + BLOCK, checkpoints[-1])
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
        passed_over = _passed_over(accessor, state, points, attributes, uniforms[:, : stop - start])
        before = start
        last: int
        marks = [first + mark for mark in averager.marks]
        for last, mark in [(m - 1, m) for m in marks if start < m <= stop] + [(stop, None)]:
            for coordinates in rounds(points, start, before, last, held, state.layout):
                state.settle(held, coordinates.step)
                held = coordinates.step
                position = np.maximum(held - 1 - start, 0)
                alive = state.alive
                passed_over.note(coordinates.live, position, alive)
                j, coefficient = state.draw(np.ascontiguousarray(uniforms[stream, position].T))
                x = accessor.reveal(position, j, alive & coordinates.live[:, None])
                target = y[stream, position]
                if not accessor.complete:
                    value = _gradient(accessor, state.layout, coordinates, j, coefficient * x / k_ip, target)
                    state.step(replace(coordinates, value=value), np.ones(alive.shape))
                    continue
                if control:
                    x, expected = control.split(j, x, target)
                product = _sum(coefficient * x) / k_ip
                if control:
                    product += expected
                state.step(coordinates, np.where(alive, product, 0.0) - target[:, None])
            now = np.full(F, stop if mark is None else mark)
            state.settle(held, now)
            held, before = now, last
            output = averager.observe(mark - first, state.running_sum, state.iterate) if mark else None
            if output:
                yield first + output[0], output[1]
        passed_over.close(state.alive)


def _gradient(
    accessor: Accessor, layout: Layout, coordinates: Round, j: np.ndarray, terms: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """Return the coordinates (N, G) of gradients of examples of which values are missing.

    Parameters
    ----------
    accessor : Accessor
    layout : Layout
        Of the rows that the coordinates name.
    coordinates : Round
        Of the data points; 0 is none of them.
    j : ndarray of int, shape (n, F, G)
        Draws for the inner product.
    terms : ndarray of float, shape (n, F, G)
        What each contributes to its estimate where nothing is missing; 0 if it met no value.
    y : ndarray of float, shape (F,)
        Targets.
    """
    stream = coordinates.stream
    i = coordinates.row - stream * layout.padded
    product = _sum(terms[:, stream] / accessor.together(stream[:, None], i[:, None], j[:, stream]))
    return np.asarray(coordinates.values * (product - (y[stream] / accessor.together(stream, i, i))[:, None]))


def _sum(terms: np.ndarray) -> np.ndarray:
    """Add up along the first axis, one after the other: numpy's own order would depend on the other axes' lengths."""
    total = terms[0].copy()
    for term in terms[1:]:
        total += term
    return total


class _PassedOver(Protocol):
    """The steps of a block that no round takes: their draws for the inner product change nothing, and are paid."""

    def note(self, live: np.ndarray, position: np.ndarray, alive: np.ndarray) -> None:
        """Take down, for a round, which streams take part (F,), where they are (F,), and `alive` (F, G)."""

    def close(self, alive: np.ndarray) -> None:
        """Pay at the end of the block, whose `alive` (F, G) is given, for all that is not paid yet."""


def _passed_over(
    accessor: Accessor, state: RegressorUpdate, points: SparsePoints, attributes: np.ndarray, uniforms: np.ndarray
) -> _PassedOver:
    """Return what pays for the steps that are passed over.

    The block's data points have the attributes (F, T, k_x), and its inner products are drawn by uniforms (F, T, k_ip).
    """
    if accessor.itemised:
        return _NamedDraws(accessor, state, uniforms, np.asarray(accessor.available(attributes).any(axis=2)))
    return _CountedDraws(accessor, points, uniforms.shape)


class _NamedDraws:
    """Makes the draws at steps that are passed over, with the regressors as they were there, to tell which they are.

    Where none of the values drawn for the data point is there, (F, T), the step is known to be none: nothing is paid.
    """

    def __init__(self, accessor: Accessor, state: RegressorUpdate, uniforms: np.ndarray, there: np.ndarray) -> None:
        self._accessor, self._state, self._uniforms, self._there = accessor, state, uniforms, there
        self._stream, self._begin = np.arange(len(uniforms)), np.zeros(len(uniforms), dtype=np.intp)

    def note(self, live: np.ndarray, position: np.ndarray, alive: np.ndarray) -> None:
        """Pay for what lies between a round and the one before, where nothing has moved yet; see `_PassedOver`."""
        end = np.where(live, position, self._begin)
        for ahead in range(int((end - self._begin).max())):
            there = self._begin + ahead < end
            at = np.where(there, self._begin + ahead, 0)
            j, _ = self._state.draw(np.ascontiguousarray(self._uniforms[self._stream, at].T))
            self._accessor.pay_for(at, j, alive & (there & self._there[self._stream, at])[:, None])
        self._begin = np.where(live, position + 1, self._begin)

    def close(self, alive: np.ndarray) -> None:
        """Pay for what follows the last round; see `_PassedOver`."""
        everyone = np.ones(len(self._stream), dtype=bool)
        self.note(everyone, np.full(len(self._stream), self._uniforms.shape[1]), alive)


class _CountedDraws:
    """Counts the draws of replicas that had ``w != 0`` at steps that are passed over; which they are, nobody asks."""

    def __init__(self, accessor: Accessor, points: SparsePoints, shape: tuple[int, ...]) -> None:
        self._accessor, self._points, self._shape = accessor, points, shape
        self._rounds: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def note(self, live: np.ndarray, position: np.ndarray, alive: np.ndarray) -> None:
        """See `_PassedOver`."""
        self._rounds.append((live, position, alive))

    def close(self, alive: np.ndarray) -> None:
        """Pay for all of the block; see `_PassedOver`."""
        self._accessor.pay(self._shape[2] * self._alive(alive))

    def _alive(self, at_end: np.ndarray) -> np.ndarray:
        """Return 1 where a step was passed over with ``w != 0``, else 0: (F, T, G), from the final `alive` (F, G)."""
        result = np.ones((*self._shape[:2], at_end.shape[1]), dtype=np.int32)
        if not (at_end.all() and all(alive.all() for _, _, alive in self._rounds)):
            result[:] = at_end[:, None]
            begin = np.zeros(len(at_end), dtype=np.intp)
            for live, position, alive in self._rounds:
                for f in np.flatnonzero(live):
                    result[f, begin[f] : position[f]] = alive[f]
                    begin[f] = position[f]
        result[self._points.stream, self._points.position] = 0
        return result
