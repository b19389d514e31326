"""What can go wrong: a user's mistakes (one line each, with an exit code) and a learner's bug."""

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """A mistake of the user, told in one line without a traceback.

    Attributes
    ----------
    exit_code : int
        What the command exits with.
    """

    exit_code: int = 2


class ConfigError(UserError):
    """A configuration or usage that cannot work; the message says what is possible."""


class UnfinishedError(UserError):
    """Repetitions have failed; the same call tries them again."""

    exit_code = 1


class DataError(UserError):
    """Data that are missing, damaged or unusable; the message says where, and what to do."""

    exit_code: int = 3


class BudgetExceeded(RuntimeError):  # noqa: N818 - the name says what happened, and users catch it by this name
    """A learner asked for more attributes of an example than its budget: its bug, not the user's mistake."""


def nearest(word: str, choices: Iterable[str], prefix: str = "") -> str:
    """Return a hint to append to a message: `` (did you mean 'aelr'?)``, or nothing if no choice is near.

    Parameters
    ----------
    word : str
        What the user wrote.
    choices : iterable of str
        What would have been possible.
    prefix : str, optional
        What stands before the choices, and is left out of the comparison.

    Examples
    --------
    >>> "unknown algo 'aelrr'" + nearest("aelrr", ["aelr", "ridge"])
    "unknown algo 'aelrr' (did you mean 'aelr'?)"
    >>> nearest("zebra", ["aelr", "ridge"])
    ''
    """
    matches = difflib.get_close_matches(word, list(choices), n=1)
    return f" (did you mean {prefix + matches[0]!r}?)" if matches else ""
