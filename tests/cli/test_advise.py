"""``budgetreg advise``: its answer agrees with the runs, and finished runs are reused."""

import json
import re
import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

import budgetreg as library
from budgetreg import api
from budgetreg.cli import advise
from budgetreg.cli.app import main
from budgetreg.common.errors import ConfigError
from budgetreg.data.registry import load
from budgetreg.protocol.plan import Plan
from budgetreg.protocol.split import parts_of
from budgetreg.runs.runner import RunOutcome
from tests.commands import NO_CHOICES, Call

KEYS = {
    "dataset": "diabetes",
    "tuning": "fixed",
    "tuning.B": 40,
    "tuning.eta": 0.01,
    "checkpoints": 1,
    "repetitions": 5,
}
pytestmark = pytest.mark.usefixtures("here", "sketched")
LINE = "advise total=1500 algo=aelr,ridge k=2,4,8,all " + " ".join(f"{key}={value}" for key, value in KEYS.items())


@pytest.fixture
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let boosting have two trees, where its error does not matter: a hundred take longer than all learners."""
    monkeypatch.setattr(
        "sklearn.ensemble.HistGradientBoostingRegressor", partial(HistGradientBoostingRegressor, max_iter=2)
    )


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """Replace execution: plans are collected, and nothing is finished."""
    plans: list[Plan] = []

    def stop(plan: Plan, **how: Any) -> RunOutcome:
        plans.append(plan)
        return RunOutcome(plan.folder, finished=0, failed=0, resumed=0, choices=NO_CHOICES)

    monkeypatch.setattr(advise, "carry_out", stop)
    return plans


def table_of(out: str) -> list[list[str]]:
    """Return the rows but those of boosting: budget, learner, examples, attributes, error."""
    lines = (line.split() for line in out.splitlines() if re.match(r" *(\d+|all) +(?! |boosting)", line))
    return [line[:5] for line in lines]


@pytest.mark.usefixtures("few_trees")
def test_the_advice_agrees_with_the_runs(call: Call) -> None:
    answer = call(LINE)
    errors = {}
    for algo, k in (("aelr", 2), ("aelr", 4), ("aelr", 8), ("ridge", 10)):
        results = library.run({**KEYS, "total": 1500, "algo": algo, "k": k})
        last = results.curves[results.curves["examples"] == results.curves["examples"].max()]
        errors[algo, k] = last["test_relative"].mean()
    ranked = sorted(errors, key=lambda cell: errors[cell])
    rows = table_of(answer.out)
    assert [(row[1], 10 if row[0] == "all" else int(row[0])) for row in rows] == ranked
    decimals = [len(row[4].partition(".")[2]) for row in rows]  # as many as the intervals support
    assert min(decimals) >= 2
    assert [row[4] for row in rows] == [f"{errors[cell]:.{n}f}" for cell, n in zip(ranked, decimals, strict=True)]
    algo, k = ranked[0]
    (verdict,) = (line for line in answer.out.splitlines() if line.startswith("With "))
    assert verdict.startswith(f"With 1,500 attributes, {algo} {'on' if algo == 'ridge' else f'with k = {k}'} ")
    assert "\n- nearest with " in answer.out
    assert [int(row[3]) for row in rows if row[0] == "2"] == [851]  # all examples, and that is said
    assert "aelr ends at 852 attributes" in answer.err
    lines = answer.err.splitlines()
    assert len(lines) == len(set(lines))  # what several runs have to say is said once
    assert lines[0] == "budgetreg: 1 of 4: aelr, k=2"


@pytest.mark.usefixtures("few_trees")
def test_the_advice_ends_with_the_command_that_follows_it(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    """Copied into a shell, it learns what the sentence names, with the keys that decide what is learned."""
    out = here / "my advice"
    words = [*LINE.split(), f"out={out}", "n_jobs=1", "dataset.test_fraction=.2", "dataset.drop=[]"]
    assert main(words) == 0
    said = capsys.readouterr().out
    written = json.loads((out / "advice.json").read_text())
    assert said.splitlines()[-1] == f"to learn it from all rows: {written['command']}"
    assert "\n- ".join([written["sentence"], *written["compared"]]) in said
    table, rows = pd.read_csv(out / "advice.csv", dtype={"k": str}), pd.DataFrame(written["rows"])
    pd.testing.assert_frame_equal(table, rows.astype({"k": str}))
    assert [[str(row["k"]), row["learner"]] for row in written["rows"]] == [
        *(row[:2] for row in table_of(said)),
        ["all", "boosting"],
        [str(written["rows"][-1]["k"]), "boosting"],
    ]
    command = shlex.split(written["command"])
    best = written["rows"][0]
    assert command[:4] == ["budgetreg", "fit", f"algo={best['learner']}", f"k={best['k']}"]
    left = ("k", "algo", "out", "repetitions", "checkpoints", "dataset.test_fraction")
    assert command[4:] == [word for word in words[1:] if word.partition("=")[0] not in left]
    assert main(command[1:]) == 0
    assert f"{best['learner']} on diabetes, learned from " in capsys.readouterr().out


def test_all_stands_for_the_number_of_attributes() -> None:
    choices = {"dataset": "diabetes", "algo": "aemr", "total": 300}
    one, other = (library.fit({**choices, "k": k, "out": f"k{k}"}) for k in ("all", 10))
    assert (one.folder / "model.npz").read_bytes() == (other.folder / "model.npz").read_bytes()
    assert one.runs["k"].tolist() == [10]


@pytest.mark.slow
def test_python_returns_the_rows_that_the_command_writes(call: Call, here: Path) -> None:
    keys = {"total": 1500, "algo": ["aelr", "ridge"], "k": [2, "all"], **KEYS, "out": "called"}
    frame = library.advise(keys)
    call(LINE.replace("k=2,4,8,all", "k=2,all") + " out=typed")
    for name in ("advice.csv", "advice.json"):
        assert (here / "called" / name).read_bytes() == (here / "typed" / name).read_bytes()
    pd.testing.assert_frame_equal(frame.astype({"k": str}), pd.read_csv("called/advice.csv", dtype={"k": str}))
    assert frame.attrs["command"].startswith("budgetreg fit algo=")
    with pytest.raises(ConfigError, match="the choices are a str"):
        library.advise("total=5")  # type: ignore[arg-type]


def test_learners_whose_tuning_is_not_paid_for_are_left_out(call: Call, planned: list[Plan]) -> None:
    answer = call("advise dataset=diabetes total=600 k=4,all algo=aemr,aelr tuning=paid")
    tried = [(plan.config.algo.name, plan.config.k) for plan in planned]
    assert tried == [("aemr", 4), ("aemr", 10), ("impute_ridge", 10)]
    assert "tuning=paid: left out, as they choose parameters on rows that are seen in full: aelr" in answer.err
    assert "tuning=paid: aelr would choose" in call("advise dataset=diabetes total=600 algo=aelr tuning=paid", 2).err


@pytest.mark.usefixtures("few_trees", "short_chains")
@pytest.mark.parametrize("rows", [11, 40])
def test_an_attribute_that_boosting_never_sees_is_no_reason_to_stop(rows: int, call: Call) -> None:
    """Of few rows no draw may have it; of more, only one of them may have a value."""
    X = np.random.default_rng(0).normal(size=(rows, 8))
    frame = pd.DataFrame(X, columns=list("abcdefgh")).assign(y=X.sum(axis=1))
    frame.loc[1:, "h"] = np.nan if rows > 11 else frame["h"]
    frame.to_csv("table.csv", index=False)
    words = "advise dataset=file dataset.path=table.csv dataset.missing=unavailable total=60 k=2 algo=aemr out=here"
    assert "boosting" in call(f"{words} repetitions=2").out


@pytest.mark.usefixtures("few_trees", "short_chains")
def test_boosting_pays_for_values_that_exist(call: Call) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 6))
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(y=X.sum(axis=1))
    frame.loc[1::2, ["a", "b", "c"]] = np.nan
    frame.to_csv("table.csv", index=False)
    words = "advise dataset=file dataset.path=table.csv dataset.missing=unavailable total=90 k=2,all"
    call(f"{words} algo=impute_ridge repetitions=2 out=here")
    rows = pd.read_csv("here/advice.csv").query("learner == 'boosting'").set_index("k")[["examples", "attributes"]]
    assert rows.loc["all"].tolist() == [20, 90]  # three quarters of 6 values each
    assert rows.loc["2"].tolist() == [60, 90]


def test_boosting_is_no_rival_where_predictions_see_few_attributes(call: Call) -> None:
    X = np.random.default_rng(0).normal(size=(40, 3))
    pd.DataFrame(X, columns=list("abc")).assign(y=X.sum(axis=1)).to_csv("table.csv", index=False)
    words = "advise dataset=file dataset.path=table.csv total=60 k=2 algo=fixed_subset repetitions=2 predict_k=1"
    assert "boosting" not in call(words).out


@pytest.mark.slow
def test_boosting_on_the_same_rows_is_named_if_it_is_clearly_ahead(call: Call) -> None:
    """The target is no linear function: the sign of one attribute, turned by that of another."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=np.sign(X[:, 0] * X[:, 1]) + 0.5 * X[:, 2])
    frame.to_csv("table.csv", index=False)
    words = "advise dataset=file dataset.path=table.csv total=1600 k=2,all algo=aemr,ridge repetitions=5 out=here"
    said = call(f"{words} tuning=fixed tuning.B=5").out
    ahead = re.search("outside this tool, scikit-learn's gradient boosting is clearly better: boosting .*", said)
    assert ahead is not None
    assert "boosting with all attributes of 400 examples, error 0." in ahead[0]
    rows = pd.read_csv("here/advice.csv").iloc[-2:]
    assert rows[["k", "learner", "examples", "attributes"]].to_numpy().tolist() == [
        ["all", "boosting", 400, 1600],
        ["2", "boosting", 450, 900],  # all training rows
    ]
    config = api.plan({"dataset": "file", "dataset.path": "table.csv", "algo": "aemr", "k": 2}).config
    errors = []
    for repetition in range(5):
        data = load(config.dataset, 0, repetition)
        parts = parts_of(config, data, 50, 20, repetition)
        train = np.concatenate([parts.pilot, parts.order])[:400]
        model = HistGradientBoostingRegressor(random_state=0).fit(X[train], data.y[train])
        y = data.y[parts.test]
        errors.append(np.mean((model.predict(X[parts.test]) - y) ** 2) / np.mean((y - data.y[parts.train].mean()) ** 2))
    assert rows["error"].iloc[0] == pytest.approx(np.mean(errors))


