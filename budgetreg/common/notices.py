"""What commands print: notices, plain tables, safe text, and standard streams that never end a command.

A notice is one line on stderr, because stdout is for results. Text from data does not control the terminal: characters
that could are escaped. The results of a command are on the disk, so output that cannot be written, because a stream is
closed or full or has no reader, neither ends the command nor changes its exit code, unless the disk is full. Nothing
heavy is imported here, as ``--help`` needs this module.
"""

import codecs
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

TYPE_CHECKING = False  # not imported from `typing`, which is slow to load
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, TextIO

    from rich.table import Column, Table

_ERRORS = "budgetreg"  # name of the handler for letters that an encoding lacks
_ASCII = {"✓": "+", "✗": "x", "–": "-", "±": "+-", "×": "x", "²": "^2", "≥": ">=", "≤": "<=", "…": "...", "─": "-"}


def _print(line: str) -> None:
    print(f"budgetreg: {line}", file=sys.stderr)


_take: "Callable[[str], None]" = _print  # takes each notice; blocks put another function here


def say(message: str) -> None:
    """Print a notice in one line.

    Parameters
    ----------
    message : str
        A sentence; line breaks in it become spaces.
    """
    _take(printable(" ".join(message.split())))


def say_on_terminal(message: str) -> None:
    """Print a notice about progress, if stderr is a terminal."""
    if sys.stderr.isatty():
        _print(printable(message))


class Notice(UserWarning):
    """What a library call warns of; a command prints its text alone."""


class _Shown(dict[int, str]):
    """What is shown for each character: itself, or its escape sequence in Python if it can control a terminal."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        byte_of_a_name = 0xDCA0 <= code <= 0xDCFF  # which cannot be decoded
        self[code] = letter if letter.isprintable() or letter == "\n" or byte_of_a_name else repr(letter)[1:-1]
        return self[code]


_SHOWN = _Shown()


def printable(text: str) -> str:
    r"""Return text without characters that control a terminal, or change the direction of text.

    Such characters may be in data, names of files and messages of other packages. Their escapes, such as ``\\x1b``,
    take their place. Line breaks stay.

    Examples
    --------
    >>> printable("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return text.translate(_SHOWN)


def in_one_line(text: str) -> str:
    """Return printable text, with escapes also in place of line breaks."""
    return printable(text).replace("\n", "\\n")


def plural(number: int, noun: str) -> str:
    """Return a number with its noun, which gets an s unless there is one.

    Examples
    --------
    >>> plural(1, "value"), plural(2000, "value")
    ('1 value', '2,000 values')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


class AsIs:
    """A standard stream for what rich prints: its escape sequences reach the terminal, and its text is printable."""

    def __init__(self, stream: "Any") -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text; a stream of the command escapes what is written in any other way."""
        return int(getattr(self._stream, "write_as_is", self._stream.write)(text))

    def __getattr__(self, name: str) -> "Any":
        """Return anything else of the stream."""
        return getattr(self._stream, name)


@contextmanager
def _taken_by(take: "Callable[[str], None]") -> Iterator[None]:
    """Give the notices of the block to a function."""
    global _take
    outer, _take = _take, take
    try:
        yield
    finally:
        _take = outer


@contextmanager
def each_once() -> Iterator[None]:
    """Print no notice twice in the block, which is a command: the cells of a sweep share most of their notices."""
    outer, said = _take, set[str]()

    def once(line: str) -> None:
        if line not in said:
            said.add(line)
            outer(line)

    with _taken_by(once):
        yield


@contextmanager
def held() -> Iterator[list[str]]:
    """Print no notice in the block, but collect them in the list that it yields, for a process that is one of many."""
    lines: list[str] = []
    with _taken_by(lines.append):
        yield lines


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print each warning of a library in the block as a notice, instead of two lines with its source."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, category, *place, **more: say(
            str(message) if category is Notice else f"{category.__name__}: {message}"
        )
        yield


def table(heads: "Iterable[str | Column]", rows: "Iterable[Sequence[object]]", **settings: "Any") -> "Table":
    """Return a table of plain text with settings of rich's `Table`."""
    from rich.table import Table  # here, as notices alone need none

    filled = Table(*heads, box=None, pad_edge=False, title_justify="left", **settings)
    for row in rows:
        filled.add_row(*map(str, row))
    return filled


def right(*heads: str) -> "list[str | Column]":
    """Return columns of numbers, which are aligned on the right; no word of a heading is cut."""
    from rich.table import Column

    return [Column(head, justify="right", min_width=max(map(len, head.split()), default=0)) for head in heads]


@contextmanager
def patient_streams() -> Iterator[None]:
    """Make stdout and stderr patient in the block; a nested block changes nothing."""
    _open_closed()
    codecs.register_error(_ERRORS, _spelled)
    with ExitStack() as stack:
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if isinstance(stream, _Patient):
                continue
            errors = getattr(stream, "errors", None)
            # Letters that the encoding lacks must not raise. On stderr Python escapes them itself.
            if errors in ("strict", "surrogateescape") and hasattr(stream, "reconfigure"):
                stream.reconfigure(errors=_ERRORS)
                stack.callback(stream.reconfigure, errors=errors)
            stack.callback(setattr, sys, name, stream)
            setattr(sys, name, _Patient(stream))
            stack.callback(getattr(sys, name).flush)
        yield


def lost() -> str:
    """Return why some output could not be written to stdout; to be called in a block of `patient_streams`.

    Returns
    -------
    str
        Empty if everything was written, or if the reader stopped reading, as ``head`` does.
    """
    sys.stdout.flush()
    problem = sys.stdout.problem if isinstance(sys.stdout, _Patient) else None
    if problem is None or isinstance(problem, BrokenPipeError):
        return ""
    return f"cannot write to stdout: {problem.strerror or problem}"


class _Patient:
    """A text stream that writes printable text, drops what it cannot write, and keeps the first error."""

    def __init__(self, stream: "TextIO") -> None:
        self._stream = stream
        self.problem: OSError | None = None

    def write(self, text: str) -> int:
        return self.write_as_is(printable(text))

    def write_as_is(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            self._give_up(error)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._give_up(error)

    def __getattr__(self, name: str) -> "Any":
        return getattr(self._stream, name)

    def _give_up(self, error: OSError) -> None:
        self.problem = self.problem or error
        try:  # else the rest of the buffer would be written again, at the latest when Python ends
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self._stream.fileno())
            os.close(null)
        except (OSError, ValueError):  # in tests, the stream may have no file
            pass


def _open_closed() -> None:
    """Open closed standard streams on the null device, as the next file opened would take their place."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)  # which takes the lowest free number: this one
            os.set_inheritable(null, True)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, "w" if descriptor else "r", encoding="utf-8", closefd=False))


def _spelled(error: UnicodeError) -> tuple[str | bytes, int]:
    """Replace letters that an encoding lacks by ASCII; write the bytes of file names as they are."""
    assert isinstance(error, UnicodeEncodeError)
    letters = error.object[error.start : error.end]
    if all("\udc80" <= letter <= "\udcff" for letter in letters):
        return bytes(ord(letter) - 0xDC00 for letter in letters), error.end
    return "".join(_ASCII.get(letter, "?") for letter in letters), error.end
