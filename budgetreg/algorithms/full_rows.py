"""Full rows: online ridge and online lasso, and ridge and lasso on each prefix of the examples.

The comparisons of Cesa-Bianchi et al. 2010, Hazan & Koren 2012, and Kukliansky & Shamir 2015.

Offline, the empirical loss is minimised over balls. Rows are stored while there are at most as many as attributes;
later ``X'X`` and ``X'y`` replace them. The training parts of a cross-validation share most of their examples, and the
products of shared examples are computed once. So the streams that run together determine the order of the sums, and the
configuration must determine these streams.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from budgetreg.algorithms.hazan_koren_2012.aerr_aelr import (
    aelr_regressor,
    aelr_update,
    aerr_update,
    eg_step,
    gradient_theorem,
    ogd_step,
)
from budgetreg.algorithms.learner import (
    ON_FULL_ROWS,
    ONE_PASS,
    RADIUS,
    STEP_SIZE,
    UNBOUNDED,
    UPDATES,
    Batching,
    Learner,
    Observation,
    Rngs,
    RunContext,
    Settings,
    SideInformation,
    Theorem,
    Trajectory,
    average_option,
    update_option,
)
from budgetreg.algorithms.vectors import Averager, inner_products
from budgetreg.metering.table import WithIntercept

if TYPE_CHECKING:
    from budgetreg.metering.accessor import Accessor


@dataclass(frozen=True)
class ExactGradientLearner(Learner):
    """Online ridge and online lasso: the updates of AERR and AELR with the exact gradient ``(<w, x> - y) x``.

    The G settings of a stream take each step together, as arrays (G, d) that fit the processor's cache. The F streams
    take turns at each example, so that no stream changes another's result.

    Attributes
    ----------
    update : {'ogd', 'eg'}
        'ogd' is online ridge, gradient descent on the 2-ball; 'eg' is online lasso, exponentiated gradient on the
        1-ball.
    average : {'all', 'suffix', 'last'}
        Which iterates the output averages.
    """

    update: str = update_option("ogd", "eg")
    average: str = average_option()

    core = "exact"
    continues = True
    observation = Observation.ALL
    parameters = (RADIUS, STEP_SIZE)
    tuned = ("B", "eta")
    skipped_checks: ClassVar[Mapping[str, str]] = {**ON_FULL_ROWS, "minimiser": ONE_PASS}

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Run online ridge or online lasso along all streams.

        These are the updates of AERR and AELR from ``w_1 = 0``, with the exact gradient; see `Learner.fit`. Settings
        are ``B`` and ``eta``.
        """
        d = accessor.d
        w, total, theta = np.zeros((3, accessor.n_streams, accessor.n_settings, d))
        averager = Averager(checkpoints, self.average)
        last, block = checkpoints[-1], max(1, _BLOCK_VALUES // d)
        together = max(1, _WEIGHTS_TOGETHER // w[0].size)
        for start in range(0, last, block):
            X, y = accessor.rows(start, min(start + block, last))
            for position in range(X.shape[1]):
                total += w
                t = start + position + 1
                output = averager.observe(t, total.copy, w.copy)
                if output:
                    yield output[0], np.ascontiguousarray(output[1].swapaxes(1, 2))
                for f in range(0, accessor.n_streams, together):
                    of = slice(f, f + together)
                    x, target = X[of, position, None], y[of, position, None]
                    residual = inner_products(w[of], x) - target
                    if self.update == "ogd":
                        w[of] = aerr_update(w[of], residual, x, settings["B"], settings["eta"])
                    else:
                        theta[of] = aelr_update(theta[of], residual, x, settings["eta"])
                        w[of] = aelr_regressor(theta[of], settings["B"])

    def theory(self, run: RunContext, B: float | None) -> Mapping[str, float]:
        """Return the step size of Hazan & Koren 2012 for exact gradients."""
        assert B is not None
        return {"eta": eg_step(B, run.d, run.m, None) if self.update == "eg" else ogd_step(run.d, run.m, None)}

    @property
    def words(self) -> Sequence[str]:
        """What it sees and how it moves."""
        return "all attributes, one pass", UPDATES.get(self.update, "")

    @property
    def theorem(self) -> Theorem | None:
        """The regret bounds, of the average of all iterates."""
        return gradient_theorem(self.update, None) if self.average == "all" else None


_BLOCK_VALUES = 2**18
"""Attribute values of one stream in a block."""

_WEIGHTS_TOGETHER = 2**14
"""Weights that take a step together: NumPy's calls take longer than few weights do, and many leave the cache."""

_PROBLEMS = {"ridge": "least squares in the 2-ball", "lasso": "least squares in the 1-ball"}

_BLOCK = 2**14
"""Examples of each stream in a block."""


@dataclass(frozen=True)
class OfflineLearner(Learner):
    """Ridge and lasso on full rows, whose regressors lie in a 2-ball or in a 1-ball.

    Attributes
    ----------
    update : {'ridge', 'lasso'}
        The ball: ``|w|_2 <= B`` or ``|w|_1 <= B``.
    """

    update: str = update_option(*_PROBLEMS)

    core = "offline"
    continues = True
    observation = Observation.ALL
    parameters = (RADIUS,)
    tuned = ("B",)
    batching = Batching.WITH_ITS_FOLDS
    shares_settings = True
    centres_itself = True
    scales_itself = True
    skipped_checks: ClassVar[Mapping[str, str]] = {
        **ON_FULL_ROWS,
        "unbiased": "the loss is minimised itself, without gradients",
        "boundary": UNBOUNDED,
    }

    @property
    def norm(self) -> int:
        """That of the ball of ridge or the lasso."""
        return 2 if self.update == "ridge" else 1

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Minimise ``|X w - y|_2^2`` over balls, at each checkpoint on the examples up to it; see `Learner.fit`.

        If least-squares solutions lie inside the ball, the one of least norm (the ball's norm) is returned. The setting
        is ``B``, and nothing is drawn. Where attributes are scaled, the ball is that of regressors of attributes in
        units of their standard deviations in the examples up to the checkpoint.
        """
        solve = {"ridge": solve_ridge, "lasso": solve_lasso}[self.update]
        d = accessor.d
        streams = [LeastSquares(np.zeros(d), np.zeros(d + 1), np.empty((0, d))) for _ in range(accessor.n_streams)]
        start = 0
        for checkpoint in checkpoints:
            by_products = checkpoint > d
            if by_products:
                for stream in streams:
                    stream.drop_rows()
            while start < checkpoint:
                stop = min(start + _BLOCK, checkpoint)
                for members, X, y in accessor.distinct_rows(start, stop):
                    b, gram = y @ X, gram_matrix(X) if by_products else None
                    sums = np.append(X.sum(axis=0), y.sum())
                    for f in members:
                        streams[f].append(X, y, b, gram, sums)
                start = stop
            solutions: list[np.ndarray] = []
            for stream in streams:
                guess = solutions[-1] if solutions else None
                examples = stream.centred(given.centred, given.intercept)
                scale = stream.scale(given.centred) if given.scaled else np.ones(d)
                solutions.append(examples.solved(solve, settings["B"], guess, scale))
            origins = [stream.origin(given.centred, given.intercept) for stream in streams]
            b = np.stack([r - m @ w for (m, r), w in zip(origins, solutions, strict=True)])
            W = np.stack(solutions)
            yield checkpoint, WithIntercept(W, b) if given.centred or given.intercept else W

    @property
    def words(self) -> Sequence[str]:
        """What it sees and minimises."""
        return "all attributes, offline solution for each prefix of the examples", _PROBLEMS.get(self.update, "")


_SPARSE = 0.1
"""Fraction of nonzero values below which an attribute is multiplied as a sparse column."""


def gram_matrix(X: np.ndarray) -> np.ndarray:
    """Return X'X; attributes that are mostly 0 (margins of images) are multiplied as sparse columns."""
    from scipy.sparse import csr_array  # imported here because SciPy loads slowly

    nonzero = np.count_nonzero(X, axis=0)
    sparse = np.flatnonzero((nonzero > 0) & (nonzero < _SPARSE * len(X)))
    dense = np.flatnonzero((nonzero > 0) & (nonzero >= _SPARSE * len(X)))
    gram = np.zeros((X.shape[1], X.shape[1]))
    part = X if len(dense) == X.shape[1] else X.take(dense, axis=1)
    gram[np.ix_(dense, dense)] = part.T @ part
    if len(sparse):
        products = csr_array(X.take(sparse, axis=1).T) @ X
        gram[sparse], gram[:, sparse] = products, products.T
    return gram


@dataclass
class LeastSquares:
    """One stream's examples: ``b = X'y``; ``X`` and ``y``, or ``gram = X'X``; a guess of the weights.

    For the means, also their number n and the sums of their attributes and, last, of their targets.
    """

    b: np.ndarray
    sums: np.ndarray
    X: np.ndarray | None
    y: np.ndarray = field(default_factory=lambda: np.empty(0))
    gram: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    n: int = 0
    guess: np.ndarray | None = None

    def append(self, X: np.ndarray, y: np.ndarray, b: np.ndarray, gram: np.ndarray | None, sums: np.ndarray) -> None:
        """Add examples, their products b and gram (None while rows are stored), and their sums."""
        self.b += b
        self.n += len(X)
        self.sums += sums
        if gram is not None:
            self.gram += gram
        else:
            assert self.X is not None
            self.X, self.y = np.concatenate([self.X, X]), np.concatenate([self.y, y])

    def drop_rows(self) -> None:
        """Replace the rows by their products."""
        if self.X is not None:
            self.gram, self.X = gram_matrix(self.X), None

    def origin(self, centred: bool, intercept: bool) -> tuple[np.ndarray, float]:
        """Return what is subtracted from attributes (d,) and targets."""
        means = self.sums / self.n
        return means[:-1] if centred else np.zeros(len(self.b)), float(means[-1]) if intercept else 0.0

    def centred(self, centred: bool, intercept: bool) -> LeastSquares:
        """Return the same examples with attributes and targets less their origin."""
        if not (centred or intercept):
            return self
        m, r = self.origin(centred, intercept)
        x, y = self.sums[:-1], self.sums[-1]
        b = self.b - r * x - m * (y - self.n * r)
        if self.X is None:
            # x m' = m x' = n m m' if attributes are centred, else 0: two are subtracted, and one is added.
            return replace(self, b=b, gram=self.gram - self.n * np.outer(m, m))
        return replace(self, b=b, X=self.X - m, y=self.y - r)

    def scale(self, centred: bool) -> np.ndarray:
        """Return the inverse standard deviations of the attributes (d,), see `budgetreg.revealed.columns.units`.

        Attributes that are constant have 0 if they are centred, because then nothing but rounding errors is left.
        """
        from budgetreg.revealed.columns import units

        squares = self.squares()
        unit, varies = units(self.n, squares, squares - np.square(self.sums[:-1]) / self.n)
        return np.where(varies, 1 / unit, 0.0) if centred else 1 / unit

    def solved(
        self,
        solve: Callable[[LeastSquares, np.ndarray], np.ndarray],
        radii: np.ndarray,
        guess: np.ndarray | None,
        scale: np.ndarray,
    ) -> np.ndarray:
        """Return the solutions (d, G) in balls of the regressors of attributes that are multiplied by a scale (d,).

        Attributes that are 0 in all examples, or have a scale of 0, have weight 0.
        """
        live = np.flatnonzero(self.squares() * scale)
        by = scale[live]
        W = np.zeros((len(self.b), len(radii)))
        part = replace(self, b=self.b[live] * by, guess=None if guess is None else guess[live] / by[:, None])
        if self.X is None:
            part.gram = self.gram.take(live, axis=0).take(live, axis=1) * np.outer(by, by)
        else:
            part.X = self.X[:, live] * by
        W[live] = solve(part, radii) * by[:, None]
        return W

    def squares(self) -> np.ndarray:
        """Return the squared lengths of the columns, shape (d,)."""
        return self.gram.diagonal() if self.X is None else (self.X**2).sum(axis=0)


def solve_lasso(examples: LeastSquares, radii: np.ndarray) -> np.ndarray:
    """Return the minimisers (d, G) over 1-balls."""
    from budgetreg.algorithms.least_squares import lasso, lasso_path  # here, as SciPy loads slowly

    X = examples.X
    if X is None:
        return lasso(examples.gram, examples.b, radii, examples.guess)
    return lasso_path(lambda j: X[:, j] @ X, examples.squares(), examples.b, radii)


def solve_ridge(examples: LeastSquares, radii: np.ndarray) -> np.ndarray:
    """Return the minimisers (d, G) over 2-balls."""
    from budgetreg.algorithms.least_squares import ridge, ridge_of_rows  # here, as SciPy loads slowly

    # Not b, of which rounding is left where equal targets were centred.
    if not (examples.b if examples.X is None else examples.X.T @ examples.y).any():
        return np.zeros((len(examples.b), len(radii)))
    if examples.X is None:
        return ridge(examples.gram, examples.b, radii)
    return ridge_of_rows(examples.X, examples.y, radii)
