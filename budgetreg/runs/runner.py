"""Executing a plan: missing repetitions are computed and written as they arrive, and the run is drawn at the end."""

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from joblib import delayed

from budgetreg.common.errors import UserError
from budgetreg.common.notices import plain_warnings, printable, say
from budgetreg.data.cache import Stamp, trust, verified
from budgetreg.protocol.plan import Plan, listed, of_unknown_scale
from budgetreg.runs import workers
from budgetreg.runs.journal import FAILED, Entry
from budgetreg.runs.progress import Repetitions, attempt, batches, progress_bar, reporter
from budgetreg.runs.store import Store

_USELESS = 1e3
"""An error above this multiple of that without attributes means units that do not suit the learner."""

_HEADS = {
    "widened": "grids grew because the best value was the largest or smallest tried",
    "edges": "some best values are the largest or smallest tried",
    "left_out": of_unknown_scale("if you know their ranges, give dataset.ranges=FILE"),
}
_ENDS = {"low": "smallest", "high": "largest"}


@dataclass(frozen=True)
class Choices:
    """The choices of tuning in one run.

    Attributes
    ----------
    algo : str
        The learner.
    repetitions : int
        Their number.
    counts : mapping of str to Counter
        In how many of them a best value lies at the end of its grid (``edges``), by its description, which includes
        advice; a grid grew (``widened``), by parameter; and an attribute was left out (``left_out``), by its name.
    """

    algo: str
    repetitions: int
    counts: Mapping[str, Counter[str]]


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of a run.

    Attributes
    ----------
    folder : Path
        Where the results are.
    finished, failed : int
        Repetitions asked for that are finished or have failed.
    resumed : int
        Finished repetitions that an earlier call had left.
    choices : Choices
        What tuning chose, which `budgetreg.runs.runner.remarks` reports.
    """

    folder: Path
    finished: int
    failed: int
    resumed: int
    choices: Choices


def execute(
    plan: Plan,
    *,
    function: Repetitions | None = None,
    draw: Callable[[Path], object] = lambda folder: None,
) -> RunOutcome:
    """Compute the repetitions of a plan that its folder does not hold yet.

    Parameters
    ----------
    plan : Plan
        What is run. The results go to ``plan.folder``.
    function : callable, optional
        A picklable function that computes repetitions, ``function(plan, repetitions, progress) -> results``;
        `protocol.repetitions.run_repetitions` by default.
    draw : callable, optional
        A function that draws the finished run in a folder; nothing is drawn by default.

    Returns
    -------
    RunOutcome
        A repetition that raises counts as failed, and its traceback is printed; the next call tries it again.

    Raises
    ------
    UserError
        If the folder cannot be used, the disk is full, a worker dies, or a repetition raises one because of bad data.
    KeyboardInterrupt
        On Ctrl-C, SIGTERM or SIGHUP. Whatever is raised, finished repetitions are kept, and the tables hold them.
    """
    workers.watch_parent()  # this process may be the worker of a launcher that runs a sweep
    with workers.termination_as_interrupt(), Store.open(plan.folder, plan) as store:
        for note in (*plan.notes, *store.notes):
            say(note)
        resumed = len(store.finished())
        try:
            with computing(plan, store.missing(), function) as entries:
                for entry in entries:
                    store.add(entry)
        except BaseException as error:
            with suppress(UserError):  # the first error is the one to report
                store.finish(str(error) if isinstance(error, UserError) else "")
            raise
        store.finish()
        finished = store.finished()
        if finished:
            draw(store.folder)
        results = [entry["result"] for entry in finished]
        _warn_of_units(plan, results)
        return RunOutcome(store.folder, len(finished), len(store.failed()), resumed, choices_of(plan, results))


def _warn_of_units(plan: Plan, results: Sequence[dict[str, Any]]) -> None:
    """Warn if repetitions end so far above the error without attributes that parameters, or the scale, do not fit."""
    ends = [max(result["curve"], key=lambda point: point["examples"]).get("test_relative") for result in results]
    worst = max((end for end in ends if end is not None), default=0.0)
    if worst > _USELESS:
        say(
            f"the error is up to {worst:.2g} times that without attributes: "
            + (
                "the radii and step sizes tried suit attributes and targets of about 1; scale them (a file with "
                "dataset.scale=max_abs), or try smaller parameters"
                if plan.config.algo.tuned
                else "some values in the test part are far larger than those seen; give the attributes' ranges "
                "(dataset.ranges=FILE), or their logarithms"
            )
        )


@contextmanager
def computing(plan: Plan, repetitions: Sequence[int], function: Repetitions | None = None) -> Iterator[Iterator[Entry]]:
    """Compute repetitions of a plan, with progress, and write nothing.

    Parameters
    ----------
    plan, function
        As for `execute`.
    repetitions : sequence of int
        Which.

    Yields
    ------
    iterator of dict
        Their entries for the journal as they arrive, in any order. The traceback of a failure is printed. No worker
        goes on computing after the block, however it ends.
    """
    if not repetitions:
        yield iter(())
        return
    from budgetreg.protocol.repetitions import run_repetitions  # here, as a finished run needs none of what it loads

    with (
        progress_bar(f"{plan.config.algo.name} on {plan.dataset}, k={plan.config.k}", len(repetitions)) as slots,
        _arriving(plan, repetitions, function or run_repetitions, slots) as arriving,
    ):
        yield map(_without_trace, chain.from_iterable(arriving))


def _without_trace(entry: Entry) -> Entry:
    """Print why a repetition has failed, if it has, and return its entry as the journal has it."""
    trace = entry.pop("trace", "")
    if trace:
        print(printable(f"repetition {entry['repetition']} failed:\n{trace}"), file=sys.stderr)
    elif entry["status"] == FAILED:
        say(f"repetition {entry['repetition']} failed: {entry['message']}")
    return entry


@contextmanager
def _arriving(
    plan: Plan, repetitions: Sequence[int], function: Repetitions, slots: Path | None
) -> Iterator[Iterator[list[Entry]]]:
    """Yield entries as they arrive; no worker goes on computing after the block, however it ends."""
    backend = plan.config.backend.name
    if backend == "dask":
        from budgetreg.runs import cluster

        with cluster.arriving(plan, repetitions, function, slots) as arriving:
            yield arriving
        return
    n_jobs = min(plan.config.n_jobs, len(repetitions))
    tasks = (
        delayed(_attempt_in_worker)(function, plan, batch, slots, first, verified())
        for first, batch in batches(plan, repetitions, n_jobs)
    )
    with workers.computing(tasks, n_jobs, backend, "generator_unordered") as arriving:
        yield arriving


def _attempt_in_worker(
    function: Repetitions, plan: Plan, batch: Sequence[int], slots: Path | None, slot: int, stamps: Mapping[str, Stamp]
) -> list[Entry]:
    """Compute repetitions in a process that trusts the files that its parent has verified."""
    trust(stamps)
    with plain_warnings():
        return attempt(function, plan, batch, reporter(slots, slot, len(batch)))


def choices_of(plan: Plan, results: Sequence[Mapping[str, Any]]) -> Choices:
    """Return what tuning chose in a run.

    Parameters
    ----------
    plan : Plan
        What was run.
    results : sequence of mapping
        The results of its repetitions, as `protocol.repetitions.run_repetitions` returns them.
    """
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for result in results:
        last, before = (set(words.split()) for words in (result["run"]["edge"], result.get("edge_before", "")))
        counts["edges"].update(_described(plan, edge) for edge in last)
        counts["edges"].update(_described(plan, edge, " before the last checkpoint") for edge in before - last)
        counts["widened"].update(result.get("widened", "").split())
        counts["left_out"].update(result.get("left_out", ()))
    return Choices(plan.config.algo.name, len(results), counts)


def remarks(runs: Iterable[Choices]) -> list[str]:
    """Return what the user should know about the choices of some runs: at most a line of each kind."""
    by_learner = sorted(runs, key=lambda run: run.algo)
    lines = []
    for kind, head in _HEADS.items():
        learners = []
        for algo, group in groupby(by_learner, key=lambda run: run.algo):
            same = list(group)
            counts: Counter[str] = sum((run.counts.get(kind, Counter()) for run in same), Counter())
            hits = listed([f"{what} in {count}" for what, count in sorted(counts.items())])
            if hits:
                learners.append(f"{algo}: {hits} of {sum(run.repetitions for run in same)} repetitions")
        if learners:
            lines.append(f"{head}: {'; '.join(learners)}")
    return lines


def _described(plan: Plan, edge: str, when: str = "") -> str:
    """Return an edge such as ``"B:high"`` in words, with what to try next if other values are possible."""
    name, end = edge.split(":")
    algo, widen = plan.config.algo, plan.config.tuning.widen
    description = f"{name} {_ENDS[end]}{when}"
    if not algo.in_grid(name).unlimited:
        return description
    if widen:
        return f"{description} (raise tuning.widen, which is {widen})"
    last, inner = algo.grid[name][:2] if end == "low" else algo.grid[name][:-3:-1]
    return f"{description} (try {last * last / inner:.3g} in algo.grid.{name})"
