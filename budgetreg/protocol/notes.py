"""Notes for the user on a plan: what it assumes, what is not paid for, and where it ends early."""

from collections.abc import Iterator

import numpy as np

from budgetreg.data import Dataset
from budgetreg.protocol.spending import Spending


def notes(spending: Spending, data: Dataset, pilot: int, n_complete: int, *, tuned: bool) -> Iterator[str]:
    """Yield notes on a plan.

    Parameters
    ----------
    spending : Spending
        What the run may spend.
    data : Dataset
        The data of the first repetition.
    pilot : int
        Full rows that are bought first.
    n_complete : int
        Complete rows of the training part, about.
    tuned : bool
        Whether anything is chosen by cross-validation.
    """
    yield from data.notes
    config, algo = spending.config, spending.config.algo
    end, bought = spending.end(spending.lead(pilot)), spending.bought(spending.lead(pilot))
    if bought is not None and end < bought:
        yield (
            f"{spending.total}: {algo.name} ends at {end} attributes, when it has seen {spending.per_example} "
            f"attributes of each of the {spending.n_train} training examples"
        )
    if pilot:
        learned = "centre and moments" if config.dataset.scaled_by_ranges else "scale, centre and moments"
        yield (
            f"a pilot of {pilot} full rows is bought first, {pilot * spending.d} of {end} attributes in all: {learned} "
            "come from it"
        )
    if data.available is not None:
        yield (
            f"{1 - data.available.mean():.1%} of all cells have no value: missing values are skipped at no cost, tests "
            f"and folds use complete rows only ({np.count_nonzero(data.complete)} of {data.y.size}), and estimates are "
            "unbiased if values are missing completely at random, which is assumed"
        )
    if config.dataset.center == "full":
        yield "dataset.center=full: the training means come from full rows, which no budget pays for"
    if algo.given_moments == "given":
        yield f"{algo.name} is given the attributes' second moments over the training part, which no budget pays for"
    total = config.total or config.k * spending.n_train
    if config.axis == "paid" and tuned and n_complete * spending.row > total:
        payer = f"k={config.k}" if config.total is None else "the total"
        which = "the complete rows of its held-out folds" if data.available is not None else "its held-out folds"
        yield (
            f"axis=paid: tuning sees all attributes of {which}, {n_complete * spending.row:,.10g} {spending.unit} "
            f"where {payer} pays for {total:,}, so that no point of the curve is drawn; tuning=fixed pays for nothing"
        )
