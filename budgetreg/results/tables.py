"""The CSV files of a run, made from what its journal holds."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from budgetreg.results.journal import Entry
from budgetreg.results.schema import ADDED, CHOSEN, COST_OF_RUNS, CURVES, REVEAL_COLUMNS, REVEALS, RUNS, columns

if TYPE_CHECKING:
    from budgetreg.protocol.plan import Plan

Row = dict[str, Any]


def labels_of(plan: "Plan") -> Row:
    """Return the columns that are the same in all rows of a run."""
    config = plan.config
    return {"experiment": config.experiment, "algo": config.algo.name, "dataset": plan.dataset, "k": config.k}


def tables_of(plan: "Plan", finished: Sequence[Entry], failed: Sequence[Entry] = ()) -> dict[str, bytes]:
    """Return the tables of a run, by name: curves and bills, and which attributes were revealed if they have prices.

    Parameters
    ----------
    plan : Plan
        What was run.
    finished, failed : sequence of dict
        Entries of the journal, one per repetition.
    """
    labels = labels_of(plan)
    heads = columns(not plan.config.algo.predicts, plan.prices is not None)[CURVES]
    tables = {CURVES: curves_csv(heads, labels, finished), RUNS: runs_csv(labels, [*finished, *failed])}
    return {**tables, REVEALS: reveals_csv(plan.prices.names, finished)} if plan.prices else tables


def rows_of(content: bytes) -> list[dict[str, str]]:
    """Return the rows of a table as they stand there, as text."""
    return list(csv.DictReader(io.StringIO(content.decode(), newline="")))


def curves_csv(columns: Iterable[str], labels: Mapping[str, Any], entries: Iterable[Entry]) -> bytes:
    """Return ``curves.csv``: one row per repetition and checkpoint, sorted; it depends on the results alone.

    Parameters
    ----------
    columns : iterable of str
        Names of all columns.
    labels : mapping
        The columns that are the same in all rows: ``experiment``, ``algo``, ``dataset``, ``k``.
    entries : iterable of dict
        Finished entries of the journal.
    """
    return as_csv(columns, _curve_rows(labels, _sorted(entries)))


def runs_csv(labels: Mapping[str, Any], entries: Iterable[Entry]) -> bytes:
    """Return ``runs.csv``: one row per repetition, finished or failed.

    Parameters
    ----------
    labels : mapping
        As for `curves_csv`.
    entries : iterable of dict
        Entries of the journal, one per repetition.
    """
    rows = [_run_row(labels, entry) for entry in _sorted(entries)]
    return as_csv(run_columns(rows), rows)


def reveals_csv(attributes: Sequence[str], entries: Iterable[Entry]) -> bytes:
    """Return ``reveals.csv``: one row per repetition, checkpoint and attribute.

    Parameters
    ----------
    attributes : sequence of str
        What they are called.
    entries : iterable of dict
        Finished entries of the journal.
    """
    rows = (
        dict(zip(REVEAL_COLUMNS, (entry["repetition"], point["examples"], attribute, count), strict=True))
        for entry in _sorted(entries)
        for point, counts in zip(entry["result"]["curve"], entry["result"]["reveals"], strict=True)
        for attribute, count in zip(attributes, counts, strict=True)
    )
    return as_csv(REVEAL_COLUMNS, rows)


def run_columns(rows: Iterable[Row]) -> list[str]:
    """Return the columns of ``runs.csv``: those of parameters and prices that some row has, and all others.

    What none recorded, as it came later, is left out.
    """
    there = dict.fromkeys(name for row in rows for name in row)
    chosen, priced = [name for name in there if name.startswith("p_")], any(name in there for name in COST_OF_RUNS)
    heads = columns(of_subspaces=False, priced=priced)[RUNS]
    recorded = [column for column in heads if column in there or column not in ADDED]
    return [name for column in recorded for name in (chosen if column == CHOSEN else [column])]


def _sorted(entries: Iterable[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda entry: entry["repetition"])


def _curve_rows(labels: Mapping[str, Any], entries: Iterable[Entry]) -> Iterator[Row]:
    for entry in entries:
        for point in sorted(entry["result"]["curve"], key=lambda point: point["examples"]):
            yield {**labels, "repetition": entry["repetition"], **point}


def _run_row(labels: Mapping[str, Any], entry: Entry) -> Row:
    own = {name: entry[name] for name in ("repetition", "seconds", "status")}
    return {**labels, **own, **entry.get("result", {}).get("run", {})}


def as_csv(columns: Iterable[str], rows: Iterable[Row]) -> bytes:
    """Return rows as a CSV file; what a row lacks is left empty."""
    # Floats come out in the shortest form that reads back as the same number.
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()
