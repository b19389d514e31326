"""Remarks on a plan, which are printed before it runs."""

from collections.abc import Iterator, Sequence

import numpy as np

from budgetreg.algorithms.learner import Missing
from budgetreg.data.dataset import Dataset
from budgetreg.data.tables import shown
from budgetreg.protocol.spending import Spending

_MOST = 8
"""Names in a list."""


def of_unknown_scale(way: str = "divide them by their known ranges, with scale='none'") -> str:
    """Return why attributes are left out, and what to do; their names are to follow."""
    return (
        "some attributes are left out, as the values seen do not show how large others will be (they are nearly equal, "
        f"or spread over decades); {way}, or take logarithms"
    )


def listed(words: Sequence[str]) -> str:
    """Return the first words of a list."""
    return ", ".join(words[:_MOST]) + (f", and {len(words) - _MOST} more" if len(words) > _MOST else "")


def remarks(spending: Spending, data: Dataset, tuned: bool) -> Iterator[str]:
    """Yield notes for the user on what a plan assumes, what is not paid for, and where it ends early."""
    config, algo = spending.config, spending.config.algo
    pilot, end, bought = spending.pilot, spending.end(spending.lead), spending.bought(spending.lead)
    if config.chooses_k:
        yield (
            f"k=auto: {algo.name} chooses how many attributes it sees of each example; a checkpoint is an amount that "
            "is spent, and the column examples has that amount"
        )
    elif bought is not None and end < bought:
        about = "about " if spending.met or spending.ends_with_money else ""
        values = spending.met.mean / spending.per_example if spending.met else 1
        first = spending.lead * spending.full_row
        yield (
            f"{spending.total}: {algo.name} ends at {about}{first + round((end - first) * values)} attributes, when it "
            f"has seen {'up to ' if spending.met else ''}{spending.per_example} attributes of each of the "
            f"{spending.n_train} training examples"
        )
    elif spending.ends_with_money:
        yield (
            f"{spending.total}: {algo.name} ends where the next example would cost more than is left, about "
            f"{spending.checkpoints[-1]} examples"
        )
    if pilot:
        # Missing values are replaced or left out, so more draws may be planned than the total pays for.
        most = end if config.total is None or spending.ends_with_money else min(end, config.total)
        learned = "centre and moments" if config.dataset.scaled_by_ranges else "scale, centre and moments"
        source = "it"
        if config.dataset.scaled_by_revealed and algo.scales_itself:
            learned, source = "scale and centre", "all values seen"
        yield (
            f"a pilot of {pilot} full rows is bought first, {pilot * spending.full_row:,} of {most:,} attributes in "
            f"all: {learned} come from {source}"
        )
    if spending.free is not None:
        names = shown([spending.prices.names[at] for at in np.flatnonzero(spending.free)]) if spending.prices else ""
        yield f"free attributes are seen of every example, beside those that are drawn, and are on no bill: {names}"
    if spending.groups is not None:
        yield (
            "attributes of a group are bought together, and count as one in k, in the bill and on the axis: "
            f"{spending.d} attributes are {np.count_nonzero(spending.groups.leads)} purchases"
        )
    if data.available is not None:
        replaced = algo.missing is Missing.LEFT_OUT
        way = "another attribute is drawn where a value is missing" if replaced else "missing values are skipped"
        yield (
            f"{1 - data.available.mean():.1%} of all cells have no value: {way} at no cost, "
            f"tests and folds use complete rows only ({np.count_nonzero(data.complete)} of {data.y.size}), and "
            "estimates are unbiased if values are missing completely at random, which is assumed"
        )
    if config.dataset.center == "full":
        yield "dataset.center=full: the training means come from full rows, which no budget pays for"
    if algo.given_moments == "given":
        what = "the attributes' second moments over the training part"
        yield f"{algo.name} knows {what}, which no budget pays for"
    full_rows = spending.n_complete * spending.payment.row
    total = config.total or spending.k * spending.n_train
    if config.axis == "paid" and tuned and full_rows > total:
        payer = f"k={config.k}" if config.total is None else "the total"
        which = "the complete rows of its held-out folds" if data.available is not None else "its held-out folds"
        yield (
            f"axis=paid: tuning sees all attributes of {which}, {full_rows:,.10g} {spending.payment.unit}, but "
            f"{payer} pays for {total:,}: no point of the curve can be drawn; with tuning=fixed, tuning costs nothing"
        )
