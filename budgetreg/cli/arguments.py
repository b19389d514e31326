"""The options of each command and their help, their parser, and their completion in a shell; a mistake gives one line.

The docstring of a command's function, or of the class of a part of ``budgetreg study``, is the text of its help.
Nothing slow is imported here, so that ``--help`` after a command answers at once.
"""

import argparse
import contextlib
import inspect
import io
import os
import re
import shutil
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from budgetreg import __version__
from budgetreg.common.errors import ConfigError, DataError, cut, nearest

SECTIONS = {"algos": "algo", "datasets": "dataset", "experiments": "experiment"}
"""What ``list`` can list, with the configuration group that holds it."""
FETCHED: Mapping[str, tuple[int, int] | None] = {"mnist_3v5": (3, 5), "mnist": None}
"""What ``fetch`` can obtain, with the digits."""
VERIFY_KEYS = {"n_jobs": "repetitions computed at the same time", "dataset.root": "folder that holds MNIST/raw"}
REPRODUCE_KEYS = {
    **VERIFY_KEYS,
    "backend.batch_size": "largest number of replicas that advance together",
    "out": "folder of the merged results, results by default",
}
"""Keys that change no result."""

_RUN = """usage: budgetreg run [-m] [--dry-run] [KEY=VALUE ...]

Run one learner on one data set and write its curve into a folder. If
interrupted, the same command resumes.

options:
  -m, --multirun  sweep: KEY=VALUE,VALUE runs every combination; algo=all_budgeted, all_full and all_subspaces \
stand for all learners on a budget, all on full rows, and all of subspaces
  --dry-run       print the plan and the attributes that it costs, run nothing
  --cfg job       print the configuration, run nothing
  --help          show this
  --version       show the version

groups:
{groups}

keys (see --cfg job for all of them):
  k               attributes that a learner may see in each training example, counting every use
  repetitions     number of random splits
  seed            whole number
  checkpoints     number of points of the curve, or a list: numbers of examples, or shares such as [0.1,1]
  axis            attributes: learners end at the same number of attributes; examples: of examples; \
paid: as attributes, but curves are drawn against everything paid for
  total           attributes, or money with dataset.costs, that every learner ends at, whatever its k
  protocol        a preset, for recipes that have presets
  n_jobs          repetitions computed at the same time
  out             folder of the results; a sweep makes a folder below it for each cell
  algo.split      literal, even, or the number of draws for the inner product
  algo.average    all, suffix or last
  tuning.at       end or each
  dataset.ranges  CSV file with the columns attribute,low,high, from which the scale comes instead of a pilot
  dataset.costs   price list, a CSV file with the columns attribute,cost: costs are shown in money, too

shell completion: eval "$(budgetreg run -sc install=bash)\""""


class _Parser(argparse.ArgumentParser):
    page: Callable[[], str] | None = None
    """Returns the whole help of a command, in place of what argparse writes."""

    def format_help(self) -> str:
        return super().format_help() if self.page is None else _fitted(self.page()) + "\n"

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message} (see {self.prog} --help)")


def parsed(command: str, argv: Sequence[str]) -> argparse.Namespace:
    """Read the words after a command.

    Raises
    ------
    ConfigError
        If an option is invalid.
    DataError
        If a folder is missing.
    SystemExit
        After ``--help`` and ``--version``.
    """
    if command != "study" or argv[:1] in (["--help"], ["-h"], ["--version"]):
        return parser_of(command).parse_intermixed_args(argv)
    if not argv:
        raise ConfigError(f"study: a part is needed: {', '.join(STUDY)} (see budgetreg study --help)")
    part, *rest = argv
    if part not in STUDY:
        raise ConfigError(f"study {part}: no such part{nearest(part, STUDY)}; parts: {', '.join(STUDY)}")
    return parser_of(f"study {part}").parse_intermixed_args(rest, argparse.Namespace(part=part))


