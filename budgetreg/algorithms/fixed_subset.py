"""The same k attributes of every example, chosen from a pilot: what one does by hand.

Forward selection chooses the attributes from the full rows of the pilot, with their targets. Ridge is fitted to these
attributes, of all examples and of the pilot's rows. Nothing else is chosen, and nothing is seen that is not paid for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from budgetreg.algorithms.imputation import covariance, deviations, regressors, tables
from budgetreg.algorithms.learner import (
    UNBOUNDED,
    Learner,
    Missing,
    Rngs,
    Settings,
    SideInformation,
    Trajectory,
    first_phase,
)
from budgetreg.common.streams import blocks
from budgetreg.data.dataset import Groups
from budgetreg.revealed.collection import AttributeDraws, Entries, drawn, pilot_entries, revealed
from budgetreg.revealed.columns import Rescaled

if TYPE_CHECKING:
    from budgetreg.metering.accessor import Accessor

SHARE = 0.1
"""Share of the examples that replace a pilot, if there is none."""

_NO_GRADIENT = "nothing is estimated by a gradient: ridge is solved for what was seen"


@dataclass(frozen=True)
class FixedSubset(Learner):
    """Forward selection on a pilot, then ridge on the same k attributes of every example.

    Without a pilot, the first tenth of the examples replaces it, of each of which k uniformly drawn attributes are
    seen.
    """

    core = "fixed_subset"
    version = 2
    centres_itself = True
    scales_itself = True
    missing = Missing.SKIPPED
    uses_free = True
    draws_groups = True
    words = (
        "the same k attributes per example, chosen by forward selection on the pilot or the first tenth of examples",
        "ridge",
    )
    skipped_checks: ClassVar[Mapping[str, str]] = {
        "unbiased": _NO_GRADIENT,
        "second moments": _NO_GRADIENT,
        "boundary": UNBOUNDED,
        "small k": "one attribute of each example suffices, so any k is enough",
    }

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Choose the attributes, then see them of each example, and solve for ridge at each checkpoint.

        There is one setting and nothing to tune; see `Learner.fit`. At checkpoints before the choice, attributes are
        chosen from what was seen by then.
        """
        d, last = accessor.d, checkpoints[-1]
        (entries, pilot), orders = pilot_entries(accessor), [rng.permutation(d) for rng in rngs]
        draws = [AttributeDraws(rng, d, given.k, accessor.free, accessor.groups) for rng in rngs]
        m_1 = 0 if pilot else first_phase(SHARE, last)
        chosen = self._chosen(entries, orders, accessor, given) if pilot else None
        for start, stop in blocks(0, last, {*checkpoints, m_1}):
            accessor.open(start, stop)
            if chosen is None:
                attributes = drawn(accessor, draws, stop - start)
            else:
                attributes = np.repeat(chosen[:, None], stop - start, axis=1)
            entries.add(*revealed(accessor, attributes, entries.columns), accessor.targets())
            if stop == m_1:
                chosen = self._chosen(entries, orders, accessor, given)
            if stop in checkpoints:
                by_now = self._chosen(entries, orders, accessor, given) if chosen is None else chosen
                yield stop, regressors(entries, accessor, given, impute="mean", rescale=True, among=by_now)

    def _chosen(
        self, entries: Entries, orders: Sequence[np.ndarray], accessor: Accessor, given: SideInformation
    ) -> np.ndarray:
        """Return the attributes (F, n) that forward selection chooses for each stream, and the free ones.

        Of groups, chosen as a whole, some streams may have fewer attributes: their rows are filled up with d.
        """
        free = np.zeros(accessor.d, dtype=bool) if accessor.free is None else accessor.free
        groups = accessor.groups or Groups(tuple(range(accessor.d)))
        blocks = entries.blocks()
        rescaled = Rescaled(blocks, accessor.d, given.scaled, accessor.stored_units())
        left_out = rescaled.left_out & ~rescaled.few  # of what is chosen, many more values will be seen
        streams = zip(tables(blocks, accessor.d), left_out, orders, strict=True)
        chosen = [
            _selected(np.where(without, np.nan, X), y, order, free, groups, given) for (X, y), without, order in streams
        ]
        width = max(map(len, chosen))
        return np.stack([np.pad(each, (0, width - len(each)), constant_values=accessor.d) for each in chosen])

    def state_numbers(self, d: int) -> int:
        """Return the size of a matrix of second moments."""
        return d**2


