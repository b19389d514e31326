"""The law of the estimates that online learners follow, for the checks: see `budgetreg.enumeration.gradients`."""

from budgetreg.enumeration.gradients import GradientLaw
from budgetreg.updates.retraced import RETRACED

_EXACT = {"ogd": "online_ridge", "eg": "online_lasso"}

_LAW = GradientLaw(
    moves=lambda options: RETRACED[options.update],
    without_replacement=lambda options: getattr(options, "data_point", None) == "subset",
    counterpart=lambda options: _EXACT.get(options.update),
)
unbiased, second_moments, full_information = _LAW.unbiased, _LAW.second_moments, _LAW.full_information
