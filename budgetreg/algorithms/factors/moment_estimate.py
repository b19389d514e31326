"""Estimate of a second moment: a factor model for rare pairs, mean products for frequent ones.

The weight of the model is chosen by the criterion of the learner: how much of held-out examples the subspace keeps.
The error of a reconstruction would instead depend on all eigenvectors, also on those that are not wanted.
"""

import numpy as np

from budgetreg.algorithms.factors import FactorAnalysis
from budgetreg.algorithms.factors.likelihood import FactorModel, Penalty, RevealedEntries, ascend
from budgetreg.eigenspaces import leading

_MIN_STEPS, _MAX_STEPS, _MAX_VALUES = 10, 40, 40_000_000
"""Least and most steps of EM, and the values that all steps may read: with more examples, fewer steps are needed. Every
checkpoint starts EM from the mean products, which is faster than from the model of fewer examples."""

_PARTS, _MAX_FOLDS, _MAX_FOLD_VALUES = 20, 5, 10_000_000
"""A held-out part is one twentieth of the examples. At most five parts are held out in turn, fewer if their EM steps
would read more values than this, but at least one. With fewer examples than parts the mean products are used alone."""

_TRUSTS = (1.0, 10.0, 100.0, 1000.0, np.inf)
"""Weights of the model that are tried, in observations of a pair."""

_TIE = 1e-9
"""Relative difference up to which two trusts are tied, because of rounding; the larger trust wins."""

_RIDGE, _PSEUDO, _NOISE, _LEAST = 10.0, 5.0, 0.5, 0.01
"""See `budgetreg.algorithms.factors.likelihood.Penalty`; noise in units of the attributes' mean square. While
attributes have fewer values than pseudo-values, the penalty dominates the model: the mean products are used alone."""


def estimate(learner: FactorAnalysis, revealed: RevealedEntries) -> np.ndarray:
    """Return the estimated second moment (d, d) of the examples of a stream, with the options of the learner."""
    d, n, kappa = revealed.d, learner.n_components, learner.kappa
    attributes, values = revealed.attributes, revealed.values
    if not revealed.squares.any():
        return np.zeros((d, d))
    square = float(revealed.mean_squares[revealed.counts > 0].mean())
    penalty = Penalty(_RIDGE, _PSEUDO, _NOISE * square, _LEAST * square, learner.noise == "shared")
    steps = min(max(_MIN_STEPS, _MAX_VALUES // values.size), _MAX_STEPS)

    def fitted(revealed: RevealedEntries, C: np.ndarray, N: np.ndarray) -> np.ndarray:
        model = _initial_model(C, N, min(learner.n_factors or 2 * n, d), _LEAST * square)
        for _ in range(steps):
            model = ascend(model, revealed, penalty)
        return model.second_moment

    C, N = products(revealed)
    if kappa == "auto" and (len(values) < _PARTS or revealed.counts.mean() < _PSEUDO):
        return C / np.maximum(N, 1)
    if kappa != "auto":
        return mixed(fitted(revealed, C, N), C, N, np.inf if kappa == "model" else float(kappa))
    folds = min(max(1, _MAX_FOLD_VALUES // (steps * values.size)), _MAX_FOLDS)
    F, scores = np.zeros((d, d)), np.zeros(len(_TRUSTS))
    for fold in range(folds):
        held = np.arange(len(values)) % _PARTS == _PARTS - 1 - fold
        C_held, N_held = products(RevealedEntries(attributes[held], values[held], d))
        C_rest, N_rest = C - C_held, N - N_held
        F_rest = fitted(RevealedEntries(attributes[~held], values[~held], d), C_rest, N_rest)
        moments = (mixed(F_rest, C_rest, N_rest, trust) for trust in _TRUSTS)
        scores += [kept(leading(M, n), F_rest, C_held, N_held, N) for M in moments]
        F += F_rest / folds
    tied = scores >= scores.max() - _TIE * np.abs(scores).max()
    return mixed(F, C, N, max(np.array(_TRUSTS)[tied]))


def products(revealed: RevealedEntries) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of products of values seen together, and their numbers, both (d, d)."""
    C, N = np.zeros((revealed.d, revealed.d)), np.zeros((revealed.d, revealed.d))
    for _, _, seen, known in revealed.parts():
        C += (known @ known.T).toarray()
        N += (seen @ seen.T).toarray()
    return C, N


def mixed(F: np.ndarray, C: np.ndarray, N: np.ndarray, kappa: float) -> np.ndarray:
    """Return ``(C + kappa F) / (N + kappa)`` entrywise, between the model and the mean products."""
    return F if np.isinf(kappa) else (C + kappa * F) / (N + kappa)


def kept(V: np.ndarray, F: np.ndarray, C_held: np.ndarray, N_held: np.ndarray, N: np.ndarray) -> float:
    """Estimate how much of the second moment a subspace keeps, ``tr V' E[x x'] V``, from a held-out part.

    The value for the model is corrected by the products of the part, each divided by the expected number of its pair
    there. The estimate is unbiased over the pairs seen at all, for any model, and has less variance than without one.

    Parameters
    ----------
    V : ndarray of float, shape (d, n)
        Orthonormal columns, independent of the part, as F must be.
    F : ndarray of float, shape (d, d)
        Second moment of the model.
    C_held, N_held : ndarray of float, shape (d, d)
        Sums of products in the part, and their numbers.
    N : ndarray of float, shape (d, d)
        Numbers of products in all examples, of which the part is one twentieth.
    """
    correction = _PARTS * (C_held - N_held * F) / np.maximum(N, 1)
    return float(np.vdot(V, (F + correction) @ V))


def _initial_model(C: np.ndarray, N: np.ndarray, q: int, least: float) -> FactorModel:
    """Return the model of the mean products' leading eigenvectors, with the rest as noise."""
    means = C / np.maximum(N, 1)
    V = leading(means, q)
    values = np.maximum((V * (means @ V)).sum(axis=0), 0)
    W = V * np.sqrt(values)
    noise = (np.trace(means) - np.square(W).sum()) / len(C)
    return FactorModel(W, np.full(len(C), max(noise, least)))
