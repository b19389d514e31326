"""Problems for learners, and one pass of a learner along them."""

import numpy as np
from scipy.stats import multivariate_normal

from budgetreg.algorithms.factors.likelihood import FactorModel, Penalty, RevealedEntries
from budgetreg.algorithms.learner import SideInformation
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table


def shuffled(F, m):
    """Return the orders (F, m) in which F streams read m examples."""
    return np.stack([np.random.default_rng([1, f]).permutation(m) for f in range(F)])


def fit(learner, X, y, orders, k, checkpoints=None, *, settings=None, rngs=None, given=None, table=None, **metered):
    """Return {checkpoint: outputs} of a learner that reads examples in the orders (F, m), and the accessor.

    `settings` are values of parameters, `given` is the side information beside k, `table` is what a table has beside X
    and y, and `metered` is for the accessor.
    """
    checkpoints, settings = checkpoints or [orders.shape[1]], settings or {}
    n_settings = len(next(iter(settings.values()), [0]))
    metered = {"budget": k, **metered}
    accessor = Accessor(Table(X, y, **table or {}), orders, n_settings, checkpoints=checkpoints, **metered)
    rngs = rngs or [np.random.default_rng([3, f]) for f in range(len(orders))]
    settings = {name: np.asarray(values, dtype=float) for name, values in settings.items()}
    return dict(learner.fit(accessor, settings, checkpoints, rngs, SideInformation(k, **given or {}))), accessor


def regressors(kind, X, y, orders, k, *, n_factors=5, pilot=None, rngs=None, **given):
    """Return the last outputs of a learner with a factor model: regressors (F, d), and intercepts (F,)."""
    learner = kind(name="test", n_factors=n_factors)
    outputs, _ = fit(learner, X, y, orders, k, rngs=rngs, given=given, pilot=pilot)
    (last,) = outputs.values()
    return last.regressors[:, :, 0], last.intercept[:, 0]


def shown(X, log):
    """Return rows of which a `Recorder` has seen some values, NaN in place of the others."""
    rows = np.full(X.shape, np.nan)
    rows[log.seen()] = X[log.seen()]
    return rows


def averaged(iterates, rule):
    """Return the average of iterates (m, d) by a rule of `Averager`."""
    begin = {"all": 0, "suffix": len(iterates) // 2, "last": len(iterates) - 1}[rule]
    return iterates[begin:].mean(axis=0)


def line(m, d, noise=0.5, seed=0):
    """Return correlated attributes (m, d) and a linear target with noise."""
    rng = np.random.default_rng([seed, d])
    X = rng.normal(size=(m, d)) @ rng.normal(size=(d, d)) / np.sqrt(d)
    return X, X @ rng.normal(size=d) + noise * rng.normal(size=m)


def likelihood(model: FactorModel, revealed: RevealedEntries, penalty: Penalty) -> float:
    """Return the penalised log-likelihood of a factor model, example by example."""
    C, total = model.second_moment, 0.0
    for attributes, values, _, _ in revealed.parts():
        for i, x in zip(attributes, values, strict=True):
            S = i[i < revealed.d]
            total += multivariate_normal(np.zeros(len(S)), C[np.ix_(S, S)]).logpdf(x[i < revealed.d])
    size = penalty.ridge * np.square(model.W).sum(axis=1) + penalty.pseudo * penalty.noise
    return total - 0.5 * (size / model.psi + penalty.pseudo * np.log(model.psi)).sum()
