"""A plan as a table: what would be run, and what it would pay."""

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from budgetreg.protocol.plan import Plan


def plan_table(plan: "Plan") -> Table:
    """Tabulate a plan and its attribute bill.

    Parameters
    ----------
    plan : Plan
        What would be run.
    """
    table = Table("what", "value", box=None, pad_edge=False, show_header=False)
    for what, value in _rows(plan).items():
        table.add_row(what, Text(value))
    for note in plan.notes:
        table.add_row("note", Text(note))
    return table


def _rows(plan: "Plan") -> dict[str, str]:
    from budgetreg.protocol.widening import widest  # here, as a plan that is printed has loaded it

    config, tuning = plan.config, plan.config.tuning
    settings = max((len(values) for values in plan.settings.values()), default=1)
    paid = plan.attributes_final + plan.attributes_tuning
    most = "at most" if plan.budget else "on average at most"
    examples = f"{plan.n_train} training and {plan.n_test} test examples"
    widened = widest(plan).attributes_tuning
    all_widened = config.repetitions * (plan.attributes_final + widened)
    return {
        "learner": config.algo.name,
        "data set": f"{plan.dataset}: {plan.d} attributes, {examples}",
        "attributes per example": f"{plan.per_example}{_split(plan)}",
        "tuning": f"{tuning.name}, at {tuning.at}, {tuning.folds} folds, {settings} settings{_widening(tuning.widen)}"
        if plan.tuned
        else f"{tuning.name}: nothing to choose",
        "checkpoints (examples)": ", ".join(map(str, plan.checkpoints)),
        "repetitions": f"{config.repetitions}, seed {config.seed}",
        "folder": str(config.folder()),
        "bill: one final run": f"{most} {plan.attributes_final:,} attributes",
        "bill: its tuning": f"{most} {plan.attributes_tuning:,} attributes{_more(plan, widened)}",
        "bill: all repetitions": f"{most} {config.repetitions * paid:,} attributes{_more(plan, all_widened)}",
    }


def _widening(times: int) -> str:
    return f", a grid grows up to {times} times if the best is on its edge" if times else ""


def _more(plan: "Plan", widened: int) -> str:
    return f", {widened:,} if its grid grows as often as it may" if plan.tuned and plan.config.tuning.widen else ""


def _split(plan: "Plan") -> str:
    if plan.k_x is None:
        return ""
    return f" ({plan.k_x} for the data point, {plan.k_ip} for the inner product)"
