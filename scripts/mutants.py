"""Break the protocol in one place at a time, and see the tests notice: ``python scripts/mutants.py [NAME ...] [-j N]``.

Each mutant is a copy of the package with one text replaced by another. The literal test of the protocol, and what a
mutant names besides, is run on it; a mutant on which all pass has survived, and is an error, as is a text that does not
occur exactly once any more. First of all the tests have to pass on a copy without any change.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
LITERAL = "tests/protocol/test_literal_protocol.py"
COPIED = ("budgetreg", "conf", "experiments", "tests", "pyproject.toml")
SECONDS = 300.0
"""A mutant whose tests take longer has been noticed, too."""

REPETITIONS = "budgetreg/protocol/repetitions.py"
PASSES = "budgetreg/protocol/passes.py"
TUNING = "budgetreg/protocol/tuning.py"
PLAN = "budgetreg/protocol/plan.py"
SPENDING = "budgetreg/protocol/spending.py"
GRIDS = "budgetreg/protocol/grids.py"
SIDE = "budgetreg/protocol/side_information.py"
ACCESSOR = "budgetreg/metering/accessor.py"
MEANS = "budgetreg/metering/centring.py"
JUDGE = "budgetreg/tasks/regression.py"
ERRORS = "budgetreg/tasks/regressors.py"
AVERAGING = "budgetreg/updates/averaging.py"
PARTIAL = "budgetreg/learners/partial/core.py"
TWO_PHASE = "budgetreg/learners/two_phase/core.py"

MISSING = "tests/learners/test_missing.py"


@dataclass(frozen=True)
class Mutant:
    """One change that makes the protocol another one.

    Attributes
    ----------
    name : str
        What is wrong with it, in a few words.
    file : str
        Which file is changed.
    before, after : str
        What is replaced, and by what.
    why : str
        What a reader of the results would be told wrongly.
    tests : tuple of str
        Tests that are run besides the literal one, where a run that is not refused cannot show the difference.
    """

    name: str
    file: str
    before: str
    after: str
    why: str
    tests: tuple[str, ...] = ()


SPLIT = 'generator("split", config.seed, data.name, repetition)'
ORDER = 'generator("order", config.seed, data.name, repetition)'
FOLDS = 'generator("folds", config.seed, plan.dataset, split.repetition)'
DRAWS = '("draws", config.seed, plan.dataset, config.algo.name, config.k)'
STAGE = "generator(*identity, one.repetition, one.stage)"

MUTANTS = (
    # Streams, each of which has its key
    Mutant("split ignores the seed", REPETITIONS, SPLIT, SPLIT.replace("config.seed", "0"), "seeds share a test part"),
    Mutant(
        "split ignores the repetition",
        REPETITIONS,
        SPLIT,
        SPLIT.replace("repetition", "0"),
        "one test part passes for many",
    ),
    Mutant("split ignores the data", REPETITIONS, SPLIT, SPLIT.replace("data.name", '""'), "data sets share a split"),
    Mutant(
        "split depends on the learner",
        REPETITIONS,
        SPLIT,
        SPLIT.replace("repetition)", "repetition, config.algo.name)"),
        "learners are compared on other data",
    ),
    Mutant("order ignores the seed", REPETITIONS, ORDER, ORDER.replace("config.seed", "0"), "seeds share an order"),
    Mutant(
        "order ignores the repetition",
        REPETITIONS,
        ORDER,
        ORDER.replace("repetition", "0"),
        "repetitions share their order",
    ),
    Mutant("order ignores the data", REPETITIONS, ORDER, ORDER.replace("data.name", '""'), "data sets share an order"),
    Mutant(
        "order depends on k",
        REPETITIONS,
        ORDER,
        ORDER.replace("repetition)", "repetition, config.k)"),
        "budgets are compared on other sequences",
    ),
    Mutant(
        "order is that of the file",
        REPETITIONS,
        f"order = {ORDER}.permutation(train)",
        "order = train",
        "a sorted file is learned class by class",
    ),
    Mutant("folds ignore the seed", REPETITIONS, FOLDS, FOLDS.replace("config.seed", "0"), "seeds share their folds"),
    Mutant(
        "folds ignore the repetition",
        REPETITIONS,
        FOLDS,
        FOLDS.replace("split.repetition", "0"),
        "repetitions share their folds",
    ),
    Mutant("folds ignore the data", REPETITIONS, FOLDS, FOLDS.replace("plan.dataset", '""'), "data sets share folds"),
    Mutant(
        "folds depend on the learner",
        REPETITIONS,
        FOLDS,
        FOLDS.replace("repetition)", "repetition, config.algo.name)"),
        "learners are tuned on other data",
    ),
    Mutant("draws ignore the seed", PASSES, DRAWS, DRAWS.replace("config.seed", "0"), "another seed repeats the draws"),
    Mutant("draws ignore the data", PASSES, DRAWS, DRAWS.replace("plan.dataset", '""'), "data sets share draws"),
    Mutant(
        "draws ignore the learner",
        PASSES,
        DRAWS,
        DRAWS.replace("config.algo.name", '""'),
        "differences of learners are not what independent ones' are",
    ),
    Mutant("draws ignore k", PASSES, DRAWS, DRAWS.replace("config.k", "0"), "budgets share draws"),
    Mutant(
        "draws ignore the repetition",
        PASSES,
        STAGE,
        STAGE.replace("one.repetition", "0"),
        "bands are too narrow: repetitions share draws",
    ),
    Mutant(
        "draws ignore the stage",
        PASSES,
        STAGE,
        STAGE.replace("one.stage", '""'),
        "parameters are chosen for the very draws of the final run",
    ),
    Mutant(
        "draws of all folds are one",
        PASSES,
        STAGE,
        STAGE.replace("one.stage", "one.stage.split()[0]"),
        "the mean over folds hides one draw's luck",
    ),
    # Who learns, who is tested on
    Mutant(
        "test error on training rows",
        REPETITIONS,
        "judge = task.test(data, table, test, constant)",
        "judge = task.test(data, table, train, constant)",
        "the error is that of what was learned from",
    ),
    Mutant(
        "test rows in training",
        REPETITIONS,
        "train, test = np.sort(shuffled[plan.n_test :])",
        "train, test = np.sort(shuffled[: plan.n_train])",
        "the test part was learned from",
    ),
    Mutant(
        "test part rounded",
        PLAN,
        "n_test = int(n * config.dataset.test_fraction)",
        "n_test = round(n * config.dataset.test_fraction)",
        "another split than described",
    ),
    Mutant(
        "official split tested on its training part",
        REPETITIONS,
        "task.test(data, table, np.arange(n_train, data.y.size), constant)",
        "task.test(data, table, np.arange(n_train), constant)",
        "the error is that of what was learned from",
    ),
    Mutant(
        "official split swapped",
        REPETITIONS,
        "train, test = np.arange(plan.n_train), ",
        "train, test = np.arange(data.y.size - plan.n_train, data.y.size), ",
        "the test part was learned from",
    ),
    Mutant(
        "errors relative to the mean of all targets",
        REPETITIONS,
        "float(data.y[train].mean()) if plan.intercept else 0.0",
        "float(data.y.mean()) if plan.intercept else 0.0",
        "the mean predictor knows the test part",
        ("tests/protocol/test_intercept.py",),
    ),
    Mutant(
        "the pilot held out",
        REPETITIONS,
        "pilot, order = order[: plan.pilot], order[plan.pilot :]",
        "pilot = order[: plan.pilot]",
        "rows of the pilot are learned from again, and chosen by",
        ("tests/protocol/test_pilot.py",),
    ),
    Mutant(
        "test rows in the moments",
        REPETITIONS,
        "second_moments(table, train)",
        "second_moments(table, np.arange(data.y.size))",
        "draws are guided by the test part",
    ),
    Mutant(
        "moments of the first repetition for all",
        PASSES,
        "np.stack(known) if known",
        "np.stack(known[:1] * len(known)) if known",
        "other repetitions' training parts have rows of this test part",
    ),
    Mutant(
        "moments before centring",
        REPETITIONS,
        "second_moments(table, train)",
        "second_moments(Table(data.X, data.y, data.scale), train)",
        "draws are guided by means that were subtracted",
    ),
    Mutant(
        "test rows in the centre",
        REPETITIONS,
        "table_of(config.dataset.center, data, train, ",
        "table_of(config.dataset.center, data, np.arange(data.y.size), ",
        "attributes are centred by the test part",
    ),
    Mutant(
        "official test rows in the centre",
        REPETITIONS,
        "table_of(center, data, np.arange(n_train))",
        "table_of(center, data, np.arange(data.y.size))",
        "attributes are centred by the test part",
    ),
    Mutant(
        "every repetition draws the first one's data",
        REPETITIONS,
        "load(config.dataset, config.seed, repetition, ",
        "load(config.dataset, config.seed, 0, ",
        "one drawn data set passes for many",
    ),
    Mutant(
        "passes read the first repetition's rows",
        REPETITIONS,
        "order=rows + offset",
        "order=rows",
        "repetitions that advance together learn from one another's data",
    ),
    # Choosing parameters
    Mutant(
        "held-out rows inside training",
        TUNING,
        "order[fold != f][:length]",
        "order[:length]",
        "parameters are chosen by what they were fitted to",
    ),
    Mutant(
        "folds judged by their own training rows",
        TUNING,
        "[order[fold == f] for f in range(n_folds)]",
        "[order[fold != f] for f in range(n_folds)]",
        "parameters are chosen by what they were fitted to",
    ),
    Mutant(
        "folds are every n-th example",
        TUNING,
        "rng.permutation(order.size) % n_folds",
        "np.arange(order.size) % n_folds",
        "the folds are not random",
    ),
    Mutant(
        "folds learn in the order of the file",
        TUNING,
        "order[fold != f][:length]",
        "np.sort(order[fold != f])[:length]",
        "a sorted file is tuned class by class",
    ),
    Mutant(
        "folds learn from their last examples",
        TUNING,
        "order[fold != f][:length]",
        "order[fold != f][-length:]",
        "another fold than described",
    ),
    Mutant("the worst wins", TUNING, ".argmin(axis=1)", ".argmax(axis=1)", "parameters are the worst of the grid"),
    Mutant(
        "the first fold alone chooses",
        TUNING,
        "losses.mean(axis=1)",
        "losses[:, 0]",
        "the cross-validation has one fold",
    ),
    Mutant(
        "the worst fold chooses",
        TUNING,
        "losses.mean(axis=1)",
        "losses.max(axis=1)",
        "another criterion than described",
    ),
    Mutant(
        "losses averaged over settings",
        TUNING,
        "losses.mean(axis=1)",
        "losses.mean(axis=2)",
        "a fold is chosen, not a setting",
    ),
    Mutant(
        "each checkpoint takes the last choice",
        REPETITIONS,
        "best[np.searchsorted(at, np.minimum(np.array(plan.checkpoints) - plan.lead, at[-1]))]",
        "best[np.full(len(plan.checkpoints), -1)]",
        "tuning.at=each does nothing",
    ),
    Mutant(
        "each checkpoint takes the choice before",
        REPETITIONS,
        "best[np.searchsorted(at, np.minimum(np.array(plan.checkpoints) - plan.lead, at[-1]))]",
        "best[np.maximum(np.searchsorted(at, np.minimum(np.array(plan.checkpoints) - plan.lead, at[-1])) - 1, 0)]",
        "choices are one checkpoint late",
    ),
    Mutant(
        "at=end chooses at the first checkpoint",
        REPETITIONS,
        "else plan.checkpoints[-1:]",
        "else plan.checkpoints[:1]",
        "parameters are those of the shortest run",
    ),
    Mutant(
        "at=end chooses at each checkpoint",
        REPETITIONS,
        'if config.tuning.at == "each" else plan.checkpoints[-1:]',
        "if config.tuning.at else plan.checkpoints[-1:]",
        "tuning.at=end does nothing",
    ),
    Mutant(
        "support vectors chosen by squared error",
        JUDGE,
        "if self.delta is None:",
        "if self.delta is None or self.delta > 0:",
        "parameters are chosen by another loss",
    ),
    Mutant(
        "the first checkpoint's parameters reported",
        REPETITIONS,
        "_run_row(plan, best[i, -1]",
        "_run_row(plan, best[i, 0]",
        "p_* are not those of the final error",
    ),
    Mutant(
        "final runs of the first settings",
        REPETITIONS,
        "values[chosen] for name",
        "values[: chosen.size] for name",
        "what was chosen is not what runs",
    ),
    Mutant(
        "errors of the last checkpoint's setting",
        REPETITIONS,
        "split.judge.columns(outputs, setting, origin)",
        "split.judge.columns(outputs, int(place[-1]), origin)",
        "the curve's errors and bills are of different settings",
    ),
    Mutant(
        "step sizes in units of the first radius",
        GRIDS,
        "v * units[B][name]",
        "v * units[radii[0]][name]",
        "a step size is not the multiple that the grid says",
    ),
    Mutant(
        "theory's step size for the first radius",
        GRIDS,
        "prescribed[B][name]",
        "prescribed[radii[0]][name]",
        "tuning=theory is not the theorem",
    ),
    Mutant(
        "step sizes for the whole training part",
        PLAN,
        "_run_context(config, data, budget_split, checkpoints[-1] - lead, prices)",
        "_run_context(config, data, budget_split, n_train - lead, prices)",
        "full information runs with the step size of a longer run",
    ),
    Mutant(
        "full information sees all examples",
        SPENDING,
        'config.k if config.axis == "examples" else self.per_example',
        "config.k",
        "a comparison at unequal bills",
    ),
    Mutant(
        "both axes count attributes",
        SPENDING,
        'config.k if config.axis == "examples" else self.per_example',
        "self.per_example",
        "axis=examples does nothing",
    ),
    # The bill
    Mutant(
        "attributes_tuning of one fold",
        REPETITIONS,
        "sum(one.paid for one in tried[i])",
        "sum(one.paid for one in tried[i][:1])",
        "tuning looks F times cheaper",
    ),
    Mutant(
        "attributes_tuning of one setting",
        PASSES,
        "int(bill.total[s].sum())",
        "int(bill.total[s].max())",
        "tuning looks cheaper by the size of the grid",
    ),
    Mutant(
        "attributes_tuning with the final run",
        REPETITIONS,
        "sum(one.paid for one in tried[i])",
        "sum(one.paid for one in [*tried[i], finals[i]])",
        "the bill of tuning counts what is counted elsewhere",
    ),
    Mutant(
        "cells of the first checkpoint's setting",
        REPETITIONS,
        "finals[i].seen(among[i, -1])",
        "finals[i].seen(among[i, 0])",
        "what the final run revealed is not that of what was chosen",
        ("tests/protocol/test_cells.py",),
    ),
    Mutant(
        "cells of tuning that the final run revealed too",
        REPETITIONS,
        "- both",
        "- 0 * both",
        "cells_run and cells_tuning together count cells twice",
        ("tests/protocol/test_cells.py",),
    ),
    Mutant(
        "cells of one repetition for another's",
        REPETITIONS,
        "offset=first - offset",
        "offset=-offset",
        "repetitions that advance together share the cells that they paid for",
        ("tests/protocol/test_cells.py",),
    ),
    Mutant(
        "cells of inner products that were not drawn",
        "budgetreg/metering/cells.py",
        "cells = np.where(drawn[..., :together, :], cells, self._cells.nowhere)",
        "pass",
        "tuning looks dearer than it is",
        ("tests/protocol/test_cells.py",),
    ),
    Mutant(
        "curve with the bill of another setting",
        REPETITIONS,
        "final.attributes[np.arange(len(place)), place]",
        "final.attributes[np.arange(len(place)), 0]",
        "errors stand at another learner's attributes",
    ),
    Mutant(
        "curve with the last checkpoint's setting's bill",
        REPETITIONS,
        "final.attributes[np.arange(len(place)), place]",
        "final.attributes[:, place[-1]]",
        "errors stand at another learner's attributes",
    ),
    Mutant(
        "total of another setting",
        REPETITIONS,
        "final.attributes[-1, place[-1]]",
        "final.attributes[-1, 0]",
        "the bill is not that of what was chosen",
    ),
    Mutant(
        "largest cost of another setting",
        REPETITIONS,
        "final.most[place].max()",
        "final.most[0].max()",
        "the bill is not that of what was chosen",
    ),
    Mutant(
        "bill of another stream",
        PASSES,
        "bill.at[checkpoint][s] for",
        "bill.at[checkpoint][0] for",
        "the bill is that of a fold or of another repetition",
    ),
    Mutant(
        "mean over the training part",
        REPETITIONS,
        "after / (plan.checkpoints[-1] - plan.lead)",
        "after / plan.n_train",
        "examples that were not seen make the mean look small",
    ),
    Mutant(
        "checkpoint billed one example short",
        ACCESSOR,
        "self._spent[:, : checkpoint - self._start]",
        "self._spent[:, : checkpoint - self._start - 1]",
        "attributes are those before the last example",
    ),
    Mutant(
        "checkpoint billed within its block",
        ACCESSOR,
        "self._at[checkpoint] = self._total + within",
        "self._at[checkpoint] = within",
        "attributes begin anew with each block",
    ),
    Mutant(
        "total of the last block",
        ACCESSOR,
        "self._total = self._total + self._spent",
        "self._total = 0 * self._total + self._spent",
        "attributes begin anew with each block",
    ),
    Mutant(
        "largest cost of the last block",
        ACCESSOR,
        "np.maximum(self._most, self._spent.max(axis=1))",
        "self._spent.max(axis=1)",
        "an overspend could hide in an earlier block",
    ),
    Mutant(
        "repeated draws are free",
        ACCESSOR,
        "draws = attributes.shape[-1] if drawn is None else",
        "draws = 1 + (np.diff(np.sort(attributes)) != 0).sum(axis=2)[:, :, None] if drawn is None else",
        "a draw costs 1 even if it repeats an attribute",
    ),
    Mutant(
        "no budget is enforced",
        ACCESSOR,
        "charged.max() > self.budget",
        "charged.max() > np.inf",
        "a learner may overspend",
        ("tests/metering/test_accessor.py",),
    ),
    Mutant(
        "the budget holds on the mean only",
        ACCESSOR,
        "charged.max() > self.budget",
        "charged.mean() > self.budget",
        "one example may be overspent",
        ("tests/metering/test_accessor.py",),
    ),
    Mutant(
        "ended streams pay for data points",
        ACCESSOR,
        "drawn = np.broadcast_to(~self._ended[:, :, None], attributes.shape)",
        "drawn = np.broadcast_to(True, attributes.shape)",
        "folds are billed for examples that they do not have",
    ),
    Mutant(
        "ended streams pay for inner products",
        ACCESSOR,
        "paid = paid & ~self._ended[self._stream, position][:, None]",
        "paid = paid.copy()",
        "folds are billed for examples that they do not have",
        ("tests/metering/test_accessor.py",),
    ),
    Mutant(
        "ended streams pay for what they draw on average",
        ACCESSOR,
        "drawn = drawn & ~self._ended[:, position, None, None]",
        "drawn = drawn.copy()",
        "folds are billed for examples that they do not have",
    ),
    Mutant(
        "ended streams pay for what is passed over",
        ACCESSOR,
        "np.where(self._ended[:, :, None], 0, draws)",
        "draws",
        "folds are billed for examples that they do not have",
    ),
    Mutant(
        "draws that change nothing are free",
        PARTIAL,
        "self._accessor.pay(self._shape[2] * self._alive(alive))",
        "self._accessor.pay(0 * self._alive(alive))",
        "sparse data look cheaper than they are",
    ),
    # Errors and zeros
    Mutant(
        "relative to the training mean square",
        ERRORS,
        "float(np.square(y - constant).mean())",
        "float(np.square(np.delete(table.y, index) - constant).mean())",
        "1 is not the zero predictor's error",
    ),
    Mutant(
        "relative to the variance",
        ERRORS,
        "float(np.square(y - constant).mean())",
        "float(y.var())",
        "1 is not the zero predictor's error",
    ),
    Mutant(
        "rate of signs that are right",
        ERRORS,
        "np.sign(predictions) != y",
        "np.sign(predictions) == y",
        "the error rate is the accuracy",
    ),
    Mutant(
        "held-out loss without its tube",
        ERRORS,
        "table.y[rows, None]) - delta, 0)",
        "table.y[rows, None]), 0)",
        "support vectors are chosen by absolute error",
        ("tests/learners/test_aesvr.py",),
    ),
    Mutant(
        "test loss without its tube",
        ERRORS,
        "np.abs(predictions - y) - delta, 0)",
        "np.abs(predictions - y), 0)",
        "test_svr_loss is the absolute error",
    ),
    Mutant(
        "judged without the zero that was learned with",
        JUDGE,
        "return table if origin.shift is None else table.shifted(origin.shift)",
        "return table",
        "a regressor is applied to other attributes than its own",
    ),
    Mutant(
        "revealed centring by the current block",
        MEANS,
        "_, means = self._held[-1]\n        return values",
        "means = self._sum / np.maximum(self._count, 1)\n        return values",
        "an example shifts its own zero, and estimates are biased",
    ),
    Mutant(
        "revealed centring by all draws",
        ACCESSOR,
        "values = self._means.centred(values, self._stream[:, None], attributes)",
        "self._means.add(values.transpose(1, 0, 2), attributes.transpose(1, 0, 2))\n"
        "            values = self._means.centred(values, self._stream[:, None], attributes)",
        "candidates of a grid shift one another's zero",
    ),
    Mutant(
        "judged by the zero of another stream",
        PASSES,
        "keep[s](outputs[s], origins[s])",
        "keep[s](outputs[s], origins[0])",
        "a regressor is applied to other attributes than its own",
    ),
    Mutant(
        "output one step late",
        AVERAGING,
        "output = running_sum() / mark",
        "output = (running_sum() + iterate()) / (mark + 1)",
        "the last iterate counts twice",
    ),
    Mutant(
        "average of the first half",
        AVERAGING,
        "output = (running_sum() - self._sums[half]) / (mark - half)",
        "output = self._sums[half] / half",
        "algo.average=suffix is the wrong half",
    ),
    # Two phases
    Mutant(
        "what was never drawn is 0",
        TWO_PHASE,
        "return np.where(known, A, typical)",
        "return A",
        "an attribute that chance has left out is hardly drawn again",
    ),
    Mutant(
        "the first phase is one example longer",
        TWO_PHASE,
        "m_1 = first_phase(phase_one, m)",
        "m_1 = first_phase(phase_one, m) + 1",
        "another first phase than described",
    ),
    Mutant(
        "the second phase starts from 0",
        TWO_PHASE,
        "start=start, **options)",
        "start=0 * start, **options)",
        "what was paid for in the first phase is thrown away",
    ),
    # Values that are missing
    Mutant(
        "draws pay for what is missing",
        ACCESSOR,
        "self._charge((self._stream, position), np.count_nonzero(own, axis=0))",
        "self._charge((self._stream, position), n * paid)",
        "cells that nobody can buy are on the bill",
        (MISSING,),
    ),
    Mutant(
        "what is missing counts as a value of 0",
        MEANS,
        "np.ones(values.shape) if there is None else there",
        "np.ones(values.shape)",
        "zero is drawn towards 0, the more so the more is missing",
        (MISSING,),
    ),
    Mutant(
        "values as if missing independently",
        PARTIAL,
        "accessor.together(stream[:, None], i[:, None], j[:, stream])",
        "accessor.together(stream, i, i)[:, None] * accessor.together(stream[:, None], j[:, stream], j[:, stream])",
        "gradients are biased, the squares of an attribute most of all",
        (MISSING,),
    ),
    Mutant(
        "the pilot from the first complete rows",
        REPETITIONS,
        'generator("pilot", seed, data.name, repetition).permutation(complete)[:n]',
        "order[data.complete[order]][:n]",
        "what follows has fewer complete rows at its beginning than the shares say",
        ("tests/protocol/test_missing.py",),
    ),
    Mutant(
        "the pilot among those that are counted",
        SIDE,
        "train if pilot is None else np.setdiff1d(train, pilot)",
        "train",
        "shares are of rows that were chosen for missing nothing",
        ("tests/protocol/test_missing.py",),
    ),
    Mutant(
        "incomplete rows are paid for as if seen in full",
        REPETITIONS,
        "int(np.count_nonzero(place.split.complete[place.split.order])) if plan.tuned",
        "place.split.order.size if plan.tuned",
        "axis=paid counts held-out rows that nobody was judged on",
        ("tests/protocol/test_missing.py",),
    ),
    Mutant(
        "judged on what is missing",
        REPETITIONS,
        'rows = _judged(split.complete, rows, whose, "fewer tuning.folds")',
        "pass",
        "parameters are chosen by what happens to be stored where nothing is",
        ("tests/protocol/test_missing.py",),
    ),
)


def mutated(mutant: Mutant, root: Path = ROOT) -> str:
    """Return the file of a mutant.

    Raises
    ------
    ValueError
        If what is to be replaced does not occur exactly once.
    """
    text = (root / mutant.file).read_text(encoding="utf-8")
    times = text.count(mutant.before)
    if times != 1:
        raise ValueError(f"{mutant.name}: {mutant.file} has {times} times, not once, {mutant.before!r}")
    return text.replace(mutant.before, mutant.after)


def copied(folder: Path) -> Path:
    """Copy what tests need into a folder."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, folder / name)
    return folder


