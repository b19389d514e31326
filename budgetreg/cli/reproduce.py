"""``budgetreg reproduce``: reproduce the figures of the papers, and judge their claims."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from budgetreg.cli.common import Parser, console, harmless, refuse_root, report_error
from budgetreg.errors import UserError
from budgetreg.execution.workers import pin_blas_threads

if TYPE_CHECKING:
    from budgetreg.reproduce.reproduction import ClaimRow

_KEYS = {  # keys that change no result
    "n_jobs": "repetitions computed at the same time",
    "dataset.root": "folder that holds MNIST/raw",
    "backend.batch_size": "largest number of replicas that advance together",
    "out": "folder of the merged results, results by default",
}
_QUICK = Path("runs", "quick")


def main(argv: list[str]) -> int:
    """Reproduce some recipes, or all.

    Parameters
    ----------
    argv : list of str
        What follows ``reproduce`` on the command line.

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
    parser = Parser("reproduce", "Compute, draw and judge the figures of the papers; only what is missing is computed.")
    keys = "; ".join(f"{key}: {what}" for key, what in _KEYS.items())
    help_text = f"recipes, all by default (see budgetreg list experiments); keys that change no result: {keys}"
    parser.add_argument("words", nargs="*", metavar="NAME | KEY=VALUE", help=help_text)
    parser.add_argument("--quick", action="store_true", help="two repetitions, into runs/quick, without verdicts")
    arguments = parser.parse_intermixed_args(argv)
    pin_blas_threads()
    from budgetreg.reproduce import recipes  # here, as Hydra and numpy are slow to load and --help is not
    from budgetreg.reproduce.gallery import refuse_foreign, write_gallery
    from budgetreg.reproduce.reproduction import Places, reproduce, reproduce_quickly

    asked = [word for word in arguments.words if "=" not in word]
    words = [word for word in arguments.words if "=" in word]
    given = harmless(words, _KEYS, "reproduce follows the recipe (or: budgetreg run experiment=NAME)")
    out = Path(str(given.pop("out", _QUICK / "results" if arguments.quick else "results"))).expanduser()
    refuse_root(out)
    refuse_foreign(out)
    places = Places(_QUICK if arguments.quick else Path("runs"), out)
    chosen = [recipes.read_recipe(name, given) for name in asked or recipes.names()]
    codes = [0]
    for recipe in chosen:
        try:
            claims = (reproduce_quickly if arguments.quick else reproduce)(recipe, places)
        except UserError as error:
            report_error(error, f"in {recipe.name}")
            codes.append(error.exit_code)
            continue
        except KeyboardInterrupt:
            print(f"budgetreg: interrupted in {recipe.name}; the same command resumes", file=sys.stderr)
            return 130
        if claims:
            console().print(_table(recipe.name, claims))
        print(f"results: {places.results / recipe.name}")
    if out.is_dir():
        write_gallery(out)
    return max(codes)


def _table(name: str, rows: Sequence["ClaimRow"]) -> Table:
    presets = any(row["protocol"] for row in rows)
    heads = ("claim", *(["preset"] if presets else []), "verdict", "estimate", "interval", "wanted", "what")
    table = Table(*heads, title=name, title_justify="left", box=None, pad_edge=False)
    for row in rows:
        ends = f"{row['interval_low']} to {row['interval_high']}" if row["interval_low"] else "-"
        cells = [row["claim"], *([row["protocol"]] if presets else []), row["verdict"], row["estimate"] or "-", ends]
        table.add_row(*map(Text, [*cells, row["wanted"], row["note"] or row["says"]]))
    return table
