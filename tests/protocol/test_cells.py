"""The cells that tuning and final run reveal equal literal sets of pairs of an example and an attribute."""

from collections import defaultdict

import numpy as np
import pytest

from budgetreg.metering import ledger
from budgetreg.metering.accessor import Accessor
from budgetreg.protocol import passes
from budgetreg.protocol import repetitions as protocol
from tests.plans import planned
from tests.tiers import quick_but, slow_but

COUNTS = ("cells_run", "cells_tuning", "rows_full")
QUICK = ["dataset=diabetes", "k=4", "tuning.folds=3", "repetitions=2", "checkpoints=[40,90,150]"]
STEPS = "algo.grid={B: [1, 3], eta: [1, 10]}"
RADII = "algo.grid={B: [0.3, 1, 3]}"
CASES = {
    "aelr": ["algo=aelr", STEPS],
    "each": [
        "algo=aerr",
        "algo.grid={B: [1, 3], eta: [0.1, 1, 10]}",
        "tuning.at=each",
    ],  # choices differ
    "no-pilot": ["algo=aerr", STEPS, "pilot=0", "dataset.scale=max_abs", "intercept=none", "dataset.center=none"],
    "few": ["algo=aerr", STEPS, "pilot=9", "checkpoints=[12,30]"],  # folds end with the final run
    "all": ["algo=ddaelr", STEPS, "checkpoints=3"],  # folds end before the final run
    "control": ["algo=aerr", STEPS, "algo.split=2", "algo.control_variate=mean", "pilot=5"],
    "two-phases": ["algo=ddaelr_two_phase", "algo.grid={B: [1, 3], eta: [1], eta_two: [1, 10]}"],
    "aesvr": ["algo=aesvr", "k=6", STEPS, "checkpoints=[40,80]"],
    "baseline": ["algo=baseline", RADII],
    "ridge": ["algo=ridge", RADII],
    "ridge-pilot": ["algo=ridge", RADII, "pilot=20", "checkpoints=[25,60]"],
    "online-ridge": ["algo=online_ridge", STEPS],
    "fixed": ["algo=aelr", "tuning=fixed", "tuning.B=2", "tuning.eta=0.01"],
    "subspace": ["algo=popca", "algo.n_components=2", "pilot=0", "dataset.scale=max_abs", "dataset.center=none"],
    "chosen": ["algo=mbeg", "algo.n_components=2", "pilot=0", "dataset.scale=max_abs", "dataset.center=none"],
}


class Watcher(Accessor):
    """Notes pairs for every stream and setting, from the arguments and the ends of the streams."""

    def __init__(self, table, orders, *args, **others):
        super().__init__(table, orders, *args, **others)
        self.order, self.ends, self.begin = orders, others["lengths"], 0
        self.pairs = defaultdict(set)

    def open(self, start, stop):
        super().open(start, stop)
        self.begin, self.end = start, stop

    def note(self, f, g, position, attribute):
        t = self.begin + position
        if t < self.ends[f]:
            self.pairs[f, g].add((int(self.order[f, t]), int(attribute)))

    def reveal_block(self, attributes, drawn=None):
        for f, t, i in np.ndindex(attributes.shape):
            if drawn is None or drawn[f, t, i]:
                for g in range(self.n_settings):
                    self.note(f, g, t, attributes[f, t, i])
        return super().reveal_block(attributes, drawn)

    def reveal(self, position, attributes, paid):
        for i, f, g in np.ndindex(attributes.shape):
            if paid[f, g]:
                self.note(f, g, position[f], attributes[i, f, g])
        return super().reveal(position, attributes, paid)

    def reveal_some(self, position, attributes, drawn):
        for f, g, i in zip(*np.nonzero(drawn), strict=True):
            self.note(f, g, position, attributes[f, g, i])
        return super().reveal_some(position, attributes, drawn)

    def everything(self):
        for f, t, g, i in np.ndindex(self.n_streams, self.end - self.begin, self.n_settings, self.d):
            self.note(f, g, t, i)

    def rows(self, start, stop):
        examples = super().rows(start, stop)
        self.everything()
        return examples

    def distinct_rows(self, start, stop):
        yield from super().distinct_rows(start, stop)
        self.everything()


def counts(plan, repetitions):
    return [
        {name: result["run"][name] for name in COUNTS} for result in protocol.run_repetitions(plan, repetitions, str)
    ]


