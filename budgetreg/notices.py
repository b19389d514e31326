"""What a user is told while something goes on: one line on stderr, never on stdout, which is for results."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_told: ContextVar[set[str] | None] = ContextVar("told", default=None)


def say(message: str) -> None:
    """Tell the user something in one line.

    Parameters
    ----------
    message : str
        A sentence; line breaks in it become spaces.
    """
    line = f"budgetreg: {' '.join(message.split())}"
    told = _told.get()
    if told is not None:
        if line in told:
            return
        told.add(line)
    print(line, file=sys.stderr)


@contextmanager
def each_once() -> Iterator[None]:
    """Let a line be told once in the block, as runs of the same data have the same to say."""
    token = _told.set(set())
    try:
        yield
    finally:
        _told.reset(token)
