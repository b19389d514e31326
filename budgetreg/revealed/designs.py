"""Sampling designs: which attributes of an example are seen, and the inclusion probabilities of attributes and pairs.

With ``pi_i`` the probability that attribute i is seen, and ``pi_ij`` that both i and j are, the products of the values
seen, each divided by its probability, estimate ``x x'`` without bias (Horvitz & Thompson 1952). The design does not
depend on x.

References
----------
Gonen, Rosenbaum, Eldar and Shalev-Shwartz (2016), "Subspace learning with partial information", Equation 4 and the
footnote of Section 3.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from budgetreg.common.streams import BLOCK, subset_by_position, uniform

_ALMOST_SURE = 1 - 2**-20
"""The largest working probability: conditional Poisson sampling is not defined for 1."""


class Draw(NamedTuple):
    """The attributes drawn for a block of examples.

    Attributes
    ----------
    attributes : ndarray of int, shape (BLOCK, n)
    drawn : ndarray of bool, shape (BLOCK, n), or None
        Which of them are drawn; the others only fill the array. None if all are drawn.
    repeated : ndarray of bool, shape (BLOCK, n), or None
        Which of them repeat another one of the same example: they are paid for, but count only once. None if none do.
    """

    attributes: np.ndarray
    drawn: np.ndarray | None = None
    repeated: np.ndarray | None = None


@dataclass(frozen=True)
class Design:
    """A distribution of the attributes seen.

    Attributes
    ----------
    draw : callable
        Draws the attributes of the next block of examples.
    probability : ndarray of float, shape (d, d)
        ``pi_ij``, and on the diagonal ``pi_i``.
    """

    draw: Callable[[np.random.Generator], Draw]
    probability: np.ndarray


def uniform_subset(d: int, r: int) -> Design:
    """Draw exactly r of d attributes, all subsets with the same probability."""
    return Design(lambda rng: Draw(subset_by_position(rng, d, r).T), _equal(d, r / d, r * (r - 1) / (d * (d - 1))))


def with_replacement(d: int, r: int) -> Design:
    """Draw r times from d attributes, independently: fewer than r may be distinct, and these are seen."""

    def draw(rng: np.random.Generator) -> Draw:
        attributes = np.sort(uniform(rng, d, r), axis=1)
        repeated = np.zeros(attributes.shape, dtype=bool)
        repeated[:, 1:] = attributes[:, 1:] == attributes[:, :-1]
        return Draw(attributes, repeated=repeated)

    missed = (1 - 1 / d) ** r
    return Design(draw, _equal(d, 1 - missed, 1 - 2 * missed + (1 - 2 / d) ** r))


def bernoulli(d: int, r: int) -> Design:
    """Draw each of d attributes with probability r/d, independently: r of them on average."""

    def draw(rng: np.random.Generator) -> Draw:
        example, attribute = np.nonzero(rng.random((BLOCK, d)) < r / d)
        counts = np.bincount(example, minlength=BLOCK)
        drawn = np.arange(counts.max()) < counts[:, None]
        attributes = np.zeros(drawn.shape, dtype=np.int64)
        attributes[drawn] = attribute
        return Draw(attributes, drawn)

    return Design(draw, _equal(d, r / d, (r / d) ** 2))


def _equal(d: int, single: float, pair: float) -> np.ndarray:
    probability = np.full((d, d), pair)
    np.fill_diagonal(probability, single)
    return probability


def conditional_poisson(p: np.ndarray, r: int) -> Design:
    """Draw attributes independently with unequal probabilities, given that exactly r are drawn.

    The probability of a subset S is proportional to ``prod_{i in S} p_i prod_{i not in S} (1 - p_i)``. ``pi_i`` and
    ``pi_ij`` are near ``p_i`` and ``p_i p_j``; they are exact here, see `joint_inclusion`.

    Parameters
    ----------
    p : ndarray of float, shape (d,)
        Above 0 and below 1; their sum is near r.
    r : int
        From 2 to d.

    References
    ----------
    Y. Tillé (2006), Sampling Algorithms, Section 5.5.
    """
    return Design(fixed_size(p, r), joint_inclusion(p, r))


def fixed_size(p: np.ndarray, r: int) -> Callable[[np.random.Generator], Draw]:
    """Return the draws of `conditional_poisson`, without its inclusion probabilities.

    The parameters are the same, but p may also be 0: these attributes are never drawn.
    """
    levels = -_log_survival(p, r)

    def draw(rng: np.random.Generator) -> Draw:
        attributes = np.empty((BLOCK, r), dtype=np.int64)
        first = np.zeros(BLOCK, dtype=np.int64)
        for position, waits in enumerate(np.log1p(-rng.random((BLOCK, r))).T):
            level = levels[r - position]
            attributes[:, position] = np.searchsorted(level, level.take(first) - waits, side="right") - 1
            first = attributes[:, position] + 1
        return Draw(attributes)

    return draw


def replaced(drawn: np.ndarray, available: np.ndarray, p: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return draws in which other attributes stand for those that are not available, as long as there are others.

    Attributes that are available and not drawn are put in an order, and the first of them replace what is missing. It
    is the order of Pareto sampling, by ``u (1 - p) / (1 - u) / p`` with uniform u, in which an attribute with a larger
    working probability p tends to come first. If all p are equal, every set of available attributes of this size is
    equally likely. The order depends on the generator and on what is available only, so that estimates that are
    conditional on what was seen stay what they are if values are missing completely at random.

    Parameters
    ----------
    drawn : ndarray of int, shape (T, r)
        Distinct attributes of each example.
    available : ndarray of bool, shape (T, d)
        Which attributes of each example have a value.
    p : ndarray of float, shape (d,)
        Working probabilities below 1. Attributes of probability 0 replace nothing.
    rng : numpy.random.Generator
        Draws d numbers for each example with a missing value.

    Returns
    -------
    ndarray of int, shape (T, r)
        Distinct attributes; where too few are available, the missing ones that were drawn remain.

    References
    ----------
    B. Rosén. On sampling with probability proportional to size. J. Stat. Plan. Inference 62, 1997.
    """
    result, odds = drawn.copy(), (1 - p) / np.where(p > 0, p, 1.0)
    missing = ~np.take_along_axis(available, drawn, axis=1)
    for example in np.flatnonzero(missing.any(axis=1)):
        u = rng.random(p.size)
        others = available[example] & (p > 0)
        others[drawn[example]] = False
        order = np.flatnonzero(others)
        order = order[np.argsort(u[order] / (1 - u[order]) * odds[order], kind="stable")]
        places = np.flatnonzero(missing[example])[: order.size]
        result[example, places] = order[: places.size]
    return result


