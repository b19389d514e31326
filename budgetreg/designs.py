"""Sampling designs: which attributes of an example are seen, and how probable one of them, or two, are to be seen.

With ``pi_i`` the probability that attribute i is seen, and ``pi_ij`` that both i and j are, the products of what is
seen of x, each divided by its probability, estimate ``x x'`` without bias (Horvitz & Thompson 1952). What is seen does
not depend on x.

References
----------
Gonen, Rosenbaum, Eldar and Shalev-Shwartz (2016), "Subspace learning with partial information", Equation 4 and the
footnote of Section 3.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from budgetreg.draws import BLOCK, subset, uniform


class Draw(NamedTuple):
    """The attributes drawn for a block of examples.

    Attributes
    ----------
    attributes : ndarray of int, shape (BLOCK, n)
    drawn : ndarray of bool, shape (BLOCK, n), or None
        Which of them are drawn at all, the others only fill the array; None if all are.
    repeated : ndarray of bool, shape (BLOCK, n), or None
        Which of them repeat another one of the same example: they are paid for, and count only once.  None if none do.
    """

    attributes: np.ndarray
    drawn: np.ndarray | None = None
    repeated: np.ndarray | None = None


@dataclass(frozen=True)
class Design:
    """How attributes are drawn.

    Attributes
    ----------
    draw : callable
        Draws for the next block of examples.
    singles : float or ndarray of shape (d,)
        ``pi_i``.
    pairs : float or ndarray of shape (d, d)
        ``pi_ij`` for ``i != j``; what stands on the diagonal has no meaning.
    """

    draw: Callable[[np.random.Generator], Draw]
    singles: float | np.ndarray
    pairs: float | np.ndarray


def uniform_subset(d: int, r: int) -> Design:
    """Draw exactly r of d attributes, all subsets alike."""
    return Design(lambda rng: Draw(subset(rng, d, r)), r / d, r * (r - 1) / (d * (d - 1)))


def with_replacement(d: int, r: int) -> Design:
    """Draw r times from d attributes, independently: fewer than r may be distinct, and these are seen."""

    def draw(rng: np.random.Generator) -> Draw:
        attributes = np.sort(uniform(rng, d, r), axis=1)
        repeated = np.zeros(attributes.shape, dtype=bool)
        repeated[:, 1:] = attributes[:, 1:] == attributes[:, :-1]
        return Draw(attributes, repeated=repeated)

    missed = (1 - 1 / d) ** r
    return Design(draw, 1 - missed, 1 - 2 * missed + (1 - 2 / d) ** r)


def bernoulli(d: int, r: int) -> Design:
    """Draw each of d attributes with probability r/d, independently: r of them on average."""

    def draw(rng: np.random.Generator) -> Draw:
        example, attribute = np.nonzero(rng.random((BLOCK, d)) < r / d)
        counts = np.bincount(example, minlength=BLOCK)
        drawn = np.arange(counts.max()) < counts[:, None]
        attributes = np.zeros(drawn.shape, dtype=np.int64)
        attributes[drawn] = attribute
        return Draw(attributes, drawn)

    return Design(draw, r / d, (r / d) ** 2)


def conditional_poisson(p: np.ndarray, r: int) -> Design:
    """Draw each attribute with a probability of its own, independently, given that exactly r are drawn.

    A subset S comes in proportion to ``prod_{i in S} p_i prod_{i not in S} (1 - p_i)``.  If the sum of p is r, ``pi_i``
    and ``pi_ij`` are near to ``p_i`` and ``p_i p_j``; they are exact here, see `inclusion`.

    Parameters
    ----------
    p : ndarray of float, shape (d,)
        Above 0 and at most 1.
    r : int
        From 2 to d.

    References
    ----------
    Y. Tillé (2006), Sampling Algorithms, Section 5.5.
    """
    d = len(p)
    take = _list_sequential(p, r)

    def draw(rng: np.random.Generator) -> Draw:
        uniforms = np.ascontiguousarray(rng.random((BLOCK, d)).T)
        taken = np.empty((d, BLOCK), dtype=bool)
        wanting = np.full(BLOCK, r)
        for i in range(d):
            np.less(uniforms[i], take[i].take(wanting), out=taken[i])
            wanting -= taken[i]
        return Draw(np.nonzero(taken.T)[1].reshape(BLOCK, r))

    return Design(draw, *inclusion(p, r))


def _list_sequential(p: np.ndarray, r: int) -> np.ndarray:
    """Return the probability (d, r+1) that attribute i is taken while so many are wanting, of i and those after it."""
    d = len(p)
    left = np.zeros((d + 1, r + 1))  # that so many of the attributes i, i+1, ... are drawn independently
    left[d, 0] = 1
    for i in reversed(range(d)):
        left[i] = (1 - p[i]) * left[i + 1]
        left[i, 1:] += p[i] * left[i + 1, :-1]
    take = np.zeros((d, r + 1))
    np.divide(p[:, None] * left[1:, :-1], left[:-1, 1:], out=take[:, 1:], where=left[:-1, 1:] > 0)
    # Rounding must not leave any wanting: when as many are wanting as remain, all are taken.
    take[np.arange(r + 1) >= np.arange(d, 0, -1)[:, None]] = 1
    return take


def inclusion(p: np.ndarray, r: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the probabilities that attributes, and pairs of them, are in a conditional Poisson sample of size r.

    The Poisson-binomial law's generating function ``f(z) = prod_j (1 - p_j + p_j z)`` has degree d, so that the mean of
    ``z^-r f(z)`` over N > d roots of unity is exactly the probability of r draws.  Without the factor of i, times
    ``p_i z``, it is that of r draws with i among them.  For odd N no factor vanishes at any p.

    Parameters
    ----------
    p : ndarray of float, shape (d,)
        Working probabilities.
    r : int
        Size.

    Returns
    -------
    singles : ndarray of float, shape (d,)
    pairs : ndarray of float, shape (d, d)
        Symmetric; the diagonal has no meaning.
    """
    N = len(p) + 1 + len(p) % 2
    z = np.exp(2j * np.pi / N * np.arange(N // 2 + 1))  # the other roots give the conjugate terms
    factors = 1 - p + p * z[:, None]
    terms = np.where(np.arange(z.size) > 0, 2, 1) * z**-r * factors.prod(axis=1)
    ratios = p * z[:, None] / factors
    total = terms.sum().real
    pairs = (ratios.T @ (ratios * terms[:, None])).real / total
    return (terms @ ratios).real / total, (pairs + pairs.T) / 2
