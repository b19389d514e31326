"""Kill, damage, starve and mistype: ``python scripts/stress.py [--kills N] [--flips N] ...``, N trials of a kind.

The trials are random, but the same for the same seed:

- kill: end a run, a sweep or `budgetreg fit` at a random moment (SIGKILL, SIGTERM, Ctrl-C, a closed terminal, the death
  of a worker). The same command must then give the results of an undisturbed run, and the same bill.
- damage: change a bit, some bytes or the end of a file that a run wrote or cached. The command must report the file in
  one line, repair it, or not depend on it.
- disk: fill the disk or make folders read-only. The command must report that in one line, and finish the run later.
- line: change a command line at random. The answer must be a result, or one line and an exit code.
- table: read tables and lists that are damaged, lie about their size or never end. The answer must be one line, in
  bounded memory.
- file: have special files, planted links, odd paths, names that control a terminal, and clocks that are set back. The
  answer must be a result or one line, and other people's files stay as they are.
- environment: damage matplotlib's settings, fail in a package with a learner, or limit the address space. The result
  must be the same, or the command must report in one line what failed, and finish the run later.
- cluster: give dask's backend the address of something else or none, or kill or stop its scheduler. The command must
  report in one line, in time, that no scheduler answers, and finish the run later.
- study: kill a command of a study at a random moment before its end. The same command must then leave the study and
  all files as an undisturbed one. Put logs of other studies beside a study, copy it while others use it, make it
  read-only, change it by SQL, give it odd names, and have other processes change it. The answer must be right, or one
  line.
- estimator: give estimators arrays, frames, matrices and lists whose cells are masked, missing, dates, text or huge.
  The numbers and the bill must be those of the array with NaN there, or the input must be refused in one line.
- name: name files, attributes, units and studies with formulas, letters of any script, control characters or bytes.
  Runs, figures and reports must show them, without a warning.
- input: give a study odd names, result lines with another order or cost, and files that are there as output. Names come
  out as they went in, wrong lines are refused, and files stay as they are.
- model: damage a model, a manifest or the journal of models, and sign it or take its checksum away. Every command that
  reads it must report that in one line, or give the right result.
- spread: learn from tables of which some attributes are nearly constant, heaped, skewed or in odd units. The mean error
  must be at most 1.2 times that of predicting the mean.

The script prints a table of trials and faults, which must all be 0, and each fault at once on stderr. It writes a full
run (a quarter of an hour) to results/stress.csv, with the machine and the versions. The columns are kind and case of
the trials; tried, their number; wrong, results that differ without a message; tracebacks; hangs; orphans, processes
left over; leftovers, files left over; and untold, commands without a clear line or exit code.
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

from budgetreg.runs.workers import pin_blas_threads

pin_blas_threads()

import numpy as np  # noqa: E402 - the number of threads is read when numpy is loaded
import pandas as pd  # noqa: E402
import stress_cluster  # noqa: E402 - the scripts beside this one
import stress_damage  # noqa: E402
import stress_disks  # noqa: E402
import stress_environment  # noqa: E402
import stress_estimators  # noqa: E402
import stress_files  # noqa: E402
import stress_inputs  # noqa: E402
import stress_kills  # noqa: E402
import stress_lines  # noqa: E402
import stress_models  # noqa: E402
import stress_names  # noqa: E402
import stress_spread  # noqa: E402
import stress_study  # noqa: E402
import stress_tables  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.markup import escape  # noqa: E402
from rich.progress import Progress  # noqa: E402
from rich.table import Table  # noqa: E402
from stress_trials import FAULTS, Trial, TrialResult  # noqa: E402

from budgetreg.files import write_atomically  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "results" / "stress.csv"
WHOLE = {
    "kill": 140,
    "damage": 200,
    "disk": 40,
    "line": 520,
    "table": 216,
    "file": 150,
    "environment": 36,
    "cluster": 40,
    "model": 81,
    "study": 210,
    "estimator": 156,
    "name": 30,
    "input": 40,
    "spread": 36,
}
Prepared = Callable[[Path, int], Mapping[str, Mapping[str, Any]]]
KINDS: Mapping[str, tuple[Prepared, Callable[[Trial], TrialResult]]] = {
    "kill": (stress_kills.prepared, stress_kills.tried),
    "damage": (stress_damage.prepared, stress_damage.tried),
    "disk": (stress_disks.prepared, stress_disks.tried),
    "line": (stress_lines.prepared, stress_lines.tried),
    "table": (stress_tables.prepared, stress_tables.tried),
    "file": (stress_files.prepared, stress_files.tried),
    "environment": (stress_environment.prepared, stress_environment.tried),
    "cluster": (stress_cluster.prepared, stress_cluster.tried),
    "model": (stress_models.prepared, stress_models.tried),
    "study": (stress_study.prepared, stress_study.tried),
    "estimator": (stress_estimators.prepared, stress_estimators.tried),
    "name": (stress_names.prepared, stress_names.tried),
    "input": (stress_inputs.prepared, stress_inputs.tried),
    "spread": (stress_spread.prepared, stress_spread.tried),
}


def ready() -> None:
    """Import what commands need, once for all forked processes."""
    for module in (
        *("hydra._internal.hydra", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_pdf"),
        *("budgetreg.cli.fit", "budgetreg.cli.run", "budgetreg.runs.verification", "budgetreg.figures.curves"),
        *(
            "budgetreg.figures.tables",
            "budgetreg.algorithms.registry",
            "budgetreg.protocol.repetitions",
            "budgetreg.cli.study",
        ),
    ):
        import_module(module)
    stress_damage.cache_everything()


def trials(counts: Mapping[str, int], seed: int, place: Path) -> list[Trial]:
    """Prepare all kinds of trials; return the trials, which alternate between the cases of a kind."""
    result = []
    for kind, (prepared, _) in KINDS.items():
        if counts[kind]:
            folder = place / kind
            folder.mkdir()
            cases = prepared(folder, counts[kind])
            turns = [name for name, options in cases.items() for _ in range(options.get("turns", 1))]
            names = [str(name) for name in np.random.default_rng(seed).permutation(turns)]
            result += [
                Trial(kind, case, number, seed, folder, cases[case])
                for number, case in enumerate(islice(cycle(names), counts[kind]))
            ]
    return result


def tried(trial: Trial) -> TrialResult:
    """Return the result of a trial, in a worker process.

    Raises
    ------
    RuntimeError
        If the trial itself cannot be run.
    """
    try:
        return KINDS[trial.kind][1](trial)
    except Exception as error:
        raise RuntimeError(f"{trial.kind}, {trial.case}, number {trial.number}: not tried: {error!r}") from error


def counted(results: Sequence[TrialResult]) -> pd.DataFrame:
    """Count trials and faults by kind and case."""
    rows = []
    for kind, case in sorted({(result.trial.kind, result.trial.case) for result in results}):
        of_case = [result for result in results if (result.trial.kind, result.trial.case) == (kind, case)]
        faults = Counter(fault for result in of_case for fault in result.faults)
        rows.append({"kind": kind, "case": case, "tried": len(of_case), **{fault: faults[fault] for fault in FAULTS}})
    return pd.DataFrame(rows)


def machine() -> str:
    """Return a description of the machine and its versions."""
    python, numpy = platform.python_version(), np.__version__
    return f"{os.cpu_count()} x {platform.machine()}, {platform.system()}, Python {python}, numpy {numpy}"


def main() -> int:
    """Run the trials, print their results, and write those of a full run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options = (
        *("kills", "flips", "disks", "lines", "tables", "files", "environments", "clusters", "models", "studies"),
        *("estimators", "names", "inputs", "spreads"),
    )
    for kind, option in zip(WHOLE, options, strict=True):
        parser.add_argument(f"--{option}", dest=kind, type=int, default=WHOLE[kind], help="trials (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other trials (%(default)s)")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="trials side by side (%(default)s)")
    arguments = parser.parse_args()
    counts = {kind: getattr(arguments, kind) for kind in WHOLE}
    place = Path(tempfile.mkdtemp(prefix="stress-"))
    # Processes that a script starts in the background ignore Ctrl-C, and so would their children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.environ["MPLCONFIGDIR"] = str(place / "fonts")  # matplotlib looks for fonts once, not in each trial
    ready()
    results: list[TrialResult] = []
    try:
        todo = trials(counts, arguments.seed, place)
        with (
            Progress(console=Console(stderr=True), transient=True) as progress,
            ProcessPoolExecutor(arguments.jobs, mp_context=get_context("fork")) as pool,
        ):
            for result in progress.track(pool.map(tried, todo), len(todo), description="trials"):
                results.append(result)
                trial = result.trial
                for fault, seen in result.faults.items():
                    line = f"{fault}: {trial.kind}, {trial.case}, number {trial.number}: {seen}"
                    progress.console.print(line, markup=False, highlight=False, soft_wrap=True)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(place, ignore_errors=True)
    frame = counted(results)
    table = Table("kind", "case")
    for column in frame.columns[2:]:
        table.add_column(column, justify="right")
    for row in frame.itertuples(index=False):
        numbers = [f"[bold red]{number}" if number else "0" for number in row[3:]]
        table.add_row(row[0], escape(row[1]), str(row[2]), *numbers)
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(table)
    faults = int(frame[list(FAULTS)].to_numpy().sum())
    console.print(f"{faults} faults in {len(results)} trials")
    if counts == WHOLE:
        frame.insert(0, "seed", arguments.seed)
        frame["machine"] = machine()
        write_atomically(TARGET, frame.to_csv(index=False).encode())
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
