"""Oja, GROUSE and PETRELS: equal to their listings on identical draws, within the budget."""

import numpy as np
import pytest

from budgetreg.algorithms.gonen_2016 import popca
from budgetreg.algorithms.streaming_subspaces import GROUSE_RIDGE, ORTHONORMALISE, PETRELS_RIDGE, StreamingLearner
from budgetreg.common.streams import subset
from tests.learners.problems import fit

D, N, K = 12, 2, 5
GRIDS = {"oja": ("eta", [0.3, 2.0]), "grouse": ("eta", [0.3, 3.0]), "petrels": ("forgetting", [1.0, 0.97])}


def examples(m, noise=0.1):
    rng = np.random.default_rng(0)
    return rng.normal(size=(m, N)) @ rng.normal(size=(N, D)) + noise * rng.normal(size=(m, D))


def run(X, update, streams=(0,), values=None, checkpoints=None):
    """Run the core along some streams, each with its order and draws."""
    name, grid = GRIDS[update]
    orders = np.stack([np.random.default_rng(f).permutation(len(X)) for f in streams])
    run = {"settings": {name: values or grid}, "rngs": [np.random.default_rng([9, f]) for f in streams]}
    learner = StreamingLearner(name="test", n_components=N, update=update)
    return fit(learner, X, np.zeros(len(X)), orders, K, checkpoints, **run)


def projection(V):
    return V @ np.linalg.pinv(V)


def oja(V, examples, eta):
    total = 0.0
    for x, S in examples:
        d, r = len(x), len(S)
        C = popca(x[None], [S], r / d, r * (r - 1) / (d * (d - 1)))
        total += np.square(C @ V).sum()
        V = np.linalg.qr(V + eta / np.sqrt(total) * C @ V)[0]
        yield V


def grouse(V, examples, eta):
    total = 0.0
    for x, S in examples:
        ridge = np.sqrt(GROUSE_RIDGE * len(S) / len(x)) * np.eye(V.shape[1])
        w = np.linalg.lstsq(np.vstack([V[S], ridge]), np.append(x[S], ridge[0] * 0), rcond=None)[0]
        p, r = V @ w, np.zeros(len(x))
        r[S] = x[S] - p[S]
        sigma = np.linalg.norm(r) * np.linalg.norm(p)
        total += sigma**2
        theta = min(eta * sigma / np.sqrt(total), np.pi / 2)
        turned = (np.cos(theta) - 1) * p / np.linalg.norm(p) + np.sin(theta) * r / np.linalg.norm(r)
        V = V + np.outer(turned, w / np.linalg.norm(w))
        yield V


def petrels_rows(V, examples, forgetting):
    V, n = V.copy(), V.shape[1]
    R, last = [np.eye(n) / n for _ in V], np.zeros(len(V))
    unit = None
    for t, (x, S) in enumerate(examples, 1):
        if t % ORTHONORMALISE == 0:
            V, basis = np.linalg.qr(V)
            R = [basis @ inverse @ basis.T for inverse in R]
        unit = unit or np.sqrt(np.square(x[S]).sum() * len(x) / len(S))
        ridge = PETRELS_RIDGE * len(S) / len(x)
        w = np.linalg.solve(V[S].T @ V[S] + ridge * np.eye(n), V[S].T @ x[S] / unit)
        for i in S:
            least = np.trace(np.linalg.inv(R[i])) / n**2  # at most the initial value
            R[i] = R[i] * min(max(forgetting ** (t - last[i]), least), 1) + np.outer(w, w)
            last[i] = t
            V[i] += (x[i] / unit - V[i] @ w) * np.linalg.solve(R[i], w)
        yield V


LISTINGS = {"oja": oja, "grouse": grouse, "petrels": petrels_rows}


def drawn(X, f):
    """Return a stream's initial subspace, and its examples with the attributes seen."""
    rng = np.random.default_rng([9, f])
    V = np.linalg.qr(rng.normal(size=(X.shape[1], N)))[0]
    seen = np.concatenate([subset(rng, X.shape[1], K) for _ in range(-(-len(X) // 256))])
    return V, list(zip(X[np.random.default_rng(f).permutation(len(X))], seen, strict=False))


@pytest.mark.parametrize("update", GRIDS)
def test_core_equals_listing(update):
    X, checkpoints = examples(300), [1, 30, 256, 300]
    outputs, accessor = run(X, update, [0, 1], checkpoints=checkpoints)
    for f, (g, value) in ((f, setting) for f in range(2) for setting in enumerate(GRIDS[update][1])):
        steps = [V.copy() for V in LISTINGS[update](*drawn(X, f), value)]
        for c in checkpoints:
            V = outputs[c][f, g]
            # The ridge of GROUSE's listing moves V away from orthonormal columns.
            np.testing.assert_allclose(V @ V.T, projection(steps[c - 1]), atol=1e-4 if update == "grouse" else 1e-8)
    assert (accessor.bill().total == K * 300).all()


@pytest.mark.parametrize(("update", "value"), [("grouse", 1.0), ("petrels", 0.95)])
def test_exact_subspaces_are_recovered(update, value):
    X = examples(1500, noise=0.0)
    V = run(X, update, values=[value])[0][1500][0, 0]
    assert np.square(X - X @ V @ V.T).sum() < 2e-3 * np.square(X).sum()


def test_oja_approaches_the_leading_eigenvectors():
    X = examples(2000, noise=0.3)
    V = run(X, "oja", values=[1.0])[0][2000][0, 0]
    best = np.linalg.eigh(X.T @ X)[1][:, -N:]
    assert np.square(V.T @ best).sum() > N - 0.05


@pytest.mark.parametrize("update", GRIDS)
def test_subspaces_are_orthonormal_and_zeros_do_not_move_them(update):
    outputs, _ = run(examples(1000) * 1e3, update, checkpoints=[3, 1000])
    for V in (outputs[3], outputs[1000]):
        np.testing.assert_allclose(V.swapaxes(2, 3) @ V, np.tile(np.eye(N), (1, 2, 1, 1)), atol=1e-13)
    still, _ = run(np.zeros((300, D)), update)
    V0 = drawn(np.zeros((300, D)), 0)[0]
    for V in still[300][0]:
        np.testing.assert_allclose(V @ V.T, V0 @ V0.T, atol=1e-12)
