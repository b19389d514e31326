"""What the mutants of ``mutants.yaml`` change: behaviour that takes more than another expression. See `mutation`."""

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from mutation import Change, around

from budgetreg.data.registry import load
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.ledger import Bill
from budgetreg.protocol.configuration import Config
from budgetreg.protocol.outcome import Outcome
from budgetreg.protocol.passes import Pass
from budgetreg.protocol.plan import Plan, split_sizes
from budgetreg.protocol.split import Split

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

MUTANTS = (
    # Random streams, each of which has its key
    Mutant("split ignores the seed", STREAMS, ignoring("split", "seed"), "seeds share a test part"),
    Mutant("split ignores the repetition", STREAMS, ignoring("split", "repetition"), "one test part passes for many"),
    Mutant("split ignores the data", STREAMS, ignoring("split", "data"), "data sets share a split"),
    Mutant(
        "split depends on the learner",
        STREAMS,
        keyed("split", lambda key: (*key, running().config.algo.name)),
        "learners are compared on other data",
    ),
    Mutant("order ignores the seed", STREAMS, ignoring("order", "seed"), "seeds share an order"),
    Mutant("order ignores the repetition", STREAMS, ignoring("order", "repetition"), "repetitions share their order"),
    Mutant("order ignores the data", STREAMS, ignoring("order", "data"), "data sets share an order"),
    Mutant(
        "order depends on k",
        STREAMS,
        keyed("order", lambda key: (*key, running().config.k)),
        "budgets are compared on other sequences",
    ),
    Mutant(
        "order is that of the file",
        STREAMS,
        permuted("order", lambda rng, train: np.asarray(train)),
        "a sorted file is learned class by class",
    ),
    Mutant("folds ignore the seed", STREAMS, ignoring("folds", "seed"), "seeds share their folds"),
    Mutant("folds ignore the repetition", STREAMS, ignoring("folds", "repetition"), "repetitions share their folds"),
    Mutant("folds ignore the data", STREAMS, ignoring("folds", "data"), "data sets share folds"),
    Mutant(
        "folds depend on the learner",
        STREAMS,
        keyed("folds", lambda key: (*key, running().config.algo.name)),
        "learners are tuned on other data",
    ),
    Mutant("draws ignore the seed", STREAMS, ignoring("draws", "seed"), "another seed repeats the draws"),
    Mutant("draws ignore the data", STREAMS, ignoring("draws", "data"), "data sets share draws"),
    Mutant(
        "draws ignore the learner",
        STREAMS,
        ignoring("draws", "learner"),
        "differences of learners are not those of independent learners",
    ),
    Mutant("draws ignore k", STREAMS, ignoring("draws", "k"), "budgets share draws"),
    Mutant(
        "draws ignore the repetition",
        STREAMS,
        ignoring("draws", "repetition"),
        "bands are too narrow: repetitions share draws",
    ),
    Mutant(
        "draws ignore the stage",
        STREAMS,
        ignoring("draws", "stage"),
        "parameters are chosen for the very draws of the final run",
    ),
    Mutant(
        "all folds share their draws",
        STREAMS,
        keyed("draws", lambda key: (*key[:-1], key[-1].split()[0])),
        "the mean over folds hides one draw's luck",
    ),
    # Who learns, and who is tested on
    Mutant(
        "test error on training rows",
        TEST,
        with_arguments(lambda data, index, **_: {} if is_official() else {"index": others(index, data.y.size)}),
        "the error is that of what was learned from",
    ),
    Mutant(
        "test rows in training",
        STREAMS,
        permuted("split", lambda rng, n: np.concatenate([(rows := rng.permutation(n))[: n // 2], rows[: n - n // 2]])),
        "the test part was learned from",
    ),
    Mutant(
        "test part rounded",
        "protocol:split_sizes",
        around(
            lambda sizes, config, data: (
                sizes(config, data)
                if config.dataset.split == "official"
                else (data.y.size - (n := round(data.y.size * config.dataset.test_fraction)), n)
            )
        ),
        "another split than described",
    ),
    Mutant(
        "official split tested on its training part",
        TEST,
        with_arguments(lambda data, index, **_: {"index": others(index, data.y.size)} if is_official() else {}),
        "the error is that of what was learned from",
    ),
    Mutant(
        "official test rows in training",
        STREAMS,
        permuted("order", lambda rng, train: rng.permutation(train) + (running().n_test if is_official() else 0)),
        "the test part was learned from",
    ),
    Mutant(
        "errors relative to the mean of all targets",
        TEST,
        with_arguments(lambda data, constant=0.0, **_: {"constant": float(data.y.mean()) if constant else 0.0}),
        "the mean predictor knows the test part",
        ("tests/protocol/test_intercept.py",),
    ),
    Mutant(
        "the pilot held out",
        "protocol:split_data",
        around(learning_from_pilot),
        "rows of the pilot are learned from again, and parameters are chosen by them",
        ("tests/protocol/test_pilot.py",),
    ),
    Mutant(
        "test rows in the moments",
        "protocol:second_moments",
        around(lambda moments, table, train: moments(table, np.arange(table.y.size))),
        "draws are guided by the test part",
    ),
    Mutant(
        "moments of the first repetition for all",
        "algorithms:SideInformation.__init__",
        with_arguments(lambda moments=None, **_: {} if moments is None else {"moments": of_first(0)(moments)}),
        "other repetitions' training parts have rows of this test part",
    ),
    Mutant(
        "moments before centring",
        "protocol:second_moments",
        around(lambda moments, table, train: moments(replace(table, shift=None), train)),
        "draws are guided by means that were subtracted",
    ),
    Mutant(
        "test rows in the centre",
        TABLE,
        with_arguments(lambda data, **_: {} if is_official() else {"train": np.arange(data.y.size)}),
        "attributes are centred by the test part",
    ),
    Mutant(
        "official test rows in the centre",
        TABLE,
        with_arguments(lambda data, **_: {"train": np.arange(data.y.size)} if is_official() else {}),
        "attributes are centred by the test part",
    ),
    Mutant(
        "every repetition draws the first one's data",
        "data:load",
        around(
            lambda load, dataset, seed, repetition, **more: load(dataset, seed, 0, **more),
            spare="tests",
        ),
        "one drawn data set passes for many",
    ),
    Mutant(
        "passes read the first repetition's rows",
        "metering:stack",
        around(lambda stack, tables: (stack(tables)[0], [0] * len(tables))),
        "repetitions that advance together learn from one another's data",
    ),
    # How parameters are chosen
    Mutant(
        "held-out rows inside training",
        FOLDS,
        cut(lambda order, training, held_out: (np.stack([order[: training.shape[1]]] * len(training)), held_out)),
        "parameters are chosen by what they were fitted to",
    ),
    Mutant(
        "folds judged by their own training rows",
        FOLDS,
        cut(lambda order, training, held_out: (training, list(training))),
        "parameters are chosen by what they were fitted to",
    ),
    Mutant(
        "folds are every n-th example",
        STREAMS,
        permuted("folds", lambda rng, n: np.arange(n)),
        "the folds are not random",
    ),
    Mutant(
        "folds learn in the order of the file",
        FOLDS,
        cut(lambda order, training, held_out: (np.sort(training, axis=1), held_out)),
        "a sorted file is tuned class by class",
    ),
    Mutant(
        "folds learn from their last examples",
        FOLDS,
        cut(
            lambda order, training, held_out: (
                np.stack([order[~np.isin(order, rows)][-training.shape[1] :] for rows in held_out]),
                held_out,
            )
        ),
        "another fold than described",
    ),
    Mutant("the worst wins", WINNERS, choosing(np.negative), "parameters are the worst of the grid"),
    Mutant(
        "the first fold alone chooses", WINNERS, choosing(lambda loss: loss[:, :1]), "the cross-validation has one fold"
    ),
    Mutant(
        "the worst fold chooses",
        WINNERS,
        choosing(lambda loss: loss.max(axis=1, keepdims=True)),
        "another criterion than described",
    ),
    Mutant(
        "losses averaged over settings",
        WINNERS,
        choosing(lambda loss: loss.mean(axis=2)[:, None, :]),
        "a fold is chosen, not a setting",
    ),
    Mutant(
        "each checkpoint takes the last choice",
        WINNERS,
        chosen(lambda best: np.full(best.shape, best[-1])),
        "tuning.at=each does nothing",
    ),
    Mutant(
        "each checkpoint takes the choice before",
        WINNERS,
        chosen(lambda best: np.concatenate([best[:1], best[:-1]])),
        "choices are one checkpoint late",
    ),
    Mutant(
        "at=end chooses at the first checkpoint",
        ADVANCE,
        with_arguments(choosing_early),
        "parameters are those of the shortest run",
    ),
    Mutant(
        "at=end chooses at each checkpoint",
        RUN,
        around(lambda run, plan, *more: run(configured(plan, "tuning", at="each"), *more)),
        "tuning.at=end does nothing",
    ),
    Mutant(
        "support vectors chosen by squared error",
        "tasks:Regression.held_out",
        around(lambda held_out, task, *rows: held_out(replace(task, delta=None), *rows)),
        "parameters are chosen by another loss",
    ),
    Mutant(
        "the first checkpoint's parameters reported",
        REPORT,
        reporting(lambda outcome: replace(outcome, best=of_first(0)(outcome.best))),
        "p_* are not those of the final error",
    ),
    Mutant(
        "final runs of the first settings",
        ADVANCE,
        with_arguments(first_settings),
        "what was chosen is not what runs",
    ),
    Mutant(
        "errors of the last checkpoint's setting",
        "protocol:_test",
        with_arguments(lambda settings, **_: {"settings": np.full_like(settings, settings[-1])}),
        "the curve's errors and bills are of different settings",
    ),
    Mutant(
        "step sizes in units of the first radius",
        "protocol:lay_out",
        of_first_radius("cv"),
        "a step size is not the multiple that the grid says",
    ),
    Mutant(
        "theory's step size for the first radius",
        "protocol:lay_out",
        of_first_radius("theory"),
        "tuning=theory is not the theorem",
    ),
    Mutant(
        "step sizes for the whole training part",
        "protocol:lay_out",
        with_arguments(whole_training_part),
        "full information runs with the step size of a longer run",
    ),
    Mutant(
        "full information sees all examples",
        "protocol:_checkpoints",
        around(
            lambda checkpoints, rates, *amounts: checkpoints(
                replace(rates, config=replace(rates.config, axis="examples")), *amounts
            )
        ),
        "a comparison at unequal bills",
    ),
    Mutant(
        "both axes count attributes",
        "protocol:_checkpoints",
        around(
            lambda checkpoints, rates, *amounts: checkpoints(
                replace(rates, config=replace(rates.config, axis="attributes")), *amounts
            )
        ),
        "axis=examples does nothing",
    ),
    # The bill
    Mutant(
        "attributes_tuning of one fold",
        REPORT,
        reporting(lambda outcome: replace(outcome, folds=outcome.folds[:1])),
        "tuning looks F times cheaper",
    ),
    Mutant(
        "attributes_tuning with the final run",
        REPORT,
        reporting(lambda outcome: replace(outcome, folds=[*outcome.folds, outcome.final])),
        "the bill of tuning counts what is counted elsewhere",
    ),
    Mutant(
        "cells of the first checkpoint's setting",
        REPORT,
        reporting(seeing_first),
        "what the final run revealed is not that of what was chosen",
        (CELLS,),
    ),
    Mutant(
        "cells of tuning that the final run revealed too",
        REPORT,
        reported(lambda outcome: {"cells_tuning": int(outcome.cells.by_attribute(rows_of(outcome)).sum())}),
        "cells_run and cells_tuning together count cells twice",
        (CELLS,),
    ),
    Mutant(
        "cells of one repetition for another's",
        REPORT,
        reporting(lambda outcome: replace(outcome, split=replace(outcome.split, first_row=0))),
        "repetitions that advance together share the cells that they paid for",
        (CELLS,),
    ),
    Mutant(
        "cells of inner products that were not drawn",
        "metering:RevealLog.note_example",
        with_arguments(lambda **_: {"drawn": None}),
        "tuning looks more expensive than it is",
        (CELLS,),
    ),
    Mutant(
        "curve with the last checkpoint's setting's bill",
        REPORT,
        reporting(with_last_bill),
        "errors stand at another learner's attributes",
    ),
    Mutant(
        "total of another setting",
        REPORT,
        reported(
            lambda outcome: {
                "attributes_total": int(outcome.final.attributes[-1, 0])
                + outcome.plan.pilot_before_learning * outcome.plan.d
            }
        ),
        "the bill is not that of what was chosen",
    ),
    Mutant(
        "attributes_tuning of one setting",
        BILL,
        billed(lambda bill: replace(bill, total=bill.total.max(axis=1, keepdims=True))),
        "tuning looks cheaper by the size of the grid",
    ),
    Mutant(
        "curve with the bill of another setting",
        BILL,
        billed(lambda bill: replace(bill, at={mark: of_first(1)(paid) for mark, paid in bill.at.items()})),
        "errors stand at another learner's attributes",
    ),
    Mutant(
        "largest cost of another setting",
        BILL,
        billed(lambda bill: replace(bill, most=of_first(1)(bill.most))),
        "the bill is not that of what was chosen",
    ),
    Mutant(
        "bill of another stream",
        BILL,
        billed(lambda bill: replace(bill, at={mark: of_first(0)(paid) for mark, paid in bill.at.items()})),
        "the bill is that of a fold or of another repetition",
    ),
    Mutant(
        "mean over the training part",
        RUN,
        row_of(
            lambda plan, row: {
                "attributes_mean": row["attributes_mean"]
                * (plan.checkpoints[-1] - plan.pilot_before_learning)
                / plan.n_train
            }
        ),
        "examples that were not seen make the mean look small",
    ),
    Mutant(
        "checkpoint billed one example short",
        CLOSE,
        rewrite("self._spent[:, :_1]", "self._spent[:, :_1 - 1]"),
        "attributes are those before the last example",
    ),
    Mutant(
        "checkpoint billed within its block",
        CLOSE,
        rewrite("self._at[_1] = self._total + _2", "self._at[_1] = _2"),
        "attributes start again from 0 with each block",
    ),
    Mutant(
        "total of the last block",
        CLOSE,
        rewrite("self._total = self._total + _1", "self._total = 0 * self._total + _1"),
        "attributes start again from 0 with each block",
    ),
    Mutant(
        "largest cost of the last block",
        CLOSE,
        rewrite("self._most = np.maximum(self._most, _1)", "self._most = _1"),
        "an overspend could hide in an earlier block",
    ),
    Mutant(
        "repeated draws are free",
        "metering:Ledger.note_block",
        with_arguments(lambda attributes, drawn=None, **_: {"drawn": first_draws(attributes)} if drawn is None else {}),
        "a draw costs 1 even if it repeats an attribute",
    ),
    Mutant(
        "no budget is enforced",
        "metering:Ledger.__init__",
        with_arguments(lambda **_: {"budget": None}),
        "a learner may overspend",
        (ACCESSOR,),
    ),
    Mutant(
        "the budget holds on the mean only",
        "metering:Ledger.charge",
        rewrite("_1.max() > _2", "_1.mean() > _2"),
        "one example may be overspent",
        (ACCESSOR,),
    ),
    Mutant("ended streams pay for data points", "metering:Accessor.reveal_block", around(endless), NOT_EXAMPLES),
    Mutant(
        "ended streams pay for inner products",
        "metering:Accessor.reveal",
        around(endless),
        NOT_EXAMPLES,
        (ACCESSOR,),
    ),
    Mutant(
        "ended streams pay for what they draw on average",
        "metering:Accessor.reveal_some",
        around(endless),
        NOT_EXAMPLES,
    ),
    Mutant("ended streams pay for what is passed over", "metering:Accessor.pay", around(endless), NOT_EXAMPLES),
    Mutant(
        "draws that change nothing are free",
        "metering:Accessor.pay",
        around(lambda pay, accessor, draws: pay(accessor, 0 * draws)),
        "sparse data look cheaper than they are",
    ),
    # Errors and origins
    Mutant(
        "relative to the training mean square",
        ERRORS,
        rewrite(
            "np.square(y - self.constant).mean()", "np.square(np.delete(table.y, self.index) - self.constant).mean()"
        ),
        "1 is not the zero predictor's error",
    ),
    Mutant(
        "relative to the variance",
        ERRORS,
        rewrite("np.square(y - self.constant).mean()", "y.var()"),
        "1 is not the zero predictor's error",
    ),
    Mutant(
        "rate of signs that are right",
        ERRORS,
        rewrite("np.sign(_1) != _2", "np.sign(_1) == _2"),
        "the error rate is the accuracy",
    ),
    Mutant(
        "held-out loss without its tube",
        "tasks:mean_loss",
        with_arguments(lambda delta=None, **_: {} if delta is None else {"delta": 0.0}),
        "support vectors are chosen by absolute error",
        ("tests/learners/test_aesvr.py",),
    ),
    Mutant(
        "test loss without its tube",
        ERRORS,
        rewrite("np.abs(_1) - self.delta", "np.abs(_1)"),
        "test_svr_loss is the absolute error",
    ),
    Mutant(
        "judged without the origin that was learned with",
        "metering:Table.shifted",
        around(lambda shifted, table, shift: table),
        "a regressor is applied to other attributes than its own",
    ),
    Mutant(
        "revealed centring by the current block",
        "metering:RunningMeans.centred",
        rewrite("_, means = self._held[-1]", "means = self._sum / np.maximum(self._count, 1)"),
        "an example shifts its own origin, and estimates are biased",
    ),
    Mutant(
        "revealed centring by all draws",
        "metering:Accessor.reveal",
        around(adding_all_draws),
        "candidates of a grid shift one another's origin",
    ),
    Mutant(
        "judged by the origin of another stream",
        "metering:Accessor.origins",
        around(lambda origins, accessor, examples: [origins(accessor, examples)[0]] * accessor.n_streams),
        "a regressor is applied to other attributes than its own",
    ),
    Mutant(
        "output one step late",
        "algorithms:Averager.observe",
        rewrite("output = running_sum() / mark", "output = (running_sum() + iterate()) / (mark + 1)"),
        "the last iterate counts twice",
    ),
    Mutant(
        "average of the first half",
        "algorithms:Averager.observe",
        rewrite("output = (running_sum() - self._sums[half]) / (mark - half)", "output = self._sums[half] / half"),
        "algo.average=suffix is the wrong half",
    ),
    # Two phases
    Mutant(
        "attributes never drawn have moment 0",
        "algorithms.kukliansky_shamir_2015:MomentEstimates.means",
        rewrite("np.where(_1, _2, _3)", "_2"),
        "an attribute that chance has left out is hardly drawn again",
    ),
    Mutant(
        "the first phase is one example longer",
        "algorithms.learner:first_phase",
        around(lambda first_phase, share, m: first_phase(share, m) + 1, spare="tests"),
        "another first phase than described",
    ),
    Mutant(
        "the second phase starts from 0",
        "algorithms:ScaledRegressors.__init__",
        with_arguments(lambda start=None, **_: {} if start is None else {"start": 0 * start}),
        "what was paid for in the first phase is thrown away",
    ),
    # Missing values
    Mutant(
        "draws pay for what is missing",
        "metering:Accessor._charge",
        around(charging_missing),
        "the bill has cells that nobody can buy",
        (MISSING,),
    ),
    Mutant(
        "a missing value counts as 0 in the means",
        "metering:RunningMeans.add",
        with_arguments(
            lambda values, drawn=None, **_: {"values": values if drawn is None else values * drawn, "drawn": None}
        ),
        "the origin is drawn towards 0, the more so the more is missing",
        (MISSING,),
    ),
    Mutant(
        "values as if missing independently",
        "metering:Accessor.together",
        around(
            lambda together, accessor, streams, i, j: (
                together(accessor, streams, i, j)
                if i is j
                else together(accessor, streams, i, i) * together(accessor, streams, j, j)
            )
        ),
        "gradients are biased, the squares of an attribute most of all",
        (MISSING,),
    ),
    Mutant(
        "the pilot from the first complete rows",
        "protocol:_pilot_first",
        rewrite("generator(_1, _2, _3, _4).permutation(complete)[:n]", "order[data.complete[order]][:n]"),
        "what follows has fewer complete rows at its beginning than the shares say",
        (MISSING_RUNS,),
    ),
    Mutant(
        "the pilot among those that are counted",
        "protocol:split_data",
        rewrite("np.setdiff1d(train, pilot)", "train"),
        "shares are of rows that were chosen for missing nothing",
        (MISSING_RUNS,),
    ),
    Mutant(
        "incomplete rows are paid for as if seen in full",
        REPORT,
        reported(lambda outcome: {"rows_full": outcome.split.order.size if outcome.plan.tuned else 0}),
        "axis=paid counts held-out rows that nobody was judged on",
        (MISSING_RUNS,),
    ),
    Mutant(
        "judged on what is missing",
        "protocol:complete_rows",
        around(
            lambda complete_rows, complete, rows, part, remedy: (
                rows if part.startswith("fold") else complete_rows(complete, rows, part, remedy)
            )
        ),
        "parameters are chosen by what happens to be stored where nothing is",
        (MISSING_RUNS,),
    ),
)
