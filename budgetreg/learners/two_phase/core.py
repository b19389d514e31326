"""Two-phased DDAERR and DDAELR, which estimate the second moments that their draws depend on.

The first phase runs AERR or AELR, with uniform draws, and estimates the moments from what they reveal. The second phase
starts from the first one's average and draws as DDAERR or DDAELR do (Kukliansky & Shamir 2015, Algorithms 2 and 4; that
the first phase learns is in Section 5).
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from budgetreg.learners.partial.core import UPDATES, run
from budgetreg.metering.accessor import Accessor
from budgetreg.sampling import importance_weights
from budgetreg.sampling.draws import Proportional, uniform
from budgetreg.theory import first_phase, moment_error

CONFIDENCE = 0.05
"""Probability delta, in the theory, that an estimated moment is too small."""


class MomentEstimates:
    """Estimates of the attributes' second moments ``A_i``, from the uniform draws of F streams."""

    def __init__(self, n_streams: int, d: int) -> None:
        self._squares, self._times = np.zeros((n_streams, d)), np.zeros((n_streams, d))

    def note(self, attributes: np.ndarray, values: np.ndarray, available: np.ndarray) -> None:
        """Add a block's attributes, values, and which of them are available, (F, T, k_x) each."""
        n_streams, d = self._times.shape
        for f in range(n_streams):
            drawn = attributes[f].ravel()
            self._times[f] += np.bincount(drawn, available[f].ravel(), minlength=d)
            self._squares[f] += np.bincount(drawn, np.square(values[f]).ravel(), minlength=d)

    def means(self) -> np.ndarray:
        """Return ``A``, shape (F, d); attributes that were never drawn get the mean of the others."""
        known = self._times > 0
        A = np.divide(self._squares, self._times, out=np.zeros_like(self._squares), where=known)
        typical = A.sum(axis=1, keepdims=True) / np.maximum(known.sum(axis=1, keepdims=True), 1)
        return np.where(known, A, typical)


def mixed(weights: np.ndarray, mix: float) -> np.ndarray:
    """Return weights (F, d) divided by their means and mixed with equal weights.

    Otherwise an attribute that was 0 in all draws of the first phase would never be drawn again.
    """
    mean = weights.mean(axis=1, keepdims=True)
    return np.where(mean > 0, (1 - mix) * weights / np.where(mean > 0, mean, 1.0) + mix, 1.0)


def fit(
    accessor: Accessor,
    settings: Mapping[str, np.ndarray],
    checkpoints: Sequence[int],
    rngs: Sequence[np.random.Generator],
    *,
    update: str,
    inner_product: str,
    k_x: int,
    k_ip: int,
    average: str,
    phase_one: float,
    smoothing: float | str,
    mix: float,
    prices: np.ndarray | None = None,
) -> Iterator[tuple[int, np.ndarray]]:
    """Run all settings along all streams of the accessor, one pass.

    Parameters
    ----------
    accessor, checkpoints, rngs, update, inner_product, k_x, k_ip
        As for `budgetreg.learners.partial.core.fit`, with 'ogd' or 'eg'.
    settings : mapping of str to ndarray of shape (G,)
        ``B``, and ``eta`` and ``eta_two``, the step sizes of the two phases.
    average : {'all', 'suffix', 'last'}
        Which iterates of its phase an output averages; the second phase starts from the first one's output.
    phase_one : float
        Share of the examples in the first phase.
    smoothing : float or 'theory'
        The error eps of the estimates: ``A + 13 eps / 6`` replaces the moments; 'theory': `moment_error`.
    mix : float
        Share of equal weights in the second phase's draws, see `mixed`.
    prices : ndarray of float, shape (d,), optional
        Costs of the attributes, which make the second phase's draws cost-aware, see
        `budgetreg.sampling.importance_weights`.

    Yields
    ------
    checkpoint : int
    W : ndarray of float, shape (F, d, G)
        Output regressors.
    """
    F, d, m = accessor.n_streams, accessor.d, checkpoints[-1]
    m_1 = first_phase(phase_one, m)
    estimates = MomentEstimates(F, d)

    def revealed(attributes: np.ndarray, values: np.ndarray) -> None:
        estimates.note(attributes, values, accessor.available(attributes))

    first = UPDATES[update](F, d, k_ip, {"B": settings["B"], "eta": settings["eta"]})
    early = sorted({*(checkpoint for checkpoint in checkpoints if checkpoint < m_1), m_1})
    phase = run(accessor, first, 0, early, rngs, [uniform] * F, k_x=k_x, k_ip=k_ip, average=average, revealed=revealed)
    for checkpoint, W in phase:
        start = W
        if checkpoint in checkpoints:
            yield checkpoint, W
    late = [checkpoint for checkpoint in checkpoints if checkpoint > m_1]
    if not late:
        return
    # With k_x draws: those for the inner product do not estimate moments. The paper's first phase has k draws for them.
    eps = moment_error(d, CONFIDENCE, k_x, m_1) if smoothing == "theory" else float(smoothing)
    A = estimates.means() + 13 / 6 * eps
    options = {}
    if inner_product == "moment":
        options["root_moments"] = mixed(importance_weights.inner_product(A, prices), mix)
    second = UPDATES[update](F, d, k_ip, {"B": settings["B"], "eta": settings["eta_two"]}, start=start, **options)
    samplers = [Proportional(weights) for weights in mixed(importance_weights.data_point(update, A, prices), mix)]
    yield from run(accessor, second, m_1, late, rngs, samplers, k_x=k_x, k_ip=k_ip, average=average)
