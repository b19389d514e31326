"""Compare the numbers in README.md, docs/ and findings with the CSV files: ``python scripts/check_numbers.py [--fix]``.

A comment right after a number, or after its %, is its marker, which readers do not see. It names a file in results/ and
the value::

    0.340<!-- aemr/mnist/curves.csv: algo=aemr k=4 last test_relative -->

The words after the colon select rows (``column=value``; ``last`` is the last checkpoint of each repetition) and name
the column. The number is the mean over repetitions. ``min``, ``max`` or ``sum`` before the column take these of all
selected rows instead, and ``count`` counts the rows. Two selections with ``/``, ``-`` or ``+`` between them make a
ratio, a difference or a sum. The second needs no file if it is the same, and a number stands for itself
(``1 - claim=gap estimate``). Quotes enclose values with blanks. A number followed by ``%`` is a share times 100.

A marker on the line above a table checks all its cells that begin with a number::

    <!-- table aemr/mnist/curves.csv: last test_relative rows=algo columns=k -->

The first cell of a row gives the value of the column named by ``rows``, the head of a column that named by ``columns``.
A label such as "k = 4" names its column itself, and a comment in a label replaces it: ``five factors<!-- rho=0.9 -->``.
A code span after the number replaces the value of ``rows``: "0.596 `ddaelr`". Both of two combined selections get the
labels.

A number agrees if it is the value rounded to the digits printed; zeros at the end of a whole number count as rounded,
but for its first two digits. With ``--fix``, numbers that do not agree are replaced.
"""

import argparse
import operator
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "CONTRIBUTING.md", "docs/**/*.md", "experiments/*/findings.toml")
_NUMBER = r"-?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:e[-+]?\d+)?"
_MARKED = re.compile(rf"({_NUMBER})( ?%)?([*`]*)<!--\s*((?!table )[^:>]*\.csv:.*?)\s*-->", flags=re.DOTALL)
_MARKER = re.compile(r"<!--(?!\s*table )\s*([^:>]*\.csv:.*?)\s*-->", flags=re.DOTALL)
_TABLE = re.compile(r"^ *<!-- table (.*?) -->\n((?: *\|.*\n?)+)", flags=re.MULTILINE)
_CELL = re.compile(rf"({_NUMBER})( ?%)?(?:[\s*].*)?")
_COMMENT = re.compile(r"<!--(.*?)-->")
_EQUATION = re.compile(r"([\w./]+)\s*=\s*([^\s,;]+),?")
_CODE = re.compile(r"`([^`]+)`")
_AGGREGATES: Mapping[str, Callable[[pd.Series], float]] = {
    **{"": pd.Series.mean, "count": pd.Series.count},
    **{"min": pd.Series.min, "max": pd.Series.max, "sum": pd.Series.sum},
}
_OPERATIONS: Mapping[str, Callable[[float, float], float]] = {
    "/": operator.truediv,
    "-": operator.sub,
    "+": operator.add,
}


class Unmatched(Exception):  # noqa: N818 - it says what is the matter
    """A marker does not select a value; the message says why."""


@dataclass(frozen=True)
class Cited:
    """A number in prose and the value that its marker selects.

    Attributes
    ----------
    start, end : int
        Where the number is in the text.
    printed : str
        Empty if the marker stands after something else.
    true : str
        The value with as many digits; empty if there is none.
    marker : str
    problem : str
        Why there is no value; may be empty.
    """

    start: int
    end: int
    printed: str
    true: str
    marker: str
    problem: str = ""

    @property
    def agrees(self) -> bool:
        """Whether the number is the value rounded to its digits."""
        return not self.problem and self.printed == self.true


def cited(text: str, root: Path) -> Iterator[Cited]:
    """Give all marked numbers of a text, in order of kind, with their values.

    Parameters
    ----------
    text : str
    root : Path
        The checkout, with its folder ``results``.
    """
    ends = set()
    for match in _MARKED.finditer(text):
        ends.add(match.end())
        yield _compared(match.start(1), match[1], bool(match[2]), match[4], root)
    for match in _MARKER.finditer(text):
        if match.end() not in ends:
            yield Cited(match.start(), match.start(), "", "", match[1], "no number stands right before the marker")
    for match in _TABLE.finditer(text):
        yield from _of_table(match[1], match[2], match.start(2), root)