def parser_of(command: str) -> argparse.ArgumentParser:
    """Return the parser of what follows a command, or a part of one such as ``study create``."""
    declared: Any = OPTIONS[command]
    parser = _Parser(prog=f"budgetreg {command}", description=inspect.getdoc(declared))
    parser.add_argument("--version", action="version", version=f"budgetreg {__version__}")
    getattr(declared, "declare", declared)(parser)
    return parser


def _fitted(text: str) -> str:
    """Return a help text whose lines fit the terminal: the last column of a line continues below itself."""
    width = shutil.get_terminal_size().columns
    lines = []
    for line in text.splitlines():
        column = line.rfind("  ") + 2 if line.startswith(" ") else 0
        lines += textwrap.wrap(line, width, subsequent_indent=" " * column, break_on_hyphens=False) or [""]
    return "\n".join(lines)


def is_whole(text: str, least: int) -> bool:
    """Return whether text is a whole number of at most 18 ASCII digits, and at least `least`."""
    return re.fullmatch("[0-9]{1,18}", text) is not None and int(text) >= least


def whole_number(name: str, text: str, least: int) -> int:
    """Return the whole number that an option of a command gives.

    Raises
    ------
    ConfigError
        If the text is no whole number, or below `least`.
    """
    if not is_whole(text, least):
        digits = ", and of at most 18 digits" if text.isdecimal() and len(text) > 18 else ""
        raise ConfigError(f"{name}={cut(text)}: must be a whole number of at least {least}{digits}")
    return int(text)


def harmless(words: Iterable[str], keys: Collection[str], refusal: str) -> dict[str, int | str]:
    """Return the values of keys that change no result, such as ``n_jobs=2``; see `key_values`."""
    texts, numbers = key_values(words, keys, refusal), ("n_jobs", "backend.batch_size")
    return {key: whole_number(key, text, 1) if key in numbers else text for key, text in texts.items()}


def key_values(words: Iterable[str], keys: Collection[str], refusal: str, *, once: bool = False) -> dict[str, str]:
    """Return the values of words such as ``out=FILE``, as text.

    Parameters
    ----------
    words : iterable of str
        What the user wrote.
    keys : collection of str
        The keys that are accepted.
    refusal : str
        Why others are refused.
    once : bool
        Whether a key with two values is refused; if not, the last value counts.

    Raises
    ------
    ConfigError
        If a key is none of these, or has no value.
    """
    values: dict[str, str] = {}
    for word in words:
        key, _, text = word.partition("=")
        if key not in keys:
            raise ConfigError(f"{cut(word)}: {refusal}{nearest(key, keys)}; keys: {', '.join(keys)}")
        if not text:
            raise ConfigError(f"{word}: a value is needed: {key}=VALUE")
        if once and key in values:
            raise ConfigError(f"{word}: {key} is there already, as {key}={cut(values[key])}")
        values[key] = text
    return values


def _folder(text: str) -> Path:
    if not os.path.isdir(text):  # which accepts names of any length
        raise DataError(f"{text}: no such folder")
    return Path(text)


def _listed(keys: Mapping[str, str]) -> str:
    return "; ".join(f"{key}: {what}" for key, what in keys.items())


def _words(parser: argparse.ArgumentParser, what: str, metavar: str = "KEY=VALUE", nargs: str = "*") -> None:
    parser.add_argument("words", nargs=nargs, metavar=metavar, default=[], help=what)


def _flag(parser: argparse.ArgumentParser, name: str, what: str) -> None:
    parser.add_argument(name, action="store_true", help=what)


def _out(parser: argparse.ArgumentParser, what: str) -> None:
    text = f"folder of the {what} (default: DIR, or the current folder for several)"
    parser.add_argument("--out", type=Path, metavar="FOLDER", help=text)


_TABLE = "examples, a CSV or Parquet file"
_DROP = "columns to leave out, such as drop=[date,ward]"
_OUT = "file to write (default: stdout); other files that are there are never replaced"


