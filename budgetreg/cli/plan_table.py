"""A plan as a table: what would be run, and what it would cost."""

from collections.abc import Sequence

import numpy as np
from rich.table import Table

from budgetreg.algorithms.learner import Observation
from budgetreg.notices import right, table
from budgetreg.protocol.plan import Plan


def plan_table(plan: Plan) -> Table:
    """Return a table of a plan and the attributes that it costs.

    Parameters
    ----------
    plan : Plan
        What would be run.
    """
    rows = [*_rows(plan).items(), *(("note", note) for note in plan.notes)]
    return table(("what", "value"), rows, show_header=False)


def sweep_table(plans: Sequence[Plan]) -> Table:
    """Return a table of several plans: what each would run, and the most that its repetitions may be charged.

    Parameters
    ----------
    plans : sequence of Plan
        At least one; they have the same data and repetitions.
    """
    first = plans[0]
    rows, total = [], 0
    for plan in plans:
        run, tuning = plan.attributes_final, plan.widest().attributes_tuning
        total += plan.config.repetitions * (run + tuning)
        k = "all" if plan.config.algo.observation is Observation.ALL else str(plan.config.k)
        amounts = (plan.most_examples, run, tuning, plan.config.repetitions * (run + tuning))
        money = [f"{_most_money(plan):,.6g}"] if plan.prices else []
        rows.append([plan.config.algo.name, k, *(f"{amount:,}" for amount in amounts), *money])
    unit = [f"a run in {first.prices.unit}"] if first.prices else []
    rows.append(["all", "", "", "", "", f"{total:,}", *("" for _ in unit)])
    heads = ["learner", *right("k", "examples", "attributes of a run", "of its tuning", "of all repetitions", *unit)]
    examples = f"d = {first.d}, {first.n_train} training examples"
    title = f"{first.dataset}: {examples}, {first.config.repetitions} repetitions; at most"
    return table(heads, rows, title=title)


def _rows(plan: Plan) -> dict[str, str]:
    config, tuning = plan.config, plan.config.tuning
    settings = max((len(values) for values in plan.settings.values()), default=1)
    paid = plan.attributes_final + plan.attributes_tuning
    most = "at most" if plan.budget else "on average at most"
    examples = f"{plan.n_train} training and {plan.n_test} test examples"
    cells = plan.n_train * plan.full_row  # no run can reveal more of them, however often it draws
    widened = plan.widest().attributes_tuning
    all_widened = config.repetitions * (plan.attributes_final + widened)
    widening = f", a grid grows up to {tuning.widen} times if the best is on its edge" if tuning.widen else ""
    split = plan.budget_split
    uses = f" ({split.k_x} for the data point, {split.k_ip} for the inner product)" if split else ""
    return {
        "learner": config.algo.name,
        "data set": f"{plan.dataset}: {plan.d} attributes, {examples}",
        "attributes per example": f"{'up to ' if config.chooses_k else ''}{plan.per_example}{uses}",
        "tuning": f"{tuning.name}, at {tuning.at}, {tuning.folds} folds, {settings} settings{widening}"
        if plan.tuned
        else f"{tuning.name}: nothing to choose",
        f"checkpoints ({'spent' if config.chooses_k else 'examples'})": (
            "about " if plan.config.ends_with_money else ""
        )
        + ", ".join(map(str, plan.checkpoints)),
        "repetitions": f"{config.repetitions}, seed {config.seed}",
        "folder": str(config.folder()),
        "bill: one final run": f"{most} {plan.attributes_final:,} attributes",
        "bill: its tuning": f"{most} {plan.attributes_tuning:,} attributes{_more(plan, widened)}",
        "bill: all repetitions": f"{most} {config.repetitions * paid:,} attributes{_more(plan, all_widened)}",
        "distinct cells: one final run": f"{most} {min(plan.attributes_final, cells):,} of {cells:,}",
        "distinct cells: its tuning": f"{most} {min(plan.attributes_tuning, cells):,}{_held_out(plan)}",
        **_money(plan),
    }


def _money(plan: Plan) -> dict[str, str]:
    """Return the prices, and the most that a final run can cost."""
    prices = plan.prices
    if prices is None:
        return {}
    costs = _costs(plan)
    most = "at most" if plan.budget else "on average at most"
    total = f"{plan.config.total} {prices.unit}, at {plan.price:.4g} for an attribute as is expected of its draws"
    return {
        **({"total": total} if plan.config.total else {}),
        "prices": f"{costs[-1]:g} to {costs[0]:g} {prices.unit} for an attribute, {prices.row:g} for a full row",
        "bill: one final run, in money": f"{most} {_most_money(plan):,.6g} {prices.unit}",
    }


def _costs(plan: Plan) -> list[float]:
    """Return the prices of attributes, or of groups that are bought together, from the highest; empty without any."""
    if plan.prices is None:
        return []
    costs = plan.prices.costs if plan.groups is None else np.array(plan.prices.costs)[plan.groups.leads].tolist()
    return sorted(costs, reverse=True)


def _most_money(plan: Plan) -> float:
    """Return the most that a final run can cost; 0 without prices."""
    prices = plan.prices
    if prices is None:
        return 0.0
    steps = plan.most_examples - plan.pilot_before_learning
    full_rows = plan.config.algo.observation is Observation.ALL
    most = plan.pilot_before_learning * prices.row + steps * (
        prices.row if full_rows else plan.per_example * _costs(plan)[0]
    )
    return min(most, float(plan.config.total)) if plan.config.total and plan.config.ends_with_money else most


def _held_out(plan: Plan) -> str:
    if not plan.tuned:
        return ""
    which = " where they are complete" if plan.gaps else ""
    return f"; the held-out folds, {plan.n_train - plan.pilot:,} examples in all, are seen in full{which}"


def _more(plan: Plan, widened: int) -> str:
    return f", {widened:,} if its grid grows as often as allowed" if plan.tuned and plan.config.tuning.widen else ""