@pytest.mark.slow
def test_groups_and_free_attributes_count_as_in_runs() -> None:
    """Two of six attributes are free, and two are bought together: a full row is three purchases, for 6 EUR."""
    X = np.random.default_rng(0).normal(size=(60, 6)).round(3)
    pd.DataFrame(X, columns=list("abcdef")).assign(y=X.sum(axis=1)).to_csv("own.csv", index=False)
    Path("prices.csv").write_text("attribute,cost,group\na,0,\nb,0,\nc,3,pair\nd,3,pair\ne,2,\nf,1,\n")
    keys = {"dataset": "file", "dataset.path": "own.csv", "dataset.costs": "prices.csv", "repetitions": 2}
    advice = library.advise({**keys, "total": 120, "k": [2, "all"], "algo": "fixed_subset", "pilot": 2})
    rows = {(str(row["k"]), row["learner"]): row for row in advice.to_dict("records")}
    assert len(rows) == len(advice)
    assert {("all", "fixed_subset"), ("all", "boosting"), ("2", "boosting")} <= rows.keys()
    paid = {k: [rows[k, "boosting"][name] for name in ("examples", "attributes", "cost")] for k in ("2", "all")}
    assert paid == {"2": [30, 60, 120], "all": [20, 60, 120]}
    assert "k=3" not in str(advice.attrs["command"])


