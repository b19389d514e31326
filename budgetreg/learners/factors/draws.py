"""Which attributes of an example are seen: a fixed number of them, uniformly at first and as planned later."""

import numpy as np

from budgetreg.sampling.designs import Draw, fixed_size
from budgetreg.sampling.draws import subset


class AttributeDraws:
    """Attributes of one example after another, drawn in blocks that checkpoints do not change.

    Parameters
    ----------
    rng : numpy.random.Generator
        The stream's.
    d, k : int
        Attributes, and how many are drawn of each example, without replacement.
    """

    def __init__(self, rng: np.random.Generator, d: int, k: int) -> None:
        self.k, self._rng = k, rng
        self._draw = lambda rng: Draw(subset(rng, d, k))
        self._left = np.empty((0, k), dtype=np.int64)

    def plan(self, p: np.ndarray) -> None:
        """Draw with other probabilities from now on: about p (d,), see `budgetreg.sampling.designs.fixed_size`."""
        self._draw = fixed_size(p, self.k)
        self._left = self._left[:0]

    def take(self, examples: int) -> np.ndarray:
        """Return the attributes (T, k) of the next examples."""
        while len(self._left) < examples:
            self._left = np.append(self._left, self._draw(self._rng).attributes, axis=0)
        taken, self._left = self._left[:examples], self._left[examples:]
        return taken
