"""``budgetreg advise``: find the learner and the k with the least error for a total of attributes, or of money."""

import json
import shlex
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from budgetreg.algorithms.learner import Missing
from budgetreg.algorithms.registry import GROUPS, WITH_GAPS, advised, expanded, members
from budgetreg.analysis.comparisons import Candidate, ranked
from budgetreg.analysis.outside import boosting
from budgetreg.api import SET_BY_FIT, carry_out, readable
from budgetreg.cli.arguments import is_whole, whole_number
from budgetreg.cli.console import console, refuse_root, shown
from budgetreg.cli.run import read_words, sweep_table
from budgetreg.common.errors import ConfigError, UnfinishedError, cut, nearest
from budgetreg.common.files import at_home, record_digest, write_atomically
from budgetreg.common.notices import each_once, in_one_line, say
from budgetreg.config.composition import Composer, for_hydra
from budgetreg.config.options import EVERY
from budgetreg.data.registry import load
from budgetreg.figures import plot
from budgetreg.figures.advice import NAME, advice_rows, advice_table, answer, is_useful
from budgetreg.figures.specification import Drawing, axes_of
from budgetreg.protocol.configuration import Config, validate
from budgetreg.protocol.plan import Plan, make_plan
from budgetreg.runs.runner import remarks
from budgetreg.runs.series import common_unit, read_series
from budgetreg.runs.tables import as_csv

if TYPE_CHECKING:
    import pandas as pd

_OPTIONS = ("total", "k", "algo", "out")
_REFUSED = ("hydra", "experiment", "axis")
_NOT_OF_FIT = (*SET_BY_FIT, "k", "algo", "out")


def main(arguments: Namespace) -> int:
    """Run what is missing of the sweep, and print the advice.

    Learners are compared at the end of their curves, so that a single checkpoint is the default.

    Parameters
    ----------
    arguments : Namespace
        Its options, see `budgetreg.cli.arguments`.

    Returns
    -------
    int
        0, 1 if repetitions failed, 130 if interrupted. With ``--dry-run`` nothing is computed.

    Raises
    ------
    ConfigError
        If a word is invalid, or no learner can run with the choices.
    DataError
        If the data are missing or unusable.
    """
    plans = _planned(arguments.words)
    if arguments.dry_run:
        for note in plans[0].notes:
            if all(note in plan.notes for plan in plans):
                say(note)
        console().print(sweep_table(plans))
        print(f"folder: {shown(plans[0].folder.parent)}")
        return 0
    candidates, failed = _compared(plans)
    if candidates:
        _answer(candidates, plans[0], arguments.words)
    return 1 if failed else 0


def advise(choices: Mapping[str, Any]) -> "pd.DataFrame":
    """Return what `budgetreg advise` compares, the best first; finished runs are not computed again.

    Parameters
    ----------
    choices : mapping of str to Any
        The keys of the command, such as ``{"dataset": "diabetes", "total": 1500, "k": [2, 4, "all"]}``.

    Returns
    -------
    DataFrame
        The rows of ``advice.csv``, which is written too. Its ``attrs`` hold the rest of ``advice.json``, such as
        ``sentence`` and ``command``.

    Raises
    ------
    ConfigError, DataError, UnfinishedError, KeyboardInterrupt
        As `budgetreg.run` does.
    """
    import pandas as pd  # here, as it is slow to load

    words = [_word(key, value) for key, value in readable(choices).items()]
    plans = _planned(words)
    with each_once():
        candidates, failed = _compared(plans)
    if failed:
        raise UnfinishedError(f"{failed} repetitions failed, see {plans[0].folder.parent}: the same call tries again")
    frame = pd.DataFrame(advice_rows(candidates))
    frame.attrs.update(_written(candidates, plans[0], words))
    return frame


def _word(key: str, value: Any) -> str:
    """Return a word of the command, as it is typed but for what a shell needs."""
    if isinstance(value, list):
        texts = [for_hydra(each) if isinstance(each, str) else str(each) for each in value]
        return f"{key}={','.join(texts)}" if key in _OPTIONS else f"{key}=[{','.join(texts)}]"
    return f"{key}={'null' if value is None else str(value).lower() if isinstance(value, bool) else value}"


