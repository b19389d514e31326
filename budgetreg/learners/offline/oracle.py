"""What offline ridge and lasso are held to: that no regressor of the ball has a smaller loss."""

import numpy as np

from budgetreg.enumeration import certificates
from budgetreg.enumeration.certificates import RADII, D, largest, one_norm, two_norm
from budgetreg.enumeration.expectations import LearnerUnderTest, expect

_NORMS = {"ridge": (two_norm, two_norm), "lasso": (one_norm, largest)}
"""Of the ball, and dual to it."""


def minimiser(subject: LearnerUnderTest) -> None:
    """Certify the minimisers of ``|X w - y|^2 / 2`` over balls by their duality gaps, of X as it was shown.

    Gaps count in proportion to ``|y|^2 / 2``, the loss at 0.
    """
    for shown in certificates.run(subject, {"B": RADII}):
        expect(all(np.array_equal(seen, np.arange(D)) for seen in shown.attributes), "not all attributes were seen")
        X, y = np.stack(shown.values), shown.y
        for w, B in zip(shown.output.T, RADII, strict=True):
            what = f"the loss of {len(y)} examples"
            certificates.least(what, w, B, X.T @ (X @ w - y), y @ y / 2, *_NORMS[subject.options.update])
