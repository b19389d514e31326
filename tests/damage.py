"""Damage to files, one bit at a time, as by a disk that rots."""

import os
from pathlib import Path

import numpy as np

from budgetreg.data import cache


def flip(path: Path, rng: np.random.Generator) -> None:
    """Invert one random bit of a file; nothing is taken for verified, as in a process that starts afterwards."""
    content = bytearray(path.read_bytes())
    content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    before = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    cache._verified.clear()
