"""Payment for skipped steps, whose data point estimate is 0, so that they change nothing.

The draws must still be paid for, because the learner makes them before it can know. If the accessor records which
attributes are drawn, the draws are made with the regressors of that step; otherwise they are only counted.
"""

from collections.abc import Callable

import numpy as np

from budgetreg.metering.accessor import Accessor
from budgetreg.sampling.rounds import SparsePoints

InnerProductDraw = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Return attributes j and coefficients ``w_j / p_j`` of the inner product's draws, both (n, F, G), from (n, F)."""


def skipped_steps(
    accessor: Accessor, draw: InnerProductDraw, points: SparsePoints, attributes: np.ndarray, uniforms: np.ndarray
) -> "_ItemisedDraws | _CountedDraws":
    """Return the payment for the skipped steps of a block.

    The block's data points have the attributes (F, T, k_x), and its inner products are drawn by uniforms (F, T, k_ip).
    """
    if accessor.itemised:
        return _ItemisedDraws(accessor, draw, uniforms, np.asarray(accessor.available(attributes).any(axis=2)))
    return _CountedDraws(accessor, points, uniforms.shape)


class _ItemisedDraws:
    """Make the draws of skipped steps, with the regressors of that step, to pay for each attribute.

    If no value drawn for the data point is available, (F, T), the step is known to be void and draws nothing.
    """

    def __init__(self, accessor: Accessor, draw: InnerProductDraw, uniforms: np.ndarray, available: np.ndarray) -> None:
        self._accessor, self._draw, self._uniforms, self._available = accessor, draw, uniforms, available
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
            j, _ = self._draw(np.ascontiguousarray(self._uniforms[self._stream, step].T))
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
