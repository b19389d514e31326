"""What a user is told while something goes on: one line on stderr, never on stdout, which is for results."""

import sys


def say(message: str) -> None:
    """Tell the user something in one line.

    Parameters
    ----------
    message : str
        A sentence; line breaks in it become spaces.
    """
    print(f"budgetreg: {' '.join(message.split())}", file=sys.stderr)
