"""Linear regression when every attribute costs: learners on a budget, with an honest attribute bill.

import budgetreg
results = budgetreg.run({"algo": "aelr", "k": 4, "repetitions": 2})
print(results.curves.groupby("examples")[["attributes", "test_relative"]].mean())
"""

TYPE_CHECKING = False  # typing has it, and takes longer to load than all of --help
if TYPE_CHECKING:
    from budgetreg.api import fit, load, run

__all__ = ["__version__", "fit", "load", "run"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Load what computes when it is first asked for: to import the package costs next to nothing."""
    if name not in ("fit", "load", "run"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from budgetreg import api

    return getattr(api, name)