@pytest.mark.usefixtures("few_trees")
def test_a_second_call_computes_only_new_cells(call: Call, here: Path) -> None:
    line = LINE.replace(",ridge", "").replace("repetitions=5", "repetitions=2")
    first = call(line.replace(",8,all", ""))
    (folder,) = (here / "runs" / "diabetes").iterdir()
    assert re.fullmatch("advise-total1500-seed0-[0-9a-f]{8}", folder.name)
    kept = {path: path.read_bytes() for path in folder.rglob("journal.jsonl")}
    assert len(kept) == 2
    assert f"runs/diabetes/{folder.name}/advice.png" in first.out
    assert call(line.replace(",8,all", "")).out == first.out
    assert len(table_of(call(line.replace(",8,all", ",8")).out)) == 3
    assert len(list(folder.rglob("journal.jsonl"))) == 3
    assert {path: path.read_bytes() for path in kept} == kept  # with the seconds that each repetition took


@pytest.mark.usefixtures("few_trees")
@pytest.mark.parametrize("finished", [0, 2])
def test_failed_repetitions_are_in_the_exit_code(call: Call, monkeypatch: pytest.MonkeyPatch, finished: int) -> None:
    carry_out = advise.carry_out

    def failing(plan: Plan, **how: Any) -> RunOutcome:
        whole = carry_out(plan, **how) if finished else RunOutcome(plan.folder, 0, 0, 0, NO_CHOICES)
        return replace(whole, finished=finished, failed=3)

    monkeypatch.setattr(advise, "carry_out", failing)
    answer = call(LINE.replace("k=2,4,8,all", "k=all backend=sequential"), 1)
    assert [row[1] for row in table_of(answer.out)] == (["ridge"] if finished else [])