def failed(folder: Path, tests: Sequence[str]) -> str:
    """Run tests on a copy; return the first one that fails, ``(time limit)``, or nothing if all pass.

    Raises
    ------
    RuntimeError
        If they could not be run at all.
    """
    # No bytecode is kept: a file that is changed within a second and keeps its size would not be noticed.
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider", *tests]
    try:
        run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "(time limit)"
    if run.returncode == 0:
        return ""
    found = re.search(r"^FAILED (\S+)", run.stdout, re.MULTILINE)
    if run.returncode != 1 or not found:
        raise RuntimeError(f"{' '.join(tests)} could not be run:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
    return found[1]


def killed_by(mutant: Mutant, folder: Path) -> str:
    """Return the test that notices a mutant in a copy, or nothing; the copy is left as it was."""
    path = folder / mutant.file
    original = path.read_bytes()
    path.write_text(mutated(mutant, folder), encoding="utf-8")
    try:
        return failed(folder, [LITERAL]) or (failed(folder, mutant.tests) if mutant.tests else "")
    finally:
        path.write_bytes(original)


def score(mutants: Sequence[Mutant], jobs: int) -> dict[str, str]:
    """Return for each mutant's name the test that notices it, or nothing.

    Raises
    ------
    RuntimeError
        If tests fail where nothing is changed, or cannot be run.
    """
    tests = [LITERAL, *sorted({test for mutant in mutants for test in mutant.tests})]
    with tempfile.TemporaryDirectory(prefix="mutants-") as temporary:
        folders: SimpleQueue[Path] = SimpleQueue()
        for job in range(jobs):
            folders.put(copied(Path(temporary) / str(job)))
        if broken := failed(Path(temporary) / "0", tests):
            raise RuntimeError(f"{broken} fails on the package as it is")

        def tried(mutant: Mutant) -> tuple[str, str]:
            folder = folders.get()
            try:
                return mutant.name, killed_by(mutant, folder)
            finally:
                folders.put(folder)

        with Progress(console=Console(stderr=True), transient=True) as progress, ThreadPoolExecutor(jobs) as threads:
            return dict(progress.track(threads.map(tried, mutants), len(mutants), description="mutants"))


def called(test: str) -> str:
    """Return the name of a test, or of the case of the literal one, to be printed."""
    name = test.rpartition("::")[2]
    return escape(f"literal{name[name.find('[') :]}" if test.startswith(LITERAL) and "[" in name else name)


def main() -> int:
    """Try the mutants that are named, or all, and print what became of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="words of the names of those to be tried (all)")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="mutants tried side by side (%(default)s)")
    arguments = parser.parse_args()
    mutants = [m for m in MUTANTS if not arguments.names or any(word in m.name for word in arguments.names)]
    if not mutants:
        parser.error(f"no mutant's name has any of {', '.join(arguments.names)}")
    try:
        for mutant in mutants:
            mutated(mutant)
        killers = score(mutants, max(1, arguments.jobs))
    except (ValueError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 1
    table = Table("mutant", "in", "what it would tell wrongly", "noticed by")
    for mutant in mutants:
        killer = killers[mutant.name]
        place = mutant.file.removeprefix("budgetreg/")
        table.add_row(mutant.name, place, mutant.why, called(killer) if killer else "[bold red]SURVIVED")
    dead = sum(map(bool, killers.values()))
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(table)
    console.print(f"{dead} of {len(mutants)} mutants are noticed")
    return 0 if dead == len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
