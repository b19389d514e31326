"""A study in words and tables: its size, what it paid, and how large the error is."""

from collections.abc import Iterator

from rich.table import Table

from budgetreg.figures.tables import right, table
from budgetreg.notices import plural
from budgetreg.study.forecast import Estimates
from budgetreg.study.state import UNORDERED, State, StudyBill

ABOUT_ESTIMATES = "error relative to that of the mean target, estimated without complete rows, with 90 % intervals:"


def size_of(state: State) -> str:
    """Return how many examples, targets, attributes and values a study has."""
    n, d = state.values.shape
    return (
        f"{plural(n, 'example')}, {int(state.known_targets.sum()):,} of them with the target {state.facts['target']}; "
        f"{plural(d, 'attribute')}; {int(state.known.sum()):,} of {plural(n * d, 'value')} known"
    )


def paid_in_all(bill: StudyBill) -> str:
    """Return what a study has paid, and what its pending values will cost."""
    pending = f", and {exact_money(bill.on_order)} {bill.unit} for what is on order" if bill.on_order else ""
    return f"paid: {exact_money(bill.total)} {bill.unit}{pending}"


def estimates_table(estimates: Estimates, unit: str) -> Table:
    """Return a table of the estimated errors and the forecast."""
    rows = [
        ("all attributes of a new example are measured", estimates.error.complete),
        ("as many are measured as were bought on average", estimates.error.as_bought),
        *((f"all are measured, after {exact_money(more)} {unit} more", error) for more, error in estimates.further),
    ]
    cells = ((what, f"{each.estimate:.3f}", f"{each.low:.3f} to {each.high:.3f}") for what, each in rows)
    return table(("if", *right("error", "interval")), cells)


def bill_tables(bill: StudyBill) -> Iterator[Table]:
    """Give the bill by attribute and, if there are orders, by order."""
    heads = ("attribute", *right("price", "free", "paid", "on order", "unavailable", bill.unit))
    rows = (
        (name, exact_money(price), *counts, exact_money(cost))
        for name, price, *counts, cost in bill.by_attribute.itertuples(index=False)
    )
    yield table(heads, rows)
    if bill.by_order.empty:
        return
    heads = ("order", *right("asked", "paid", "on order", "unavailable", bill.unit), "")
    yield table(
        heads,
        (
            (
                "none" if number == UNORDERED else number,
                "" if number == UNORDERED else exact_money(asked),
                *counts,
                exact_money(cost),
                "cancelled" if cancelled else "",
            )
            for number, asked, *counts, cost, cancelled in bill.by_order.itertuples(index=False)
        ),
    )


def exact_money(value: float) -> str:
    """Return a sum of money as text, exact to a millionth of it."""
    return f"{value:,.7g}"
