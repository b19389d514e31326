"""The law of exact gradients: nothing is drawn."""

from budgetreg.enumeration.gradients import GradientLaw
from budgetreg.updates.retraced import RETRACED

_LAW = GradientLaw(moves=lambda options: RETRACED[options.update], draws=None)
unbiased, boundary = _LAW.unbiased, _LAW.boundary
