"""Plans and repetitions that are quick, obedient and log what is computed; and a program that runs them."""

import json
import os
import sys
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from threadpoolctl import threadpool_info

from budgetreg.common.errors import DataError, Interrupted
from budgetreg.runs.runner import execute


@dataclass(frozen=True)
class ToyConfig:
    repetitions: int = 3
    k: int = 4
    algo_name: str = "toy"
    n_components: int | None = None
    n_jobs: int = 1
    backend_name: str = "loky"
    address: str | None = None
    experiment: str = ""
    seed: int = 0
    widen: int = 0
    predict_k: int | None = None

    @property
    def algo(self):
        return SimpleNamespace(
            name=self.algo_name,
            predicts=self.n_components is None,
            tuned=("B", "eta"),
            bitwise_portable=True,
            grid={"B": (1.0, 3.0, 6.0), "eta": (0.1, 1.0), "forgetting": (0.5, 1.0)},
            in_grid=lambda name: SimpleNamespace(unlimited=name != "forgetting"),
        )

    @property
    def tuning(self):
        return SimpleNamespace(widen=self.widen)

    @property
    def backend(self):
        return SimpleNamespace(name=self.backend_name, address=self.address)

    @property
    def resolved(self):
        return {"algo": {"name": self.algo_name, "average": "all"}, **asdict(self)}

    def identity(self):
        return {"algo": {"name": self.algo_name, "average": "all"}, "k": self.k, "seed": self.seed}


class Stuck:
    """Takes for ever to be sent to a worker."""

    def __reduce__(self):
        time.sleep(600)


@dataclass(frozen=True)
class ToyPlan:
    folder: Path
    config: ToyConfig = field(default_factory=ToyConfig)
    notes: tuple[str, ...] = ()
    dataset: str = "toy_data"
    n_train: int = 90
    n_test: int = 10
    fingerprint: str = "0123"
    d: int = 8
    prices: None = None
    log: Path | None = None  # a line for each repetition that is computed
    behaviour: dict = field(default_factory=dict)  # repetition -> what it does instead of succeeding
    pause: float = 0.0
    repetitions_at_once: int = 1
    stuck: Stuck | None = None
    names: tuple[str, ...] = ()
    dropped: tuple[tuple[int, str], ...] = ()
    first: int | None = None
    groups: None = None
    gaps: bool = False
    spends_gaps: bool = False
    target: str = ""
    labels: tuple[str, ...] = ()

    @property
    def full_row(self):
        return self.d

    def located(self):
        return self

    def refuse_other_data(self):
        pass


def toy_plan(folder, **options):
    """Return a plan; options that it does not have are those of its configuration."""
    own = {name: options.pop(name) for name in ToyPlan.__dataclass_fields__ if name in options}
    return ToyPlan(folder, ToyConfig(**options), **own)


def toy_result(repetition, edge=""):
    """A result whose floats need all their digits, with the checkpoints out of order."""
    points = [
        {
            "examples": examples,
            "attributes": 4 * examples + repetition,
            "test_mse": (repetition + 1) / (3 * examples),
            "test_relative": 0.1 + 0.2 * repetition,
            "test_error_rate": None,
        }
        for examples in (30, 7)
    ]
    run = {
        "p_B": 2.0,
        "p_eta": 0.1 * (repetition + 1),
        "edge": edge,
        "attributes_total": 120,
        "attributes_mean": 4.0,
        "attributes_max": 4,
        "attributes_tuning": 900,
        "cells_tuning": 0,
        "rows_full": 0,
    }
    return {
        "repetition": repetition,
        "curve": points,
        "run": run,
        "model": {"w": np.zeros(8), "b": np.zeros(()), "c": np.zeros(8)},
    }


def toy_entry(repetition):
    return {"repetition": repetition, "status": "finished", "seconds": 0.5, "result": toy_result(repetition)}


def toy_line(repetition):
    """The entry as it is in the journal: its model has its own file."""
    result = {key: value for key, value in toy_result(repetition).items() if key != "model"}
    return {**toy_entry(repetition), "result": result}


def toy_repetition(plan, repetition, progress):
    """Log the repetition and this process; then do what the plan asks for."""
    with plan.log.open("a") as log:
        log.write(f"{repetition} {os.getpid()}\n")
    behaviour = plan.behaviour.get(repetition, "succeed")
    if behaviour == "fail":
        raise ZeroDivisionError("no such luck")
    if behaviour == "refuse":
        raise DataError("the data are no good")
    if behaviour == "starve":
        raise MemoryError("Unable to allocate 26.8 GiB")
    if behaviour == "interrupt":
        raise KeyboardInterrupt
    if behaviour == "die":
        os._exit(9)
    if behaviour == "hang":
        time.sleep(600)
    if behaviour == "hang once" and plan.log.read_text().count(f"{repetition} ") == 1:
        time.sleep(600)
    if behaviour == "wait":
        wait(plan, repetition, progress)
    for step in range(10):
        progress(step / 10)
        time.sleep(plan.pause / 10)
    result = toy_result(repetition, edge="eta:high" if behaviour == "edge" else "")
    if behaviour == "overflow":
        result["curve"][0]["test_mse"] = float(np.square(np.float64(1e200)))
    if behaviour.startswith("diverge"):
        result["curve"][0 if behaviour.endswith("last") else 1]["test_relative"] = 4e14
    return result


def wait(plan, repetition, progress):
    """Tell the progress for ever, and leave a file as it ends all the same."""
    try:
        while True:
            progress(0.5)
            time.sleep(0.05)
    finally:
        plan.log.with_name(f"left {repetition}").touch()


def staggered(plan, repetitions, progress):
    """Begin together and end one after the other; say how many threads BLAS would take."""
    (repetition,) = repetitions
    plan.log.with_name(f"begun {repetition}").touch()
    while len(list(plan.log.parent.glob("begun *"))) < plan.config.repetitions or any(
        not plan.log.with_name(f"left {earlier}").exists() for earlier in range(repetition)
    ):
        time.sleep(0.02)
    time.sleep(0.1)  # the one before us is gone now
    threads = max(one["num_threads"] for one in threadpool_info())
    plan.log.with_name(f"left {repetition}").write_text(str(threads))
    return [toy_result(repetition)]


def toy_repetitions(plan, repetitions, progress):
    return [toy_repetition(plan, repetition, progress) for repetition in repetitions]


def no_drawing(folder):
    """Stand in for the figures, which are slow and not of interest here."""


def toy_run(plan):
    return execute(plan, function=toy_repetitions, draw=no_drawing)


def main():
    """Run the plan that the argument describes, as a process that can be killed."""
    options = json.loads(sys.argv[1])
    options["behaviour"] = {int(key): value for key, value in options.get("behaviour", {}).items()}
    stuck = Stuck() if options.pop("stuck", False) else None
    plan = replace(toy_plan(Path(options.pop("folder")), log=Path(options.pop("log")), **options), stuck=stuck)
    try:
        execute(plan, function=toy_repetitions, draw=no_drawing)
    except Interrupted as error:
        return error.exit_code
    return 0