def test_sweeps_that_differ_in_the_tuning_alone_have_folders_of_their_own(call: Call, planned: list[Plan]) -> None:
    line = LINE.replace("k=2,4,8,all", "k=4").replace("aelr,ridge", "aelr")
    for words in (line, line.replace("tuning.B=40", "tuning.B=30"), line):
        call(words)
    first, other, again = (plan.folder.parent for plan in planned)
    assert first == again != other


@pytest.mark.usefixtures("few_trees")
def test_with_prices_the_total_is_money(call: Call, here: Path) -> None:
    words = "advise total=4000 algo=aelr,ridge k=4,all dataset.costs=bundled dataset.unit=EUR"
    line = " ".join([words, *(f"{key}={value}" for key, value in KEYS.items())])
    answer = call(line)
    assert answer.out.startswith("diabetes, 4,000 EUR")
    planned = call(f"{line} --dry-run").out.splitlines()
    assert planned[1].endswith("a run in EUR")
    assert [row.split()[-1] for row in planned[2:4]] == ["4,000", "3,975"]
    (head,) = (cells for cells in map(str.split, answer.out.splitlines()) if cells[:2] == ["k", "learner"])
    assert head[:5] == ["k", "learner", "examples", "attributes", "EUR"]
    rows = {row[1]: row for row in table_of(answer.out)}
    assert rows["ridge"][2:5] == ["53", "530", "3,975"]
    (curves,) = (pd.read_csv(path) for path in here.rglob("curves.csv") if "aelr" in path.parent.name)
    assert curves["cost"].between(3900, 4000).all()
    assert curves["examples"].nunique() > 1  # as each repetition ends where its own draws have spent the total
    assert float(rows["aelr"][4].replace(",", "")) == pytest.approx(curves["cost"].mean(), abs=0.5)
    assert int(rows["aelr"][2]) == pytest.approx(curves["examples"].mean(), abs=0.6)
    assert re.search("(?m)^With 4,000 EUR, .* (is best|has the lowest error)", answer.out)
    (caption,) = here.rglob("advice.txt")
    text = " ".join(caption.read_text().split())
    assert "a learner that had spent 4,000 EUR, but for less than an example, or" in text
    assert "ridge: 53 examples, 530 attributes, 3,975 EUR, error" in text


