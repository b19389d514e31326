"""``budgetreg study``: what to buy next, what was bought, and what it cost."""

import csv
import os
import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from budgetreg.api import draw_study
from budgetreg.cli.arguments import STUDY, key_values, whole_number
from budgetreg.cli.console import console, shown
from budgetreg.common.errors import ConfigError, DataError, UserError, cut, quoted
from budgetreg.common.files import at_home, refuse_foreign, write_atomically
from budgetreg.common.notices import in_one_line, plural, say
from budgetreg.data.tables import is_number
from budgetreg.data.tables import shown as names_shown
from budgetreg.figures.tables import (
    ABOUT_ESTIMATES,
    alternatives_table,
    bill_tables,
    estimates_table,
    exact_money,
    paid_in_all,
    size_of,
)
from budgetreg.runs.tables import as_csv, refuse_other
from budgetreg.study import Study
from budgetreg.study.orders import Order

if TYPE_CHECKING:
    import pandas as pd

_FLAGS = ("replace", "free", "invoiced", "refund", "undo", "dry_run", "log")
_LISTS = ("drop", "missing_values")
_LEAST = {"seed": 0, "per_example": 1, "order": 1, "n_jobs": 1}
"""Keys that are true or false, lists, and whole numbers of at least this; `spend` is an amount, and others are text."""


def main(arguments: Namespace) -> int:
    """Carry out a part of the command.

    Parameters
    ----------
    arguments : Namespace
        Its options, see `budgetreg.cli.arguments`.

    Raises
    ------
    ConfigError
        If a key is invalid, or an order is impossible.
    DataError
        If the study or another file is missing, damaged or unusable.
    """
    words = getattr(arguments, "words", ())
    if arguments.part == "add" and "=" in str(arguments.table) and not os.path.exists(at_home(arguments.table)):
        words, arguments.table = [str(arguments.table), *words], None
    keys = _keys(arguments.part, words)
    if arguments.part == "add" and not (arguments.table or "costs" in keys):
        raise ConfigError("study add: a table of examples or costs=FILE is needed")
    path = at_home(arguments.study)
    if arguments.part == "create":
        _create(path, keys)
        return 0
    with Study(path) as study:
        _PARTS[arguments.part](study, arguments, keys)
    return 0


def _keys(name: str, words: Sequence[str]) -> dict[str, Any]:
    """Return what the words of a part say, by key."""
    part = STUDY[name]
    values = key_values(words, part.keys, f"study {name} has no such key", once=True)
    for key in part.needed:
        if key not in values:
            raise ConfigError(f"study {name}: {key}=VALUE is needed: {part.keys[key]}")
    return {key: _value(key, text) for key, text in values.items()}


def _value(key: str, text: str) -> Any:
    """Return the value of a key."""
    if key in _FLAGS:
        if text not in ("true", "false"):
            raise ConfigError(f"{key}={cut(text)}: must be true or false")
        return text == "true"
    if key in _LISTS:
        return _list(text)
    if key in _LEAST:
        return whole_number(key, text, _LEAST[key])
    if key == "spend":
        if not is_number(text) or not 0 <= float(text) < float("inf"):
            raise ConfigError(f"{key}={cut(text)}: must be a number of at least 0")
        return float(text)
    return text


def _list(text: str) -> list[str]:
    """Return the words of a list such as ``[a,b]``; brackets may be left out, and words with commas are in quotes."""
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    (words,) = csv.reader([" ".join(inner.splitlines())], skipinitialspace=True)
    return [word.strip() for word in words if word.strip()]


def _create(path: Path, keys: dict[str, Any]) -> None:
    table = keys.pop("table")
    study = Study.create(path, examples=Path(table), targets=keys.pop("target", None), **keys)
    _print_size(path, study)
    state = study.state()
    if not state.known_targets.any():
        say(
            f"the column {quoted(state.facts['target'])} of {table} is missing or empty: budgetreg study add "
            f"records targets; if another column has them, remove {shown(path)} and name that column with target="
        )


def _add(study: Study, arguments: Namespace, keys: Mapping[str, Any]) -> None:
    added = study.add(arguments.table, **keys)
    added = {"new prices": added.pop("prices"), **added}
    replaced = f", {number:,} replaced" if (number := added.pop("replaced")) else ""
    counts = ", ".join(
        plural(number, what.removesuffix("s"))
        for what, number in added.items()
        if number or what == ("examples" if arguments.table else "new prices")
    )
    new = study.state().attributes[-added["attributes"] :] if added["attributes"] else ()
    names = f": {names_shown(list(map(quoted, new)))}" if new else ""  # one may be a column that was left out before
    print(in_one_line(f"{arguments.table or keys['costs']}: {counts} added{replaced}{names}"))
    _print_size(arguments.study, study)


