"""What runs have paid, in attributes and in money, as a table."""

from collections.abc import Iterator, Sequence

from budgetreg.figures.captions import amount
from budgetreg.figures.tables import right
from budgetreg.report.page import PagePart
from budgetreg.report.tables import listing
from budgetreg.runs.series import Payments, Series, series_paid

_ABOUT = (
    "What a repetition pays for, on average over repetitions. The pilot, full rows that are bought first, is part of "
    "learning. Tuning can use again what learning has bought: it is charged for the other cells that its folds reveal, "
    "and for the rows that it sees in full because they are held out. Cells and full rows overlap, so that the amount "
    "paid in all is at least the larger of the two."
)
_TEST = "test (not charged)"
_ABOUT_TEST = "Tests look at all attributes of the test examples. No bill includes them: they only measure the error."
_PARTS = ("learning", "pilot in it", "tuning: other cells", "tuning: full rows", "in all, at least")
_IN_MONEY = ("learning", "tuning: other cells", "tuning: full rows", "in all, at least")


def bill(series: Sequence[Series]) -> PagePart:
    """Return the part of a section with the bill of its runs; runs that recorded none have dashes."""
    units = list(dict.fromkeys(curve.unit for curve in series if curve.unit))
    in_money = [f"{unit}: {what}" for unit in units for what in _IN_MONEY]
    several = len({curve.dataset for curve in series}) > 1
    heads = [*(["data set"] if several else []), "learner", *right("repetitions", *_PARTS, *in_money, _TEST)]
    rows = [[*([curve.dataset] if several else []), *_row(curve, units)] for curve in series]
    caption = f"Paid by a repetition, in {' and '.join(['attributes', *units])}"
    return PagePart("Bill", [_ABOUT, _ABOUT_TEST], tables=[listing(caption, heads, rows)])


def _row(series: Series, units: Sequence[str]) -> Iterator[str]:
    attributes, paid = series_paid(series)
    times = max(series.repetitions, 1)
    yield series.label or series.algo
    yield str(series.repetitions)
    if attributes is None:  # of results that did not record the cells of tuning
        learning = series.runs.get("attributes_total")
        yield from ("-" if learning is None else f"{learning.mean():,.0f}", _pilot(series), "-", "-", "-")
    else:
        learned, *others = (f"{value / times:,.0f}" for value in _numbers(attributes))
        yield from (learned, _pilot(series), *others)
    for unit in units:
        known = paid if unit == series.unit else None
        yield from ("-" * len(_IN_MONEY) if known is None else (amount(value / times) for value in _numbers(known)))
    yield "-" if series.n_test is None else f"{series.n_test * series.d:,}"


def _pilot(series: Series) -> str:
    rows = series.config.get("pilot")
    return f"{rows * (series.full_row or series.d):,}" if isinstance(rows, int) else str(rows or "-")


def _numbers(payments: Payments) -> tuple[float, float, float, float]:
    return payments.final, payments.tuning, payments.rows, payments.total
