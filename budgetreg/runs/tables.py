"""The CSV files of a run, made from what its journal holds."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from budgetreg.files import refuse_foreign
from budgetreg.protocol.plan import Plan
from budgetreg.runs.journal import Entry
from budgetreg.runs.schema import AUC, CHOSEN, CURVES, REVEAL_COLUMNS, REVEALS, RUNS, columns

Row = dict[str, Any]
_OF_ENTRY = ("repetition", "seconds", "status")


def labels_of(plan: Plan) -> Row:
    """Return the columns that are the same in all rows of a run."""
    config = plan.config
    return {"experiment": config.experiment, "algo": config.algo.name, "dataset": plan.dataset, "k": config.k}


def tables_of(plan: Plan, finished: Iterable[Entry], failed: Iterable[Entry] = ()) -> dict[str, bytes]:
    """Return the tables of a run, by name: curves, bills, and the revealed attributes if they have prices.

    Parameters
    ----------
    plan : Plan
        What was run.
    finished, failed : iterable of dict
        Entries of the journal, one per repetition. The tables depend on nothing else; they are sorted by repetition
        and checkpoint.
    """
    labels, done = labels_of(plan), sorted(finished, key=itemgetter("repetition"))
    heads = columns_of(plan, done)
    runs = [
        {**labels, **{name: entry[name] for name in _OF_ENTRY}, **entry.get("result", {}).get("run", {})}
        for entry in sorted([*done, *failed], key=itemgetter("repetition"))
    ]
    tables = {CURVES: as_csv(heads[CURVES], _curve_rows(labels, done)), RUNS: as_csv(expanded(heads[RUNS], runs), runs)}
    return {**tables, REVEALS: as_csv(REVEAL_COLUMNS, _reveal_rows(plan.prices.names, done))} if plan.prices else tables


def columns_of(plan: Plan, finished: Iterable[Entry]) -> dict[str, dict[str, str]]:
    """Return the columns of the tables of a run with their meanings; parameters are those of `tables_of`."""
    of_labels = any(AUC in point for entry in finished for point in entry["result"]["curve"])
    return columns(not plan.config.algo.predicts, plan.prices is not None, of_labels)


def rows_of(content: bytes) -> list[dict[str, str]]:
    """Return the rows of a table as text."""
    return list(csv.DictReader(io.StringIO(content.decode(), newline="")))


def meanings_of(tables: Mapping[str, Iterable[Row]]) -> dict[str, dict[str, str]]:
    """Return the columns that some row of ``curves.csv`` and ``runs.csv`` has, in the schema's order, with meanings."""
    present = {name: {column for row in rows for column in row} for name, rows in tables.items()}
    heads = columns("relative_error" in present[CURVES], priced=True, of_labels=True)
    return {
        name: {column: meaning for column, meaning in heads[name].items() if column in {*present[name], CHOSEN}}
        for name in tables
    }


def expanded(heads: Iterable[str], rows: Iterable[Row]) -> list[str]:
    """Return columns with the names of the chosen parameters that some row has in place of ``p_*``."""
    chosen = dict.fromkeys(name for row in rows for name in row if name.startswith("p_"))
    return [name for head in heads for name in (chosen if head == CHOSEN else [head])]


def as_csv(columns: Iterable[str], rows: Iterable[Row]) -> bytes:
    """Return rows as a CSV file; what a row lacks is left empty."""
    # Floats come out in the shortest form that reads back as the same number.
    lines: list[str] = []
    # A name is quoted if it holds a character of the line's end; readers take a bare "\r" for one.
    writer = csv.DictWriter(SimpleNamespace(write=lines.append), list(columns), restval="", lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(rows)
    return "".join(line.removesuffix("\r\n") + "\n" for line in lines).encode()


def refuse_other(path: Path, content: bytes, inputs: Iterable[Path | str]) -> None:
    """Refuse to replace a file by a table, unless it is one that `as_csv` wrote with the same columns.

    Parameters
    ----------
    path : Path
        The file.
    content : bytes
        The table, of `as_csv`.
    inputs : iterable of Path or str
        See `budgetreg.files.refuse_foreign`, which gives the errors, too.
    """
    columns = next(csv.reader(io.StringIO(content.decode(), newline="")))

    def is_ours(old: bytes) -> bool:
        try:
            return as_csv(columns, rows_of(old)) == old
        except (ValueError, csv.Error):  # it is no text, or has other columns
            return False

    refuse_foreign(path, is_ours, inputs)


def _curve_rows(labels: Row, entries: Iterable[Entry]) -> Iterator[Row]:
    for entry in entries:
        for point in sorted(entry["result"]["curve"], key=lambda point: point["examples"]):
            yield {**labels, "repetition": entry["repetition"], **point}


def _reveal_rows(attributes: Sequence[str], entries: Iterable[Entry]) -> Iterator[Row]:
    """Yield a row per repetition, checkpoint and attribute."""
    for entry in entries:
        for point, counts in zip(entry["result"]["curve"], entry["result"]["reveals"], strict=True):
            for attribute, count in zip(attributes, counts, strict=True):
                values = (entry["repetition"], point["examples"], attribute, count)
                yield dict(zip(REVEAL_COLUMNS, values, strict=True))
