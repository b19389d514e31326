"""A study: what is recorded, what is charged, what is refused, and that one file holds all of it."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import budgetreg
from budgetreg.common.errors import ConfigError, DataError, UserError
from budgetreg.runs.models import predict

pytestmark = pytest.mark.usefixtures("short_chains")

COSTS = {"age": 0, "ecg": 10, "iron": 20, "zinc": 20}
GROUPS = {"iron": "blood", "zinc": "blood"}
NAN = float("nan")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trial.db"


def created(path: Path, **changes: Any) -> budgetreg.Study:
    examples = pd.DataFrame({"age": [31, 44, NAN], "ecg": [NAN, 2.5, NAN]}, index=["p1", "p2", "p3"])
    options: dict[str, Any] = {
        "examples": examples,
        "targets": {"p1": 1.0, "p2": 2.0, "p3": 3.0},
        "costs": COSTS,
        "groups": GROUPS,
        "unit": "EUR",
    }
    return budgetreg.Study.create(path, **{**options, **changes})


def results(*lines: tuple[Any, ...]) -> pd.DataFrame:
    return pd.DataFrame(lines, columns=["example", "attribute", "value"])


def contents(study: budgetreg.Study) -> tuple[Any, ...]:
    """Return all that a study knows."""
    bill = study.bill()
    tables = (study.table(), study.log(), bill.by_attribute, bill.by_order)
    return (*(table.to_csv() for table in tables), bill.total, bill.on_order)


def test_what_a_study_begins_with_is_free(path: Path) -> None:
    with created(path, targets={"p1": 1.0, "p3": 3.0}) as study:
        table = study.table()
        assert table.columns.tolist() == ["example", "age", "ecg", "iron", "zinc", "target"]
        assert table["example"].tolist() == ["p1", "p2", "p3"]
        np.testing.assert_array_equal(table["ecg"], [NAN, 2.5, NAN])
        np.testing.assert_array_equal(table["target"].astype(float), [1, NAN, 3])
        assert study.bill().total == 0
        assert study.bill().by_attribute["beforehand"].tolist() == [2, 1, 0, 0]


def test_an_order_is_bought_and_charged_once(path: Path) -> None:
    study = created(path)
    order = study.ask(spend=35)
    assert order.columns.tolist() == ["order", "example", "attribute", "cost", "value"]
    assert order["value"].isna().all()
    assert 0 < order["cost"].sum() <= 35
    assert study.bill().on_order == order["cost"].sum()
    assert study.bill().total == 0  # what is pending is not charged
    order["value"] = np.arange(len(order), dtype=float)
    recorded = study.tell(order.sample(frac=1, random_state=0))
    assert (recorded.values, recorded.cost, recorded.spent) == (len(order), order["cost"].sum(), order["cost"].sum())
    before = contents(study)
    assert study.tell(order).repeated == len(order)
    assert contents(study) == before
    assert study.bill().total == order["cost"].sum() == study.bill().by_order["cost"].sum()
    assert study.bill().by_attribute["cost"].sum() == study.bill().total


def test_orders_share_no_cell_and_stay_within_both_limits(path: Path) -> None:
    study = created(path)
    orders = [study.ask(spend=spend, per_example=1) for spend in (20, 30)]
    cells = pd.concat(orders)
    assert not cells.duplicated(["example", "attribute"]).any()
    assert all(order["cost"].sum() <= spend for order, spend in zip(orders, (20, 30), strict=True))
    units = cells.assign(unit=cells["attribute"].replace(GROUPS)).drop_duplicates(["example", "unit"])
    assert units[units["unit"] != "age"].groupby("example").size().max() == 1  # age costs nothing
    with pytest.raises(ConfigError, match="spend=100 per_example=1: nothing that may be ordered is within"):
        study.ask(spend=100, per_example=1)
    rest = study.ask(spend=100)
    assert len(rest) + len(cells) == 12 - 3
    with pytest.raises(ConfigError, match="nothing left to order"):
        study.ask(spend=100)


def test_groups_are_ordered_whole_at_one_price(path: Path) -> None:
    study = created(path)
    order = study.ask(spend=1000)
    blood = order[order["attribute"].isin(GROUPS)]
    for _, lines in blood.groupby("example"):
        assert lines["attribute"].tolist() == ["iron", "zinc"]
        assert lines["cost"].tolist() == [20, 0]
    # The panel is paid for, so that a value of it that was released costs nothing more.
    study.tell(results(("p2", "zinc", 7)))
    study.cancel(1)
    again = study.ask(spend=0)
    assert ("p2", "iron") in set(zip(again["example"], again["attribute"], strict=True))
    assert again["cost"].sum() == 0


def test_the_same_file_and_seed_give_the_same_order(path: Path, tmp_path: Path) -> None:
    with created(path) as study:
        study.ask(spend=10)
    shutil.copy(path, tmp_path / "copy.db")
    first, second = (budgetreg.Study(file).ask(spend=30) for file in (path, tmp_path / "copy.db"))
    assert first.to_csv() == second.to_csv()
    names, costs = [f"p{number}" for number in range(30)], dict.fromkeys("abcdef", 1.0)
    orders = {
        created(tmp_path / f"{seed}.db", examples=names, targets=None, costs=costs, groups=None, seed=seed)
        .ask(spend=30)
        .to_csv()
        for seed in range(2)
    }
    assert len(orders) == 2


def test_an_order_can_be_asked_for_again_by_its_number(path: Path) -> None:
    study = created(path)
    limits = {"spend": 20, "per_example": 2, "seed": 3, "order": 1}
    first = study.ask(**limits)
    before = contents(study)
    assert study.ask(**limits).to_csv() == first.to_csv() == study.order(1).to_csv()
    assert contents(study) == before
    for changed in ({"spend": 30}, {"per_example": 1}, {"per_example": None}, {"seed": None}, {"seed": 4}):
        with pytest.raises(ConfigError, match=r"order=1: .* asked for with 'spend=20 per_example=2 seed=3'"):
            study.ask(**{**limits, **changed})
    with pytest.raises(ConfigError, match="order=5: the next order has the number 2"):
        study.ask(spend=30, order=5)
    study.cancel(1)
    with pytest.raises(ConfigError, match="cancelled"):
        study.ask(**limits)


def test_limits_are_named_as_they_were_given(path: Path) -> None:
    costs = dict.fromkeys("abcdef", 1234567.25)
    study = created(path, examples=["p", "q"], targets=None, costs=costs, groups=None)
    with pytest.raises(ConfigError, match=r"spend=1234567: nothing that is left costs less than 1234567\.25 "):
        study.ask(spend=1234567)
    study.ask(spend=2345678.5, seed=20261128)
    with pytest.raises(ConfigError, match=r"asked for with 'spend=2345678\.5 seed=20261128'"):
        study.ask(spend=1, order=1)


def test_cancelling_releases_what_is_pending(path: Path) -> None:
    study = created(path)
    order = study.ask(spend=1000)
    study.tell(results(("p1", "ecg", 1.5)))
    assert study.cancel(1) == len(order) - 1
    before = contents(study)
    assert study.cancel(1) == 0
    assert contents(study) == before
    assert study.bill().on_order == 0
    assert study.bill().total == 10
    assert len(study.ask(spend=1000)) == len(order) - 1
    with pytest.raises(ConfigError, match="order=7: there is no such order; the last one is 2"):
        study.cancel(7)


def test_partial_results_and_what_is_never_measured(path: Path) -> None:
    study = created(path)
    order = study.ask(spend=1000)
    pending = study.tell(results(("p1", "ecg", None), ("p3", "ecg", "unavailable"), ("p1", "iron", "1.5")))
    assert (pending.pending, pending.unavailable, pending.values) == (1, 1, 1)
    assert study.bill().total == 20
    assert study.bill().by_order["on_order"].tolist() == [len(order) - 2]
    study.cancel(1)
    again = study.ask(spend=1000)
    cells = set(zip(again["example"], again["attribute"], strict=True))
    assert ("p3", "ecg") not in cells
    assert ("p1", "ecg") in cells


def test_values_that_nobody_ordered_are_charged_unless_free(path: Path) -> None:
    study = created(path)
    study.tell(results(("p1", "ecg", 1)))
    study.tell(results(("p3", "ecg", 1)), free=True)
    assert study.bill().total == 10
    assert study.bill().by_order[["order", "paid", "cost"]].to_numpy().tolist() == [[0, 1, 10]]
    study.ask(spend=1000)
    assert study.tell(results(("p3", "iron", 1)), free=True).unordered == 0
    assert study.bill().total == 30  # it was ordered


def test_a_different_result_needs_leave_and_the_log_keeps_both(path: Path) -> None:
    study = created(path)
    study.ask(spend=1000)
    study.tell(results(("p1", "ecg", 1)))
    before = contents(study)
    with pytest.raises(
        DataError, match=r"data row 2, column 'value': 'ecg' of example 'p1' is 1 already.*replace=true"
    ):
        study.tell(results(("p3", "ecg", 5), ("p1", "ecg", 2)))
    with pytest.raises(DataError, match="is 1 already, and this is unavailable"):
        study.tell(results(("p1", "ecg", "unavailable")))
    with pytest.raises(DataError, match="the same table has that value: data row 1"):
        study.tell(results(("p3", "ecg", 5), ("p3", "ecg", 6)), replace=True)
    assert contents(study) == before
    assert study.tell(results(("p1", "ecg", 2)), replace=True).replaced == 1
    assert study.bill().total == 10
    assert study.log()[["old", "new"]].to_numpy().tolist()[-1] == [1.0, 2.0]


def test_examples_and_targets_arrive_later(path: Path) -> None:
    study = created(path, targets={"p1": 1.0, "p3": 3.0})
    later = pd.DataFrame({"example": ["p2", "p4"], "target": [2.0, NAN], "iron": [NAN, 5]})
    new = {"prices": 0, "attributes": 0, "examples": 1, "targets": 1, "values": 1, "replaced": 0}
    assert study.add(later) == new
    before = contents(study)
    assert not any(study.add(later).values())
    assert contents(study) == before
    assert study.bill().total == 0
    with pytest.raises(DataError, match="'target' of example 'p2' is 2 already"):
        study.add(["p2"], targets=[4.0])
    assert study.add(["p2"], targets=[4.0], replace=True)["replaced"] == 1
    study.ask(spend=1000)
    with pytest.raises(DataError, match="is on order: budgetreg study tell"):
        study.add(pd.DataFrame({"example": ["p1"], "ecg": [3.0]}))
    with pytest.raises(
        DataError, match=r"no attribute 'irn' \(did you mean 'iron'\?\): leave it out with drop=\[irn\]"
    ):
        study.add(pd.DataFrame({"example": ["p1"], "irn": [3.0]}))
    with pytest.raises(DataError, match="target 'sick': the others are numbers"):
        study.add(["p5"], targets=["sick"])


def test_two_labels_are_two_valued(path: Path) -> None:
    study = created(path, targets=["sick", None, "healthy"])
    state = study.state()
    np.testing.assert_array_equal(state.y, [1, NAN, -1])
    assert state.labels == ("healthy", "sick")
    for name, targets, labels in (("numbers", [0.0, 1.0, None], ()), ("repeated", [0.0, 1.0, 0.0, 1.0], ("0", "1"))):
        examples = [f"p{number}" for number in range(len(targets))]
        assert created(path.with_name(name), examples=examples, targets=targets).state().labels == labels
    answers = created(path.with_name("answers"), examples=examples, targets=[True, np.bool_(False), None, True])
    assert answers.state().labels == ("False", "True")
    with pytest.raises(DataError, match="'0,5' has a decimal comma"):
        created(path.with_name("commas"), examples=examples, targets=["0,5", "1,5", "0,5", "1,5"])
    with pytest.raises(DataError, match="target 'dead': there would be 3 labels"):
        study.add(["p2"], targets=["dead"])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"costs": {**COSTS, "ecg": -1}}, "costs: entry 2, column 'cost': -1 is below 0"),
        ({"costs": [20, 1]}, "costs: a mapping of attributes is needed, such as {'age': ...}, not a list"),
        ({"costs": {"age": 1}, "groups": None}, "no price for 'ecg': each new attribute needs one"),
        ({"costs": dict.fromkeys(COSTS, 0)}, "every price would be 0"),
        ({"costs": {**COSTS, "zinc": 5}}, "'zinc' is in a group with the price 20: a group has one price"),
        ({"algo": "aelr"}, "algo=aelr: a study needs a learner that models the attributes: aemr or aeml"),
        ({"algo": "aeml2"}, "aemr or aeml (did you mean 'aeml'?)"),
        ({"groups": {"irn": "blood"}}, "no attribute 'irn' (did you mean 'iron'?)"),
        ({"examples": ["p1", "p1"], "targets": None}, "'p1' is there already: entry 1"),
        ({"examples": ["p1"], "targets": [1.0, 2.0]}, "targets: 2 for 1 example"),
        ({"examples": ["p1"], "targets": None, "costs": {"age": 1}, "groups": None}, "two are needed"),
        (
            {"examples": pd.DataFrame({"example": ["p1"], "sex": ["f"], "ward": ["A"]}), "targets": None},
            "columns 'sex', 'ward' are not numbers (data row 1: 'f' is not a number): write categories as columns of 0 "
            "and 1, such as pandas.get_dummies makes, or leave them out with drop=[sex,ward]",
        ),
    ],
)
def test_what_no_study_can_begin_with_is_refused(path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as error:
        created(path, **changes)
    assert said in str(error.value)
    assert not path.exists()


def test_an_existing_file_is_kept(path: Path) -> None:
    with created(path) as study:
        study.tell(results(("p1", "ecg", 1)))
        before = contents(study)
    with created(path) as study:  # the same call again
        assert contents(study) == before
    with pytest.raises(ConfigError, match="exists already"):
        created(path, seed=1)
    path.write_text("mine")
    with pytest.raises(ConfigError, match="exists already"):
        created(path)
    assert path.read_text() == "mine"


def test_only_studies_are_opened(path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot open .*trial.db: No such file or directory"):
        budgetreg.Study(path)
    for content in (b"", b"example,attribute\n", b"SQLite format 3\0"):
        path.write_bytes(content)
        with pytest.raises(DataError, match="is not a study: budgetreg study create makes one"):
            budgetreg.Study(path)
    path.unlink()
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE mine (a)")
    other.close()
    with pytest.raises(DataError, match="is not a study"):
        budgetreg.Study(path)
    path.unlink()
    created(path)
    with closing(sqlite3.connect(path)) as newer:
        newer.execute("PRAGMA user_version = 4")
    with pytest.raises(DataError, match=r"newer version of budgetreg \(schema 4, and this one reads up to 3\)"):
        budgetreg.Study(path)


def bought(path: Path, n: int = 40) -> tuple[budgetreg.Study, pd.DataFrame]:
    """Return a study in which two thirds of the values are recorded, and the whole table."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4)) @ (np.eye(4) + 0.5) * [1, 10, 0.1, 1] + [0, 50, 0, 0]
    y = X @ [1, 0.2, 5, 0] + 0.1 * rng.normal(size=n)
    whole = pd.DataFrame(X, columns=list(COSTS)).assign(target=y)
    values = whole.drop(columns="target").where(rng.random((n, 4)) < 0.67)
    study = budgetreg.Study.create(path, examples=values, targets=y, costs=COSTS, groups=GROUPS, unit="EUR")
    return study, whole


