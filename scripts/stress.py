"""Kill, damage, starve and mistype: ``python scripts/stress.py [--kills N] [--flips N] [--disks N] [--lines N]``.

Random trials, the same for the same seed, of what a run promises however it goes:

- kill: a run or sweep is ended at a random moment (SIGKILL, SIGTERM, Ctrl-C, the death of a worker); the same command
  then leaves what an undisturbed one leaves
- damage: a bit, some bytes or the end of a file that a run left or cached is lost; that is told in a line that names
  the file, healed by the same command, or harmless
- disk: disks are full, folders are read-only; that is told in a line, and the same command later finishes the run
- line: command lines are changed at random; the answer is a result, or a line and an exit code

Prints a table of what was tried and of the faults found, which all have to be 0; tells each fault on stderr at once. A
whole run (a quarter of an hour) is written to results/stress.csv: kind and case; tried; wrong, other results than
undisturbed and no word of it; tracebacks; hangs; orphans, processes that stay; leftovers, files that stay; untold, no
clear line or exit code; and the machine and versions.
"""

import argparse
import os
import platform
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from itertools import cycle, islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from budgetreg.execution.workers import pin_blas_threads

pin_blas_threads()

import numpy as np  # noqa: E402 - the number of threads is read when numpy is loaded
import pandas as pd  # noqa: E402
import stress_damage  # noqa: E402 - the scripts beside this one
import stress_disks  # noqa: E402
import stress_kills  # noqa: E402
import stress_lines  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.markup import escape  # noqa: E402
from rich.progress import Progress  # noqa: E402
from rich.table import Table  # noqa: E402
from stress_trials import FAULTS, Found, Trial  # noqa: E402

from budgetreg.files.writing import write_atomically  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "results" / "stress.csv"
WHOLE = {"kill": 102, "damage": 200, "disk": 40, "line": 500}
Prepared = Callable[[Path, int], Mapping[str, Mapping[str, Any]]]
KINDS: Mapping[str, tuple[Prepared, Callable[[Trial], Found]]] = {
    "kill": (stress_kills.prepared, stress_kills.tried),
    "damage": (stress_damage.prepared, stress_damage.tried),
    "disk": (stress_disks.prepared, stress_disks.tried),
    "line": (stress_lines.prepared, stress_lines.tried),
}


def ready() -> None:
    """Import what commands need, once for all copies of this process."""
    for module in (
        *("hydra._internal.hydra", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_pdf"),
        *("budgetreg.cli.run", "budgetreg.execution.verification", "budgetreg.figures.curves"),
        *("budgetreg.figures.summary", "budgetreg.learners", "budgetreg.protocol.repetitions"),
    ):
        import_module(module)
    stress_damage.cache_everything()


def trials(counts: Mapping[str, int], seed: int, place: Path) -> list[Trial]:
    """Prepare all kinds; return their trials, which take turns among the cases of a kind."""
    found = []
    for kind, (prepared, _) in KINDS.items():
        if counts[kind]:
            folder = place / kind
            folder.mkdir()
            cases = prepared(folder, counts[kind])
            turns = [name for name, options in cases.items() for _ in range(options.get("turns", 1))]
            names = [str(name) for name in np.random.default_rng(seed).permutation(turns)]
            found += [
                Trial(kind, case, number, seed, folder, cases[case])
                for number, case in enumerate(islice(cycle(names), counts[kind]))
            ]
    return found


def tried(trial: Trial) -> Found:
    """Try one, in a worker process.

    Raises
    ------
    RuntimeError
        If the trial itself cannot be made.
    """
    try:
        return KINDS[trial.kind][1](trial)
    except Exception as error:
        raise RuntimeError(f"{trial.kind}, {trial.case}, number {trial.number}: not tried: {error!r}") from error


def counted(found: Sequence[Found]) -> pd.DataFrame:
    """Count trials and faults by kind and case."""
    rows = []
    for kind, case in sorted({(one.trial.kind, one.trial.case) for one in found}):
        own = [one for one in found if (one.trial.kind, one.trial.case) == (kind, case)]
        faults = Counter(fault for one in own for fault in one.faults)
        rows.append({"kind": kind, "case": case, "tried": len(own), **{fault: faults[fault] for fault in FAULTS}})
    return pd.DataFrame(rows)


def machine() -> str:
    """Return what the trials ran on."""
    python, numpy = platform.python_version(), np.__version__
    return f"{os.cpu_count()} x {platform.machine()}, {platform.system()}, Python {python}, numpy {numpy}"


def main() -> int:
    """Try as often as is asked for, print what came of it, and write down a whole run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for kind, option in zip(WHOLE, ("kills", "flips", "disks", "lines"), strict=True):
        parser.add_argument(f"--{option}", dest=kind, type=int, default=WHOLE[kind], help="trials (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other trials (%(default)s)")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="trials side by side (%(default)s)")
    arguments = parser.parse_args()
    counts = {kind: getattr(arguments, kind) for kind in WHOLE}
    place = Path(tempfile.mkdtemp(prefix="stress-"))
    # Started in the background of a script, processes ignore Ctrl-C and hand that on to those that are sent one.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["MPLCONFIGDIR"] = str(place / "fonts")  # matplotlib looks for fonts once, not in each trial
    ready()
    found: list[Found] = []
    try:
        todo = trials(counts, arguments.seed, place)
        with (
            Progress(console=Console(stderr=True), transient=True) as progress,
            ProcessPoolExecutor(arguments.jobs, mp_context=get_context("fork")) as pool,
        ):
            for one in progress.track(pool.map(tried, todo), len(todo), description="trials"):
                found.append(one)
                for fault, seen in one.faults.items():
                    told = f"{fault}: {one.trial.kind}, {one.trial.case}, number {one.trial.number}: {seen}"
                    progress.console.print(told, markup=False, highlight=False, soft_wrap=True)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(place, ignore_errors=True)
    frame = counted(found)
    table = Table("kind", "case")
    for column in frame.columns[2:]:
        table.add_column(column, justify="right")
    for row in frame.itertuples(index=False):
        numbers = [f"[bold red]{number}" if number else "0" for number in row[3:]]
        table.add_row(row[0], escape(row[1]), str(row[2]), *numbers)
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(table)
    faults = int(frame[list(FAULTS)].to_numpy().sum())
    console.print(f"{faults} faults in {len(found)} trials")
    if counts == WHOLE:
        frame.insert(0, "seed", arguments.seed)
        frame["machine"] = machine()
        write_atomically(TARGET, frame.to_csv(index=False).encode())
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