def value(marker: str, root: Path) -> float:
    """Return the value that a marker selects.

    Raises
    ------
    Unmatched
        If it selects none, or several.
    """
    name, _, selection = marker.partition(":")
    try:
        words = shlex.split(selection)
    except ValueError as error:
        raise Unmatched(str(error)) from error
    for sign, operation in _OPERATIONS.items():
        if sign in words:
            at = words.index(sign)
            second_name, others = name, words[at + 1 :]
            if others and others[0].endswith(".csv:"):
                second_name, others = others[0].removesuffix(":"), others[1:]
            return operation(_selected(name, words[:at], root), _selected(second_name, others, root))
    return _selected(name, words, root)


def rounded(number: float, printed: str) -> str:
    """Return a number with the digits and the notation of a printed one.

    Examples
    --------
    >>> rounded(0.34012, "0.400"), rounded(4523.7, "4,500"), rounded(1234.5, "999"), rounded(3.1e-06, "2e-6")
    ('0.340', '4,500', '1,235', '3e-6')
    """
    mantissa, exponent, _ = printed.partition("e")
    decimals = len(mantissa.partition(".")[2])
    exact = Decimal(repr(float(number)))
    if exponent:
        power = exact.adjusted()
        return f"{_quantized(exact.scaleb(-power), decimals)}e{power}"
    digits = mantissa.strip("-").replace(",", "")
    if not decimals:
        zeros = len(digits) - len(digits.rstrip("0"))
        decimals = -max(min(zeros, len(digits) - 2), 0)
    plain = f"{_quantized(exact, decimals):,f}"
    plain = plain.replace(",", "") if len(digits) > 3 and "," not in mantissa and "." not in mantissa else plain
    return plain.replace("0.", ".", 1) if mantissa.lstrip("-").startswith(".") else plain


def _quantized(number: Decimal, decimals: int) -> Decimal:
    # Half up, because that is how readers round the numbers of a CSV file.
    return (number.scaleb(decimals).quantize(Decimal(1), ROUND_HALF_UP)).scaleb(-decimals) + 0


def _compared(start: int, printed: str, is_share: bool, marker: str, root: Path) -> Cited:
    try:
        true = rounded(value(marker, root) * (100 if is_share else 1), printed)
    except Unmatched as error:
        return Cited(start, start + len(printed), printed, "", marker, str(error))
    return Cited(start, start + len(printed), printed, true, marker)


def _of_table(marker: str, table: str, start: int, root: Path) -> Iterator[Cited]:
    """Give the numbers in the cells of a table; cells with a marker of their own are left out."""
    name, _, selection = marker.partition(":")
    words = shlex.split(selection)
    keys = dict(word.split("=", 1) for word in words if word.startswith(("rows=", "columns=")))
    shared = [word for word in words if not word.startswith(("rows=", "columns="))]
    rows = keys.get("rows", "")
    heads: list[list[str]] = []
    for number, line in enumerate(table.splitlines(keepends=True)):
        cells = list(re.finditer(r"(?<=\|)([^|\n]*)(?=\|)", line))
        if number == 0:
            heads = [_label(cell[1], keys.get("columns", "")) for cell in cells]
        elif number > 1:
            row = _label(cells[0][1], rows)
            for head, cell in zip(heads[1:], cells[1:], strict=True):
                content = cell[1].strip().lstrip("*")
                found = _CELL.fullmatch(content)
                if found is None or "<!--" in content:
                    continue
                named = _CODE.search(content)
                of_row = [word for word in row if not word.startswith(f"{rows}=")] if named else row
                of_row += [f"{rows}={named[1]}"] if named else []
                place = start + cell.start(1) + cell[1].index(content)
                of_cell = f"{name}: {shlex.join(_with(shared, [*of_row, *head]))}"
                yield _compared(place, found[1], bool(found[2]), of_cell, root)
        start += len(line)


def _with(shared: Sequence[str], label: Sequence[str]) -> list[str]:
    """Return a selection with the labels of a cell; of two combined selections, both get them."""
    sign = next((word for word in shared if word in _OPERATIONS), None)
    if sign is None:
        return [*shared, *label]
    at = shared.index(sign)
    return [*shared[:at], *label, sign, *shared[at + 1 :], *label]


