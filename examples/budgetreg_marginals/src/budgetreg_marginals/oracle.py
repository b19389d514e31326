"""The distribution of what a uniform subset of attributes estimates of one example: c of ``y x``, s of ``x^2``."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from budgetreg.extend import (
    Accessor,
    LearnerUnderTest,
    Oracle,
    Scripted,
    Table,
    certificates,
    close,
    generator,
    outcomes,
    same,
)
from budgetreg_marginals import learner

_X, _Y = np.array([0.7, -1.1, 0.4, 0.2]), -1.5
D = len(_X)


@dataclass(frozen=True)
class MarginalsOracle(Oracle):
    """Enumerates the subsets of one example, and computes the weights again."""

    diagonal: str

    def unbiased(self, subject: LearnerUnderTest) -> None:
        """Compare the means of c and s, over all subsets, with ``y x`` and ``x^2``."""
        for k in range(1, D + 1):
            c, s, probability = _enumerated(k)
            close("c", probability @ c, _Y * _X)
            close("s", probability @ s, _X**2)

    def second_moments(self, subject: LearnerUnderTest) -> None:
        """Compare ``E c_i c_j`` with ``(d/k)^2 pi_ij y^2 x_i x_j``, and s likewise.

        The probabilities are ``pi_ii = k/d``, and else ``pi_ij = k (k-1) / (d (d-1))``.
        """
        for k in range(1, D + 1):
            c, s, probability = _enumerated(k)
            factor = np.where(np.eye(D, dtype=bool), D / k, D * (k - 1) / (k * (D - 1)))
            close("c c'", np.einsum("n,ni,nj->ij", probability, c, c), factor * np.outer(_Y * _X, _Y * _X))
            close("s s'", np.einsum("n,ni,nj->ij", probability, s, s), factor * np.outer(_X**2, _X**2))

    def full_information(self, subject: LearnerUnderTest) -> None:
        """Compare c and s of some examples at k = d with ``mean(y x)`` and ``mean(x^2)``."""
        rng = generator("check examples", D)
        X, y = rng.standard_normal((12, D)), rng.standard_normal(12)
        c, s = _estimated(Table(X, y), D, [generator("check draws")])
        close("c", c[0], y @ X / 12)
        close("s", s[0], np.square(X).mean(axis=0))

    def minimiser(self, subject: LearnerUnderTest) -> None:
        """Compare the weights with ``c_i / (s_i + shrinkage s)``, with c and s computed again from what was shown."""
        shrinkages = [0.1, 3.0]
        for shown in certificates.run(subject, {"shrinkage": shrinkages}):
            c, s = np.zeros((2, certificates.D))
            for S, x, y in zip(shown.attributes, shown.values, shown.y, strict=True):
                c[S] += y * x / len(shown.y)
                s[S] += x**2 / len(shown.y)
            diagonal = s if self.diagonal == "own" else np.full_like(s, s.mean())
            for w, shrinkage in zip(shown.output.T, shrinkages, strict=True):
                same("a weight in its own scale", (diagonal + shrinkage * s.mean()) * w, c)


def _enumerated(k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return c and s, shape (N, d), of one example for all N outcomes, and these outcomes' probabilities (N,)."""
    table, rows = Table(_X[None], np.array([_Y])), [0] * k  # each call draws one attribute of the only example

    def act(scripts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _estimated(table, k, [Scripted(rows, script) for script in scripts])

    probe = Scripted(rows)
    _estimated(table, k, [probe])
    scripts, probability = outcomes(probe.values, lambda points: act(points)[0], {})
    return *act(scripts), probability


def _estimated(table: Table, k: int, rngs: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return c and s, shape (F, d), of all examples of a table, one stream for each Generator."""
    m = len(table.y)
    accessor = Accessor(table, np.tile(np.arange(m), (len(rngs), 1)), 1, k, [m])
    ((_, (_, _, _, s, c, _)),) = learner.estimates(accessor, [m], rngs, k)
    return c, s
