"""Words of a command line: names and paths as they were typed, and words that can be pasted into a shell."""

import re
import shlex
from collections.abc import Mapping, Sequence

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Quote, QuotedString

from budgetreg.config.options import Option

# Text in quotes, or a word that stands alone: only such words can be numbers.
_PART = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|(?<![^,\[])(?P<before>\s*)(?P<word>[\w.+-]+)(?=\s*(?:[,\]]|$))""", re.DOTALL
)
_PLAIN = re.compile(r"[A-Za-z_/][\w./-]*|[1-9][0-9]*", re.ASCII)  # what neither Hydra nor a shell reads in another way
_KEYWORDS = ("true", "false", "null", "nan", "inf")
_IN_DOUBLE_QUOTES = re.compile(r"""(?:[^"$`!\\]|\\(?!["$`\\\n]))*""")


def as_typed(word: str, texts: Mapping[str, Option]) -> str:
    """Return an override in which names and paths are the text that was typed, where Hydra would read a number.

    Parameters
    ----------
    word : str
        What the user wrote, such as ``dataset.drop=[1_1]``, which Hydra reads as 11.
    texts : mapping of str to Option
        The options whose values are text, by key.

    Examples
    --------
    >>> from budgetreg.config.options import NAME, Option
    >>> as_typed("out=2024_01_15", {"out": Option("a folder", NAME)})
    "out='2024_01_15'"
    """
    key, equals, value = word.partition("=")
    option = texts.get(key.lstrip("+"))
    if option is None or not equals:
        return word
    choice = re.fullmatch(r"choice\((.*)\)", value, re.DOTALL)
    if choice:  # whose texts lose their quotes in Hydra
        value = choice[1]
    elif re.match(r"\w+\(", value):  # a function of numbers
        return word

    def quoted(part: re.Match[str]) -> str:
        typed = part["word"]
        if typed is None:  # in quotes already
            return part[0]
        read = OverridesParser.create().parse_rule(typed, "primitive")
        as_it_is = read is None or str(read) == typed
        if isinstance(read, str) or (as_it_is and (option.must.accepts(read) or option.must.accepts([read]))):
            return part[0]
        return f"{part['before']}'{typed}'"

    return f"{key}={_PART.sub(quoted, value)}"


def pasted(key: str, value: str | Sequence[str]) -> str:
    r"""Return a word that gives a key a text, or a list of texts, if it is pasted into a shell.

    Examples
    --------
    >>> print(pasted("dataset.drop", ["id", "Cement (kg/m3)"]))
    "dataset.drop=[id,'Cement (kg/m3)']"
    >>> print(pasted("dataset.path", "it's/t.csv"))
    "dataset.path='it\'s/t.csv'"
    """
    words = []
    for quote in Quote:
        texts = [_for_hydra(text, quote) for text in ([value] if isinstance(value, str) else value)]
        words.append(f"{key}={texts[0] if isinstance(value, str) else '[' + ','.join(texts) + ']'}")
    return min((_for_shell(word) for word in words), key=len)


def _for_hydra(text: str, quote: Quote) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _KEYWORDS:
        return text
    escaped = re.sub(r"(\\*)\$\{", r"\1\1\\${", text)  # no interpolation
    return QuotedString(escaped, quote).with_quotes()


def _for_shell(word: str) -> str:
    if re.fullmatch(r"[\w.,=\[\]/-]+", word, re.ASCII):
        return word
    return f'"{word}"' if "'" in word and _IN_DOUBLE_QUOTES.fullmatch(word) else shlex.quote(word)
