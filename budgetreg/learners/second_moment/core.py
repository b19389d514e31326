"""Learners that estimate ``C = E x x'`` and put out its leading eigenvectors: POPCA and PCA.

Of each example, a sampling design (`budgetreg.sampling.designs`) decides which attributes are seen.  The products of
those seen, each divided by the probability of being seen, sum up to unbiased estimates of C; these need not be positive
semidefinite.  A stream's memory is O(d^2): the sum, the estimate, and what its eigenvectors take.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from budgetreg.learners.second_moment import importance
from budgetreg.learners.second_moment.moment_sums import full_sums, sums
from budgetreg.metering.accessor import Accessor
from budgetreg.sampling.designs import Design, bernoulli, uniform_subset, with_replacement
from budgetreg.solvers.eigenspaces import leading


def fit(
    accessor: Accessor,
    settings: Mapping[str, np.ndarray],
    checkpoints: Sequence[int],
    rngs: Sequence[np.random.Generator],
    *,
    k: int,
    n_components: int,
    update: str,
    replacement: bool = False,
    phase_one: float | None = None,
    mix: float | None = None,
) -> Iterator[tuple[int, np.ndarray]]:
    """Estimate C along all streams of the accessor; return its leading eigenvectors at the checkpoints.

    Parameters
    ----------
    accessor, settings, checkpoints, rngs
        As for `budgetreg.learners.declaration.Fit`: there is one setting, and nothing to tune.
    k : int
        Attributes of an example that may be seen, the papers' r, at least 2.
    n_components : int
        Dimension of the subspace, below d.
    update : {'active', 'passive', 'importance', 'zero_filled', 'full'}
        k attributes, all subsets alike; each with probability k/d; k attributes, the larger ones more often; as
        'active', with 0 for what is not seen; all attributes.
    replacement : bool
        Whether 'active' draws with replacement.
    phase_one, mix : float, optional
        For 'importance', see `budgetreg.learners.second_moment.importance`.

    Yields
    ------
    checkpoint : int
    V : ndarray of float64, shape (F, 1, d, n_components)
        Orthonormal columns.

    References
    ----------
    A. Gonen, D. Rosenbaum, Y. C. Eldar, S. Shalev-Shwartz. Subspace Learning with Partial Information. JMLR 17, 2016,
    Algorithm 1 and the footnote of Section 3.  'importance' is ours.
    """
    del settings
    moments = estimates(
        accessor, checkpoints, rngs, k=k, update=update, replacement=replacement, phase_one=phase_one, mix=mix
    )
    for checkpoint, C in moments:
        yield checkpoint, np.stack([leading(own, n_components) for own in C])[:, None]


def estimates(
    accessor: Accessor,
    checkpoints: Sequence[int],
    rngs: Sequence[np.random.Generator],
    *,
    k: int,
    update: str,
    replacement: bool = False,
    phase_one: float | None = None,
    mix: float | None = None,
) -> Iterator[tuple[int, np.ndarray]]:
    """Estimate C along all streams of the accessor; the parameters are those of `fit`.

    Yields
    ------
    checkpoint : int
    C : ndarray of float64, shape (F, d, d)
        Symmetric; unbiased but for 'zero_filled'.
    """
    if update == "importance":
        assert phase_one is not None and mix is not None
        yield from importance.estimates(accessor, checkpoints, rngs, k=k, phase_one=phase_one, mix=mix)
        return
    if update == "full":
        totals = full_sums(accessor, checkpoints)
    else:
        totals = sums(accessor, 0, checkpoints, rngs, [_design(update, accessor.d, k, replacement)] * len(rngs))
    for checkpoint, total in totals:
        yield checkpoint, total / checkpoint


def _design(update: str, d: int, k: int, replacement: bool) -> Design:
    if update == "passive":
        return bernoulli(d, k)
    if update == "active" and replacement:
        return with_replacement(d, k)
    subset = uniform_subset(d, k)
    # Zeros in place of what is not seen: as if all were.
    return Design(subset.draw, np.ones((d, d))) if update == "zero_filled" else subset