def _selected(
    X: np.ndarray, y: np.ndarray, order: np.ndarray, free: np.ndarray, groups: Groups, given: SideInformation
) -> np.ndarray:
    """Return the attributes that are chosen from rows X (n, d), NaN for unseen values, with targets y (n,); sorted.

    The strength of ridge is that of k attributes, or of those of k groups, in units of their standard deviations which
    explain half of the target's variance. The order (d,) decides between attributes that are equally good, such as
    those never seen.
    """
    d = X.shape[1]
    seen, y = ~np.isnan(X), y - (y.mean() if given.intercept else 0.0)
    live = np.flatnonzero(seen.any(axis=0))
    means, Z = deviations(X[:, live])
    origin = np.zeros(live.size) if given.centred else means
    M, c = np.zeros((d, d)), np.zeros(d)
    M[np.ix_(live, live)] = covariance(Z, seen[:, live]) + np.outer(origin, origin)
    c[live] = y @ Z / seen[:, live].sum(axis=0) + origin * y.mean()
    units = [groups.members[head] for head in order[(~free & groups.leads)[order]]]
    k = min(given.k, len(units))
    strength = k * np.count_nonzero(~free) / len(units) * d / np.count_nonzero(seen)
    chosen = forward_selection(
        M, c, strength, k, [unit[unit < d].tolist() for unit in units], np.flatnonzero(free).tolist()
    )
    return np.sort([*chosen, *np.flatnonzero(free)])


def forward_selection(
    M: np.ndarray,
    c: np.ndarray,
    strength: float,
    k: int,
    candidates: Sequence[Sequence[int]],
    taken: Sequence[int] = (),
) -> list[int]:
    """Return k groups of attributes, each of which lowers the loss of ridge the most beside those before.

    The loss of a set of attributes is the least ``w'(M + strength diag M) w - 2 w'c`` over regressors w on them. So the
    units of attributes do not matter. A group g lowers it by ``r_g' A_gg^-1 r_g``, where ``A = M + strength diag M``
    and ``r = c``, from which the attributes before have been eliminated.

    Parameters
    ----------
    M : ndarray of float, shape (d, d)
        Second moments, positive semidefinite.
    c : ndarray of float, shape (d,)
        Products with the target.
    strength : float
        Above 0.
    k : int
        How many to choose, at most the number of candidates.
    candidates : sequence of sequence of int
        Disjoint groups of attributes to choose from, most of one; of equally good ones, the first is chosen.
    taken : sequence of int, optional
        Attributes that are in all sets.

    Returns
    -------
    list of int
        The attributes of these groups in the order in which they were chosen, without those taken.
    """
    size = np.diag(M)
    unit = np.where(size > 0, 1 / np.sqrt(np.where(size > 0, size, 1.0)), 0.0)
    A, r = M * np.outer(unit, unit) + strength * np.eye(len(c)), c * unit
    left, chosen = list(candidates), list[int]()
    for step in range(1 + k):
        group = taken
        if step:
            first = [group[0] for group in left]
            gains = np.square(r[first]) / A[first, first]
            for at, group in enumerate(left):
                if len(group) > 1:
                    gains[at] = r[group] @ np.linalg.solve(A[np.ix_(group, group)], r[group])
            group = left.pop(int(gains.argmax()))
            chosen += group
        for j in group:
            column = A[:, j] / A[j, j]
            r = r - column * r[j]
            A = A - np.outer(column, A[j])
    return chosen
