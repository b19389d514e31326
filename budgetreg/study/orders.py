"""Recommend which cells of a table to order next, with the reason in one sentence."""

from dataclasses import dataclass

import numpy as np

from budgetreg.data.groups import Groups
from budgetreg.notices import plural
from budgetreg.revealed.designs import regression_weights
from budgetreg.revealed.purchases import LEAST_DEPTH, Beliefs, Choice, Limit, Offer, choose
from budgetreg.study.joint import JointModel


@dataclass(frozen=True, eq=False)
class Recommendation:
    """Cells to order.

    Attributes
    ----------
    cells : ndarray of int, shape (m, 2)
        Example and attribute of each, no cell twice.
    cost : float
        What they cost together; a group costs its price once per example.
    reason : str
        One sentence.
    """

    cells: np.ndarray
    cost: float
    reason: str


def recommend(
    model: JointModel | None,
    known: np.ndarray,
    blocked: np.ndarray,
    prices: np.ndarray,
    groups: Groups | None,
    spend: float,
    per_example: int | None,
    rng: np.random.Generator,
    has_target: np.ndarray,
    *,
    ordered: np.ndarray | None = None,
) -> Recommendation:
    """Recommend the cells that are worth most for their price, see `budgetreg.revealed.purchases`.

    Parameters
    ----------
    model : JointModel or None
        What was learned so far; None if nothing was.
    known : ndarray of bool, shape (n, d)
        Cells whose values are known.
    blocked : ndarray of bool, shape (n, d)
        Cells that may not be ordered: they are on order, or unavailable.
    prices : ndarray of float, shape (d,)
        Prices of the attributes, at least 0. The price of a group is that of its first attribute.
    groups : Groups or None
        Attributes that are ordered together; None if each is alone.
    spend : float
        Most that the order may cost.
    per_example : int or None
        Most attributes with a price of one example, over all orders together; a group counts as one. None: no limit.
    rng : numpy.random.Generator
        The same state gives the same order.
    has_target : ndarray of bool, shape (n,)
        Examples whose target is known. Others are ordered only if no target is known yet.
    ordered : ndarray of bool, shape (n, d), optional
        Cells of earlier orders, which count for `per_example`; by default all that are known or blocked.

    Returns
    -------
    Recommendation
        Without cells if nothing can be ordered.
    """
    n, d = known.shape
    heads, units = np.unique(np.arange(d) if groups is None else groups.head_of, return_inverse=True)
    is_open = ~(known | blocked)
    offer = Offer(known | blocked, is_open, units, prices[heads], np.full(n, len(heads)))
    priced = offer.prices > 0
    if per_example is not None:
        before = offer.by_unit((known | blocked) if ordered is None else ordered)
        offer.limits[:] = np.maximum(per_example - before[:, priced].sum(axis=1), 0)
    if model is None or not known.any():
        beliefs, weights = None, np.ones(d)
    else:
        beliefs, weights = Beliefs(model.covariance, model.w, model.noise), _weights(model)
    buyable = has_target if has_target.any() else np.ones(n, dtype=bool)
    old = offer.by_unit(offer.seen)[:, priced].any(axis=1)
    examples = np.concatenate([np.flatnonzero(buyable & old), np.flatnonzero(buyable & ~old)])
    choice = choose(offer, beliefs, np.bincount(units, weights), spend, rng, candidates=examples)
    return Recommendation(
        choice.cells, choice.cost, _reason(choice, int(priced.sum()), spend, weighed=beliefs is not None)
    )


def _weights(model: JointModel) -> np.ndarray:
    """Return the weights by which attributes are drawn; attributes count in their standard deviations."""
    S, w = model.covariance, model.w
    variances = np.diagonal(S)
    units = np.sqrt(np.where(variances > 0, variances, 1.0))
    shared = S @ w
    variance = float(w @ shared) + model.noise
    residual = variances - np.square(shared) / (variance or 1.0)
    return regression_weights(np.sqrt(np.maximum(residual, 0.0)) / units, w * units)


def _reason(choice: Choice, units: int, spend: float, *, weighed: bool) -> str:
    examples = len(np.unique(choice.cells[:, 0]))
    many = plural(examples, "example")
    if choice.limit is Limit.NOTHING or not choice.cost:
        free = "cells that cost nothing are all that is ordered" if examples else "nothing is ordered"
        return f"{free}, as no other cell that may be ordered costs at most {spend:,.10g}"
    few = f"{choice.depth} of {units} attributes" if choice.depth > 1 else f"one of {units} attributes"
    each = f"up to {few} each of {many}"
    if choice.limit is Limit.ALL and choice.depth == 1:
        return f"the one attribute that is left to order, of each of {many}"
    if choice.limit is Limit.ALL and (choice.depth == LEAST_DEPTH or not weighed):
        fewer = (
            "one attribute alone does not show" if choice.depth == LEAST_DEPTH else "the money pays for enough to see"
        )
        return f"complete rows, of {many}, as {fewer} how attributes are related"
    return {
        Limit.FEW_EXAMPLES: f"{each}, as complete rows of fewer examples would show little of how attributes are "
        "related while so few values are known",
        Limit.SHARED: f"{each} are worth more than complete rows of fewer, as attributes are correlated",
        Limit.ALL: f"complete rows, of {many}, as a few attributes of each of more examples are not expected to be "
        "worth clearly more",
        Limit.PER_EXAMPLE: f"{each}, the most that one example may have",
        Limit.EXAMPLES: f"{each}, as there are no more examples to buy first attributes of",
    }[choice.limit]