class StudyPart:
    """A part of ``budgetreg study``. The first line of its docstring says what it does.

    Attributes
    ----------
    headline : str
        The first line, as the help of the command lists it.
    files : mapping of str to str
        What follows the study, with help: names of files in capitals.
    keys : mapping of str to str
        Keys, with help.
    needed : tuple of str
        Keys that must be there.
    optional : bool
        Whether the files may be left out.
    """

    headline = ""
    files: Mapping[str, str] = {}
    keys: Mapping[str, str] = {}
    needed: tuple[str, ...] = ()
    optional = False

    def __init_subclass__(cls) -> None:
        """Take the headline from the docstring."""
        first = (cls.__doc__ or " ").partition(".\n")[0]
        cls.headline = first[0].lower() + first[1:]

    @classmethod
    def declare(cls, parser: argparse.ArgumentParser) -> None:
        """Add the options to a parser."""
        parser.add_argument("study", type=Path, metavar="FILE", help="the study")
        for name, what in cls.files.items():
            parser.add_argument(name.lower(), type=Path, metavar=name, help=what, nargs="?" if cls.optional else None)
        if cls.keys:
            _words(parser, _listed(cls.keys))


class Create(StudyPart):
    """Make a study of a table of examples and a price list.

    The table may hold nothing but names and targets. Its other columns are attributes. Values that are there are known
    beforehand and free; empty cells are what can be bought. Repeating the same command changes nothing.
    """

    keys: Mapping[str, str] = {
        "table": _TABLE,
        "target": "column to predict; targets may arrive later (default: target)",
        "id": "column of the examples' names (default: example, or the numbers of the rows)",
        "costs": "price list, a CSV file with the columns attribute,cost and perhaps group; attributes of a group are "
        "bought together, at one price (default: each attribute costs 1)",
        "unit": "unit of the prices, such as EUR",
        "ranges": "CSV file with the columns attribute,low,high, for some attributes or all: results far outside are "
        "refused",
        "drop": _DROP,
        "seed": "seed of all draws (default: 0)",
        "algo": "learner (default: aemr)",
        "missing_values": "words that mean a missing value in tables, now and later, such as [?,.,-999]",
    }
    needed = ("table",)


class Add(StudyPart):
    """Add examples, or targets and free values of those there are, or change prices.

    Examples are matched by their names. Values in the table are known beforehand and free: results that were paid for
    are recorded by tell. If something is wrong, nothing is added.
    """

    files: Mapping[str, str] = {"TABLE": _TABLE}
    keys: Mapping[str, str] = {
        "costs": "prices from now on, a list as for create; attributes that the study does not have are added; orders "
        "keep the prices they were asked for",
        "drop": _DROP,
        "replace": "true: a different target or value takes the place of a known one; the log keeps both",
    }
    optional = True


class Ask(StudyPart):
    """Recommend what to buy next, and record it as an order.

    The order is recorded before it is written. Values on order are not ordered again. The same study and seed give the
    same order. Write the results into its column value, and record them with tell.
    """

    keys: Mapping[str, str] = {
        "spend": "the most that the order may cost",
        "per_example": "most attributes (groups) of one example, in all orders",
        "out": _OUT,
        "order": "number of the order; an order that was recorded with it is written again, so that a command that was "
        "killed can be repeated",
        "seed": "seed of the draws (default: that of the study)",
        "dry_run": "true: only show what would be ordered, and what that was compared with; nothing is recorded",
    }
    needed = ("spend",)


