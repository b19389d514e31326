"""``budgetreg fit`` and ``predict``: learn once from all rows within the budget, and apply what was learned."""

import shlex
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from budgetreg.api import carry_out, fit_plan
from budgetreg.cli.arguments import key_values, whole_number
from budgetreg.cli.console import console, refuse_root, shown
from budgetreg.cli.run import plan_table, read_words
from budgetreg.common.files import at_home, write_atomically
from budgetreg.common.notices import in_one_line, right, say, table
from budgetreg.data.dataset import label
from budgetreg.data.file import read_sheet
from budgetreg.figures.captions import amount
from budgetreg.protocol.plan import Plan
from budgetreg.runs.models import predict, read_regressors
from budgetreg.runs.runner import remarks
from budgetreg.runs.series import Payments, read, read_reveals, run_paid
from budgetreg.runs.tables import MODEL, PREDICTION_COLUMNS, REVEALS, refuse_other

_REFUSED = ("hydra", "experiment")
_MOST_ROWS = 20


def fit(arguments: Namespace) -> int:
    """Learn, unless that is done, and print what was paid.

    Parameters
    ----------
    arguments : Namespace
        Its options, see `budgetreg.cli.arguments`.

    Returns
    -------
    int
        0, 1 if it failed, 130 if interrupted.

    Raises
    ------
    ConfigError
        If a word is invalid, or the choices cannot work.
    DataError
        If the data are missing or unusable.
    """
    _, choices = read_words(arguments.words, "fit", (), _REFUSED, "learns once from all rows")
    if choices.get("out") is not None:
        refuse_root(str(choices["out"]))
    plan = fit_plan(choices)
    if arguments.dry_run:
        console().print(plan_table(plan))
        return 0
    outcome = carry_out(plan, draw=False)
    for line in remarks([outcome.choices]):
        say(line)
    if outcome.failed:
        return 1
    _print_bill(plan, outcome.folder)
    if plan.config.predict_k is not None:
        seen = np.flatnonzero(read_regressors(outcome.folder)["w"].any(axis=0)).tolist()
        names = ", ".join(label(at, plan.names, plan.dropped, plan.first) for at in seen) or "none"
        print(in_one_line(f"predictions look at {len(seen)} of {plan.d} attributes: {names}"))
    print(f"model: {shown(outcome.folder / MODEL)} (budgetreg predict {shlex.quote(shown(outcome.folder))} TABLE)")
    same = shlex.join(["budgetreg", "run", *(word for word in arguments.words if not word.startswith("out="))])
    print(in_one_line(f"no row was kept for a test, so no error was estimated: {same} estimates it"))
    return 0


def _print_bill(plan: Plan, folder: Path) -> None:
    """Print the bill and, with prices, the bill by attribute."""
    results = read(folder)
    attributes, paid = run_paid(results)
    assert attributes is not None
    unit = [plan.prices.unit] if plan.prices else []
    total, spent = plan.config.total, paid or attributes
    if total is not None and spent.total > spent.final:
        say(
            f"{plan.total}: this pays for learning only; choosing the parameters cost more, see tuning below; with "
            "tuning=fixed nothing is chosen"
        )
    per_example = f"{plan.per_example} of {plan.d} attributes"
    if plan.groups is not None:
        groups = np.count_nonzero(plan.groups.leads)
        per_example = f"{plan.per_example} of {groups} groups and single attributes ({plan.d} attributes in all)"
    each = f"{per_example} of each of {results.curves['examples'].iloc[-1]} rows"
    if plan.config.chooses_k:  # `examples` has the amount that was spent
        each = f"up to {per_example} of each row"
    learned = f"{plan.config.algo.name} on {plan.dataset}, learned from {each}"
    print(in_one_line(f"{learned}, {plan.n_train} rows in all"))
    console().print(table(("paid for", *right("attributes", *unit)), _rows(plan, attributes, paid)))
    if plan.prices is None:
        return
    counts = read_reveals(folder).iloc[-1]
    items = [
        (name, count, cost, count * cost)
        for name, count, cost in zip(map(str, counts.index), counts.tolist(), plan.prices.costs, strict=True)
    ]
    items.sort(key=lambda item: -item[3])
    rows: list[Sequence[object]] = [(name, n, amount(cost), amount(sum_)) for name, n, cost, sum_ in items[:_MOST_ROWS]]
    rest = items[_MOST_ROWS:]
    if rest:
        others = f"{len(rest)} others (see {REVEALS})"
        rows.append((others, sum(item[1] for item in rest), "", amount(sum(item[3] for item in rest))))
    print("learning, by attribute, without tuning:" if plan.tuned else "by attribute:")
    console().print(table(("attribute", *right("times bought", "price", *unit)), rows))


def _rows(plan: Plan, attributes: Payments, paid: Payments | None) -> Iterator[Sequence[object]]:
    """Yield the rows of the bill, each with a sum of money if there are prices."""

    def row(what: str, part: str) -> Sequence[object]:
        return what, f"{getattr(attributes, part):,.0f}", *([amount(getattr(paid, part))] if paid else [])

    pilot = f" (a pilot of {plan.pilot} full rows included)" if plan.pilot else ""
    yield row(f"learning{pilot}", "final")
    if plan.tuned:
        yield row("tuning: cells that learning did not reveal", "tuning")
        yield row("pilot and tuning: rows seen in full", "rows")
        yield row("in all, at least", "total")


def predict_rows(arguments: Namespace) -> int:
    """Print the predictions as a CSV file, or write them.

    Parameters
    ----------
    arguments : Namespace
        Its options, see `budgetreg.cli.arguments`.

    Raises
    ------
    ConfigError
        If an option is invalid, or the run cannot predict.
    DataError
        If there is no model, or the table does not fit it.
    """
    given = key_values(arguments.words, ("repetition", "id", "out"), "predict has no such key")
    number = given.get("repetition", "all")
    repetition = None if number == "all" else whole_number("repetition", number, 0)
    folder, path = at_home(arguments.folder), at_home(arguments.table)
    predictions = predict(folder, path, repetition)
    for line in predictions.notes:
        say(line)
    column = given.get("id")
    names = {}
    if column:
        # Predictions keep their own names.
        key = "example" if column in PREDICTION_COLUMNS else column
        names[key] = read_sheet(path).column(column, "id names the column to carry through")
    content = predictions.as_csv(names)
    if "out" in given:
        out = at_home(given["out"])
        refuse_other(out, content, [folder, path])
        write_atomically(out, content)
        print(in_one_line(str(out)))
    else:
        sys.stdout.write(content.decode())
    return 0
