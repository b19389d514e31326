"""What learners of moments have to make of examples seen in full: what factor models have to, too."""

from budgetreg.enumeration.expectations import LearnerUnderTest
from budgetreg.learners.factors import oracle

_LEAST_RIDGE = 21.0
"""The candidate of the shrunk moments' spectrum with the least ridge, which many full rows leave nothing to."""


def full_information(subject: LearnerUnderTest) -> None:
    """Compare with least squares at k = d; where a candidate is given, one that is hardly shrunk."""
    oracle.full_information(subject, {"candidate": [_LEAST_RIDGE]})
