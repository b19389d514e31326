"""What was found of a paper or of a learner of ours: sentences beside its recipes, and counts of its claims."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from budgetreg.analysis.claims import FAILS, HOLDS, UNDECIDED
from budgetreg.config import catalogue
from budgetreg.config.options import FLAG, LIST, NUMBER, TEXT, Rules, check
from budgetreg.errors import ConfigError

FINDINGS = "findings.toml"
VERDICTS: Mapping[str, str] = {HOLDS: "holds", UNDECIDED: "open", FAILS: "fails"}
"""The best verdict first, and the word for each on pages."""
_RULES: Rules = {
    "title": ("the title of the page", TEXT),
    "ours": ("whether it is ours", FLAG),
    "place": ("its place among the pages", NUMBER),
    "source": ("the reference", TEXT),
    "found": ("what was found", TEXT),
    "each_preset": ("recipes whose presets are different data", LIST),
}
_DEFAULTS: Mapping[str, Any] = {"ours": False, "place": 0, "source": "", "found": "", "each_preset": []}


@dataclass(frozen=True)
class Findings:
    """The findings of a folder of recipes.

    Attributes
    ----------
    title : str
        The paper, or the learner.
    ours : bool
        Whether it is a learner of ours.
    place : float
        Where its page stands among the others, ascending.
    source : str
        The reference, in Markdown; may be empty.
    found : str
        A few sentences on what holds, in Markdown, without its comments; may be empty.
    each_preset : tuple of str
        Recipes whose presets are different data, so that a claim counts once for each preset.
    """

    title: str
    ours: bool = False
    place: float = 0
    source: str = ""
    found: str = ""
    each_preset: tuple[str, ...] = ()


def read_findings(folder: str) -> Findings:
    """Return the findings of a folder of recipes, such as ``gonen_2016``; without a file, its name is the title.

    Raises
    ------
    ConfigError
        If its file has a mistake.
    """
    paths = [place / "experiment" / folder / FINDINGS for place in catalogue.conf_dirs()]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        return Findings(folder)
    try:
        content = {"title": folder, **_DEFAULTS, **tomllib.loads(path.read_text(encoding="utf-8"))}
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {' '.join(str(error).split())}") from error
    check(content, _RULES, f"{path}: ")
    found = re.sub(r"<!--.*?-->", "", content["found"]).strip()  # comments tie numbers to their tables
    return Findings(**{**content, "found": found, "each_preset": tuple(content["each_preset"])})


def tally(rows: Iterable[Mapping[str, str]], each_preset: bool = False) -> Counter[str]:
    """Count the claims of a figure by their best verdict over presets, or by each of their verdicts.

    Parameters
    ----------
    rows : iterable of mapping
        The rows of its ``claims.csv``.
    each_preset : bool, optional
        Whether a claim counts once for each preset.
    """
    order = list(VERDICTS)
    best: dict[tuple[str, str], str] = {}
    for row in rows:
        claim = (row["claim"], row["protocol"] if each_preset else "")
        best[claim] = min(best.get(claim, row["verdict"]), row["verdict"], key=order.index)
    return Counter(best.values())
