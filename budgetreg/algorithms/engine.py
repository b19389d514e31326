"""One pass with k attributes of each example, over all streams and settings in parallel.

AERR, AELR, AER, DDAERR and DDAELR, and both phases of the two-phased learners, are this loop. They differ in the
sampler of the data point, and in the `Regressors`, which move and sample the inner product.

Rounds. A step whose drawn attributes are all zero has ``x~ = 0`` and changes no regressor, so it is skipped (but still
paid for). Streams skip different steps. The n-th round of a range of steps holds the n-th step of each stream that is
not skipped; streams without further steps idle. The arithmetic of a replica does not depend on the rounds.

Skipped steps. Their draws must still be paid for, because the learner makes them before it can know. If the accessor
records which attributes are drawn, the draws are made with the regressors of that step; otherwise they are only
counted.

Missing values. If they are missing completely at random, ``phi~`` and ``x~`` both depend on which values of the same
example are available. Let ``pi_ij`` be the share of examples that have both i and j, and ``pi_ii`` of those that have
i. Entry i of the gradient is estimated by

    (x_i / q_i) (mean_s (w_j / p_j) x_j / pi_ij - y / pi_ii),    with 0 for missing values.

It is unbiased because ``E M_i M_j = pi_ij`` for the indicators M of available values. Dividing by ``pi_i pi_j`` would
be wrong, in particular for ``i = j``, where ``M_i^2 = M_i``.

Notation: w regressors, q probabilities of the data point's draws, p of the inner product's, j their attributes, x~ and
phi~ the estimates of the data point and of the residual.

Which q and p are best, given the moments ``a_i = E x_i^2``, and prices ``c_i > 0`` of a draw (1 without prices)? A sum
of money S pays for ``S / sum_i q_i c_i`` draws, and the bounds of the theorems fall with the number of steps as
``sqrt(second moment / steps)``. The best probabilities thus minimise the second moment of an estimate times the
expected price of a draw. Each estimate is considered on its own: without the draws for the other one, and without the
part of the moment that several draws for one example share (Kukliansky & Shamir 2015 omit it too).

- *Data point, 2-ball.* The estimate ``x_i / q_i e_i`` of a draw has the second moment ``sum_i a_i / q_i``. By the
  Cauchy-Schwarz inequality, ``(sum_i a_i / q_i) (sum_i q_i c_i) >= (sum_i sqrt(a_i c_i))^2``, with equality where
  ``a_i / q_i`` is proportional to ``q_i c_i``: ``q_i ~ sqrt(a_i / c_i)``.
- *Inner product.* The estimate ``w_j x_j / p_j`` of a draw has the second moment ``sum_j w_j^2 a_j / p_j`` for any
  ball: with ``w_j^2 a_j`` instead of ``a_i``, ``p_j ~ |w_j| sqrt(a_j / c_j)``.
- *Data point, 1-ball.* The bound of exponentiated gradient depends on ``M = max_i a_i / q_i``. As ``M q_i >= a_i`` for
  each i, ``M sum_i q_i c_i >= sum_i a_i c_i``, with equality only where ``q_i ~ a_i``: prices change nothing.

With equal prices these are the draws of Kukliansky & Shamir 2015 (Equation 2 and Section 5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np

from budgetreg.algorithms.regressors import FAN, ActiveRows, Layout, ScaledRegressors, SparsePoints
from budgetreg.algorithms.vectors import Averager, sum_in_order
from budgetreg.common.streams import BLOCK, blocks, subset, uniform

if TYPE_CHECKING:
    from budgetreg.algorithms.learner import BudgetSplit, Rngs
    from budgetreg.metering.accessor import Accessor


class Regressors(Protocol):
    """State of F x G replicas of an update rule, with the running sums of their iterates."""

    layout: Layout
    """Shape of the sampler's trees."""
    active: ActiveRows
    """The coordinates that steps have changed, or are about to change."""
    held: np.ndarray
    """Number of the iterate that each stream holds, shape (F,): that of its last example, or of a phase before."""

    @property
    def nonzero(self) -> np.ndarray:
        """Replicas with an inner product to estimate, shape (F, G)."""

    def project_and_accumulate(self, now: np.ndarray) -> None:
        """Project, then add the regressors to the sum for the steps after those held up to ``now``, shape (F,)."""

    def draw(self, uniforms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Draw for the inner product: attributes j and coefficients ``w_j / p_j``, both (n, F, G), from (n, F)."""

    def step(self, taken: Round, residual: np.ndarray) -> None:
        """Take a step along ``phi~ x~`` for residual estimates phi~ of shape (F, G)."""

    def running_sum(self) -> np.ndarray:
        """Return the sum of the iterates held so far, shape (F, d, G)."""

    def iterate(self) -> np.ndarray:
        """Return the regressors, shape (F, d, G); valid after `project_and_accumulate`."""


def run(
    accessor: Accessor,
    state: Regressors,
    checkpoints: Sequence[int],
    rngs: Rngs,
    samplers: Sequence[DataPointSampler],
    budget_split: BudgetSplit,
    *,
    average: str,
    revealed: Callable[[np.ndarray, np.ndarray], None] = lambda attributes, values: None,
    control: ControlVariate | None = None,
) -> Iterator[tuple[int, np.ndarray]]:
    """Let a state learn from the examples between those that it holds and the last checkpoint.

    Parameters
    ----------
    accessor, checkpoints, rngs
        As for `budgetreg.algorithms.learner.Learner.fit`.
    state : Regressors
        The replicas at their start.
    samplers : sequence of callable
        The data point's sampler of each stream.
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
    first, (k_x, k_ip) = int(state.held[0]), budget_split
    stream, inverse_q = np.arange(accessor.n_streams), _inverse_probabilities(samplers)
    averager = Averager([checkpoint - first for checkpoint in checkpoints], average)
    marks = [first + mark for mark in averager.marks]
    for start, stop in blocks(first, checkpoints[-1]):
        attributes, uniforms = (part[:, : stop - start] for part in next_block(rngs, samplers, accessor.d, k_x, k_ip))
        accessor.open(start, stop)
        y, values = accessor.targets(), accessor.reveal_block(attributes)
        revealed(attributes, values)
        if control:
            control.open(attributes, values, y)
        scale = accessor.d if inverse_q is None else inverse_q[stream[:, None, None], attributes]
        points = sparse_points(attributes, values * (scale / k_x))
        state.active.add(points)
        skipped: _ItemisedDraws | _CountedDraws = _CountedDraws(accessor, points, uniforms.shape)
        if accessor.itemised:
            skipped = _ItemisedDraws(accessor, state, attributes, uniforms)
        begin = start
        # The iterate w_mark is observed before the step of its example moves it.
        for end, mark in [*((mark - 1, mark) for mark in marks if start < mark <= stop), (stop, None)]:
            for taken in rounds(points, start, begin, end, state.held, state.layout):
                state.project_and_accumulate(taken.step)
                skipped.note(taken.live, taken.position, state.nonzero)
                state.step(*_estimated(accessor, state, taken, uniforms, y, control))
            begin = end
            state.project_and_accumulate(np.full(len(y), stop if mark is None else mark))
            output = averager.observe(mark - first, state.running_sum, state.iterate) if mark else None
            if output:
                yield first + output[0], output[1]
        skipped.close(state.nonzero)


def _estimated(
    accessor: Accessor,
    state: Regressors,
    taken: Round,
    uniforms: np.ndarray,
    y: np.ndarray,
    control: ControlVariate | None,
) -> tuple[Round, np.ndarray]:
    """Draw for the inner products of a round, and return the estimates x~ and phi~ (F, G) along which it steps.

    With missing values the gradient of the formula at the head of this module takes the place of x~, and phi~ is 1.
    """
    stream, nonzero, k_ip = np.arange(len(y)), state.nonzero, uniforms.shape[2]
    j, coefficient = state.draw(np.ascontiguousarray(uniforms[stream, taken.position].T))
    x = accessor.reveal(taken.position, j, nonzero & taken.live[:, None])
    target = y[stream, taken.position]
    if not accessor.complete:
        f = taken.stream
        i, terms = taken.row - f * state.layout.padded, coefficient * x / k_ip
        product = sum_in_order(terms[:, f] / accessor.together(f[:, None], i[:, None], j[:, f]))
        gradient = taken.values * (product - (target[f] / accessor.together(f, i, i))[:, None])
        return replace(taken, value=gradient), np.ones(nonzero.shape)
    if control:
        x, expected = control.split(j, x, target)
        product = sum_in_order(coefficient * x) / k_ip + expected
    else:
        product = sum_in_order(coefficient * x) / k_ip
    return taken, np.where(nonzero, product, 0.0) - target[:, None]


def _inverse_probabilities(samplers: Sequence[DataPointSampler]) -> np.ndarray | None:
    """Return ``1 / q_i`` of each stream, shape (F, d), 1 where ``q_i = 0``; None if all are d."""
    q = [sampler.q for sampler in samplers if isinstance(sampler, Proportional)]
    return 1 / np.where(np.stack(q) > 0, q, 1.0) if q else None


class _ItemisedDraws:
    """Charge, attribute by attribute, the draws of steps that turn out to change nothing.

    The attributes follow from uniforms (F, T, k_ip) and the regressors of the step.

    If no value drawn for the data point is available, the step is known to be void and draws nothing. The block's data
    points have the attributes (F, T, k_x).
    """

    def __init__(self, accessor: Accessor, state: Regressors, attributes: np.ndarray, uniforms: np.ndarray) -> None:
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
        F, T, k_ip = self._shape
        paying = np.empty((F, T, nonzero.shape[1]), dtype=np.int32)  # 1 for skipped steps with w != 0
        paying[:] = nonzero[:, None]
        if not (nonzero.all() and all(before.all() for _, _, before in self._rounds)):
            begin = np.zeros(F, dtype=np.intp)
            for live, position, before in self._rounds:
                for f in np.flatnonzero(live):
                    paying[f, begin[f] : position[f]] = before[f]
                    begin[f] = position[f]
        paying[self._points.stream, self._points.position] = 0
        self._accessor.pay(k_ip * paying)


DataPointSampler = Callable[[np.random.Generator, int, int], np.ndarray]


class Proportional:
    """Draw attributes i.i.d. in proportion to weights, shape (BLOCK, k_x) (DDAERR and DDAELR).

    Parameters
    ----------
    weights : ndarray of float, shape (d,)
        At least 0, and not all 0.
    """

    def __init__(self, weights: np.ndarray) -> None:
        self.q = weights / weights.sum()
        self._below = np.cumsum(self.q)
        self._last = int(np.flatnonzero(self.q)[-1])

    def __call__(self, rng: np.random.Generator, d: int, k_x: int) -> np.ndarray:
        """Draw by inverting the distribution function; ``side="right"`` skips attributes of weight 0."""
        u = rng.random((BLOCK, k_x)) * self._below[-1]
        return np.minimum(np.searchsorted(self._below, u, side="right"), self._last)


DATA_POINT_SAMPLERS: Mapping[str, DataPointSampler] = {"uniform": uniform, "subset": subset}
"""The samplers with ``q = 1/d``, by name."""


def next_block(
    rngs: Sequence[np.random.Generator], samplers: Sequence[DataPointSampler], d: int, k_x: int, k_ip: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw the next block of every stream.

    Parameters
    ----------
    rngs : sequence of numpy.random.Generator
        One per stream.
    samplers : sequence of callable
        The sampler of the data point's attributes, for each stream.
    d, k_x, k_ip : int
        Attributes, draws for the data point, draws for the inner product.

    Returns
    -------
    attributes : ndarray of int, shape (F, BLOCK, k_x)
        Attributes drawn for the data point.
    uniforms : ndarray of float, shape (F, BLOCK, k_ip)
        Numbers in [0, 1), later turned into attributes by each replica's own distribution.
    """
    blocks = [(sampler(rng, d, k_x), rng.random((BLOCK, k_ip))) for rng, sampler in zip(rngs, samplers, strict=True)]
    attributes, uniforms = zip(*blocks, strict=True)
    return np.stack(attributes), np.stack(uniforms)


def data_point_weights(update: str, moments: np.ndarray, prices: np.ndarray | None) -> np.ndarray:
    """Return the weights that q is proportional to.

    Parameters
    ----------
    update : {'ogd', 'eg'}
        On the 2-ball; or on the 1-ball, where prices change nothing.
    moments : ndarray of float, shape (F, d)
        ``E x_i^2`` as each stream knows it.
    prices : ndarray of float, shape (d,), or None
        Prices of the attributes, all above 0; None: all the same.

    Returns
    -------
    ndarray of float, shape (F, d)
    """
    return inner_product_weights(moments, prices) if update == "ogd" else moments


def inner_product_weights(moments: np.ndarray, prices: np.ndarray | None) -> np.ndarray:
    """Return the weights that p is proportional to, divided by ``|w_j|``; parameters as for `data_point_weights`."""
    return np.sqrt(moments if prices is None else moments / prices)


@dataclass(frozen=True)
class Round:
    """One step of every stream that still has one.

    Attributes
    ----------
    live : ndarray of bool, shape (F,)
        Streams that take part.
    step : ndarray of int, shape (F,)
        The current step t = 1..m of each stream; that of an idle stream is its last one.
    position : ndarray of int, shape (F,)
        The position of its example in the block; 0 for a stream that has been idle in this block.
    stream, row : ndarray of int, shape (N,)
        Changed coordinates, sorted: the stream, and the row of (stream, attribute) in state arrays.
    value : ndarray of float, shape (N,) or (N, G)
        Values of these coordinates in ``x~``, or in gradients, which differ between the settings.
    stream_start : ndarray of int, shape (L,)
        Positions at which a new stream begins among them.
    nodes : tuple of ndarray of int
        The nodes of the sampler above them at each level, without repetition.
    """

    live: np.ndarray
    step: np.ndarray
    position: np.ndarray
    stream: np.ndarray
    row: np.ndarray
    value: np.ndarray
    stream_start: np.ndarray
    nodes: tuple[np.ndarray, ...]

    @property
    def streams(self) -> np.ndarray:
        """Streams with a changed coordinate, shape (L,)."""
        return self.stream[self.stream_start]

    @property
    def values(self) -> np.ndarray:
        """Coordinates for all settings, shape (N, 1), or for each, (N, G)."""
        return self.value.reshape(len(self.value), -1)


def sparse_points(attributes: np.ndarray, values: np.ndarray) -> SparsePoints:
    """Sum repeated draws of an attribute and drop zeros.

    Parameters
    ----------
    attributes : ndarray of int, shape (F, T, k_x)
        Attributes drawn for each example.
    values : ndarray of float, shape (F, T, k_x)
        Weighted values, ``x[i_r] / (k_x q[i_r])``.
    """
    _, n_examples, k_x = attributes.shape
    order = np.argsort(attributes, axis=-1, kind="stable")
    order += np.arange(0, attributes.size, k_x).reshape(*attributes.shape[:2], 1)
    attribute = attributes.reshape(-1).take(order.reshape(-1))
    first = np.ones(attributes.size, dtype=bool)
    np.not_equal(attribute[1:], attribute[:-1], out=first[1:])
    first[::k_x] = True
    starts = np.flatnonzero(first)
    value = np.add.reduceat(values.reshape(-1).take(order.reshape(-1)), starts)
    kept = value != 0
    starts, value = starts[kept], value[kept]
    stream, position = np.divmod(starts // k_x, n_examples)
    return SparsePoints(stream, position, attribute[starts], value)


def rounds(
    points: SparsePoints, start: int, first: int, last: int, previous: np.ndarray, layout: Layout
) -> Iterator[Round]:
    """Align the steps ``first < t <= last`` of all streams.

    Parameters
    ----------
    points : SparsePoints
        The data points of the block.
    start : int
        Number of examples before the block: the example at position p is step ``start + p + 1``.
    first, last : int
        The range of steps, within the block.
    previous : ndarray of int, shape (F,)
        Last step of each stream.
    layout : Layout
        The shape of the sampler's trees.

    Yields
    ------
    Round
    """
    step = points.position + start + 1
    inside = np.flatnonzero((step > first) & (step <= last))
    if not inside.size:
        return
    stream, step = points.stream[inside], step[inside]
    opens = _changes(stream) | _changes(step)
    heads = np.flatnonzero(opens)
    head_stream, head_step = stream[heads], step[heads]
    n_streams = previous.size
    counts = np.bincount(head_stream, minlength=n_streams)
    offsets = np.cumsum(counts) - counts
    head_round = np.arange(heads.size) - offsets[head_stream]
    n_rounds = int(counts.max())

    live = np.arange(n_rounds)[:, None] < counts
    steps = np.repeat(previous[None, :], n_rounds, axis=0)
    steps[head_round, head_stream] = head_step
    np.maximum.accumulate(steps, axis=0, out=steps)

    round_of = head_round[np.cumsum(opens) - 1]
    by_round = np.argsort(round_of, kind="stable")
    round_of, inside = round_of[by_round], inside[by_round]
    stream, value = points.stream[inside], points.value[inside]
    row = stream * layout.padded + points.attribute[inside]
    new_stream, new_round = _changes(stream), _changes(round_of)
    bounds = np.append(np.flatnonzero(new_round), inside.size)
    starts = _parts(np.flatnonzero(new_stream | new_round), bounds)
    node, nodes = row, []
    for _ in range(layout.levels):
        node = node // FAN
        opening = np.flatnonzero(_changes(node) | new_round)
        nodes.append([node[part] for part in _parts(opening, bounds)])
    for n, (begin, end) in enumerate(pairwise(bounds.tolist())):
        part = slice(begin, end)
        above = tuple(level[n] for level in nodes)
        at = np.maximum(steps[n] - 1 - start, 0)
        yield Round(live[n], steps[n], at, stream[part], row[part], value[part], starts[n] - begin, above)


def _changes(values: np.ndarray) -> np.ndarray:
    """Return which values differ from the one before; the first one counts as different."""
    changes = np.ones(values.size, dtype=bool)
    np.not_equal(values[1:], values[:-1], out=changes[1:])
    return changes


def _parts(positions: np.ndarray, bounds: np.ndarray) -> list[np.ndarray]:
    """Split ascending positions at bounds, of which the first and the last enclose them."""
    cuts = np.searchsorted(positions, bounds).tolist()
    return [positions[begin:end] for begin, end in pairwise(cuts)]


# Control variates: draws for the inner product estimate only the difference from the expected attributes.
#
# With ``mu(y) = a`` or ``a + b y`` as the expectation of the attributes, the estimate of the residual becomes
#
#     phi~ = <w, mu(y)> - y + mean_s (w_j / p_j) (x_j - mu_j(y)),    j drawn from p,
#
# unbiased for any mu that does not depend on the draws for the same example. One draw has the second moment ``sum_j
# w_j^2 (x_j - mu_j)^2 / p_j`` about ``<w, mu>`` instead of ``sum_j w_j^2 x_j^2 / p_j`` about 0.
#
# The estimate of the data point has no control variate: ``mu + (x - mu)~`` would change all d coordinates at every
# step, where the plain estimate changes k_x of them.

PRIOR = 1.0
"""Number of draws of the value 0, at targets of either sign, that are added to those seen; they shrink mu to 0."""


class ControlVariate:
    """The control variate of all replicas of a state; mu is estimated for each stream from earlier blocks.

    Parameters
    ----------
    state : ScaledRegressors
        The replicas.
    n_streams, d : int
        F and d.
    slope : bool
        Whether mu depends on the target: ``a + b y``, else ``a``.
    """

    def __init__(self, state: ScaledRegressors, n_streams: int, d: int, *, slope: bool) -> None:
        self._state, self._slope = state, slope
        # Sums of 1, x, and with a slope also of y, y^2, x y, over the values seen of each attribute.
        self._sums = np.zeros((5 if slope else 2, n_streams, d))

    def open(self, attributes: np.ndarray, values: np.ndarray, y: np.ndarray) -> None:
        """Fix mu for a block, then add the values of its data points to the sums.

        Parameters
        ----------
        attributes : ndarray of int, shape (F, T, k_x)
            Attributes seen.
        values : ndarray of float, shape (F, T, k_x)
            Their values.
        y : ndarray of float, shape (F, T)
            Targets.
        """
        from budgetreg.metering.table import sums

        self._state.expect(self._coefficients())
        targets = np.broadcast_to(y[:, :, None], values.shape)
        terms = [np.ones(values.shape), values, targets, targets**2, values * targets][: len(self._sums)]
        self._sums += [sums(attributes, term, self._sums.shape[2]) for term in terms]

    def split(self, attributes: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the deviation of each draw from its expectation, and the expected inner product.

        Parameters
        ----------
        attributes : ndarray of int, shape (n, F, G)
            Draws of each replica.
        x : ndarray of float, shape (n, F, G)
            Their values.
        y : ndarray of float, shape (F,)
            Targets.

        Returns
        -------
        ndarray of float, shape (n, F, G)
            ``x_j - mu_j(y)``.
        ndarray of float, shape (F, G)
            ``<w, mu(y)>``.
        """
        single, product = self._state.expected(attributes)
        if not self._slope:
            return x - single, product
        y = y[:, None]
        return x - (single.real + y * single.imag), product.real + y * product.imag

    def _coefficients(self) -> np.ndarray:
        """Return ``a`` or ``a + ib``, shape (F, d): least squares, with `PRIOR` more draws of each attribute."""
        n, x = self._sums[0] + PRIOR, self._sums[1]
        if not self._slope:
            return x / n
        y, square, xy = self._sums[2:]
        typical = square.sum(axis=1, keepdims=True) / np.maximum(self._sums[0].sum(axis=1, keepdims=True), 1)
        square = square + PRIOR * np.where(typical > 0, typical, 1.0)
        return (x * square - xy * y + 1j * (n * xy - x * y)) / (n * square - y**2)
