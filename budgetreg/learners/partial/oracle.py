"""The law of GAERR's, GAELR's and AER's gradient estimates: the probabilities with which attributes are to be drawn."""

import numpy as np

from budgetreg.enumeration.gradients import DrawProbabilities, GradientOracle
from budgetreg.enumeration.steps import Step
from budgetreg.learners.online_oracle import COUNTERPARTS, costs, data_points, guided, share, sizes
from budgetreg.learners.partial import Options
from budgetreg.sampling.draws import BLOCK
from budgetreg.updates.reference_updates import REFERENCE_UPDATES


def _draws(options: Options, step: Step, k_x: int) -> DrawProbabilities:
    """State the draws: uniform ones, or guided by second moments of all examples, and prices, which are given."""
    moments = np.square(step.X).mean(axis=0)
    c = costs(options.prices, len(step.w))
    q = guided(options.update, moments, c) if options.data_point == "moment" else np.ones(len(step.w))
    p = np.abs(step.w) * np.sqrt(moments / c) if options.inner_product == "moment" else sizes(options.update, step.w)
    mu = None if options.control_variate == "none" else _expected(options, step, k_x)
    return DrawProbabilities(share(q), share(p), options.data_point == "subset", mu)


def _expected(options: Options, step: Step, k_x: int) -> np.ndarray:
    """Return the least-squares fit of the values seen in the blocks before, at the example's target, shape (d,).

    By 1, and with ``label`` by the target; drawn towards 0 by one value more of 0 at a typical target, half of it at
    either sign.
    """
    seen, d = data_points(step, BLOCK, k_x), len(step.w)
    example = np.repeat(np.arange(BLOCK), k_x)
    y, typical, slope = step.Y[example], np.sqrt(np.square(step.Y[:BLOCK]).mean()), options.control_variate == "label"
    mu = np.zeros(d)
    for i in range(d):
        own = seen.ravel() == i
        targets = np.concatenate([y[own], [typical, -typical]])
        weights = np.sqrt(np.concatenate([np.ones(own.sum()), [0.5, 0.5]]))
        design = np.column_stack([np.ones(len(targets)), targets][: 1 + slope])
        values = np.concatenate([step.X[example[own], i], [0.0, 0.0]])
        fit = np.linalg.lstsq(design * weights[:, None], values * weights, rcond=None)[0]
        mu[i] = fit @ [1, step.y][: 1 + slope]
    return mu


_ORACLE = GradientOracle(
    moves=lambda options: REFERENCE_UPDATES[options.update],
    draws=_draws,
    counterpart=lambda options: COUNTERPARTS.get(options.update),
    late=lambda options: options.control_variate != "none",
)
unbiased, second_moments, full_information = _ORACLE.unbiased, _ORACLE.second_moments, _ORACLE.full_information
boundary = _ORACLE.boundary
