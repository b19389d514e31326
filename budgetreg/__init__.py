"""Linear regression when each measured feature costs money: learners on a budget, and every value on the bill.

import budgetreg
results = budgetreg.run({"algo": "aelr", "k": 4, "repetitions": 2})
print(results.curves.groupby("examples")[["attributes", "test_relative"]].mean())
"""

TYPE_CHECKING = False  # typing has it, and takes longer to load than all of --help
if TYPE_CHECKING:
    from budgetreg import estimators
    from budgetreg.api import draw_study, fit, load, predict, run
    from budgetreg.cli.advise import advise
    from budgetreg.study import Study

__all__ = ["Study", "__version__", "advise", "draw_study", "estimators", "fit", "load", "predict", "run"]

__version__ = "0.1.0"

_PLACES = {name: "budgetreg.api" for name in ("draw_study", "fit", "load", "predict", "run")}
_PLACES |= {"Study": "budgetreg.study", "advise": "budgetreg.cli.advise"}


def __getattr__(name: str) -> object:
    """Import a name when it is first used, so that importing the package takes almost no time."""
    from importlib import import_module

    if name == "estimators":
        return import_module("budgetreg.estimators")
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
