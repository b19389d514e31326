"""``budgetreg predict``: apply what a run has learned to another table."""

import sys
from argparse import Namespace
from pathlib import Path

from budgetreg.cli.arguments import whole_number
from budgetreg.errors import ConfigError
from budgetreg.files.writing import write_atomically
from budgetreg.notices import say
from budgetreg.results.models import predict


def main(arguments: Namespace) -> int:
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
    repetition, out = _options(arguments.words)
    predictions, notes = predict(arguments.folder.expanduser(), arguments.table.expanduser(), repetition)
    for line in notes:
        say(line)
    content = "\n".join(["prediction", *map(repr, predictions.tolist()), ""])
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