def _log_survival(p: np.ndarray, r: int) -> np.ndarray:
    """Return the table (r+1, d+1) by which attributes are drawn one after the other, in ascending order.

    Its entry (j, i) is the logarithm of the probability that independent draws take none of the attributes before i and
    j of the others. While j draws remain, and the last attribute taken is the one before i, the next one is i' or a
    later one with the probability ``exp(table[j, i'] - table[j, i])``.
    """
    with np.errstate(divide="ignore"):
        taken, passed = np.log(p), np.log1p(-p)
    left = np.full((len(p) + 1, r + 1), -np.inf)  # log of the probability that j of the attributes from i on are drawn
    left[-1, 0] = 0
    for i in reversed(range(len(p))):
        left[i] = passed[i] + left[i + 1]
        left[i, 1:] = np.logaddexp(left[i, 1:], taken[i] + left[i + 1, :-1])
    table = np.concatenate([[0.0], np.cumsum(passed)]) + left.T
    return np.minimum.accumulate(table, axis=1)  # exact arithmetic would give a falling table


def working_probabilities(weights: np.ndarray, r: int, mix: float) -> np.ndarray:
    """Return probabilities p of sum r that are proportional to weights, but at most nearly 1, and partly uniform.

    They are the p of `conditional_poisson`.

    Parameters
    ----------
    weights : ndarray of float, shape (d,)
        At least 0.
    r : int
        Sum of the probabilities, at most d; a surplus above 1 is divided among the other attributes.
    mix : float
        Share of the uniform probability ``r/d``, by which attributes of weight 0 are drawn too.

    Returns
    -------
    ndarray of float, shape (d,)
    """
    weights = weights / max(weights.max(), np.finfo(float).tiny)  # so that their sum is not subnormal
    capped = np.zeros(len(weights), dtype=bool)
    while True:
        rest = np.where(capped, 0.0, weights)
        if not rest.any():  # all others have weight 0 and are thus equal
            rest = np.where(capped, 0.0, 1.0)
        total = rest.sum() or 1.0  # there are no others if all are capped
        p = np.where(capped, 1.0, (r - int(capped.sum())) * rest / total)
        if (p <= 1).all():
            return np.minimum((1 - mix) * p + mix * r / len(weights), _ALMOST_SURE)
        capped |= p > 1


