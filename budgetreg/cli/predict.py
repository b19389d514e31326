"""``budgetreg predict``: apply what a run has learned to another table."""

import sys
from pathlib import Path

from budgetreg.cli.common import Parser, whole_number
from budgetreg.errors import ConfigError
from budgetreg.notices import say

_ABOUT = """Predict the target of the rows of a table (CSV, Parquet, NPZ, LIBSVM, ...) with what a run has learned.
Columns are matched by name if they have names, else by order. If the table has the target, the error is printed. With
labels -1 and +1, the sign of a prediction is the label."""


def main(argv: list[str]) -> int:
    """Print the predictions as a CSV file, or write them.

    Parameters
    ----------
    argv : list of str
        What follows ``predict`` on the command line.

    Raises
    ------
    ConfigError
        If an option is invalid, or the run cannot predict.
    DataError
        If there is no model, or the table does not fit it.
    """
    parser = Parser("predict", _ABOUT)
    parser.add_argument("folder", type=Path, metavar="DIR", help="the folder of a finished run")
    parser.add_argument("table", type=Path, metavar="TABLE", help="a file such as dataset=file reads")
    parser.add_argument(
        "options",
        nargs="*",
        metavar="KEY=VALUE",
        help="repetition=N: the repetition whose regressor predicts (default: all, the mean of their predictions); "
        "out=FILE: where the predictions are written (default: stdout)",
    )
    arguments = parser.parse_args(argv)
    repetition, out = _options(arguments.options)
    from budgetreg.files.writing import write_atomically  # here, as numpy is slow to load and --help is not
    from budgetreg.results.predictions import predict

    predictions = predict(arguments.folder.expanduser(), arguments.table.expanduser(), repetition)
    for line in predictions.notes:
        say(line)
    content = "\n".join(["prediction", *map(repr, predictions.values.tolist()), ""])
    if out is None:
        sys.stdout.write(content)
    else:
        write_atomically(out, content.encode())
        print(out)
    return 0


def _options(words: list[str]) -> tuple[int | None, Path | None]:
    given = {key: value for key, _, value in (word.partition("=") for word in words)}
    for key in given:
        if key not in ("repetition", "out") or not given[key]:
            raise ConfigError(f"{key}: predict takes repetition=all, repetition=N and out=FILE")
    number = given.get("repetition", "all")
    out = Path(given["out"]).expanduser() if "out" in given else None
    return None if number == "all" else whole_number("repetition", number, 0), out
