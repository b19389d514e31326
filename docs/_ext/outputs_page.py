"""The reference of the files that runs leave, from the schema that writes them."""

from collections.abc import Mapping

from budgetreg.runs import schema
from markup import code, escaped, table

_TABLES: tuple[tuple[str, str, Mapping[str, str], str], ...] = (
    (
        schema.CURVES,
        "The learning curve of a regressor: a row for each repetition and checkpoint.",
        schema.CURVE_COLUMNS,
        "Column",
    ),
    (
        f"{schema.CURVES} of subspaces",
        "The learning curve of a subspace: a row for each repetition and checkpoint.",
        schema.SUBSPACE_COLUMNS,
        "Column",
    ),
    (schema.RUNS, "What was chosen and what was paid: a row for each repetition.", schema.RUN_COLUMNS, "Column"),
    (
        schema.REVEALS,
        "How often each attribute was revealed, if attributes have prices.",
        schema.REVEAL_COLUMNS,
        "Column",
    ),
    (schema.MODEL, "The final regressor of each repetition.", schema.REGRESSOR_ARRAYS, "Array"),
    (f"{schema.MODEL} of subspaces", "The final subspace of each repetition.", schema.SUBSPACE_ARRAYS, "Array"),
    (
        "Predictions",
        "What `budgetreg predict` writes; the last two columns only for targets of two values.",
        schema.PREDICTION_COLUMNS,
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
