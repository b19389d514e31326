"""Names in a study: any word is one, blanks around it do not count, and no column hides another one."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import budgetreg
from budgetreg.common.errors import ConfigError, DataError, UserError

pytestmark = pytest.mark.usefixtures("short_chains")

WORDS = ("Na", "NA", "None", "null", "nan", "N/A", "<NA>", "#N/A")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trial.db"


def files(folder: Path, word: str) -> dict[str, str]:
    """Write a table, a price list and ranges in which a word names an example, the ids, an attribute and a group."""
    rows = [f"{name},{at},{at % 3}" for at, name in enumerate([word, *(f"p{at}" for at in range(11))])]
    (folder / "table.csv").write_text("\n".join([f"{word},y,b", *rows]) + "\n")
    (folder / "prices.csv").write_text(f"attribute,cost,group\nb,1,\n#N/A,2,{word}\nNa,,{word}\n")
    (folder / "ranges.csv").write_text("attribute,low,high\nb,0,9\n#N/A,0,9\nNa,0,9\n")
    return {name: str(folder / f"{name}.csv") for name in ("table", "prices", "ranges")}


@pytest.mark.parametrize("word", ("NA", " null "))
def test_a_word_for_a_missing_value_is_a_name_like_others(path: Path, tmp_path: Path, word: str) -> None:
    paths, name = files(tmp_path, word), word.strip()
    study = budgetreg.Study.create(
        path, examples=paths["table"], targets="y", id=word, costs=paths["prices"], ranges=paths["ranges"]
    )
    order = study.ask(spend=1000)
    assert {"Na", "#N/A"} == set(order["attribute"])
    assert name in set(order["example"])
    order.assign(value=4.5).to_csv(tmp_path / "order.csv", index=False)
    assert study.tell(tmp_path / "order.csv").values == len(order) == 24
    assert study.tell(order.assign(value=4.5)).repeated == 24
    assert study.predict(paths["table"])[name].iloc[0] == name
    assert set(study.next(paths["table"])["attribute"]) <= {"Na", "#N/A", "b"}
    study.export(tmp_path / "known.csv")
    assert (tmp_path / "known.csv").read_text().splitlines()[:2] == [f"{name},b,#N/A,Na,y", f"{name},0,4.5,4.5,0"]


def test_a_word_for_a_missing_value_is_one_among_values(path: Path) -> None:
    table = pd.DataFrame({"example": range(len(WORDS)), "a": WORDS, "b": "", "y": WORDS})
    study = budgetreg.Study.create(path, examples=table, targets="y")
    assert study.table()[["a", "y"]].isna().all(axis=None)
    results = pd.DataFrame({"example": range(len(WORDS)), "attribute": "b", "value": WORDS})
    assert study.tell(results).values == 0


@pytest.mark.parametrize("missing", [None, pd.NA, pd.NaT, " "])
def test_an_empty_name_is_refused(path: Path, missing: object) -> None:
    with pytest.raises(DataError, match="data row 2, column 'example': there is no name"):
        budgetreg.Study.create(path, examples=pd.DataFrame({"example": ["p1", missing], "a": 1, "b": 2}))
    with pytest.raises(DataError, match="column 2 has no name"):
        budgetreg.Study.create(path, examples=pd.DataFrame([["p1", 1, 2]], columns=["example", missing, "b"]))
    with pytest.raises(ConfigError, match="costs: entry 2 has no name"):
        budgetreg.Study.create(path, examples=["p1"], costs={"a": 1, missing: 2, "b": 3})  # type: ignore[dict-item]
    with budgetreg.Study.create(path, examples=["p1"], attributes=["a", "b"]) as study:
        lines = pd.DataFrame({"example": ["p1", "p1"], "attribute": ["a", missing], "value": 1.0})
        with pytest.raises(DataError, match="data row 2, column 'attribute': there is no name"):
            study.tell(lines)
        assert study.bill().total == 0


def test_blanks_around_names_do_not_count(path: Path) -> None:
    study = budgetreg.Study.create(
        path,
        examples=pd.DataFrame({" id": [" p1", "p2 "], "a ": [1.0, 2.0], "x": "text"}),
        targets={"p1 ": 1.0, "p2": 2.0},
        id="id ",
        drop=["x "],
        attributes=[" b"],
        costs={"a": 1, " b": 2, "c ": 2},
        groups={"b ": "g", "c": " g"},
    )
    assert study.table().columns.tolist() == ["id", "a", "b", "c", "target"]
    assert study.state().heads.tolist() == [0, 1, 1]
    study.add(pd.DataFrame({"id ": ["p3"], " a": [3.0], "t": "text"}), targets=[3.0], drop=[" t"])
    lines = pd.DataFrame({"example": [" p1", "p2"], " attribute": [" b", "c "], "value ": [5.0, 6.0]})
    assert study.tell(lines).values == 2
    new = pd.DataFrame({"id": ["n "], "b ": [1.0]})
    assert study.predict(new)["id"].tolist() == ["n"]
    assert "b" not in set(study.next(new)["attribute"])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"costs": {"a": 1, " a": 2, "b": 1}}, "costs: 'a' is there twice"),
        ({"costs": {"a": 1, "y": 2}, "targets": "y"}, "'y' is the column of the examples' targets"),
        ({"attributes": ["a", "b", "example "]}, "'example' is the column of the examples' names"),
        (
            {"attributes": ["a", "b"], "targets": "example"},
            "'example' is the column of the examples' names, and of the targets",
        ),
        (
            {
                "examples": pd.DataFrame({"example": ["p1", "p2"], "a": 1, "b": 2, "y": ["High", "none"]}),
                "targets": "y",
            },
            "'none' stands for a missing target, and 'High' is the only label",
        ),
    ],
)
def test_names_with_two_meanings_are_refused(path: Path, given: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as error:
        budgetreg.Study.create(path, **{"examples": ["p1", "p2"], **given})
    assert said in str(error.value)
    assert not path.exists()


def test_targets_may_be_missing_beside_two_labels(path: Path) -> None:
    table = pd.DataFrame({"example": list("pqr"), "a": 1, "b": 2, "y": ["sick", "NA", "well"]})
    study = budgetreg.Study.create(path, examples=table, targets="y")
    assert study.table()["y"].fillna("").tolist() == ["sick", "", "well"]


@pytest.mark.parametrize("id", ["prediction", "label", "for_all", "value"])
def test_names_of_examples_stay_in_the_answers(path: Path, id: str) -> None:
    rng = np.random.default_rng(0)
    names = [f"p{at}" for at in range(12)]
    table = pd.DataFrame({id: names, "a": rng.normal(size=12), "b": rng.normal(size=12), "y": ["u", "v"] * 6})
    study = budgetreg.Study.create(path, examples=table, targets="y", id=id)
    new = table[[id, "a"]]
    predicted, useful = study.predict(new), study.next(new)
    for answer, others in (
        (predicted, ["prediction", "std", "label"]),
        (useful, ["attribute", "cost", "std_before", "std_after", "for_all"]),
    ):
        assert answer.columns.tolist() == ["example" if id in others else id, *others]
    assert predicted.iloc[:, 0].tolist() == names
    assert set(useful.iloc[:, 0]) <= set(names)
    assert predicted["std"].dtype == float


def test_an_attribute_named_example_is_no_column_of_names(path: Path) -> None:
    table = pd.DataFrame({"id": list("pqrs"), "example": [4.0, 2.0, 1.0, 3.0], "b": [1.0, 0.0, 1.0, 0.0]})
    study = budgetreg.Study.create(path, examples=table.assign(y=[1, 2, 3, 4.5]), targets="y", id="id")
    new = study.predict(table.drop(columns="id"))
    assert new["id"].tolist() == ["1", "2", "3", "4"]
    assert new["prediction"].tolist() == study.predict(table)["prediction"].tolist()


def test_an_array_of_examples_is_read_as_estimators_read_it(path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 2))
    table = pd.DataFrame(X, columns=["a", "b"]).assign(y=X.sum(axis=1))
    study = budgetreg.Study.create(path, examples=table, targets="y")
    masked = np.ma.masked_array([[1.0, 777.0]], [[False, True]])
    expected = study.predict(np.array([[1.0, np.nan]]))
    pd.testing.assert_frame_equal(study.predict(masked), expected)
    dates = np.array([["2020-01-01"] * 2], dtype="M8[D]")
    for wrong, said in ((dates, "'2020-01-01.*' is not a number"), (np.array([[1e155, 0.0]]), "be computed with")):
        with pytest.raises(DataError, match=said):
            study.predict(wrong)
