"""The law of exact gradients: nothing is drawn."""

from budgetreg.enumeration.gradients import GradientOracle
from budgetreg.updates.reference_updates import REFERENCE_UPDATES

_ORACLE = GradientOracle(moves=lambda options: REFERENCE_UPDATES[options.update], draws=None)
unbiased, boundary = _ORACLE.unbiased, _ORACLE.boundary
