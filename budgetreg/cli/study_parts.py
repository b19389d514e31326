"""The parts of ``budgetreg study`` as data: help, files and keys of each. Nothing slow is imported here."""

from collections.abc import Mapping
from typing import NamedTuple


class Subcommand(NamedTuple):
    """A part of ``budgetreg study``, such as ``tell``.

    Attributes
    ----------
    headline : str
        What it does, in a line.
    about : str
        Further text of its help.
    files : mapping of str to str
        What follows the study, with help: names of files in capitals.
    keys : mapping of str to str
        Keys, with help.
    needed : tuple of str
        Keys that must be there.
    """

    headline: str
    about: str
    files: Mapping[str, str] = {}
    keys: Mapping[str, str] = {}
    needed: tuple[str, ...] = ()


_TABLE = "examples, a CSV or Parquet file"
_DROP = "columns to leave out, such as drop=[date,ward]"
_OUT = "file to write (default: stdout); other files that are there are never replaced"

STUDY: Mapping[str, Subcommand] = {
    "create": Subcommand(
        "make a study of a table of examples and a price list",
        """The table may hold nothing but names and targets. Its other columns are attributes. Values that are there are
        known beforehand and free; empty cells are what can be bought. Repeating the same command changes nothing.""",
        keys={
            "table": _TABLE,
            "target": "column to predict; targets may arrive later (default: target)",
            "id": "column of the examples' names (default: example, or the numbers of the rows)",
            "costs": "price list, a CSV file with the columns attribute,cost and perhaps group; attributes of a group "
            "are bought together, at one price (default: each attribute costs 1)",
            "unit": "unit of the prices, such as EUR",
            "ranges": "CSV file with the columns attribute,low,high: results far outside are refused",
            "drop": _DROP,
            "seed": "seed of all draws (default: 0)",
            "algo": "learner (default: aemr)",
        },
        needed=("table",),
    ),
    "add": Subcommand(
        "add examples, or targets and free values of those there are",
        """Examples are matched by their names. Values in the table are known beforehand and free: results that were
        paid for are recorded by tell. If something is wrong, nothing is added.""",
        {"TABLE": _TABLE},
        {
            "drop": _DROP,
            "replace": "true: a different target or value takes the place of a known one; the log keeps both",
        },
    ),
    "ask": Subcommand(
        "recommend what to buy next, and record it as an order",
        """The order is recorded before it is written. Values on order are not ordered again. The same study and seed
        give the same order. Write the results into its column value, and record them with tell.""",
        keys={
            "spend": "the most that the order may cost",
            "per_example": "most attributes (groups) of one example, over all orders together",
            "out": _OUT,
            "order": "number of the order; an order that was recorded with it is written again, so that a command that "
            "was killed can be repeated",
            "seed": "seed of the draws (default: that of the study)",
        },
        needed=("spend",),
    ),
    "tell": Subcommand(
        "record results",
        """The file needs the columns example,attribute,value, in any order of rows. If it has columns order and cost,
        an order must contain the value, and a cost must be that of the order. An empty value is still pending;
        unavailable will never be measured, and is not charged. Values that nobody ordered are charged, too. If a line
        is wrong, nothing of the file is recorded. Repeating the same command changes nothing.""",
        {"RESULTS": "completed order file, CSV or Parquet"},
        {
            "replace": "true: a result takes the place of a different one; the log keeps both",
            "free": "true: values that nobody ordered are not charged",
        },
    ),
    "show": Subcommand(
        "show what was paid, what is on order, how good the model is, and what more money would bring",
        """The bill is by attribute and by order. The error is estimated without any complete row, and kept in the
        study. A figure shows the errors so far, the forecast, and how much of each attribute was bought.""",
        keys={"out": "folder of the figure (default: that of the study)"},
    ),
    "predict": Subcommand(
        "predict the targets of other examples, which may have holes",
        """Columns are matched by name; attributes that the table lacks are holes, and its other columns may hold
        anything. The columns of the answer are the name of the example, the prediction, and std, the standard deviation
        of the target around it, which is larger the more is missing.""",
        {"TABLE": _TABLE},
        {"out": _OUT},
    ),
    "next": Subcommand(
        "show what to measure next of each of other examples, and what it brings",
        """For each example, what lowers the standard deviation of the prediction most for its price comes first, until
        the money is spent or nothing helps.""",
        {"TABLE": _TABLE},
        {"spend": "the most that may be spent on each example (default: no limit)", "out": _OUT},
    ),
    "cancel": Subcommand(
        "release what is still pending of an order",
        "Values that have arrived already stay. Repeating the same command changes nothing.",
        keys={"order": "number of the order"},
        needed=("order",),
    ),
    "export": Subcommand(
        "write all that is known as a table, or what was learned as a model",
        """The table has a row for each example: its name, its attributes, empty where nothing is known, and its target.
        budgetreg predict applies the model to complete rows.""",
        keys={
            "out": "file to write: TABLE.csv or model.npz; of files that are there, only an exported model is replaced"
        },
        needed=("out",),
    ),
}
"""By name, the parts of the command."""

ABOUT = """usage: budgetreg study PART FILE ...

Buy attributes of examples, and learn from what was bought. A study is one file, which records what is known of each
example, what is on order and what was paid. Several people may use it at the same time, and a copy is a backup.

parts:
{parts}

options:
  --help     show this; after a part, show its keys
  --version  show the version

examples:
  budgetreg study create trial.db table=patients.csv target=outcome id=patient costs=prices.csv unit=EUR
  budgetreg study ask trial.db spend=500 per_example=6 out=order-1.csv
  budgetreg study tell trial.db order-1.csv""".format(
    parts="\n".join(f"  {name:<9}{part.headline}" for name, part in STUDY.items())
)
"""The help of the command itself."""