def _planned(words: Sequence[str]) -> list[Plan]:
    """Return the plans of all cells that words of the command ask for.

    Raises
    ------
    ConfigError
        If a word cannot be read or is not for advise, or a choice is impossible.
    """
    options, choices = read_words(words, "advise", _OPTIONS, _REFUSED, "compares learners at one total")
    if "total" not in options:
        for key in choices:
            if hint := nearest(key, ["total"]):
                raise ConfigError(f"{key}: no such key{hint}")
        raise ConfigError(
            "advise: how many attributes may be seen, or what may they cost? total=T is needed, such as total=1500"
        )
    choices = {"checkpoints": 1, **choices, "total": whole_number("total", options["total"], 1)}
    configs = _configs(options, choices)
    return _plans(configs, _folder(configs[0], options.get("out")))


def _compared(plans: Sequence[Plan]) -> tuple[list[Candidate], int]:
    """Run what is missing of the sweep; return the candidates, the best first, and the number of failures."""
    outcomes = []
    for number, plan in enumerate(plans, 1):
        say(f"{number} of {len(plans)}: {plan.config.algo.name}, k={plan.config.k}")
        outcomes.append(carry_out(plan, draw=False))
    for line in remarks(outcome.choices for outcome in outcomes):
        say(line)
    failed = sum(outcome.failed for outcome in outcomes)
    folders = [outcome.folder for outcome in outcomes if outcome.finished]
    if not folders:
        return [], failed
    series, total = read_series(folders), plans[0].config.total
    assert total is not None
    measure = axes_of(series)[1].column
    candidates = ranked(series, measure, total)
    return [*candidates, *boosting(candidates, plans[0], measure)], failed


def _configs(options: Mapping[str, str], choices: Mapping[str, Any]) -> list[Config]:
    """Return the configurations of all cells: learners on a budget for each k, those that see full rows once.

    If no k is asked for, powers of 2 and d are tried; all is d for learners that tune nothing. If no learners on full
    rows are named, those that impute missing values are compared with all attributes, too, as no tuning looks beyond
    what they pay for. Where values are missing, they take the place of those that need all.

    Raises
    ------
    ConfigError
        If a choice is impossible.
    """
    named = expanded(options["algo"]) if "algo" in options else advised()
    asked = _payable(named, choices)
    full = members(GROUPS["all_full"])
    limited = [name for name in asked if name not in full]
    configured = partial(_configured, Composer(), choices)
    first = configured(asked[0], 1)
    data = load(first.dataset, first.seed, 0, targets=True)
    d = data.n_purchases
    most = d if first.dataset.costs else min(d, choices["total"])  # attributes cost what they do in money
    tried = [str(k) for k in (*(2**i for i in range(1, d.bit_length()) if 2**i < d), d) if k <= most]
    budgets = dict.fromkeys(options["k"].split(",") if "k" in options else [*tried, EVERY])
    if not all(word == EVERY or is_whole(word, 1) for word in budgets):
        must = f"must be whole numbers of at least 1, or {EVERY}, with commas between them"
        raise ConfigError(f"k={cut(options['k'])}: {must}")
    rows = [name for name in asked if name in full]
    if EVERY in budgets and not rows:
        rows = _payable([*full, *advised(WITH_GAPS)] if data.available is None else _full_rows_with_gaps(d), choices)
    cells = [(name, int(k)) for k in budgets if k != EVERY for name in limited]
    if EVERY in budgets:
        tuned = members(lambda learner: bool(learner.tuned))
        cells += [(name, d) for name in limited if name not in tuned and d <= most]
    cells += [(name, d) for name in rows]
    configs = [configured(*cell) for cell in dict.fromkeys(cells)]
    if not configs:
        raise ConfigError(f"k={options.get('k')}: none of these learners has a budget then; add numbers to k, or all")
    return configs


def _configured(compose: Composer, choices: Mapping[str, Any], name: str, k: int) -> Config:
    """Return the checked configuration of a learner and a budget."""
    choice = {**choices, "algo": name, "k": k}
    composed = compose(choice)
    try:
        config = validate(composed, choice)
    except ConfigError as error:
        raise ConfigError(f"{error} (for algo={name})") from error
    if not config.algo.predicts:
        raise ConfigError(f"algo={name}: learns a subspace; advise compares learners that predict a target")
    return config


