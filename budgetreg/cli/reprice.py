"""``budgetreg reprice``: draw finished runs by another price list, without computing anything again."""

from pathlib import Path

from budgetreg.cli.common import Parser, console
from budgetreg.errors import ConfigError

_KEYS = ("costs", "unit")
_NAME = "repriced"


def main(argv: list[str]) -> int:
    """Draw the curves in and below some folders against money by a price list, print how they end, and the files.

    Parameters
    ----------
    argv : list of str
        What follows ``reprice`` on the command line.

    Raises
    ------
    ConfigError
        If no price list is given, or the draws of a run heeded the prices that it had.
    DataError
        If a run does not tell what it revealed, or the list does not fit.
    """
    parser = Parser(
        "reprice",
        "Draw finished runs that had prices and did not draw by them (algo.prices=ignored, or a learner that never "
        f"does) against money by another price list: a figure {_NAME}.* and a table {_NAME}.csv.",
    )
    parser.add_argument("words", nargs="+", metavar="DIR costs=FILE [unit=WORD]", help="runs, and the list")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="where figure and table go (default: DIR, or the current folder for several)",
    )
    arguments = parser.parse_args(argv)
    keys = {key: value for key, sign, value in (word.partition("=") for word in arguments.words) if key in _KEYS}
    folders = [Path(word) for word in arguments.words if word.partition("=")[0] not in _KEYS]
    if not folders or not keys.get("costs"):
        raise ConfigError(f"a folder and a price list are needed: DIR costs=FILE (see {parser.prog} --help)")
    from budgetreg.figures.curves import plot_series  # here, because matplotlib is slow to load and --help is not
    from budgetreg.figures.drawing import Drawing
    from budgetreg.figures.summary import compared
    from budgetreg.files.writing import write_atomically
    from budgetreg.results.repricing import repriced, table_of

    series = repriced(folders, Path(keys["costs"]).expanduser(), keys.get("unit"))
    out = arguments.out or (folders[0] if len(folders) == 1 else Path())
    written = plot_series(series, out, _NAME, Drawing(x="cost"))
    write_atomically(out / f"{_NAME}.csv", table_of(series))
    console().print(compared(series))
    for path in (*written, out / f"{_NAME}.csv"):
        print(path)
    return 0