def test_predictions_of_examples_with_holes(path: Path) -> None:
    study, whole = bought(path)
    model = study.fit()
    predicted = study.predict(whole.iloc[:5], model=model)
    pd.testing.assert_frame_equal(predicted, study.predict(whole.iloc[:5]))
    assert predicted.columns.tolist() == ["example", "prediction", "std"]
    np.testing.assert_allclose(predicted["prediction"], model.predict(whole.iloc[:5, :4]))
    np.testing.assert_allclose(predicted["std"], np.sqrt(model.noise_variance_))
    fewer = study.predict(whole.iloc[:5][["zinc", "ecg"]], model=model)  # matched by name; the others are holes
    holes = whole.iloc[:5, :4].assign(age=NAN, iron=NAN)
    np.testing.assert_allclose(fewer["prediction"], model.predict(holes))
    assert (fewer["std"] > predicted["std"]).all()
    with pytest.raises(DataError, match="none of the attributes age, ecg, iron, zinc"):
        study.predict(pd.DataFrame({"aeg": [1.0]}), model=model)


def test_the_index_of_a_frame_names_new_examples(path: Path) -> None:
    study, whole = bought(path)
    model = study.fit()
    values = whole[list(COSTS)].iloc[:3]
    for index, names in ((["n7", "n8", "n9"], ["n7", "n8", "n9"]), ([5, 2, 9], ["5", "2", "9"]), (None, list("123"))):
        frame = values.set_axis(pd.RangeIndex(3) if index is None else index).assign(ecg=NAN)
        assert study.predict(frame, model=model)["example"].tolist() == names
        assert study.next(frame, model=model)["example"].unique().tolist() == names
    with pytest.raises(DataError, match="'n' is there already"):
        study.predict(values.set_axis(["n", "m", "n"]), model=model)
    named = values.assign(example=["a", "b", "c"]).set_axis([5, 2, 9])
    assert study.predict(named, model=model)["example"].tolist() == ["a", "b", "c"]


