"""What the mutants of ``mutants.yaml`` change: behaviour that takes more than another expression. See `mutation`."""

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from mutation import Change, around

from budgetreg.analysis.comparisons import Candidate
from budgetreg.analysis.intervals import RESAMPLES
from budgetreg.common.files import KEY
from budgetreg.data.registry import load
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.ledger import Bill
from budgetreg.protocol.configuration import Config
from budgetreg.protocol.passes import Pass
from budgetreg.protocol.plan import Plan, split_sizes
from budgetreg.protocol.repetitions import Outcome
from budgetreg.protocol.split import Split
from budgetreg.reproduce.verification import Comparison, Computation
from budgetreg.runs.models import Arrays, read_models

# What the keys of the random streams name, in this order.
EXAMPLES = ("stream", "seed", "data", "repetition")
DRAWS = ("stream", "seed", "data", "learner", "k", "repetition", "stage")


def running() -> Plan:
    """Return the plan of the run that called."""
    frame = sys._getframe(1)
    while True:
        for value in list(frame.f_locals.values()):
            if isinstance(value, Plan):
                return value
        assert frame.f_back is not None, "no run has called"
        frame = frame.f_back


def keyed(stream: str, change: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> Change:
    """Change the key of a random stream; the tests' own streams keep theirs."""
    return around(lambda make, *key: make(*(change(key) if key[0] == stream else key)), spare="tests")


def ignoring(stream: str, part: str) -> Change:
    """Leave out what a part of the key names."""
    place = (DRAWS if stream == "draws" else EXAMPLES).index(part)
    return keyed(stream, lambda key: (*key[:place], "", *key[place + 1 :]))


def permuted(stream: str, change: Callable[[np.random.Generator, Any], np.ndarray]) -> Change:
    """Change how a random stream permutes."""

    def make(original: Callable[..., np.random.Generator], *key: Any) -> Any:
        rng = original(*key)
        return SimpleNamespace(permutation=lambda x: change(rng, x)) if key[0] == stream else rng

    return around(make, spare="tests")


def with_arguments(change: Callable[..., dict[str, Any]]) -> Change:
    """Change arguments by name: ``change(**arguments)`` returns those that differ."""

    def call(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(original).bind(*args, **kwargs)
        bound.arguments.update(change(**bound.arguments))
        return original(*bound.args, **bound.kwargs)

    return around(call)


def others(index: np.ndarray, n: int) -> np.ndarray:
    """Return the rows that an index leaves out."""
    return np.setdiff1d(np.arange(n), index)


def is_official() -> bool:
    """Return whether the run keeps the data's official split."""
    return running().config.dataset.split == "official"


def cut(change: Callable[..., tuple[np.ndarray, list[np.ndarray]]]) -> Change:
    """Change folds, by the order (m,) and by training rows (F, m') and held-out rows as they are."""
    return around(lambda folds, order, n, rng: change(order, *folds(order, n, rng)))


def choosing(change: Callable[[np.ndarray], np.ndarray]) -> Change:
    """Change the losses (C, F, G) by which settings are chosen."""
    return around(lambda winners, losses: winners(change(losses)))


def chosen(change: Callable[[np.ndarray], np.ndarray]) -> Change:
    """Change the chosen settings (C,)."""
    return around(lambda winners, losses: change(winners(losses)))


def configured(plan: Plan, section: str, **values: Any) -> Plan:
    """Return a plan with other values in one section of its configuration."""
    changed = replace(getattr(plan.config, section), **values)
    return replace(plan, config=replace(plan.config, **{section: changed}))


def billed(change: Callable[[Bill], Bill]) -> Change:
    """Change the bill that the accessor presents."""
    return around(lambda bill, accessor: change(bill(accessor)))


def row_of(change: Callable[[Plan, dict[str, Any]], dict[str, Any]]) -> Change:
    """Change the row of each repetition in ``runs.csv``."""

    def run(original: Callable[..., list[dict[str, Any]]], plan: Plan, *args: Any, **kwargs: Any) -> Any:
        results = original(plan, *args, **kwargs)
        return [{**result, "run": {**result["run"], **change(plan, result["run"])}} for result in results]

    return around(run)


def of_first(axis: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return what gives all entries along an axis the first one's values."""
    return lambda x: np.broadcast_to(np.take(x, [0], axis=axis), x.shape)


def reporting(change: Callable[[Outcome], Outcome]) -> Change:
    """Change the passes of a repetition from which its results are computed."""
    return around(lambda report, outcome: report(change(outcome)))


def reported(change: Callable[[Outcome], dict[str, Any]]) -> Change:
    """Change the row in ``runs.csv`` that a repetition reports."""

    def report(original: Callable[[Outcome], dict[str, Any]], outcome: Outcome) -> dict[str, Any]:
        result = original(outcome)
        return {**result, "run": {**result["run"], **change(outcome)}}

    return around(report)


def with_last_bill(outcome: Outcome) -> Outcome:
    """Return an outcome whose curve has the bill of the setting that is chosen for the last checkpoint."""
    attributes = outcome.final.attributes.copy()
    attributes[np.arange(len(attributes)), outcome.best_in_final] = attributes[:, outcome.best_in_final[-1]]
    return replace(outcome, final=replace(outcome.final, attributes=attributes))


def seeing_first(outcome: Outcome) -> Outcome:
    """Return an outcome that counts the cells of the setting that is chosen for the first checkpoint."""
    seen = outcome.final.seen
    assert seen is not None
    return replace(outcome, final=replace(outcome.final, seen=lambda setting: seen(outcome.best_in_final[0])))


def rows_of(outcome: Outcome) -> np.ndarray:
    """Return the numbers of a repetition's rows in the set of cells."""
    return outcome.split.first_row + np.arange(len(outcome.split.table.y))


def of_first_radius(tuning: str) -> Change:
    """Give all radii the step sizes that theory prescribes for the first one."""

    def lay_out(original: Callable[..., dict[str, tuple[float, ...]]], config: Config, run: Any) -> Any:
        settings = original(config, run)
        if config.tuning.name != tuning or "B" not in settings:
            return settings
        theory, radii = config.algo.theory, settings["B"]
        scaled = {name for name in settings if name != "B" and not config.algo.in_grid(name).absolute}
        return {
            name: tuple(
                value * theory(run, radii[0])[name] / theory(run, B)[name] if name in scaled else value
                for value, B in zip(values, radii, strict=True)
            )
            for name, values in settings.items()
        }

    return around(lay_out)


def whole_training_part(config: Config, run: Any) -> dict[str, Any]:
    """Return a context of theory for as many examples as there are in the training part."""
    data = load(config.dataset, config.seed, 0, targets=config.algo.predicts)
    return {"run": replace(run, m=split_sizes(config, data)[0])}


def endless(reveal: Callable[..., Any], accessor: Accessor, *args: Any) -> Any:
    """Reveal as if no stream had ended."""
    kept = accessor._running
    accessor._running = None
    try:
        return reveal(accessor, *args)
    finally:
        accessor._running = kept


def charging_missing(charge: Callable[..., Any], accessor: Accessor, position: Any, attributes: Any, drawn: Any) -> Any:
    """Charge for draws that meet no value, too."""
    table = accessor._table
    if table.available is None:
        return charge(accessor, position, attributes, drawn)
    accessor._table = replace(table, available=None)
    try:
        drawn = charge(accessor, position, attributes, drawn)
    finally:
        accessor._table = table
    available = table.available[accessor._rows[accessor._at(position)], attributes]
    return available if drawn is None else drawn & available


def adding_all_draws(reveal: Callable[..., Any], accessor: Accessor, position: Any, attributes: Any, paid: Any) -> Any:
    """Add what each replica draws for itself to the means that centre all of them."""
    values = reveal(accessor, position, attributes, paid)
    if accessor._means:
        rows = accessor._rows[accessor._stream, position][:, None]
        raw = accessor._table.entries(rows, attributes)
        accessor._means.add(raw.transpose(1, 0, 2), attributes.transpose(1, 0, 2))
    return values


def first_draws(attributes: np.ndarray) -> np.ndarray:
    """Return which draws (F, T, n) are the first of their attribute for an example."""
    earlier = np.tril(np.ones((attributes.shape[2],) * 2, dtype=bool), -1)
    return ~((attributes[..., None] == attributes[..., None, :]) & earlier).any(axis=-1)


def learning_from_pilot(split_data: Callable[..., Split], *args: Any) -> Split:
    """Return a split whose pilot is among the other training rows, too."""
    split = split_data(*args)
    return replace(split, order=np.concatenate([split.pilot, split.order]))


def choosing_early(plan: Plan, passes: Sequence[Pass], **_: Any) -> dict[str, Any]:
    """Return passes whose folds end at the first checkpoint, with tuning.at=end."""
    first = (plan.checkpoints[0] - plan.pilot_before_learning,)
    at_end = plan.config.tuning.at == "end"
    return {"passes": [replace(each, checkpoints=first) if at_end and not each.final else each for each in passes]}


def first_settings(plan: Plan, passes: Sequence[Pass], settings: dict[str, np.ndarray], **_: Any) -> dict[str, Any]:
    """Return the first settings of the grid for passes that run the chosen ones."""
    if not all(each.final for each in passes):
        return {}
    return {"settings": {name: np.array(plan.settings[name])[: x.size] for name, x in settings.items()}}


# Outside the protocol


def trusting(content_of: Callable[[object], dict[str, Any] | None], record: object) -> dict[str, Any] | None:
    """Return the content of a record, also if it has no digest."""
    return record if isinstance(record, dict) and KEY not in record else content_of(record)


def counting_plain_mean(ranked: Callable[..., list[Candidate]], *args: Any, **kwargs: Any) -> list[Candidate]:
    """Rank by all means, the plain one among the resampled ones; NaN stays."""
    best, *others = ranked(*args, **kwargs)

    def share(candidate: Candidate, plain: int) -> Candidate:
        return replace(candidate, best_in=(candidate.best_in * RESAMPLES + plain) / (RESAMPLES + 1))

    return [share(best, 1), *(share(candidate, 0) for candidate in others)]


def shared_by_tunings(folder: Callable[..., Path], config: Config, *args: Any) -> Path:
    """Return the folder of a sweep as if nothing were tuned."""
    return folder(replace(config, resolved={**config.resolved, "tuning": {}}), *args)


def at_position(read: Callable[..., Arrays], folder: Path, repetition: int | None = None) -> Arrays:
    """Return the regressors at a position among the finished repetitions."""
    return read(folder, None if repetition is None else sorted(read_models(folder))[repetition])


def knowing(sources: slice) -> Callable[..., Comparison]:
    """Compare as if only some of what computed the results were recorded."""

    def comparing(compare: Callable[..., Comparison], recorded: Computation, again: Computation) -> Comparison:
        return compare(replace(recorded, sources=recorded.sources[sources]), again)

    return comparing


def forgiving(main: Callable[[Sequence[str]], int], argv: Sequence[str]) -> int:
    """Return the exit code without that of failed repetitions."""
    code = main(argv)
    return 0 if code == 1 else code


def as_wide_as_its_rows(by_index: Callable[..., dict[str, Any]], *args: Any) -> dict[str, Any]:
    """Return the columns that are left out, without the indices of those that there are."""
    return {"drop": by_index(*args)["drop"]}
