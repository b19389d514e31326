"""A total: every learner ends at the same spending, whatever its k, the pilot's rows among it."""

import pytest

from budgetreg.errors import ConfigError
from budgetreg.protocol.repetitions import run_repetitions
from tests.protocol.test_centring import planned

OWN = ["dataset=diabetes", "tuning=fixed", "tuning.B=60", "tuning.eta=0.01", "repetitions=1", "checkpoints=3"]


@pytest.mark.parametrize("algo", ["aerr", "ddaelr", "baseline", "ridge", "online_lasso"])
@pytest.mark.parametrize("k", [2, 4, 10])
def test_every_learner_spends_the_total_to_less_than_an_example(algo, k):
    plan = planned(*OWN, f"algo={algo}", f"k={k}", "total=700")
    (result,) = run_repetitions(plan, [0], lambda done: None)
    spent = result["run"]["attributes_total"]
    # The first step of some learners is cheaper, as w is 0.
    assert 700 - plan.per_example - k < spent <= 700
    assert spent <= plan.attributes_final <= 700
    assert result["curve"][-1]["examples"] == plan.pilot + (700 - plan.pilot * plan.d) // plan.per_example


def test_who_has_seen_all_examples_ends_earlier_and_says_so():
    few = planned(*OWN, "algo=aerr", "k=2", "total=3000")
    assert few.checkpoints[-1] == few.n_train
    assert few.attributes_final == few.pilot * 10 + 2 * (few.n_train - few.pilot) < 3000
    assert any(f"total=3000: aerr ends at {few.attributes_final} attributes" in note for note in few.notes)
    rows = planned(*OWN, "algo=ridge", "k=2", "total=3000")
    assert rows.checkpoints[-1] == 300
    assert not any("ends at" in note for note in rows.notes)
    everything = planned(*OWN, "algo=ridge", "k=2", "total=1000000")
    assert everything.attributes_final == 10 * everything.n_train


def test_the_pilot_is_a_share_of_the_total():
    plans = [planned(*OWN, "algo=aerr", f"k={k}", "total=700") for k in (2, 4, 8)]
    assert {plan.pilot for plan in plans} == {5}
    assert "50 of 700 attributes in all" in " ".join(plans[0].notes)


def test_shares_of_the_axis_are_shares_of_the_total():
    plan = planned(*OWN, "algo=aerr", "k=4", "total=700", "pilot=0", "dataset.scale=none", "checkpoints=[0.5,1.0]")
    assert plan.checkpoints == (87, 175)


def test_no_total_changes_no_identity_and_one_does():
    without, given, other = (
        planned(*OWN, "k=4", *more).config.identity() for more in ([], ["total=700"], ["total=701"])
    )
    assert "total" not in without
    assert given["total"] == 700
    assert given != other
    assert planned(*OWN, "k=4", "total=null").config.identity() == without


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (["total=0"], "total=0: the number of attributes that every learner ends at must be"),
        (["total=80", "pilot=8"], "pilot=8: 8 full rows of 10 attributes are all that total=80 buys, or more"),
        (["total=82", "pilot=8"], "total=82: buys aelr no example of 4 attributes after a pilot of 8 full rows of 10"),
        (["total=9", "algo=ridge", "pilot=0", "dataset.scale=none"], "total=9: buys ridge no example of 10 attributes"),
        (["total=700", "axis=examples"], "total=700: with axis=examples learners end at as many examples"),
        (["total=700", "checkpoints=[20,30]"], "checkpoints=[20, 30]: numbers of examples end elsewhere"),
    ],
)
def test_impossible_totals(keys, said):
    with pytest.raises(ConfigError) as refusal:
        planned("dataset=diabetes", "k=4", *keys)
    assert said in str(refusal.value)
