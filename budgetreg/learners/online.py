"""What online learners have in common: how the budget is split, updates in words, averages of iterates."""

from collections.abc import Mapping
from typing import Any

from budgetreg.config.options import Option, Options, option
from budgetreg.config.requirements import NOTHING, one_of, whole
from budgetreg.errors import ConfigError
from budgetreg.learners.declaration import BudgetSplit, Cost, Learner, Theorem
from budgetreg.theory import aelr_bound, aerr_bound

SPLIT = one_of("literal", "even") | whole(1)
AVERAGE = one_of("all", "suffix", "last")

IGNORABLE: Options = {
    "split": Option("the split of the budget", SPLIT | NOTHING, default=None),
    "average": Option("the averaging of iterates", AVERAGE | NOTHING, default=None),
}
"""Keys that learners without a use for them accept all the same, so that a sweep may set them for all."""

UPDATES: Mapping[str, str] = {
    "ogd": "online gradient descent in the 2-ball",
    "eg": "exponentiated gradient in the 1-ball",
    "pegasos": "regularised gradient descent (Pegasos) in the 1-ball",
}
"""In the words of captions."""

PARAMETERS: Mapping[str, tuple[str, ...]] = {"ogd": ("B", "eta"), "eg": ("B", "eta"), "pegasos": ("B", "lambda")}
"""By update, what is tuned."""


def split_option() -> str | int | None:
    """Declare how the budget is split, a number being the inner product's draws."""
    declared: str | int | None = option(
        "the split of the budget", SPLIT, default="literal", tried=("literal", "even", 2)
    )
    return declared


def average_option() -> str:
    """Declare which iterates are averaged."""
    declared: str = option("the averaging of iterates", AVERAGE, default="all")
    return declared


def prices_option() -> str:
    """Declare whether draws that moments guide heed what attributes cost; without prices it is as if all cost alike."""
    declared: str = option("whether draws heed prices", one_of("aware", "ignored"), default="aware")
    return declared


def update_option(*updates: str) -> str:
    """Declare the update, one of a few, which makes a learner of its own: the checks try those that have a file."""
    declared: str = option("the update", one_of(*updates), tried=())
    return declared


def chaotic(options: Any) -> bool:
    """Return whether round-off grows in the path of a regressor.

    Gradient descent draws for the inner product with ``w_j^2 / |w|^2``, and what it reveals weighs ``|w|^2 / w_j``,
    which is unbounded where w_j is small by cancellation. EG's weights are bounded by ``|w|_1``, and the steps of
    Pegasos shrink what came before.
    """
    return bool(options.update == "ogd")


def split_budget(learner: Learner, k: int) -> BudgetSplit:
    """Divide a budget as ``split`` says, of which ``literal`` is what the paper has (``literal_split``).

    Raises
    ------
    ConfigError
        If it is too small, or the split leaves no draw for the data point or the inner product.
    """
    if k < 2:
        raise ConfigError(
            f"k={k}: {learner.name} needs a budget of at least 2, one attribute for the data point and one for the "
            "inner product"
        )
    options = learner.options
    split = getattr(options, "literal_split", "half") if options.split == "literal" else options.split
    k_ip = split if isinstance(split, int) else {"one": 1, "half": k // 2, "even": k // 2}[str(split)]
    if not 1 <= k_ip < k:
        raise ConfigError(f"algo.split={k_ip}: inner-product draws must be between 1 and k-1={k - 1}")
    return BudgetSplit(k - k_ip, k_ip)


def cost(learner: Learner, d: int, k: int, settings: Mapping[str, float]) -> Cost:
    """Return what an example costs: k, or at ``w = 0`` the draws for the data point alone."""
    budget_split = learner.split_budget(k)
    assert budget_split
    return Cost(k, budget_split.k_x)


_BOUNDS = {"ogd": (aerr_bound, "2-ball"), "eg": (aelr_bound, "inf-ball")}


def theorem(update: str, k_x_of: "Learner | None") -> Theorem | None:
    """Return the theorem of gradient estimates with uniform draws, or of exact gradients.

    Hazan & Koren 2012, Theorems 3.1 and 3.4; with exact gradients the same inequalities. Their loss has a factor 1/2.

    Parameters
    ----------
    update : str
        The update.
    k_x_of : Learner or None
        Who divides the budget; None with exact gradients.
    """
    if update not in _BOUNDS:
        return None
    bound, domain = _BOUNDS[update]

    def excess(B: float | None, d: int, m: int, k: int) -> float:
        assert B is not None
        return 2 * bound(B, d, m, split_budget(k_x_of, k).k_x if k_x_of else None)

    return Theorem(excess, domain)
