"""``budgetreg plot``: merge the curves of runs into one figure."""

from pathlib import Path

from budgetreg.cli.common import Parser, console


def main(argv: list[str]) -> int:
    """Draw the curves in and below some folders, print how they end, the best first, and the files written.

    Parameters
    ----------
    argv : list of str
        What follows ``plot`` on the command line.

    Raises
    ------
    DataError
        If a folder is missing or holds no curves.
    """
    parser = Parser("plot", "Merge the curves of one or several folders into a figure (PNG, PDF and caption).")
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="a run, or a folder above runs")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="where the figure goes (default: DIR, or the current folder for several)",
    )
    arguments = parser.parse_args(argv)
    from budgetreg.figures.curves import plot_folders  # here, because matplotlib is slow to load and --help is not
    from budgetreg.figures.summary import comparison_table

    written = plot_folders(arguments.folders, arguments.out)
    console().print(comparison_table(arguments.folders))
    for path in written:
        print(path)
    return 0
