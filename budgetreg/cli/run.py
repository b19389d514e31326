"""``budgetreg run``: Hydra composes one configuration or a sweep; each becomes a plan, then a run.

Hydra runs the cells of a sweep in this process, in workers or on other machines. Each cell returns its outcome, from
which the command prints all messages at the end.
"""

import multiprocessing
import os
import re
import shlex
import sys
import traceback
from argparse import Namespace
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from rich.table import Table

from budgetreg.algorithms.learner import IGNORABLE, Observation
from budgetreg.algorithms.registry import GROUPS, expanded, parameters
from budgetreg.cli.console import console, refuse_root, shown
from budgetreg.common.errors import ConfigError, ContractError, UserError
from budgetreg.common.files import at_home, os_errors_explained, remove_abandoned, scratch_folder
from budgetreg.common.notices import held, lost, patient_streams, plain_warnings, right, say, table
from budgetreg.config import catalogue, composition
from budgetreg.config.catalogue import blamed
from budgetreg.config.composition import as_config_error, as_typed, check_words, composition_explained, left_out
from budgetreg.config.options import options_of, tuning_options
from budgetreg.data import cache
from budgetreg.data.attributes import Prices
from budgetreg.protocol.configuration import Config, names_and_paths, validate
from budgetreg.protocol.plan import Plan, make_plan
from budgetreg.runs.runner import Choices, remarks
from budgetreg.runs.workers import deaths_explained, termination_as_interrupt, watched_by_launched

_ADDED = "++"  # before an override that may add a key
# Text in quotes, or the ~ or ~name that begins a path.
_HOME = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|(?<=[=,])~[^/,]*(?=[/,]|$)")
_MEMORY = "JOBLIB_TEMP_FOLDER"  # where joblib keeps what its workers share


@dataclass(frozen=True)
class CellEnd:
    """How one configuration ended.

    Attributes
    ----------
    number : int
        Its place in the sweep.
    code : int
        The exit code.
    message : str
        Why it failed; empty if it did not.
    left_out : bool
        Whether a recipe leaves it out.
    notes : tuple of str
        Notes of a worker, which the command prints.
    folder : Path or None
        Where the results of a run are.
    choices : Choices or None
        What its tuning chose.
    """

    number: int
    code: int = 0
    message: str = ""
    left_out: bool = False
    notes: tuple[str, ...] = ()
    folder: Path | None = None
    choices: Choices | None = None


_Act = Callable[[Plan], dict[str, Any]]
"""Executes or prints a plan, and returns attributes of its `CellEnd`."""


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
    options.words = [_expanded(word) for word in typed(options.words)]
    cache.remove_abandoned()
    remove_abandoned()
    cells: dict[int, CellEnd] = {}
    act = _print_plan if options.dry_run else _execute

    def task(cfg: DictConfig) -> CellEnd:
        cell = _cell(cfg, act)
        cells[cell.number] = cell  # of this process: they are known even if the sweep is interrupted
        return cell

    try:
        cells |= {cell.number: cell for cell in _by_hydra(options, task)}
    except KeyboardInterrupt:
        _report(cells)
        raise
    if not (options.cfg or options.shell_completion or cells):
        swept = [word for word in options.words if "(" in word] or ["the sweep"]
        raise ConfigError(f"nothing to run: {' '.join(swept)} has no value (see budgetreg run --help)")
    return _report(cells)


def typed(words: Iterable[str]) -> list[str]:
    """Return words with the home folder in place of ``~``, and with names and paths as they were typed.

    Shells expand ``~`` only at the beginning of a word, and Hydra's grammar forbids it outside quotes.
    """

    def with_home(part: re.Match[str]) -> str:
        return str(at_home(part[0])) if part[0].startswith("~") else part[0]

    texts = names_and_paths()
    return [as_typed(_HOME.sub(with_home, word), texts) for word in words]


