"""Step sizes and excess-risk bounds that the papers' theorems prescribe.

Notation: radius B, attributes d, examples m, budget k per example, of which k_x draws estimate the data point.  The
theorems assume ``|y| <= B`` and ``|x|_2 <= 1`` (ridge) or ``|x|_inf <= 1`` (lasso).

Nearly all of them are one inequality: if the gradient estimates have a second moment of at most G^2, gradient descent
pays `ogd_regret` and exponentiated gradient `eg_regret`; the step size minimises that, and the bound is the minimum.
The inner product alone contributes 4 B^2 to G^2; what sampling the data point makes of it is the *spread*
``G^2 / (4 B^2)``: 1 with full information, 2d/k_x with uniform sampling, between the two where the second moments of
the attributes guide the draws.

A bound is on ``L(w) - L(w*)``, w the averaged iterate and w* the best regressor in the ball, in expectation.  The loss
is ``(<w, x> - y)^2 / 2`` (Hazan & Koren; Kukliansky & Shamir), so that the excess of the mean squared error is at most
twice the bound; only `aer_bound` and `baseline_bound` are in the squared error itself (Cesa-Bianchi et al.).
"""

from budgetreg.theory.risk_bounds import (
    aelr_bound,
    aer_bound,
    aerr_bound,
    baseline_bound,
    ddaelr_bound,
    ddaelr_two_phase_bound,
    ddaerr_bound,
    ddaerr_two_phase_bound,
    eg_regret,
    mbeg_bound,
    ogd_regret,
    popca_bound,
)
from budgetreg.theory.step_sizes import (
    ddaelr_step,
    ddaelr_two_phase_step,
    ddaerr_step,
    ddaerr_two_phase_step,
    eg_step,
    first_phase,
    mbeg_least_examples,
    mbeg_step,
    moment_error,
    ogd_step,
    pegasos_regularisation,
    svr_step,
)

__all__ = [
    "aelr_bound",
    "aer_bound",
    "aerr_bound",
    "baseline_bound",
    "ddaelr_bound",
    "ddaelr_step",
    "ddaelr_two_phase_bound",
    "ddaelr_two_phase_step",
    "ddaerr_bound",
    "ddaerr_step",
    "ddaerr_two_phase_bound",
    "ddaerr_two_phase_step",
    "eg_regret",
    "eg_step",
    "first_phase",
    "mbeg_bound",
    "mbeg_least_examples",
    "mbeg_step",
    "moment_error",
    "ogd_regret",
    "ogd_step",
    "pegasos_regularisation",
    "popca_bound",
    "svr_step",
]
