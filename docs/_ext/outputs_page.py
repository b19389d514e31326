"""The reference of the files that runs leave, from the schema that writes them."""

from collections.abc import Mapping

from budgetreg.runs.tables import (
    CURVE_COLUMNS,
    CURVES,
    MODEL,
    PREDICTION_COLUMNS,
    REGRESSOR_ARRAYS,
    REVEAL_COLUMNS,
    REVEALS,
    RUN_COLUMNS,
    RUNS,
    SUBSPACE_ARRAYS,
    SUBSPACE_COLUMNS,
)
from markup import code, escaped, table

_TABLES: tuple[tuple[str, str, Mapping[str, str], str], ...] = (
    (
        CURVES,
        "The learning curve of a regressor: a row for each repetition and checkpoint.",
        CURVE_COLUMNS,
        "Column",
    ),
    (
        f"{CURVES} of subspaces",
        "The learning curve of a subspace: a row for each repetition and checkpoint.",
        SUBSPACE_COLUMNS,
        "Column",
    ),
    (RUNS, "What was chosen and what was paid: a row for each repetition.", RUN_COLUMNS, "Column"),
    (
        REVEALS,
        "How often each attribute was revealed, if attributes have prices.",
        REVEAL_COLUMNS,
        "Column",
    ),
    (MODEL, "The final regressor of each repetition.", REGRESSOR_ARRAYS, "Array"),
    (f"{MODEL} of subspaces", "The final subspace of each repetition.", SUBSPACE_ARRAYS, "Array"),
    (
        "Predictions",
        "What `budgetreg predict` writes; the last two columns only for targets of two values.",
        PREDICTION_COLUMNS,
        "Column",
    ),
)


def outputs(_: str) -> str:
    """Return a table for each file: its columns or arrays, and their meanings."""
    sections = []
    for title, about, columns, what in _TABLES:
        rows = ((code(name), escaped(meaning)) for name, meaning in columns.items())
        sections += [f"## {title}", about, table((what, "Meaning"), rows)]
    return "\n\n".join(sections)