def _label(cell: str, key: str) -> list[str]:
    """Return the selection that the label of a row or a column stands for."""
    comment = _COMMENT.search(cell)
    if comment:
        return shlex.split(comment[1])
    equations = [f"{column}={wanted}" for column, wanted in _EQUATION.findall(cell)]
    rest = _EQUATION.sub("", cell).replace("`", "").replace(",", "").strip()
    return [*equations, *([f"{key}={rest.replace(' ', '_')}"] if rest and key else [])]


def _selected(name: str, words: Sequence[str], root: Path) -> float:
    """Return the value that words select of one file; a number stands for itself."""
    if len(words) == 1 and re.fullmatch(_NUMBER, words[0]):
        return float(words[0])
    filters = [word for word in words if "=" in word] + ["last"] * ("last" in words)
    table = _rows(root / "results" / name, *filters)
    aggregate, column = "", ""
    for word in set(words).difference(filters):
        if word in _AGGREGATES:
            aggregate = word
        else:
            column = word
    if aggregate == "count":
        return float(len(table))
    if table.empty:
        raise Unmatched(f"no row of {name} has {' '.join(words)}")
    values = pd.to_numeric(_column(table, column, name), errors="coerce")
    if values.isna().any():
        raise Unmatched(f"{column} of {name} is empty, or no number")
    if not aggregate and len(table) != (table["repetition"].nunique() if "repetition" in table else 1):
        raise Unmatched(f"{len(table)} rows of {name} have {' '.join(words)}, where one is meant")
    return float(_AGGREGATES[aggregate](values))


@cache
def _rows(path: Path, *filters: str) -> pd.DataFrame:
    """Return the rows of a file that filters leave, as text; the markers of a page share most filters."""
    if not filters:
        if not path.is_file():
            raise Unmatched(f"there is no file {path.name} in {path.parent}")
        return pd.read_csv(path, dtype=str, keep_default_na=False)
    table = _rows(path, *filters[:-1])
    if filters[-1] == "last":
        examples = pd.to_numeric(table["examples"])
        return table[examples == examples.groupby([table["cell"], table["repetition"]]).transform("max")]
    column, _, text = filters[-1].partition("=")
    return table[_equal(_column(table, column, path.name), text)]


def _column(table: pd.DataFrame, column: str, name: str) -> pd.Series:
    if column not in table:
        raise Unmatched(f"{name} has no column {column}; columns: {', '.join(map(str, table))}")
    return table[column]


def _equal(values: pd.Series, text: str) -> pd.Series:
    """Return which texts equal a text but for blanks and underscores, or are the same number."""
    number = pd.to_numeric(pd.Series([text]), errors="coerce")[0]
    return (values.str.replace(" ", "_") == text.replace(" ", "_")) | (pd.to_numeric(values, errors="coerce") == number)


def fixed(text: str, numbers: Sequence[Cited]) -> str:
    """Return a text in which numbers are replaced by their values."""
    for number in sorted(numbers, key=lambda number: number.start, reverse=True):
        text = text[: number.start] + (number.true or number.printed) + text[number.end :]
    return text


def main(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Compare all marked numbers of the pages, print those that do not agree, and return whether there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fix", action="store_true", help="replace numbers that do not agree")
    options = parser.parse_args(words)
    wrong = total = 0
    for path in sorted({path for pattern in PAGES for path in root.glob(pattern)}):
        if any(part.startswith("_") for part in path.relative_to(root).parts):  # what Sphinx built
            continue
        text = path.read_text(encoding="utf-8")
        numbers = list(cited(text, root))
        total += len(numbers)
        for number in numbers:
            if number.agrees:
                continue
            wrong += not options.fix or not number.true
            line = text.count("\n", 0, number.start) + 1
            finding = number.problem or f"the value is {number.true}"
            said = f"{number.printed}, but {finding}" if number.printed else finding
            print(f"{path.relative_to(root)}:{line}: {said} ({number.marker})")
        if options.fix and (new := fixed(text, numbers)) != text:
            path.write_text(new, encoding="utf-8")
    print(f"{total} marked numbers, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