class Tell(StudyPart):
    """Record results.

    The file has the columns example,attribute,value; or the examples' names and a column for each attribute. The
    study's own column of names will do. An empty value is still pending; unavailable will never be measured. Each value
    is charged once, also if nobody ordered it: the cost in a column cost, as on an invoice, or that of its order, or of
    the price list. unavailable is not charged, unless its cost is not that of the order. If a line is wrong, nothing of
    the file is recorded. Repeating the same command changes nothing.
    """

    files: Mapping[str, str] = {"RESULTS": "completed order file, or another table of results, CSV or Parquet"}
    keys: Mapping[str, str] = {
        "replace": "true: a result or a cost takes the place of a different one; the log keeps both",
        "free": "true: values that nobody ordered are not charged",
        "invoiced": "true: charge unavailable values too, because the invoice lists the failed tests",
        "refund": "true: cancel earlier charges for values that are now unavailable (default: they stay)",
        "decimal": "decimal=, reads decimal commas",
        "drop": _DROP,
    }


class Show(StudyPart):
    """Show what was paid, what is on order, how good the model is, and what more money would bring.

    The bill is by attribute and by order. The error is estimated without any complete row, and kept in the study. A
    figure shows the errors so far, the forecast, and how much of each attribute was bought.
    """

    keys: Mapping[str, str] = {
        "out": "folder of the figure (default: that of the study)",
        "n_jobs": "models learned at the same time",
    }


class Predict(StudyPart):
    """Predict the targets of other examples, which may have missing values.

    Columns are matched by name; attributes that the table lacks are missing, and its other columns may hold anything.
    The columns of the answer are the name of the example, the prediction, std, the standard deviation of the target
    around it, which is larger the more is missing, and the label if there are two.
    """

    files: Mapping[str, str] = {"TABLE": _TABLE}
    keys: Mapping[str, str] = {"out": _OUT}


class Next(StudyPart):
    """Show what to measure next of each of other examples, and what it brings.

    For each example, what lowers the standard deviation of the prediction most for its price comes first, until the
    money is spent or nothing helps. for_all is the place of a measurement in the order for an example of which nothing
    is known, for those who measure in one order for everyone.
    """

    files: Mapping[str, str] = {"TABLE": _TABLE}
    keys: Mapping[str, str] = {
        "spend": "the most that may be spent on each example (default: no limit)",
        "out": _OUT,
    }


class Cancel(StudyPart):
    """Release what is still pending of an order.

    Values that have arrived already stay. Repeating the same command changes nothing.
    """

    keys: Mapping[str, str] = {"order": "number of the order"}
    needed = ("order",)


class Exclude(StudyPart):
    """Stop ordering values of withdrawn examples or discontinued attributes.

    Known values stay in the study, and charges stay on the bill. Pending values are released. A result that arrives
    later is recorded and charged. Repeating the same command changes nothing.
    """

    keys: Mapping[str, str] = {
        "example": "names of examples, such as example=p7 or example=[p7,p9]",
        "attribute": "names of attributes",
        "refund": "true: cancel the charges for them",
        "undo": "true: allow ordering them again",
    }


class Export(StudyPart):
    """Write all that is known as a table, what was learned as a model, or the log.

    The table has a row for each example: its name, its attributes, empty where nothing is known, and its target.
    budgetreg predict applies the model to other tables. The log has a row for each event: its time (UTC), what was
    recorded, and what that cost; the sum of the costs is the bill.
    """

    keys: Mapping[str, str] = {
        "out": "file to write: TABLE.csv or model.npz; of files that are there, only an exported model and an earlier "
        "log are replaced",
        "log": "true: the table is the log",
    }
    needed = ("out",)


STUDY: Mapping[str, type[StudyPart]] = {part.__name__.lower(): part for part in StudyPart.__subclasses__()}
"""By name, the parts of the command."""
_STUDY = """usage: budgetreg study PART FILE ...

Buy attributes of examples, and learn from what was bought. A study is one file,
which records what is known of each example, what is on order and what was paid.
Several people may use it at the same time, and a copy is a backup.

parts:
{parts}

options:
  --help     show this; after a part, show its keys
  --version  show the version

examples:
  budgetreg study create trial.db table=patients.csv target=outcome \\
      id=patient costs=prices.csv unit=EUR
  budgetreg study ask trial.db spend=500 per_example=6 out=order-1.csv
  budgetreg study tell trial.db order-1.csv""".format(
    parts="\n".join(f"  {name:<9}{part.headline}" for name, part in STUDY.items())
)


