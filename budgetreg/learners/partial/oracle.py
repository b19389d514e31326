"""The probabilities with which GAERR, GAELR and AER have to draw attributes."""

from functools import partial

import numpy as np

from budgetreg.enumeration.gradients import DrawProbabilities, GradientOracle
from budgetreg.enumeration.steps import Step, prices
from budgetreg.learners.bases import COUNTERPARTS
from budgetreg.learners.partial import GradientLearner
from budgetreg.sampling.draws import BLOCK
from budgetreg.updates.reference_updates import REFERENCE_UPDATES


def sizes(update: str, w: np.ndarray) -> np.ndarray:
    """Return the weights of plain draws for the inner product: ``w^2`` on the 2-ball, else ``|w|``."""
    return np.square(w) if update == "ogd" else np.abs(w)


def guided(update: str, moments: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Return the weights of guided draws for the data point, given second moments and costs, (d,) each.

    On the 2-ball they are the square roots of moments over costs, on the 1-ball the moments: Kukliansky & Shamir 2015,
    Equation 2; for costs, see `budgetreg.sampling.importance_weights`.
    """
    return np.sqrt(moments) / np.sqrt(costs) if update == "ogd" else moments


def costs(option: str, d: int) -> np.ndarray:
    """Return the prices of attributes in the checks, shape (d,): 1 where the learner ignores them."""
    return prices(d) if option == "aware" else np.ones(d)


def share(weights: np.ndarray) -> np.ndarray:
    """Return probabilities in proportion to weights, both (d,)."""
    return np.asarray(weights / weights.sum())


def data_points(step: Step, n: int, k_x: int) -> np.ndarray:
    """Return the attributes drawn for the data points of the first n examples, shape (n, k_x)."""
    return np.stack([seen[:k_x] for seen in step.earlier[:n]])


def _draws(learner: GradientLearner, step: Step, k_x: int) -> DrawProbabilities:
    """State the draws: uniform, or guided by the given second moments of all examples and by prices."""
    moments = np.square(step.X).mean(axis=0)
    c = costs(learner.prices, len(step.w))
    q = guided(learner.update, moments, c) if learner.data_point == "moment" else np.ones(len(step.w))
    p = np.abs(step.w) * np.sqrt(moments / c) if learner.inner_product == "moment" else sizes(learner.update, step.w)
    mu = None if learner.control_variate == "none" else _expected(learner, step, k_x)
    return DrawProbabilities(share(q), share(p), learner.data_point == "subset", mu)


def _expected(learner: GradientLearner, step: Step, k_x: int) -> np.ndarray:
    """Return the least-squares fit of the values seen in earlier blocks, at the example's target, shape (d,).

    The regressors are 1, and with ``label`` the target. One more value of 0 shrinks the fit: half of it at a typical
    target, half at its negative.
    """
    seen, d = data_points(step, BLOCK, k_x), len(step.w)
    example = np.repeat(np.arange(BLOCK), k_x)
    y, typical, slope = step.Y[example], np.sqrt(np.square(step.Y[:BLOCK]).mean()), learner.control_variate == "label"
    mu = np.zeros(d)
    for i in range(d):
        drawn = seen.ravel() == i
        targets = np.concatenate([y[drawn], [typical, -typical]])
        weights = np.sqrt(np.concatenate([np.ones(drawn.sum()), [0.5, 0.5]]))
        design = np.column_stack([np.ones(len(targets)), targets][: 1 + slope])
        values = np.concatenate([step.X[example[drawn], i], [0.0, 0.0]])
        fit = np.linalg.lstsq(design * weights[:, None], values * weights, rcond=None)[0]
        mu[i] = fit @ [1, step.y][: 1 + slope]
    return mu


def gradient_oracle(learner: GradientLearner) -> GradientOracle:
    """Return what is expected of a learner's gradients."""
    return GradientOracle(
        REFERENCE_UPDATES[learner.update],
        partial(_draws, learner),
        COUNTERPARTS.get(learner.update),
        learner.average,
        late=learner.control_variate != "none",
    )
