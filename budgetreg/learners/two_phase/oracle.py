"""The law of the gradient estimates of the second phase, whose draws the first one guides."""

from functools import partial
from math import log

import numpy as np

from budgetreg.enumeration.gradients import DrawProbabilities, GradientOracle
from budgetreg.enumeration.steps import Step
from budgetreg.learners.bases import COUNTERPARTS
from budgetreg.learners.partial.oracle import costs, data_points, guided, share, sizes
from budgetreg.learners.two_phase import TwoPhaseLearner
from budgetreg.updates.reference_updates import REFERENCE_UPDATES

_CONFIDENCE = 0.05


def _draws(learner: TwoPhaseLearner, step: Step, k_x: int) -> DrawProbabilities:
    """State the draws: of weights that moments ``A + 13 eps/6`` give, a share of which is the same for all.

    ``A_i`` is the mean square of attribute i where the first phase's data points drew it, or if they never did, the
    mean of the others; ``eps = min(1, d log(2d/0.05) / (k_x m_1))`` by theory (Kukliansky & Shamir 2015).
    """
    d, m_1 = len(step.w), _first_phase(learner, len(step.X))
    seen = data_points(step, m_1, k_x)
    squares = np.square(np.take_along_axis(step.X[:m_1], seen, axis=1))
    A = np.array([squares[seen == i].mean() if (seen == i).any() else np.nan for i in range(d)])
    A = np.where(np.isnan(A), np.nanmean(A), A)
    theory = learner.smoothing == "theory"
    A += 13 / 6 * (min(1, d * log(2 * d / _CONFIDENCE) / (k_x * m_1)) if theory else float(learner.smoothing))

    c = costs(learner.prices, d)

    def mixed(weights: np.ndarray) -> np.ndarray:
        return (1 - learner.mix) * share(weights) + learner.mix / d

    guides = learner.inner_product == "moment"
    p = np.abs(step.w) * mixed(np.sqrt(A / c)) if guides else sizes(learner.update, step.w)
    return DrawProbabilities(mixed(guided(learner.update, A, c)), share(p))


def _first_phase(learner: TwoPhaseLearner, m: int) -> int:
    return max(1, int(learner.phase_one * m))


def gradient_oracle(learner: TwoPhaseLearner) -> GradientOracle:
    """Return what is expected of a learner's gradients."""
    return GradientOracle(
        REFERENCE_UPDATES[learner.update],
        partial(_draws, learner),
        COUNTERPARTS[learner.update],
        learner.average,
        first_phase=partial(_first_phase, learner),
    )
