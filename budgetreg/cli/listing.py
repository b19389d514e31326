"""``budgetreg list``: the learners, data sets and recipes there are."""

from rich.table import Table
from rich.text import Text

from budgetreg.cli.common import Parser, console
from budgetreg.config import catalogue
from budgetreg.errors import ConfigError, nearest

SECTIONS = {
    "algos": "algo",
    "datasets": "dataset",
    "experiments": "experiment",
}  # word -> configuration group


def main(argv: list[str]) -> int:
    """List all sections, or one.

    Parameters
    ----------
    argv : list of str
        What follows ``list`` on the command line.

    Raises
    ------
    ConfigError
        If there is no such section.
    """
    parser = Parser("list", "List learners, data sets and recipes.")
    parser.add_argument("section", nargs="?", help=f"one of {', '.join(SECTIONS)}; all of them by default")
    section = parser.parse_args(argv).section
    if section is not None and section not in SECTIONS:
        raise ConfigError(f"list {section}: must be one of {', '.join(SECTIONS)}{nearest(section, SECTIONS)}")
    for group in SECTIONS.values() if section is None else [SECTIONS[section]]:
        console().print(_table(group))
    return 0


def _table(group: str) -> Table:
    table = Table(f"{group}=", "what it is", box=None, pad_edge=False)
    for option in catalogue.options(group):
        table.add_row(option, Text(catalogue.headline(group, option)))
    return table
