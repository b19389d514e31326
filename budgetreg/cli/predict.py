"""``budgetreg predict``: apply what a run has learned to another table."""

import sys
from argparse import Namespace

from budgetreg.cli.arguments import whole_number
from budgetreg.errors import ConfigError
from budgetreg.files import at_home, write_atomically
from budgetreg.notices import in_one_line, say
from budgetreg.runs.models import predict
from budgetreg.runs.tables import refuse_other


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
    given = {key: value for key, _, value in (word.partition("=") for word in arguments.words)}
    for key in given:
        if key not in ("repetition", "out") or not given[key]:
            raise ConfigError(f"{key}: predict takes repetition=all, repetition=N and out=FILE")
    number = given.get("repetition", "all")
    repetition = None if number == "all" else whole_number("repetition", number, 0)
    folder, table = at_home(arguments.folder), at_home(arguments.table)
    predictions = predict(folder, table, repetition)
    for line in predictions.notes:
        say(line)
    content = predictions.as_csv().encode()
    if "out" in given:
        out = at_home(given["out"])
        refuse_other(out, content, [folder, table])
        write_atomically(out, content)
        print(in_one_line(str(out)))
    else:
        sys.stdout.write(content.decode())
    return 0
