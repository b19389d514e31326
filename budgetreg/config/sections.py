"""The keys of every run besides learner and data: the plain keys, the tuning and the backend."""

from collections.abc import Mapping

from budgetreg.config import options as must
from budgetreg.config.options import Option, Options

AUTO = "auto"
"""The value of k with which a learner chooses how many attributes it sees of each example."""

TOP: Options = {
    "experiment": Option("the recipe's name", must.TEXT),
    "protocol": Option("the preset", must.NAME | must.NOTHING, inert=True),
    "protocols": Option("the keys that each preset of a recipe sets", must.MAPPING, inert=True),
    "algo": Option("the learner"),
    "learners": Option("the keys that a recipe sets for each learner", must.MAPPING, inert=True),
    "omit": Option("the combinations that a recipe leaves out", must.MAPPINGS, inert=True),
    "dataset": Option("the data set"),
    "tuning": Option("the tuning"),
    "backend": Option("the backend", inert=True),
    "k": Option("the attribute budget", must.whole(1) | must.one_of(AUTO)),
    "intercept": Option(
        "the intercept", must.one_of("none", "mean") | must.NOTHING, default="none", null_for_own_data="mean"
    ),
    "pilot": Option(
        "the number of full rows that are seen first",
        must.one_of("auto") | must.whole(0) | must.NOTHING,
        0,
        null_for_own_data="auto",
    ),
    "axis": Option(
        "the axis on which all learners end at the same point",
        must.one_of("attributes", "examples", "paid"),
        default="attributes",
    ),
    "total": Option(
        "the number of attributes, or the money, that every learner ends at", must.whole(1) | must.NOTHING, default=None
    ),
    "repetitions": Option("the number of repetitions", must.whole(1), inert=True),
    "seed": Option("the seed", must.whole(0)),
    "checkpoints": Option(
        "the checkpoints",
        must.whole(1)
        | must.increasing("an increasing list of numbers of examples, each at least 1", must.whole(1))
        | must.increasing("of shares of the whole axis, above 0 and up to 1", must.FRACTION | must.ONE),
    ),
    "n_jobs": Option("the number of workers", must.whole(1), inert=True),
    "out": Option("the folder of the results", must.NAME | must.NOTHING, inert=True),
    "figure": Option("the style of a recipe's figure", must.MAPPING, inert=True),
    "differs": Option("the differences from the paper", must.LIST, inert=True),
    "claims": Option("a recipe's claims", must.LIST, inert=True),
}
"""The plain keys and the groups. Inert ones change a result only through the keys that they set."""

RECIPE = ("protocols", "learners", "omit", "figure", "differs", "claims")
"""Keys of a recipe that no run needs."""

_ADDRESS = must.matching(
    "tcp://HOST:PORT or tls://HOST:PORT", r"t(?:cp|ls)://([^\s:/\[\]]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}"
)

BACKEND: Options = {
    "name": Option("the backend's name", must.one_of("loky", "sequential", "dask")),
    "address": Option("the address of dask's scheduler", _ADDRESS | must.NOTHING, default=None, only=("name", "dask")),
    "batch_size": Option("the number of replicas advanced together", must.whole(1)),
}

_WIDEN = Option(
    "the number of times that a grid may be widened", must.whole(0) | must.NOTHING, default=0, null_for_own_data=3
)

TUNINGS = ("cv", "theory", "fixed", "honest")
RADIUS = "B"
"""The radius: with tuning=theory it may be given; otherwise cross-validation chooses it."""


def tuning_options(name: str, parameters: Mapping[str, str]) -> Options:
    """Return the options of a tuning.

    Parameters
    ----------
    name : str
        One of `TUNINGS`.
    parameters : mapping of str to str
        All parameters of learners, with what they are in words.
    """
    given = {"theory": (RADIUS,), "fixed": tuple(parameters)}.get(name, ())
    return {
        "name": Option("the tuning's name"),
        "at": Option("the checkpoint to tune at", must.one_of("end", "each")),
        "folds": Option("the number of folds", must.whole(2)),
        **({"widen": _WIDEN} if name in ("cv", "theory") else {}),
        **{name: Option(parameters[name], must.POSITIVE | must.NOTHING, default=None) for name in given},
    }
