"""The CSV files of a run, made from what its journal holds."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from budgetreg.results.journal import Entry
from budgetreg.results.schema import ADDED, CHOSEN, CURVES, RUN_COLUMNS, RUNS, columns

if TYPE_CHECKING:
    from budgetreg.protocol.plan import Plan

Row = dict[str, Any]


def labels_of(plan: "Plan") -> Row:
    """Return the columns that are the same in all rows of a run."""
    config = plan.config
    return {"experiment": config.experiment, "algo": config.algo.name, "dataset": plan.dataset, "k": config.k}


def tables_of(plan: "Plan", finished: Sequence[Entry], failed: Sequence[Entry] = ()) -> dict[str, bytes]:
    """Return both tables of a run, by name.

    Parameters
    ----------
    plan : Plan
        What was run.
    finished, failed : sequence of dict
        Entries of the journal, one per repetition.
    """
    labels = labels_of(plan)
    heads = columns(of_subspaces=not plan.config.algo.predicts)[CURVES]
    return {CURVES: curves_csv(heads, labels, finished), RUNS: runs_csv(labels, [*finished, *failed])}


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


def run_columns(rows: Iterable[Row]) -> list[str]:
    """Return the columns of ``runs.csv``, one for each parameter that some row has; what none recorded is left out."""
    there = dict.fromkeys(name for row in rows for name in row)
    chosen = [name for name in there if name.startswith("p_")]
    recorded = [column for column in RUN_COLUMNS if column in there or column not in ADDED]
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
