"""Two-level sampling of attributes in proportion to weights that change by a few coordinates per step.

The weights of a replica are cut into blocks of about sqrt(d) attributes.  A draw inverts the distribution function of
the block sums, then that of one block: O(sqrt(d)) instead of O(d), and an update of a weight touches one sum.
Prefix sums are products with a triangular matrix, stream by stream, since numpy's cumsum is slow on short rows; the
shapes of these products never depend on the batch, hence neither do their bits.
"""

from collections.abc import Callable

import numpy as np

from budgetreg.rounds import Round


class BlockLayout:
    """How d attributes are cut into blocks of equal width.

    Parameters
    ----------
    d : int
        Number of attributes.

    Attributes
    ----------
    width, n_blocks : int
        About ``sqrt(d)`` each; ``width * n_blocks >= d``, the last block is padded with weight 0.
    """

    def __init__(self, d: int) -> None:
        self.d = d
        self.width = int(np.ceil(np.sqrt(d)))
        self.n_blocks = -(-d // self.width)
        self._prefix_blocks = np.tri(self.n_blocks + 1, self.n_blocks, -1)
        self._prefix_width = np.tri(self.width)

    def prefix(self, sums: np.ndarray) -> np.ndarray:
        """Return the sums before each block and, last, the total: (F, n_blocks, G) to (F, n_blocks + 1, G)."""
        return np.matmul(self._prefix_blocks, sums)

    def invert(
        self, prefix: np.ndarray, uniforms: np.ndarray, leaves: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Turn uniforms into attributes by inverting each replica's distribution function.

        Parameters
        ----------
        prefix : ndarray of float, shape (F, n_blocks + 1, G)
            From `prefix`.
        uniforms : ndarray of float, shape (F, n)
            Numbers in [0, 1), shared by the settings of a stream.
        leaves : callable
            Gives the weights, shape (F, G * n, width), of blocks named by an array of shape (F, G * n), in which the
            draws of a setting stand together.

        Returns
        -------
        ndarray of int, shape (F, G, n)
            Attributes.  One of weight 0 comes only by round-off at the edge of a block, or where all weights are 0.
        """
        n_streams, n_prefix, n_settings = prefix.shape
        n = uniforms.shape[1]
        target = prefix[:, -1, :, None] * uniforms[:, None, :]
        block = _count(prefix[:, 1:, :, None] <= target[:, None, :, :], self.n_blocks - 1)
        target -= prefix.reshape(-1).take(block * n_settings + corners(n_streams, n_settings, n_prefix))
        flat = (n_streams, n_settings * n)
        block = block.reshape(flat)
        inside = np.matmul(self._prefix_width, leaves(block).transpose(0, 2, 1)) <= target.reshape(flat)[:, None, :]
        attributes = block * self.width + _count(inside, self.width - 1)
        return np.minimum(attributes, self.d - 1).reshape(n_streams, n_settings, n)


def corners(n_streams: int, n_settings: int, d: int) -> np.ndarray:
    """Return the flat position of attribute 0 of each replica in an array (F, d, G), shape (F, G, 1)."""
    return np.arange(n_streams)[:, None, None] * (d * n_settings) + np.arange(n_settings)[:, None]


def _count(below: np.ndarray, most: int) -> np.ndarray:
    """Count along axis 1, at most `most`; in the narrowest integers, which is where the time goes."""
    dtype = np.min_scalar_type(below.shape[1])
    return np.minimum(np.add.reduce(below.view(np.uint8), axis=1, dtype=dtype), most).astype(np.intp)


class Weights:
    """Nonnegative sampling weights of every replica, with the sums of their blocks.

    Parameters
    ----------
    n_streams, n_settings : int
        F and G.
    d : int
        Number of attributes.

    Notes
    -----
    The leaves are stored replica by replica, so that a block is one short row to fetch; the sums block by block, so
    that the settings of a stream are updated together.
    """

    def __init__(self, n_streams: int, n_settings: int, d: int) -> None:
        self.layout = BlockLayout(d)
        self._shape = (n_streams, n_settings)
        self._leaves = np.zeros((n_streams, n_settings, self.layout.n_blocks * self.layout.width))
        self.sums = np.zeros((n_streams, self.layout.n_blocks, n_settings))
        self._setting_base = np.arange(n_settings) * self._leaves.shape[2]
        self._replica_row = np.arange(n_streams * n_settings).reshape(self._shape) * self.layout.n_blocks

    def blocks(self, block: np.ndarray) -> np.ndarray:
        """Fetch the weights of blocks, (F, G * n) to (F, G * n, width), as `BlockLayout.invert` asks for."""
        n_streams, n_settings = self._shape
        rows = self._replica_row[:, :, None] + block.reshape(n_streams, n_settings, -1)
        table = self._leaves.reshape(-1, self.layout.width)
        return table.take(rows.reshape(block.shape), axis=0, mode="clip")

    def assign(self, coordinates: Round, new: np.ndarray) -> None:
        """Set the weights (N, G) of the coordinates a round touches; the sums are left to `add`."""
        stride = self._leaves.shape[2]
        base = coordinates.stream * (self._shape[1] * stride) + coordinates.attribute
        self._leaves.reshape(-1)[base[:, None] + self._setting_base] = new

    def add(self, coordinates: Round, change: np.ndarray) -> None:
        """Add the changes (N, G) of the weights a round touches to the sums of their blocks."""
        starts = coordinates.block_start
        where = coordinates.stream[starts], coordinates.attribute[starts] // self.layout.width
        self.sums[where] += np.add.reduceat(change, starts, axis=0)

    def rows(self, blocks: tuple[np.ndarray, ...]) -> np.ndarray:
        """Fetch the weights of K blocks (streams, blocks, settings), each of shape (K,), as rows (K, width)."""
        stream, block, setting = blocks
        return self._leaves.reshape(-1, self.layout.width).take(self._replica_row[stream, setting] + block, axis=0)

    def set_rows(self, blocks: tuple[np.ndarray, ...], rows: np.ndarray) -> None:
        """Set the weights (K, width) of K blocks, named as in `rows`, and sum them afresh."""
        stream, block, setting = blocks
        self._leaves.reshape(-1, self.layout.width)[self._replica_row[stream, setting] + block] = rows
        self.sums[blocks] = rows.sum(axis=1)

    def rebuild(self, stream: np.ndarray, setting: np.ndarray, new: np.ndarray) -> None:
        """Set all weights of some replicas, (n,) each, to `new` of shape (n, d), and sum them afresh."""
        self._leaves[stream, setting, : self.layout.d] = new
        leaves = self._leaves[stream, setting].reshape(-1, self.layout.n_blocks, self.layout.width)
        self.sums[stream, :, setting] = leaves.sum(axis=2)

    def rebuild_all(self, new: np.ndarray) -> None:
        """Set all weights of all replicas to `new` of shape (F, d, G), and sum them afresh."""
        self._leaves[:, :, : self.layout.d] = new.transpose(0, 2, 1)
        leaves = self._leaves.reshape(*self._shape, self.layout.n_blocks, self.layout.width)
        self.sums[:] = leaves.sum(axis=3).transpose(0, 2, 1)