def read_words(
    words: Sequence[str], command: str, options: Collection[str], refused: Collection[str], about: str
) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the options of a command that takes one value per key of ``run``, as text, and its other choices.

    Parameters
    ----------
    words : sequence of str
        What the user wrote.
    command : str
        The command, for messages.
    options : collection of str
        Keys whose text the command reads itself.
    refused : collection of str
        Groups and keys that it does not take.
    about : str
        What it does, for messages.

    Raises
    ------
    ConfigError
        If a word cannot be read, has several values, or is not for this command.
    """
    texts: dict[str, str] = {}
    choices: dict[str, Any] = {}
    given = typed(words)
    check_words(given)
    for word in given:
        key, equals, text = word.partition("=")
        if not equals or not text or key.startswith(("~", "+")):
            raise ConfigError(f"{word}: must be KEY=VALUE (see budgetreg {command} --help)")
        if key.partition("/")[0].partition(".")[0] in refused:
            raise ConfigError(f"{word}: not for {command}, which {about}; see budgetreg run")
        if key in options:
            texts[key] = text
            continue
        with composition_explained([word]):
            (override,) = OverridesParser.create().parse_overrides([word])
        if override.is_sweep_override():
            raise ConfigError(f"{word}: one value, as {command} {about}")
        choices[key] = override.value()
    return texts, choices


def _by_hydra(options: Namespace, task: composition.Task) -> list[CellEnd]:
    """Have Hydra call the task for each configuration, or print what was asked for instead."""
    check_words(options.words)
    words = _whatever_is_swept(options.words)
    try:
        with deaths_explained():
            if options.shell_completion:
                composition.complete(options.words)
            elif options.cfg:
                composition.show(words)
            elif options.multirun or composition.asks_for_sweep(words):
                return _sweep(words, task)
            else:
                return [composition.run_one(words, task)]
            return []
    except UserError:
        raise
    except Exception as error:
        # Hydra checks few of its own settings, so a wrong one can fail anywhere.
        if any(frame.f_code is _cell.__code__ for frame, _ in traceback.walk_tb(error.__traceback__)):
            raise  # from inside our task, so it is a bug of ours rather than a mistake in the words
        raise as_config_error(error, options.words) from error


def _sweep(words: list[str], task: composition.Task) -> list[CellEnd]:
    """Run the cells of a sweep, with a folder for what Hydra, its launchers and joblib write."""
    if any("hydra/launcher" in word for word in words):
        watched_by_launched()
    with termination_as_interrupt(), ExitStack() as stack:
        with os_errors_explained("write temporary files"):
            scratch = stack.enter_context(scratch_folder())
        if _MEMORY not in os.environ:
            # If a launcher is killed, joblib may leave a folder, which the next run removes from there.
            os.environ[_MEMORY] = str(scratch)
            stack.callback(os.environ.pop, _MEMORY, None)
        return list(composition.run_sweep(words, task, scratch))


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


def _cell(cfg: DictConfig, act: _Act) -> CellEnd:
    """Execute or print the plan of one configuration. Hydra calls it, perhaps in another process."""
    in_worker = multiprocessing.parent_process() is not None  # of a launcher
    with ExitStack() as stack:  # the first two change nothing in the command itself, which has entered them already
        stack.enter_context(patient_streams())
        stack.enter_context(plain_warnings())
        notes: list[str] = stack.enter_context(held()) if in_worker else []
        cell = replace(_ended(cfg, act), notes=tuple(notes))
        if in_worker and not cell.code and lost():
            return replace(cell, code=2, message=f"budgetreg: {lost()}")
        return cell


def _ended(cfg: DictConfig, act: _Act) -> CellEnd:
    """Execute or print the plan of one configuration, and return how it ended."""
    hydra = HydraConfig.get()
    swept = hydra.mode == RunMode.MULTIRUN
    number = hydra.job.num if swept else 0
    # Not resolved, as the error of `k=${missing}` must be that of its value, below.
    job: Any = OmegaConf.to_container(hydra.job, resolve=False)
    overrides: str = job["override_dirname"].replace(_ADDED, "")
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
            if swept and left_out(choice, OmegaConf.to_container(cfg.omit)):
                return CellEnd(number, left_out=True)
            return CellEnd(number, **act(make_plan(config)))
    except (UserError, ContractError) as error:
        where = f" (in the cell {overrides})" if swept else ""
        return CellEnd(number, error.exit_code, f"budgetreg: {' '.join(str(error).split())}{where}")
    except Exception:
        return CellEnd(number, 1, traceback.format_exc())


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
    return {"code": 1 if outcome.failed else 0, "choices": outcome.choices, "folder": outcome.folder}


def _print_plan(plan: Plan) -> dict[str, Any]:
    console().print(plan_table(plan))
    return {}


def _report(cells_by_number: dict[int, CellEnd]) -> int:
    """Print the messages of the cells and how to merge the curves of a sweep; return the highest exit code."""
    cells = [cell for _, cell in sorted(cells_by_number.items())]
    notes = [note for cell in cells for note in cell.notes]
    for line in notes + remarks(cell.choices for cell in cells if cell.choices is not None):
        say(line)
    for cell in cells:
        if cell.message:
            print(cell.message, file=sys.stderr)
    left = sum(cell.left_out for cell in cells)
    if left:
        print(f"budgetreg: left out by the recipe: {left} combinations (omit=[] runs them)", file=sys.stderr)
    folders = [cell.folder for cell in cells if cell.folder is not None]
    if len(folders) > 1:
        print(f"merge the curves: budgetreg plot {shlex.quote(shown(Path(os.path.commonpath(folders))))}")
    return max((cell.code for cell in cells), default=0)


def sweep_table(plans: Sequence[Plan]) -> Table:
    """Return a table of several plans: what each would run, and the most that its repetitions may be charged.

    Parameters
    ----------
    plans : sequence of Plan
        At least one; they have the same data and repetitions.
    """
    first = plans[0]
    rows, total = [], 0
    for plan in plans:
        run, tuning = plan.attributes_final, plan.widest().attributes_tuning
        most = plan.config.repetitions * (run + tuning)
        total += most
        k = "all" if plan.config.algo.observation is Observation.ALL else str(plan.config.k)
        amounts = (plan.most_examples, run, tuning, most)
        money = [f"{_most_money(plan, plan.prices):,.6g}"] if plan.prices else []
        rows.append([plan.config.algo.name, k, *(f"{amount:,}" for amount in amounts), *money])
    unit = [f"a run in {first.prices.unit}"] if first.prices else []
    rows.append(["all", "", "", "", "", f"{total:,}", *("" for _ in unit)])
    heads = ["learner", *right("k", "examples", "attributes of a run", "of its tuning", "of all repetitions", *unit)]
    examples = f"d = {first.d}, {first.n_train} training examples"
    title = f"{first.dataset}: {examples}, {first.config.repetitions} repetitions; at most"
    return table(heads, rows, title=title)


def plan_table(plan: Plan) -> Table:
    """Return a table of a plan and the attributes that it costs.

    Parameters
    ----------
    plan : Plan
        What would be run.
    """
    config, tuning = plan.config, plan.config.tuning
    settings = max((len(values) for values in plan.settings.values()), default=1)
    paid = plan.attributes_final + plan.attributes_tuning
    most = "at most" if plan.budget else "on average at most"
    examples = f"{plan.n_train} training and {plan.n_test} test examples"
    cells = plan.n_train * plan.full_row  # no run can reveal more of them, however often it draws
    widened = plan.widest().attributes_tuning
    all_widened = config.repetitions * (plan.attributes_final + widened)
    widening = f", a grid grows up to {tuning.widen} times if the best is on its edge" if tuning.widen else ""
    split = plan.budget_split
    uses = f" ({split.k_x} for the data point, {split.k_ip} for the inner product)" if split else ""
    about = "about " if config.ends_with_money else ""
    rows = {
        "learner": config.algo.name,
        "data set": f"{plan.dataset}: {plan.d} attributes, {examples}",
        "attributes per example": f"{'up to ' if config.chooses_k else ''}{plan.per_example}{uses}",
        "tuning": f"{tuning.name}, at {tuning.at}, {tuning.folds} folds, {settings} settings{widening}"
        if plan.tuned
        else f"{tuning.name}: nothing to choose",
        f"checkpoints ({'spent' if config.chooses_k else 'examples'})": about + ", ".join(map(str, plan.checkpoints)),
        "repetitions": f"{config.repetitions}, seed {config.seed}",
        "folder": shown(config.folder()),
        "bill: one final run": f"{most} {plan.attributes_final:,} attributes",
        "bill: its tuning": f"{most} {plan.attributes_tuning:,} attributes{_widened(plan, widened)}",
        "bill: all repetitions": f"{most} {config.repetitions * paid:,} attributes{_widened(plan, all_widened)}",
        "distinct cells: one final run": f"{most} {min(plan.attributes_final, cells):,} of {cells:,}",
        "distinct cells: its tuning": f"{most} {min(plan.attributes_tuning, cells):,}{_held_out(plan)}",
        **_money(plan),
    }
    return table(("what", "value"), [*rows.items(), *(("note", note) for note in plan.notes)], show_header=False)


def _money(plan: Plan) -> dict[str, str]:
    """Return the prices, and the most that a final run can cost."""
    prices = plan.prices
    if prices is None:
        return {}
    costs = prices.costs if plan.groups is None else np.array(prices.costs)[plan.groups.leads].tolist()
    most = "at most" if plan.budget else "on average at most"
    total = f"{plan.config.total} {prices.unit}, at {plan.price:.4g} for an attribute as is expected of its draws"
    return {
        **({"total": total} if plan.config.total else {}),
        "prices": f"{min(costs):g} to {max(costs):g} {prices.unit} for an attribute, {prices.row:g} for a full row",
        "bill: one final run, in money": f"{most} {_most_money(plan, prices):,.6g} {prices.unit}",
    }


def _most_money(plan: Plan, prices: Prices) -> float:
    """Return the most that a final run can cost."""
    pilot, config = plan.pilot_before_learning, plan.config
    most = pilot * prices.row + (plan.most_examples - pilot) * plan.most_expensive_example
    total = config.total if config.ends_with_money or config.chooses_k else None
    return most if total is None else min(most, config.last_share * total)


def _held_out(plan: Plan) -> str:
    if not plan.tuned:
        return ""
    which = " where they are complete" if plan.gaps else ""
    return f"; the held-out folds, {plan.n_train - plan.pilot:,} examples in all, are seen in full{which}"


def _widened(plan: Plan, widened: int) -> str:
    return f", {widened:,} if its grid grows as often as allowed" if plan.tuned and plan.config.tuning.widen else ""
