"""The files of a run: their names, the meaning of every column, and the CSV files made from what its journal holds."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from budgetreg.common.files import refuse_foreign

if TYPE_CHECKING:
    from budgetreg.protocol.plan import Plan  # which is slow to load


SCHEMA_VERSION = 3

CURVES = "curves.csv"
RUNS = "runs.csv"
REVEALS = "reveals.csv"
MANIFEST = "manifest.json"
JOURNAL = "journal.jsonl"
MODEL = "model.npz"
MODELS = "models.jsonl"
"""Models lie beside the journal, because they grow with the number of attributes and few readers need them."""
TABLES = (CURVES, RUNS, REVEALS, MODEL)
RUN_FILES = (MANIFEST, JOURNAL, MODELS, *TABLES)
CURVE_FILES = ("curve.png", "curve.pdf", "curve.txt")
LOCK = ".lock"
REPORT = "report.html"
CLAIMS = "claims.csv"
SAVINGS = "savings.csv"
CELL = "cell"
"""In the merged results of a figure, the column with the cell of its recipe that a row belongs to."""

COST, PAID_COST = "cost", "paid_cost"
"""What a curve has been charged, in money; the second, a variable of axes, includes what tuning paid for."""

AUC = "test_auc"

IDENTIFIERS: dict[str, str] = {
    "experiment": "name of the experiment the run belongs to; empty if none",
    "algo": "learner",
    "dataset": "data set",
    "k": "attribute budget per training example; auto: the learner chose it",
    "repetition": "number of the random split, from 0",
}

POINTS: dict[str, str] = {
    **IDENTIFIERS,
    "examples": "training examples seen by this checkpoint; with k=auto, the amount that was to be spent by it",
    "attributes": "attributes charged to the final run by this checkpoint (counted, tuning not included)",
    COST: "what the attributes charged to the final run by this checkpoint cost, in units of the price list "
    "(dataset.unit), tuning not included",
}

CURVE_COLUMNS: dict[str, str] = {
    **POINTS,
    "test_mse": "mean squared error on the test part, without a factor 1/2, in squared units of the target",
    "test_relative": "test_mse divided by that of the zero predictor; with intercept=mean, by that of the mean of the "
    "training targets",
    "test_error_rate": "share of test examples whose sign differs from the predicted one (0 has no sign); empty unless "
    "labels are two-valued",
    "test_svr_loss": "mean of max(|residual| - delta, 0) on the test part, for learners of this loss; empty for others",
    AUC: "probability that a test example with the larger label has a larger prediction than one with the smaller "
    "label, plus half of that of equal predictions (area under the ROC curve); empty if the test part has one label "
    "only; the column exists for data of one's own with a target of two values",
    "predicted_from": "attributes of a test example that its prediction sees; the column exists if predict_k is given",
}

PREDICTED = "predicted"
"""Columns that begin with it are those of a budget at prediction, predict_k."""

SUBSPACE_COLUMNS: dict[str, str] = {
    **POINTS,
    "excess_loss": "mean squared distance of examples from the subspace, above that from the best subspace of as many "
    "dimensions; under the distribution if its second moment is known, else on the test part; in squared units of the "
    "attributes",
    "relative_error": "mean squared distance divided by the mean squared length of examples",
    "principal_angle": "largest angle between the subspace and the best one, in degrees",
}

CHOSEN = "p_*"
RUN_COLUMNS: dict[str, str] = {
    **IDENTIFIERS,
    CHOSEN: "value of the parameter named after p_ that was chosen for the last checkpoint: p_B radius of the ball, "
    "p_eta step size, p_eta_two step size of the second phase, p_lambda regularisation, p_forgetting rate of "
    "forgetting",
    "edge": "which of these values are the smallest or largest of their grid, such as 'B:low eta:high'; empty if none",
    "attributes_total": "attributes charged to the final run",
    "attributes_mean": "attributes charged per training example, mean; with k=auto, over those seen",
    "attributes_max": "attributes charged per training example, largest",
    "attributes_tuning": "attributes charged to the choice of parameters, all candidates and folds together",
    "cost_total": "what the attributes charged to the final run cost, in units of the price list",
    "cost_tuning": "what the attributes charged to the choice of parameters cost, all candidates and folds together",
    "cost_cells_tuning": "what the cells cost that only candidates and folds revealed (cells_tuning)",
    "cost_rows_full": "what the training examples that pilot and tuning saw in full (rows_full) cost",
    "cells_run": "distinct cells (a training example and an attribute) revealed by the pilot, and by the final "
    "run with the choice for the last checkpoint; draws that are charged but not looked up belong to no known cell",
    "cells_tuning": "distinct cells that only the candidates and folds of tuning revealed: cells that pilot or final "
    "run revealed too are not counted again, so that cells_run + cells_tuning is the number of all",
    "rows_full": "training examples that were seen in full where parameters are tuned: those of the pilot, and those "
    "that folds hold out in turn; together all without missing values",
    "predicted_from": "attributes of a new example that a prediction of the last model sees, with predict_k",
    "predicted_cost": "what these cost for one example, in units of the price list",
    "seconds": "time the repetition took, in seconds",
    "status": "finished or failed",
}

MODEL_ARRAYS: dict[str, str] = {
    "repetitions": "numbers of the R repetitions, in the order of the other arrays",
    "names": "(d,) names of the attributes; missing if they have none",
    "target": "name of the target; missing if it has none",
    "labels": "(2,) the values of a two-valued target in the data, those of -1 and +1; missing for other targets",
    "indices": "(d,) indices of the attributes in a LIBSVM file; missing for other data",
    "left_out": "indices of the columns of a LIBSVM file that dataset.drop left out; missing if there are none",
}

REGRESSOR_ARRAYS: dict[str, str] = {
    **MODEL_ARRAYS,
    "w": "(R, d) weights at the last checkpoint of attributes as they are stored: the prediction is b + <w, x - c>",
    "b": "(R,) predictions at c, in units of the target",
    "c": "(R, d) the centre of the attributes; 0 where they are not centred",
    "mean": "(R, d) means of the attributes, for fits of learners that model them, of at most 1,000 attributes",
    "covariance": "(R, d, d) their covariances, by which rows with holes are predicted",
    "share": "(R,) share p of the second label among the training examples, for two-valued targets only",
    "explained": "(R,) share R^2 of the target's variance that the prediction s explains, by held-out folds if "
    "parameters were tuned on them, else by the covariances of single attributes with the target, less a standard "
    "error; the probability P of the second label is logit P = logit p + (1 - 2 p) / (2 p (1 - p)) + "
    "s / (2 p (1 - p) (1 - R^2))",
}

PREDICTION_COLUMNS: dict[str, str] = {
    "prediction": "mean over the models; in units of the target, or -1 and +1 for its two labels, which it can exceed",
    "probability": "that of the second label, the larger in sorted order, mean over the models: by Bayes' rule, if the "
    "prediction is normal given each label, with one variance (linear discriminant analysis)",
    "label": "the label whose probability is larger",
}
"""What ``budgetreg predict`` writes; the last two columns for two-valued targets only."""

SUBSPACE_ARRAYS: dict[str, str] = {
    **MODEL_ARRAYS,
    "V": "(R, d, n_components) orthonormal columns at the last checkpoint, which span the subspace of (x - c) * scale",
    "c": "(R, d) the centre of the attributes; 0 where they are not centred",
    "scale": "(R, d) units of attributes as they are stored",
}


REVEAL_COLUMNS: dict[str, str] = {
    "repetition": IDENTIFIERS["repetition"],
    "examples": POINTS["examples"],
    "attribute": "the attribute's name in the data, or its number from 1, or its index in a LIBSVM file",
    "count": "how often the final run revealed it, and paid for it, by this checkpoint",
}
Row = dict[str, Any]
_OF_ENTRY = ("repetition", "seconds", "status")


def columns(
    of_subspaces: bool, priced: bool = False, of_labels: bool = False, narrow: bool = False
) -> dict[str, dict[str, str]]:
    """Return the columns of the files and their meanings, for learners of subspaces or of regressors.

    Without prices there are no columns of costs, and one file less; without a curve that has it, no `AUC`; and without
    a budget at prediction, no columns of it.
    """
    tables = {CURVES: SUBSPACE_COLUMNS if of_subspaces else CURVE_COLUMNS, RUNS: RUN_COLUMNS, REVEALS: REVEAL_COLUMNS}
    absent = {COST: not priced, "predicted_cost": not priced, AUC: not of_labels, PREDICTED: not narrow}
    left_out = tuple(name for name, is_absent in absent.items() if is_absent)
    return {
        name: {column: meaning for column, meaning in table.items() if not column.startswith(left_out)}
        for name, table in tables.items()
        if priced or name != REVEALS
    }


def labels_of(plan: "Plan") -> Row:
    """Return the columns that are the same in all rows of a run."""
    config = plan.config
    return {"experiment": config.experiment, "algo": config.algo.name, "dataset": plan.dataset, "k": config.k}


def tables_of(plan: "Plan", finished: Iterable[Row], failed: Iterable[Row] = ()) -> dict[str, bytes]:
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


def columns_of(plan: "Plan", finished: Iterable[Row]) -> dict[str, dict[str, str]]:
    """Return the columns of the tables of a run with their meanings; parameters are those of `tables_of`."""
    of_labels = any(AUC in point for entry in finished for point in entry["result"]["curve"])
    narrow = plan.config.predict_k is not None
    return columns(not plan.config.algo.predicts, plan.prices is not None, of_labels, narrow)


def rows_of(content: bytes) -> list[dict[str, str]]:
    """Return the rows of a table as text."""
    return list(csv.DictReader(io.StringIO(content.decode(), newline="")))


def meanings_of(tables: Mapping[str, Iterable[Row]]) -> dict[str, dict[str, str]]:
    """Return the columns that some row of ``curves.csv`` and ``runs.csv`` has, in the schema's order, with meanings."""
    present = {name: {column for row in rows for column in row} for name, rows in tables.items()}
    heads = columns("relative_error" in present[CURVES], priced=True, of_labels=True, narrow=True)
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
        See `budgetreg.common.files.refuse_foreign`, which gives the errors, too.
    """
    columns = next(csv.reader(io.StringIO(content.decode(), newline="")))

    def is_ours(old: bytes) -> bool:
        try:
            return as_csv(columns, rows_of(old)) == old
        except (ValueError, csv.Error):  # it is no text, or has other columns
            return False

    refuse_foreign(path, is_ours, inputs)


def _curve_rows(labels: Row, entries: Iterable[Row]) -> Iterator[Row]:
    for entry in entries:
        for point in sorted(entry["result"]["curve"], key=lambda point: point["examples"]):
            yield {**labels, "repetition": entry["repetition"], **point}


def _reveal_rows(attributes: Sequence[str], entries: Iterable[Row]) -> Iterator[Row]:
    """Yield a row per repetition, checkpoint and attribute."""
    for entry in entries:
        for point, counts in zip(entry["result"]["curve"], entry["result"]["reveals"], strict=True):
            for attribute, count in zip(attributes, counts, strict=True):
                values = (entry["repetition"], point["examples"], attribute, count)
                yield dict(zip(REVEAL_COLUMNS, values, strict=True))
