"""``budgetreg reproduce``: reproduce the figures of the papers, and judge their claims."""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from budgetreg.cli.arguments import REPRODUCE_KEYS, harmless
from budgetreg.cli.common import console, refuse_root
from budgetreg.errors import UserError
from budgetreg.files import at_home
from budgetreg.notices import in_one_line, say, table
from budgetreg.reproduce import recipes
from budgetreg.reproduce.gallery import refuse_foreign, write_gallery
from budgetreg.reproduce.reproduction import ClaimRow, reproduce, reproduce_quickly

_QUICK = Path("runs", "quick")


def main(arguments: Namespace) -> int:
    """Reproduce some recipes, or all.

    Parameters
    ----------
    arguments : Namespace
        Its options, see `budgetreg.cli.arguments`.

    Returns
    -------
    int
        0; if recipes could not be finished, the highest exit code of their mistakes: 1, 2, or 3 if data are missing.
        A claim that fails is a finding, not a mistake.

    Raises
    ------
    ConfigError
        If there is no such recipe, or a key that would change results is given.
    KeyboardInterrupt
        The same command resumes.
    """
    asked = [word for word in arguments.words if "=" not in word]
    words = [word for word in arguments.words if "=" in word]
    given = harmless(words, REPRODUCE_KEYS, "reproduce follows the recipe (or: budgetreg run experiment=NAME)")
    out = at_home(str(given.pop("out", _QUICK / "results" if arguments.quick else "results")))
    refuse_root(out)
    runs = _QUICK if arguments.quick else Path("runs")
    chosen = [recipes.read_recipe(name, given) for name in asked or recipes.names()]
    refuse_foreign(out, [recipe.name.partition("/")[0] for recipe in chosen])
    codes = [0]
    for recipe in chosen:
        try:
            claims = (reproduce_quickly if arguments.quick else reproduce)(recipe, runs, out)
        except UserError as error:
            say(f"{error} (in {recipe.name})")
            codes.append(error.exit_code)
            continue
        except KeyboardInterrupt as error:
            say(f"interrupted in {recipe.name}; the same command resumes")
            return getattr(error, "exit_code", 130)
        if claims:
            console().print(_table(recipe.name, claims))
        print(in_one_line(f"results: {out / recipe.name}"))
    if out.is_dir():
        write_gallery(out)
    return max(codes)


def _table(name: str, rows: Sequence[ClaimRow]) -> Table:
    presets = any(row["protocol"] for row in rows)
    heads = ("claim", *(["preset"] if presets else []), "verdict", "estimate", "interval", "wanted", "what")
    cells = []
    for row in rows:
        ends = f"{row['interval_low']} to {row['interval_high']}" if row["interval_low"] else "-"
        judged = (row["claim"], *([row["protocol"]] if presets else []), row["verdict"], row["estimate"] or "-", ends)
        cells.append((*judged, row["wanted"], row["note"] or row["says"]))
    return table(heads, cells, title=name)
