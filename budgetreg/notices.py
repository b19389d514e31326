"""What a user is told while something goes on: one line on stderr, never on stdout, which is for results."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

_said: set[str] | None = None
_held: list[str] | None = None


def say(message: str) -> None:
    """Tell the user something in one line.

    Parameters
    ----------
    message : str
        A sentence; line breaks in it become spaces.
    """
    line = " ".join(message.split())
    if _held is not None:
        _held.append(line)
        return
    if _said is not None:
        if line in _said:
            return
        _said.add(line)
    print(f"budgetreg: {line}", file=sys.stderr)


@contextmanager
def each_once() -> Iterator[None]:
    """Say within the block, which is a command, nothing twice: the cells of a sweep have most to say in common."""
    global _said
    outer, _said = _said, set() if _said is None else _said
    try:
        yield
    finally:
        _said = outer


@contextmanager
def held() -> Iterator[list[str]]:
    """Say nothing within the block, but collect it in the list given: for a process that is one of many."""
    global _held
    outer, _held = _held, []
    try:
        yield _held
    finally:
        _held = outer