def _payable(names: list[str], choices: Mapping[str, Any]) -> list[str]:
    """Return the learners that tuning=paid allows, and report the others; all of them if it allows none."""
    tuned = set(members(lambda learner: bool(learner.tuned))) if choices.get("tuning") == "paid" else set()
    left = [name for name in names if name in tuned]
    if not left or len(left) == len(names):
        return names
    say(f"tuning=paid: left out, as they choose parameters on rows that are seen in full: {', '.join(left)}")
    return [name for name in names if name not in tuned]


def _full_rows_with_gaps(d: int) -> list[str]:
    """Return the learners that are compared as full rows where values are missing, and report them."""
    imputing = advised(WITH_GAPS)
    say(
        f"values are missing: {' and '.join(imputing)} with k={d}, all attributes that an example has, are compared in "
        "place of learners that need full rows; missing values are replaced by means"
    )
    able = members(lambda learner: GROUPS["all_full"](learner) and learner.missing is not Missing.REFUSED)
    return [*able, *imputing]


def _folder(config: Config, out: str | None) -> Path:
    """Return the folder of the sweep: `out`, or one determined by what its cells have in common."""
    if out is not None:
        refuse_root(out)
        return at_home(out).absolute()
    common = {
        key: value for key, value in config.identity().items() if key not in ("algo", "k", "tuning", "money_limit")
    }
    digest = record_digest({**common, "tuning": config.resolved["tuning"]})
    leaf = f"advise-total{config.total}-seed{config.seed}-{digest[:8]}"
    return Path("runs", config.dataset.name, leaf).absolute()


def _plans(configs: Sequence[Config], out: Path) -> list[Plan]:
    """Return the plans of the runs; those that the data or the total do not allow are left out with a notice.

    Raises
    ------
    ConfigError
        If no run is left.
    """
    plans: list[Plan] = []
    refusals: list[tuple[str, ConfigError]] = []
    for config in configs:
        try:
            plans.append(make_plan(replace(config, out=str(out / config.folder().name))))
        except ConfigError as error:
            refusals.append((config.algo.name, error))
    if not plans:
        raise refusals[0][1]
    for line in dict.fromkeys(f"{'' if name in str(error) else f'{name}: '}{error}" for name, error in refusals):
        say(f"left out: {line}")
    return plans


def _answer(candidates: Sequence[Candidate], plan: Plan, words: Sequence[str]) -> None:
    """Print the table, the verdict with its list, the files, and the command that follows the advice."""
    total = plan.config.total
    assert total is not None
    written = _written(candidates, plan, words)
    console().print(advice_table(candidates, total))
    print(*map(in_one_line, (written["sentence"], *written["compared"])), sep="\n- ")
    folder = plan.folder.parent
    pictures = plot((candidates, total), folder, NAME, Drawing(kind="advice"))
    for path in (*pictures, folder / f"{NAME}.csv", folder / f"{NAME}.json"):
        print(shown(path))
    if written["command"]:
        print(f"to learn it from all rows: {in_one_line(written['command'])}")


def _written(candidates: Sequence[Candidate], plan: Plan, words: Sequence[str]) -> dict[str, Any]:
    """Write the rows, and with the verdict, its list and the command; return all but the rows.

    The command is empty if there is nothing worth buying.
    """
    total, best = plan.config.total, candidates[0]
    assert total is not None
    sentence, *compared = answer(candidates, total)
    kept = [word for word in words if word.partition("=")[0] not in _NOT_OF_FIT]
    k = EVERY if best.series.of_all_attributes else best.series.k
    command = shlex.join(["budgetreg", "fit", f"algo={best.series.algo}", f"k={k}", *kept])
    advice = {
        "dataset": best.series.dataset,
        "total": total,
        "unit": common_unit([each.series for each in candidates]) or "attributes",
        "sentence": sentence,
        "compared": compared,
        "command": command if is_useful(candidates) else "",
    }
    rows, file = advice_rows(candidates), plan.folder.parent / NAME
    columns = dict.fromkeys(column for row in rows for column in row)
    write_atomically(file.with_suffix(".csv"), as_csv(columns, rows))
    whole = json.dumps({**advice, "rows": rows}, indent=2, ensure_ascii=False)
    write_atomically(file.with_suffix(".json"), f"{whole}\n".encode())
    return advice