def literally(plan, repetition, monkeypatch, kind=Watcher):
    """Return the row of a run, and the sets of cells that tuning and final run, with the pilot, have seen."""
    watchers, made = [], []
    advance = protocol.advance

    def watched(*args, **options):
        watchers.append(kind(*args, **options))
        return watchers[-1]

    def noted(plan, table, together, settings, *rest):
        before = len(watchers)
        results = advance(plan, table, together, settings, *rest)
        streams = [(watcher, f) for watcher in watchers[before:] for f in range(watcher.n_streams)]
        made.extend((each, watcher, f, settings) for each, (watcher, f) in zip(together, streams, strict=True))
        return results

    monkeypatch.setattr(passes, "Accessor", watched)
    monkeypatch.setattr(protocol, "advance", noted)
    (result,) = protocol.run_repetitions(plan, [repetition], str)
    run = result["run"]
    of_tuning, of_run = set(), set()
    for each, watcher, f, settings in made:
        for g in range(watcher.n_settings):
            chosen = all(values[g] == run[f"p_{name}"] for name, values in settings.items())
            if each.stage != "final":
                of_tuning |= watcher.pairs[f, g]
            elif chosen:
                of_run |= watcher.pairs[f, g]
        if each.stage == "final":
            of_run |= {(int(row), i) for row in each.pilot for i in range(plan.d)}
    return run, of_tuning, of_run


def counted_right(plan, run, of_tuning, of_run):
    """Compare the cells that a run reports, and what they cost, with literal sets."""
    costs = plan.prices.costs
    assert run["cells_run"] == len(of_run)
    assert run["cells_tuning"] == len(of_tuning - of_run)
    assert run["cost_cells_tuning"] == pytest.approx(sum(costs[i] for _, i in of_tuning - of_run))
    assert run["cost_rows_full"] == run["rows_full"] * sum(costs)
    assert bool(of_tuning) == plan.tuned
    assert plan.pilot * plan.d < len(of_run) <= run["attributes_total"]


@pytest.mark.parametrize(
    "case", slow_but(("each", "no-pilot", "few", "all", "two-phases", "aesvr", "ridge", "chosen"), CASES)
)
def test_cells_equal_a_literal_set(case, monkeypatch):
    plan = planned(*QUICK, *CASES[case], "dataset.costs=bundled")
    run, of_tuning, of_run = literally(plan, 1, monkeypatch)
    counted_right(plan, run, of_tuning, of_run)
    assert run["rows_full"] == (plan.n_train if plan.tuned else 0)


@pytest.mark.parametrize("case", quick_but(("aesvr",), ["aelr", "ridge", "aesvr", "chosen"]))
@pytest.mark.slow
def test_counts_do_not_depend_on_what_runs_together(case, monkeypatch):
    reference = counts(planned(*QUICK, *CASES[case]), [0, 1])
    alone = planned(*QUICK, *CASES[case], "backend.batch_size=1")
    assert counts(alone, [1, 0]) == reference[::-1]
    assert counts(alone, [1]) == reference[1:]
    monkeypatch.setattr(ledger, "DENSE", 0)  # as for tables too large for a byte per cell
    assert counts(planned(*QUICK, *CASES[case]), [0, 1]) == reference


def test_data_drawn_for_each_repetition_are_counted_separately():
    of_its_own = ["dataset=power_law", "dataset.n=60", "dataset.n_test=5", "dataset.d=6", "algo=aerr", STEPS]
    plan = planned(*of_its_own, "k=4", "tuning.folds=3", "repetitions=3", "checkpoints=2")
    assert plan.repetitions_at_once > 1
    together = counts(plan, [0, 1, 2])
    assert together == [counts(plan, [repetition])[0] for repetition in range(3)]
    official = planned(*of_its_own, "k=4", "tuning.folds=3", "repetitions=3", "checkpoints=2", "dataset.split=official")
    assert counts(official, [0, 2])[1] == counts(official, [2])[0]


def test_axis_paid_changes_no_number_and_notes_when_no_point_is_drawn():
    plans = {axis: planned(*QUICK, *CASES["ridge"], f"axis={axis}") for axis in ("attributes", "paid", "examples")}
    identities = {axis: plan.config.identity() for axis, plan in plans.items()}
    assert identities["paid"] == identities["attributes"] != identities["examples"]
    assert plans["paid"].checkpoints == plans["attributes"].checkpoints
    (note,) = set(plans["paid"].notes) - set(plans["attributes"].notes)
    assert "3,980 cells, but k=4 pays for 1,592: no point" in note
    money = ["dataset.costs=bundled", "dataset.unit=EUR", "total=9000", "axis=paid", "checkpoints=2"]
    priced = planned(*QUICK, *CASES["ridge"], *money)
    assert any("29,850 EUR, but the total pays for 9,000: no point" in note for note in priced.notes)
    fixed = planned(*QUICK, *CASES["fixed"], "axis=paid")
    assert not any("axis=paid" in note for note in fixed.notes)