def joint_inclusion(p: np.ndarray, r: int) -> np.ndarray:
    """Return the probabilities (d, d) that pairs of attributes, and single ones, are in a conditional Poisson sample.

    The generating function ``f(z) = prod_j (1 - p_j + p_j z)`` of the Poisson-binomial distribution has degree d, so
    that the mean of ``z^-r f(z)`` over N > d roots of unity is exactly the probability of r draws. Without the factor
    of i, times ``p_i z``, it is that of r draws with i among them. For odd N no factor vanishes at any p.

    Parameters
    ----------
    p : ndarray of float, shape (d,)
        Working probabilities: those of independent draws whose number is not fixed.
    r : int
        Size of the sample, near the sum of p: the relative rounding error is inversely proportional to the probability
        of r independent draws.
    """
    N = len(p) + 1 + len(p) % 2
    z = np.exp(2j * np.pi / N * np.arange(N // 2 + 1))  # the other roots give the conjugate terms
    factors = 1 - p + p * z[:, None]
    terms = np.where(np.arange(z.size) > 0, 2, 1) * z**-r * factors.prod(axis=1)
    ratios = p * z[:, None] / factors
    probability = (ratios.T @ (ratios * terms[:, None])).real
    probability = (probability + probability.T) / 2
    np.fill_diagonal(probability, (terms @ ratios).real)
    return probability / terms.sum().real


# Weights by which attributes are drawn, given their second moments, their prices and the regressor. Those of learners
# that take a step for each example are derived in `budgetreg.algorithms.engine`. Attribute i has the moment ``a_i``,
# and a draw of it costs ``c_i > 0``, or 1 if there are no prices.
#
# Learners that store what they see draw k *distinct* attributes of each example, a fixed number, and learn from
# products of two of them. With ``sum_i q_i = 1``, attribute i is seen in a share of about ``k q_i`` of the examples,
# and the pair (i, j) in ``k^2 q_i q_j``. So the variance of a mean product is about ``s_i^2 s_j^2 / (n k^2 q_i q_j)``
# after n examples, and a sum of such variances, with weights that are products too, is ``A B / (n k^2)`` with
# ``A = sum_i a_i / q_i`` and ``B = sum_j b_j / q_j``. For the moments that a regression needs, ``a_i = s_i^2`` and
# ``b_j = w_j^2 s_j^2``. A sum of money S pays for ``n = S / (k C)`` examples, where ``C = sum_i q_i c_i`` is the
# expected price of a draw.
#
# - *Products of two attributes.* Minimise ``A B C`` subject to ``sum_i q_i = 1``. The constraint binds: as k is fixed,
#   a cheaper attribute takes the place of another one. In ``log q_i`` the problem is convex, and where its Lagrangian
#   is stationary ``a_i / (A q_i) + b_i / (B q_i) = q_i c_i / C + lambda q_i``. The sum over i gives ``2 = 1 + lambda``,
#   so that ``q_i ~ v_i / sqrt(1 + c_i / C)`` with ``v_i^2 = a_i / A + b_i / B``. With equal prices ``q_i ~ v_i``: v are
#   the weights that a design without prices has. Prices thus divide them by ``sqrt(1 + c_i / C)``, for any a and b with
#   these v.
# - For single values the same steps give ``q_i ~ v_i / sqrt(c_i / C)``, as for the data point there. For products, an
#   expensive attribute also makes the others of its example useful, and prices count less.

_POWER = 0.7
_ROUNDS = 50
"""Fixed-point iterations for the mean price, whose error at least halves with each."""


def regression_weights(spread: np.ndarray, w: np.ndarray, parts: np.ndarray | None = None) -> np.ndarray:
    """Return weights of attributes for a regression from what is known of it; a rule of this project.

    Equal parts of the weight are proportional to ``s_i^.7``, to ``|w_i| s_i`` and, if `parts` are given, to these
    squares. Attributes that vary may hold information that is not known yet. For those with a large part in the
    prediction errors cost most. Hundreds of small weights that are noise have little of the squares, and an attribute
    of which nothing is known has much of their posterior means.

    Parameters
    ----------
    spread : ndarray of float, shape (d,)
        Residual standard deviations s of the attributes given the target, at least 0.
    w : ndarray of float, shape (d,)
        The regressor.
    parts : ndarray of float, shape (d,), optional
        ``w_i^2 s_i^2``, or its posterior means, up to a factor.

    Returns
    -------
    ndarray of float, shape (d,)
        At least 0.
    """
    large = np.ldexp(spread, -np.frexp(spread.max())[1])  # exactly scaled, so that no product underflows
    weights = [spread**_POWER, np.abs(w) * large, *([] if parts is None else [parts])]
    return np.asarray(sum(of / (of.sum() or 1.0) for of in weights) / len(weights))


def per_money(weights: np.ndarray, prices: np.ndarray) -> np.ndarray:
    """Return the weights ``v_i / sqrt(1 + c_i / C)`` of a design for products of two attributes, C its mean price.

    Parameters
    ----------
    weights : ndarray of float, shape (d,)
        The weights v without prices, at least 0.
    prices : ndarray of float, shape (d,)
        The prices c, all above 0. Equal prices change no weight.

    Returns
    -------
    ndarray of float, shape (d,)
        At least 0; proportional to the weights if prices are equal.
    """
    if not weights.any() or (prices == prices[0]).all():
        return weights
    q = weights
    for _ in range(_ROUNDS):
        q = weights / np.sqrt(1 + prices / ((q * prices).sum() / q.sum()))
    return q