def test_a_series_that_counts_its_rows_names_no_examples(tmp_path: Path) -> None:
    """Its numbers may be those of the examples in another order: then it could mean either."""

    def created(names: list[int], targets: object) -> dict[str, float]:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.db"
        table = budgetreg.Study.create(path, examples=names, targets=targets, costs=COSTS).table()
        return dict(zip(table["example"], table["target"], strict=True))

    y = [30.0, 0.0, 20.0, 10.0]
    for names in ([4, 1, 3, 2], [0, 1, 2, 3]):
        assert created(names, pd.Series(y)) == dict(zip(map(str, names), y, strict=True))
    some = created([0, 1, 2, 3], pd.Series(y[:2]))
    assert (some["0"], some["1"], np.isnan([some["2"], some["3"]]).all()) == (30, 0, True)
    names = [3, 0, 2, 1]
    for targets in (y, pd.Series(y, index=names), dict(zip(names, y, strict=True))):
        assert created(names, targets) == {"3": 30, "0": 0, "2": 20, "1": 10}
    with pytest.raises(
        ConfigError, match="the same numbers in another order: give a list in the order of the examples"
    ):
        created(names, pd.Series(y))


def test_names_that_no_file_can_hold_are_refused(tmp_path: Path) -> None:
    half, path = "p\udcff", tmp_path / "trial.db"
    for given in (
        {"examples": [half, "q"], "costs": COSTS},
        {"examples": ["p", "q"], "costs": {half: 1.0, "a": 1.0}},
        {"examples": ["p", "q"], "costs": COSTS, "unit": half},
        {"examples": ["p", "q"], "costs": COSTS, "targets": [half, "n"]},
    ):
        with pytest.raises(DataError, match=r"'p\\udcff': holds half of a character"):
            budgetreg.Study.create(path, **given)
        assert not path.exists()


