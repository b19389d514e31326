"""Standard streams that cannot spoil a command: closed, full, a pipe that nobody reads on, or without some letters.

What a command has computed is on the disk. That its words reach nobody must neither end it nor change what it answers;
only if a disk is full is that told, and an answer of its own. Nothing heavy is imported here: ``--help`` needs it.
"""

import codecs
import os
import sys

TYPE_CHECKING = False  # as `typing` has it, which is slow to load
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, TextIO

_ERRORS = "budgetreg"  # name of what writes the letters that a terminal has not
_ASCII = {"✓": "+", "✗": "x", "–": "-", "±": "+-", "×": "x", "²": "^2", "≥": ">=", "≤": "<=", "…": "...", "─": "-"}


class _Patient:
    """A text stream that drops what it cannot write, and remembers why."""

    def __init__(self, stream: "TextIO") -> None:
        self._stream = stream
        self.problem: OSError | None = None

    def write(self, text: str) -> int:
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
        try:  # what is left in its buffer would be tried again, at the latest when Python ends
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self._stream.fileno())
            os.close(null)
        except (OSError, ValueError):  # a stream of a test, without a file
            pass


class PatientStreams:
    """Make stdout and stderr patient in a block; within another such block this does nothing."""

    def __init__(self) -> None:
        self._before: list[tuple[str, Any, str | None]] = []

    def __enter__(self) -> "PatientStreams":
        """Replace the streams."""
        _open_closed()
        codecs.register_error(_ERRORS, _spelled)
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if isinstance(stream, _Patient):
                continue
            errors = getattr(stream, "errors", None)
            # Letters that are not there end no command. On stderr Python itself writes them as numbers.
            replaced = errors if errors in ("strict", "surrogateescape") and hasattr(stream, "reconfigure") else None
            if replaced:
                stream.reconfigure(errors=_ERRORS)
            self._before.append((name, stream, replaced))
            setattr(sys, name, _Patient(stream))
        return self

    def __exit__(self, *_: object) -> None:
        """Flush the streams, and put those back that were there."""
        for name, stream, replaced in self._before:
            getattr(sys, name).flush()
            if replaced:
                stream.reconfigure(errors=replaced)
            setattr(sys, name, stream)

    def lost(self) -> str:
        """Return, within the block, why some of stdout cannot be written.

        Returns
        -------
        str
            Empty if all of it was, or if its reader has left, such as ``head``, which has seen enough.
        """
        sys.stdout.flush()
        problem = sys.stdout.problem if isinstance(sys.stdout, _Patient) else None
        if problem is None or isinstance(problem, BrokenPipeError):
            return ""
        return f"cannot write to stdout: {problem.strerror or problem}"


def _open_closed() -> None:
    """Let what was closed before we began lead nowhere: the next file opened, a journal say, would take its place."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free, which is this one
            os.set_inheritable(null, True)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, "w" if descriptor else "r", encoding="utf-8", closefd=False))


def _spelled(error: UnicodeError) -> tuple[str | bytes, int]:
    """Write letters that an encoding has not by ones that all have, and bytes of file names as they are."""
    assert isinstance(error, UnicodeEncodeError)
    letters = error.object[error.start : error.end]
    if all("\udc80" <= letter <= "\udcff" for letter in letters):
        return bytes(ord(letter) - 0xDC00 for letter in letters), error.end
    return "".join(_ASCII.get(letter, "?") for letter in letters), error.end
