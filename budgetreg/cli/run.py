"""``budgetreg run``: Hydra composes one configuration or a sweep; each becomes a plan, then a run.

Hydra runs the cells of a sweep in this process, in workers or on other machines, and drops what they return. Each cell
therefore writes its outcome into a scratch folder, from which the command prints all messages at the end.
"""

import json
import multiprocessing
import os
import shlex
import sys
import traceback
from argparse import Namespace
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from budgetreg.algorithms.learner import IGNORABLE
from budgetreg.algorithms.registry import GROUPS, expanded, parameters
from budgetreg.cli.common import console, refuse_root, shown, with_home
from budgetreg.cli.streams import lost, patient_streams
from budgetreg.config import application, catalogue
from budgetreg.config.composition import as_config_error, check_words
from budgetreg.config.extensions import blamed
from budgetreg.config.options import options_of
from budgetreg.config.sections import tuning_options
from budgetreg.config.sweeps import left_out
from budgetreg.config.words import as_typed
from budgetreg.data.cache import remove_abandoned
from budgetreg.errors import ConfigError, ContractError, UserError
from budgetreg.files import os_errors_explained
from budgetreg.notices import held, plain_warnings, say
from budgetreg.protocol.configuration import Config, names_and_paths, validate
from budgetreg.protocol.plan import Plan, make_plan
from budgetreg.runs.choices import Choices, remarks
from budgetreg.runs.scratch import scratch_folder
from budgetreg.runs.workers import deaths_explained, watched_by_launched

_Act = Callable[[Plan], dict[str, Any]]
"""Executes or prints a plan, and returns the exit code and, for a run, its folder and the choices of its tuning."""

_ADDED = "++"  # before an override that may add a key
_MEMORY = "JOBLIB_TEMP_FOLDER"  # where joblib keeps what its workers share
_SCRATCH = "BUDGETREG_SCRATCH"  # worker processes inherit it, and conf/config.yaml uses it


def main(options: Namespace) -> int:
    """Run one configuration, a sweep or a recipe.

    Parameters
    ----------
    options : Namespace
        Its options and overrides in Hydra's grammar, see `budgetreg.cli.arguments`.

    Returns
    -------
    int
        0; 1 if repetitions failed; 2 for a mistake in the configuration; 3 if data are missing; 130 if interrupted.
        A sweep returns the highest code of its cells.

    Raises
    ------
    ConfigError
        If the configuration cannot be composed.
    """
    if (options.resolve or options.package) and not options.cfg:
        _refuse("--resolve and --package need --cfg")
    texts = names_and_paths()
    options.words = [_expanded(as_typed(with_home(word), texts)) for word in options.words]
    remove_abandoned()
    with ExitStack() as stack:
        with os_errors_explained("write temporary files"):
            scratch = stack.enter_context(scratch_folder())
        os.environ[_SCRATCH] = str(scratch)
        if _MEMORY not in os.environ:
            # If a launcher is killed, joblib may leave a folder, which the next run removes from there.
            os.environ[_MEMORY] = str(scratch)
            stack.callback(os.environ.pop, _MEMORY, None)
        try:
            _hydra(options, partial(_cell, act=_print_plan if options.dry_run else _execute))
        except KeyboardInterrupt:
            _report(scratch)
            raise
        if not (options.cfg or options.shell_completion or any(scratch.glob("*.json"))):
            swept = [word for word in options.words if "(" in word] or ["the sweep"]
            _refuse(f"nothing to run: {' '.join(swept)} has no value")
        return _report(scratch)


def _hydra(options: Namespace, task: application.Task) -> None:
    """Have Hydra call the task for each configuration, or print what was asked for instead."""
    check_words(options.words)
    if any("hydra/launcher" in word for word in options.words):
        watched_by_launched()
    words = _whatever_is_swept(options.words)
    try:
        with deaths_explained():
            if options.shell_completion:
                application.complete(options.words)
            elif options.cfg:
                application.show(words, options.cfg, options.package, options.resolve)
            else:
                application.launch(words, task, sweep=options.multirun)
    except UserError:
        raise
    except Exception as error:
        # Hydra checks few of its own settings, so a wrong one can fail anywhere.
        if any(frame.f_code is _cell.__code__ for frame, _ in traceback.walk_tb(error.__traceback__)):
            raise  # from inside our task, so it is a bug of ours rather than a mistake in the words
        raise as_config_error(error, options.words) from error


def _expanded(word: str) -> str:
    """Replace the name of a group of learners by its learners, before Hydra looks for a file of that name."""
    key, _, names = word.partition("=")
    if key != "algo":
        return word
    return f"{key}={','.join(expanded(names))}" if GROUPS.keys() & set(names.split(",")) else word


def _whatever_is_swept(words: list[str]) -> list[str]:
    """Allow every key below a group that a sweep varies; whether an option has the key is checked later.

    Hydra composes the default options first, and would refuse a key that only other options of the sweep have. The same
    holds for a tuning parameter that only a learner of another package has.
    """
    swept = tuple(word.partition("=")[0] + "." for word in words if "," in word.partition("=")[2])
    ours = {f"tuning.{key}" for key in catalogue.content("tuning", "fixed")}
    return [
        _ADDED + word
        if word.startswith(swept) or (word.startswith("tuning.") and word.partition("=")[0] not in ours)
        else word
        for word in words
    ]