def test_what_to_measure_next_of_new_examples(path: Path) -> None:
    study, _ = bought(path)
    model = study.fit()
    new = pd.DataFrame(
        {"example": ["n1", "n2"], "ecg": [50.0, NAN], "age": [0.0, NAN], "zinc": 0.0, "iron": [1.0, NAN]}
    )
    asked = study.next(new, spend=25, model=model)
    assert asked.columns.tolist() == ["example", "attribute", "cost", "std_before", "std_after", "for_all"]
    assert set(asked["example"]) == {"n2"}  # of the other one, everything is known
    assert asked["cost"].sum() <= 25
    assert asked["attribute"].iloc[0] == "age"  # it is free
    assert (asked["std_after"] < asked["std_before"]).all()
    assert (asked["std_after"].to_numpy()[:-1] == asked["std_before"].to_numpy()[1:]).all()
    holes = pd.DataFrame([[NAN, NAN, NAN, 0.0]], columns=list(COSTS))
    np.testing.assert_allclose(asked["std_before"].iloc[0], model.predict(holes, return_std=True)[1])
    some, unknown = (rows for _, rows in study.next(new[["example", "ecg"]], model=model).groupby("example"))
    assert set(unknown["attribute"]) == {"age", "ecg", "iron + zinc"}
    assert unknown.set_index("attribute")["cost"].to_dict() == {"age": 0, "ecg": 10, "iron + zinc": 20}
    assert unknown["for_all"].tolist() == [1, 2, 3]  # nothing is known of it, so that its order is the one for all
    place = dict(zip(unknown["attribute"], unknown["for_all"], strict=True))
    assert some["for_all"].tolist() == [place[name] for name in some["attribute"]]


