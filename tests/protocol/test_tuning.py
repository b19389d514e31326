"""Grids that grow: with the numbers of the larger grid, and with the bill of everything tried."""

import json
from types import SimpleNamespace

import pytest

from budgetreg.protocol.configuration import restored
from budgetreg.protocol.repetitions import widening
from tests.plans import journaled, planned

NARROW = ["dataset=diabetes", "tuning.folds=2", "k=4", "checkpoints=2", "algo=aerr"]
GRID = "algo.grid={B: [0.01, 0.02], eta: [0.5, 1]}"


def test_a_widened_grid_gives_the_result_of_the_larger_grid():
    (result,) = journaled(planned(*NARROW, GRID, "tuning.widen=1"))
    (narrow,) = journaled(planned(*NARROW, GRID, "tuning.widen=0"))
    assert "B:high" in narrow["run"]["edge"]
    assert "widened" not in narrow
    names = result.pop("widened").split()
    grown = {
        "B:high": "B: [0.01, 0.02, 0.04, 0.08]",
        "eta:high": "eta: [0.5, 1, 2, 4]",
        "eta:low": "eta: [0.125, 0.25, 0.5, 1]",
    }
    words = narrow["run"]["edge"].split()
    assert names == [word.partition(":")[0] for word in words]
    grid = ", ".join([*(grown[word] for word in words), *([] if "eta" in names else ["eta: [0.5, 1]"])])
    (asked,) = journaled(planned(*NARROW, f"algo.grid={{{grid}}}", "tuning.widen=0"))
    assert result == asked
    assert result["run"]["attributes_tuning"] > narrow["run"]["attributes_tuning"]


@pytest.mark.slow
def test_a_repetition_widens_alone_as_it_does_with_others():
    plan = planned(*NARROW, GRID, "tuning.at=each")
    assert plan.config.tuning.widen == 3
    together = journaled(plan, [2, 0, 1])
    assert all("B" in result["widened"] for result in together)
    alone = planned(*NARROW, GRID, "tuning.at=each", "backend.batch_size=1")
    assert [journaled(alone, [number])[0] for number in (2, 0, 1)] == together


@pytest.mark.parametrize(
    ("keys", "most"),
    [
        ([], (2 + 6) * (2 + 6) / 4),
        (["tuning.at=each"], (2 + 12) * (2 + 12) / 4),
        (["tuning=theory", "tuning.B=1"], 1),
        (["tuning=theory"], (2 + 6) / 2),
        (["tuning.widen=0"], 1),
    ],
)
def test_the_plan_knows_the_most_that_widening_can_cost(keys, most):
    plan = planned(*NARROW, GRID, *keys)
    assert plan.widest().attributes_tuning == most * plan.attributes_tuning


class Toy:
    """A plan whose grid begins as 1, 2 and whose repetitions have given best values, as powers of 2."""

    def __init__(self, low=0, high=1, unlimited=True):
        self.low, self.high, self.unlimited = low, high, unlimited
        self.repetitions_at_once = 4
        self.config = SimpleNamespace(
            algo=SimpleNamespace(in_grid=lambda name: SimpleNamespace(unlimited=name == "B" and unlimited))
        )

    def widened(self, edge):
        return Toy(self.low - 2 * ("B:low" in edge), self.high + 2 * ("B:high" in edge), self.unlimited)


def runs_of(best, **plan):
    """Return the last result of each repetition, and how often it ran, for given best values."""
    log, fractions = [], []

    def toy_run(plan, repetitions, progress):
        log.extend(repetitions)
        progress(0.5)
        progress(1.0)
        results = []
        for number in repetitions:
            at = min(max(best[number], plan.low), plan.high)
            edge = {plan.low: "B:low", plan.high: "B:high"}.get(at, "")
            results.append(
                {"repetition": number, "grid": (plan.low, plan.high), "run": {"edge": edge}, "edge_before": ""}
            )
        return results

    results = widening(toy_run, Toy(**plan), list(best), fractions.append, 3)
    assert fractions == sorted(fractions)
    assert fractions[-1] <= 1
    return [
        (result["grid"], result.get("widened"), log.count(number)) for result, number in zip(results, best, strict=True)
    ]


def test_a_grid_grows_until_the_best_value_is_inside():
    assert runs_of({3: 2, 0: 3, 1: 9, 2: -1, 7: 5}) == [
        ((0, 3), "B", 2),
        ((0, 5), "B", 3),
        ((0, 7), "B", 4),
        ((-2, 1), "B", 2),
        ((0, 7), "B", 4),
    ]


def test_grids_of_limited_parameters_do_not_grow():
    assert runs_of({0: 5}, unlimited=False) == [((0, 1), None, 1)]
    petrels = planned("algo=petrels", "k=8", "algo.n_components=2")
    assert not petrels.config.algo.in_grid("forgetting").unlimited


def test_a_choice_on_an_edge_at_an_earlier_checkpoint_widens_the_grid():
    log = []

    def toy_run(plan, repetitions, progress):
        log.append((plan.low, plan.high))
        edge = "B:low" if plan.low == 0 else ""
        return [{"run": {"edge": ""}, "edge_before": edge} for _ in repetitions]

    widening(toy_run, Toy(), [0], lambda done: None, 3)
    assert log == [(0, 1), (-2, 1)]


@pytest.mark.parametrize("tuning", ["cv", "theory"])
def test_grids_widen_by_default_for_own_data_only(tuning):
    own_data, papers = (planned(f"tuning={tuning}", f"dataset={name}").config for name in ("diabetes", "digits_3v5"))
    assert (own_data.tuning.widen, papers.tuning.widen) == (3, 0)
    assert own_data.identity()["tuning"]["widen"] == 3
    assert "widen" not in papers.identity()["tuning"]
    assert planned(f"tuning={tuning}", "tuning.widen=2").config.identity()["tuning"]["widen"] == 2
    assert restored(json.loads(json.dumps(own_data.resolved))).identity() == own_data.identity()


def test_a_record_without_the_key_has_no_widening():
    recorded = json.loads(json.dumps(planned("dataset=diabetes").config.resolved))
    del recorded["tuning"]["widen"]
    assert restored(recorded).tuning.widen == 0
