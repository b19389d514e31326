"""Online ridge and online lasso: all attributes are seen, and steps use the exact gradient ``g = (<w, x> - y) x``.

The G settings of a stream take each step together, as arrays (G, d) that fit the processor's cache. The F streams take
turns at each example, so that no stream changes another's result.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from budgetreg.metering.accessor import Accessor
from budgetreg.updates.averaging import Averager
from budgetreg.updates.inner_product import inner_products
from budgetreg.updates.ogd import project_l2

_BLOCK_VALUES = 2**18
"""Attribute values of one stream in a block."""


def fit(
    accessor: Accessor,
    settings: Mapping[str, np.ndarray],
    checkpoints: Sequence[int],
    rngs: Sequence[np.random.Generator] = (),
    *,
    update: str,
    average: str,
) -> Iterator[tuple[int, np.ndarray]]:
    """Run online ridge or online lasso along all streams.

    These are the updates of AERR and AELR from ``w_1 = 0``, with the exact gradient. Hazan & Koren 2012 and
    Kukliansky & Shamir 2015 compare their learners with them.

    Parameters
    ----------
    accessor, settings, checkpoints, rngs
        As for `budgetreg.learners.declaration.Learner.fit`; d attributes of each example are charged, settings are
        ``B`` and ``eta``, and nothing is drawn.
    update : {'ogd', 'eg'}
        'ogd' is online ridge, gradient descent on the 2-ball; 'eg' is online lasso, exponentiated gradient on the
        1-ball.
    average : {'all', 'suffix', 'last'}
        Which iterates the output averages.

    Yields
    ------
    checkpoint : int
        In increasing order.
    W : ndarray of float, shape (F, d, G)
        Output regressors.
    """
    G, d = accessor.n_settings, accessor.d
    streams = [_UPDATES[update](G, d, settings["B"], settings["eta"]) for _ in range(accessor.n_streams)]
    averager = Averager(checkpoints, average)
    marks = set(averager.marks)
    last = max(checkpoints)
    block = max(1, _BLOCK_VALUES // d)

    def running_sum() -> np.ndarray:
        return np.stack([stream.total for stream in streams])

    def iterate() -> np.ndarray:
        return np.stack([stream.w for stream in streams])

    for start in range(0, last, block):
        X, y = accessor.rows(start, min(start + block, last))
        for position in range(X.shape[1]):
            for stream in streams:
                stream.total += stream.w
            t = start + position + 1
            output = averager.observe(t, running_sum, iterate) if t in marks else None
            if output is not None:
                yield output[0], np.ascontiguousarray(output[1].swapaxes(1, 2))
            for f, stream in enumerate(streams):
                stream.step(X[f, position], y[f, position])


class _OGD:
    """Gradient descent on the 2-ball: ``w <- v B / max(|v|_2, B)``, ``v = w - eta g``."""

    def __init__(self, G: int, d: int, B: np.ndarray, eta: np.ndarray) -> None:
        self.B, self.eta = B, eta
        self.w, self.total = np.zeros((G, d)), np.zeros((G, d))

    def step(self, x: np.ndarray, y: float) -> None:
        residual = inner_products(self.w, x) - y
        self.w -= (self.eta * residual)[:, None] * x
        self.w = project_l2(self.w, self.B)


class _EG:
    """Exponentiated gradient on the 1-ball: ``theta -= eta clip(g, 1/eta)``.

    ``w = B sinh(theta) / sum(cosh(theta))``, both multiplied by ``2 exp(-max |theta|)`` against overflow.
    """

    def __init__(self, G: int, d: int, B: np.ndarray, eta: np.ndarray) -> None:
        self.B, self.eta = B, eta
        self.w, self.total, self._theta = np.zeros((G, d)), np.zeros((G, d)), np.zeros((G, d))

    def step(self, x: np.ndarray, y: float) -> None:
        residual = inner_products(self.w, x) - y
        self._theta -= np.clip((self.eta * residual)[:, None] * x, -1, 1)
        M = np.abs(self._theta).max(axis=1, keepdims=True)
        up, down = np.exp(self._theta - M), np.exp(-M - self._theta)
        self.w = (up - down) * (self.B / (up + down).sum(axis=1))[:, None]


_UPDATES: dict[str, type[_OGD] | type[_EG]] = {"ogd": _OGD, "eg": _EG}
