"""Notices to the user: one line each on stderr, because stdout is for results."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

_said: set[str] | None = None
_held: list[str] | None = None


def say(message: str) -> None:
    """Print a notice in one line.

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


def say_on_terminal(message: str) -> None:
    """Print a notice about progress, if stderr is a terminal."""
    if sys.stderr.isatty():
        print(f"budgetreg: {message}", file=sys.stderr)


@contextmanager
def each_once() -> Iterator[None]:
    """Print no notice twice in the block, which is a command: the cells of a sweep share most of their notices."""
    global _said
    outer, _said = _said, set() if _said is None else _said
    try:
        yield
    finally:
        _said = outer


@contextmanager
def held() -> Iterator[list[str]]:
    """Print no notice in the block, but collect them in the list that it yields, for a process that is one of many."""
    global _held
    outer, _held = _held, []
    try:
        yield _held
    finally:
        _held = outer
