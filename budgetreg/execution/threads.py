"""One BLAS thread per process: processes share the work, and results do not depend on the number of cores."""

import os

_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


def pin_blas_threads() -> None:
    """Set the variables that limit BLAS and OpenMP to one thread, in this process and those it starts.

    They are read when numpy loads, hence call this before. A user's own setting is replaced: sums in another
    order differ in their last bits, and the same configuration must give the same bytes.
    """
    for variable in _VARIABLES:
        os.environ[variable] = "1"
