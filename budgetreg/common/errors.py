"""Errors: mistakes of the user, each one line with an exit code, and bugs of learners and other packages."""

import difflib
import unicodedata
from collections.abc import Iterable


class UserError(Exception):
    """A mistake of the user, reported in one line without a traceback.

    Attributes
    ----------
    exit_code : int
        The exit code of the command.
    """

    exit_code: int = 2


class ConfigError(UserError):
    """A configuration or usage that cannot work; the message names the valid choices."""


class UnfinishedError(UserError):
    """Repetitions have failed; the same call tries them again."""

    exit_code = 1


class DataError(UserError):
    """Data that are missing, damaged or unusable; the message gives their place and what to do."""

    exit_code: int = 3


class BudgetExceeded(RuntimeError):  # noqa: N818 - users catch it by this name
    """A learner asked for more attributes of an example than its budget, which is a bug of the learner."""


class ContractError(Exception):
    """A learner whose class does not do what it declares; the message names the class and what to change.

    It is a bug of the class, not the user's mistake. Where it is raised there is no traceback into the class to show,
    so that the command prints the message alone.
    """

    exit_code: int = 1


class PluginError(ContractError):
    """Code of another package that has failed; the message names the package and the line."""


class Interrupted(KeyboardInterrupt):
    """Nobody waits for the result any more, after Ctrl-C for example; code of other packages cannot raise this.

    Attributes
    ----------
    exit_code : int
        The exit code of the command.
    """

    def __init__(self, exit_code: int = 130) -> None:
        super().__init__()
        self.exit_code = exit_code


def described(error: BaseException) -> str:
    r"""Return type and message of an exception in one line of bounded length, whatever its class does.

    Examples
    --------
    >>> described(ValueError("two\nlines"))
    'ValueError: two lines'
    """
    try:
        message = " ".join(str(error).split())
    except BaseException:
        message = "its message cannot be shown"
    return f"{type(error).__name__}: {message[:1000]}" if message else type(error).__name__


def too_large(learner: str, d: int, error: MemoryError) -> ConfigError:
    """Return the error of a learner that needs more memory than there is for d attributes."""
    why = f" ({error})" if str(error) else ""
    return ConfigError(
        f"{learner} needs more memory than there is for {d} attributes{why}: use fewer, or another learner"
    )


def cut(text: str, longest: int = 100) -> str:
    """Return text, or the beginning of one that is long, as data can have words of any length."""
    return text if len(text) <= longest else f"{text[:longest]}..."


def quoted(text: str) -> str:
    """Return text in quotes; a long one is cut."""
    return repr(cut(text))


def nearest(word: str, choices: Iterable[str], prefix: str = "") -> str:
    r"""Return a hint to append to a message, such as `` (did you mean 'aelr'?)``; empty if no choice is near.

    Parameters
    ----------
    word : str
        What the user wrote.
    choices : iterable of str
        The valid choices.
    prefix : str, optional
        A prefix of the choices in the hint, which the comparison ignores.

    Examples
    --------
    >>> "unknown algo 'aelrr'" + nearest("aelrr", ["aelr", "ridge"])
    "unknown algo 'aelrr' (did you mean 'aelr'?)"
    >>> nearest("aerl", ["aer", "aelr"])
    " (did you mean 'aelr'?)"
    >>> nearest("crp", ["CR", "CRP"])
    " (did you mean 'CRP'?)"
    >>> nearest("zebra", ["aelr", "ridge"])
    ''
    >>> nearest("\N{LATIN SMALL LETTER A WITH DIAERESIS}", ["a", "a\N{COMBINING DIAERESIS}"]).encode("ascii", "ignore")
    b" (did you mean 'a' in another Unicode form, 'a\\u0308'?)"
    """
    choices = list(choices)
    for choice in choices:
        if choice != word and unicodedata.normalize("NFC", choice) == unicodedata.normalize("NFC", word):
            return f" (did you mean {quoted(prefix + choice)} in another Unicode form, {choice!a}?)"
    others = [choice for choice in choices if choice != word]
    alike = [choice for choice in others if choice.casefold() == word.casefold()]
    exchanged = [choice for choice in others if sorted(choice) == sorted(word)]
    matches = alike or exchanged or difflib.get_close_matches(word, choices, n=1)
    return f" (did you mean {quoted(prefix + matches[0])}?)" if matches else ""