def _run_page() -> str:
    from budgetreg.config import catalogue  # here, as other commands do not need it

    groups = (f"  {group:<14}{', '.join(catalogue.options(group))}" for group in catalogue.groups())
    return _RUN.format(groups="\n".join(groups))


def _run(parser: _Parser) -> None:
    """Run one learner on one data set, a sweep or a recipe."""
    parser.page = _run_page
    modes = parser.add_mutually_exclusive_group()
    _words(parser, "")
    parser.add_argument("--dry-run", action="store_true")
    modes.add_argument("--multirun", "-m", action="store_true")
    modes.add_argument("--cfg", "-c", choices=["job"])
    modes.add_argument("--shell-completion", "-sc", action="store_true")


def _advise(parser: _Parser) -> None:
    """Find the learner and the k with the least error for a total of attributes, or of money if attributes have prices.

    The command runs a sweep, reusing finished runs, and prints a table, a verdict and a figure. By default, aemr and
    fixed_subset, which need no tuning, see k=2,4,8,... attributes of each example, and all; impute_ridge and the
    learners on full rows see all. algo=all_budgeted compares the published learners, too. Only the ends of curves are
    computed (checkpoints=1).
    """
    _flag(parser, "--dry-run", "show what would be run, and what it would cost, and compute nothing")
    _words(parser, "total=T (required), k=2,4,all, algo=NAME,NAME, out=DIR, and keys of budgetreg run, one value each")


def _fit(parser: _Parser) -> None:
    """Learn one model from all rows of a table within the budget, write it as model.npz, which budgetreg predict
    applies, and print what was paid, for tuning too. There is no test part, so no error is estimated: budgetreg run and
    budgetreg advise estimate errors. If interrupted, the same command resumes.
    """
    _words(parser, "keys of budgetreg run, one value each, such as algo=aemr k=4 total=1500 out=DIR")
    _flag(parser, "--dry-run", "print the plan and the attributes that it costs, learn nothing")


def _reproduce(parser: _Parser) -> None:
    """Compute, draw and judge the figures of the papers; only what is missing is computed."""
    keys = _listed(REPRODUCE_KEYS)
    what = f"recipes, all by default (see budgetreg list experiments); keys that change no result: {keys}"
    _words(parser, what, "NAME | KEY=VALUE")
    _flag(parser, "--quick", "two repetitions, into runs/quick, without verdicts")


def _plot(parser: _Parser) -> None:
    """Draw the curves of one or several folders in one figure (PNG, PDF and caption)."""
    parser.add_argument("folders", type=Path, metavar="DIR", nargs="+", help="a run, or a folder above runs")
    _out(parser, "figure")


def _compare(parser: _Parser) -> None:
    """Show how many attributes each run needs until its mean error has fallen to a level, and the ratio of what a
    reference needs to that. The reference is the full-row learner that needs the fewest, or, if none sees full rows or
    subspaces are learned, the best run in the first folder. If all runs on a data set have prices in one unit, money is
    compared. A curve that begins below the level, or ends above it, gives only a bound.
    """
    what = "runs, or folders above runs; the error to reach (default: round levels that some curve falls to); "
    _words(parser, f"{what}attributes or cost", "DIR | error=E | axis=A", "+")


def _report(parser: _Parser) -> None:
    """Write one HTML page: figures, tables, the bill, claims with their verdicts, and what computed the results.

    The page needs no other file and no network, and the same results give the same page. Runs that are not complete are
    shown as far as they are.
    """
    what = "a run, a recommendation, a reproduced figure, a folder above such, or the file of a study"
    parser.add_argument("places", type=Path, metavar="DIR", nargs="+", help=what)
    page = "the page (default: DIR/report.html; for the study NAME.db, NAME.html; for several, ./report.html)"
    parser.add_argument("--out", type=Path, metavar="FILE", help=page)


