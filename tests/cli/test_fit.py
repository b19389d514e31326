"""``fit`` learns once from all rows, looks at nothing that is not paid for, and shows what was paid."""

import io
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import budgetreg
from budgetreg.algorithms.conditional import conditional_means
from budgetreg.api import fit_plan
from budgetreg.common.errors import ConfigError, DataError
from budgetreg.protocol.repetitions import run_repetitions
from budgetreg.protocol.split import split_data
from budgetreg.runs.runner import execute
from budgetreg.runs.series import Payments, run_paid
from tests.commands import Call
from tests.tiers import slow_but

N, D = 60, 6
FIXED = {"tuning": "fixed", "tuning.B": 1}
RIDGE = {"dataset": "file", "dataset.path": "own.csv", "algo": "ridge", "total": 120, **FIXED}
NAIVE = "dataset=file dataset.path=own.csv algo=naive k=2 tuning=fixed tuning.B=2 dataset.scale=max_abs pilot=0"


@pytest.fixture(autouse=True)
def here(here: Path) -> Path:
    write(table(), here)
    return here


def table() -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    return np.column_stack([X, X @ np.arange(D) + rng.normal(size=N)])


def write(values: np.ndarray, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    pd.DataFrame(values, columns=list("abcdefy")).to_csv(folder / "own.csv", index=False)


def model(folder: Path) -> dict[str, np.ndarray]:
    with np.load(folder / "model.npz") as file:
        return dict(file)


def test_rows_that_are_not_paid_for_change_nothing(here: Path) -> None:
    results = budgetreg.fit(RIDGE)
    plan = fit_plan(RIDGE)
    split = split_data(plan.config, plan.n_test, plan.pilot, 0)
    order = np.concatenate([split.pilot, split.order])
    assert sorted(order.tolist()) == list(range(N))  # none is kept for a test
    seen = results.curves["examples"].item()
    assert seen == 120 // D
    values = table()
    values[order[seen:], :D] *= 1e3
    write(values, here / "other")
    other = budgetreg.fit({**RIDGE, "dataset.path": "other/own.csv"})
    for name, array in model(results.folder).items():
        np.testing.assert_array_equal(model(other.folder)[name], array)
    values[order[0], 0] += 1
    write(values, here / "third")
    third = budgetreg.fit({**RIDGE, "dataset.path": "third/own.csv"})
    assert not np.array_equal(model(third.folder)["w"], model(results.folder)["w"])


def test_the_model_is_ridge_of_the_rows_that_were_paid_for() -> None:
    """All rows, with a radius that binds nothing: least squares by another route."""
    folder = budgetreg.fit({**RIDGE, "total": N * D, "tuning.B": 100}).folder
    X, y = table()[:, :D], table()[:, D]
    A = np.column_stack([np.ones(N), X])
    solution = np.linalg.lstsq(A, y, rcond=None)[0]
    learned = {name: model(folder)[name][0] for name in ("w", "b", "c")}
    np.testing.assert_allclose(learned["w"], solution[1:], rtol=1e-5)
    assert learned["b"] - learned["c"] @ learned["w"] == pytest.approx(solution[0], rel=1e-4)


def test_no_error_is_reported(call: Call) -> None:
    said = call(f"fit {NAIVE} out=mine")
    curves = budgetreg.load("mine").curves
    assert len(curves) == 1
    assert curves.filter(like="test_").isna().all(axis=None)
    assert f"no error was estimated: budgetreg run {NAIVE} estimates it" in said.out
    for command in ("plot mine", "compare mine"):
        assert "mine was learned from all rows (budgetreg fit) and has no test errors" in call(command, 3).err
    call(f"run {NAIVE} out=tested")
    assert "mine: left out, as it was learned from all rows" in call("plot mine tested").err


def test_the_bill_is_what_was_counted(call: Call) -> None:
    (Path("prices.csv")).write_text("attribute,cost\na,1\nb,2\nc,3\nd,4\ne,5\nf,6\n")
    said = call(f"fit {NAIVE} dataset.costs=prices.csv dataset.unit=EUR total=200 out=mine")
    (run,) = budgetreg.load("mine").runs.to_dict("records")
    lines = [line.split() for line in said.out.splitlines()]
    (paid,) = [line for line in lines if line[:1] == ["learning"]]
    assert [float(word) for word in paid[1:]] == [run["attributes_total"], run["cost_total"]]
    assert 188 < run["cost_total"] <= 200
    items = {line[0]: [float(word) for word in line[1:]] for line in lines if len(line) == 4 and line[0] in "abcdef"}
    assert sorted(items) == list("abcdef")
    assert [items[name][1] for name in "abcdef"] == [1, 2, 3, 4, 5, 6]
    assert sum(count for count, _, _ in items.values()) == run["attributes_total"]
    assert sum(cost for _, _, cost in items.values()) == run["cost_total"]
    assert all(count * price == cost for count, price, cost in items.values())


def test_tuning_is_paid_for_and_shown(call: Call) -> None:
    said = call("fit dataset=file dataset.path=own.csv algo=ridge total=120 tuning.folds=3 out=mine")
    assert "total=120: this pays for learning only; choosing the parameters cost more" in said.err
    (run,) = budgetreg.load("mine").runs.to_dict("records")
    bill = {line.rsplit(maxsplit=1)[0].strip(): line.split()[-1] for line in said.out.splitlines()}
    assert bill["pilot and tuning: rows seen in full"] == str(int(run["rows_full"] * D))
    assert bill["in all, at least"] == str(max(120 + int(run["cells_tuning"]), int(run["rows_full"]) * D))


def test_a_bill_is_that_of_learning_and_tuning_or_of_full_rows_whichever_is_more() -> None:
    """In each repetition; where values are missing, tuning may see more than the rows that are held out."""
    runs = pd.DataFrame({"repetition": [0, 1], "attributes_total": 40, "cells_tuning": [30, 0], "rows_full": [5, 10]})
    results: Any = SimpleNamespace(runs=runs, curves=runs[["repetition"]], manifest={"data": {"d": 6}})
    assert run_paid(results)[0] == Payments(final=80, tuning=30, rows=90, total=70 + 60)
    assert run_paid(results, 1)[0] == Payments(final=40, tuning=0, rows=60, total=60)
    assert run_paid(results, 2) == (None, None)


def test_a_full_row_costs_what_is_bought_of_it(call: Call) -> None:
    """Three of the six attributes are bought together, and count as one."""
    Path("groups.csv").write_text("attribute,group\na,panel\nb,panel\nc,panel\n")
    words = "dataset=file dataset.path=own.csv dataset.groups=groups.csv algo=ridge tuning.folds=3 total=80 out=mine"
    said = call(f"fit {words}")
    (run,) = budgetreg.load("mine").runs.to_dict("records")
    bill = {line.rsplit(maxsplit=1)[0].strip(): line.split()[-1] for line in said.out.splitlines()}
    assert bill["pilot and tuning: rows seen in full"] == str(int(run["rows_full"]) * 4)
    assert "learned from 4 of 4 groups and single attributes (6 attributes in all) of each of" in said.out


@pytest.mark.usefixtures("short_chains")
def test_an_amount_that_is_spent_is_no_number_of_rows(call: Call) -> None:
    said = call("fit dataset=file dataset.path=own.csv algo=aemr k=auto total=300 out=mine")
    rows = len(Path("own.csv").read_text().splitlines()) - 1
    assert f"learned from up to 6 of 6 attributes of each row, {rows} rows in all" in said.out


def test_the_same_choices_leave_the_same_bytes(here: Path, call: Call) -> None:
    called = budgetreg.fit(RIDGE).folder
    words = " ".join(f"{key}={value}" for key, value in RIDGE.items())
    call(f"fit {words} n_jobs=2 out=typed")
    plan = fit_plan({**RIDGE, "out": "killed"})

    def killed(*arguments: object) -> list[dict[str, object]]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(plan, function=killed)
    again = call(f"fit {words} out=killed")
    for folder in ("typed", "killed"):
        for name in ("curves.csv", "model.npz"):
            assert (here / folder / name).read_bytes() == (called / name).read_bytes()
    journal = (here / "killed" / "journal.jsonl").read_bytes()
    assert call(f"fit {words} out=killed").out == again.out
    assert (here / "killed" / "journal.jsonl").read_bytes() == journal
    call("verify killed")


def test_a_folder_with_something_else_is_refused(call: Call) -> None:
    call(f"fit {NAIVE} out=mine")
    assert "holds results of another configuration" in call(f"run {NAIVE} repetitions=1 out=mine", 2).err
    assert "holds results of another configuration" in call(f"fit {NAIVE} seed=1 out=mine", 2).err


def test_a_run_needs_rows_to_test_on(call: Call) -> None:
    said = "dataset.split=all: leaves no row to test on; `budgetreg fit` learns once from all rows"
    assert said in call(f"run {NAIVE} dataset.split=all", 2).err
    with pytest.raises(ConfigError, match="leaves no row to test on"):
        budgetreg.run({**RIDGE, "dataset.split": "all"})


def test_gaps_in_every_row_are_no_obstacle(here: Path) -> None:
    """There is nothing to test, so that no row has to be complete."""
    values = table()
    values[np.arange(N), np.arange(N) % D] = np.nan
    write(values, here)
    choices = {**RIDGE, "algo": "impute_ridge", "k": 3, "pilot": 0, "dataset.scale": "max_abs"}
    results = budgetreg.fit(
        {key: value for key, value in choices.items() if not key.startswith("tuning")}
        | {"dataset.missing": "unavailable"}
    )
    assert 0 < results.runs["attributes_total"].item() <= 120


def test_what_overflows_is_no_model() -> None:
    plan = replace(fit_plan(RIDGE), folder=Path("mine").absolute())

    def broken(*arguments: object) -> list[dict[str, object]]:
        (result,) = run_repetitions(*arguments)  # type: ignore[arg-type]
        return [{**result, "model": {"w": np.full(D, np.inf), "b": np.zeros(()), "c": np.zeros(D)}}]

    with pytest.raises(DataError, match="what was learned is not finite after 20 examples"):
        execute(plan, function=broken)


@pytest.mark.usefixtures("undrawn")
def test_predictions_say_where_they_come_from(here: Path, call: Call) -> None:
    """What was bought, and whether the rows of an error were learned from, as far as it is known."""
    frame = pd.read_csv("own.csv")
    frame["y"] = np.where(frame["y"] > 0, "sick", "healthy")
    frame.to_csv("own.csv", index=False)
    frame[:9].to_csv("some.csv", index=False)
    (here / "elsewhere").mkdir()
    frame.to_csv("elsewhere/copy.csv", index=False)
    call(f"fit {NAIVE} out=mine")
    paid = int(budgetreg.load("mine").runs["attributes_total"].item())
    for name, said in [
        ("own.csv", "on the 60 rows of own.csv, the table that was learned from"),
        ("elsewhere/copy.csv", "on the 60 rows of elsewhere/copy.csv, the table that was learned from"),
        ("some.csv", "on the 9 rows of some.csv; whether any of them was learned from is not known"),
    ]:
        answer = call(f"predict mine {name}")
        assert f"one model, learned once from all rows: {paid:,} attributes were paid for\n" in answer.err
        assert said in answer.err
        predictions = pd.read_csv(io.StringIO(answer.out))
        assert predictions.columns.tolist() == ["prediction", "probability", "label"]
        assert set(predictions["label"]) == {"healthy", "sick"}
        assert predictions["probability"].between(0, 1).all()
        wrong = (predictions["label"] != frame["y"][: len(predictions)]).mean()
        assert f"error rate {wrong:.4g} on the" in answer.err
    call(f"run {NAIVE} repetitions=3 checkpoints=1 out=splits")
    paid = int(budgetreg.load("splits").runs["attributes_total"].sum())
    answer = call("predict splits some.csv")
    assert (
        f"the mean of 3 models, each bought on a split of its own: {paid:,} attributes were paid for in all"
        in answer.err
    )


def test_python_predicts_for_a_frame_by_the_names_of_its_columns(call: Call) -> None:
    folder = budgetreg.fit(RIDGE).folder
    frame = pd.read_csv("own.csv")
    call(f"predict {folder} own.csv out=predicted.csv")
    expected = pd.read_csv("predicted.csv")["prediction"].tolist()
    assert budgetreg.predict(folder, "own.csv")["prediction"].tolist() == expected
    shuffled = frame[[*"yfedcba"]].set_index(pd.Index(range(100, 100 + N), name="patient"))
    predicted = budgetreg.predict(folder, shuffled.assign(note="text"))
    np.testing.assert_allclose(predicted["prediction"], expected, rtol=1e-12)
    assert predicted.index.equals(shuffled.index)
    with pytest.raises(DataError, match="the table: the names of its columns are only numbers, as a row"):
        budgetreg.predict(folder, frame.set_axis(range(frame.shape[1]), axis=1))
    with pytest.raises(DataError, match="the table: its columns have names of 2 levels: give each one name"):
        budgetreg.predict(folder, pd.concat({"first": frame}, axis=1))


def test_the_table_that_was_learned_from_is_known_whatever_is_bought_together(here: Path, call: Call) -> None:
    """Also if ranges were given; another table is not taken for it."""
    frame = pd.read_csv("own.csv")
    names = [name for name in frame.columns if name != "y"]
    (here / "groups.csv").write_text("attribute,group\n" + "".join(f"{name},{name in names[:2]}\n" for name in names))
    (here / "ranges.csv").write_text("attribute,low,high\n" + "".join(f"{name},-9,9\n" for name in names))
    (frame * 2).to_csv("other.csv", index=False)
    for out, option in (("g", "dataset.groups=groups.csv algo=aemr"), ("r", "dataset.ranges=ranges.csv algo=aemr")):
        call(f"fit dataset=file dataset.path=own.csv k=2 {option} out={out}")
        assert "own.csv, the table that was learned from" in call(f"predict {out} own.csv").err
        assert "other.csv; whether any of them was learned from is not" in call(f"predict {out} other.csv").err


@pytest.mark.usefixtures("short_chains")
@pytest.mark.parametrize("centring", slow_but([{}], [{}, {"dataset.center": "none", "intercept": "none"}]))
def test_rows_with_holes_are_predicted_by_what_is_known_of_them(call: Call, centring: dict[str, str]) -> None:
    """As the estimator does; the words for missing values are those of the fit."""
    keys = {key: value for key, value in RIDGE.items() if not key.startswith("tuning")}
    folder = budgetreg.fit({**keys, **centring, "algo": "aemr", "k": 3, "dataset.missing_values": ["?"]}).folder
    arrays = model(folder)
    frame = pd.read_csv("own.csv")
    holes = frame.astype(object)
    holes.loc[:19, "b"], holes.loc[10:29, "e"], holes.loc[5, "f"] = "?", "", "?"
    holes.loc[40:, "y"] = "?"
    holes.insert(0, "patient", [f"p{row:03}" for row in range(N)])
    holes.to_csv("holes.csv", index=False)
    said = call(f"predict {folder} holes.csv id=patient out=predicted.csv")
    assert "on the 40 rows of holes.csv that have a target" in said.err
    predicted = pd.read_csv("predicted.csv")
    assert predicted["patient"].tolist() == holes["patient"].tolist()
    X = holes[list("abcdef")].replace({"?": np.nan, "": np.nan}).to_numpy(dtype=float)
    whole = conditional_means(arrays["mean"][0], arrays["covariance"][0], X)
    expected = arrays["b"][0] + (whole - arrays["c"][0]) @ arrays["w"][0]
    np.testing.assert_allclose(predicted["prediction"], expected, rtol=1e-9)
    np.testing.assert_allclose(budgetreg.predict(folder, holes)["prediction"], expected, rtol=1e-9)
    ridge = budgetreg.fit({**RIDGE, "out": "ridge"}).folder
    holes.replace("?", "").to_csv("empty.csv", index=False)
    assert "incomplete rows need a model that aemr or aeml learned" in call(f"predict {ridge} empty.csv", 3).err
    assert "there is no column 'person'" in call(f"predict {folder} holes.csv id=person", 3).err


@pytest.mark.usefixtures("short_chains")
def test_fit_names_what_predictions_look_at_and_nothing_else_has_to_be_there(here: Path, call: Call) -> None:
    values = table()
    values[:, D] = 9 * values[:, D - 1]
    write(values, here)
    words = "fit dataset=file dataset.path=own.csv dataset.drop=[a] algo=aemr k=3 predict_k=1 out=fit"
    assert "predictions look at 1 of 5 attributes: 'f'\n" in call(words).out
    whole = call("predict fit own.csv")
    assert "the table that was learned from" in whole.err
    frame = pd.read_csv("own.csv")
    holes = frame.assign(b=np.nan, e="?")
    holes.to_csv("holes.csv", index=False)
    frame[["f", "y"]].to_csv("alone.csv", index=False)
    np.savez("arrays.npz", X=holes.drop(columns="y").assign(e=np.nan).to_numpy(dtype=float))
    for path in ("holes.csv", "alone.csv", "arrays.npz"):
        answer = call(f"predict fit {path}")
        assert "is not known" in answer.err or path == "arrays.npz"
        predicted, expected = (pd.read_csv(io.StringIO(text))["prediction"] for text in (answer.out, whole.out))
        np.testing.assert_allclose(predicted, expected, rtol=1e-12)
    holes.assign(f=np.nan).to_csv("holes.csv", index=False)
    answer = call("predict fit holes.csv", 3)
    assert "column 'f': empty or NaN (incomplete rows need a model" in answer.err
    assert "without predict_k" in answer.err
    frame[["b", "y"]].to_csv("alone.csv", index=False)
    assert "there is no column 'f'" in call("predict fit alone.csv", 3).err
    np.savez("arrays.npz", X=np.full((2, 4), np.nan))
    assert "column 1: empty or NaN" in call("predict fit arrays.npz", 3).err