def test_what_is_proposed_is_ordered_and_nothing_is_recorded_before(path: Path) -> None:
    study, _ = bought(path)
    before = contents(study)
    proposed = study.propose(60, 3)
    assert contents(study) == before
    placed = study.place_order(60, 3)
    assert (placed.number, placed.lines, placed.reason) == (proposed.number, proposed.lines, proposed.reason)
    with pytest.raises(ConfigError, match="spend=-1"):
        study.propose(-1)


def test_the_exported_model_is_what_predict_reads(path: Path, tmp_path: Path) -> None:
    study, whole = bought(path)
    study.export(tmp_path / "model.npz")
    whole.to_csv(tmp_path / "new.csv", index=False)
    predictions = predict(tmp_path / "model.npz", tmp_path / "new.csv")
    np.testing.assert_allclose(predictions.columns["prediction"], study.predict(whole)["prediction"])
    assert any("mean squared error" in note for note in predictions.notes)
    (tmp_path / "model.npz").write_bytes((tmp_path / "model.npz").read_bytes()[:-30])
    with pytest.raises(DataError, match=r"model.npz is not a model, or damaged"):
        predict(tmp_path / "model.npz", tmp_path / "new.csv")


def test_labels_are_those_of_the_exported_model(path: Path, tmp_path: Path) -> None:
    """Few are sick: the label follows the probability, also of incomplete rows, and not the sign."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.normal(size=(150, 3)), columns=list("abc"))
    labels = np.where(X.sum(axis=1) + rng.normal(size=150) > 1.8, "sick", "healthy")
    study = budgetreg.Study.create(path, examples=X, targets=list(labels))
    study.export(tmp_path / "model.npz")
    new = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    new = new.where(rng.random(new.shape) > 0.4)
    new.loc[0] = NAN
    new.to_csv(tmp_path / "new.csv", index=False)
    found, exported = study.predict(new), predict(tmp_path / "model.npz", tmp_path / "new.csv").columns
    np.testing.assert_allclose(found["prediction"], exported["prediction"], rtol=1e-9)
    assert found["label"].tolist() == exported["label"]
    sick, total = found["label"] == "sick", new.sum(axis=1)
    assert (sick & (found["prediction"] < 0)).any()
    assert total[sick].mean() > 1.5 > 0.3 > total[~sick].mean()
    probabilities = np.array(exported["probability"])
    assert probabilities[0] == pytest.approx((labels == "sick").mean(), abs=1e-6)
    assert probabilities.std() > 0.1


def test_a_mistyped_label_can_be_replaced(path: Path) -> None:
    study = created(path, targets=["well", "sikc", None])
    assert study.add(["p2"], targets=["sick"], replace=True)["replaced"] == 1
    assert study.state().labels == ("sick", "well")


def test_targets_of_other_names_are_refused(path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no example 'pp2' \(did you mean 'p2'\?\)"):
        created(path, targets={"p1": 1.0, "pp2": 2.0})
    study = created(path, targets=None)
    with pytest.raises(DataError, match="the study has no example 'p4'"):
        study.add(targets={"p1": 1.0, "p4": 2.0})
    assert study.add(targets=pd.Series({"p1": 1.0, "p2": 2.0}))["targets"] == 2
    frame = pd.DataFrame({"name": ["q1", "q2"], "y": [1.0, 2.0]})
    other = budgetreg.Study.create(
        path.with_name("other.db"), examples=frame["name"], targets=frame["y"], costs={"a": 1, "b": 2}
    )
    assert other.table()["target"].tolist() == [1.0, 2.0]


def test_models_of_other_attributes_are_refused(path: Path) -> None:
    study, _ = bought(path)
    model = study.fit()
    study.add(costs={"cortisol": 3})
    new = pd.DataFrame({"age": [1.0]})
    for call in (study.predict, study.next):
        with pytest.raises(ConfigError, match=r"model: it was learned from 'age', .* Study.fit learns them"):
            call(new, model=model)  # type: ignore[operator]
        with pytest.raises(ConfigError, match="model: it has not learned how attributes are related"):
            call(new, model=budgetreg.estimators.AEMR())  # type: ignore[operator]


def test_amounts_and_seeds_are_numbers(path: Path) -> None:
    study = created(path)
    for spend in ("5", None, NAN, -1, float("inf")):
        with pytest.raises(ConfigError, match="must be a number of at least 0"):
            study.ask(spend)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="must be a number of at least 0"):
        study.next(pd.DataFrame({"age": [1.0]}), "5")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="a sequence of numbers is needed"):
        study.forecast(5)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"seed=.* of at most 18 digits"):
        study.ask(5, seed=2**63)


def test_nothing_is_learned_without_targets(path: Path) -> None:
    study = created(path, targets=None)
    with pytest.raises(DataError, match="no target is known: budgetreg study add records the column target"):
        study.fit()
    assert len(study.ask(spend=30)) > 0  # which examples will have targets is not known yet
    study.add(["p1"], targets=[1.0])
    with pytest.raises(DataError, match="at least 10 examples with a target and a value"):
        study.error()
    with pytest.raises(ConfigError, match="spending -1: must be a number of at least 0"):
        study.forecast([-1])


def test_examples_without_a_target_are_not_ordered_while_others_have_one(path: Path) -> None:
    study = created(path, targets={"p1": 1.0, "p3": 3.0})
    assert set(study.ask(spend=1000)["example"]) == {"p1", "p3"}
    with pytest.raises(ConfigError, match="nothing left to order of examples whose target is known"):
        study.ask(spend=1000)
    study.add(["p2"], targets=[2.0])
    assert set(study.ask(spend=1000)["example"]) == {"p2"}


def test_estimates_are_made_once_for_what_is_known(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study, whole = bought(path)
    study.tell(results(("0", "age", whole["age"][0]), ("1", "iron", whole["iron"][1])), replace=True)
    error = study.error()
    assert 0 < error.complete.low < error.complete.estimate < error.complete.high
    assert error.complete.estimate <= error.as_bought.estimate
    with monkeypatch.context() as patch:
        patch.setattr("budgetreg.study.error.estimate_error", None)
        study.ask(spend=20)  # changes nothing that is known
        assert study.error() == error
        with budgetreg.Study(path) as again:
            assert again.error() == error
    near, far = study.forecast([0, 1000])
    assert far.estimate < near.estimate
    study.tell(results(("2", "ecg", whole["ecg"][2])), replace=True)
    study.error()
    spent = [each.spent for each in study.history()]
    assert spent == sorted(spent)
    assert spent[-1] == study.bill().total
    assert len(spent) == len(set(spent))


def test_the_words_for_missing_values_hold_for_all_tables_of_a_study(path: Path, tmp_path: Path) -> None:
    table = tmp_path / "patients.csv"
    table.write_text("patient,a,b,y\np1,?,2,1.5\np2,-999,.,?\np3,4,-999.0,2\n")
    words = ["?", ".", -999]
    made = {"examples": table, "targets": "y", "id": "patient", "missing_values": words}
    study = budgetreg.Study.create(path, **made)
    budgetreg.Study.create(path, **made)  # it is there already
    frame = study.table()
    np.testing.assert_array_equal(frame[["a", "b", "y"]], [[np.nan, 2, 1.5], [np.nan, np.nan, np.nan], [4, np.nan, 2]])
    study.ask(spend=4)
    assert study.tell(pd.DataFrame({"patient": ["p1", "p2"], "a": [-999.0, 3.0]})).values == 1
    study.add(pd.DataFrame({"patient": ["p9"], "a": ["?"], "b": ["5"], "y": ["."]}))
    assert study.table().iloc[-1].tolist()[:3] == ["p9", pytest.approx(np.nan, nan_ok=True), 5.0]
    with pytest.raises(ConfigError, match="exists already"):
        budgetreg.Study.create(path, **{**made, "missing_values": ["?", ".", -999, "x"]})


def test_names_and_costs_are_never_words_for_missing_values(path: Path) -> None:
    table = pd.DataFrame({"patient": ["9", "10"], "y": [9.0, 2.0], "99": [9.0, 1.0]})
    made = {"examples": table, "targets": "y", "id": "patient", "missing_values": [9, 99], "costs": {"99": 2, "ecg": 3}}
    study = budgetreg.Study.create(path, **made)
    assert study.table().fillna(0).to_numpy().tolist() == [["9", 0, 0, 0], ["10", 1, 0, 2]]
    line = {"example": "9", "attribute": "99", "value": 4.0, "cost": 99}
    assert study.tell(pd.DataFrame([line, {**line, "attribute": "ecg", "value": 9.0, "cost": None}])).cost == 99
    assert study.add(pd.DataFrame({"patient": ["9"], "y": [1.0]}))["targets"] == 1
    assert study.tell(pd.DataFrame({"patient": ["9", "10"], "ecg": [9.0, 5.0]})).values == 1
    assert study.table()["ecg"].fillna(0).tolist() == [0, 5]


def filled_in(order: pd.DataFrame) -> pd.DataFrame:
    """Return an order with results."""
    return order.assign(value=np.random.default_rng(len(order)).normal(size=len(order)))


def test_what_costs_nothing_takes_no_place_of_an_order(path: Path) -> None:
    costs = {"age": 0.0, "a": 3.0, "b": 4.0, "c": 5.0}
    study = budgetreg.Study.create(path, examples=[f"p{i}" for i in range(60)], targets=[*range(60)], costs=costs)
    for _ in range(5):
        order = study.ask(40, 3)
        assert 35 < order["cost"].sum() <= 40
        study.tell(filled_in(order))
    state = study.state()
    assert (state.known[:, 1:].sum(axis=1) <= 3).all()
    assert state.known[state.known[:, 1:].any(axis=1), 0].all()


def test_the_rest_of_a_group_that_was_paid_for_leaves_the_money_for_others(path: Path) -> None:
    costs, groups = {"a": 3.0, "b": 3.0, "c": 10.0, "d": 10.0}, {"c": "panel", "d": "panel"}
    names = [f"p{i}" for i in range(60)]
    study = budgetreg.Study.create(path, examples=names, targets=[*range(60)], costs=costs, groups=groups)
    study.tell(filled_in(pd.DataFrame({"example": names[:40], "attribute": "c"})))
    order = study.propose(50)
    assert 40 < order.cost <= 50
    rest = [line for line in order.lines if line[2] == "d" and line[1] in names[:40]]
    assert len(rest) == 40
    assert {cost for *_, cost in rest} == {0.0}
    assert order.reason.startswith("40 values that cost nothing more, and ")
    nothing = study.propose(2)
    assert (nothing.cost, len(nothing.lines)) == (0, 40)
    assert nothing.reason.startswith("cells that cost nothing are all that is ordered, as no other cell")


def test_prices_are_decimal_numbers(path: Path) -> None:
    names, costs = [f"p{i}" for i in range(20)], {"x": 1.1, "z": 1.1}
    study = budgetreg.Study.create(path, examples=names, targets=[*range(20)], costs=costs)
    for spend, lines in ((3.3, 3), (6.6, 6), (np.nextafter(6.6, 0), 5), (3.29, 2)):
        assert len(study.propose(spend).lines) == lines
        assert study.propose(spend).cost <= spend


def test_a_forecast_depends_on_no_order_that_is_pending(path: Path, tmp_path: Path) -> None:
    study, _ = bought(path)
    study.tell(filled_in(study.ask(spend=40)))
    shutil.copy(path, tmp_path / "same.db")
    same = budgetreg.Study(tmp_path / "same.db")
    same.ask(spend=40)
    study.ask(spend=20)
    pending = study.estimates()
    assert len(pending.further) > 1
    assert pending.further == same.estimates().further
    study.cancel(2)
    assert study.estimates() == pending
    further = [spending for spending, _ in pending.further]
    assert [interval for _, interval in pending.further] == study.forecast(further)