def _status(parser: _Parser) -> None:
    """Show the progress of the runs in and below a folder."""
    parser.add_argument("folder", type=_folder, metavar="DIR", help="a run, or a folder above runs")
    _flag(parser, "--why", "show what is missing, failed or stale, and why; also of merged results")


def _list(parser: _Parser) -> None:
    """List learners, data sets and recipes."""
    parser.add_argument("section", nargs="?", help=f"one of {', '.join(SECTIONS)}; all of them by default")


def _fetch(parser: _Parser) -> None:
    """Obtain MNIST's original files, check them and prepare the arrays that runs map into memory."""
    parser.add_argument("name", metavar="NAME", help=f"one of {', '.join(FETCHED)}")
    _words(parser, "folder of MNIST/raw (default: data)", "dataset.root=DIR")


def _check(parser: _Parser) -> None:
    """Check learners, as their files configure them and with each option changed: that estimates are unbiased and have
    the right second moments (exactly, over all draws); that k = d agrees with full information; that steps are clipped
    and projected, and outputs are minimisers; that the budget holds, equal seeds give equal bytes, the order of
    attributes does not matter, hidden values have no influence, and budgets that are too small are refused.
    """
    parser.add_argument("algo", nargs="?", metavar="algo=NAME,NAME", help="learners; all of them by default")


def _predict(parser: _Parser) -> None:
    """Predict the target of the rows of a table (CSV, Parquet, NPZ, LIBSVM, ...) with what a run has learned.

    Columns are matched by name if they have names, else by order. If the table has the target, the error is printed,
    and whether its rows were learned from, as far as that is known. A two-valued target has two more columns:
    probability, that of the second label in sorted order, by Bayes' rule if predictions are normal given the label with
    one variance (linear discriminant analysis), and label, the more probable one.
    """
    folder = "the folder of a finished run; or a file model.npz, such as study export writes"
    parser.add_argument("folder", type=Path, metavar="DIR", help=folder)
    parser.add_argument("table", type=Path, metavar="TABLE", help="a file such as dataset=file reads")
    _words(
        parser,
        "repetition=N: the repetition whose regressor predicts (default: all, the mean of their predictions); "
        "id=COLUMN: a column of the table that stands before the predictions; out=FILE: where they are "
        "written (default: stdout)",
    )


def _verify(parser: _Parser) -> None:
    """Compute some finished repetitions again, of a run, of the runs below a folder or of merged results, and compare
    bytes: those of curves.csv, of runs.csv except the seconds, and of what a run has learned, model.npz. Nothing there
    is changed. For each difference, the table shows the column and the largest relative difference, and a line below
    names the key, version or processor that is not as recorded. On another processor, results may differ by up to 1e-9,
    and those of aemr, aeml, aerr, ddaerr and ddaerr_two_phase by more. Exit code 1 if any byte differs.
    """
    parser.add_argument("folder", type=_folder, metavar="DIR", help="a run, merged results, or a folder above some")
    _words(parser, _listed(VERIFY_KEYS))
    _flag(parser, "--all", "all finished repetitions")
    most = "at most N of each run, 2 by default"
    parser.add_argument("--sample", type=partial(whole_number, "--sample", least=1), metavar="N", default=2, help=most)
    other = "another seed makes another choice; 0 by default"
    parser.add_argument("--seed", type=partial(whole_number, "--seed", least=0), metavar="N", default=0, help=other)


