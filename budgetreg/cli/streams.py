"""Standard streams that never end a command, even if they are closed, full or without a reader.

Nor does text from data control the terminal: characters that could are escaped.

The results of a command are on the disk. Output that cannot be written must therefore neither end the command nor
change its exit code, unless the disk is full. Nothing heavy is imported here, as ``--help`` needs this module.
"""

import codecs
import os
import sys
from contextlib import ExitStack, contextmanager

from budgetreg.notices import printable

TYPE_CHECKING = False  # not imported from `typing`, which is slow to load
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, TextIO

_ERRORS = "budgetreg"  # name of the handler for letters that an encoding lacks
_ASCII = {"✓": "+", "✗": "x", "–": "-", "±": "+-", "×": "x", "²": "^2", "≥": ">=", "≤": "<=", "…": "...", "─": "-"}


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

    def writelines(self, lines: "Iterable[str]") -> None:
        for line in lines:
            self.write(line)

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


@contextmanager
def patient_streams() -> "Iterator[None]":
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
