"""Kill, damage, starve and mistype: ``python scripts/stress.py [KIND ...] [--trials N]``, trials of all or some kinds.

The trials are random, but the same for the same seed:

- kill: end a run, a sweep or `budgetreg fit` at a random moment (SIGKILL, SIGTERM, Ctrl-C, a closed terminal, the death
  of a worker). The same command must then give the results of an undisturbed run, and the same bill.
- cluster: kill or stop the scheduler of dask at a random moment. The command must report in one line, in time, that no
  scheduler answers, and finish the run later.
- damage: change a bit, some bytes, the lines or the end of a file that a run wrote. Commands that read it must report
  the file in one line, repair it, or not depend on it.
- disk: fill the disk or make folders read-only. The command must report that in one line, and finish the run later.
- table: read a damaged table of any format. The answer must be a result or one line.
- line: change a command line at random. The answer must be a result, or one line and an exit code.
- study: kill a command of a study at a random moment before its end. The same command must then leave the study and
  all files as an undisturbed one. Copy a study while others use it: the copy has all that was reported. Damage a study:
  each command must report that in one line.

The script prints a table of trials and faults, which must all be 0, and each fault at once on stderr. A full run takes
10 to 20 minutes. Without --trials, the kinds that were tried replace their lines in results/stress.csv, with the
machine and the versions. The columns are kind and case of the trials; tried, their number; wrong, results that differ
without a message; tracebacks; hangs; orphans, processes left over; leftovers, files left over; and untold, commands
without a clear line or exit code.
"""

import argparse
import os
import platform
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from itertools import cycle, islice
from multiprocessing import get_context
from pathlib import Path

from budgetreg.runs.workers import pin_blas_threads

pin_blas_threads()

import numpy as np  # noqa: E402 - the number of threads is read when numpy is loaded
import pandas as pd  # noqa: E402
import stress_files  # noqa: E402 - the scripts beside this one
import stress_processes  # noqa: E402
import stress_studies  # noqa: E402
import stress_tables  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.progress import Progress  # noqa: E402
from stress_trials import FAULTS, Kind, Trial  # noqa: E402

from budgetreg.common.files import write_atomically  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "results" / "stress.csv"
MODULES = (stress_processes, stress_files, stress_tables, stress_studies)
KINDS: Mapping[str, Kind] = {name: kind for module in MODULES for name, kind in module.KINDS.items()}


def ready() -> None:
    """Import what commands need, once for all forked processes, and let small tables and short chains do."""
    for module in (
        *("hydra._internal.hydra", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_pdf"),
        *("budgetreg.cli.fit", "budgetreg.cli.run", "budgetreg.reproduce.verification", "budgetreg.figures.curves"),
        *("budgetreg.algorithms.registry", "budgetreg.protocol.repetitions", "budgetreg.cli.study"),
    ):
        import_module(module)
    from budgetreg.algorithms.factors import posterior
    from budgetreg.data import tables

    tables.IN_MEMORY = 0  # even small tables are needed in the cache
    for name in ("_BURN_IN", "_MIN_KEPT", "MOST_KEPT", "_MOST_AT_ONCE"):
        setattr(posterior, name, 5)  # long chains would take most of the time of the studies


def trials(counts: Mapping[str, int], seed: int, place: Path) -> list[Trial]:
    """Prepare all kinds of trials; return the trials, which alternate between the cases of a kind."""
    result = []
    for kind, count in counts.items():
        folder = place / kind
        folder.mkdir()
        cases = KINDS[kind].prepared(folder, count)
        turns = [name for name, options in cases.items() for _ in range(options.get("turns", 1))]
        names = map(str, np.random.default_rng(seed).permutation(turns))
        for number, case in enumerate(islice(cycle(names), count)):
            result.append(Trial(kind, case, number, seed, cases[case], folder))
    return result


def tried(trial: Trial) -> Trial:
    """Carry out a trial, in a worker process.

    Raises
    ------
    RuntimeError
        If the trial itself cannot be run.
    """
    try:
        return KINDS[trial.kind].tried(trial)
    except Exception as error:
        raise RuntimeError(f"{trial.kind}, {trial.case}, number {trial.number}: not tried: {error!r}") from error


def counted(results: Sequence[Trial]) -> pd.DataFrame:
    """Count trials and faults by kind and case."""
    rows = [
        {"kind": each.kind, "case": each.case, "tried": 1, **{name: name in each.faults for name in FAULTS}}
        for each in results
    ]
    return pd.DataFrame(rows).groupby(["kind", "case"], as_index=False).sum()


def main() -> int:
    """Run the trials, print their results, and write those of the kinds of which all trials were run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"{', '.join(KINDS)} (all)")
    parser.add_argument("--trials", type=int, metavar="N", help="trials of each kind (as many as results/ has)")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other trials (%(default)s)")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="trials side by side (%(default)s)")
    arguments = parser.parse_args()
    kinds = arguments.kinds or list(KINDS)
    if unknown := set(kinds) - set(KINDS):
        parser.error(f"{', '.join(unknown)}: no such kind; possible: {', '.join(KINDS)}")
    counts = {kind: arguments.trials or KINDS[kind].trials for kind in kinds}
    place = Path(tempfile.mkdtemp(prefix="stress-"))
    # Processes that a script starts in the background ignore Ctrl-C, and so would their children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.environ["MPLCONFIGDIR"] = str(place / "fonts")  # matplotlib looks for fonts once, not in each trial
    ready()
    results: list[Trial] = []
    try:
        todo = trials(counts, arguments.seed, place)
        with (
            Progress(console=Console(stderr=True), transient=True) as progress,
            ProcessPoolExecutor(arguments.jobs, mp_context=get_context("fork")) as pool,
        ):
            for trial in progress.track(pool.map(tried, todo), len(todo), description="trials"):
                results.append(trial)
                for fault, seen in trial.faults.items():
                    line = f"{fault}: {trial.kind}, {trial.case}, number {trial.number}: {seen}"
                    progress.console.print(line, markup=False, highlight=False, soft_wrap=True)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(place, ignore_errors=True)
    frame = counted(results)
    print(frame.to_string(index=False))
    faults = int(frame[list(FAULTS)].to_numpy().sum())
    print(f"{faults} faults in {len(results)} trials")
    if not arguments.trials:
        frame.insert(0, "seed", arguments.seed)
        frame["machine"] = (
            f"{os.cpu_count()} x {platform.machine()}, {platform.system()}, "
            f"Python {platform.python_version()}, numpy {np.__version__}"
        )
        before = pd.read_csv(TARGET)
        others = before[before["kind"].isin(set(KINDS).difference(kinds))]
        frame = pd.concat([others, frame]).sort_values(["kind", "case"], ignore_index=True)
        write_atomically(TARGET, frame.to_csv(index=False).encode())
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
