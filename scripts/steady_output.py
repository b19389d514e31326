"""What makes the output of commands the same on every machine and at every speed; tests and scripts share it."""

import re

import numpy as np

_NEWER = [
    feature
    for feature in np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    if re.match("AVX512|X86_V4", feature)
]

KERNELS = {"OPENBLAS_CORETYPE": "Haswell", "NPY_DISABLE_CPU_FEATURES": " ".join(_NEWER), "OMP_NUM_THREADS": "1"}
"""Environment with the kernels that every x86 processor of the last ten years has: rounding grows in AEMR and AEML."""

PROGRESS = re.compile(r"(?m)^budgetreg: (?:.*: \d+ of \d+ repetitions(?:, about .*)?|\d+ of \d+: .*)$\n?")
"""Lines of progress, some of which only slow machines print."""

TIMES = re.compile(r"'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ'")
"""When events of a study were recorded, in its SQL."""


def without_seconds(table: bytes) -> bytes:
    """Return the content of a ``runs.csv`` without the column of times."""
    rows = [row.split(b",") for row in table.splitlines(keepends=True)]
    place = rows[0].index(b"seconds")
    return b"".join(b",".join([*row[:place], *row[place + 1 :]]) for row in rows)