def _reprice(parser: _Parser) -> None:
    """Draw finished runs against money with another price list: a figure repriced.* and a table repriced.csv.

    The runs must have had prices and must have ignored them when they drew attributes: algo.prices=ignored, or a
    learner that is not price-aware.
    """
    _words(parser, "runs, and the price list; unit=WORD: the unit of its prices", "DIR costs=FILE", "+")
    _out(parser, "figure and table")


def _study(parser: _Parser) -> None:
    """Buy attributes of examples, and learn from what was bought."""
    parser.page = lambda: _STUDY


_DECLARED = (
    *(_run, _advise, _fit, _reproduce, _plot, _compare, _report, _status, _list),
    *(_fetch, _check, _predict, _verify, _reprice, _study),
)
OPTIONS: Mapping[str, Callable[[_Parser], None] | type[StudyPart]] = {
    **{declare.__name__[1:]: declare for declare in _DECLARED},
    **{f"study {name}": part for name, part in STUDY.items()},
}
"""By command, what adds its options to a parser; its docstring is the text of the help."""


def complete(argv: list[str], commands: Sequence[str]) -> int:
    """Print what the word under the cursor can become, or have Hydra print the script that installs completion.

    ``eval "$(budgetreg run -sc install=bash)"`` installs it. The shell then calls ``budgetreg -sc query=bash`` with the
    line in COMP_LINE. Hydra completes overrides.

    Parameters
    ----------
    argv : list of str
        What follows ``-sc``: ``query=bash``, ``install=bash`` and the like.
    commands : sequence of str
        The names of all commands.
    """
    if not any(word.startswith("query=") for word in argv):
        from budgetreg.cli import run  # here, as Hydra is slow to load

        return run.main(parsed("run", ["-sc", *argv]))
    line = os.environ.get("COMP_LINE", "")
    line = line[: int(os.environ.get("COMP_POINT") or len(line))]
    *before, current = re.split(r"\s+", line)[1:] or [""]
    if before[:1] in (["run"], ["advise"], ["fit"]) and not current.startswith(("-", "experiment=")):
        return _overrides(argv, before[1:], current)
    if current.startswith("-") and before and before[0] in commands:
        offered = [name for name in parser_of(before[0])._option_string_actions if name.startswith("--")]
    else:
        offered = _candidates(before, commands)
    print("\n".join(word for word in offered if word.startswith(current)))
    return 0


def _candidates(before: list[str], commands: Sequence[str]) -> list[str]:
    """Return what may follow some words. If there is nothing, the shell offers files."""
    if not before:
        return list(commands)
    if before[0] in ("run", "advise"):  # recipes, whose names contain a slash that Hydra does not complete
        from budgetreg.config import catalogue  # here, as other words do not need it

        return [f"experiment={name}" for name in catalogue.options("experiment")]
    if before == ["list"]:
        return list(SECTIONS)
    if before[0] == "predict" and len(before) > 2:  # after a folder and a table
        return ["repetition=", "id=", "out="]
    if before == ["study"]:
        return list(STUDY)
    if before[0] == "study":
        part = STUDY.get(before[1])
        return [f"{key}=" for key in part.keys] if part and len(before) > 2 + len(part.files) else []
    return sorted(FETCHED) if before == ["fetch"] else []


def _overrides(argv: list[str], before: list[str], current: str) -> int:
    """Have Hydra complete an override. It expects the line without our command and our options."""
    kept = [word for word in before if not word.startswith("-") or word in ("-m", "--multirun")]
    os.environ["COMP_LINE"] = " ".join(["budgetreg", *kept, current])
    # An unfinished word may be no valid override: then nothing is offered and no error is shown.
    with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(Exception):
        from budgetreg.config import composition  # here, as Hydra is slow to load

        composition.complete(argv)
    if current.startswith("algo="):
        from budgetreg.algorithms.registry import GROUPS  # here, as numpy is slow to load

        groups = [word for word in (f"algo={name}" for name in GROUPS) if word.startswith(current)]
        print("\n".join(groups), end="\n" if groups else "")
    return 0
