"""``budgetreg report``: one HTML page about runs, advices, studies and reproduced figures."""

from argparse import Namespace

from budgetreg.cli.common import shown
from budgetreg.files import at_home
from budgetreg.report.sections import write_report


def main(arguments: Namespace) -> int:
    """Write the page, and print its path.

    Parameters
    ----------
    arguments : Namespace
        Its options, see `budgetreg.cli.arguments`.

    Raises
    ------
    ConfigError
        If another file would be replaced.
    DataError
        If a place holds no results, nothing is finished there, or a file is damaged.
    """
    out = None if arguments.out is None else at_home(arguments.out)
    print(shown(write_report([at_home(place) for place in arguments.places], out)))
    return 0
