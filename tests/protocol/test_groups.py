"""Attributes that are bought together: k, bill and axis count a group as one, and its price is paid once."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from budgetreg.algorithms.registry import members
from budgetreg.api import run
from budgetreg.cli.app import main
from budgetreg.common.errors import BudgetExceeded, ConfigError, DataError
from budgetreg.data.attributes import Columns, groups_in, prices_in, read_list
from budgetreg.data.dataset import Groups, numbered
from budgetreg.data.registry import load, prices_of
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.revealed.collection import AttributeDraws, revealed
from budgetreg.runs.series import repriced
from tests.plans import configured, planned
from tests.tiers import quick_but

RNG = np.random.default_rng(1)
N, NAMES = 60, list("abcdefg")
X = RNG.normal(size=(N, 7)).round(3)
Y = (X @ [1.0, -1.0, 0.5, 2.0, 0.3, 0.0, 1.0] + 0.1 * RNG.normal(size=N)).round(3)
HEADS = (0, 1, 0, 3, 4, 4, 0)  # {a, c, g}, b, d, {e, f}: four purchases
GROUPS = "attribute,group\na,panel\ng,panel\ne,dummies\nc,panel\n6,dummies\n"
PRICES = "attribute,cost,group\na,10,panel\nb,1,\nc,,panel\nd,2,\ne,5,dummies\nf,5,dummies\ng,10,panel\n"
PAID = {"a": 10, "b": 1, "c": 0, "d": 2, "e": 5, "f": 0, "g": 0}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    pd.DataFrame(X, columns=NAMES).assign(y=Y).to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "groups.csv").write_text(GROUPS)
    (tmp_path / "prices.csv").write_text(PRICES)
    return tmp_path / "table.csv"


def computed(table: Path, **more: Any) -> Path:
    out = table.parent / f"run-{len(list(table.parent.iterdir()))}"
    choices = {"dataset": "file", "dataset.path": str(table), "repetitions": 1, "checkpoints": 2, "k": 2, **more}
    run({**choices, "out": str(out)})
    return out


REPEATS = ("aeml", "aemr", "lasso", "online_lasso", "impute_iterative", "corrected_lasso", "cocolasso", "hmlasso")
REGRESSORS = [name for name in members(lambda learner: learner.draws_groups and learner.predicts) if "cv" not in name]
LEARNERS = [*REGRESSORS, "aefa", "aefa_streaming"]


@pytest.mark.usefixtures("short_chains")
@pytest.mark.parametrize(
    ("algo", "gaps"),
    quick_but(
        [*product(REPEATS, [False, True]), *((name, True) for name in LEARNERS if name != "sgd_impute")],
        product(LEARNERS, [False, True]),
    ),
)
def test_every_learner_of_groups_pays_each_once_and_sees_all_of_it(table: Path, algo: str, gaps: bool) -> None:
    full = algo in ("ridge", "lasso", "online_ridge", "online_lasso")
    more: dict[str, Any] = {"algo": algo, "dataset.costs": str(table.parent / "prices.csv"), "k": 4 if full else 2}
    if full:
        more |= {"tuning": "fixed", "tuning.B": 3.0}
        more |= {"tuning.eta": 0.1} if "online" in algo else {}
    if algo == "sgd_impute":
        more |= {"tuning": "fixed", "tuning.B": 3.0, "tuning.eta": 0.1}
    if algo.startswith("aefa"):
        more |= {"dataset.target": "y", "algo.n_components": 2}
    if gaps:
        if full:
            return  # they need every value
        holes = X.copy()
        holes[RNG.random(X.shape) < 0.1] = np.nan
        pd.DataFrame(holes, columns=NAMES).assign(y=Y).to_csv(table, index=False)
        more |= {"dataset.missing": "unavailable"}
    folder = computed(table, **more)
    curves, runs = pd.read_csv(folder / "curves.csv"), pd.read_csv(folder / "runs.csv")
    reveals = pd.read_csv(folder / "reveals.csv").pivot(index="examples", columns="attribute", values="count")
    for _, point in curves.iterrows():
        seen = reveals.loc[point["examples"]]
        assert seen["a"] == seen["c"] == seen["g"]
        assert seen["e"] == seen["f"]
        assert point["attributes"] == seen["a"] + seen["b"] + seen["d"] + seen["e"]
        assert point["cost"] == sum(seen[name] * price for name, price in PAID.items())
    assert runs["attributes_max"].max() <= (4 if full else 2)
    assert (runs["cells_run"] == curves["attributes"].max()).all()


def test_groups_have_a_list_of_their_own_or_are_in_that_of_prices(table: Path) -> None:
    words = ("dataset=file", f"dataset.path={table}", "algo=aeml", "k=2")
    own = load(configured(*words, f"dataset.groups={table.parent / 'groups.csv'}").dataset, 0, 0)
    assert own.groups == Groups(HEADS)
    with_prices = configured(*words, f"dataset.costs={table.parent / 'prices.csv'}").dataset
    data = load(with_prices, 0, 0)
    assert data.groups == own.groups
    prices = prices_of(with_prices, data)
    assert prices is not None
    assert prices.costs == tuple(map(float, PAID.values()))
    assert prices.row == 18
    plain = load(configured(*words).dataset, 0, 0)
    assert plain.groups is None
    assert plain.fingerprint() != data.fingerprint() == own.fingerprint()
    prices_list = f"dataset.costs={table.parent / 'prices.csv'}"
    for name in ("prices.csv", "groups.csv"):  # which have the same groups
        both = configured(*words, f"dataset.groups={table.parent / name}", prices_list).dataset
        assert load(both, 0, 0).groups == own.groups
    text = (table.parent / "groups.csv").read_text().splitlines(keepends=True)
    (table.parent / "groups.csv").write_text("".join(text[:3]))
    with pytest.raises(ConfigError, match=r"prices.csv has groups already, in its column group"):
        load(configured(*words, f"dataset.groups={table.parent / 'groups.csv'}", prices_list).dataset, 0, 0)


def test_a_total_buys_whole_groups_and_full_rows_cost_them(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("dataset=file", f"dataset.path={table}", f"dataset.groups={table.parent / 'groups.csv'}")
    plan = planned(*words, "algo=ridge", "k=4", "total=100")
    assert (plan.full_row, plan.per_example, plan.checkpoints[-1]) == (4, 4, 25)
    plan = planned(*words, "algo=aeml", "k=2", "total=100", "pilot=5")
    assert plan.checkpoints[-1] == 5 + (100 - 5 * 4) // 2
    equal = planned(*words, "algo=aeml", "k=2", "total=100", "pilot=5", "dataset.costs=equal")
    assert equal.checkpoints == plan.checkpoints
    assert equal.prices is not None
    assert equal.prices.row == 4
    assert main(["run", *words, "algo=aeml", "k=2", "--dry-run"]) == 0
    assert "7 attributes are 4 purchases" in " ".join(capsys.readouterr().out.split())


def test_a_group_with_a_gap_is_missing_as_a_whole(table: Path) -> None:
    holes = X.copy()
    holes[3, 2] = holes[5, 1] = np.nan
    pd.DataFrame(holes, columns=NAMES).assign(y=Y).to_csv(table, index=False)
    words = ("dataset=file", f"dataset.path={table}", f"dataset.groups={table.parent / 'groups.csv'}")
    data = load(configured(*words, "dataset.missing=unavailable").dataset, 0, 0)
    assert data.available is not None
    assert data.available[3].tolist() == [False, True, False, True, True, True, False]
    assert data.available[5].tolist() == [True, False, True, True, True, True, True]


def test_learners_that_draw_single_attributes_are_refused_in_one_line(table: Path) -> None:
    words = ("dataset=file", f"dataset.path={table}", f"dataset.groups={table.parent / 'groups.csv'}")
    for algo in ("aerr", "baseline", "ddaerr"):
        with pytest.raises(ConfigError, match=rf"dataset.groups: {algo} draws single attributes; learners .*: .*aeml"):
            planned(*words, f"algo={algo}", "k=2")
    with pytest.raises(ConfigError, match="at most 4, as a group counts as one of the 7 attributes"):
        planned(*words, "algo=aeml", "k=5")


@pytest.mark.slow
def test_groups_whose_attributes_are_alone_change_no_byte(table: Path) -> None:
    (table.parent / "alone.csv").write_text("attribute,group\na,first\nb,second\n")
    plain = computed(table, algo="aemr")
    alone = computed(table, algo="aemr", **{"dataset.groups": str(table.parent / "alone.csv")})
    assert (plain / "curves.csv").read_bytes() == (alone / "curves.csv").read_bytes()


@pytest.mark.slow
def test_a_free_group_is_seen_of_every_example(table: Path) -> None:
    path = table.parent / "prices.csv"
    path.write_text(PRICES.replace("e,5,", "e,0,").replace("f,5,", "f,,"))
    folder = computed(table, algo="aeml", **{"dataset.costs": str(path)})
    reveals = pd.read_csv(folder / "reveals.csv").groupby(["examples", "attribute"])["count"].sum().unstack()
    last = reveals.iloc[-1]
    assert last["e"] == last["f"] == reveals.index[-1]
    assert pd.read_csv(folder / "curves.csv")["attributes"].iloc[-1] == last["a"] + last["b"] + last["d"]


def test_a_finished_run_is_repriced_by_group(table: Path) -> None:
    choices = {"dataset.groups": str(table.parent / "groups.csv"), "dataset.costs": "equal"}
    folder = computed(table, algo="ridge", tuning="fixed", k=4, **{"tuning.B": 3.0, **choices})
    assert json.loads((folder / "manifest.json").read_text())["groups"] == list(HEADS)
    for text in (PRICES, "attribute,cost\na,10\nb,1\nc,10\nd,2\ne,\nf,5\ng,\n"):
        (table.parent / "prices.csv").write_text(text)
        (series,) = repriced([folder], table.parent / "prices.csv")
        assert np.allclose(series.points["cost"], series.points["examples"] * 18)
    (table.parent / "prices.csv").write_text(PRICES.replace("panel", "").replace("c,,", "c,3,"))
    with pytest.raises(DataError, match="its groups are not those of the data"):
        repriced([folder], table.parent / "prices.csv")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("attribute,group\na,x\nzz,x\n", "line 3: the data have no attribute 'zz'; attributes: a, b"),
        ("attribute,group\na,x\nb,x\n1,z\n", "line 4: attribute '1' is there already: line 2"),
        ("attribute,panel\na,x\n", "line 1 must name the column 'group' once; a list of groups needs the columns"),
        ("attribute,group,price\na,x,1\n", "line 1: no column 'price' is known"),
        ("attribute,group,group\na,x,x\n", "line 1: two columns are named 'group': rename one"),
        ("attribute,group\na\n", "line 2: 1 fields, but the header has 2"),
        ("group\nx\n", "line 1 must name the column 'attribute' once"),
    ],
)
def test_lists_of_groups_that_cannot_be_used_are_one_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "groups.csv").write_text(text)
    with pytest.raises(DataError) as caught:
        groups_in(read_list(tmp_path / "groups.csv", "dataset.groups"), Columns.of(NAMES, 7))
    assert str(caught.value).startswith(f"{tmp_path / 'groups.csv'}: {said}")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("g,10,panel", "g,11,panel", "the group of 'g' has the price 10 already, and 11 here: a group"),
        ("e,5,dummies\nf,5,dummies", "e,,dummies\nf,,dummies", "no price for 'e', 'f': each of"),
        ("d,2,", "d,,", "no price for 'd'"),
        (
            "cost,group",
            "cost,panel",
            "line 1: no column 'panel' is known; a price list has the columns attribute,cost",
        ),
        ("b,1,", "b,x,", "line 3, column 'cost': 'x' is not a number"),
    ],
)
def test_prices_of_groups_that_cannot_be_used_are_one_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in PRICES
    (tmp_path / "prices.csv").write_text(PRICES.replace(old, new))
    with pytest.raises(DataError) as caught:
        prices_in(read_list(tmp_path / "prices.csv", "dataset.costs"), Columns.of(NAMES, 7), Groups(HEADS))
    assert str(caught.value).startswith(f"{tmp_path / 'prices.csv'}: {said}")


@given(
    names=st.lists(st.sampled_from(["", "x", "y", "z"]), min_size=2, max_size=9),
    k=st.integers(1, 9),
    free=st.sampled_from([None, "x"]),
    seed=st.integers(0, 99),
)
@settings(max_examples=60, deadline=None)
def test_draws_are_whole_groups_and_their_bill_is_their_number(
    names: list[str], k: int, free: str | None, seed: int
) -> None:
    groups, d, rng = numbered(names), len(names), np.random.default_rng(seed)
    assume(groups is not None)
    assert groups is not None
    units = [{at for at, head in enumerate(groups.heads) if head == lead} for lead in np.flatnonzero(groups.leads)]
    is_free = np.array([name == free for name in names])
    priced = [unit for unit in units if not is_free[list(unit)].any()]
    assume(priced)
    k = min(k, len(priced))
    draws = AttributeDraws(rng, d, k, is_free, groups)
    accessor = Accessor(
        Table(rng.normal(size=(20, d)), np.zeros(20)), np.arange(20)[None], 1, k, free=is_free, groups=groups
    )
    accessor.open(0, 10)
    attributes, values = revealed(accessor, draws.take(10)[None], d)
    draws.plan(rng.random(draws.members.size), 0.1, prices=np.where(groups.leads, 2.0, 0.0))
    accessor.open(10, 20)
    planned_attributes, _ = revealed(accessor, draws.take(10)[None], d)
    for shown in np.append(attributes[0], planned_attributes[0], axis=0):
        seen = [at for at in shown.tolist() if at < d]
        assert len(set(seen)) == len(seen)
        assert set(np.flatnonzero(is_free)) <= set(seen)
        bought = [unit for unit in priced if unit & set(seen)]
        assert len(bought) == k
        assert set(seen) == set().union(*bought, set(np.flatnonzero(is_free).tolist()))
    assert (values[attributes == d] == 0).all()
    assert accessor.bill().total.tolist() == [[20 * k]]


def test_groups_are_drawn_by_the_sum_of_their_weights() -> None:
    groups, weights = Groups(HEADS), np.array([1.0, 4.0, 1.0, 2.0, 0.5, 0.5, 2.0])
    draws = AttributeDraws(np.random.default_rng(0), 7, 1, None, groups)
    draws.plan(weights, 0.0)
    alone = AttributeDraws(np.random.default_rng(0), 4, 1)
    alone.plan(np.array([4.0, 4.0, 2.0, 1.0]), 0.0)
    heads = np.array([0, 1, 3, 4])
    np.testing.assert_array_equal(draws.take(500)[:, 0], heads[alone.take(500)[:, 0]])
    draws.plan(weights, 0.0, known=np.isin(np.arange(7), [0, 2, 6, 4]))
    shown = draws.take(2000)
    assert not (shown == 0).any()  # all of the group is known
    assert (shown == 4).any()  # f is not known


@pytest.mark.parametrize("drawn", [[0, 2], [2, 6], [4], [5], [1, 5]])
def test_a_part_of_a_group_is_never_revealed(drawn: list[int]) -> None:
    accessor = Accessor(Table(X, Y), np.arange(N)[None], 1, 4, [N], groups=Groups(HEADS))
    accessor.open(0, 1)
    with pytest.raises(BudgetExceeded, match="part of a group cannot be revealed"):
        accessor.reveal_block(np.array([[drawn]]))
    with pytest.raises(BudgetExceeded, match="part of a group"):
        accessor.reveal(np.zeros(1, dtype=int), np.array([[[1]]]), np.ones((1, 1), dtype=bool))
    assert accessor.bill().total.tolist() == [[0]]


def test_the_budget_counts_groups() -> None:
    accessor = Accessor(Table(X, Y), np.arange(N)[None], 1, 2, [N], groups=Groups(HEADS))
    accessor.open(0, 1)
    assert accessor.reveal_block(np.array([[[0, 2, 6, 1]]]))[0, 0].tolist() == X[0, [0, 2, 6, 1]].tolist()
    with pytest.raises(BudgetExceeded, match="the budget is 2"):
        accessor.reveal_block(np.array([[[3]]]))
    assert accessor.bill().total.tolist() == [[2]]


def test_categories_of_one_column_are_proposed_as_a_group(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    apart = {"s_1": rng.integers(2, size=60), "s_2": rng.integers(2, size=60)}
    frame = pd.get_dummies(pd.DataFrame({**apart, "Unit": rng.choice(list("abc"), 60)})).assign(y=rng.normal(size=60))
    frame.to_csv(tmp_path / "table.csv", index=False)
    words = ("dataset=file", f"dataset.path={tmp_path / 'table.csv'}", "algo=aemr", "k=2")
    (note,) = (note for note in planned(*words).notes if "categories" in note)
    assert note.startswith("columns Unit_* look like the categories of one column")
    (tmp_path / "groups.csv").write_text("attribute,group\nUnit_a,u\nUnit_b,u\nUnit_c,u\n")
    grouped = planned(*words, f"dataset.groups={tmp_path / 'groups.csv'}")
    assert grouped.groups is not None
    assert not any("categories" in note for note in grouped.notes)