def _ask(study: Study, arguments: Namespace, keys: Mapping[str, Any]) -> None:
    out = at_home(keys["out"]) if "out" in keys else None

    def check(order: Order) -> None:
        if out is not None:  # results may have been written into an order that is there
            refuse_foreign(out, order.csv().__eq__, study.files)

    limits, seed = (keys["spend"], keys.get("per_example")), keys.get("seed")
    dry_run = keys.get("dry_run", False)
    if dry_run and (other := next((key for key in ("order", "out") if key in keys), "")):
        raise ConfigError(f"dry_run=true records and writes nothing: leave out {other}=")
    if dry_run:
        order = study.propose(*limits, seed=seed)
    else:
        order = study.place_order(*limits, seed=seed, order=keys.get("order"), check=check)
    examples = len({example for _, example, *_ in order.lines})
    line = (
        f"order {order.number}: {plural(len(order.lines), 'value')} of {plural(examples, 'example')} for "
        f"{exact_money(order.cost)} {order.unit}: {order.reason}"
    )
    if dry_run:
        if order.alternatives:
            console().print(alternatives_table(order.alternatives))
        print(in_one_line(f"nothing is recorded; this would be {line}"))
        return
    content = order.csv()
    if out is not None:
        try:
            write_atomically(out, content)
        except UserError as error:
            raise ConfigError(
                f"{error}; order {order.number} is recorded: the same command with order={order.number} and another "
                "out= writes it"
            ) from error
        print(in_one_line(line))
        print(in_one_line(f"{shown(out)}: write the results into its column value, then budgetreg study tell"))
    else:
        sys.stdout.write(content.decode())
        say(line)


def _tell(study: Study, arguments: Namespace, keys: Mapping[str, Any]) -> None:
    recorded = study.tell(arguments.results, **keys)
    unit = study.state().unit
    counts = {
        "of them replaced": recorded.replaced if recorded.values else 0,
        "of them not on order": recorded.unordered,
        "unavailable": recorded.unavailable,
        "at the price on the invoice": recorded.invoiced,
        "known already": recorded.repeated,
        "pending": recorded.pending,
    }
    parts = [f"{plural(recorded.values, 'value')} recorded", *(f"{n} {what}" for what, n in counts.items() if n)]
    print(in_one_line(f"{arguments.results}: {', '.join(parts)}"))
    print(in_one_line(f"paid: {exact_money(recorded.cost)} {unit}, {exact_money(recorded.spent)} {unit} in all"))


def _show(study: Study, arguments: Namespace, keys: Mapping[str, Any]) -> None:
    bill = study.bill()
    try:
        estimates = study.estimates(n_jobs=keys.get("n_jobs", 1))
    except DataError as error:
        say(f"no estimate of the error: {error}")
    else:
        print(ABOUT_ESTIMATES)
        console().print(estimates_table(estimates, bill.unit))
    print(in_one_line(paid_in_all(bill)))
    _print_size(arguments.study, study)
    for part in bill_tables(bill):
        console().print(part)
    try:
        drawn = draw_study(study, keys.get("out"))
    except UserError as error:
        if "out" in keys:
            raise
        say(f"no figure: {error}: out=FOLDER writes it elsewhere")  # the study may lie where we may only read
    else:
        for path in drawn:
            print(shown(path))


def _cancel(study: Study, arguments: Namespace, keys: Mapping[str, Any]) -> None:
    print(f"order {keys['order']}: {plural(study.cancel(keys['order']), 'pending value')} released")


def _exclude(study: Study, arguments: Namespace, keys: Mapping[str, Any]) -> None:
    state, undo = study.state(), keys.get("undo", False)
    known = {"example": state.examples, "attribute": state.attributes}
    names = {
        key: [keys[key]] if keys[key] in known[key] else list(dict.fromkeys(_list(keys[key])))
        for key in known
        if key in keys
    }
    if len(names) == 2:
        raise ConfigError("study exclude: example= and attribute= are excluded by two commands, one for each")
    if not names or [] in names.values():
        raise ConfigError("study exclude: name examples or attributes: example=NAME or attribute=NAME")
    ((key, listed),) = names.items()
    pending = study.exclude(**{f"{key}s": listed}, refund=keys.get("refund", False), undo=undo)
    what = "can be ordered again" if undo else f"excluded, {plural(pending, 'pending value')} released"
    print(in_one_line(f"{plural(len(listed), key)} {what}"))
    print(in_one_line(paid_in_all(study.bill())))


def _export(study: Study, arguments: Namespace, keys: Mapping[str, Any]) -> None:
    study.export(keys["out"], log=keys.get("log", False))
    print(shown(at_home(keys["out"])))


def _predict(study: Study, arguments: Namespace, keys: Mapping[str, Any]) -> None:
    _write(study.predict(arguments.table), keys, [*study.files, at_home(arguments.table)])


def _next(study: Study, arguments: Namespace, keys: Mapping[str, Any]) -> None:
    spend = keys.get("spend", float("inf"))
    chosen = study.next(arguments.table, spend)
    _write(chosen, keys, [*study.files, at_home(arguments.table)])
    if chosen.empty:
        limit = f" for at most {exact_money(spend)} {study.state().unit}" if "spend" in keys else ""
        say(f"{arguments.table}: no measurement{limit} lowers the standard deviation of a prediction")


def _write(frame: "pd.DataFrame", keys: Mapping[str, Any], inputs: Iterable[Path | str]) -> None:
    """Write a table into the file `out`, which is none of the inputs, or to stdout."""
    rows = ({str(name): cell for name, cell in row.items()} for row in frame.to_dict("records"))
    content = as_csv(frame.columns, rows)
    if "out" not in keys:
        sys.stdout.write(content.decode())
        return
    out = at_home(keys["out"])
    refuse_other(out, content, inputs)
    write_atomically(out, content)
    print(shown(out))


_PARTS = {
    "add": _add,
    "ask": _ask,
    "tell": _tell,
    "show": _show,
    "predict": _predict,
    "next": _next,
    "cancel": _cancel,
    "exclude": _exclude,
    "export": _export,
}


def _print_size(path: Path, study: Study) -> None:
    print(in_one_line(f"{shown(path)}: {size_of(study.state())}"))