def test_a_dry_run_prints_cells_and_bills_and_computes_nothing(call: Call, here: Path, planned: list[Plan]) -> None:
    line = LINE.replace("tuning=fixed tuning.B=40 tuning.eta=0.01", "tuning.folds=2")
    answer = call(f"{line} --dry-run")
    assert not planned
    assert list(here.iterdir()) == []
    keys = {key: value for key, value in KEYS.items() if not key.startswith("tuning")}
    plans = [
        api.plan({**keys, "tuning": "cv", "tuning.folds": 2, "total": 1500, "algo": algo, "k": k})
        for algo, k in (("aelr", 2), ("aelr", 4), ("aelr", 8), ("ridge", 10))
    ]
    title, _, *rows, together, folder = answer.out.splitlines()
    assert title.startswith("diabetes: d = 10, 398 training examples, 5 repetitions; at most")
    cells = [row.replace(",", "").split() for row in rows]
    assert [cell[:2] for cell in cells] == [["aelr", "2"], ["aelr", "4"], ["aelr", "8"], ["ridge", "all"]]
    for cell, plan in zip(cells, plans, strict=True):
        run, tuning = plan.attributes_final, plan.widest().attributes_tuning
        assert list(map(int, cell[2:])) == [plan.checkpoints[-1], run, tuning, 5 * (run + tuning)]
    assert int(together.replace(",", "").split()[1]) == sum(int(cell[-1]) for cell in cells)
    assert re.fullmatch("folder: runs/diabetes/advise-total1500-seed0-[0-9a-f]{8}", folder)
    call(line)
    assert planned[0].folder.parent == (here / folder.removeprefix("folder: "))


def test_a_dry_run_prints_what_all_runs_note(call: Call, here: Path) -> None:
    rows = [f"{at},{at % 7},{at % 5},{at % 3}" for at in range(60)]
    (here / "table.csv").write_text("\n".join(["id,a,b,y", *rows]) + "\n")
    words = "advise dataset=file dataset.path=table.csv total=60 algo=aemr,ridge --dry-run"
    assert "attribute 'id' looks like an identifier of the rows" in call(words).err


def test_only_the_end_of_curves_is_computed_without_prices(call: Call, planned: list[Plan]) -> None:
    words = "advise dataset=diabetes algo=aelr k=4 tuning=theory"
    call(f"{words} total=500")
    call(f"{words} total=500 checkpoints=3")
    call(f"{words} total=4000 dataset.costs=bundled")
    assert [len(plan.checkpoints) for plan in planned] == [1, 3, 1]


def test_a_budget_that_is_too_small_is_left_out_with_a_notice(call: Call) -> None:
    answer = call(f"{LINE.replace('k=2,4,8,all', 'k=1,4').replace('aelr,ridge', 'aelr')} --dry-run")
    assert answer.err.startswith("budgetreg: left out: k=1: aelr needs a budget of at least 2")
    assert [row.split()[:2] for row in answer.out.splitlines()[2:-2]] == [["aelr", "4"]]


def test_without_names_the_recommended_learner_and_full_rows_are_compared(call: Call, planned: list[Plan]) -> None:
    call("advise total=500 dataset=diabetes")
    cells = {(plan.config.algo.name, plan.config.k) for plan in planned}
    assert cells == {
        *((name, k) for name in ("aemr", "fixed_subset") for k in (2, 4, 8, 10)),
        *((name, 10) for name in ("ridge", "lasso", "online_ridge", "online_lasso", "impute_ridge")),
    }
    planned.clear()
    call("advise total=500 dataset=diabetes k=3")
    assert {(plan.config.algo.name, plan.config.k) for plan in planned} == {("aemr", 3), ("fixed_subset", 3)}


def test_with_missing_values_imputed_rows_are_compared_as_full_rows(
    call: Call, here: Path, planned: list[Plan]
) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5))
    table = pd.DataFrame(X, columns=list("abcde")).assign(y=X.sum(axis=1) + rng.normal(size=120))
    table.iloc[20:] = table.iloc[20:].mask(rng.random((100, 6)) < [0.1, 0.1, 0.1, 0.1, 0.1, 0])
    table.to_csv(here / "gaps.csv", index=False)
    line = "advise dataset=file dataset.path=gaps.csv dataset.missing=unavailable total=200"
    answer = call(line)
    assert "impute_ridge with k=5, all attributes that an example has, are compared in place of" in answer.err
    assert "left out" not in answer.err
    cells = {(plan.config.algo.name, plan.config.k) for plan in planned}
    assert cells == {*((name, k) for name in ("aemr", "fixed_subset") for k in (2, 4, 5)), ("impute_ridge", 5)}