def _refuse(message: str) -> NoReturn:
    raise ConfigError(f"{message} (see budgetreg run --help)")


def _cell(cfg: DictConfig, act: _Act) -> None:
    """Execute or print the plan of one configuration, and write its outcome into the scratch folder.

    Hydra calls it, perhaps in another process.
    """
    in_worker = multiprocessing.parent_process() is not None  # of a launcher
    with ExitStack() as stack:  # in the command itself, the streams are patient already and messages are said once
        stack.enter_context(patient_streams())
        stack.enter_context(plain_warnings())
        notes: list[str] = stack.enter_context(held()) if in_worker else []
        number, outcome = _outcome(cfg, act)
        outcome["notes"] = notes
        if in_worker and not outcome["code"] and lost():
            outcome.update(code=2, message=f"budgetreg: {lost()}")
    try:
        with os_errors_explained("write temporary files"):
            Path(os.environ[_SCRATCH], f"{number:06}.json").write_text(json.dumps(outcome), encoding="utf-8")
    except UserError as error:  # which cannot be reported through the scratch folder
        print(f"budgetreg: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from error  # Hydra adds a line of its own to any other exception


def _outcome(cfg: DictConfig, act: _Act) -> tuple[int, dict[str, Any]]:
    """Execute or print the plan of one configuration; return its number in the sweep, and its outcome."""
    hydra = HydraConfig.get()
    swept = hydra.mode == RunMode.MULTIRUN
    # Not resolved, as the error of `k=${missing}` must be that of its value, below.
    job: Any = OmegaConf.to_container(hydra.job, resolve=False)
    overrides: str = job["override_dirname"].replace(_ADDED, "")
    outcome: dict[str, Any] = {"code": 0, "message": "", "left_out": False}
    try:
        with blamed():
            parser = OverridesParser.create()
            given = parser.parse_overrides(OmegaConf.to_container(hydra.overrides.task))  # type: ignore[arg-type]
            choice = {override.key_or_group: override.value() for override in given}
            config = validate(cfg, choice)
            idle = [] if swept else sorted(choice.keys() & _without_effect(config))
            if idle:
                say(f"{', '.join(idle)} {'has' if len(idle) == 1 else 'have'} no effect on {config.algo.name}")
            if config.out is not None:
                refuse_root(config.out)
            if swept and config.out is not None:
                config = replace(config, out=str(Path(config.out, overrides.replace("/", "_"))))
            config = replace(config, out=str(config.folder()))
            outcome["left_out"] = swept and left_out(choice, OmegaConf.to_container(cfg.omit))
            if not outcome["left_out"]:
                outcome |= act(make_plan(config))
    except (UserError, ContractError) as error:
        cell = f" (in the cell {overrides})" if swept else ""
        outcome.update(code=error.exit_code, message=f"budgetreg: {' '.join(str(error).split())}{cell}")
    except Exception:
        outcome.update(code=1, message=traceback.format_exc())
    return hydra.job.num if swept else 0, outcome


def _without_effect(config: Config) -> set[str]:
    """Return the keys of the learner and its tuning that do not change the results of a configuration."""
    learner, chosen = config.algo, config.identity().get("tuning", {})
    known = {parameter.name: parameter.what for parameter in parameters().values()}
    tuning = tuning_options(config.tuning.name, known).keys() - {"name", "widen"}
    return {
        *(f"algo.{key}" for key in IGNORABLE if key not in options_of(type(learner))),
        *(f"algo.{key}" for key in learner.inactive_options),
        *(f"tuning.{key}" for key in tuning if key not in chosen),
    }


def _execute(plan: Plan) -> dict[str, Any]:
    from budgetreg.api import carry_out
    from budgetreg.figures.tables import run_table

    outcome = carry_out(plan)
    if outcome.finished:
        console().print(run_table(outcome.folder))
        print(f"results: {shown(outcome.folder)}")
    return {"code": 1 if outcome.failed else 0, "choices": asdict(outcome.choices), "folder": str(outcome.folder)}


def _print_plan(plan: Plan) -> dict[str, Any]:
    from budgetreg.cli.plan_table import plan_table

    console().print(plan_table(plan))
    return {"code": 0}


def _report(scratch: Path) -> int:
    """Print the messages of the cells and how to merge the curves of a sweep; return the highest exit code."""
    outcomes = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(scratch.glob("*.json"))]
    made = [outcome for outcome in outcomes if "folder" in outcome]
    notes = [note for outcome in outcomes for note in outcome["notes"]]
    for line in notes + remarks(Choices(**outcome["choices"]) for outcome in made):
        say(line)
    for outcome in outcomes:
        if outcome["message"]:
            print(outcome["message"], file=sys.stderr)
    left = sum(outcome["left_out"] for outcome in outcomes)
    if left:
        print(f"budgetreg: left out by the recipe: {left} combinations (omit=[] runs them)", file=sys.stderr)
    folders = [outcome["folder"] for outcome in made]
    if len(folders) > 1:
        together = os.path.commonpath(folders)
        print(f"merge the curves: budgetreg plot {shlex.quote(shown(Path(together)))}")
    return max((outcome["code"] for outcome in outcomes), default=0)
